// SPDX-License-Identifier: BSD-3-Clause
// A message is copied into a descriptor and waits in a queue until the interface is progressed;
// remote memory is memory. An endpoint reaches only the interface it was made on.
#include "uct/self/self.h"

#include "ucs/mpool.h"
#include "ucs/sys.h"
#include "ucs/topo.h"
#include "uct/base/atomic.h"
#include "uct/base/config.h"
#include "uct/base/iface.h"
#include "uct/base/locked_pages.h"
#include "uct/base/md.h"
#include "uct/base/ops.h"
#include "uct/base/transport.h"

#include <bit>
#include <cstring>
#include <memory>
#include <sys/eventfd.h>
#include <unistd.h>

namespace uct::self {

namespace {

constexpr size_t default_segment = 8192;
constexpr size_t least_segment = 512; // room for a header
constexpr size_t max_pieces = 16;
constexpr size_t max_header = 512;
constexpr unsigned queue_length = 256;

class iface;

// A message on its way; the payload follows, headroom in front of it.
struct message {
    uct_recv_desc_t release;
    iface *home;
    message *next;
    char *payload;
    size_t length;
    uint8_t id;
};

class ep;

class iface final : public uct::iface {
  public:
    iface(uct_worker &worker, uct_md &md, const uct_iface_params_t &params,
          const uct_iface_config &config);

    size_t segment() const { return segment_; }

    ucs_status_t create_ep(const uct_ep_params_t &params, uct_ep_h *ep_p);
    ucs_status_t query(uct_iface_attr_t *attr);
    ucs_status_t get_device_address(uct_device_addr_t *address);
    ucs_status_t get_address(uct_iface_addr_t *address);
    int is_reachable(const uct_device_addr_t *device, const uct_iface_addr_t *address);
    ucs_status_t flush(unsigned flags, uct_completion_t *completion);
    ucs_status_t fence(unsigned) { return UCS_OK; }
    ucs_status_t event_fd_get(int *fd);
    ucs_status_t event_arm(unsigned events);
    unsigned progress();
    void close() { delete this; }

    // nullptr: too many wait. What the user keeps does not count.
    message *get()
    {
        return UCS_LIKELY(queued_ < most_queued_) ? static_cast<message *>(messages_.get())
                                                  : nullptr;
    }
    void put(message *m) { messages_.put(m); }
    void send(message *m, uint8_t id, size_t length)
    {
        m->id = id;
        m->length = length;
        queue_.push(m);
        ++queued_;
        if (UCS_UNLIKELY(armed_)) {
            wake();
        }
    }

  private:
    ~iface();
    UCS_NOINLINE void wake();

    struct address {
        uint64_t id;
    };

    const uint64_t id_ = ucs::random_u64();
    const size_t segment_;
    const size_t max_num_eps_; // asked for; 0: none
    const unsigned most_queued_;
    ucs::mpool_base messages_;
    ucs::queue<message, &message::next> queue_;
    unsigned queued_ = 0;
    int event_fd_ = -1;
    bool armed_ = false; // whoever sends wakes a thread that sleeps on event_fd_
};

class ep final : public uct::ep {
  public:
    explicit ep(self::iface &home) : uct::ep(home) {}

