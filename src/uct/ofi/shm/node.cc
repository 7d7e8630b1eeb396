// SPDX-License-Identifier: BSD-3-Clause
// See node.h.
#include "uct/ofi/shm/node.h"

#include "ucs/async.h"
#include "ucs/error.h"
#include "ucs/sys.h"
#include "uct/ofi/quirks/shm_file.h"
#include "uct/ofi/quirks/shm_lock.h"
#include "uct/ofi/quirks/shm_queue.h"
#include "uct/ofi/rdm/rdm_iface.h"
#include "uct/ofi/shm/doorbell.h"

#include <cstdlib>
#include <cstring>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

namespace uct::ofi {

namespace {

class shm_node final : public node {
  public:
    shm_node() { shm_file::reap_stale(); }
    ~shm_node() override
    {
        ucs::guard([] { shm_file::reap_stale(); });
    }

    void name_endpoint(fi_info *info) override;
    void opened(const std::string &core_address) override;

    bool has(const rdm_address &about, const std::string &core_address) const override
    {
        return shm_file::is_there(core_address, static_cast<pid_t>(about.bell.pid), about.birth);
    }
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
    doorbell bell_;
    std::string name_;
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
    }

    void watch();
    void begin() override { bell_ = std::make_unique<remote_bell>(about_.bell); }
    void rest() override { bell_.reset(); }
    sleeper *bell() override { return bell_.get(); }

  private:
    shm_node &home_;
    const rdm_address about_;
    shm_lock lock_; // of its region
    const std::function<void()> died_;
    std::unique_ptr<remote_bell> bell_;
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

// The file behind the endpoint gets a name that tells whose it is.
void shm_node::name_endpoint(fi_info *info)
{
    std::string name = shm_file::make_name();
    free(info->src_addr);
    info->src_addr = strdup(name.c_str());
    info->src_addrlen = name.size() + 1;
}

void shm_node::opened(const std::string &core_address)
{
    name_ = core_address;
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
    return met;
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
