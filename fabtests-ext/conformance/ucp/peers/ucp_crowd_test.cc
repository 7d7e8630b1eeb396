// SPDX-License-Identifier: BSD-3-Clause
//
// Hundreds of peers on a node, and messages that a worker sends to itself: each answer goes to the
// peer that asked, and a peer that libfabric's shm has no entry for uses the next transport. And
// thousands of addresses that nothing is sent to, and of clients of a listener.
#include "fabtests-ext/common/open_files.h"
#include "fabtests-ext/common/sanitized.h"
#include "fabtests-ext/common/ucp_entity.h"
#include "fabtests-ext/common/ucp_pair.h"
#include "fabtests-ext/conformance/common/ucp_address.h"
#include "ucp/core/worker.h"

#include <csignal>
#include <map>
#include <set>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace ucp_test;

namespace {

constexpr rlim_t enough = 12000; // descriptors, for 10,000 clients

// Workers of a few contexts that each talk to one.
class ucp_crowd : public testing::TestWithParam<const char *> {
  protected:
    static constexpr size_t of_a_context = 100;

    void SetUp() override
    {
        if (!may_open(enough)) {
            GTEST_SKIP() << "RLIMIT_NOFILE is below " << enough;
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
        ucp_ep_h ep = connect(from, address);
        ucp_worker_release_address(to, address);
        return ep;
    }
    ucp_ep_h connect(ucp_worker_h from, const ucp_address_t *address)
    {
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
        eps_.push_back(ep);
        return ep;
    }
    // The address of a worker that is not there any more, where another is.
    static std::vector<uint8_t> of_nobody(ucp_worker_h other, uint64_t number)
    {
        return address_in_the_name_of(other->uuid + number, *other);
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
    bool core = std::string(GetParam()).find("ofi_shm") == 0;
    const size_t peers = core || !sanitized ? 300 : 100; // libfabric's shm has entries for 256
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

// A job's list of addresses is longer than what a process talks to. UCXLIKE_ADDRESSES: so many.
class ucp_addresses : public ucp_crowd {};

TEST_P(ucp_addresses, that_nobody_uses_cost_no_connection)
{
    const char *wanted = getenv("UCXLIKE_ADDRESSES");
    const uint64_t addresses = wanted ? strtoull(wanted, nullptr, 10) : sanitized ? 5000 : 20000;
    const uint64_t used = addresses / 100;
    come(used);
    std::vector<ucp_ep_h> there;
    for (ucp_worker_h worker : workers_) {
        there.push_back(connect(server_->worker, worker));
    }
    const size_t descriptors = open_files();
    for (uint64_t i = used; i < addresses; ++i) {
        std::vector<uint8_t> address = of_nobody(workers_[i % used], i);
        connect(server_->worker, reinterpret_cast<ucp_address_t *>(address.data()));
    }
    EXPECT_EQ(descriptors, open_files());
    for (uint64_t i = 0; i < used; ++i) {
        uint64_t got = 0;
        ASSERT_TRUE(pass(there[i], server_->worker, workers_[i], i, &got)) << "peer " << i;
        ASSERT_EQ(i, got);
    }
    EXPECT_EQ(0u, failed_);
}

UCP_TEST_OVER(ucp_addresses, "sm,tcp,self", "tcp,self");

// A process with some of the clients. Each says its number, which the server has read when all are
// closed, and closes when all processes have said theirs.
class client_process {
  public:
    client_process(uint64_t first, uint64_t count) : first_(first), count_(count)
    {
        EXPECT_EQ(0, pipe(ends_));
        pid_ = fork();
        if (pid_ == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            close(ends_[1]);
            _exit(run() ? 0 : 1);
        }
        close(ends_[0]);
    }
    client_process(const client_process &) = delete;
    client_process &operator=(const client_process &) = delete;
    ~client_process()
    {
        close(ends_[1]);
        if (pid_ > 0) {
            kill(pid_, SIGKILL);
            waitpid(pid_, nullptr, 0);
        }
    }

    void start(uint16_t port) { EXPECT_EQ(2, write(ends_[1], &port, sizeof(port))); }
    void finish() { EXPECT_EQ(1, write(ends_[1], "", 1)); }
    bool ended()
    {
        int status = 0;
        if (pid_ > 0 && waitpid(pid_, &status, WNOHANG) == pid_) {
            pid_ = -1;
            good_ = WIFEXITED(status) && WEXITSTATUS(status) == 0;
        }
        return pid_ < 0;
    }
    bool good() const { return good_; }

  private:
    bool run()
    {
        constexpr uint64_t at_a_time = 50;
        uint16_t port = 0;
        if (read(ends_[0], &port, sizeof(port)) != sizeof(port)) {
            return false;
        }
        options o;
        o.tls = "tcp,self";
        entity self(o);
        errors seen;
        std::vector<ucp_ep_h> eps(count_);
        std::vector<uint64_t> numbers(count_);
        std::vector<ucs_status_ptr_t> said;
        bool good = true;
        for (uint64_t i = 0; i < count_ && good; ++i) {
            numbers[i] = first_ + i;
            good = connect(self, port, &eps[i], &seen) == UCS_OK;
            said.push_back(good ? send_nb(eps[i], &numbers[i], sizeof(uint64_t), 1) : nullptr);
            said.push_back(good ? flush_nb(eps[i]) : nullptr);
            if (said.size() == 2 * at_a_time || i + 1 == count_) {
                for (ucs_status_ptr_t r : said) {
                    good = wait({&self}, r) == UCS_OK && good;
                }
                said.clear();
            }
        }
        char go;
        good = good && read(ends_[0], &go, 1) == 1 && seen.count == 0;
        std::vector<ucs_status_ptr_t> closing;
        for (ucp_ep_h ep : eps) {
            closing.push_back(ep ? close_nb(ep) : nullptr);
        }
        for (ucs_status_ptr_t r : closing) {
            good = wait({&self}, r) == UCS_OK && good;
        }
        return good && !testing::Test::HasFailure();
    }

    const uint64_t first_, count_;
    int ends_[2] = {-1, -1};
    pid_t pid_ = -1;
    bool good_ = false;
};

// UCXLIKE_CLIENTS: so many.
TEST(ucp_listener_crowd, thousands_of_clients_are_served)
{
    if (!may_open(enough)) {
        GTEST_SKIP() << "RLIMIT_NOFILE is below " << enough;
    }
    constexpr uint64_t processes = 10;
    const char *wanted = getenv("UCXLIKE_CLIENTS");
    const uint64_t of_a_process = (wanted      ? strtoull(wanted, nullptr, 10)
                                   : sanitized ? 500
                                               : 2000) /
                                  processes;
    std::vector<std::unique_ptr<client_process>> clients;
    for (uint64_t i = 0; i < processes; ++i) {
        clients.push_back(std::make_unique<client_process>(i * of_a_process, of_a_process));
    }
    options o;
    o.tls = "tcp,self";
    entity self(o);
    server listening(self);
    for (auto &client : clients) {
        client->start(listening.port);
    }
    std::vector<ucp_ep_h> eps;
    std::vector<std::unique_ptr<errors>> seen;
    std::set<uint64_t> heard;
    uint64_t number = 0;
    ucs_status_ptr_t r = recv_nb(self, &number, sizeof(number), 1);
    ASSERT_TRUE(run_until({&self}, [&] {
        while (!listening.requests.empty()) {
            seen.push_back(std::make_unique<errors>());
            eps.push_back(nullptr);
            EXPECT_EQ(UCS_OK, listening.accept(&eps.back(), seen.back().get()));
        }
        while (!UCS_PTR_IS_PTR(r) || ucp_request_check_status(r) != UCS_INPROGRESS) {
            EXPECT_TRUE(heard.insert(number).second) << number;
            if (UCS_PTR_IS_PTR(r)) {
                EXPECT_EQ(UCS_OK, ucp_request_check_status(r));
                ucp_request_free(r);
            }
            r = recv_nb(self, &number, sizeof(number), 1);
        }
        return heard.size() == processes * of_a_process;
    }));
    EXPECT_EQ(heard.size(), eps.size());
    printf("%zu clients, %zu descriptors\n", heard.size(), open_files());
    for (auto &client : clients) {
        client->finish();
    }
    for (auto &client : clients) {
        EXPECT_TRUE(run_until({&self}, [&] { return client->ended(); }));
        EXPECT_TRUE(client->good());
    }
    ucp_request_cancel(self.worker, r);
    EXPECT_EQ(UCS_ERR_CANCELED, wait({&self}, r));
    for (ucp_ep_h ep : eps) {
        EXPECT_EQ(UCS_OK, wait({&self}, close_nb(ep, true)));
    }
}

} // namespace
