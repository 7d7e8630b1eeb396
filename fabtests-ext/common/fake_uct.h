// SPDX-License-Identifier: BSD-3-Clause
//
// A scripted transport for the error paths of UCT's users: an endpoint that stands in front of a
// real one. By default every call goes through. A script makes it refuse (NO_RESOURCE, until
// release()), fail, or report zero-copy operations late, in any order and with any status.
#pragma once

#include <uct/api/uct.h>

#include <deque>
#include <vector>

namespace fake_uct {

class endpoint : public uct_ep {
  public:
    // Takes `real` over: it is destroyed with this one.
    explicit endpoint(uct_ep_h real);
    endpoint(const endpoint &) = delete;
    endpoint &operator=(const endpoint &) = delete;

    // The next `n` sends pass, then all return NO_RESOURCE until release().
    void refuse_after(unsigned n) { budget_ = static_cast<long>(n); }
    // The lane has room again: runs what waits, as progress would.
    void release();

    // The next sends fail with this.
    void fail_with(ucs_status_t status) { failure_ = status; }

    // Zero-copy sends and gets deliver their data at once, but their completions wait for
    // complete().
    void hold_completions(bool on) { hold_ = on; }
    size_t held() const { return held_.size(); }
    void complete(size_t index, ucs_status_t status = UCS_OK);

    unsigned sends() const { return sends_; }
    unsigned gets() const { return gets_; }
    // Sends that went through, by their kind.
    unsigned shorts() const { return shorts_; }
    unsigned copies() const { return copies_; }
    unsigned zcopies() const { return zcopies_; }
    void fail_gets_with(ucs_status_t status) { get_failure_ = status; }

  private:
    uct_iface iface_;
    uct_ep_h real_;
    long budget_ = -1; // -1: no limit
    ucs_status_t failure_ = UCS_OK;
    ucs_status_t get_failure_ = UCS_OK;
    bool hold_ = false;
    unsigned sends_ = 0;
    unsigned gets_ = 0;
    unsigned shorts_ = 0, copies_ = 0, zcopies_ = 0;
    std::deque<uct_pending_req_t *> pending_;
    std::vector<uct_completion_t *> held_;

    static endpoint *of(uct_ep_h ep) { return static_cast<endpoint *>(ep); }
    // UCS_OK: the send may go on.
    ucs_status_t admit();
    void run(uct_pending_req_t *req);
    ucs_status_t zcopy_result(ucs_status_t status, uct_completion_t *comp);

    static ucs_status_t am_short(uct_ep_h, uint8_t, uint64_t, const void *, unsigned);
    static ssize_t am_bcopy(uct_ep_h, uint8_t, uct_pack_callback_t, void *, unsigned);
    static ucs_status_t am_zcopy(uct_ep_h, uint8_t, const void *, unsigned, const uct_iov_t *,
                                 size_t, unsigned, uct_completion_t *);
    static ucs_status_t get_zcopy(uct_ep_h, const uct_iov_t *, size_t, uint64_t, uct_rkey_t,
                                  uct_completion_t *);
    static ucs_status_t put_zcopy(uct_ep_h, const uct_iov_t *, size_t, uint64_t, uct_rkey_t,
                                  uct_completion_t *);
    static ucs_status_t put_short(uct_ep_h, const void *, unsigned, uint64_t, uct_rkey_t);
    static ucs_status_t pending_add(uct_ep_h, uct_pending_req_t *, unsigned);
    static void pending_purge(uct_ep_h, uct_pending_purge_callback_t, void *);
    static ucs_status_t flush(uct_ep_h, unsigned, uct_completion_t *);
    static ucs_status_t fence(uct_ep_h, unsigned);
    static ucs_status_t check(uct_ep_h, unsigned, uct_completion_t *);
    static void destroy(uct_ep_h);
};

} // namespace fake_uct
