// SPDX-License-Identifier: BSD-3-Clause
// Strict cores: libfabric providers for tests, over the core `sockets`. Each takes the name of a
// fabric that is not here and asks of its user what that fabric asks. A use that the fabric forbids
// prints one line and aborts. Every object of libfabric is wrapped; operations are kept as requests
// until their completion, so that they can be delayed, shuffled and checked.
//
// Settings: FI_STRICT_SEED (1), FI_STRICT_WINDOW (8 messages), FI_STRICT_EAGAIN (refuse one post of
// so many; 0: none; default: the profile's), FI_STRICT_REFUSALS (refuse so many posts of an
// endpoint first, but for receives; 0), FI_STRICT_DESCRIPTOR (0: no queue can be waited for; that
// is quicker, because sockets has a thread of its own otherwise), FI_STRICT_DAMAGE (change the last
// byte of messages and writes of so many bytes and more, for tests of tests; 0: none),
// FI_STRICT_PINS (1: a region keeps its first and last page, and is checked to have them still when
// it is used in this process; 0), FI_STRICT_PAUSE (what a fabric does by itself is done after so
// many milliseconds in which no queue was read; 0: never; 5), FI_STRICT_DEVICES (each profile is
// there so often, as cxi0, cxi1 and so on; 1), FI_STRICT_AUTH_KEY (hexadecimal digits: a domain or
// endpoint without that key is refused, see auth_key.cc), FI_STRICT_EPS, FI_STRICT_QUEUES,
// FI_STRICT_REGIONS (a domain has so many of them at most; default: the profile's),
// FI_STRICT_LONGEST (no message or operation is longer; default: the profile's).
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <netinet/in.h>
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <set>
#include <span>
#include <sys/uio.h>
#include <thread>
#include <unordered_set>
#include <vector>

namespace strict {

// What goes on while its user polls nothing.
enum class by_itself {
    nothing,
    sending,   // messages leave, but software of the target takes and acknowledges them
    everything // as by hardware, or by a thread of the provider
};

// What a domain has room for.
struct capacity {
    size_t eps;
    size_t queues;
    size_t regions;
};

// What a fabric asks of its user.
struct profile {
    const char *provider;
    const char *fabric; // its name; one fabric for each profile of a module
    const char *domain;
    uint32_t addr_format;
    size_t addr_length; // of the opaque address
    fi_av_type av_type;
    int mr_mode;
    size_t iov_limit;
    size_t inject;     // bytes of a message
    size_t inject_rma; // bytes of a write
    size_t cq_data_size;
    size_t max_message;
    uint64_t caps;
    uint64_t order;        // what it can keep
    size_t order_size;     // of the largest put or get that has an order
    bool order_on_request; // what the hints do not ask for is not kept
    bool keeps_iovecs;     // the caller's iovecs are read until the operation is over
    bool releases_alone;   // a shared receive buffer, and not with its last message
    bool has_descriptor;   // completion queues can be waited for: see waits()
    by_itself does;
    unsigned refuses_one_of; // posts; 0: none
    size_t auth_key_size;    // 0: it has no keys
    capacity most;
};

// Those of this module, in the order in which they are listed. Each module has a source for it.
extern const std::span<const profile> profiles;

constexpr uint64_t base_caps = FI_MSG | FI_RMA | FI_SEND | FI_RECV | FI_READ | FI_WRITE |
                               FI_REMOTE_READ | FI_REMOTE_WRITE | FI_LOCAL_COMM | FI_REMOTE_COMM;
constexpr uint64_t all_caps = base_caps | FI_TAGGED | FI_ATOMIC | FI_MULTI_RECV;
constexpr uint64_t all_orders = FI_ORDER_RAR | FI_ORDER_RAW | FI_ORDER_RAS | FI_ORDER_WAR |
                                FI_ORDER_WAW | FI_ORDER_WAS | FI_ORDER_SAR | FI_ORDER_SAW |
                                FI_ORDER_SAS;

// The fabric forbids this: says so and aborts.
[[noreturn]] __attribute__((format(printf, 2, 3))) void forbid(const profile &p, const char *format,
                                                               ...);

// A setting's value, or the other.
uint64_t setting(const char *name, uint64_t otherwise);

inline size_t longest(const profile &p)
{
    return setting("FI_STRICT_LONGEST", p.max_message);
}

// What a domain of the profile has room for.
inline capacity most(const profile &p)
{
    return {setting("FI_STRICT_EPS", p.most.eps), setting("FI_STRICT_QUEUES", p.most.queues),
            setting("FI_STRICT_REGIONS", p.most.regions)};
}

inline bool waits(const profile &p)
{
    return p.has_descriptor && setting("FI_STRICT_DESCRIPTOR", 1) != 0;
}

// For slots of operation tables: a function of any signature that returns -FI_ENOSYS.
struct no_op_t {
    template <class R, class... A>
    using function = R (*)(A...);

