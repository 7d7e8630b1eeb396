// SPDX-License-Identifier: BSD-3-Clause
// The two sockaddr modes of uct_iface_open(): an interface that listens on an address and hands out
// connection requests, and one whose endpoints connect to an address. Both stand on the connection
// manager of the domain's component. They carry connections and private data, no messages.
//
// Threads. Callbacks that were permitted to be asynchronous come from the connection manager's
// thread; the others, and all completions, wait for the worker's progress.
#pragma once

#include "uct/base/cm.h"
#include "uct/base/iface.h"

#include <deque>
#include <functional>
#include <memory>
#include <mutex>

namespace uct::sockaddr_mode {

// Calls that wait for the worker's progress, in the order in which they were put here.
class calls {
  public:
    explicit calls(worker &owner) : owner_(owner) {}
    calls(const calls &) = delete;
    calls &operator=(const calls &) = delete;
    ~calls() { drop(); }

    void put(std::function<void()> call); // from any thread
    void drop();                          // those that wait do not run

  private:
    static void run_next(void *arg);

    worker &owner_;
    std::mutex mutex_;
    std::deque<std::function<void()>> waiting_;
};

// What both modes share.
class iface : public uct::iface {
  public:
    ucs_status_t query(uct_iface_attr_t *attr);
    ucs_status_t get_device_address(uct_device_addr_t *) { return UCS_OK; } // of length 0
    ucs_status_t get_address(uct_iface_addr_t *) { return UCS_OK; }
    int is_reachable(const uct_device_addr_t *, const uct_iface_addr_t *) { return 0; }
    ucs_status_t flush(unsigned, uct_completion_t *) { return UCS_OK; } // there is no data
    ucs_status_t fence(unsigned) { return UCS_OK; }
    unsigned progress() { return 0; }
    void progress_enable(unsigned) {} // the connection manager has a thread of its own
    void progress_disable(unsigned) {}
    void close() { delete this; }

    uct_cm &cm() { return *cm_; }
    calls &later() { return later_; }
    bool errors_anywhere() const { return errors_anywhere_; }

  protected:
    iface(const uct_iface_ops_t &table, uct_worker &worker, uct_md &md,
          const uct_iface_params_t &params);
    virtual ~iface() = default;

    std::unique_ptr<uct_cm> cm_;
    calls later_;
    sockaddr_storage listening_{};

  private:
    bool errors_anywhere_; // the error handler may run on another thread
};

// params: of a sockaddr mode. Throws ucs::error.
uct_iface *open(uct_md &md, uct_worker &worker, const uct_iface_params_t &params);

bool is_sockaddr_iface(const uct_iface *iface);

} // namespace uct::sockaddr_mode
