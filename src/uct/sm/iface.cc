// SPDX-License-Identifier: BSD-3-Clause
// Receiving, sleeping, and the lives of peers.
#include "uct/sm/iface.h"

#include "ucs/copy.h"
#include "ucs/sys.h"
#include "uct/base/ops.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <utility>

namespace uct::sm {

namespace {

constexpr size_t least_segment = 512;
constexpr unsigned round_length = 64; // messages in one round of progress
constexpr unsigned usual_operations = 1024;
constexpr unsigned patient_rounds = 64; // without room, before others get the processor

// Of the watch over peers.
constexpr uint64_t look_interval = 400'000'000;
constexpr size_t looks_at_once = 128; // whole looks in one interval, so that many peers cost little
constexpr unsigned bury_interval = 64;

const uct_iface_ops_t &table()
{
    static const uct_iface_ops_t ops = make_ops<iface, ep>();
    return ops;
}

constexpr size_t payload_offset(size_t headroom, size_t align, size_t align_offset)
{
    size_t least = sizeof(descriptor) + sizeof(void *) + headroom;
    return (least + align_offset + align - 1) / align * align - align_offset;
}

size_t segment_of(const uct_iface_config &config)
{
    size_t asked = config.v.seg_size;
    return asked == ucs::config::memunits_auto || asked == 0
               ? segment_size
               : std::clamp(asked, least_segment, segment_size);
}

iface_address make_address(const inbox &own, const bell &b, const uint64_t &proof)
{
    return {.version = address_version,
            .kind = 'i',
            .reserved = 0,
            .pid = static_cast<uint32_t>(getpid()),
            .nonce = own.nonce(),
            .birth = static_cast<uint32_t>(ucs::process_birth(getpid())),
            .inbox_fd = static_cast<uint32_t>(own.fd()),
            .bell_fd = static_cast<uint32_t>(b.fd()),
            .reserved2 = 0,
            .bell_inode = b.inode(),
            .proof_address = reinterpret_cast<uint64_t>(&proof),
            .proof = proof};
}

} // namespace

iface::iface(uct_worker &worker, sm::md &owner_md, const uct_iface_params_t &params,
             const uct_iface_config &config)
    : uct::iface(table(), worker, owner_md, params), domain(owner_md),
      operations(*this, config.v.tx_queue_len ? config.v.tx_queue_len : usual_operations),
      segment_(segment_of(config)), max_num_eps_(config.v.max_num_eps),
      inbox_(std::make_shared<inbox>()), proof_(ucs::random_u64()),
      address_(make_address(*inbox_, bell_, proof_)),
      descriptors_(
          {.object_size =
               payload_offset(rx_headroom_, std::max<size_t>(16, am_alignment_), am_align_offset_) +
               segment_size,
           .align = std::max<size_t>(64, am_alignment_),
           .chunk = 32,
           .arg = this,
           .object_init = [](void *arg, void *object) {
               auto *home = static_cast<iface *>(arg);
               auto *d = static_cast<descriptor *>(object);
               d->release.cb = [](uct_recv_desc_t *self, void *) {
                   auto *kept = reinterpret_cast<descriptor *>(self);
                   kept->home->descriptors_.put(kept);
               };
               d->home = home;
               size_t align = std::max<size_t>(16, home->am_alignment_);
               d->payload = static_cast<char *>(object) +
                            payload_offset(home->rx_headroom_, align, home->am_align_offset_);
               uct_recv_desc_t *release = &d->release;
               memcpy(d->payload - home->rx_headroom_ - sizeof(void *), &release, sizeof(void *));
           }})
{
    poll_ = poll<sm::iface>;
    local_inboxes::add(inbox_);
    timer_ = ucs::async_watch::timer(
        look_interval, [](void *arg, uint32_t) { static_cast<iface *>(arg)->look(); }, this);
}

iface::~iface()
{
    timer_.reset();
    event_watch_.reset();
    local_inboxes::remove(inbox_->nonce());
    inbox_->close();
}

// ---- Receiving

unsigned iface::progress()
{
    unsigned count = spare_ && inbox_->is_quiet() ? 0 : receive(round_);
    // One message is not followed by a look for the next: that would fetch a cache line in vain
    // before what the message is waited for can go on.
    round_ = count < round_ ? 1 : std::min(2 * round_, round_length);
    if (UCS_UNLIKELY(armed_.load(std::memory_order_relaxed))) {
        count += stay_armed(count);
    }
    if (UCS_UNLIKELY(attention_.load(std::memory_order_relaxed))) {
        count += attend();
    }
    if (UCS_UNLIKELY(operations.waiting())) {
        count += operations.progress();
    }
    if (UCS_UNLIKELY(has_waiting())) {
        return count + send_waiting(count == 0);
    }
    return count + progress_pending();
}

// A peer's inbox that stays full may be one whose process waits for this processor.
unsigned iface::send_waiting(bool idle)
{
    unsigned count = progress_pending();
    if (!idle || count > 0 || !has_waiting()) {
        vain_rounds_ = 0;
    } else if (++vain_rounds_ == patient_rounds) {
        vain_rounds_ = 0;
        sched_yield();
    }
    return count;
}

// Handlers may send, and call for progress themselves.
unsigned iface::receive(unsigned most)
{
    unsigned count = 0;
    inbox::message m;
    while (count < most) {
        if (UCS_UNLIKELY(!spare_)) {
            spare_ = static_cast<descriptor *>(descriptors_.get());
        }
        if (!spare_ || !inbox_->next(&m)) {
            break;
        }
        descriptor *d = std::exchange(spare_, nullptr);
        uint8_t id = m.id;
        size_t length = m.length;
        if (UCS_LIKELY(length <= inline_size)) {
            ucs::copy_small(d->payload, m.data, length);
        } else {
            ucs::copy(d->payload, m.data, length);
        }
        inbox_->release(m);
        ++count;
        if (UCS_UNLIKELY(id >= UCT_AM_ID_MAX)) {
            operations.on_message(id, d->payload, length);
        } else if (deliver(id, d->payload, length, UCT_CB_PARAM_FLAG_DESC) == UCS_INPROGRESS) {
            continue;
        }
        if (UCS_LIKELY(!spare_)) {
            spare_ = d;
        } else {
            descriptors_.put(d);
        }
    }
    inbox_->publish_position(); // also past holes that were freed
    if (UCS_UNLIKELY(inbox_->has_holes())) {
        holes_.store(true, std::memory_order_relaxed);
    }
    return count;
}

// ---- Sleeping

// Looking for messages ends what arm() did. It holds until something has come.
unsigned iface::stay_armed(unsigned found)
{
    if (found > 0) {
        armed_.store(false, std::memory_order_relaxed);
        return 0;
    }
    if (inbox_->arm()) {
        return 0;
    }
    armed_.store(false, std::memory_order_relaxed);
    unsigned count = receive(round_length);
    if (count == 0) { // a message is on its way
        bell_.ring();
    }
    return count;
}

ucs_status_t iface::event_fd_get(int *fd_p)
{
    *fd_p = bell_.fd();
    return UCS_OK;
}

// What waits for room in a peer's inbox is not told of it: its sender polls.
ucs_status_t iface::event_arm(unsigned)
{
    armed_.store(false, std::memory_order_relaxed);
    if (has_waiting() || operations.waiting()) {
        return UCS_ERR_BUSY;
    }
    bell_.drain();
    armed_.store(true);
    bool quiet = inbox_->arm();
    holes_.store(inbox_->has_holes(), std::memory_order_relaxed);
    if (!quiet || attention_.load()) {
        armed_.store(false, std::memory_order_relaxed);
        return UCS_ERR_BUSY;
    }
    if (event_watch_) {
        event_watch_.set_events(EPOLLIN | EPOLLONESHOT);
    } else if (async_event_cb_) {
        return ucs::guard([&] {
            event_watch_ = ucs::async_watch::fd(
                bell_.fd(), EPOLLIN | EPOLLONESHOT,
                [](void *arg, uint32_t) {
                    auto *self = static_cast<iface *>(arg);
                    self->async_event_cb_(self->async_event_arg_,
                                          UCT_EVENT_RECV | UCT_EVENT_SEND_COMP);
                },
                this);
        });
    }
    return UCS_OK;
}

// ---- Peers

peer &iface::find_peer(const iface_address &to)
{
    auto found = peers_.find(to.nonce);
    if (found != peers_.end()) {
        if (found->second->failed) {
            throw ucs::error(UCS_ERR_UNREACHABLE, "process %u is gone", to.pid);
        }
        return *found->second;
    }
    auto made = std::make_unique<peer>(to, getpid(), address_.birth);
    std::lock_guard guard(peers_mutex_);
    return *peers_.emplace(to.nonce, std::move(made)).first->second;
}

peer &iface::attach(const uct_device_addr_t *device, const void *to)
{
    iface_address theirs;
    if (!to || !read_address(to, &theirs)) {
        unsigned version = to ? *static_cast<const uint8_t *>(to) : 0;
        throw ucs::error(UCS_ERR_INVALID_ADDR,
                         "uct_ep_create: params->iface_addr is no address of sm in version %u, but "
                         "has version %u",
                         address_version, version);
    }
    if (!same_device(device)) {
        throw ucs::error(UCS_ERR_UNREACHABLE, "uct_ep_create: params->dev_addr is of another host, "
                                              "user or namespace");
    }
    peer &p = find_peer(theirs);
    ++p.refs;
    return p;
}

peer *iface::answers_to(const iface_address &to) noexcept
{
    peer *p = nullptr;
    iface_address checked;
    ucs_status_t status = ucs::guard<ucs::log::level::debug>([&] {
        if (!read_address(&to, &checked)) {
            throw ucs::error(UCS_ERR_INVALID_ADDR, "a request has no address to answer to");
        }
        p = &find_peer(checked);
    });
    if (status == UCS_OK && !p->answered) {
        p->answered = true;
        ++p->refs;
    }
    return p;
}

void iface::release(peer &p)
{
    if (--p.refs == 0) {
        std::lock_guard guard(peers_mutex_);
        peers_.erase(p.about.nonce);
    }
}

void iface::suspect(peer &p)
{
    p.gone.store(true, std::memory_order_relaxed);
    attention_.store(true);
}

// A process that is gone has no number; whether it is the interface's is looked at for some of them
// each time.
void iface::look()
{
    std::lock_guard guard(peers_mutex_);
    uint64_t now = ucs::monotonic_ns();
    bool found = false;
    size_t whole = 0;
    auto next = peers_.upper_bound(looked_at_);
    for (size_t n = 0; n < peers_.size(); ++n, ++next) {
        if (next == peers_.end()) {
            next = peers_.begin();
        }
        peer &p = *next->second;
        if (p.gone || p.seen_lately(now)) {
            continue;
        }
        bool is_whole = whole < looks_at_once;
        if (is_whole) {
            ++whole;
            looked_at_ = next->first;
        }
        if (is_whole ? !p.look(now)
                     : kill(static_cast<pid_t>(p.about.pid), 0) != 0 && errno == ESRCH) {
            p.gone = found = true;
        }
    }
    bool bury_now = ++looks_ % bury_interval == 0;
    if (bury_now) {
        bury_all_.store(true, std::memory_order_relaxed);
    }
    if (found || bury_now || holes_.load(std::memory_order_relaxed)) {
        attention_.store(true);
    }
    bool late = holes_.load(std::memory_order_relaxed) && inbox_->hole_is_ready();
    if ((found || late) && armed_.exchange(false)) {
        bell_.ring();
    }
}

unsigned iface::attend()
{
    attention_.store(false);
    unsigned count = 0;
    bury(bury_all_.exchange(false, std::memory_order_relaxed));
    std::vector<peer *> gone;
    for (auto &[nonce, p] : peers_) {
        if (p->gone.load(std::memory_order_relaxed) && !p->failed) {
            p->failed = true;
            ++p->refs;
            gone.push_back(p.get());
        }
    }
    if (!gone.empty()) {
        count += receive(2 * slot_count); // what they sent comes first
    }
    for (peer *p : gone) {
        declare_gone(*p);
        release(*p);
        ++count;
    }
    return count;
}

void iface::declare_gone(peer &p)
{
    ucs_status_t cause = UCS_ERR_CONNECTION_RESET;
    while (ep *e = p.eps.pop_front()) {
        failing_ = e;
        e->fail(cause);
        if (std::exchange(failing_, nullptr) == e) {
            report_error(e, cause);
        }
    }
    operations.peer_gone(p, cause);
    if (std::exchange(p.answered, false)) {
        release(p);
    }
}

// Claims of processes that have died, and now and then the places of all such.
void iface::bury(bool all)
{
    if (all || inbox_->has_holes()) {
        inbox_->bury(all, [&](pid_t pid, uint32_t birth) {
            return static_cast<uint32_t>(ucs::process_birth(pid)) == birth;
        });
    }
    holes_.store(inbox_->has_holes(), std::memory_order_relaxed);
}

// ---- The rest of the control path

ucs_status_t iface::create_ep(const uct_ep_params_t &params, uct_ep_h *ep_p)
{
    return ucs::guard([&] {
        peer *to = nullptr;
        if (params.field_mask & UCT_EP_PARAM_FIELD_IFACE_ADDR) {
            if ((params.field_mask & UCT_EP_PARAM_FIELD_IFACE_ADDR_LENGTH &&
                 params.iface_addr_length < sizeof(iface_address)) ||
                (params.field_mask & UCT_EP_PARAM_FIELD_DEV_ADDR_LENGTH &&
                 params.dev_addr_length < sizeof(device_address))) {
                throw ucs::error(UCS_ERR_INVALID_ADDR, "uct_ep_create: the address is cut off");
            }
            to = &attach(params.dev_addr, params.iface_addr);
        }
        auto *created = new ep(*this);
        if (to) {
            created->attach(*to);
        }
        *ep_p = created;
    });
}

ucs_status_t iface::get_device_address(uct_device_addr_t *to)
{
    device_address own = own_device_address();
    memcpy(to, &own, sizeof(own));
    return UCS_OK;
}

ucs_status_t iface::get_address(uct_iface_addr_t *to)
{
    memcpy(to, &address_, sizeof(address_));
    return UCS_OK;
}

// Tries. A peer could not answer a process whose descriptors it may not see.
int iface::is_reachable(const uct_device_addr_t *device, const uct_iface_addr_t *to)
{
    iface_address theirs;
    if (!to || !same_device(device) || !read_address(to, &theirs)) {
        return 0;
    }
    if (peers_.contains(theirs.nonce) || local_inboxes::find(theirs.nonce)) {
        return 1;
    }
    if (prctl(PR_GET_DUMPABLE) != 1) {
        return 0;
    }
    ucs_status_t status = ucs::guard<ucs::log::level::debug>([&] {
        ::close(open_memory({theirs.pid, theirs.inbox_fd}, theirs.nonce, inbox::size()));
    });
    return status == UCS_OK;
}

ucs_status_t iface::flush(unsigned flags, uct_completion_t *completion)
{
    if (flags & UCT_FLUSH_FLAG_CANCEL) {
        return UCS_ERR_UNSUPPORTED; // each endpoint by itself
    }
    if (has_waiting()) {
        return completion ? UCS_ERR_NO_RESOURCE : UCS_INPROGRESS;
    }
    return operations.flush(completion);
}

ucs_status_t iface::fence(unsigned flags)
{
    for (auto &[nonce, p] : peers_) {
        for (ep *e : p->eps) {
            e->fence(flags);
        }
    }
    return UCS_OK;
}

} // namespace uct::sm