    ucs_status_t am_short(uint8_t id, uint64_t header, const void *payload, unsigned length);
    ucs_status_t am_short_iov(uint8_t id, const uct_iov_t *iov, size_t count);
    ssize_t am_bcopy(uint8_t id, uct_pack_callback_t pack, void *arg, unsigned flags);
    ucs_status_t am_zcopy(uint8_t id, const void *header, unsigned header_length,
                          const uct_iov_t *iov, size_t count, unsigned flags,
                          uct_completion_t *completion);
    ucs_status_t put_short(const void *buffer, unsigned length, uint64_t remote, uct_rkey_t);
    ssize_t put_bcopy(uct_pack_callback_t pack, void *arg, uint64_t remote, uct_rkey_t);
    ucs_status_t put_zcopy(const uct_iov_t *iov, size_t count, uint64_t remote, uct_rkey_t,
                           uct_completion_t *);
    ucs_status_t get_short(void *buffer, unsigned length, uint64_t remote, uct_rkey_t);
    ucs_status_t get_bcopy(uct_unpack_callback_t unpack, void *arg, size_t length, uint64_t remote,
                           uct_rkey_t, uct_completion_t *);
    ucs_status_t get_zcopy(const uct_iov_t *iov, size_t count, uint64_t remote, uct_rkey_t,
                           uct_completion_t *);
    ucs_status_t atomic32_post(unsigned op, uint32_t value, uint64_t remote, uct_rkey_t);
    ucs_status_t atomic64_post(unsigned op, uint64_t value, uint64_t remote, uct_rkey_t);
    ucs_status_t atomic32_fetch(unsigned op, uint32_t value, uint32_t *result, uint64_t remote,
                                uct_rkey_t, uct_completion_t *);
    ucs_status_t atomic64_fetch(unsigned op, uint64_t value, uint64_t *result, uint64_t remote,
                                uct_rkey_t, uct_completion_t *);
    ucs_status_t atomic_cswap32(uint32_t compare, uint32_t swap, uint64_t remote, uct_rkey_t,
                                uint32_t *result, uct_completion_t *);
    ucs_status_t atomic_cswap64(uint64_t compare, uint64_t swap, uint64_t remote, uct_rkey_t,
                                uint64_t *result, uct_completion_t *);
    ucs_status_t flush(unsigned flags, uct_completion_t *);
    ucs_status_t fence(unsigned) { return status(); }
    ucs_status_t check(unsigned, uct_completion_t *) { return status(); }
    ucs_status_t get_address(uct_ep_addr_t *address);
    ucs_status_t connect_to_ep(const uct_device_addr_t *, const uct_ep_addr_t *address);
    void destroy() { delete this; }

  private:
    ~ep() = default;

