// SPDX-License-Identifier: BSD-3-Clause
// What UCT costs above its core provider: 8-byte ping-pong between two processes with
// uct_ep_am_short, and with a bare fi_inject / fi_cq_read loop, in turns, best and median of all
// rounds. Rounds are short, so that some of them meet no other load.
//   uct_lat [shm|tcp] [rounds]
#include "uct_pair.h"

#include <chrono>

namespace uct_bench {
namespace {

template <class Side, class Send>
double ping_pong(Side &side, bool first, int count, Send &&send)
{
    auto wait = [&] {
        unsigned before = side.received;
        while (side.received == before) {
            side.poll();
        }
    };
    meet();
    auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < count; ++i) {
        if (first) {
            send();
            wait();
        } else {
            wait();
            send();
        }
    }
    std::chrono::duration<double, std::micro> d = std::chrono::steady_clock::now() - start;
    return d.count() / count / 2;
}

void run(const std::string &transport, int rounds, bool first)
{
    uct_side ours(transport);
    bare_side bare(transport, first);
    const int count = transport == "shm" ? 200 : 50;
    std::vector<double> a;
    std::vector<double> b;
    for (int i = 0; i <= rounds; ++i) {
        double x = ping_pong(ours, first, count, [&] {
            while (uct_ep_am_short(ours.ep, 1, 0, nullptr, 0) != UCS_OK) {
                ours.poll();
            }
        });
        double y = ping_pong(bare, first, count, [&] {
            char data[8] = {};
            while (fi_inject(bare.ep, data, sizeof(data), bare.peer) != 0) {
                bare.poll();
            }
        });
        if (i > 0) {
            a.push_back(x);
            b.push_back(y);
        }
    }
    meet();
    if (first) {
        printf("uct am_short 8 B over %s: best %.3f us, median %.3f us; bare %s: best %.3f us, "
               "median %.3f us; ratio best %.2f, median %.2f (aim: 1.25)\n",
               transport.c_str(), best(a), median(a), transport.c_str(), best(b), median(b),
               best(a) / best(b), median(a) / median(b));
    }
}

} // namespace
} // namespace uct_bench

int main(int argc, char **argv)
{
    uct_bench::processes both;
    uct_bench::run(argc > 1 ? argv[1] : "shm", argc > 2 ? atoi(argv[2]) : 500, both.first());
    return 0;
}
