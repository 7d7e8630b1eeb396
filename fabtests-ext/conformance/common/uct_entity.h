// SPDX-License-Identifier: BSD-3-Clause
// What the UCT conformance tests are made of: an entity opens one interface through the public
// calls, a guard watches that every completion is called exactly once and never inside the call
// that posted it, and uct_test runs a test on a pair of entities of each enrolled transport.
#pragma once

#include "fabtests-ext/common/pattern.h"
#include "fabtests-ext/common/sanitized.h"
#include "fabtests-ext/common/transports.h"

#include <uct/api/uct.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace uct_conformance {

// What must come may take so long on a machine with much else to do; only what hangs does.
constexpr std::chrono::seconds patience(300);
constexpr int patience_ms = static_cast<int>(std::chrono::milliseconds(patience).count());

// True while a posting call is on the stack.
inline thread_local bool in_call = false;

template <class F>
auto posting(F &&call)
{
    in_call = true;
    auto result = call();
    in_call = false;
    return result;
}

// A completion that counts its calls.
struct guard {
    guard() : completion{called, 1, UCS_OK} {}
    guard(const guard &) = delete;
    guard &operator=(const guard &) = delete;

    static void called(uct_completion_t *self)
    {
        auto *g = reinterpret_cast<guard *>(self);
        EXPECT_FALSE(in_call) << "completion inside the call that posted it";
        EXPECT_EQ(g->calls, 0) << "completion called twice";
        ++g->calls;
    }

    uct_completion_t completion; // first: called() finds the guard by it
    int calls = 0;
};

struct message {
    uint8_t id;
    std::string data;
};

struct tagged_message {
    uct_tag_t tag;
    uint64_t imm;
    std::string data;
};

class entity {
  public:
    struct options {
        size_t rx_headroom = 0;
        size_t am_alignment = 0;
        size_t am_align_offset = 0;
        const char *conn_timeout = nullptr;
        const char *rx_queue_len = nullptr;
        const char *seg_size = nullptr;
        bool tags = false; // unexpected tagged messages are recorded
        uct_async_event_cb_t on_event = nullptr;
        void *on_event_arg = nullptr;
        const char *device = "lo"; // where there is a choice
        ucs_time_t keepalive = 0;  // 0: none
    };

