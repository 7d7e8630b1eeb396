// SPDX-License-Identifier: BSD-3-Clause
// See node.h.
#include "uct/ofi/shm/node.h"

#include "ucs/async.h"
#include "ucs/error.h"
#include "ucs/sys.h"
#include "uct/ofi/quirks/shm_file.h"
#include "uct/ofi/quirks/shm_lock.h"
#include "uct/ofi/quirks/shm_peers.h"
#include "uct/ofi/quirks/shm_queue.h"
#include "uct/ofi/rdm/rdm_iface.h"
#include "uct/ofi/shm/doorbell.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

namespace uct::ofi {

namespace {

// To map a peer's region takes a descriptor for a moment. libfabric 1.17 does it when the peer's
// first message comes, and crashes where there is none. So one is kept, and with it the core is
// told of peers before.
class spare_descriptor {
  public:
    spare_descriptor() { hold(); }
    spare_descriptor(const spare_descriptor &) = delete;
    spare_descriptor &operator=(const spare_descriptor &) = delete;
    ~spare_descriptor() { give(); }

    void hold() { fd_ = eventfd(0, EFD_CLOEXEC); } // -1: others have taken it
    void give()
    {
        if (fd_ >= 0) {
            close(std::exchange(fd_, -1));
        }
    }

  private:
    int fd_ = -1;
};

class shm_node final : public node {
  public:
    shm_node()
    {
        handles_.fill(FI_ADDR_UNSPEC);
        shm_file::reap_stale();
    }
    ~shm_node() override
    {
        ucs::guard([] { shm_file::reap_stale(); });
    }

    void name_endpoint(fi_info *info) override;
    void opened(const std::string &core_address, fid_av *av) override;

    bool has(const rdm_address &about, const std::string &core_address) const override
    {
        return shm_file::is_there(core_address, static_cast<pid_t>(about.bell.pid), about.birth);
    }
    bool has_room(const rdm_address &about, const std::string &core_address) const override;
    bool is_open(const std::string &core_address) const override
    {
        return shm_file::present(core_address.c_str());
    }
    std::unique_ptr<neighbour> meet(const rdm_address &about, const std::string &core_address,
                                    std::function<void()> died) override;
    void clear_away(const std::string &core_address) override
    {
        shm_file::remove_of_dead(core_address.c_str());
    }
    void forget(const std::string &core_address) override;
    size_t gone_kept() const override;
    const std::atomic<uint32_t> &news() const override { return bell_.peers().told(); }
    void greet() override;
    void hear() override;

    // An entry for a peer in our table, and in the peer's for us. Throws EXCEEDS_LIMIT.
    unsigned take_own(const shm_file::parts &file);
    unsigned take_in(entry_table &its, remote_bell &bell) const;
    // The core's handle of the peer of one of our entries.
    fi_addr_t insert(unsigned entry, const std::string &core_address);
    void leave_own(unsigned entry, const shm_file::parts &file)
    {
        bell_.peers().leave(entry, file, entry_table::owner);
    }
    const shm_file::parts &self() const { return self_; }

    bell_address address() const override { return bell_.address(); }
    int fd() const override { return bell_.fd(); }
    void arm() override { bell_.arm(); }
    void disarm() override { bell_.disarm(); }
    void ring() override { bell_.ring_self(); }

    // What a process that died has left behind in its region and in ours. False: to be called
    // again.
    bool repair(shm_lock &its)
    {
        return shm_lock::repair({lock_.get(), &its}) && repair_shm_queues(name_);
    }

  private:
    bool release(unsigned entry);
    bool make_known(unsigned entry, const shm_file::parts &file);
    void hear_of(unsigned entry, bool look_for_dead);

    doorbell bell_;
    spare_descriptor spare_;
    std::string name_;
    shm_file::parts self_{};
    fid_av *av_ = nullptr;
    // What the core calls the peers of our entries; FI_ADDR_UNSPEC: it does not know them.
    std::array<fi_addr_t, entry_table::size> handles_;
    std::unique_ptr<shm_lock> lock_; // of our own region
};

class shm_neighbour final : public neighbour {
  public:
    shm_neighbour(shm_node &home, const rdm_address &about, const std::string &core_address,
                  std::function<void()> died)
        : home_(home), about_(about), lock_(core_address), died_(std::move(died))
    {
    }
    ~shm_neighbour() override
    {
        watch_.reset();
        if (pid_fd_ >= 0) {
            close(pid_fd_);
        }
        if (its_entry_ != entry_table::none) {
            its_->table().leave(its_entry_, home_.self(), entry_table::peer);
        }
    }