    self::iface &home() { return static_cast<self::iface &>(owner_); }
};

const uct_iface_ops_t &table()
{
    static_assert(transport<iface, ep>);
    static const uct_iface_ops_t ops = make_ops<iface, ep>();
    return ops;
}

char *memory_at(uint64_t address)
{
    return reinterpret_cast<char *>(address);
}

size_t gather(char *to, const uct_iov_t *iov, size_t count)
{
    size_t length = 0;
    for (size_t i = 0; i < count; ++i) {
        for (unsigned n = 0; n < iov[i].count; ++n) {
            copy_bytes(to + length, static_cast<char *>(iov[i].buffer) + n * iov[i].stride,
                       iov[i].length);
            length += iov[i].length;
        }
    }
    return length;
}

constexpr size_t payload_offset(size_t headroom, size_t align, size_t align_offset)
{
    size_t least = sizeof(message) + sizeof(void *) + headroom;
    return (least + align_offset + align - 1) / align * align - align_offset;
}

size_t segment_of(const uct_iface_config &config)
{
    size_t asked = config.v.seg_size;
    return asked == ucs::config::memunits_auto || asked == 0 ? default_segment
                                                             : std::max(asked, least_segment);
}

iface::iface(uct_worker &worker, uct_md &domain, const uct_iface_params_t &params,
             const uct_iface_config &config)
    : uct::iface(table(), worker, domain, params), segment_(segment_of(config)),
      max_num_eps_(config.v.max_num_eps),
      most_queued_(config.v.tx_queue_len ? config.v.tx_queue_len : queue_length),
      messages_(
          {.object_size =
               payload_offset(rx_headroom_, std::max<size_t>(16, am_alignment_), am_align_offset_) +
               segment_,
           .align = std::max<size_t>(64, am_alignment_),
           .chunk = 32,
           .arg = this,
           .object_init = [](void *arg, void *object) {
               auto *home = static_cast<self::iface *>(arg);
               auto *m = static_cast<message *>(object);
               m->release.cb = [](uct_recv_desc_t *self, void *) {
                   auto *kept = reinterpret_cast<message *>(self);
                   kept->home->put(kept);
               };
               m->home = home;
               m->payload =
                   static_cast<char *>(object) +
                   payload_offset(home->rx_headroom_, std::max<size_t>(16, home->am_alignment_),
                                  home->am_align_offset_);
               uct_recv_desc_t *release = &m->release;
               memcpy(m->payload - home->rx_headroom_ - sizeof(void *), &release, sizeof(void *));
           }})
{
    poll_ = poll<self::iface>;
}

iface::~iface()
{
    if (event_fd_ >= 0) {
        ::close(event_fd_);
    }
}

ucs_status_t iface::event_fd_get(int *fd)
{
    if (event_fd_ < 0) {
        event_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (event_fd_ < 0) {
            return UCS_ERR_IO_ERROR;
        }
    }
    *fd = event_fd_;
    return UCS_OK;
}

ucs_status_t iface::event_arm(unsigned)
{
    armed_ = false;
    if (!queue_.empty()) {
        return UCS_ERR_BUSY;
    }
    uint64_t value;
    if (event_fd_ >= 0 && read(event_fd_, &value, sizeof(value)) == sizeof(value)) {
        return UCS_ERR_BUSY;
    }
    armed_ = event_fd_ >= 0;
    return UCS_OK;
}

// Another thread of this process sends, while the one that would receive sleeps.
void iface::wake()
{
    armed_ = false;
    uint64_t one = 1;
    [[maybe_unused]] ssize_t written = write(event_fd_, &one, sizeof(one));
}

unsigned iface::progress()
{
    unsigned count = 0;
    // What the handlers send waits for the next round.
    for (unsigned n = queued_; n > 0 && !queue_.empty(); --n) {
        message *m = queue_.pop();
        --queued_;
        if (deliver(m->id, m->payload, m->length, UCT_CB_PARAM_FLAG_DESC) != UCS_INPROGRESS) {
            put(m);
        }
        ++count;
    }
    return count + progress_pending();
}

ucs_status_t iface::create_ep(const uct_ep_params_t &params, uct_ep_h *ep_p)
{
    return ucs::guard([&] {
        bool given = (params.field_mask & UCT_EP_PARAM_FIELD_IFACE_ADDR) != 0;
        if (given && !is_reachable(params.dev_addr, params.iface_addr)) {
            throw ucs::error(UCS_ERR_UNREACHABLE,
                             "uct_ep_create: params->iface_addr is of another interface, and self "
                             "reaches only its own");
        }
        auto *created = new ep(*this);
        if (given) {
            created->set_connected();
        }
        *ep_p = created;
    });
}

ucs_status_t iface::query(uct_iface_attr_t *attr)
{
    memset(attr, 0, offsetof(uct_iface_attr_t, dev_num_paths) + sizeof(attr->dev_num_paths));
    attr->cap.flags =
        UCT_IFACE_FLAG_AM_SHORT | UCT_IFACE_FLAG_AM_BCOPY | UCT_IFACE_FLAG_AM_ZCOPY |
        UCT_IFACE_FLAG_PUT_SHORT | UCT_IFACE_FLAG_PUT_BCOPY | UCT_IFACE_FLAG_PUT_ZCOPY |
        UCT_IFACE_FLAG_GET_SHORT | UCT_IFACE_FLAG_GET_BCOPY | UCT_IFACE_FLAG_GET_ZCOPY |
        UCT_IFACE_FLAG_ATOMIC_CPU | UCT_IFACE_FLAG_PENDING | UCT_IFACE_FLAG_CONNECT_TO_IFACE |
        UCT_IFACE_FLAG_CONNECT_TO_EP | UCT_IFACE_FLAG_CB_SYNC | UCT_IFACE_FLAG_EP_CHECK;
    attr->cap.am = {.max_short = segment_,
                    .max_bcopy = segment_,
                    .min_zcopy = 0,
                    .max_zcopy = segment_,
                    .opt_zcopy_align = 1,
                    .align_mtu = 1,
                    .max_hdr = max_header,
                    .max_iov = max_pieces};
    attr->cap.put = {.max_short = UINT_MAX,
                     .max_bcopy = SIZE_MAX,
                     .min_zcopy = 0,
                     .max_zcopy = SIZE_MAX,
                     .opt_zcopy_align = 1,
                     .align_mtu = 1,
                     .max_iov = max_pieces};
    attr->cap.get = {.max_short = UINT_MAX,
                     .max_bcopy = SIZE_MAX,
                     .min_zcopy = 0,
                     .max_zcopy = SIZE_MAX,
                     .opt_zcopy_align = 1,
                     .align_mtu = 1,
                     .max_iov = max_pieces};
    attr->cap.atomic32 = {.op_flags = cpu_atomic_post, .fop_flags = cpu_atomic_fetch};
    attr->cap.atomic64 = attr->cap.atomic32;
    attr->cap.event_flags =
        UCT_IFACE_FLAG_EVENT_SEND_COMP | UCT_IFACE_FLAG_EVENT_RECV | UCT_IFACE_FLAG_EVENT_FD;
    attr->device_addr_len = 0;
    attr->iface_addr_len = sizeof(address);
    attr->ep_addr_len = sizeof(address);
    // UCX's of its self: there is no device that could tell.
    attr->overhead = 10e-9;
    attr->bandwidth = {.dedicated = 19360.0 * 1024 * 1024, .shared = 0};
    attr->latency = {.c = 0, .m = 0};
    attr->max_num_eps = max_num_eps_ ? max_num_eps_ : SIZE_MAX;
    attr->dev_num_paths = 1;
    return UCS_OK;
}

ucs_status_t iface::get_device_address(uct_device_addr_t *)
{
    return UCS_OK; // of length 0
}

ucs_status_t iface::get_address(uct_iface_addr_t *to)
{
    address own{id_};
    memcpy(to, &own, sizeof(own));
    return UCS_OK;
}

int iface::is_reachable(const uct_device_addr_t *, const uct_iface_addr_t *other)
{
    address theirs{0};
    if (other) {
        memcpy(&theirs, other, sizeof(theirs));
    }
    return theirs.id == id_;
}

ucs_status_t iface::flush(unsigned flags, uct_completion_t *completion)
{
    if (flags & UCT_FLUSH_FLAG_CANCEL) {
        return UCS_ERR_UNSUPPORTED; // each endpoint by itself
    }
    if (has_waiting()) {
        return completion ? UCS_ERR_NO_RESOURCE : UCS_INPROGRESS;
    }
    return UCS_OK; // every operation is done when its call returns
}

ucs_status_t ep::get_address(uct_ep_addr_t *address)
{
    return home().get_address(reinterpret_cast<uct_iface_addr_t *>(address));
}

ucs_status_t ep::connect_to_ep(const uct_device_addr_t *device, const uct_ep_addr_t *address)
{
    if (connected()) {
        ucs_error("uct_ep_connect_to_ep: ep is connected already");
        return UCS_ERR_ALREADY_EXISTS;
    }
    if (!home().is_reachable(device, reinterpret_cast<const uct_iface_addr_t *>(address))) {
        ucs_error("uct_ep_connect_to_ep: ep_addr is of another interface, and self reaches only "
                  "its own");
        return UCS_ERR_UNREACHABLE;
    }
    set_connected();
    return UCS_OK;
}

ucs_status_t ep::am_short(uint8_t id, uint64_t header, const void *payload, unsigned length)
{
    if (!ready()) {
        return not_ready();
    }
    if (UCS_UNLIKELY(id >= UCT_AM_ID_MAX)) {
        return above_limit("uct_ep_am_short: id", id, UCT_AM_ID_MAX - 1);
    }
    size_t segment = home().segment();
    if (UCS_UNLIKELY(length + sizeof(header) > segment)) {
        return above_limit("uct_ep_am_short: length", length, segment - sizeof(header));
    }
    message *m = home().get();
    if (!m) {
        return no_resource();
    }
    memcpy(m->payload, &header, sizeof(header));
    copy_bytes(m->payload + sizeof(header), payload, length);
    home().send(m, id, length + sizeof(header));
    return UCS_OK;
}

ucs_status_t ep::am_short_iov(uint8_t id, const uct_iov_t *iov, size_t count)
{
    return am_zcopy(id, nullptr, 0, iov, count, 0, nullptr);
}

ssize_t ep::am_bcopy(uint8_t id, uct_pack_callback_t pack, void *arg, unsigned)
{
    if (!ready()) {
        return not_ready();
    }
    if (UCS_UNLIKELY(id >= UCT_AM_ID_MAX)) {
        return above_limit("uct_ep_am_bcopy: id", id, UCT_AM_ID_MAX - 1);
    }
    message *m = home().get();
    if (!m) {
        return no_resource();
    }
    size_t length = pack(m->payload, arg);
    home().send(m, id, length);
    return static_cast<ssize_t>(length);
}

ucs_status_t ep::am_zcopy(uint8_t id, const void *header, unsigned header_length,
                          const uct_iov_t *iov, size_t count, unsigned, uct_completion_t *)
{
    if (!ready()) {
        return not_ready();
    }
    if (UCS_UNLIKELY(id >= UCT_AM_ID_MAX)) {
        return above_limit("uct_ep_am_zcopy: id", id, UCT_AM_ID_MAX - 1);
    }
    if (UCS_UNLIKELY(count > max_pieces)) {
        return above_limit("uct_ep_am_zcopy: iovcnt", count, max_pieces);
    }
    if (UCS_UNLIKELY(header_length > max_header)) {
        return above_limit("uct_ep_am_zcopy: header_length", header_length, max_header);
    }
    size_t segment = home().segment();
    if (UCS_UNLIKELY(header_length + iov_length(iov, count) > segment)) {
        return above_limit("uct_ep_am_zcopy: length", header_length + iov_length(iov, count),
                           segment);
    }
    message *m = home().get();
    if (!m) {
        return no_resource();
    }
    copy_bytes(m->payload, header, header_length);
    size_t length = header_length + gather(m->payload + header_length, iov, count);
    home().send(m, id, length);
    return UCS_OK;
}

ucs_status_t ep::put_short(const void *buffer, unsigned length, uint64_t remote, uct_rkey_t)
{
    copy_bytes(memory_at(remote), buffer, length);
    return UCS_OK;
}

ssize_t ep::put_bcopy(uct_pack_callback_t pack, void *arg, uint64_t remote, uct_rkey_t)
{
    return static_cast<ssize_t>(pack(memory_at(remote), arg));
}

ucs_status_t ep::put_zcopy(const uct_iov_t *iov, size_t count, uint64_t remote, uct_rkey_t,
                           uct_completion_t *)
{
    gather(memory_at(remote), iov, count);
    return UCS_OK;
}

ucs_status_t ep::get_short(void *buffer, unsigned length, uint64_t remote, uct_rkey_t)
{
    copy_bytes(buffer, memory_at(remote), length);
    return UCS_OK;
}

ucs_status_t ep::get_bcopy(uct_unpack_callback_t unpack, void *arg, size_t length, uint64_t remote,
                           uct_rkey_t, uct_completion_t *)
{
    unpack(arg, memory_at(remote), length);
    return UCS_OK;
}

ucs_status_t ep::get_zcopy(const uct_iov_t *iov, size_t count, uint64_t remote, uct_rkey_t,
                           uct_completion_t *)
{
    for (size_t i = 0; i < count; ++i) {
        size_t length = iov[i].length * iov[i].count;
        copy_bytes(iov[i].buffer, memory_at(remote), length);
        remote += length;
    }
    return UCS_OK;
}

template <class T>
ucs_status_t apply(unsigned op, T value, uint64_t remote, T *result)
{
    if (UCS_UNLIKELY(!atomic_aligned<T>(remote))) {
        return misaligned_atomic(remote, sizeof(T));
    }
    if (UCS_UNLIKELY(!result && op == UCT_ATOMIC_OP_SWAP)) {
        return UCS_ERR_UNSUPPORTED; // a swap without its result is a put
    }
    return cpu_atomic(op, value, reinterpret_cast<T *>(remote), result);
}

template <class T>
ucs_status_t compare_swap(T compare, T swap, uint64_t remote, T *result)
{
    if (UCS_UNLIKELY(!atomic_aligned<T>(remote))) {
        return misaligned_atomic(remote, sizeof(T));
    }
    return cpu_compare_swap(compare, swap, reinterpret_cast<T *>(remote), result);
}

ucs_status_t ep::atomic32_post(unsigned op, uint32_t value, uint64_t remote, uct_rkey_t)
{
    return apply<uint32_t>(op, value, remote, nullptr);
}

ucs_status_t ep::atomic64_post(unsigned op, uint64_t value, uint64_t remote, uct_rkey_t)
{
    return apply<uint64_t>(op, value, remote, nullptr);
}

ucs_status_t ep::atomic32_fetch(unsigned op, uint32_t value, uint32_t *result, uint64_t remote,
                                uct_rkey_t, uct_completion_t *)
{
    return apply<uint32_t>(op, value, remote, result);
}

ucs_status_t ep::atomic64_fetch(unsigned op, uint64_t value, uint64_t *result, uint64_t remote,
                                uct_rkey_t, uct_completion_t *)
{
    return apply<uint64_t>(op, value, remote, result);
}

ucs_status_t ep::atomic_cswap32(uint32_t compare, uint32_t swap, uint64_t remote, uct_rkey_t,
                                uint32_t *result, uct_completion_t *)
{
    return compare_swap(compare, swap, remote, result);
}

ucs_status_t ep::atomic_cswap64(uint64_t compare, uint64_t swap, uint64_t remote, uct_rkey_t,
                                uint64_t *result, uct_completion_t *)
{
    return compare_swap(compare, swap, remote, result);
}

ucs_status_t ep::flush(unsigned flags, uct_completion_t *)
{
    if (flags & UCT_FLUSH_FLAG_CANCEL) {
        set_failed(UCS_ERR_CANCELED);
        return UCS_OK;
    }
    return has_pending() ? no_resource() : status();
}

// A remote key of self is the process it is good in.
struct packed_rkey {
    uint64_t magic;
    uint64_t process;
};
constexpr uint64_t rkey_magic = 0x31666c6573636375; // "ucc self 1"

class component;

class md final : public uct_md {
  public:
    using uct_md::uct_md;