    entity(const std::string &transport, const options &o)
    {
        if (leaks_by_itself(transport)) {
            throw std::runtime_error("libfabric before 1.18 does not free its net's endpoints");
        }
        open_md(transport, o.device);
        EXPECT_EQ(uct_worker_create(nullptr, UCS_THREAD_MODE_SINGLE, &worker), UCS_OK);
        uct_iface_config_t *config = nullptr;
        EXPECT_EQ(uct_md_iface_config_read(md, transport.c_str(), nullptr, nullptr, &config),
                  UCS_OK);
        if (o.conn_timeout) {
            EXPECT_EQ(uct_config_modify(config, "CONN_TIMEOUT", o.conn_timeout), UCS_OK);
        }
        if (o.seg_size) {
            EXPECT_EQ(uct_config_modify(config, "SEG_SIZE", o.seg_size), UCS_OK);
        }
        if (o.rx_queue_len) {
            EXPECT_EQ(uct_config_modify(config, "RX_QUEUE_LEN", o.rx_queue_len), UCS_OK);
        }
        uct_iface_params_t params{};
        params.field_mask = UCT_IFACE_PARAM_FIELD_OPEN_MODE | UCT_IFACE_PARAM_FIELD_DEVICE |
                            UCT_IFACE_PARAM_FIELD_RX_HEADROOM | UCT_IFACE_PARAM_FIELD_ERR_HANDLER |
                            UCT_IFACE_PARAM_FIELD_ERR_HANDLER_ARG;
        params.open_mode = UCT_IFACE_OPEN_MODE_DEVICE;
        params.mode.device.tl_name = resource.tl_name;
        params.mode.device.dev_name = resource.dev_name;
        params.rx_headroom = headroom = o.rx_headroom;
        params.err_handler = on_error;
        params.err_handler_arg = this;
        if (o.am_alignment) {
            params.field_mask |=
                UCT_IFACE_PARAM_FIELD_AM_ALIGNMENT | UCT_IFACE_PARAM_FIELD_AM_ALIGN_OFFSET;
            params.am_alignment = o.am_alignment;
            params.am_align_offset = o.am_align_offset;
        }
        if (o.tags) {
            params.field_mask |=
                UCT_IFACE_PARAM_FIELD_HW_TM_EAGER_CB | UCT_IFACE_PARAM_FIELD_HW_TM_EAGER_ARG;
            params.eager_cb = on_unexpected;
            params.eager_arg = this;
        }
        if (o.keepalive) {
            params.field_mask |= UCT_IFACE_PARAM_FIELD_KEEPALIVE_INTERVAL;
            params.keepalive_interval = o.keepalive;
        }
        if (o.on_event) {
            params.field_mask |=
                UCT_IFACE_PARAM_FIELD_ASYNC_EVENT_CB | UCT_IFACE_PARAM_FIELD_ASYNC_EVENT_ARG;
            params.async_event_cb = o.on_event;
            params.async_event_arg = o.on_event_arg;
        }
        ucs_status_t status = uct_iface_open(md, worker, &params, config, &iface);
        uct_config_release(config);
        if (status != UCS_OK) {
            uct_worker_destroy(worker);
            uct_md_close(md);
            throw std::runtime_error(ucs_status_string(status));
        }
        EXPECT_EQ(uct_iface_query(iface, &attr), UCS_OK);
        uct_iface_progress_enable(iface, UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
        device_address.resize(attr.device_addr_len + 1);
        iface_address.resize(attr.iface_addr_len + 1);
        EXPECT_EQ(uct_iface_get_device_address(
                      iface, reinterpret_cast<uct_device_addr_t *>(device_address.data())),
                  UCS_OK);
        EXPECT_EQ(uct_iface_get_address(iface,
                                        reinterpret_cast<uct_iface_addr_t *>(iface_address.data())),
                  UCS_OK);
        for (uint8_t id = 0; id < UCT_AM_ID_MAX; ++id) {
            slots[id] = {this, id};
            EXPECT_EQ(uct_iface_set_am_handler(iface, id, on_message, &slots[id], 0), UCS_OK);
        }
    }

    ~entity()
    {
        for (void *desc : kept) {
            uct_iface_release_desc(desc);
        }
        for (uct_ep_h ep : eps) {
            uct_ep_destroy(ep);
        }
        if (iface) {
            uct_iface_close(iface);
        }
        uct_worker_destroy(worker);
        uct_md_close(md);
    }

    // Where others find it, in one piece.
    struct address {
        std::vector<char> device;
        std::vector<char> iface;
    };
    address where() const { return {device_address, iface_address}; }

    uct_ep_h try_connect(const entity &to, ucs_status_t *status)
    {
        return try_connect(to.where(), status);
    }

    uct_ep_h try_connect(const address &to, ucs_status_t *status)
    {
        uct_ep_params_t params{};
        params.field_mask =
            UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_DEV_ADDR | UCT_EP_PARAM_FIELD_IFACE_ADDR;
        params.iface = iface;
        params.dev_addr = reinterpret_cast<const uct_device_addr_t *>(to.device.data());
        params.iface_addr = reinterpret_cast<const uct_iface_addr_t *>(to.iface.data());
        uct_ep_h ep = nullptr;
        *status = uct_ep_create(&params, &ep);
        return ep;
    }

    uct_ep_h connect(const entity &to) { return connect(to.where()); }

    uct_ep_h connect(const address &to)
    {
        ucs_status_t status;
        uct_ep_h ep = try_connect(to, &status);
        EXPECT_EQ(status, UCS_OK);
        if (ep) {
            eps.push_back(ep);
        }
        return ep;
    }

    void destroy(uct_ep_h ep)
    {
        std::erase(eps, ep);
        uct_ep_destroy(ep);
    }

    static ucs_status_t on_message(void *arg, void *data, size_t length, unsigned flags)
    {
        auto *slot = static_cast<handler_slot *>(arg);
        entity *self = slot->self;
        EXPECT_FALSE(in_call) << "message handler inside a posting call";
        self->received.push_back({slot->id, std::string(static_cast<char *>(data), length)});
        self->last_data = data;
        return self->keep_desc(data, flags);
    }

    static ucs_status_t on_unexpected(void *arg, void *data, size_t length, unsigned flags,
                                      uct_tag_t tag, uint64_t imm, void **context)
    {
        auto *self = static_cast<entity *>(arg);
        EXPECT_FALSE(in_call) << "unexpected message inside a posting call";
        EXPECT_TRUE(flags & UCT_CB_PARAM_FLAG_FIRST);
        EXPECT_EQ(*context, nullptr);
        self->unexpected.push_back({tag, imm, std::string(static_cast<char *>(data), length)});
        return self->keep_desc(data, flags);
    }

    // UCS_INPROGRESS when the test wants to keep the descriptor of an arrived message.
    ucs_status_t keep_desc(void *data, unsigned flags)
    {
        if (!keep || !(flags & UCT_CB_PARAM_FLAG_DESC)) {
            return UCS_OK;
        }
        void *desc = static_cast<char *>(data) - headroom;
        memset(desc, 0x5a, headroom); // the headroom is ours as well
        kept.push_back(desc);
        return UCS_INPROGRESS;
    }

    static ucs_status_t on_error(void *arg, uct_ep_h ep, ucs_status_t status)
    {
        auto *self = static_cast<entity *>(arg);
        EXPECT_FALSE(in_call) << "error handler inside a posting call";
        self->errors.push_back({ep, status});
        if (self->destroy_in_handler) {
            self->destroy(ep);
        }
        return UCS_OK;
    }

    bool has(uint64_t flags) const { return (attr.cap.flags & flags) == flags; }

    struct handler_slot {
        entity *self;
        uint8_t id;
    };

    uct_component_h component = nullptr;
    uct_md_h md = nullptr;
    uct_md_attr_t md_attr{};
    uct_tl_resource_desc_t resource{};
    uct_worker_h worker = nullptr;
    uct_iface_h iface = nullptr;
    uct_iface_attr_t attr{};
    size_t headroom = 0;
    std::vector<char> device_address;
    std::vector<char> iface_address;
    std::vector<uct_ep_h> eps;
    handler_slot slots[UCT_AM_ID_MAX];

    bool keep = false;
    bool destroy_in_handler = false;
    std::vector<void *> kept;
    std::vector<message> received;
    std::vector<tagged_message> unexpected;
    void *last_data = nullptr;
    std::vector<std::pair<uct_ep_h, ucs_status_t>> errors;

  private:
    void open_md(const std::string &transport, const std::string &device);
};

// Opens an interface of the entity's domain and device beside the entity's own, in any worker.
inline ucs_status_t open_another(const entity &home, uct_worker_h worker, uct_iface_h *iface)
{
    uct_iface_config_t *config = nullptr;
    EXPECT_EQ(uct_md_iface_config_read(home.md, home.resource.tl_name, nullptr, nullptr, &config),
              UCS_OK);
    uct_iface_params_t params{};
    params.field_mask = UCT_IFACE_PARAM_FIELD_OPEN_MODE | UCT_IFACE_PARAM_FIELD_DEVICE;
    params.open_mode = UCT_IFACE_OPEN_MODE_DEVICE;
    params.mode.device.tl_name = home.resource.tl_name;
    params.mode.device.dev_name = home.resource.dev_name;
    ucs_status_t status = uct_iface_open(home.md, worker, &params, config, iface);
    uct_config_release(config);
    return status;
}

// Such an interface, and its addresses.
struct one_more_interface {
    uct_iface_h iface = nullptr;
    entity::address where;

