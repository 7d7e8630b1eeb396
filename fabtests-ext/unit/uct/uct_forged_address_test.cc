// SPDX-License-Identifier: BSD-3-Clause
// Addresses and keys of shared memory that are well-formed and false: what they name is not opened,
// written to or removed.
#include "fabtests-ext/conformance/common/uct_entity.h"
#include "ucs/sys.h"
#include "uct/ofi/core/address.h"
#include "uct/ofi/core/md.h"
#include "uct/shared/foreign_fd.h"

#include <cstdlib>
#include <fcntl.h>
#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace uct_conformance {
namespace {

using uct::ofi::rdm_address;

class uct_forged : public uct_test {
  protected:
    void TearDown() override
    {
        for (int fd : fds_) {
            close(fd);
        }
        uct_test::TearDown();
    }

    int keep_fd(int fd)
    {
        EXPECT_GE(fd, 0);
        fds_.push_back(fd);
        return fd;
    }

    // b's address, changed; of the same length.
    entity::address forge(const std::function<void(rdm_address *about, std::string *name)> &change)
    {
        entity::address false_one = b().where();
        rdm_address about;
        memcpy(&about, false_one.iface.data(), sizeof(about));
        std::string name(false_one.iface.data() + sizeof(about), about.name_length());
        change(&about, &name);
        name.resize(about.name_length());
        memcpy(false_one.iface.data(), &about, sizeof(about));
        memcpy(false_one.iface.data() + sizeof(about), name.data(), name.size());
        return false_one;
    }

    void expect_refused(const entity::address &false_one)
    {
        ucs_status_t status;
        uct_ep_h ep = a().try_connect(false_one, &status);
        EXPECT_EQ(status, UCS_ERR_UNREACHABLE);
        if (ep) {
            uct_ep_destroy(ep);
        }
    }

    void expect_page_refused(int fd)
    {
        expect_refused(forge([&](rdm_address *about, std::string *) {
            about->bell.page_fd = static_cast<uint32_t>(fd);
        }));
    }

    std::string file_of_b()
    {
        return std::string("/dev/shm/") + (b().where().iface.data() + sizeof(rdm_address));
    }

    static bool is_there(const std::string &path) { return access(path.c_str(), F_OK) == 0; }

