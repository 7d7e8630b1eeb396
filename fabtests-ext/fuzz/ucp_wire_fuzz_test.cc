// SPDX-License-Identifier: BSD-3-Clause
//
// Bytes from peers that are damaged or made up: worker addresses, remote keys, private data of
// connections, and every message of the protocols. Nothing may be read beyond what arrived (the
// address sanitizer sees it: each input is a heap block of its exact size), and nothing but an
// error or a dropped message may come of it. The seed is printed; UCXLIKE_FUZZ_SEED repeats a run
// and UCXLIKE_FUZZ_ROUNDS makes it longer.
#include "fabtests-ext/fuzz/asan_options.h"
#include "ucp/connect/address.h"
#include "ucp/connect/cm.h"
#include "ucp/core/am_id.h"
#include "ucp/core/worker.h"
#include "ucp/endpoint/ep.h"
#include "ucs/log.h"

#include "fabtests-ext/common/ucp_entity.h"

#include <algorithm>
#include <cstdlib>
#include <random>

namespace {

using namespace ucp_test;

class wire_fuzz : public testing::Test {
  protected:
    void SetUp() override
    {
        const char *seed = getenv("UCXLIKE_FUZZ_SEED");
        const char *rounds = getenv("UCXLIKE_FUZZ_ROUNDS");
        seed_ = seed ? static_cast<unsigned>(atoi(seed)) : std::random_device()();
        rounds_ = rounds ? atoi(rounds) : 100000;
        random_.seed(seed_);
        printf("UCXLIKE_FUZZ_SEED=%u\n", seed_);
        options o;
        o.tls = "tcp";
        o.features = UCP_FEATURE_TAG | UCP_FEATURE_AM | UCP_FEATURE_STREAM | UCP_FEATURE_RMA |
                     UCP_FEATURE_AMO32 | UCP_FEATURE_AMO64;
        entity_ = std::make_unique<entity>(o);
        address_ = entity_->address();
        // Thousands of lines about damaged input would hide a failure.
        ucs::log::set_sink([](ucs::log::level, const char *, int, const char *) {});
    }
    void TearDown() override
    {
        entity_.reset();
        ucs::log::set_sink(nullptr);
    }

    size_t below(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random_); }
    uint8_t byte() { return static_cast<uint8_t>(below(256)); }

    // Exactly as large as its content, so that one byte more is out of bounds.
    using block = std::unique_ptr<char[]>;
    static block exact(const std::vector<char> &from)
    {
        block b(new char[from.size()]);
        std::copy(from.begin(), from.end(), b.get());
        return b;
    }

    // A few bytes or bits are changed.
    std::vector<char> damage(std::vector<char> data)
    {
        for (size_t n = 1 + below(4); n > 0 && !data.empty(); --n) {
            char &c = data[below(data.size())];
            c = below(2) ? static_cast<char>(byte()) : static_cast<char>(c ^ (1 << below(8)));
        }
        return data;
    }
    // The same, and it may end early or go on.
    std::vector<char> damage_and_cut(std::vector<char> data)
    {
        data = damage(std::move(data));
        if (below(2)) {
            data.resize(below(data.size() + 32), static_cast<char>(byte()));
        }
        return data;
    }

    // To the own worker, and connected.
    ucp_ep_h loopback()
    {
        ucp_ep_h ep = nullptr;
        EXPECT_EQ(UCS_OK, create_ep(*entity_, address_, &ep));
        ucp_request_param_t p = {};
        EXPECT_EQ(UCS_OK, wait({entity_.get()}, ucp_ep_flush_nbx(ep, &p)));
        return ep;
    }
    void close(ucp_ep_h ep) { (void)wait({entity_.get()}, close_nb(ep)); }

    unsigned seed_ = 0;
    int rounds_ = 0;
    std::mt19937 random_;
    std::unique_ptr<entity> entity_;
    std::vector<char> address_;
};

TEST_F(wire_fuzz, worker_address)
{
    for (int i = 0; i < rounds_; ++i) {
        std::vector<char> bad = damage_and_cut(address_);
        block b = exact(bad);
        ucp::unpacked_address out;
        ucs_status_t status = ucp::unpack_address(b.get(), bad.size(), &out);
        if (bad.size() >= address_.size() &&
            !memcmp(bad.data(), address_.data(), address_.size())) {
            continue; // damaged into itself
        }
        ASSERT_EQ(UCS_ERR_INVALID_ADDR, status) << "round " << i;
    }
}

// The call has no length: it trusts the length of the address once the head proved good.
TEST_F(wire_fuzz, endpoint_from_a_damaged_address)
{
    for (int i = 0; i < rounds_ / 10; ++i) {
        std::vector<char> bad = damage(address_);
        if (bad == address_) {
            continue;
        }
        block b = exact(bad);
        ucp_ep_h ep = nullptr;
        ASSERT_EQ(UCS_ERR_INVALID_ADDR, create_ep(*entity_, bad, &ep)) << "round " << i;
        ASSERT_EQ(nullptr, ep);
        ucp_worker_address_attr_t attr = {};
        attr.field_mask = UCP_WORKER_ADDRESS_ATTR_FIELD_UID;
        auto *address = reinterpret_cast<ucp_address_t *>(b.get());
        ASSERT_EQ(UCS_ERR_INVALID_ADDR, ucp_worker_address_query(address, &attr)) << "round " << i;
    }
}