    one_more_interface(const entity &home, uct_worker_h worker)
    {
        EXPECT_EQ(open_another(home, worker, &iface), UCS_OK);
        uct_iface_progress_enable(iface, UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
        where.device.resize(home.attr.device_addr_len);
        where.iface.resize(home.attr.iface_addr_len);
        auto *device = reinterpret_cast<uct_device_addr_t *>(where.device.data());
        auto *address = reinterpret_cast<uct_iface_addr_t *>(where.iface.data());
        EXPECT_EQ(uct_iface_get_device_address(iface, device), UCS_OK);
        EXPECT_EQ(uct_iface_get_address(iface, address), UCS_OK);
    }
    one_more_interface(const one_more_interface &) = delete;
    ~one_more_interface() { uct_iface_close(iface); }
};

// The memory domain that has the transport, on the device where there is a choice.
inline void entity::open_md(const std::string &transport, const std::string &device)
{
    uct_component_h *list = nullptr;
    unsigned count = 0;
    EXPECT_EQ(uct_query_components(&list, &count), UCS_OK);
    for (unsigned i = 0; i < count && !md; ++i) {
        uct_component_attr_t about{};
        about.field_mask =
            UCT_COMPONENT_ATTR_FIELD_NAME | UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT;
        EXPECT_EQ(uct_component_query(list[i], &about), UCS_OK);
        if (transport != about.name || about.md_resource_count == 0) {
            continue;
        }
        std::vector<uct_md_resource_desc_t> mds(about.md_resource_count);
        about.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
        about.md_resources = mds.data();
        EXPECT_EQ(uct_component_query(list[i], &about), UCS_OK);
        std::string name = mds[0].md_name;
        for (const uct_md_resource_desc_t &m : mds) {
            if (m.md_name == device) {
                name = m.md_name;
            }
        }
        uct_md_config_t *config = nullptr;
        EXPECT_EQ(uct_md_config_read(list[i], nullptr, nullptr, &config), UCS_OK);
        EXPECT_EQ(uct_md_open(list[i], name.c_str(), config, &md), UCS_OK);
        uct_config_release(config);
        component = list[i];
    }
    uct_release_component_list(list);
    if (!md) {
        throw std::runtime_error("no such transport here");
    }
    EXPECT_EQ(uct_md_query(md, &md_attr), UCS_OK);
    uct_tl_resource_desc_t *resources = nullptr;
    EXPECT_EQ(uct_md_query_tl_resources(md, &resources, &count), UCS_OK);
    EXPECT_GE(count, 1u);
    resource = resources[0];
    uct_release_tl_resource_list(resources);
}

// A pair of entities; "self" has one that is both.
class uct_test : public testing::TestWithParam<const char *> {
  protected:
    void SetUp() override
    {
        try {
            open({});
        } catch (const std::exception &e) {
            GTEST_SKIP() << GetParam() << ": " << e.what();
        }
    }

