// SPDX-License-Identifier: BSD-3-Clause
//
// RDM endpoints whose peer is killed and comes back under the same name, any number of times: what
// was under way ends with an error each, nothing of a former life arrives in a later one, and the
// survivor, which is never restarted, reaches every new life. UCXLIKE_TEST_LIVES sets how many
// there are.
#include "fabtests-ext/common/fabric_app.h"
#include "fabtests-ext/common/open_files.h"
#include "fabtests-ext/common/transports.h"

#include <arpa/inet.h>
#include <csignal>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/wait.h>

using namespace app;

namespace {

constexpr uint64_t large_tag = 1, small_tag = 2, answer_tag = 3, first_tag = 4;
constexpr unsigned first_words = 20;
constexpr size_t large = 1 << 20;

unsigned lives()
{
    const char *n = getenv("UCXLIKE_TEST_LIVES");
    return n ? static_cast<unsigned>(atoi(n)) : 4;
}

options rdm(const std::string &service)
{
    options o;
    o.caps = FI_MSG | FI_TAGGED | FI_RMA | FI_DIRECTED_RECV;
    o.service = service;
    return o;
}

// What a life tells of itself.
struct birth {
    char name[64];
    uint64_t key;
    uint64_t address;
};

// A life sends numbers before it has been sent anything. No two lives send the same number.
void speak(fabric_side &s, unsigned life)
{
    std::vector<unsigned> words(first_words);
    for (unsigned i = 0; i < first_words; ++i) {
        words[i] = life * first_words + i;
        s.retry([&] {
            return fi_tsend(s.ep, &words[i], sizeof(unsigned), nullptr, s.peer, first_tag,
                            &words[i]);
        });
    }
    for (unsigned i = 0; i < first_words; ++i) {
        s.complete(s.txcq);
    }
}

// One life: echoes what it is sent by the survivor, which must have been sent to this life, until
// it is killed.
void live(partner &p, unsigned life, const std::string &service, const std::string &survivor,
          bool speaks_first)
{
    fabric_side s(rdm(service));
    s.open_active(s.info);
    birth b = {};
    size_t length = sizeof(b.name);
    REQUIRE_EQ(fi_getname(&s.ep->fid, b.name, &length), 0);
    REQUIRE_EQ(fi_av_insert(s.av, survivor.data(), 1, &s.peer, 0, nullptr), 1);
    std::vector<char> memory(large, static_cast<char>(life));
    fid_mr *mr = nullptr;
    REQUIRE_EQ(fi_mr_reg(s.domain, memory.data(), large, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 17, 0,
                         &mr, nullptr),
               0);
    b.key = fi_mr_key(mr);
    b.address = s.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR
                    ? reinterpret_cast<uint64_t>(memory.data())
                    : 0;
    p.tell(&b, sizeof(b));
    if (speaks_first) {
        speak(s, life);
    }
    for (;;) {
        unsigned stamp = ~0u;
        REQUIRE_EQ(
            fi_trecv(s.ep, &stamp, sizeof(stamp), nullptr, FI_ADDR_UNSPEC, small_tag, 0, &stamp),
            0);
        fi_cq_tagged_entry e;
        while (!s.try_complete(s.rxcq, &e, 1000))
            ;
        REQUIRE_EQ(stamp, life);
        s.retry([&] { return fi_tinject(s.ep, &stamp, sizeof(stamp), s.peer, answer_tag); });
    }
}

// Does not touch libfabric: it gives birth to one life after the other and kills them when told.
void look_after(partner &p, bool speak_first)
{
    char survivor[64];
    p.hear(survivor, sizeof(survivor));
    std::string service;
    for (unsigned life = 0; life < lives(); ++life) {
        int fds[2];
        REQUIRE_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
        pid_t child = fork();
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            partner to_steward(fds[1]);
            live(to_steward, life, service, std::string(survivor, sizeof(survivor)), speak_first);
        }
        close(fds[1]);
        birth b;
        partner(fds[0]).hear(&b, sizeof(b));
        sockaddr_in name;
        memcpy(&name, b.name, sizeof(name));
        service = std::to_string(ntohs(name.sin_port));
        p.tell(&b, sizeof(b));
        p.hear(); // the word to kill
        kill(child, SIGKILL);
        int status = 0;
        REQUIRE_EQ(waitpid(child, &status, 0), child);
        REQUIRE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        close(fds[0]);
        p.tell(1);
    }
}
void steward(partner &p)
{
    look_after(p, false);
}
void steward_of_speakers(partner &p)
{
    look_after(p, true);
}

// Reads `q` until everything of `pending` has completed; counts the errors. The other queue is left
// alone: the answer to a message may be in it before the message's own completion is read.
unsigned drain(fid_cq *q, std::vector<void *> pending)
{
    unsigned errors = 0;
    auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    auto done = [&](void *context) {
        auto at = std::find(pending.begin(), pending.end(), context);
        REQUIRE(at != pending.end()); // once each
        pending.erase(at);
    };
    while (!pending.empty()) {
        REQUIRE(std::chrono::steady_clock::now() < end);
        fi_cq_tagged_entry e = {};
        ssize_t n = fi_cq_read(q, &e, 1);
        if (n == 1) {
            done(e.op_context);
        } else if (n == -FI_EAVAIL) {
            fi_cq_err_entry error = {};
            REQUIRE_EQ(fi_cq_readerr(q, &error, 0), 1);
            REQUIRE(error.err > 0);
            ++errors;
            done(error.op_context);
        } else {
            REQUIRE_EQ(n, -FI_EAGAIN);
        }
    }
    return errors;
}

