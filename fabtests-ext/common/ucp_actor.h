// SPDX-License-Identifier: BSD-3-Clause
//
// One of two processes that use every protocol of UCP towards each other, and what it makes of the
// other's end: each operation has one result, the endpoint one error. A test forks both from a
// process that has not touched the library; nothing here asserts, the exit code of the process
// tells what was wrong.
#pragma once

#include "fabtests-ext/common/ucp_entity.h"

#include <list>

namespace ucp_actor {

// What is sent from each side to the other.
enum protocol : unsigned {
    tag_eager = 1 << 0,
    tag_fragments = 1 << 1,
    tag_sync = 1 << 2,
    tag_rendezvous = 1 << 3,
    am_eager = 1 << 4,
    am_reply = 1 << 5,
    am_fragments = 1 << 6,
    am_rendezvous = 1 << 7,
    stream = 1 << 8,
    put = 1 << 9,
    get = 1 << 10,
    atomics = 1 << 11,
    everything = (1 << 12) - 1,
};

// The exit code of a process.
enum class outcome : int {
    ok = 0,
    not_set_up = 10,
    two_results,    // of one operation
    no_result,      // of an operation, in time
    wrong_result,   // an error where there is no reason, or success with wrong data
    errors_not_one, // of the endpoint
    not_closed,
    leaks,
    not_reached, // of a peer that should have lied or died
};

// What the other side has to know.
struct contact {
    char address[4096];
    size_t address_length;
    char rkey[512];
    size_t rkey_length;
    uint64_t memory;
};

class actor {
  public:
    // scheme: UCX_RNDV_SCHEME.
    actor(const char *tls, const char *scheme);
    actor(const actor &) = delete;
    actor &operator=(const actor &) = delete;
    ~actor();

    ucp_test::entity &self() { return self_; }
    contact about() const;
    // The endpoint to the other side is made, or taken.
    bool connect(const contact &to);
    void take(ucp_ep_h ep) { ep_ = ep; }
    ucp_test::errors &errors() { return errors_; }
    // Remote memory of the other side, through the endpoint.
    bool learn(const contact &to);

    // Operations of this side, and the receives for the same of the other's.
    void start(unsigned protocols);
    void progress() { ucp_worker_progress(self_.worker); }
    bool sent() const;     // everything of this side has ended
    bool received() const; // everything of the other's has come

    // After start(), with an honest other side: everything ends well.
    outcome judge_success();
    // With the other side gone, or about to: everything ends, with one error.
    outcome judge_end();
    // Closes the endpoint, without the other side.
    outcome leave(bool force);

  private:
    struct operation {
        actor *owner = nullptr;
        void *request = nullptr;
        int results = 0;
        ucs_status_t status = UCS_INPROGRESS;
        bool waits_for_anybody = false; // a tagged receive
        std::vector<char> buffer;
        unsigned seed = 0; // of what is to be in the buffer; 0: anything
        size_t length = 0;
    };

    operation &add(size_t length, unsigned seed, bool fill);
    void posted(operation &op, ucs_status_ptr_t r);
    ucp_request_param_t params(operation &op, unsigned flags = 0);
    static void done(void *request, ucs_status_t status, void *arg);
    static void tag_received(void *request, ucs_status_t status, const ucp_tag_recv_info_t *,
                             void *arg);
    static void stream_received(void *request, ucs_status_t status, size_t, void *arg);
    static void am_received(void *request, ucs_status_t status, size_t, void *arg);
    static ucs_status_t on_am(void *arg, const void *header, size_t header_length, void *data,
                              size_t length, const ucp_am_recv_param_t *param);
    void send_tag(size_t length, ucp_tag_t tag, bool sync);
    void receive_tag(size_t length, ucp_tag_t tag);
    void send_am(size_t length, unsigned flags);
    void start_stream();
    void start_memory(unsigned protocols);
    bool all_ended(bool with_tags) const;
    bool has_wrong_data() const;
    bool has_two_results() const;
    template <class Done>
    bool progress_until(Done &&done);

    ucp_test::entity self_;
    ucp_test::errors errors_;
    ucp_ep_h ep_ = nullptr;
    ucp_mem_h memh_ = nullptr;
    std::vector<char> memory_;
    ucp_rkey_h rkey_ = nullptr;
    uint64_t remote_ = 0;
    std::list<operation> sends_, receives_;
    size_t am_expected_ = 0, am_came_ = 0;
};

} // namespace ucp_actor