    void TearDown() override
    {
        in_call = false;
        a_.reset();
        b_.reset();
    }

    void open(const entity::options &o)
    {
        a_.reset();
        b_.reset();
        a_ = std::make_unique<entity>(GetParam(), o);
        if (std::string(GetParam()) != "self") {
            b_ = std::make_unique<entity>(GetParam(), o);
        }
    }

    bool alone() const { return !b_; }
    entity &a() { return *a_; }
    entity &b() { return b_ ? *b_ : *a_; }

    unsigned progress()
    {
        unsigned count = a_ ? uct_worker_progress(a_->worker) : 0;
        return count + (b_ ? uct_worker_progress(b_->worker) : 0);
    }

    // Progresses both until it holds; false when that takes too long.
    bool until(const std::function<bool()> &holds)
    {
        auto end = std::chrono::steady_clock::now() + patience;
        while (!holds()) {
            progress();
            if (std::chrono::steady_clock::now() > end) {
                return false;
            }
        }
        return true;
    }

    // Repeats a post until it finds room.
    template <class Post>
    auto post(Post &&call)
    {
        auto end = std::chrono::steady_clock::now() + patience;
        auto result = posting(call);
        while (result == UCS_ERR_NO_RESOURCE && std::chrono::steady_clock::now() < end) {
            progress();
            result = posting(call);
        }
        return result;
    }

    std::unique_ptr<entity> a_;
    std::unique_ptr<entity> b_;
};

inline std::string pattern(size_t length, unsigned seed)
{
    std::string s(length, '\0');
    fill_pattern(s.data(), length, seed);
    return s;
}

struct packed {
    std::string data;
    int calls = 0;
};

inline size_t pack(void *dest, void *arg)
{
    auto *p = static_cast<packed *>(arg);
    ++p->calls;
    if (!p->data.empty()) { // dest may be NULL for nothing
        memcpy(dest, p->data.data(), p->data.size());
    }
    return p->data.size();
}

inline std::string name_of(const testing::TestParamInfo<const char *> &info)
{
    return info.param;
}

// Enrolling a transport is one word here; UCXLIKE_TEST_TLS names others.
#define UCT_CONFORMANCE_TRANSPORTS                                                                 \
    testing::ValuesIn(ucp_test::transports({"self", "sm", "shm", "tcp", "tcprdm", "verbs"}))
#define UCT_INSTANTIATE(suite)                                                                     \
    INSTANTIATE_TEST_SUITE_P(on, suite, UCT_CONFORMANCE_TRANSPORTS, name_of)

} // namespace uct_conformance
