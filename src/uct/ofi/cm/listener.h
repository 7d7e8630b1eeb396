// SPDX-License-Identifier: BSD-3-Clause
// A listener: a passive endpoint of the core provider and the requests that came in through it.
#pragma once

#include "ucs/list.h"
#include "uct/base/cm.h"
#include "uct/ofi/cm/conn.h"

namespace uct::ofi {

class cm_listener final : public uct::cm_listener {
  public:
    // reuse: also where connections of an earlier listener are left.
    cm_listener(uct_cm &owner, std::shared_ptr<cm_engine> engine, const sockaddr *address,
                const uct_listener_params_t &params, bool reuse);
    ~cm_listener() override;

    void query(uct_listener_attr_t *attr) const override;
    ucs_status_t reject(uct_conn_request_h request) override;

    bool closing() const { return closing_; }
    // Where it listens; empty: on every device.
    const std::string &device() const { return device_; }
    void run_callback(const uct_cm_listener_conn_request_args_t &args)
    {
        callback_(this, user_data_, &args);
    }
    void add(cm_conn *request) { requests_.push_back(request); }
    void remove(cm_conn *request) { requests_.erase(request); }

  private:
    void set_backlog(int backlog);
    void stop_listening();
    void close_now();

    std::shared_ptr<cm_engine> engine_;
    uct_cm_listener_conn_request_callback_t callback_;
    void *user_data_;
    std::string device_;
    info_ptr info_;
    fid_ptr<fid_pep> pep_;
    sockaddr_storage address_{};
    bool closing_ = false;
    ucs::list<cm_conn, &cm_conn::listener_link> requests_; // not answered
};

} // namespace uct::ofi