    template <class R, class... A>
    constexpr operator function<R, A...>() const
    {
        return [](A...) -> R { return static_cast<R>(-FI_ENOSYS); };
    }
};
inline constexpr no_op_t no_op = {};

struct closer {
    template <class Fid>
    void operator()(Fid *object) const
    {
        fi_close(&object->fid);
    }
};
template <class Fid>
using owned = std::unique_ptr<Fid, closer>;

int get_infos(uint32_t version, const char *node, const char *service, uint64_t flags,
              const fi_info *hints, fi_info **list); // info.cc
// The info of `sockets` that carries the profile; nullptr: there is none.
fi_info *inner_info(const profile &p);
int open_fabric(fi_fabric_attr *attr, fid_fabric **fabric, void *context); // fabric.cc

// Keys of parts of the fabric. What hints ask for must have the right length.
bool fits_key(const profile &p, const fi_info *hints);
// Whether a domain, and an endpoint of it, belongs to the part that FI_STRICT_AUTH_KEY names.
bool admits_domain(const profile &p, const fi_info *info);
bool admits_ep(const profile &p, const fi_info *info);

struct fabric {
    fid_fabric outer; // first in all of these: libfabric gives us its address
    const profile *about;
    owned<fid_fabric> inner;
};

struct cq;
struct ep;
struct mr;

// The thread of a domain that does what the fabric does by itself: device.cc.
class device {
  public:
    explicit device(const profile &p);
    ~device();
    void add(cq *queue);
    void remove(cq *queue);

    std::mutex mutex; // held while queues are moved: to close what they have to do with, too

  private:
    void run();

    by_itself does_;
    uint64_t pause_;
    bool over_ = false;
    std::set<cq *> queues_;
    std::condition_variable changed_;
    std::thread thread_;
};

struct domain {
    explicit domain(const profile &p) : about(&p), mover(p) {}

    fid_domain outer = {};
    const profile *about;
    owned<fid_domain> inner;
    // Held while the inner core moves: `sockets` closes the socket of a lost connection when it
    // sends, under another lock than the one with which it reads that socket.
    std::mutex inner_moves;
    device mover;     // ends before the inner domain
    std::mutex mutex; // of what follows
    std::set<const void *> descs;
    uint64_t next_key = 1;
    size_t eps = 0;
    size_t queues = 0;
    size_t vectors = 0;
    size_t regions = 0;

    // A region that is not closed, or nullptr.
    const mr *find(const void *desc);
};

// What an object of a domain takes of its room, while it lives.
class place {
  public:
    place() = default;
    place(const place &) = delete;
    ~place();
    // False: there is no room left.
    bool take(domain *home, size_t domain::*count, size_t most);

  private:
    domain *home_ = nullptr;
    size_t domain::*count_ = nullptr;
};

struct pins;

// Those that the memory is on.
std::span<char> pages_of(const void *memory, size_t length);

struct mr {
    mr();
    ~mr();

    fid_mr outer = {};
    domain *home;
    place where;
    owned<fid_mr> inner; // from when it is enabled
    const char *base;
    size_t length;
    uint64_t access;
    uint64_t offset;
    uint64_t requested_key;
    ep *bound = nullptr;
    std::unique_ptr<pins> pinned;

    int enable();
    void pin();
    void check_pins() const;
};

// Of the regions of this process with that key and address.
void check_pins_of(uint64_t key, uint64_t address);

struct av {
    struct entry {
        fi_addr_t inner;
        uint16_t port; // tells endpoints of this host apart
        bool removed;
    };
    fid_av outer;
    domain *home;
    place where;
    std::atomic<unsigned> eps; // that are bound to it
    owned<fid_av> inner;
    std::mutex mutex;
    std::deque<entry> entries; // an index is never used again

    // Forbids those that were never there or were removed.
    entry find(fi_addr_t address);
};

// An operation between its post and its completion.
struct request {
    enum class kind {
        send,
        tagged_send,
        receive,
        tagged_receive,
        write,
        read,
        atomic,
        fetch,
        swap
    };
    static constexpr size_t most = 8;

    fi_context2 room; // first: the inner core's context is this object
    kind what;
    ep *owner; // nullptr once it was closed
    void *context;
    uint64_t flags;
    bool reported;       // to the user
    const iovec *caller; // of kept iovecs
    size_t count;
    iovec pieces[most];
    std::vector<char> copy; // of injected data
    fi_addr_t to;
    uint16_t port; // of the target
    uint64_t tag;
    uint64_t ignore;
    uint64_t data;
    fi_rma_iov where;
    fi_datatype type;
    fi_op op;
    fi_ioc operand;
    fi_ioc compare;
    fi_ioc result;
    uint64_t overtaken = 0; // posts that left before this one, which was there first

