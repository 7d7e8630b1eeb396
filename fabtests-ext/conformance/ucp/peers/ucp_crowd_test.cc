// SPDX-License-Identifier: BSD-3-Clause
//
// Hundreds of peers on a node, and messages that a worker sends to itself: each answer goes to the
// peer that asked, and a peer that libfabric's shm has no entry for uses the next transport.
#include "fabtests-ext/common/ucp_entity.h"
#include "fabtests-ext/common/ucp_pair.h"

#include <map>
#include <sys/resource.h>

using namespace ucp_test;

namespace {

// Workers of a few contexts that each talk to one.
class ucp_crowd : public testing::TestWithParam<const char *> {
  protected:
    static constexpr size_t of_a_context = 100;

    void SetUp() override
    {
        rlimit most = {};
        ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &most));
        most.rlim_cur = most.rlim_max;
        ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &most));
        if (most.rlim_cur < 12000) {
            GTEST_SKIP() << "RLIMIT_NOFILE is " << most.rlim_cur << ", 12000 are wanted";
        }
        server_ = std::make_unique<entity>(over());
    }
    void TearDown() override
    {
        for (ucp_ep_h ep : eps_) {
            ucs_status_ptr_t r = close_nb(ep, true);
            EXPECT_TRUE(!UCS_PTR_IS_PTR(r) || ends(r));
        }
    }
    static options over()
    {
        options o;
        o.tls = GetParam();
        o.features = UCP_FEATURE_TAG;
        return o;
    }
    void come(size_t count)
    {
        while (workers_.size() < count) {
            if (workers_.size() % of_a_context == 0) {
                contexts_.push_back(std::make_unique<entity>(over()));
                workers_.push_back(contexts_.back()->worker);
            } else {
                workers_.push_back(contexts_.back()->second_worker(over()));
            }
        }
    }
    ucp_ep_h connect(ucp_worker_h from, ucp_worker_h to)
    {
        ucp_address_t *address = nullptr;
        size_t length = 0;
        EXPECT_EQ(UCS_OK, ucp_worker_get_address(to, &address, &length));
        ucp_ep_params_t p = {};
        p.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLER |
                       UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
        p.address = address;
        p.err_mode = UCP_ERR_HANDLING_MODE_PEER;
        p.err_handler.cb = [](void *arg, ucp_ep_h, ucs_status_t) {
            ++static_cast<ucp_crowd *>(arg)->failed_;
        };
        p.err_handler.arg = this;
        ucp_ep_h ep = nullptr;
        EXPECT_EQ(UCS_OK, ucp_ep_create(from, &p, &ep));
        ucp_worker_release_address(to, address);
        eps_.push_back(ep);
        return ep;
    }
    bool ends(ucs_status_ptr_t r, ucp_worker_h also = nullptr)
    {
        if (!UCS_PTR_IS_PTR(r)) {
            return r == nullptr;
        }
        auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(patience);
        while (ucp_request_check_status(r) == UCS_INPROGRESS) {
            ucp_worker_progress(server_->worker);
            if (also) {
                ucp_worker_progress(also);
            }
            if (std::chrono::steady_clock::now() > end) {
                return false;
            }
        }
        bool ok = ucp_request_check_status(r) == UCS_OK;
        ucp_request_free(r);
        return ok;
    }
    // A number there, to the first receiver of its tag.
    bool pass(ucp_ep_h ep, ucp_worker_h from, ucp_worker_h to, uint64_t number, uint64_t *got)
    {
        ucp_request_param_t p = {};
        ucs_status_ptr_t r = ucp_tag_recv_nbx(to, got, sizeof(*got), 7, ~ucp_tag_t(0), &p);
        ucp_worker_h other = from == server_->worker ? to : from;
        bool sent = ends(ucp_tag_send_nbx(ep, &number, sizeof(number), 7, &p), other);
        return sent && ends(r, other);
    }
    static std::string transport(ucp_ep_h ep)
    {
        ucp_transport_entry_t entries[8] = {};
        ucp_ep_attr_t attr = {};
        attr.field_mask = UCP_EP_ATTR_FIELD_TRANSPORTS;
        attr.transports.entries = entries;
        attr.transports.num_entries = std::size(entries);
        attr.transports.entry_size = sizeof(entries[0]);
        EXPECT_EQ(UCS_OK, ucp_ep_query(ep, &attr));
        return attr.transports.num_entries ? entries[0].transport_name : "";
    }

    unsigned failed_ = 0;
    std::unique_ptr<entity> server_;
    std::vector<std::unique_ptr<entity>> contexts_;
    std::vector<ucp_worker_h> workers_;
    std::vector<ucp_ep_h> eps_;
};

TEST_P(ucp_crowd, everybody_gets_its_own_answer)
{
    constexpr size_t peers = 300;
    come(peers);
    std::vector<ucp_ep_h> there, back;
    for (size_t i = 0; i < peers; ++i) {
        there.push_back(connect(workers_[i], server_->worker));
        back.push_back(connect(server_->worker, workers_[i]));
        uint64_t got = 0;
        ASSERT_TRUE(pass(there[i], workers_[i], server_->worker, i + 1, &got)) << "peer " << i;
        ASSERT_EQ(i + 1, got);
        ASSERT_TRUE(pass(back[i], server_->worker, workers_[i], 1000 + i, &got)) << "peer " << i;
        ASSERT_EQ(1000 + i, got);
    }
    std::map<std::string, int> carried;
    for (size_t i = 0; i < peers; ++i) {
        uint64_t got = 0;
        ASSERT_TRUE(pass(back[i], server_->worker, workers_[i], 2000 + i, &got)) << "peer " << i;
        ASSERT_EQ(2000 + i, got);
        ++carried[transport(back[i])];
    }
    EXPECT_EQ(0u, failed_);
    for (const auto &[name, count] : carried) {
        printf("%s carries answers to %d peers\n", name.c_str(), count);
    }
    bool core = std::string(GetParam()).find("ofi_shm") == 0;
    EXPECT_EQ(core ? 2u : 1u, carried.size());
}

// UCX takes as many, and more.
TEST_P(ucp_crowd, a_worker_sends_itself_what_it_receives_later)
{
    constexpr uint64_t messages = 2000;
    ucp_ep_h self = connect(server_->worker, server_->worker);
    std::vector<char> data(2048);
    std::vector<ucs_status_ptr_t> sent;
    ucp_request_param_t p = {};
    for (uint64_t i = 0; i < messages; ++i) {
        memcpy(data.data(), &i, sizeof(i));
        ucs_status_ptr_t r = ucp_tag_send_nbx(self, data.data(), data.size(), 7, &p);
        ASSERT_TRUE(ends(r)) << "message " << i;
    }
    for (uint64_t i = 0; i < messages; ++i) {
        uint64_t got = 0;
        ASSERT_TRUE(ends(
            ucp_tag_recv_nbx(server_->worker, data.data(), data.size(), 7, ~ucp_tag_t(0), &p)));
        memcpy(&got, data.data(), sizeof(got));
        ASSERT_EQ(i, got);
    }
}

UCP_TEST_OVER(ucp_crowd, "sm,tcp,self", "ofi_shm,tcp,self");

} // namespace
