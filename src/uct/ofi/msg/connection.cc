// SPDX-License-Identifier: BSD-3-Clause
// How connections come up, cross, break and end: everything that the event queue says.
#include "uct/ofi/msg/connection.h"

#include "ucs/sockaddr.h"
#include "uct/ofi/core/eq.h"
#include "uct/ofi/fabric/error.h"
#include "uct/ofi/msg/msg_iface.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace uct::ofi {

namespace {

constexpr uint64_t retry_ns = 1'000'000'000; // the peer may have died while it was waited for
constexpr uint64_t silence_look_ns = 1'000'000'000;
constexpr unsigned looks_per_clock = 64;

// Room for what comes with an event.
union event {
    fi_eq_cm_entry entry;
    char room[sizeof(fi_eq_cm_entry) + 512];
};

uint64_t after(uint64_t interval_ns)
{
    return interval_ns == UINT64_MAX ? UINT64_MAX : ucs::monotonic_ns() + interval_ns;
}

} // namespace

hello msg_iface::about(uint64_t target, refusal why) const
{
    return {.magic = hello_protocol.magic,
            .version = hello_protocol.version,
            .reason = static_cast<uint8_t>(why),
            .transport = transport_hash(domain.provider.transport),
            .id = id_,
            .target = target,
            .attempt = attempts_};
}