    ssize_t post(fid_ep *inner);
    void keep_iovecs(const profile &p);
    void check_iovecs(const profile &p) const;
};

struct cq {
    fid_cq outer;
    domain *home;
    place where;
    std::atomic<unsigned> eps; // that are bound to it, for each direction
    owned<fid_cq> inner;
    fi_cq_format format;
    std::mutex mutex;
    std::unordered_set<request *> requests; // in flight
    std::set<ep *> senders;
    std::vector<fi_cq_err_entry> lost; // what the inner core refused after the user's post
    std::deque<request *> released;    // shared buffers whose release is still to be reported
    std::vector<request *> early;      // shared buffers that were released before their completions
    std::atomic<bool> was_read;        // since the device last looked

    ~cq();
    // Whether something that leaves this process is not over.
    bool sends();
    // Sends, takes and acknowledges, but reads nothing.
    void move();
    // What the inner core has completed.
    ssize_t read_inner(void *entries, size_t count);
    // Ends a request that was held with an error, which the user reads next.
    void fail(request *r, int error);
    // Makes of a completion what the user is to see; false: nothing. Takes the request out unless
    // more will come.
    bool completed(request *r, fi_cq_tagged_entry *entry);
    // The same for a message that failed in a shared buffer.
    void failed_in_shared(request *r, fi_cq_err_entry *entry);
    // All completions were read.
    void end_early();
    // The release of a shared buffer, where it is a completion of its own.
    bool take_released(fi_cq_tagged_entry *entry);
    // Takes a request out; returns what the user is to see of it, false: nothing.
    bool finish(request *r, void **context);
};

struct ep {
    fid_ep outer;
    domain *home;
    place where;
    std::atomic<unsigned> regions; // that are bound to it
    owned<fid_ep> inner;
    av *names = nullptr;
    cq *tx = nullptr;
    cq *rx = nullptr;
    bool tx_selective = false;
    bool rx_selective = false;
    bool enabled = false;
    bool closing = false;
    bool ordered; // messages arrive in the order of their posts
    uint64_t tx_flags;
    uint64_t rx_flags;
    uint16_t port = 0;
    uint64_t random;
    uint64_t refuses_one_of;
    uint64_t refusals; // of the next posts
    uint64_t damages;  // what is as long
    size_t window;
    size_t longest; // operation
    std::mutex mutex;
    std::vector<request *> held; // messages that wait for later ones to overtake them

    const profile &about() const { return *home->about; }
    uint64_t draw(); // under the mutex
    // What every operation goes through. Takes the request; pieces, caller and descs are checked.
    ssize_t submit(std::unique_ptr<request> r, const iovec *iov, void *const *descs, size_t count,
                   fi_addr_t to);
    // Lets go of one of those held; all: of all of them.
    void release(bool all);
    // Where local memory needs it: the descriptor must be that of a region which covers the piece.
    void check_desc(const void *base, size_t length, const void *desc) const;

  private:
    void check_size(const request &r, size_t length) const;
    void check_target(const request &r, const av::entry &to) const;
    bool is_damaged(const request &r, size_t length) const;
    bool is_refused(const request &r);
    ssize_t start(request *r);
    ssize_t post(request *r);
    bool release_one(size_t index);

    std::mutex wide_mutex_;   // of what follows
    std::set<uint16_t> wide_; // ports of targets that are connected
};

template <class Object, class Fid>
Object *self(Fid *fid)
{
    return reinterpret_cast<Object *>(fid);
}

bool receives(request::kind what);

// The tables of an endpoint's operations.
extern fi_ops_msg message_ops;
extern fi_ops_tagged tagged_ops;
extern fi_ops_rma rma_ops;
extern fi_ops_atomic atomic_ops;

int open_domain(fid_fabric *fabric, fi_info *info, fid_domain **domain, void *context);
int open_av(fid_domain *domain, fi_av_attr *attr, fid_av **av, void *context);
int open_cq(fid_domain *domain, fi_cq_attr *attr, fid_cq **cq, void *context);
int open_ep(fid_domain *domain, fi_info *info, fid_ep **ep, void *context);
extern fi_ops_mr mr_ops;

// Enlarges the receive buffers of this process's streams from or to that port; those that come to
// a listener later have its size. See sockets.cc.
void widen(uint16_t port);

// A sockaddr_in in so many bytes that look like nothing.
void write_address(const profile &p, const sockaddr_in &from, void *to);
sockaddr_in read_address(const profile &p, const void *from);

} // namespace strict
