// SPDX-License-Identifier: BSD-3-Clause
//
// The steps of a schedule of two UCP workers (ucp_model.h), the messages and the calls under way.
#pragma once

#include "fabtests-ext/conformance/common/ucp_model_am.h"

#include <ucp/api/ucp.h>

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <vector>

namespace ucp_model {

enum kind : unsigned {
    send,
    receive,
    settle,
    probe,
    take,
    cancel,
    put,
    get,
    active,
    stream,
    flush,
    part // says how the endpoints are closed in the end
};
inline const std::vector<unsigned> kinds = {
    send, send, send,   receive, receive, receive, probe, probe,  cancel, take,
    put,  get,  active, active,  stream,  stream,  flush, settle, part};

constexpr ucp_tag_t tags = 4, all_tags = ~ucp_tag_t(0xff), one_tag = ~ucp_tag_t(0),
                    marker = 1 << 16;
inline const double seconds = static_cast<double>(schedule::waiting.count());
constexpr unsigned messages = 7, farewell = 8, visits = 9; // active messages

struct message {
    ucp_tag_t tag = 0;
    size_t length = 0;
    unsigned seed = 0; // of its bytes
};

// Of a receive.
struct receiving {
    ucp_tag_t tag = 0, mask = 0;
    std::vector<char> buffer;
    std::optional<message> brings; // by the model
    bool cancelled = false;
    ucs_status_t status = UCS_OK;
    ucp_tag_recv_info_t info = {};
    std::atomic<bool> over = false;

    bool takes(const message &m) const { return ((tag ^ m.tag) & mask) == 0; }
    void bring(const message &m) { brings = m; }
};

// Under way.
struct call {
    std::vector<char> data; // of a send
    std::array<ucp_dt_iov_t, 3> pieces = {};
    am_header header = {}; // of an active message
    std::unique_ptr<receiving> receive;
    ucs_status_ptr_t request = nullptr;
};

} // namespace ucp_model
