// SPDX-License-Identifier: BSD-3-Clause
// Opening and closing of a listener; the requests' life is in server.cc.
#include "uct/ofi/cm/listener.h"

#include "ucs/error.h"
#include "ucs/sockaddr.h"
#include "uct/ofi/core/eq.h"
#include "uct/ofi/fabric/error.h"
#include "uct/ofi/fabric/route.h"

#include <cerrno>
#include <cstring>
#include <sys/socket.h>
#include <unistd.h>

namespace uct::ofi {

namespace {

// The core binds to addresses that have connections. A bind without SO_REUSEADDR shows whether this
// one has any.
void check_unused(const sockaddr *address)
{
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool used = fd >= 0 &&
                bind(fd, address, static_cast<socklen_t>(ucs::sockaddr_length(address))) != 0 &&
                errno == EADDRINUSE;
    if (fd >= 0) {
        close(fd);
    }
    if (used) {
        throw ucs::error(UCS_ERR_BUSY, "uct_listener_create: %s is in use",
                         ucs::sockaddr_string(address).c_str());
    }
}

} // namespace

cm_listener::cm_listener(uct_cm &owner, std::shared_ptr<cm_engine> engine, const sockaddr *address,
                         const uct_listener_params_t &params, bool reuse)
    : engine_(std::move(engine)), callback_(params.conn_request_cb),
      user_data_(params.field_mask & UCT_LISTENER_PARAM_FIELD_USER_DATA ? params.user_data
                                                                        : nullptr)
{
    cm = &owner;
    const core &c = engine_->provider();
    if (!ucs::sockaddr_is_any(address)) {
        device_ = device_with_address(c, address);
        if (device_.empty()) {
            throw ucs::error(UCS_ERR_NO_DEVICE, "uct_listener_create: saddr %s is no address of %s",
                             ucs::sockaddr_string(address).c_str(), c.transport.c_str());
        }
    }
    if (!reuse) {
        check_unused(address);
    }
    cm_engine::lock held(engine_->mutex());
    info_ = engine_->make_info(device_, address->sa_family);
    set_address(&info_->src_addr, &info_->src_addrlen, address);
    if (c.forgets_handshakes()) {
        engine_->device_of(info_.get()); // closing needs it, also when no descriptors are left
    }
    fid_pep *pep = nullptr;
    check(fi_passive_ep(engine_->fabric(), info_.get(), &pep, this), "fi_passive_ep");
    pep_.reset(pep);
    bool limited = params.field_mask & UCT_LISTENER_PARAM_FIELD_BACKLOG;
    int backlog = limited ? params.backlog : 0;
    bool told = limited && fi_control(&pep->fid, FI_BACKLOG, &backlog) == 0;
    check(fi_pep_bind(pep, &engine_->eq()->fid, 0), "fi_pep_bind");
    check(fi_listen(pep), "fi_listen");
    size_t length = sizeof(address_);
    check(fi_getname(&pep->fid, &address_, &length), "fi_getname");
    if (limited && !told) {
        set_backlog(backlog);
    }
    engine_->watch_for_silence();
    engine_->add(pep, this);
}

// tcp has a fixed one. To listen again with another length of the queue is allowed.
void cm_listener::set_backlog(int backlog)
{
    int fd = listening_socket(engine_->eq(), reinterpret_cast<sockaddr *>(&address_));
    if (fd < 0 || ::listen(fd, backlog) != 0) {
        ucs_debug("%s: the backlog stays what the core has", engine_->provider().transport.c_str());
    }
}

cm_listener::~cm_listener()
{
    cm_engine::lock held(engine_->mutex());
    closing_ = true;
    engine_->wait_for_callback(held, this);
    engine_->drain_events();
    while (cm_conn *request = requests_.front()) {
        if (request->offered()) {
            request->forget_listener(engine_->provider().forgets_handshakes());
            requests_.erase(request);
        } else {
            request->reject();
        }
    }
    stop_listening();
    engine_->clean();
}

// Where a begun handshake points to its passive endpoint, only the socket of that goes, through an
// endpoint that takes it over, and the rest (1 KiB) lives as long as the event queue.
void cm_listener::stop_listening()
{
    if (!engine_->provider().forgets_handshakes()) {
        close_now();
        return;
    }
    info_->handle = &pep_->fid;
    fid_ep *endpoint = nullptr;
    int ret =
        fi_endpoint(engine_->device_of(info_.get()).domain(), info_.get(), &endpoint, nullptr);
    info_->handle = nullptr;
    if (ret != 0) {
        ucs_warn("fi_endpoint of a passive endpoint: %s", fi_strerror(-ret));
        close_now();
        return;
    }
    // Closing takes the socket out of the queue it is bound to.
    fi_ep_bind(endpoint, &engine_->eq()->fid, 0);
    fi_close(&endpoint->fid);
    engine_->keep(std::move(pep_));
}

void cm_listener::close_now()
{
    engine_->remove(pep_.get());
    pep_.reset();
}

void cm_listener::query(uct_listener_attr_t *attr) const
{
    if (attr->field_mask & UCT_LISTENER_ATTR_FIELD_SOCKADDR) {
        attr->sockaddr = address_;
    }
}

ucs_status_t cm_listener::reject(uct_conn_request_h handle)
{
    auto *request = static_cast<cm_conn *>(handle);
    std::shared_ptr<cm_engine> engine = request->engine().shared_from_this();
    cm_engine::lock held(engine->mutex());
    ucs_status_t status = request->reject();
    engine->clean();
    return status;
}

} // namespace uct::ofi