    void query(uct_md_attr_t *attr) override
    {
        memset(attr, 0, sizeof(*attr));
        attr->cap.flags = UCT_MD_FLAG_REG | UCT_MD_FLAG_NEED_RKEY | UCT_MD_FLAG_ADVISE;
        attr->cap.max_reg = SIZE_MAX;
        attr->cap.reg_mem_types = UCS_BIT(UCS_MEMORY_TYPE_HOST);
        attr->cap.access_mem_types = UCS_BIT(UCS_MEMORY_TYPE_HOST);
        attr->cap.detect_mem_types = UCS_BIT(UCS_MEMORY_TYPE_HOST);
        attr->reg_cost = {.c = 10e-9, .m = 0};
        attr->rkey_packed_size = sizeof(packed_rkey);
        snprintf(attr->component_name, sizeof(attr->component_name), "%s", component.name.c_str());
        ucs::topo::local_cpus(UCS_SYS_DEVICE_ID_UNKNOWN, &attr->local_cpus);
    }

    std::vector<uct_tl_resource_desc_t> tl_resources() override
    {
        return {{.tl_name = "self",
                 .dev_name = "memory",
                 .dev_type = UCT_DEVICE_TYPE_SELF,
                 .sys_device = UCS_SYS_DEVICE_ID_UNKNOWN}};
    }