TEST_F(wire_fuzz, remote_key)
{
    ucp_ep_h ep = loopback();
    char memory[256];
    ucp_mem_map_params_t params = {};
    params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
    params.address = memory;
    params.length = sizeof(memory);
    ucp_mem_h memh;
    ASSERT_EQ(UCS_OK, ucp_mem_map(entity_->context, &params, &memh));
    void *packed;
    size_t length;
    ASSERT_EQ(UCS_OK, ucp_rkey_pack(entity_->context, memh, &packed, &length));
    std::vector<char> good(static_cast<char *>(packed), static_cast<char *>(packed) + length);
    ucp_rkey_buffer_release(packed);
    for (int i = 0; i < rounds_; ++i) {
        std::vector<char> bad = damage(good);
        block b = exact(bad);
        ucp_rkey_h rkey = nullptr;
        ucs_status_t status = ucp_ep_rkey_unpack(ep, b.get(), &rkey);
        if (bad != good) {
            ASSERT_NE(UCS_OK, status) << "round " << i;
        }
        if (rkey) {
            ucp_rkey_destroy(rkey);
        }
    }
    ASSERT_EQ(UCS_OK, ucp_mem_unmap(entity_->context, memh));
    close(ep);
}

TEST_F(wire_fuzz, private_data_of_connections)
{
    // Both kinds begin with a version and have the lengths of the address and of the greeting in
    // bytes 4 to 7.
    for (size_t head : {size_t(16), size_t(32)}) {
        std::vector<char> good(head);
        good[0] = ucp::hello_protocol.version;
        const std::string greeting = "a greeting";
        const uint16_t lengths[] = {static_cast<uint16_t>(address_.size()),
                                    static_cast<uint16_t>(greeting.size())};
        memcpy(good.data() + 4, lengths, sizeof(lengths));
        good.insert(good.end(), address_.begin(), address_.end());
        good.insert(good.end(), greeting.begin(), greeting.end());
        std::vector<uint8_t> undamaged(good.begin(), good.end());
        ucp::client_hello whole_client = {};
        ucp::server_hello whole_server = {};
        ASSERT_EQ(UCS_OK, head == 32 ? ucp::parse_client_hello(undamaged, &whole_client)
                                     : ucp::parse_server_hello(undamaged, &whole_server));
        for (int i = 0; i < rounds_ / 2; ++i) {
            std::vector<char> bad = damage_and_cut(good);
            std::vector<uint8_t> data(bad.begin(), bad.end());
            data.shrink_to_fit();
            ucp::unpacked_address peer;
            ucp::client_hello client = {};
            if (ucp::parse_client_hello(data, &client) == UCS_OK) {
                ASSERT_EQ(client.greeting.data(), client.address + client.address_length);
                ASSERT_EQ(client.greeting.data() + client.greeting.size(),
                          data.data() + data.size());
                (void)ucp::unpack_address(client.address, client.address_length, &peer);
            }
            ucp::server_hello server = {};
            if (ucp::parse_server_hello(data, &server) == UCS_OK) {
                ASSERT_EQ(server.greeting.data(), server.address + server.address_length);
                ASSERT_EQ(server.greeting.data() + server.greeting.size(),
                          data.data() + data.size());
                (void)ucp::unpack_address(server.address, server.address_length, &peer);
            }
        }
    }
}

// Every handler gets every kind of message: random bytes, in which ids that exist are put here and
// there.
TEST_F(wire_fuzz, messages)
{
    ucp_ep_h ep = loopback();
    char memory[4096] = "";
    auto on_message = [](void *, const void *, size_t, void *, size_t,
                         const ucp_am_recv_param_t *) { return UCS_OK; };
    ASSERT_EQ(UCS_OK, set_am_handler(entity_->worker, 1, on_message));
    for (int i = 0; i < rounds_; ++i) {
        const ucp::am_handler_entry &row = ucp::am_handlers[below(ucp::am_handler_count)];
        std::vector<char> data(below(below(4) ? 128 : 2048));
        for (char &c : data) {
            c = below(3) ? static_cast<char>(byte()) : 0;
        }
        for (size_t n = below(4); n > 0 && data.size() >= 8; --n) {
            uint64_t id = below(2) ? ep->local_id : below(16);
            memcpy(data.data() + 8 * below(data.size() / 8), &id, sizeof(id));
        }
        block b = exact(data);
        entity_->worker->inside_progress = true;
        (void)row.fn(entity_->worker, b.get(), data.size(), 0);
        entity_->worker->inside_progress = false;
        if (i % 64 == 0) {
            entity_->progress();
        }
        if (i % 1024 == 0) {
            // Takes what was kept as unexpected.
            ucp_tag_recv_info_t info;
            while (ucp_tag_message_h m = ucp_tag_probe_nb(entity_->worker, 0, 0, 1, &info)) {
                ucp_request_param_t p = {};
                void *r = ucp_tag_msg_recv_nbx(entity_->worker, memory, sizeof(memory), m, &p);
                if (UCS_PTR_IS_PTR(r)) {
                    ucp_request_free(r);
                }
            }
        }
    }
    close(ep);
}

} // namespace