    void watch();
    // Once, after begin(). What it throws leaves both tables as they were.
    void enter(const std::string &core_address);
    void begin() override { bell_ = std::make_unique<remote_bell>(about_.bell); }
    void rest() override { bell_.reset(); }
    sleeper *bell() override { return bell_.get(); }
    fi_addr_t address() const override { return address_; }

  private:
    shm_node &home_;
    const rdm_address about_;
    shm_lock lock_; // of its region
    const std::function<void()> died_;
    std::unique_ptr<remote_bell> bell_;
    std::unique_ptr<remote_entries> its_;
    unsigned its_entry_ = entry_table::none; // that it has for us
    fi_addr_t address_ = FI_ADDR_UNSPEC;
    int pid_fd_ = -1;
    ucs::async_watch watch_;
};

void shm_neighbour::watch()
{
    auto pid = static_cast<pid_t>(about_.bell.pid);
    pid_fd_ = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
    if (pid_fd_ < 0 || ucs::process_birth(pid) != about_.birth) {
        throw ucs::error(UCS_ERR_UNREACHABLE, "process %d, to which an endpoint was asked, is gone",
                         pid);
    }
    watch_ = ucs::async_watch::fd(
        pid_fd_, EPOLLIN | EPOLLONESHOT,
        [](void *arg, uint32_t) {
            auto *self = static_cast<shm_neighbour *>(arg);
            if (self->home_.repair(self->lock_)) {
                self->died_();
            } else {
                self->watch_.set_events(EPOLLIN | EPOLLONESHOT); // again
            }
        },
        this);
}

void shm_neighbour::enter(const std::string &core_address)
{
    shm_file::parts file;
    if (!shm_file::parse(core_address.c_str(), &file)) {
        throw ucs::error(UCS_ERR_INVALID_ADDR, "uct_ep_create: the peer's file has another name");
    }
    its_ = std::make_unique<remote_entries>(about_.bell);
    unsigned own = home_.take_own(file);
    try {
        its_entry_ = home_.take_in(its_->table(), *bell_);
        address_ = home_.insert(own, core_address);
    } catch (...) {
        home_.leave_own(own, file);
        throw;
    }
}

// The file behind the endpoint gets a name that tells whose it is.
void shm_node::name_endpoint(fi_info *info)
{
    std::string name = shm_file::make_name();
    free(info->src_addr);
    info->src_addr = strdup(name.c_str());
    info->src_addrlen = name.size() + 1;
}

void shm_node::opened(const std::string &core_address, fid_av *av)
{
    name_ = core_address;
    av_ = av;
    shm_file::parse(name_.c_str(), &self_);
    lock_ = std::make_unique<shm_lock>(name_);
}

std::unique_ptr<neighbour> shm_node::meet(const rdm_address &about, const std::string &core_address,
                                          std::function<void()> died)
{
    bool watched = died != nullptr;
    auto met = std::make_unique<shm_neighbour>(*this, about, core_address, std::move(died));
    if (watched) {
        met->watch();
    }
    met->begin();
    met->enter(core_address);
    return met;
}

unsigned shm_node::take_own(const shm_file::parts &file)
{
    unsigned entry = bell_.peers().take(file, entry_table::owner);
    if (entry == entry_table::none) {
        throw ucs::error(UCS_ERR_EXCEEDS_LIMIT,
                         "uct_ep_create: the interface has %u peers, and libfabric's shm takes no "
                         "more",
                         entry_table::size);
    }
    return entry;
}

// The other side is woken by a refusal, since it looks for entries of dead peers then.
unsigned shm_node::take_in(entry_table &its, remote_bell &bell) const
{
    unsigned entry = its.take(self_, entry_table::peer);
    if (entry == entry_table::none) {
        bell.wake();
        throw ucs::error(UCS_ERR_EXCEEDS_LIMIT,
                         "uct_ep_create: the peer's interface has %u peers, and libfabric's shm "
                         "takes no more",
                         entry_table::size);
    }
    return entry;
}

// A refusal makes the side that is full look for entries of dead peers.
bool shm_node::has_room(const rdm_address &about, const std::string &core_address) const
{
    auto takes = [](entry_table &table, const shm_file::parts &file) {
        bool room = table.find(file) != entry_table::none || !table.is_full();
        if (!room) {
            table.tell(entry_table::refused);
        }
        return room;
    };
    shm_file::parts file;
    bool room = shm_file::parse(core_address.c_str(), &file) && takes(bell_.peers(), file);
    ucs_status_t status = ucs::guard_quietly([&] {
        if (room && !takes(remote_entries(about.bell).table(), self_)) {
            room = false;
            remote_bell(about.bell).wake();
        }
    });
    return room && status == UCS_OK;
}

fi_addr_t shm_node::insert(unsigned entry, const std::string &core_address)
{
    if (handles_[entry] == FI_ADDR_UNSPEC) {
        spare_.give();
        int inserted = fi_av_insert(av_, core_address.c_str(), 1, &handles_[entry], 0, nullptr);
        spare_.hold();
        if (inserted != 1) {
            handles_[entry] = FI_ADDR_UNSPEC;
            throw ucs::error(UCS_ERR_UNREACHABLE, "fi_av_insert on libfabric's shm: %s",
                             inserted < 0 ? fi_strerror(-inserted) : "the peer was refused");
        }
    }
    return handles_[entry];
}

void shm_node::forget(const std::string &core_address)
{
    shm_file::parts file;
    if (shm_file::parse(core_address.c_str(), &file)) {
        entry_table &own = bell_.peers();
        unsigned entry = own.find(file);
        if (entry != entry_table::none) {
            own.leave(entry, file, entry_table::owner);
            own.leave(entry, file, entry_table::peer);
            release(entry);
        }
    }
}

// All where the core cannot forget them.
size_t shm_node::gone_kept() const
{
    return !shm_peers::are_removable() ? SIZE_MAX : bell_.peers().is_full() ? 0 : usually_kept;
}

// False: it stays taken, because it is in use or the core cannot forget the peer.
bool shm_node::release(unsigned entry)
{
    shm_file::parts file;
    entry_table &own = bell_.peers();
    if (!own.read(entry, &file)) {
        return true;
    }
    int known = -1;
    if (handles_[entry] != FI_ADDR_UNSPEC) {
        known = shm_peers::are_removable() ? shm_peers::find(name_, shm_file::name_of(file)) : -1;
        if (known < 0) {
            return false;
        }
    }
    if (!own.begin_free(entry)) {
        return false;
    }
    if (handles_[entry] != FI_ADDR_UNSPEC) {
        fi_av_remove(av_, &handles_[entry], 1, 0);
        shm_peers::clear(name_, known);
        handles_[entry] = FI_ADDR_UNSPEC;
    }
    own.end_free(entry);
    return true;
}

// The core learns of a peer when that sends, too, but then there is no handle to remove it by.
bool shm_node::make_known(unsigned entry, const shm_file::parts &file)
{
    std::string name = shm_file::name_of(file);
    return handles_[entry] != FI_ADDR_UNSPEC ||
           (file.birth != 0 && shm_file::present(name) &&
            ucs::guard_quietly([&] { insert(entry, name); }) == UCS_OK);
}

void shm_node::hear_of(unsigned entry, bool look_for_dead)
{
    shm_file::parts file;
    entry_table &own = bell_.peers();
    if (!own.read(entry, &file) || own.is_used(entry, entry_table::owner)) {
        return;
    }
    if (look_for_dead && kill(file.pid, 0) != 0 && errno == ESRCH) {
        own.leave(entry, file, entry_table::peer);
    }
    if (own.is_used(entry, entry_table::peer)) {
        make_known(entry, file);
    } else {
        release(entry);
    }
}

// A peer takes its entry before it sends.
void shm_node::greet()
{
    entry_table &own = bell_.peers();
    bool came = own.told().load(std::memory_order_relaxed) & entry_table::came;
    if (!came || !shm_peers::are_removable()) {
        return;
    }
    own.told().fetch_and(~uint32_t{entry_table::came}, std::memory_order_acquire);
    for (unsigned entry = 0; entry < entry_table::size; ++entry) {
        shm_file::parts file;
        if (own.read(entry, &file) && own.is_used(entry, entry_table::peer)) {
            make_known(entry, file);
        }
    }
}

void shm_node::hear()
{
    uint32_t told = bell_.peers().told().exchange(0, std::memory_order_acquire);
    if (!shm_peers::are_removable()) {
        return;
    }
    for (unsigned entry = 0; entry < entry_table::size; ++entry) {
        hear_of(entry, told & entry_table::refused);
    }
}

// The kernel ends the process when shm makes its file, whose size it does not tell, above the
// limit.
std::unique_ptr<node> make_shm_node(const md &domain)
{
    rlimit size{};
    if (getrlimit(RLIMIT_FSIZE, &size) == 0 && size.rlim_cur != RLIM_INFINITY) {
        throw ucs::error(UCS_ERR_NO_RESOURCE, "%s is not opened where RLIMIT_FSIZE is set",
                         domain.provider.transport.c_str());
    }
    return std::make_unique<shm_node>();
}

} // namespace

uct_iface *open_shm_iface(uct_worker &worker, ofi::md &domain, const uct_iface_params_t &params,
                          const uct_iface_config &config)
{
    return new rdm_iface(worker, domain, params, config, make_shm_node);
}

} // namespace uct::ofi
