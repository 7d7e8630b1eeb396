// SPDX-License-Identifier: BSD-3-Clause
// What both sides of a session have: see selftest.h.
#include "tools/selftest/selftest.h"

#include <chrono>
#include <exception>

namespace selftest {
namespace {

using steady = std::chrono::steady_clock;

// A byte of the pattern: no two places near each other look alike.
char byte_at(uint64_t seed, size_t at)
{
    uint64_t word = (seed + at / 8 + 1) * 0x9e3779b97f4a7c15ull;
    word ^= word >> 29;
    return static_cast<char>(word >> (at % 8 * 8));
}

std::string within(unsigned limit, const char *what)
{
    return std::string(what) + ": not over after " + std::to_string(limit) + " s";
}

} // namespace

void must(ucs_status_t status, const char *what)
{
    if (status != UCS_OK) {
        throw failure(std::string(what) + ": " + ucs_status_string(status));
    }
}

void fill(std::span<char> data, uint64_t seed)
{
    for (size_t i = 0; i < data.size(); ++i) {
        data[i] = byte_at(seed, i);
    }
}

std::vector<char> filled(size_t length, uint64_t seed)
{
    std::vector<char> data(length);
    fill(data, seed);
    return data;
}

void compare(std::span<const char> data, uint64_t seed, const char *what)
{
    for (size_t i = 0; i < data.size(); ++i) {
        if (data[i] != byte_at(seed, i)) {
            throw failure(std::string(what) + ": byte " + std::to_string(i) + " of " +
                          std::to_string(data.size()) + " is wrong");
        }
    }
}

peer::peer(const session &s, uint64_t features, bool watches_death, control *l)
    : about(s), link(l), watches_death_(watches_death)
{
    open(features);
}

void peer::open(uint64_t features)
{
    ucp_config_t *config;
    must(ucp_config_read(nullptr, nullptr, &config), "configuration");
    const std::string alone = "\\" + about.transport; // not what the name is an alias of
    ucs_status_t status = ucp_config_modify(config, "TLS", alone.c_str());
    if (status == UCS_OK && watches_death_) {
        status = ucp_config_modify(config, "KEEPALIVE_INTERVAL", "1s");
    }
    ucp_params_t params = {};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = features;
    if (status == UCS_OK) {
        status = ucp_init(&params, config, &context);
    }
    ucp_config_release(config);
    must(status, "ucp_init");
    ucp_worker_params_t worker_params = {};
    must(ucp_worker_create(context, &worker_params, &worker), "ucp_worker_create");
}

// Of an endpoint that is not to fail, the close waits for the other side, which may be gone: after
// a failure the worker's end is its end.
void peer::close_ep()
{
    if (!watches_death_ && std::uncaught_exceptions() > 0) {
        return;
    }
    ucp_request_param_t param = {};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = watches_death_ ? UCP_EP_CLOSE_FLAG_FORCE : 0;
    ucs_status_ptr_t request = ucp_ep_close_nbx(ep, &param);
    if (UCS_PTR_IS_PTR(request)) {
        auto end = steady::now() + std::chrono::seconds(about.limit);
        while (ucp_request_check_status(request) == UCS_INPROGRESS && steady::now() < end) {
            ucp_worker_progress(worker);
        }
        ucp_request_free(request);
    }
}

peer::~peer()
{
    if (ep) {
        close_ep();
    }
    if (worker) {
        ucp_worker_destroy(worker);
    }
    if (context) {
        ucp_cleanup(context);
    }
}

void peer::connect()
{
    ucp_worker_attr_t attr = {};
    attr.field_mask = UCP_WORKER_ATTR_FIELD_ADDRESS;
    must(ucp_worker_query(worker, &attr), "address of the worker");
    say(std::string(reinterpret_cast<const char *>(attr.address), attr.address_length));
    ucp_worker_release_address(worker, attr.address);
    std::string address = hear();
    ucp_ep_params_t params = {};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    params.address = reinterpret_cast<const ucp_address_t *>(address.data());
    if (watches_death_) {
        params.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
        params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
        params.err_handler = {[](void *arg, ucp_ep_h, ucs_status_t status) {
                                  static_cast<peer *>(arg)->failed_with = status;
                              },
                              this};
    }
    ucs_status_t status = ucp_ep_create(worker, &params, &ep);
    if (status == UCS_ERR_UNSUPPORTED && watches_death_) {
        throw unsupported("ucp_ep_create: no endpoint that reports the death of its peer");
    }
    must(status, "ucp_ep_create");
}

void peer::until(const std::function<bool()> &over, const char *what)
{
    auto end = steady::now() + std::chrono::seconds(about.limit);
    for (unsigned i = 1; !over(); ++i) {
        ucp_worker_progress(worker);
        if (i % 256) {
            continue;
        }
        if (!expects_death) {
            link->has_message();
        }
        if (steady::now() > end) {
            throw failure(within(about.limit, what));
        }
    }
}

void peer::wait(ucs_status_ptr_t request, const char *what)
{
    ucs_status_t status = UCS_PTR_STATUS(request);
    if (UCS_PTR_IS_PTR(request)) {
        until([&] { return (status = ucp_request_check_status(request)) != UCS_INPROGRESS; }, what);
        ucp_request_free(request);
    }
    must(status, what);
}

std::string peer::hear()
{
    auto end = steady::now() + std::chrono::seconds(about.limit);
    while (!link->has_message()) {
        if (steady::now() > end) {
            throw failure(within(about.limit, "message of the other process"));
        }
        for (unsigned i = 0; worker && i < 64; ++i) {
            ucp_worker_progress(worker);
        }
    }
    return link->hear(about.limit);
}

void peer::meet()
{
    say("here");
    if (std::string text = hear(); text != "here") {
        throw failure("the other process is elsewhere in the test");
    }
}

void peer::flush()
{
    ucp_request_param_t param = {};
    wait(ucp_ep_flush_nbx(ep, &param), "flush of the endpoint");
}

shared_memory::shared_memory(peer *p, bool owner, size_t length) : p_(p)
{
    if (!owner) {
        std::string address_text = p->hear();
        std::string packed = p->hear();
        address = std::stoull(address_text);
        must(ucp_ep_rkey_unpack(p->ep, packed.data(), &key), "ucp_ep_rkey_unpack");
        return;
    }
    data.resize(length);
    ucp_mem_map_params_t params = {};
    params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
    params.address = data.data();
    params.length = length;
    must(ucp_mem_map(p->context, &params, &memory_), "ucp_mem_map");
    void *packed;
    size_t packed_length;
    must(ucp_rkey_pack(p->context, memory_, &packed, &packed_length), "ucp_rkey_pack");
    std::string text(static_cast<char *>(packed), packed_length);
    ucp_rkey_buffer_release(packed);
    p->say(std::to_string(reinterpret_cast<uintptr_t>(data.data())));
    p->say(text);
}

shared_memory::~shared_memory()
{
    if (key) {
        ucp_rkey_destroy(key);
    }
    if (memory_) {
        ucp_mem_unmap(p_->context, memory_);
    }
}

} // namespace selftest