// A message there and its answer back. The first tries after a death may meet the old connection.
void reach(fabric_side &s, unsigned life)
{
    unsigned answer = ~0u;
    REQUIRE_EQ(
        fi_trecv(s.ep, &answer, sizeof(answer), nullptr, FI_ADDR_UNSPEC, answer_tag, 0, &answer),
        0);
    auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (bool sent = false; !sent;) {
        ssize_t r = fi_tsend(s.ep, &life, sizeof(life), nullptr, s.peer, small_tag, &life);
        if (r == 0) {
            sent = drain(s.txcq, {&life}) == 0;
        } else {
            fi_cq_read(s.rxcq, nullptr, 0);
        }
        REQUIRE(r == 0 || r == -FI_EAGAIN || r == -FI_ECONNREFUSED || r == -FI_ECONNRESET);
        REQUIRE(std::chrono::steady_clock::now() < end);
    }
    REQUIRE_EQ(drain(s.rxcq, {&answer}), 0);
    REQUIRE_EQ(answer, life);
}

// A life leaves none of them behind: every later one finds no more open than the second did.
class growth {
  public:
    void look(fabric_side &s, unsigned life)
    {
        if (life == 1) {
            descriptors_ = open_files();
        }
        if (life < 2) {
            return;
        }
        auto end = std::chrono::steady_clock::now() + patience;
        while (open_files() > descriptors_) { // a dead peer's go when its connection is closed
            s.progress();
            REQUIRE(std::chrono::steady_clock::now() < end);
        }
    }

  private:
    size_t descriptors_ = 0;
};

class prov_restart_test : public testing::TestWithParam<const char *> {
  protected:
    static void run(role mother, role child)
    {
        const char *transports = GetParam();
        auto with = [transports](const role &r) {
            return [&r, transports](partner &p) {
                setenv("FI_UCXLIKE_TLS", transports, 1);
                r(p);
            };
        };
        EXPECT_EQ(run_pair(with(mother), with(child), 60 + static_cast<int>(lives())), "");
    }
};

void tell_name(partner &p, fabric_side &s)
{
    s.open_active(s.info);
    char name[64] = {};
    size_t length = sizeof(name);
    REQUIRE_EQ(fi_getname(&s.ep->fid, name, &length), 0);
    p.tell(name, sizeof(name));
}

// The next life is born; the first one's name is that of all.
birth meet(partner &p, fabric_side &s, unsigned life)
{
    birth b;
    p.hear(&b, sizeof(b));
    if (life == 0) {
        REQUIRE_EQ(fi_av_insert(s.av, b.name, 1, &s.peer, 0, nullptr), 1);
    }
    return b;
}

TEST_P(prov_restart_test, reaches_every_life_and_ends_what_was_under_way)
{
    auto survivor = [](partner &p) {
        fabric_side s(rdm(""));
        tell_name(p, s);
        std::vector<char> out(large), in(large), written(large);
        growth nothing;
        for (unsigned life = 0; life < lives(); ++life) {
            birth b = meet(p, s, life);
            reach(s, life);
            reach(s, life);
            nothing.look(s, life);
            s.retry([&] {
                return fi_read(s.ep, in.data(), 4096, nullptr, s.peer, b.address, b.key, in.data());
            });
            REQUIRE_EQ(drain(s.txcq, {in.data()}), 0);
            REQUIRE_EQ(in[4095], static_cast<char>(life));
            // These are not received, so they cannot complete before the end.
            std::vector<void *> pending;
            for (int i = 0; i < 4; ++i) {
                void *context = out.data() + i;
                s.retry([&] {
                    return fi_tsend(s.ep, out.data(), large, nullptr, s.peer, large_tag, context);
                });
                pending.push_back(context);
            }
            p.tell(1);
            // These meet the death at any point, or come after it.
            for (int i = 0; i < 50; ++i) {
                char *to = (i & 1 ? in : written).data() + i;
                ssize_t r = i & 1 ? fi_read(s.ep, to, 4096, nullptr, s.peer, b.address, b.key, to)
                                  : fi_write(s.ep, to, 4096, nullptr, s.peer, b.address, b.key, to);
                if (r == 0) {
                    pending.push_back(to);
                }
            }
            p.hear();
            REQUIRE(drain(s.txcq, pending) >= 4);
        }
    };
    run(steward, survivor);
}

// The survivor takes the connection of a later life for one of the same peer when that has shown
// it.
TEST_P(prov_restart_test, hears_every_life_that_speaks_first)
{
    auto survivor = [](partner &p) {
        fabric_side s(rdm(""));
        tell_name(p, s);
        growth nothing;
        for (unsigned life = 0; life < lives(); ++life) {
            meet(p, s, life);
            for (unsigned i = 0; i < first_words; ++i) {
                unsigned word = ~0u;
                REQUIRE_EQ(
                    fi_trecv(s.ep, &word, sizeof(word), nullptr, s.peer, first_tag, 0, &word), 0);
                REQUIRE_EQ(drain(s.rxcq, {&word}), 0);
                REQUIRE_EQ(word, life * first_words + i);
            }
            reach(s, life);
            nothing.look(s, life);
            p.tell(1);
            p.hear();
        }
    };
    run(steward_of_speakers, survivor);
}

INSTANTIATE_TEST_SUITE_P(, prov_restart_test, testing::ValuesIn(prov_test::transports()),
                         [](const auto &i) { return prov_test::first_transport(i.param); });

} // namespace
