// SPDX-License-Identifier: BSD-3-Clause
// What peers have to do in time: the deadlines of connections, and of those that ask for nothing.
#include "uct/ofi/cm/conn.h"
#include "uct/ofi/cm/engine.h"

#include "ucs/sys.h"
#include "uct/ofi/core/eq.h"

#include <algorithm>

namespace uct::ofi {

namespace {

constexpr uint64_t tick_ns = 250'000'000;
constexpr uint64_t least_silence_tick_ns = 10'000'000;
constexpr uint64_t linger_ns = 3'000'000'000; // for the peer to take the last message

} // namespace

void cm_engine::expect_message(cm_conn *conn)
{
    end_deadline(conn);
    conn->deadline = ucs::monotonic_ns() + peer_ns();
    lists_->expecting.add(conn);
    arm_deadlines();
}

void cm_engine::let_linger(cm_conn *conn)
{
    end_deadline(conn);
    conn->deadline = ucs::monotonic_ns() + linger_ns;
    lists_->lingering.add(conn);
    arm_deadlines();
}

void cm_engine::end_deadline(cm_conn *conn)
{
    lists::deadlines::remove(conn);
}

void cm_engine::arm_deadlines()
{
    if (!tick_) {
        tick_ = ucs::async_watch::timer(tick_ns, on_tick, this);
    }
}

void cm_engine::watch_for_silence()
{
    if (!silence_tick_ && core_.forgets_handshakes() && peer_ns() != UINT64_MAX) {
        silence_tick_ = ucs::async_watch::timer(std::max(peer_ns() / 2, least_silence_tick_ns),
                                                on_silence_tick, this);
    }
}

void cm_engine::on_tick(void *arg, uint32_t)
{
    auto engine = static_cast<cm_engine *>(arg)->weak_from_this().lock();
    if (!engine) {
        return;
    }
    lock held(engine->mutex_);
    lists &all = *engine->lists_;
    uint64_t now = ucs::monotonic_ns();
    for (auto *line : {&all.expecting, &all.lingering}) {
        while (cm_conn *conn = line->due(now)) {
            conn->on_deadline(); // ends the deadline
        }
    }
    engine->clean();
    if (all.expecting.empty() && all.lingering.empty()) {
        engine->tick_.reset();
    }
}

void cm_engine::on_silence_tick(void *arg, uint32_t)
{
    auto engine = static_cast<cm_engine *>(arg)->weak_from_this().lock();
    if (!engine) {
        return;
    }
    lock held(engine->mutex_);
    if (engine->listeners_.size() == engine->kept_.size()) {
        engine->silence_tick_.reset();
        return;
    }
    engine->handshakes_.end_silent(engine->eq(), engine->peer_ns());
}

} // namespace uct::ofi