    uct_iface *open_iface(uct_worker *worker, const uct_iface_params_t &params,
                          const uct_iface_config &config) override
    {
        return new iface(*worker, *this, params, config);
    }

    // Nothing is registered: the handle remembers what it stands for.
    struct region {
        std::span<char> memory;
        locked_pages locked;
    };

    uct_mem_h reg(void *address, size_t length, unsigned flags) override
    {
        auto r = std::make_unique<region>();
        r->memory = {static_cast<char *>(address), length};
        if (flags & UCT_MD_MEM_FLAG_LOCK) {
            r->locked = locked_pages(address, length);
        }
        return r.release();
    }
    void dereg(uct_mem_h memh) override { delete static_cast<region *>(memh); }
    std::span<char> memory_of(uct_mem_h memh) const override
    {
        return static_cast<const region *>(memh)->memory;
    }
    void pack_mkey(uct_mem_h, void *buffer) override
    {
        packed_rkey packed{rkey_magic, static_cast<uint64_t>(getpid())};
        memcpy(buffer, &packed, sizeof(packed));
    }
};

class component final : public uct_component {
  public:
    component() : uct_component("self") {}

    std::vector<std::string> md_names() const override { return {"self"}; }

    uct_md *open_md(const std::string &md_name, const uct_md_config &) override
    {
        if (md_name != "self") {
            throw ucs::error(UCS_ERR_NO_DEVICE, "uct_md_open: self has no memory domain \"%s\"",
                             md_name.c_str());
        }
        return new md(*this);
    }

    ucs_status_t rkey_unpack(const void *buffer, uct_rkey_bundle_t *bundle) override
    {
        packed_rkey packed;
        memcpy(&packed, buffer, sizeof(packed));
        if (packed.magic != rkey_magic) {
            return UCS_ERR_UNSUPPORTED;
        }
        *bundle = {.rkey = 0, .handle = nullptr, .type = this};
        return UCS_OK;
    }

    ucs_status_t rkey_release(const uct_rkey_bundle_t *) override { return UCS_OK; }
};

} // namespace

uct_component *make_component()
{
    return new component;
}

} // namespace uct::self
