// SPDX-License-Identifier: BSD-3-Clause
// Bytes in order, in other pieces than they were sent: see selftest.h.
#include "tools/selftest/selftest.h"

#include <algorithm>

namespace selftest::streams {
namespace {

constexpr size_t total = 500000;
constexpr uint64_t seed = 42;

std::string sends(peer &p)
{
    std::vector<char> data = filled(total, seed);
    std::vector<ucs_status_ptr_t> requests;
    for (size_t at = 0, size = 1; at < total; at += size, size = size * 3 % 50021 + 1) {
        size = std::min(size, total - at);
        ucp_request_param_t param = {};
        requests.push_back(ucp_stream_send_nbx(p.ep, data.data() + at, size, &param));
    }
    for (ucs_status_ptr_t request : requests) {
        p.wait(request, "ucp_stream_send_nbx");
    }
    return {};
}

std::string receives(peer &p)
{
    std::vector<char> data(total);
    for (size_t at = 0; at < total;) {
        size_t length = std::min<size_t>(total - at, 7777);
        ucp_request_param_t param = {};
        param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
        param.flags = UCP_STREAM_RECV_FLAG_WAITALL;
        size_t got = 0;
        p.wait(ucp_stream_recv_nbx(p.ep, data.data() + at, length, &got, &param),
               "ucp_stream_recv_nbx");
        at += length;
    }
    compare(data, seed, "stream");
    return {};
}

} // namespace
} // namespace selftest::streams

namespace selftest {

const test stream_bytes = {"stream", UCP_FEATURE_STREAM, false, streams::sends, streams::receives};

} // namespace selftest
