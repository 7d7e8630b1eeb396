// SPDX-License-Identifier: BSD-3-Clause
//
// How members of a multicast group find each other: each says by IP multicast, to the address of
// the group, its name; often at first, then once a second, and at once when a newcomer is heard.
// Only these announcements are multicast: data goes over the members' connections. The helper
// thread (ucs/async.h) sends and hears them and leaves what it heard to the endpoint's engine.
#pragma once

#include "prov/ucxlike/engine.h"

#include "ucs/async.h"

#include <mutex>

namespace ucxlike {

class herald {
  public:
    herald(const address &group, const address &name, const wire::notice &mine, engine *eng);
    ~herald(); // says that the member leaves
    herald(const herald &) = delete;
    herald &operator=(const herald &) = delete;

    // What was heard since the last call.
    std::vector<wire::notice> take();
    // Time enough has passed; those heard know of no others, and all of them know this one.
    bool settled() const { return settled_; }
    // Members are not to be waited for any longer.
    bool overdue() const { return overdue_; }

  private:
    struct known {
        std::string key;
        uint64_t heard;
        size_t members; // that it claims to know
    };

    void open(const address &name);
    void listen(const address &name);
    void speak_as(const address &name);
    void close_sockets();
    void on_notices();
    void look();
    ssize_t say(wire::notice n);
    void hear();
    void heard(const wire::notice &n);
    void forget_silent(uint64_t now);
    bool complete(uint64_t now) const;
    void deliver();

    address group_;
    wire::notice mine_;
    engine *eng_;
    int socket_ = -1;           // where notices arrive
    int voice_ = -1;            // has the endpoint's own address, which receivers look at
    std::vector<known> others_; // the helper thread's own, as the rest up to settled_
    size_t most_ = 0;           // the most members that one claims to know
    uint64_t started_;
    uint64_t last_new_ = 0;
    size_t spoken_ = 0;
    uint64_t next_;       // it speaks unasked
    bool answer_ = false; // a newcomer was heard
    std::atomic<bool> settled_{false};
    std::atomic<bool> overdue_{false};
    std::mutex mutex_;
    std::vector<wire::notice> inbox_;
    // Their callbacks use the members before them, and that of the notices the timer.
    ucs::async_watch timer_;
    ucs::async_watch notices_;
};

} // namespace ucxlike