  private:
    std::vector<int> fds_;
};

TEST_P(uct_forged, a_page_is_not_a_data_file_a_directory_or_other_memory)
{
    size_t size = 2 * ucs::page_size();
    char path[] = "/tmp/uct_forged_XXXXXX";
    int data_file = keep_fd(mkstemp(path));
    unlink(path);
    std::string before(2 * ucs::page_size(), '#');
    ASSERT_EQ(write(data_file, before.data(), before.size()), ssize_t(before.size()));
    ASSERT_EQ(ftruncate(data_file, static_cast<off_t>(size)), 0);
    expect_page_refused(data_file);
    std::string after(before.size(), ' ');
    ASSERT_EQ(pread(data_file, after.data(), after.size(), 0), ssize_t(after.size()));
    EXPECT_EQ(after, before);

    expect_page_refused(keep_fd(::open("/tmp", O_RDONLY | O_DIRECTORY)));
    expect_page_refused(keep_fd(uct::create_memory(ucs::random_u64(), size)));
    expect_page_refused(keep_fd(uct::create_memory(ucs::random_u64(), ucs::page_size())));
    int unsealed = keep_fd(memfd_create("ucxlike-doorbell", MFD_CLOEXEC));
    ASSERT_EQ(ftruncate(unsealed, static_cast<off_t>(size)), 0);
    expect_page_refused(unsealed);
}

TEST_P(uct_forged, a_pipe_is_not_another_pipe_or_a_file)
{
    char path[] = "/tmp/uct_forged_XXXXXX";
    int data_file = keep_fd(mkstemp(path));
    unlink(path);
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    keep_fd(ends[0]);
    keep_fd(ends[1]);
    for (int fd : {data_file, ends[1]}) {
        expect_refused(forge([&](rdm_address *about, std::string *) {
            about->bell.pipe_fd = static_cast<uint32_t>(fd);
        }));
    }
}

TEST_P(uct_forged, a_name_leads_nowhere_else)
{
    std::string others = "/dev/shm/uct_forged-" + std::to_string(getpid());
    int fd = keep_fd(::open(others.c_str(), O_RDWR | O_CREAT, 0600));
    std::string head(ucs::page_size(), '\4'); // a version of the core's
    ASSERT_EQ(write(fd, head.data(), head.size()), ssize_t(head.size()));
    for (std::string wrong : {others.substr(9), "../shm/" + others.substr(9), std::string("/")}) {
        expect_refused(forge([&](rdm_address *about, std::string *name) {
            about->id ^= 1;
            wrong.resize(name->size());
            *name = wrong;
        }));
    }
    EXPECT_TRUE(is_there(others));
    unlink(others.c_str());
}

TEST_P(uct_forged, the_name_of_another_process_is_refused_and_its_file_stays)
{
    expect_refused(forge([](rdm_address *about, std::string *) { // of one that is gone
        about->id ^= 1;
        about->bell.pid = 4194303;
    }));
    expect_refused(forge([](rdm_address *about, std::string *) {
        about->id ^= 1;
        ++about->birth;
    }));
    EXPECT_TRUE(is_there(file_of_b()));
}

TEST_P(uct_forged, a_file_stays_while_its_process_lives)
{
    entity third(GetParam(), {});
    // An address of third with the name of b.
    entity::address mixed = third.where();
    memcpy(mixed.iface.data() + sizeof(rdm_address), b().where().iface.data() + sizeof(rdm_address),
           mixed.iface.size() - sizeof(rdm_address));
    ucs_status_t status;
    uct_ep_h ep = a().try_connect(mixed, &status);
    uct_iface_close(std::exchange(third.iface, nullptr));
    ASSERT_TRUE(until([&] { return status != UCS_OK || !a().errors.empty(); }));
    EXPECT_TRUE(is_there(file_of_b()));
    if (ep) {
        uct_ep_destroy(ep);
    }
}

// The key says that memory is of this process; nothing was registered there.
TEST_P(uct_forged, a_pointer_of_a_key_is_not_followed)
{
    std::string target(4096, 't');
    uct_mem_h memh;
    ASSERT_EQ(uct_md_mem_reg(b().md, target.data(), target.size(), UCT_MD_MEM_ACCESS_ALL, &memh),
              UCS_OK);
    std::vector<char> packed(b().md_attr.rkey_packed_size);
    ASSERT_EQ(uct_md_mkey_pack(b().md, memh, packed.data()), UCS_OK);
    void *nothing = mmap(nullptr, ucs::page_size(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t false_base = reinterpret_cast<uint64_t>(nothing);
    memcpy(packed.data() + offsetof(uct::ofi::packed_rkey, base), &false_base, sizeof(false_base));
    uct_rkey_bundle_t key;
    ASSERT_EQ(uct_rkey_unpack(a().component, packed.data(), &key), UCS_OK);
    EXPECT_EQ(uct::ofi::rkey::of(key.rkey)->owned(false_base, 1), nullptr);
    uct_ep_h ep = a().connect(b());
    uint64_t value = 1;
    (void)posting(
        [&] { return uct_ep_put_short(ep, &value, sizeof(value), false_base, key.rkey); });
    for (int i = 0; i < 100; ++i) {
        progress();
    }
    EXPECT_EQ(uct_rkey_release(a().component, &key), UCS_OK);
    EXPECT_EQ(uct_md_mem_dereg(b().md, memh), UCS_OK);
    munmap(nothing, ucs::page_size());
}

// Beyond what was registered is not reached either.
TEST_P(uct_forged, a_key_of_this_process_ends_with_its_memory)
{
    std::string target(4096, 't');
    uct_mem_h memh;
    ASSERT_EQ(uct_md_mem_reg(b().md, target.data(), 1024, UCT_MD_MEM_ACCESS_ALL, &memh), UCS_OK);
    std::vector<char> packed(b().md_attr.rkey_packed_size);
    ASSERT_EQ(uct_md_mkey_pack(b().md, memh, packed.data()), UCS_OK);
    uct_rkey_bundle_t key;
    ASSERT_EQ(uct_rkey_unpack(a().component, packed.data(), &key), UCS_OK);
    auto at = reinterpret_cast<uint64_t>(target.data());
    const uct::ofi::rkey *k = uct::ofi::rkey::of(key.rkey);
    EXPECT_EQ(k->owned(at, 1024), target.data());
    EXPECT_EQ(k->owned(at + 1023, 2), nullptr);
    EXPECT_EQ(k->owned(at - 1, 1), nullptr);
    EXPECT_EQ(uct_rkey_release(a().component, &key), UCS_OK);
    EXPECT_EQ(uct_md_mem_dereg(b().md, memh), UCS_OK);
    ASSERT_EQ(uct_rkey_unpack(a().component, packed.data(), &key), UCS_OK);
    EXPECT_EQ(uct::ofi::rkey::of(key.rkey)->owned(at, 1), nullptr);
    EXPECT_EQ(uct_rkey_release(a().component, &key), UCS_OK);
}

INSTANTIATE_TEST_SUITE_P(on, uct_forged, testing::Values("shm"), name_of);

} // namespace
} // namespace uct_conformance
