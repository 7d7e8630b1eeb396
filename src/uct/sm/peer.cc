// SPDX-License-Identifier: BSD-3-Clause
// Attaching to a peer's inbox.
#include "uct/sm/peer.h"

#include "ucs/owned_fd.h"
#include "uct/shared/foreign_fd.h"

#include <map>
#include <mutex>
#include <unistd.h>

namespace uct::sm {

namespace {

struct table {
    static table &get()
    {
        static auto *all = new table; // outlives every interface
        return *all;
    }

    struct entry {
        pid_t pid; // a child process has its parent's entries, and not its inboxes
        std::weak_ptr<inbox> own;
    };

    std::mutex mutex;
    std::map<uint64_t, entry> inboxes;
};

} // namespace

void local_inboxes::add(const std::shared_ptr<inbox> &own)
{
    std::lock_guard guard(table::get().mutex);
    table::get().inboxes[own->nonce()] = {getpid(), own};
}

void local_inboxes::remove(uint64_t nonce)
{
    std::lock_guard guard(table::get().mutex);
    table::get().inboxes.erase(nonce);
}

std::shared_ptr<inbox> local_inboxes::find(uint64_t nonce)
{
    std::lock_guard guard(table::get().mutex);
    auto found = table::get().inboxes.find(nonce);
    return found != table::get().inboxes.end() && found->second.pid == getpid()
               ? found->second.own.lock()
               : nullptr;
}

peer::peer(const iface_address &to, pid_t pid, uint32_t birth)
    : about(to), local(local_inboxes::find(to.nonce)), bell({to.pid, to.bell_fd}, to.bell_inode)
{
    if (local) {
        box = std::make_unique<outbox>(*local, pid, birth);
        return;
    }
    ucs::owned_fd memory(open_memory({to.pid, to.inbox_fd}, to.nonce, inbox::size()));
    box = std::make_unique<outbox>(memory.get(), to.nonce, pid, birth);
}

} // namespace uct::sm
