// SPDX-License-Identifier: BSD-3-Clause
// Put and get, at odd places and of several sizes: see selftest.h.
#include "tools/selftest/selftest.h"

namespace selftest::memory_access {
namespace {

constexpr size_t length = 4 << 20;
constexpr size_t sizes[] = {1, 8, 100, 3000, 20001, 1 << 20};
constexpr size_t gap = 64; // around each, and must stay as it is
constexpr uint64_t background = 5;

// Where the data of a put or get is.
size_t place(size_t number)
{
    size_t at = gap;
    for (size_t i = 0; i < number; ++i) {
        at += sizes[i] + gap;
    }
    return at;
}

std::string owns(peer &p)
{
    shared_memory memory(&p, true, length);
    fill(memory.data, background);
    p.meet(); // the gets
    p.meet(); // the puts
    p.meet();
    std::vector<char> wanted = filled(length, background);
    for (size_t i = 0; i < std::size(sizes); ++i) {
        fill(std::span(wanted).subspan(place(i), sizes[i]), 100 + i);
    }
    for (size_t i = 0; i < length; ++i) {
        if (memory.data[i] != wanted[i]) {
            throw failure("put: byte " + std::to_string(i) + " of the memory is wrong");
        }
    }
    return {};
}

std::string reaches(peer &p)
{
    shared_memory memory(&p, false, length);
    std::vector<char> whole = filled(length, background);
    p.meet();
    for (size_t i = 0; i < std::size(sizes); ++i) {
        std::vector<char> data(sizes[i]);
        ucp_request_param_t param = {};
        p.wait(
            ucp_get_nbx(p.ep, data.data(), sizes[i], memory.address + place(i), memory.key, &param),
            "ucp_get_nbx");
        for (size_t k = 0; k < sizes[i]; ++k) {
            if (data[k] != whole[place(i) + k]) {
                throw failure("get of " + std::to_string(sizes[i]) + " bytes: byte " +
                              std::to_string(k) + " is wrong");
            }
        }
    }
    p.meet();
    for (size_t i = 0; i < std::size(sizes); ++i) {
        std::vector<char> data = filled(sizes[i], 100 + i);
        ucp_request_param_t param = {};
        p.wait(
            ucp_put_nbx(p.ep, data.data(), sizes[i], memory.address + place(i), memory.key, &param),
            "ucp_put_nbx");
    }
    p.flush();
    p.meet();
    return {};
}

} // namespace
} // namespace selftest::memory_access

namespace selftest {

const test puts_and_gets = {"put and get", UCP_FEATURE_RMA, false, memory_access::reaches,
                            memory_access::owns};

} // namespace selftest