void msg_iface::open_endpoint(connection &c, fi_info *info)
{
    info->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
    if (tx_queue_len) {
        info->tx_attr->size = std::min<size_t>(info->tx_attr->size, tx_queue_len);
    }
    fid_ep *raw = nullptr;
    check(fi_endpoint(domain.domain.get(), info, &raw, &c), "fi_endpoint");
    fid_ptr<fid_ep> endpoint(raw);
    check(fi_ep_bind(raw, &eq_->fid, 0), "fi_ep_bind to the event queue");
    if (tx_cq_) {
        check(fi_ep_bind(raw, &cq_->fid, FI_RECV), "fi_ep_bind to the receive queue");
        check(fi_ep_bind(raw, &tx_cq_->fid, FI_TRANSMIT), "fi_ep_bind to the send queue");
    } else {
        check(fi_ep_bind(raw, &cq_->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind to the queue");
    }
    check(fi_ep_bind(raw, &srx_->fid, 0), "fi_ep_bind to the shared receives");
    check(fi_enable(raw), "fi_enable");
    c.endpoint = {endpoints_, &c, std::move(endpoint)};
}

void msg_iface::begin(connection &c, sockaddr_storage to)
{
    auto *address = reinterpret_cast<const sockaddr *>(&to);
    info_ptr info = dup_info(domain.info.get());
    free(info->dest_addr);
    info->dest_addrlen = ucs::sockaddr_length(address);
    info->dest_addr = malloc(info->dest_addrlen);
    if (!info->dest_addr) {
        throw std::bad_alloc();
    }
    memcpy(info->dest_addr, address, info->dest_addrlen);
    c.ours = true;
    c.now = connection::state::connecting;
    c.crossed_attempt = 0;
    c.remote = to;
    ++attempts_;
    open_endpoint(c, info.get());
    hello greeting = about(c.id, refusal::none);
    check(fi_connect(c.endpoint.get(), address, &greeting, sizeof(greeting)), "fi_connect");
}

// Begins it anew; the endpoints that wait for it do not notice.
void msg_iface::connect_again(connection &c)
{
    c.endpoint.reset();
    if (ucs::guard([&] { begin(c, c.remote); }) != UCS_OK) {
        c.endpoint.reset();
        set_deadline(c, 0); // ends at the next look
    }
}

unsigned msg_iface::poll_eq()
{
    rounds_ = 0;
    unsigned count = 0;
    for (;; ++count) {
        event e;
        uint32_t kind = 0;
        ssize_t n = fi_eq_read(eq_.get(), &kind, &e, sizeof(e), 0);
        if (n == -FI_EAVAIL) {
            on_eq_error();
            continue;
        }
        if (n < 0) {
            break;
        }
        hello from;
        const ucs::spoken said =
            hear(e.entry.data, static_cast<size_t>(n) - sizeof(e.entry), &from);
        const bool understood = said == ucs::spoken::ours;
        const bool other = said == ucs::spoken::other_version;
        if (kind == FI_CONNREQ && other) {
            info_ptr info(e.entry.info);
            refuse(info.get(), refusal::other_version);
        } else if (kind == FI_CONNREQ) {
            info_ptr info(e.entry.info);
            if (ucs::guard([&] { on_request(info.get(), understood ? &from : nullptr); }) !=
                UCS_OK) {
                refuse(info.get(), refusal::none); // the core keeps it until it is answered
            }
        } else if (kind == FI_CONNECTED && other) {
            end(endpoints_.find(e.entry.fid), UCS_ERR_UNSUPPORTED);
        } else if (kind == FI_CONNECTED) {
            on_connected(endpoints_.find(e.entry.fid), understood ? &from : nullptr);
        } else if (kind == FI_SHUTDOWN) {
            end(endpoints_.find(e.entry.fid), UCS_ERR_CONNECTION_RESET);
        }
    }
    if (UCS_UNLIKELY(!pending_.empty())) {
        expire();
    }
    if (UCS_UNLIKELY(++looks_ >= looks_per_clock)) {
        end_silent();
    }
    return count;
}

// Reads a hello; logs it if it is of another version.
ucs::spoken msg_iface::hear(const void *bytes, size_t length, hello *said) const
{
    ucs::spoken what = ucs::read(hello_protocol, bytes, length, said);
    if (what == ucs::spoken::other_version) {
        (void)ucs::guard([&] {
            std::string peer = domain.provider.transport + "/" + domain.dev.name + ": a peer";
            (void)ucs::is_other_version(hello_protocol, bytes, length, peer.c_str());
        });
    }
    return what;
}

void msg_iface::on_request(fi_info *raw, const hello *from)
{
    if (!from) {
        refuse(raw, refusal::malformed);
        return;
    }
    if (from->target != id_) {
        refuse(raw, refusal::not_me); // the port was another interface's before
        return;
    }
    if (from->id == id_) {
        accept(raw, *loops_.emplace_back(std::make_unique<connection>(id_)), *from);
        return;
    }
    connection *existing = find(from->id);
    if (existing && keeps(*existing, *from)) {
        refuse(raw, refusal::crossed);
        return;
    }
    if (existing && existing->now != connection::state::connected) {
        // Theirs replaces what has not come up; nothing was sent on it yet.
        existing->endpoint.reset();
        existing->ours = false;
        accept(raw, *existing, *from);
        return;
    }
    if (existing) {
        end(existing, UCS_ERR_CONNECTION_RESET); // the peer has lost it already
    }
    auto fresh = std::make_unique<connection>(from->id);
    accept(raw, *(connections_[from->id] = std::move(fresh)), *from);
}

// Whether a connection that exists stays when the peer's request comes.
bool msg_iface::keeps(connection &existing, const hello &from)
{
    switch (existing.now) {
    case connection::state::waiting:
        return false;
    case connection::state::connecting:
        if (id_ > from.id) {
            return false;
        }
        existing.crossed_attempt = from.attempt;
        return true;
    default:
        return from.attempt <= existing.peer_attempt;
    }
}

void msg_iface::accept(fi_info *info, connection &c, const hello &from)
{
    c.now = connection::state::accepting;
    c.peer_attempt = from.attempt;
    waiting_.remove(&c);
    set_deadline(c, after(timeout_ns_));
    ucs_status_t status = ucs::guard([&] {
        // The request's own info carries the handle, ours what we use of the core.
        info->caps = domain.info->caps;
        info->tx_attr->caps = domain.info->tx_attr->caps;
        info->rx_attr->caps = domain.info->rx_attr->caps;
        open_endpoint(c, info);
        hello answer = about(c.id, refusal::none);
        check(fi_accept(c.endpoint.get(), &answer, sizeof(answer)), "fi_accept");
    });
    if (status != UCS_OK) {
        c.endpoint.reset();
        refuse(info, refusal::none); // the core keeps the request until it is answered
        set_deadline(c, 0);          // ends at the next look
    }
}

void msg_iface::refuse(fi_info *info, refusal why)
{
    hello answer = about(0, why);
    int ret = fi_reject(pep_.get(), info->handle, &answer, sizeof(answer));
    if (ret != 0) {
        ucs_debug("fi_reject: %s", fi_strerror(-ret));
    }
}

void msg_iface::on_connected(connection *c, const hello *answer)
{
    if (!c || c->now == connection::state::connected) {
        return;
    }
    if (c->ours) {
        c->peer_attempt = answer ? answer->attempt : 0;
        if (c->crossed_attempt > c->peer_attempt) {
            // The peer accepted this, lost it and began another one, which was refused.
            connect_again(*c);
            return;
        }
    }
    c->now = connection::state::connected;
    pending_.remove(c);
    if (companion_) {
        companion_->connected(*c);
    }
    for (ep *e : c->eps) {
        e->target = c->endpoint.get();
        e->set_connected();
    }
}

void msg_iface::on_eq_error()
{
    union {
        fi_eq_err_entry entry;
        char room[256];
    } error{};
    uint8_t data[sizeof(hello)];
    error.entry.err_data = data;
    error.entry.err_data_size = sizeof(data);
    if (fi_eq_readerr(eq_.get(), &error.entry, 0) < 0) {
        return;
    }
    connection *c = endpoints_.find(error.entry.fid);
    if (!c) {
        return;
    }
    ucs_debug("%s/%s: connection to %lx: %s", domain.provider.transport.c_str(),
              domain.dev.name.c_str(), c->id, fi_strerror(std::abs(error.entry.err)));
    hello answer;
    const ucs::spoken said = hear(data, std::min(error.entry.err_data_size, sizeof(data)), &answer);
    if (said == ucs::spoken::other_version) {
        end(c, UCS_ERR_UNSUPPORTED);
        return;
    }
    on_refused(c, status_of(error.entry.err),
               said == ucs::spoken::ours ? static_cast<refusal>(answer.reason) : refusal::none);
}

void msg_iface::on_refused(connection *c, ucs_status_t status, refusal why)
{
    if (c->now == connection::state::connecting && why == refusal::crossed) {
        c->endpoint.reset();
        c->now = connection::state::waiting;
        c->retry_at = after(retry_ns);
        waiting_.add(c);
        return;
    }
    if (c->now == connection::state::connecting && why == refusal::none && c->crossed_attempt) {
        connect_again(*c); // the peer waits for it
        return;
    }
    if (why == refusal::other_version) {
        status = UCS_ERR_UNSUPPORTED; // the peer has logged it
    }
    if (c->now != connection::state::connected && status == UCS_ERR_NOT_CONNECTED) {
        status = UCS_ERR_UNREACHABLE; // no process listens there, or another program's
    }
    end(c, status);
}

// The order matters: what arrived is delivered, the core endpoint is closed, which flushes what it
// had, and only then the endpoints hear of it.
void msg_iface::end(connection *c, ucs_status_t status)
{
    if (!c) {
        return;
    }
    pending_.remove(c);
    waiting_.remove(c);
    std::unique_ptr<connection> owned;
    auto found = connections_.find(c->id);
    if (found != connections_.end() && found->second.get() == c) {
        owned = std::move(found->second);
        connections_.erase(found);
    } else {
        auto same = [&](const auto &other) { return other.get() == c; };
        auto at = std::find_if(loops_.begin(), loops_.end(), same);
        owned = std::move(*at);
        loops_.erase(at);
    }
    for (ep *e : c->eps) {
        e->conn = nullptr;
    }
    drain_cq();
    for (ep *e : c->eps) {
        e->target = nullptr;
        e->suspend();
    }
    c->endpoint.reset();
    drain_cq();
    while (ep *victim = c->eps.pop_front()) {
        fail(victim, status);
    }
}

unsigned msg_iface::fail_broken()
{
    unsigned count = 0;
    while (connection *c = broken_.pop_front()) {
        end(c, c->broken);
        ++count;
    }
    return count;
}

void msg_iface::set_deadline(connection &c, uint64_t when)
{
    pending_.remove(&c);
    c.deadline = when;
    pending_.add(&c);
}

// A stranger at the port holds a descriptor until it has asked for something.
void msg_iface::end_silent()
{
    looks_ = 0;
    uint64_t now = silence_ns_ == UINT64_MAX ? 0 : ucs::monotonic_ns();
    if (now >= next_look_ && now != 0) {
        next_look_ = now + std::min(silence_ns_ / 2, silence_look_ns);
        handshakes_.end_silent(eq_.get(), silence_ns_);
    }
}

void msg_iface::expire()
{
    uint64_t now = ucs::monotonic_ns();
    while (connection *c = pending_.due(now)) {
        end(c, c->deadline ? UCS_ERR_ENDPOINT_TIMEOUT : UCS_ERR_IO_ERROR);
    }
    while (connection *c = waiting_.due(now)) {
        waiting_.remove(c);
        connect_again(*c);
    }
}

} // namespace uct::ofi
