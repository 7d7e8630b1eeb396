// SPDX-License-Identifier: BSD-3-Clause
// Descriptors that a peer names: what is not memory or a pipe of ours is not opened.
#include "uct/shared/foreign_fd.h"

#include "ucs/error.h"
#include "ucs/sys.h"

#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

constexpr size_t size = 8192;

// Closes it at the end.
struct owned {
    explicit owned(int fd) : fd(fd) { EXPECT_GE(fd, 0); }
    owned(const owned &) = delete;
    owned &operator=(const owned &) = delete;
    ~owned() { close(fd); }
    uct::foreign_fd claim() const
    {
        return {static_cast<uint32_t>(getpid()), static_cast<uint32_t>(fd)};
    }
    const int fd;
};

ucs_status_t memory_status(const uct::foreign_fd &claim, uint64_t nonce, size_t least = size)
{
    return ucs::guard_quietly([&] { close(uct::open_memory(claim, nonce, least)); });
}

ucs_status_t pipe_status(const uct::foreign_fd &claim, uint64_t inode)
{
    return ucs::guard_quietly([&] { close(uct::open_pipe(claim, inode)); });
}

TEST(uct_foreign_fd, memory_is_opened_by_its_nonce_and_size)
{
    uint64_t nonce = ucs::random_u64();
    owned memory(uct::create_memory(nonce, size));
    EXPECT_EQ(UCS_OK, memory_status(memory.claim(), nonce));
    EXPECT_EQ(UCS_ERR_UNREACHABLE, memory_status(memory.claim(), nonce + 1));
    EXPECT_EQ(UCS_ERR_UNREACHABLE, memory_status(memory.claim(), nonce, size + 1));
}

TEST(uct_foreign_fd, memory_never_shrinks_under_a_mapping)
{
    uint64_t nonce = ucs::random_u64();
    owned memory(uct::create_memory(nonce, size));
    EXPECT_NE(0, ftruncate(memory.fd, 0));

    char name[64];
    snprintf(name, sizeof(name), "ucxlike-%016lx", static_cast<unsigned long>(nonce));
    owned unsealed(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
    ASSERT_EQ(0, ftruncate(unsealed.fd, size));
    EXPECT_EQ(UCS_ERR_UNREACHABLE, memory_status(unsealed.claim(), nonce));
    ASSERT_EQ(0, fcntl(unsealed.fd, F_ADD_SEALS, F_SEAL_SHRINK));
    EXPECT_EQ(UCS_OK, memory_status(unsealed.claim(), nonce));
}

TEST(uct_foreign_fd, files_directories_and_devices_are_no_memory)
{
    uint64_t nonce = ucs::random_u64();
    char path[] = "/tmp/uct_foreign_fd_XXXXXX";
    owned file(mkstemp(path));
    ASSERT_EQ(0, ftruncate(file.fd, size));
    // Named as the memory would be.
    char dir[] = "/tmp/uct_foreign_fd_XXXXXX";
    ASSERT_NE(nullptr, mkdtemp(dir));
    char name[64];
    snprintf(name, sizeof(name), "/memfd:ucxlike-%016lx (deleted)",
             static_cast<unsigned long>(nonce));
    std::string named = std::string(dir) + name;
    owned disguised(open(named.c_str(), O_CREAT | O_RDWR, 0600));
    ASSERT_EQ(0, ftruncate(disguised.fd, size));
    owned directory(open("/tmp", O_RDONLY | O_DIRECTORY));
    owned device(open("/dev/null", O_RDWR));
    for (const owned *other : {&file, &disguised, &directory, &device}) {
        EXPECT_EQ(UCS_ERR_UNREACHABLE, memory_status(other->claim(), nonce));
        EXPECT_EQ(UCS_ERR_UNREACHABLE, pipe_status(other->claim(), uct::inode_of(other->fd)));
    }
    unlink(path);
    unlink(named.c_str());
    rmdir(dir);
}

TEST(uct_foreign_fd, a_pipe_is_opened_by_its_inode)
{
    int ends[2];
    ASSERT_EQ(0, pipe(ends));
    owned reader(ends[0]);
    owned writer(ends[1]);
    EXPECT_EQ(UCS_OK, pipe_status(writer.claim(), uct::inode_of(ends[0])));
    EXPECT_EQ(UCS_ERR_UNREACHABLE, pipe_status(writer.claim(), uct::inode_of(ends[0]) + 1));
    EXPECT_EQ(UCS_ERR_UNREACHABLE, memory_status(writer.claim(), 1, 0));
}

TEST(uct_foreign_fd, a_named_pipe_is_refused)
{
    char dir[] = "/tmp/uct_foreign_fd_XXXXXX";
    ASSERT_NE(nullptr, mkdtemp(dir));
    std::string path = std::string(dir) + "/fifo";
    ASSERT_EQ(0, mkfifo(path.c_str(), 0600));
    {
        owned named(open(path.c_str(), O_RDWR));
        EXPECT_EQ(UCS_ERR_UNREACHABLE, pipe_status(named.claim(), uct::inode_of(named.fd)));
    }
    unlink(path.c_str());
    rmdir(dir);
}

TEST(uct_foreign_fd, what_is_not_open_is_refused)
{
    EXPECT_EQ(UCS_ERR_UNREACHABLE, memory_status({static_cast<uint32_t>(getpid()), 999999}, 1));
    EXPECT_EQ(UCS_ERR_UNREACHABLE, memory_status({0, 0}, 1));
    EXPECT_EQ(UCS_ERR_UNREACHABLE, pipe_status({UINT32_MAX, 1}, 1));
}

} // namespace
