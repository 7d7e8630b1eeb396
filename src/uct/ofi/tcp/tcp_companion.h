// SPDX-License-Identifier: BSD-3-Clause
// What an interface over tcp has besides its connections: what progresses it while the program
// computes (background_progress.h), the state of its sockets (tcp_state.h), their pacing
// (pacing.h), and whether anything came (quiet_queue.h).
#pragma once

#include "uct/ofi/msg/companion.h"
#include "uct/ofi/msg/msg_iface.h"
#include "uct/ofi/tcp/background_progress.h"
#include "uct/ofi/tcp/quiet_queue.h"

#include <memory>

namespace uct::ofi {

class tcp_companion final : public companion {
  public:
    tcp_companion(msg_iface &home, const uct_iface_config &config);

    void connected(connection &c) override;
    bool is_quiet(size_t connections) override { return queue_.is_quiet(connections); }
    void was_read(unsigned completions) override { queue_.was_read(completions); }
    void was_moved() override { queue_.disturb(); }
    std::vector<connection *> check(const std::vector<connection *> &all) override;
    std::unique_ptr<gathering> gather(ep &e, size_t room) override;
    void deliver_gathered(char *data, size_t length) override;
    void exposed() override;
    void stop() override { background_.reset(); }
    // A batch was begun: if nothing else comes, it is to leave soon.
    void begun(gathering &g);
    msg_iface &home() const { return home_; }

  private:
    UCS_NOINLINE bool progress_in_background(int cq_fd);

    msg_iface &home_;
    bool attend_; // asked for, and possible so far
    bool unpace_; // connections within the host
    quiet_queue queue_;
    std::unique_ptr<background_progress> background_;
};

uct_iface *open_tcp_iface(uct_worker &worker, ofi::md &domain, const uct_iface_params_t &params,
                          const uct_iface_config &config);

} // namespace uct::ofi
