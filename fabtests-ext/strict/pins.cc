// SPDX-License-Identifier: BSD-3-Clause
// What a device sees of a region: the pages that were there when it was registered. A pipe holds
// the first and the last one, as a device does that locks them.
#include "strict/strict.h"

#include <atomic>
#include <fcntl.h>

namespace strict {

namespace {

std::mutex all_mutex;
std::set<const mr *> all; // those with pins

} // namespace

struct pipe_ends {
    int read = -1;
    int write = -1;

    pipe_ends()
    {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) == 0) {
            read = ends[0];
            write = ends[1];
        }
    }
    pipe_ends(const pipe_ends &) = delete;
    ~pipe_ends()
    {
        close(read);
        close(write);
    }
};

struct pins {
    pipe_ends pipe;
};

std::span<char> pages_of(const void *memory, size_t length)
{
    constexpr uintptr_t page = 4096;
    auto first = reinterpret_cast<uintptr_t>(memory) & ~(page - 1);
    auto end = (reinterpret_cast<uintptr_t>(memory) + length + page - 1) & ~(page - 1);
    return {reinterpret_cast<char *>(first), end - first};
}

mr::mr() = default;

mr::~mr()
{
    std::lock_guard guard(all_mutex);
    all.erase(this);
}

void mr::pin()
{
    if (setting("FI_STRICT_PINS", 0) == 0 || length == 0) {
        return;
    }
    auto made = std::make_unique<pins>();
    for (const char *at : {base, base + length - 1}) {
        // A page that was only read would be the kernel's page of zeros.
        std::atomic_ref(*const_cast<char *>(at)).fetch_or(0);
        iovec one{const_cast<char *>(at), 1};
        if (vmsplice(made->pipe.write, &one, 1, 0) != 1) {
            forbid(*home->about, "the pages of a region cannot be locked");
        }
    }
    pinned = std::move(made);
    std::lock_guard guard(all_mutex);
    all.insert(this);
}

void mr::check_pins() const
{
    if (!pinned) {
        return;
    }
    pipe_ends copy;
    char seen[2] = {};
    if (tee(pinned->pipe.read, copy.write, 2, 0) != 2 || ::read(copy.read, seen, 2) != 2) {
        forbid(*home->about, "the pages of a region cannot be read");
    }
    if (seen[0] != base[0] || seen[1] != base[length - 1]) {
        forbid(*home->about,
               "an operation uses a region of which memory was unmapped or given back");
    }
}

void check_pins_of(uint64_t key, uint64_t address)
{
    std::lock_guard guard(all_mutex);
    for (const mr *m : all) {
        auto base =
            m->home->about->mr_mode & FI_MR_VIRT_ADDR ? reinterpret_cast<uintptr_t>(m->base) : 0;
        if (m->outer.key == key && address - base < m->length) {
            m->check_pins();
        }
    }
}

} // namespace strict
