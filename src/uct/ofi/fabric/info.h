// SPDX-License-Identifier: BSD-3-Clause
// Which core providers this process has, what they can do, and on which devices. libfabric is asked
// once per process and provider: a question costs hundreds of microseconds. Our own provider is
// never asked, and no layered provider is: the two flags below ask for cores that are hidden by the
// user's FI_PROVIDER as well.
#pragma once

#include "uct/ofi/fabric/fid.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace uct::ofi {

constexpr uint32_t api_version = FI_VERSION(1, 17);
constexpr uint64_t flag_core_only = 1ull << 59; // no util layer above
constexpr uint64_t flag_hidden = 1ull << 60;    // even if FI_PROVIDER leaves it out

// What a core goes over. What differs between cores by nature is asked of this, and not of names.
enum class medium : uint8_t {
    fabric,  // a network of which we know no more than libfabric tells
    memory,  // the node's
    sockets, // the kernel's: each peer takes a descriptor, any domain reaches what the host does
    verbs,   // queue pairs: a receive has to be posted before its message comes
};

// A transport of ours and the core provider that carries it. The rows are in info.cc, which alone
// knows providers by their names.
struct core {
    std::string transport; // the name users see: "shm", "tcp", "verbs"; at most 9 characters
    std::string provider;  // libfabric's name: "shm", "tcp" or "net", "verbs"
    fi_ep_type ep_type;    // FI_EP_RDM or FI_EP_MSG
    medium over;

    bool msg() const { return ep_type == FI_EP_MSG; }
    bool on_node() const { return over == medium::memory; }
    bool sockets() const { return over == medium::sockets; }
    bool verbs() const { return over == medium::verbs; }
    // The completion queues have descriptors that tell of everything. Of other native cores this is
    // unknown; libfabric 2.1's tcp crashes when such a queue is opened for its RDM endpoints.
    bool has_wait_fd() const;
    // It keeps what it has of a handshake in a descriptor of the event queue only, with a pointer
    // to the passive endpoint that it began at: closing either loses the memory and the sockets of
    // handshakes that are not finished, and closing the passive endpoint first leaves pointers to
    // it behind.
    bool forgets_handshakes() const;
    // It signals each completion and leaves it to fi_trywait() to take the signal back, but its
    // fi_trywait() does nothing: from the first one on the descriptor is readable. fi_wait() does.
    bool trywait_does_nothing() const;
    // What it answers to a read was in memory before any write that came after the read. sockets
    // says so, but reads a piece whenever the connection takes one, and writes in between.
    bool answers_in_order() const;
    // A look at its queue is a system call; the queues of devices are in memory.
    bool polled_by_calls() const;
    // Software of the target takes and acknowledges messages, while the target polls.
    bool needs_polling_target() const;
    // The signal of a completion queue can be muted (cq_signal.h).
    bool has_mutable_signal() const;
    // Where its processes find the key of their job by themselves; nullptr: they need none.
    const char *job_variable() const;
    // That key is a service and a VNI.
    bool is_slingshot() const;
};

// One domain of a core provider: a network interface, an RDMA device, or the host's memory.
struct device {
    std::string name;                   // "lo", "rxe0", "memory"
    std::vector<const fi_info *> infos; // one for each way to open it, the best first: see better()
};

// Transports whose provider has a device here: those with names of ours, in order of preference,
// then the rest. The provider behind "tcp" is the one UCX_TCP_CORE names, "tcp" by default.
const std::vector<core> &cores();

// Every transport that may be here, by name.
std::vector<std::string> transports();

// nullptr when there is no such transport here.
const core *find_core(const std::string &transport);

// Devices of a transport. Lives as long as the process.
const std::vector<device> &devices(const core &c);

// Messages from one endpoint to another arrive in the order of their posts.
bool keeps_order(const fi_info *info);

// fi_getinfo for that core with our flags. hints may be nullptr, which asks for what we use and
// for messages in order; fabric_attr and ep_attr are set here. Empty when there is none.
info_ptr query(const core &c, const char *node, const char *service, uint64_t flags,
               const fi_info *hints);

// The best info of a device when the hints ask for more; empty: there is none. Asks libfabric.
info_ptr query_device(const core &c, const std::string &name,
                      const std::function<void(fi_info *)> &more);

} // namespace uct::ofi
