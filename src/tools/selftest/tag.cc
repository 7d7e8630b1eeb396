// SPDX-License-Identifier: BSD-3-Clause
// Tagged messages, of sizes below and above the threshold of rendezvous: see selftest.h.
#include "tools/selftest/selftest.h"

namespace selftest::tags {
namespace {

constexpr size_t eager_sizes[] = {0, 1, 8, 127, 1000, 4096, 8000};
constexpr size_t rendezvous_sizes[] = {300000, 1 << 20, 5000001};
constexpr ucp_tag_t first_tag = 0x1234567800000000;
constexpr ucp_tag_t whole_tag = ~0ull;

ucs_status_ptr_t receive(peer &p, std::span<char> to, ucp_tag_t tag)
{
    ucp_request_param_t param = {};
    return ucp_tag_recv_nbx(p.worker, to.data(), to.size(), tag, whole_tag, &param);
}

ucs_status_ptr_t send(peer &p, std::span<const char> from, ucp_tag_t tag)
{
    ucp_request_param_t param = {};
    return ucp_tag_send_nbx(p.ep, from.data(), from.size(), tag, &param);
}

// Twice: to a receive that waits, and to one that comes after the message.
void send_all(peer &p, std::span<const size_t> sizes, bool is_expected)
{
    ucp_tag_t tag = first_tag;
    if (is_expected) {
        p.meet();
    }
    std::vector<std::vector<char>> data;
    std::vector<ucs_status_ptr_t> requests;
    for (size_t size : sizes) {
        data.push_back(filled(size, tag));
        requests.push_back(send(p, data.back(), tag++));
    }
    if (!is_expected) {
        p.meet();
    }
    for (ucs_status_ptr_t request : requests) {
        p.wait(request, "ucp_tag_send_nbx");
    }
}

void receive_all(peer &p, std::span<const size_t> sizes, bool is_expected)
{
    ucp_tag_t tag = first_tag;
    if (!is_expected) {
        p.meet();
    }
    std::vector<std::vector<char>> data;
    std::vector<ucs_status_ptr_t> requests;
    for (size_t size : sizes) {
        data.emplace_back(size);
        requests.push_back(receive(p, data.back(), tag++));
    }
    if (is_expected) {
        p.meet();
    }
    for (size_t i = 0; i < sizes.size(); ++i) {
        p.wait(requests[i], "ucp_tag_recv_nbx");
        compare(data[i], first_tag + i, "tagged message");
    }
}

std::string sends(peer &p, std::span<const size_t> sizes)
{
    send_all(p, sizes, true);
    send_all(p, sizes, false);
    return {};
}

std::string receives(peer &p, std::span<const size_t> sizes)
{
    receive_all(p, sizes, true);
    receive_all(p, sizes, false);
    return {};
}

} // namespace
} // namespace selftest::tags

namespace selftest {

const test tag_eager = {"tag eager", UCP_FEATURE_TAG, false,
                        [](peer &p) { return tags::sends(p, tags::eager_sizes); },
                        [](peer &p) { return tags::receives(p, tags::eager_sizes); }};

const test tag_rendezvous = {"tag rendezvous", UCP_FEATURE_TAG, false,
                             [](peer &p) { return tags::sends(p, tags::rendezvous_sizes); },
                             [](peer &p) { return tags::receives(p, tags::rendezvous_sizes); }};

const test large_message = {"large message", UCP_FEATURE_TAG, false,
                            [](peer &p) {
                                tags::send_all(p, {&p.about.large, 1}, true);
                                return std::to_string(p.about.large) + " bytes";
                            },
                            [](peer &p) {
                                tags::receive_all(p, {&p.about.large, 1}, true);
                                return std::string();
                            }};

} // namespace selftest
