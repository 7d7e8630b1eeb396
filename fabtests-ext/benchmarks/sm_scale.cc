// SPDX-License-Identifier: BSD-3-Clause
//
// Shared memory with many processes on a node: the latency of a pair while others are attached to
// both and silent, beside that of a pair that no other is attached to, in turns; many senders to
// one receiver; all to all, and what a process takes then. usage:
//   sm_scale [latency SILENT | senders COUNT | alltoall PROCESSES | small]...
// Without arguments: everything at full size. Fails where a message is lost; the figures decide
// nothing. Not with a priority of real time (chrt -f, chrt -r): a process that polls keeps its
// processor then, also from the one that it waits for.
#include "node_processes.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <sched.h>
#include <string>
#include <sys/eventfd.h>
#include <vector>

using namespace node_processes;

namespace {

constexpr unsigned rounds = 100; // of each pair

double median(std::vector<double> values)
{
    std::sort(values.begin(), values.end());
    return values.empty() ? 0 : values[values.size() / 2];
}

// ---- Latency beside silent processes: 0 and 1 have them, 2 and 3 do not

void be_silent(side &self, unsigned id)
{
    for (unsigned to : {0u, 1u}) {
        uint64_t word = id;
        self.finish(self.send(self.connect(to), &word, silent_tag), true);
    }
    self.finish(self.flush(), true);
    self.shared.arrive();
    for (;;) {
        pause();
    }
}

// us for each message
double ping_pong(side &self, ucp_ep_h to, bool first, unsigned count, bool sleep = false)
{
    auto start = std::chrono::steady_clock::now();
    for (unsigned n = 0; n < count; ++n) {
        uint64_t word = n;
        if (first) {
            self.finish(self.send(to, &word, pair_tag), sleep);
        }
        self.finish(self.receive(&word, pair_tag), sleep);
        if (!first) {
            self.finish(self.send(to, &word, pair_tag), sleep);
        }
    }
    std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
    return took.count() / count / 2;
}

void be_of_a_pair(side &self, unsigned id, unsigned silent, unsigned count)
{
    ucp_ep_h other = self.connect(id ^ 1);
    ping_pong(self, other, !(id & 1), 10, true);
    for (unsigned n = 0; id < 2 && n < silent; ++n) {
        uint64_t word;
        self.finish(self.receive(&word, silent_tag), true);
    }
    self.shared.arrive();
    for (unsigned round = 0; round < rounds; ++round) {
        unsigned turn = 2 * round + id / 2;
        self.shared.turn.wait_for(turn + 1);
        double us = ping_pong(self, other, !(id & 1), count);
        if (!(id & 1)) {
            self.shared.times[turn] = us;
            self.shared.turn.raise();
        }
    }
    self.finish(self.flush(), true);
    self.shared.left.raise();
    self.shared.left.wait_for(4);
}

bool latency(unsigned silent, unsigned count)
{
    board &shared = board::make();
    processes all(shared, silent + 4, [&](side &self, unsigned id) {
        id < 4 ? be_of_a_pair(self, id, silent, count) : be_silent(self, id);
    });
    shared.arrived.wait_for(2 * (silent + 4)); // each tells its address, and that it is connected
    shared.turn.raise();
    bool good = all.wait(4);
    std::vector<double> with, without;
    for (unsigned round = 0; round < rounds; ++round) {
        with.push_back(shared.times[2 * round]);
        without.push_back(shared.times[2 * round + 1]);
    }
    printf("latency beside %4u silent processes: %s; 8 B %.3f us, without them %.3f us, ratio of "
           "medians %.3f (aim: at most 1.05)\n",
           silent, good ? "all arrived" : "FAILED", median(with), median(without),
           median(with) / median(without));
    return good;
}

// ---- Many senders

ucs_status_t count_one(void *arg, const void *, size_t, void *data, size_t,
                       const ucp_am_recv_param_t *)
{
    uint64_t sender;
    memcpy(&sender, data, sizeof(sender));
    ++(*static_cast<std::vector<uint64_t> *>(arg))[sender];
    return UCS_OK;
}

void send_until_told(side &self, unsigned id)
{
    ucp_ep_h to = self.connect(0);
    uint64_t sent = 0;
    uint64_t word = id;
    ucp_request_param_t param = {};
    for (; !self.shared.stop; ++sent) {
        self.finish(ucp_am_send_nbx(to, 0, nullptr, 0, &word, sizeof(word), &param));
    }
    self.finish(self.flush());
    self.shared.of[id].count = sent;
    self.shared.left.raise();
    self.shared.turn.wait_for(1); // the receiver has everything
}

// At least so many messages, and for so long: senders that take turns on few processors have had
// theirs often enough then.
void receive_all(side &self, unsigned senders, uint64_t messages, unsigned seconds)
{
    std::vector<uint64_t> got(senders + 1);
    ucp_am_handler_param_t handler = {};
    handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                         UCP_AM_HANDLER_PARAM_FIELD_ARG;
    handler.cb = count_one;
    handler.arg = &got;
    must(ucp_worker_set_am_recv_handler(self.worker, &handler) == UCS_OK, "a handler");
    auto total = [&] {
        uint64_t sum = 0;
        for (uint64_t n : got) {
            sum += n;
        }
        return sum;
    };
    auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
    while (total() < messages || std::chrono::steady_clock::now() < end) {
        for (unsigned n = 0; n < 100; ++n) {
            ucp_worker_progress(self.worker);
        }
    }
    auto [least, most] = std::minmax_element(got.begin() + 1, got.end());
    double mean = static_cast<double>(total()) / senders;
    self.shared.times[0] = static_cast<double>(*least) / mean;
    self.shared.times[1] = static_cast<double>(*most) / mean;
    self.shared.stop = true;
    // Looked at before the counts, which are final then.
    auto all_sent = [&] {
        if (self.shared.left.value() < senders) {
            return UINT64_MAX;
        }
        uint64_t sum = 0;
        for (unsigned id = 1; id <= senders; ++id) {
            sum += self.shared.of[id].count;
        }
        return sum;
    };
    while (total() < all_sent()) {
        ucp_worker_progress(self.worker);
    }
    self.shared.times[2] = static_cast<double>(total());
    self.shared.turn.raise();
    must(total() == all_sent(), "receiving each message once");
}

bool senders(unsigned count, uint64_t each, unsigned seconds)
{
    board &shared = board::make();
    processes all(shared, count + 1, [&](side &self, unsigned id) {
        id == 0 ? receive_all(self, count, count * each, seconds) : send_until_told(self, id);
    });
    bool good = all.wait(count + 1);
    printf(
        "%4u senders to one receiver: %s of %.0f messages; until the first stopped the least had "
        "%.2f of the mean, the most %.2f (aim: 0.5 and 2)\n",
        count, good ? "all arrived" : "FAILED", shared.times[2], shared.times[0], shared.times[1]);
    return good;
}

// ---- All to all

void talk_to_all(side &self, unsigned id, unsigned count)
{
    double start = processor_seconds();
    std::vector<uint64_t> in(count), out(count);
    std::vector<ucs_status_ptr_t> requests;
    for (unsigned n = 1; n < count; ++n) {
        requests.push_back(self.receive(&in[n], pair_tag));
    }
    for (unsigned n = 1; n < count; ++n) {
        unsigned to = (id + n) % count;
        out[n] = id + 1;
        requests.push_back(self.send(self.connect(to), &out[n], pair_tag));
    }
    for (ucs_status_ptr_t request : requests) {
        self.finish(request, true);
    }
    self.finish(self.flush(), true);
    uint64_t sum = 0;
    for (uint64_t value : in) {
        sum += value;
    }
    must(sum == uint64_t(count) * (count + 1) / 2 - (id + 1), "one message of each");
    self.leave_together(count);
    self.shared.of[id].use = measure(start);
    self.shared.turn.raise();
    self.shared.turn.wait_for(count); // the pages that all share are still all's
}

// The exponent with which the processor time of a message grows, between the first run and this.
double growth(unsigned count, double us)
{
    static const unsigned first_count = count;
    static const double first_us = us;
    return count == first_count ? 0 : log(us / first_us) / log(double(count) / first_count);
}

bool all_to_all(unsigned count)
{
    board &shared = board::make();
    shared.all_left = eventfd(0, EFD_CLOEXEC);
    must(shared.all_left >= 0, "eventfd");
    auto start = std::chrono::steady_clock::now();
    processes all(shared, count, [&](side &self, unsigned id) { talk_to_all(self, id, count); });
    bool good = all.wait(count);
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    close(shared.all_left);
    usage most{};
    std::vector<double> memory;
    for (unsigned id = 0; id < count; ++id) {
        const usage &u = shared.of[id].use;
        memory.push_back(u.pss);
        most.seconds += u.seconds;
        most.descriptors = std::max(most.descriptors, u.descriptors);
        most.threads = std::max(most.threads, u.threads);
    }
    double us = most.seconds / count / (count - 1) * 1e6;
    printf("all to all of %4u processes: %s of %u messages in %.1f s; %.0f us of a processor for "
           "each, with its connection (growth %.2f); a process then has %.1f MB (PSS, median), %u "
           "descriptors and %u threads at most\n",
           count, good ? "all arrived" : "FAILED", count * (count - 1), took.count(), us,
           growth(count, us), median(memory) / 1e6, most.descriptors, most.threads);
    return good;
}

bool has_real_time_priority()
{
    int policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
    return policy == SCHED_FIFO || policy == SCHED_RR || policy == 6; // SCHED_DEADLINE
}

bool everything()
{
    bool good = true;
    for (unsigned silent : {0u, 200u, 400u, 1000u}) {
        good = latency(silent, 1000) && good;
    }
    good = senders(200, 2000, 20) && good;
    for (unsigned count : {16u, 64u, 512u}) {
        good = all_to_all(count) && good;
    }
    return good;
}

} // namespace

int main(int argc, char **argv)
{
    if (has_real_time_priority()) {
        fprintf(stderr,
                "%s: processes that poll with a priority of real time keep the processors "
                "from those that they wait for; run it without\n",
                argv[0]);
        return 2;
    }
    setenv("UCX_TLS", "sm,self", 0);
    setvbuf(stdout, nullptr, _IOLBF, 0);
    alarm(1800);
    bool good = argc > 1 || everything();
    for (int i = 1; i < argc; ++i) {
        std::string what = argv[i];
        if (what == "small") {
            good = latency(20, 50) && senders(20, 500, 0) && all_to_all(32) && good;
            continue;
        }
        unsigned count = i + 1 < argc ? static_cast<unsigned>(strtoul(argv[++i], nullptr, 10)) : 0;
        if (what == "latency") {
            good = latency(count, 1000) && good;
        } else if (what == "senders" && count > 0) {
            good = senders(count, 2000, 20) && good;
        } else if (what == "alltoall" && count > 1) {
            good = all_to_all(count) && good;
        } else {
            fprintf(stderr,
                    "usage: %s [latency SILENT | senders COUNT | alltoall PROCESSES | small]...\n",
                    argv[0]);
            return 2;
        }
    }
    return good ? 0 : 1;
}
