// SPDX-License-Identifier: BSD-3-Clause
// What a fence and a flush promise of puts: see selftest.h.
#include "tools/selftest/selftest.h"

#include <atomic>
#include <cstring>

namespace selftest::orders {
namespace {

constexpr size_t block = 20000;
constexpr size_t length = 64 + block; // a counter, and the data that it tells of
constexpr uint64_t rounds = 50;

uint64_t counter_of(const shared_memory &memory)
{
    return std::atomic_ref(*reinterpret_cast<uint64_t *>(const_cast<char *>(memory.data.data())))
        .load(std::memory_order_acquire);
}

std::string owns(peer &p)
{
    shared_memory memory(&p, true, length);
    p.meet();
    for (uint64_t i = 1; i <= rounds; ++i) {
        p.until([&] { return counter_of(memory) >= i; }, "the put behind a fence");
        compare(std::span(memory.data).subspan(64), i, "data before a fence");
        p.meet();
    }
    p.hear(); // it has flushed
    compare(std::span(memory.data).subspan(64), rounds + 1, "data before a flush");
    return {};
}

std::string reaches(peer &p)
{
    shared_memory memory(&p, false, length);
    p.meet();
    ucp_request_param_t param = {};
    for (uint64_t i = 1; i <= rounds; ++i) {
        std::vector<char> data = filled(block, i);
        ucs_status_ptr_t first =
            ucp_put_nbx(p.ep, data.data(), block, memory.address + 64, memory.key, &param);
        must(ucp_worker_fence(p.worker), "ucp_worker_fence");
        ucs_status_ptr_t second =
            ucp_put_nbx(p.ep, &i, sizeof(i), memory.address, memory.key, &param);
        p.wait(first, "ucp_put_nbx");
        p.wait(second, "ucp_put_nbx behind a fence");
        p.meet();
    }
    std::vector<char> data = filled(block, rounds + 1);
    ucs_status_ptr_t last =
        ucp_put_nbx(p.ep, data.data(), block, memory.address + 64, memory.key, &param);
    p.wait(ucp_worker_flush_nbx(p.worker, &param), "ucp_worker_flush_nbx");
    p.say("flushed");
    p.wait(last, "ucp_put_nbx");
    return {};
}

} // namespace
} // namespace selftest::orders

namespace selftest {

const test flush_and_fence = {"flush and fence", UCP_FEATURE_RMA, false, orders::reaches,
                              orders::owns};

} // namespace selftest
