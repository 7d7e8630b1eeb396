// SPDX-License-Identifier: BSD-3-Clause
//
// Processes of one host that start at different times and send to each other, all to all, in
// rounds: none waits until all are up, so connections cross and messages come before their
// receivers have a use for them. Every message must arrive once, whole, and in its round; a hang is
// an error. Usage: prov_alltoall [PROCESSES [ROUNDS [SKEW_MS [SECONDS]]]]
#include "fabtests-ext/common/fabric_app.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <random>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

using namespace app;

namespace {

struct plan {
    unsigned processes = 24, rounds = 5, skew = 200, seconds = 600;
};

// Where the processes publish their names.
struct board {
    static constexpr unsigned most = 256;
    struct entry {
        std::atomic<bool> there;
        char name[64];
    } entries[most];
    std::atomic<unsigned> finished;
};

struct message {
    uint32_t from, to, round, check;
};

uint32_t check_of(const message &m)
{
    return (m.from * 65537u + m.to) * 2654435761u + m.round;
}

class member {
  public:
    member(board *b, const plan &p, unsigned rank)
        : board_(b), plan_(p), rank_(rank), side_(make_options()), address_(p.processes),
          known_(p.processes), sent_(p.processes), got_(p.processes), in_(2 * p.processes)
    {
        side_.open_active(side_.info);
        size_t length = sizeof(b->entries[rank].name);
        REQUIRE_EQ(fi_getname(&side_.ep->fid, b->entries[rank].name, &length), 0);
        b->entries[rank].there = true;
        for (message &m : in_) {
            post(&m);
        }
    }

    void run()
    {
        for (round_ = 0; round_ < plan_.rounds; ++round_) {
            do {
                bool moved = send_round();
                moved |= receive();
                if (!moved) {
                    sched_yield();
                }
            } while (!complete());
        }
        // The first to leave must not take the others' answers with it.
        ++board_->finished;
        while (board_->finished < plan_.processes) {
            if (!receive()) {
                sched_yield();
            }
        }
    }

  private:
    static options make_options()
    {
        options o;
        o.caps = FI_MSG;
        return o;
    }

    void post(message *m)
    {
        side_.retry([&] { return fi_recv(side_.ep, m, sizeof(*m), nullptr, FI_ADDR_UNSPEC, m); });
    }

    bool send_round()
    {
        bool moved = false;
        for (unsigned i = 0; i < plan_.processes; ++i) {
            unsigned to = (rank_ + i) % plan_.processes;
            if (sent_[to] > round_ || !knows(to)) {
                continue;
            }
            message m = {rank_, to, round_, 0};
            m.check = check_of(m);
            ssize_t r = fi_inject(side_.ep, &m, sizeof(m), address_[to]);
            if (r == -FI_EAGAIN) {
                continue;
            }
            REQUIRE_EQ(r, 0);
            ++sent_[to];
            moved = true;
        }
        return moved;
    }

    bool knows(unsigned to)
    {
        if (!known_[to] && board_->entries[to].there) {
            REQUIRE_EQ(
                fi_av_insert(side_.av, board_->entries[to].name, 1, &address_[to], 0, nullptr), 1);
            known_[to] = true;
        }
        return known_[to];
    }

    bool receive()
    {
        fi_cq_tagged_entry e;
        bool moved = false;
        while (side_.try_complete(side_.rxcq, &e, 0)) {
            auto *m = static_cast<message *>(e.op_context);
            REQUIRE(m->from < plan_.processes);
            REQUIRE_EQ(m->to, rank_);
            REQUIRE_EQ(m->check, check_of(*m));
            REQUIRE_EQ(m->round, got_[m->from]); // in order and once
            ++got_[m->from];
            post(m);
            moved = true;
        }
        return moved;
    }

    bool complete() const
    {
        auto over = [this](unsigned n) { return n > round_; };
        return std::all_of(sent_.begin(), sent_.end(), over) &&
               std::all_of(got_.begin(), got_.end(), over);
    }

    board *board_;
    const plan &plan_;
    unsigned rank_;
    fabric_side side_;
    std::vector<fi_addr_t> address_;
    std::vector<char> known_;
    std::vector<unsigned> sent_, got_;
    std::vector<message> in_;
    unsigned round_ = 0;
};

void child(board *b, const plan &p, unsigned rank)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(p.seconds);
    std::minstd_rand random(rank + 1);
    usleep(p.skew ? static_cast<useconds_t>(random() % p.skew) * 1000 : 0);
    {
        member m(b, p, rank);
        m.run();
    }
    _exit(0);
}

unsigned argument(int argc, char **argv, int i, unsigned otherwise)
{
    return i < argc ? static_cast<unsigned>(atoi(argv[i])) : otherwise;
}

} // namespace

int main(int argc, char **argv)
{
    plan p;
    p.processes = argument(argc, argv, 1, p.processes);
    p.rounds = argument(argc, argv, 2, p.rounds);
    p.skew = argument(argc, argv, 3, p.skew);
    p.seconds = argument(argc, argv, 4, p.seconds);
    if (p.processes < 1 || p.processes > board::most) {
        fprintf(stderr, "PROCESSES is %u, not 1 to %u\n", p.processes, board::most);
        return 2;
    }
    use_build_tree();
    void *shared =
        mmap(nullptr, sizeof(board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(shared != MAP_FAILED);
    auto *b = static_cast<board *>(shared);
    std::vector<pid_t> pids;
    for (unsigned rank = 0; rank < p.processes; ++rank) {
        pids.push_back(fork());
        if (pids.back() == 0) {
            child(b, p, rank);
        }
        REQUIRE(pids.back() > 0);
    }
    unsigned failures = 0;
    for (pid_t pid : pids) {
        int status = 0;
        waitpid(pid, &status, 0);
        failures += status != 0;
        if (WIFSIGNALED(status)) {
            fprintf(stderr, "a process %s\n",
                    WTERMSIG(status) == SIGALRM ? "hangs" : strsignal(WTERMSIG(status)));
        }
    }
    printf("%u processes, %u rounds, up to %u ms of skew: %u failed\n", p.processes, p.rounds,
           p.skew, failures);
    return failures ? 1 : 0;
}
