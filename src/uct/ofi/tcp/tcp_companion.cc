// SPDX-License-Identifier: BSD-3-Clause
// See tcp_companion.h.
#include "uct/ofi/tcp/tcp_companion.h"

#include "ucs/error.h"
#include "ucs/sockaddr.h"
#include "uct/ofi/tcp/batch.h"
#include "uct/ofi/tcp/pacing.h"
#include "uct/ofi/tcp/tcp_state.h"

#include <algorithm>

namespace uct::ofi {

namespace {

// Retransmissions after which a TCP peer counts as gone: with the kernel's doubling intervals, some
// three seconds.
constexpr unsigned dead_after = 4;

} // namespace

tcp_companion::tcp_companion(msg_iface &home, const uct_iface_config &config)
    : home_(home), attend_(config.v.attend), unpace_(!config.v.local_pacing && system_paces())
{
    home_.limit.batched = attend_ ? std::min(config.v.batch, home_.limit.segment / 4) : 0;
    if (FI_VERSION_LT(fi_version(), FI_VERSION(1, 18))) {
        queue_.watch(home_.reads_fd());
    }
}

void tcp_companion::connected(connection &c)
{
    if (unpace_) {
        stop_local_pacing(c.endpoint.get());
    }
}

// A peer that has closed is not asked as long as something comes of it: its system has no process
// any more that would read the question, and answers with the end of the connection, dropping what
// it was still to deliver.
std::vector<connection *> tcp_companion::check(const std::vector<connection *> &all)
{
    tcp_inquiry inquiry;
    std::vector<connection *> found;
    for (connection *c : all) {
        tcp_ends ends;
        bool known = ends_of(c->endpoint.get(), &ends);
        tcp_look look = known ? inquiry.look(ends, &c->socket) : tcp_look{};
        if (!look.heard && !c->eps.empty()) {
            c->eps.front()->ping();
        }
        if (look.unanswered >= dead_after) {
            ucs_debug("tcp/%s: nothing acknowledges what goes to %s", home_.domain.dev.name.c_str(),
                      ucs::sockaddr_string(ends.there()).c_str());
            found.push_back(c);
        }
    }
    return found;
}

// For the first batch, or the first memory that a peer may read: then its queue is watched, too.
// False: it cannot be, and reads wait for the program, which gathers nothing.
bool tcp_companion::progress_in_background(int cq_fd)
{
    ucs_status_t status = ucs::guard([&] {
        if (!background_) {
            background_ = std::make_unique<background_progress>(home_, *this);
        }
        if (cq_fd >= 0) {
            background_->watch(cq_fd);
        }
    });
    if (status != UCS_OK) {
        background_.reset();
        attend_ = false;
        home_.limit.batched = 0;
    }
    return status == UCS_OK;
}

// A peer without room for a record of the largest message that joins gets none.
std::unique_ptr<gathering> tcp_companion::gather(ep &e, size_t room)
{
    size_t most = home_.limit.batched;
    return most > 0 && batch_step(most) <= room ? std::make_unique<batch>(e, *this, room) : nullptr;
}

void tcp_companion::deliver_gathered(char *data, size_t length)
{
    deliver_batch(home_, data, length);
}

void tcp_companion::begun(gathering &g)
{
    begun_.push_back(&g);
    home_.owner.hasten(static_cast<uct::iface *>(&home_));
    if (UCS_LIKELY(background_) || (attend_ && progress_in_background(-1))) {
        background_->batch_begun();
    }
}

void tcp_companion::exposed()
{
    int fd = attend_ ? home_.reads_fd() : -1;
    if (fd >= 0) {
        progress_in_background(fd);
    }
}

uct_iface *open_tcp_iface(uct_worker &worker, ofi::md &domain, const uct_iface_params_t &params,
                          const uct_iface_config &config)
{
    auto *iface = new msg_iface(worker, domain, params, config);
    try {
        iface->join(std::make_unique<tcp_companion>(*iface, config));
    } catch (...) {
        iface->close();
        throw;
    }
    return iface;
}

} // namespace uct::ofi
