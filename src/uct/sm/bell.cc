// SPDX-License-Identifier: BSD-3-Clause
// Pipes that wake sleepers.
#include "uct/sm/bell.h"

#include "ucs/error.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <unistd.h>

namespace uct::sm {

namespace {

constexpr int most_kept = 64; // bells of peers that this process holds open

std::atomic<int> kept = 0;

// Two descriptors, as many as open_pipe() needs at a time.
class reserve {
  public:
    static reserve &get()
    {
        static auto *one = new reserve; // used until the very end of the process
        return *one;
    }

    // Held as long as there is a bell.
    void hold()
    {
        std::lock_guard guard(mutex_);
        ++holders_;
        fill();
    }

    void release()
    {
        std::lock_guard guard(mutex_);
        if (--holders_ == 0) {
            empty();
        }
    }

    template <class Use>
    void lend(Use &&use)
    {
        std::lock_guard guard(mutex_);
        empty();
        use();
        if (holders_ > 0) {
            fill();
        }
    }

  private:
    void empty()
    {
        for (int &fd : fds_) {
            if (fd >= 0) {
                close(fd);
                fd = -1;
            }
        }
    }

    void fill()
    {
        for (int &fd : fds_) {
            if (fd < 0) {
                fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
            }
        }
    }

    std::mutex mutex_;
    unsigned holders_ = 0;
    int fds_[2] = {-1, -1};
};

bool write_one(int fd) noexcept
{
    char one = 1;
    ssize_t written;
    do {
        written = write(fd, &one, 1);
    } while (written < 0 && errno == EINTR);
    return written == 1 || errno == EAGAIN; // a full pipe is readable
}

} // namespace

bell::bell()
{
    reserve &spare = reserve::get(); // may throw
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
        throw ucs::error(UCS_ERR_IO_ERROR, "uct_iface_open: pipe: %s%s", strerror(errno),
                         errno == EMFILE ? " (limit: RLIMIT_NOFILE)" : "");
    }
    // One descriptor for both ends, so that neither ever hangs up.
    char path[32];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", ends[0]);
    fd_ = ::open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    int failed = errno;
    close(ends[0]);
    close(ends[1]);
    if (fd_ < 0) {
        throw ucs::error(UCS_ERR_IO_ERROR, "uct_iface_open: cannot open a pipe again: %s",
                         strerror(failed));
    }
    spare.hold();
}

bell::~bell()
{
    reserve::get().release();
    close(fd_);
}

void bell::ring() noexcept
{
    write_one(fd_);
}

void bell::drain() noexcept
{
    char bytes[64];
    while (read(fd_, bytes, sizeof(bytes)) == sizeof(bytes)) {
    }
}

remote_bell::~remote_bell()
{
    if (fd_ >= 0) {
        close(fd_);
        kept.fetch_sub(1, std::memory_order_relaxed);
    }
}

int remote_bell::open() noexcept
{
    try {
        return open_pipe(where_, inode_);
    } catch (const std::exception &e) {
        ucs_debug("%s", e.what());
        return -1;
    }
}

bool remote_bell::ring() noexcept
{
    if (fd_ >= 0) {
        return write_one(fd_);
    }
    bool rung = false;
    int fd = open();
    if (fd < 0) {
        reserve::get().lend([&] {
            int once = open();
            if (once >= 0) {
                rung = write_one(once);
                close(once);
            }
        });
        return rung;
    }
    rung = write_one(fd);
    if (kept.fetch_add(1, std::memory_order_relaxed) < most_kept) {
        fd_ = fd;
    } else {
        kept.fetch_sub(1, std::memory_order_relaxed);
        close(fd);
    }
    return rung;
}

} // namespace uct::sm
