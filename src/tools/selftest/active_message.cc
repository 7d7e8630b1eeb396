// SPDX-License-Identifier: BSD-3-Clause
// Active messages with a header: see selftest.h.
#include "tools/selftest/selftest.h"

namespace selftest::active_messages {
namespace {

constexpr unsigned id = 7;
constexpr size_t header_length = 24;
constexpr size_t eager_sizes[] = {0, 1, 100, 2000, 8000};
constexpr size_t rendezvous_sizes[] = {300000, 1 << 20};

struct received {
    peer *p;
    std::span<const size_t> sizes;
    size_t arrived = 0;
    std::string wrong; // what is, if anything
    std::vector<char> data;
    void *rendezvous = nullptr; // of the message that is to be fetched
};

ucs_status_t arrive(void *arg, const void *header, size_t length, void *data, size_t data_length,
                    const ucp_am_recv_param_t *param)
{
    auto *in = static_cast<received *>(arg);
    size_t number = in->arrived++;
    try {
        if (number >= in->sizes.size() || length != header_length ||
            data_length != in->sizes[number]) {
            throw failure("active message: a length is wrong");
        }
        compare({static_cast<const char *>(header), length}, 1000 + number, "header");
        if (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) {
            in->rendezvous = data;
            return UCS_INPROGRESS;
        }
        in->data.assign(static_cast<char *>(data), static_cast<char *>(data) + data_length);
    } catch (const failure &f) {
        in->wrong = f.what();
    }
    return UCS_OK;
}

std::string receives(peer &p, std::span<const size_t> sizes)
{
    received in = {.p = &p, .sizes = sizes, .wrong = {}, .data = {}};
    ucp_am_handler_param_t handler = {};
    handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                         UCP_AM_HANDLER_PARAM_FIELD_ARG;
    handler.id = id;
    handler.cb = arrive;
    handler.arg = &in;
    must(ucp_worker_set_am_recv_handler(p.worker, &handler), "ucp_worker_set_am_recv_handler");
    for (size_t i = 0; i < sizes.size(); ++i) {
        p.meet();
        p.until([&] { return in.arrived > i; }, "arrival of an active message");
        if (!in.wrong.empty()) {
            throw failure(in.wrong);
        }
        if (in.rendezvous) {
            in.data.assign(sizes[i], 0);
            ucp_request_param_t param = {};
            p.wait(ucp_am_recv_data_nbx(p.worker, std::exchange(in.rendezvous, nullptr),
                                        in.data.data(), sizes[i], &param),
                   "ucp_am_recv_data_nbx");
        }
        compare(in.data, i, "active message");
    }
    return {};
}

std::string sends(peer &p, std::span<const size_t> sizes, uint32_t flags)
{
    for (size_t i = 0; i < sizes.size(); ++i) {
        p.meet();
        std::vector<char> header = filled(header_length, 1000 + i);
        std::vector<char> data = filled(sizes[i], i);
        ucp_request_param_t param = {};
        param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
        param.flags = flags;
        p.wait(ucp_am_send_nbx(p.ep, id, header.data(), header.size(), data.data(), data.size(),
                               &param),
               "ucp_am_send_nbx");
    }
    return {};
}

} // namespace
} // namespace selftest::active_messages

namespace selftest {

const test am_eager = {
    "active message eager", UCP_FEATURE_AM, false,
    [](peer &p) {
        return active_messages::sends(p, active_messages::eager_sizes, UCP_AM_SEND_FLAG_EAGER);
    },
    [](peer &p) { return active_messages::receives(p, active_messages::eager_sizes); }};

const test am_rendezvous = {
    "active message rendezvous", UCP_FEATURE_AM, false,
    [](peer &p) {
        return active_messages::sends(p, active_messages::rendezvous_sizes, UCP_AM_SEND_FLAG_RNDV);
    },
    [](peer &p) { return active_messages::receives(p, active_messages::rendezvous_sizes); }};

} // namespace selftest
