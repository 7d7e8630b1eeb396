// SPDX-License-Identifier: BSD-3-Clause
// A wrong argument of a UCT call outside the data path gives UCS_ERR_INVALID_PARAM and an error
// line that names the argument. Operations on endpoints and interfaces trust their
// handle, as in UCX, where they are inline calls through it.
#include "fabtests-ext/conformance/common/refused.h"

#include <uct/api/uct.h>

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <cstring>
#include <netinet/in.h>

namespace {

class uct_invalid_args : public ::testing::Test {
  protected:
    void SetUp() override
    {
        ASSERT_EQ(UCS_OK, ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK, &async_));
        ASSERT_EQ(UCS_OK, uct_worker_create(async_, UCS_THREAD_MODE_SINGLE, &worker_));
        ASSERT_EQ(UCS_OK, uct_query_components(&components_, &component_count_));
        self_ = component("self");
        ASSERT_NE(nullptr, self_);
        uct_component_attr_t attr = {};
        uct_md_resource_desc_t md[1];
        attr.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
        attr.md_resources = md;
        ASSERT_EQ(UCS_OK, uct_component_query(self_, &attr));
        md_name_ = md[0].md_name;
        ASSERT_EQ(UCS_OK, uct_md_config_read(self_, nullptr, nullptr, &md_config_));
        ASSERT_EQ(UCS_OK, uct_md_open(self_, md_name_.c_str(), md_config_, &md_));
        uct_tl_resource_desc_t *tls;
        unsigned tl_count;
        ASSERT_EQ(UCS_OK, uct_md_query_tl_resources(md_, &tls, &tl_count));
        ASSERT_GE(tl_count, 1u);
        tl_ = tls[0];
        uct_release_tl_resource_list(tls);
        ASSERT_EQ(UCS_OK,
                  uct_md_iface_config_read(md_, tl_.tl_name, nullptr, nullptr, &iface_config_));
        uct_iface_params_t params = iface_params();
        ASSERT_EQ(UCS_OK, uct_iface_open(md_, worker_, &params, iface_config_, &iface_));
        refused::keep_errors();
    }

    void TearDown() override
    {
        refused::let_errors_go();
        uct_iface_close(iface_);
        uct_config_release(iface_config_);
        uct_md_close(md_);
        uct_config_release(md_config_);
        uct_release_component_list(components_);
        uct_worker_destroy(worker_);
        ucs_async_context_destroy(async_);
    }

    uct_component_h component(const char *name)
    {
        for (unsigned i = 0; i < component_count_; ++i) {
            uct_component_attr_t attr = {};
            attr.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME;
            EXPECT_EQ(UCS_OK, uct_component_query(components_[i], &attr));
            if (!strcmp(attr.name, name)) {
                return components_[i];
            }
        }
        return nullptr;
    }

    uct_iface_params_t iface_params()
    {
        uct_iface_params_t params = {};
        params.field_mask = UCT_IFACE_PARAM_FIELD_OPEN_MODE | UCT_IFACE_PARAM_FIELD_DEVICE;
        params.open_mode = UCT_IFACE_OPEN_MODE_DEVICE;
        params.mode.device.tl_name = tl_.tl_name;
        params.mode.device.dev_name = tl_.dev_name;
        return params;
    }

    ucs_async_context_t *async_ = nullptr;
    uct_worker_h worker_ = nullptr;
    uct_component_h *components_ = nullptr;
    unsigned component_count_ = 0;
    uct_component_h self_ = nullptr;
    std::string md_name_;
    uct_md_config_t *md_config_ = nullptr;
    uct_md_h md_ = nullptr;
    uct_tl_resource_desc_t tl_ = {};
    uct_iface_config_t *iface_config_ = nullptr;
    uct_iface_h iface_ = nullptr;
    char memory_[256] = "";
};

TEST_F(uct_invalid_args, components)
{
    uct_component_h *list = nullptr;
    unsigned count;
    REFUSED("components_p", uct_query_components(nullptr, &count));
    REFUSED("num_components_p", uct_query_components(&list, nullptr));
    EXPECT_EQ(nullptr, list);
    uct_component_attr_t attr = {};
    REFUSED("component", uct_component_query(nullptr, &attr));
    REFUSED("component_attr", uct_component_query(self_, nullptr));
    attr.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
    REFUSED("md_resources", uct_component_query(self_, &attr));
}

TEST_F(uct_invalid_args, configuration)
{
    uct_md_config_t *md_config = nullptr;
    uct_iface_config_t *iface_config = nullptr;
    char value[64];
    REFUSED("component", uct_md_config_read(nullptr, nullptr, nullptr, &md_config));
    REFUSED("config_p", uct_md_config_read(self_, nullptr, nullptr, nullptr));
    REFUSED("md", uct_md_iface_config_read(nullptr, tl_.tl_name, nullptr, nullptr, &iface_config));
    REFUSED("config_p", uct_md_iface_config_read(md_, tl_.tl_name, nullptr, nullptr, nullptr));
    REFUSED("config", uct_config_get(nullptr, "X", value, sizeof(value)));
    REFUSED("name", uct_config_get(iface_config_, nullptr, value, sizeof(value)));
    REFUSED("value", uct_config_get(iface_config_, "X", nullptr, sizeof(value)));
    REFUSED("config", uct_config_modify(nullptr, "X", "1"));
    REFUSED("name", uct_config_modify(iface_config_, nullptr, "1"));
    REFUSED("value", uct_config_modify(iface_config_, "X", nullptr));
}

TEST_F(uct_invalid_args, worker)
{
    REFUSED("worker_p", uct_worker_create(async_, UCS_THREAD_MODE_SINGLE, nullptr));
}

TEST_F(uct_invalid_args, memory_domain)
{
    uct_md_h md = nullptr;
    REFUSED("component", uct_md_open(nullptr, md_name_.c_str(), md_config_, &md));
    REFUSED("md_name", uct_md_open(self_, nullptr, md_config_, &md));
    REFUSED("config", uct_md_open(self_, md_name_.c_str(), nullptr, &md));
    REFUSED("md_p", uct_md_open(self_, md_name_.c_str(), md_config_, nullptr));
    EXPECT_EQ(nullptr, md);

    uct_md_attr_t attr;
    uct_tl_resource_desc_t *tls;
    unsigned count;
    REFUSED("md", uct_md_query(nullptr, &attr));
    REFUSED("md_attr", uct_md_query(md_, nullptr));
    REFUSED("md", uct_md_query_tl_resources(nullptr, &tls, &count));
    REFUSED("resources_p", uct_md_query_tl_resources(md_, nullptr, &count));
    REFUSED("num_resources_p", uct_md_query_tl_resources(md_, &tls, nullptr));
}

TEST_F(uct_invalid_args, memory)
{
    uct_mem_h memh;
    REFUSED("md", uct_md_mem_reg(nullptr, memory_, 8, UCT_MD_MEM_ACCESS_ALL, &memh));
    REFUSED("address", uct_md_mem_reg(md_, nullptr, 8, UCT_MD_MEM_ACCESS_ALL, &memh));
    REFUSED("length", uct_md_mem_reg(md_, memory_, 0, UCT_MD_MEM_ACCESS_ALL, &memh));
    REFUSED("memh_p", uct_md_mem_reg(md_, memory_, 8, UCT_MD_MEM_ACCESS_ALL, nullptr));
    ASSERT_EQ(UCS_OK, uct_md_mem_reg(md_, memory_, 8, UCT_MD_MEM_ACCESS_ALL, &memh));
    REFUSED("md", uct_md_mem_dereg(nullptr, memh));
    REFUSED("memh", uct_md_mem_dereg(md_, UCT_MEM_HANDLE_NULL));
    REFUSED("md", uct_md_mkey_pack(nullptr, memh, memory_ + 8));
    REFUSED("memh", uct_md_mkey_pack(md_, UCT_MEM_HANDLE_NULL, memory_ + 8));
    REFUSED("rkey_buffer", uct_md_mkey_pack(md_, memh, nullptr));
    ASSERT_EQ(UCS_OK, uct_md_mkey_pack(md_, memh, memory_ + 8));

    uct_rkey_bundle_t key;
    REFUSED("component", uct_rkey_unpack(nullptr, memory_ + 8, &key));
    REFUSED("rkey_buffer", uct_rkey_unpack(self_, nullptr, &key));
    REFUSED("rkey_ob", uct_rkey_unpack(self_, memory_ + 8, nullptr));
    ASSERT_EQ(UCS_OK, uct_rkey_unpack(self_, memory_ + 8, &key));
    void *address;
    REFUSED("component", uct_rkey_ptr(nullptr, &key, 0, &address));
    REFUSED("rkey_ob", uct_rkey_ptr(self_, nullptr, 0, &address));
    REFUSED("addr_p", uct_rkey_ptr(self_, &key, 0, nullptr));
    REFUSED("component", uct_rkey_release(nullptr, &key));
    REFUSED("rkey_ob", uct_rkey_release(self_, nullptr));
    EXPECT_EQ(UCS_OK, uct_rkey_release(self_, &key));
    EXPECT_EQ(UCS_OK, uct_md_mem_dereg(md_, memh));

    uct_alloc_method_t heap = UCT_ALLOC_METHOD_HEAP;
    uct_mem_alloc_params_t params = {};
    uct_allocated_memory_t mem;
    REFUSED("length", uct_mem_alloc(0, &heap, 1, &params, &mem));
    REFUSED("methods", uct_mem_alloc(64, nullptr, 1, &params, &mem));
    REFUSED("params", uct_mem_alloc(64, &heap, 1, nullptr, &mem));
    REFUSED("mem", uct_mem_alloc(64, &heap, 1, &params, nullptr));
    REFUSED("mem", uct_mem_free(nullptr));
    REFUSED("iface", uct_iface_mem_alloc(nullptr, 64, UCT_MD_MEM_ACCESS_ALL, "x", &mem));
    REFUSED("mem", uct_iface_mem_alloc(iface_, 64, UCT_MD_MEM_ACCESS_ALL, "x", nullptr));
}

TEST_F(uct_invalid_args, interface)
{
    uct_iface_params_t good = iface_params();
    uct_iface_h iface = nullptr;
    REFUSED("md", uct_iface_open(nullptr, worker_, &good, iface_config_, &iface));
    REFUSED("worker", uct_iface_open(md_, nullptr, &good, iface_config_, &iface));
    REFUSED("params", uct_iface_open(md_, worker_, nullptr, iface_config_, &iface));
    REFUSED("config", uct_iface_open(md_, worker_, &good, nullptr, &iface));
    REFUSED("iface_p", uct_iface_open(md_, worker_, &good, iface_config_, nullptr));
    uct_iface_params_t params = good;
    params.field_mask = UCT_IFACE_PARAM_FIELD_DEVICE;
    REFUSED("open_mode", uct_iface_open(md_, worker_, &params, iface_config_, &iface));
    params = good;
    params.field_mask |= UCT_IFACE_PARAM_FIELD_AM_ALIGNMENT;
    params.am_alignment = 3;
    REFUSED("am_align", uct_iface_open(md_, worker_, &params, iface_config_, &iface));
    params.field_mask |= UCT_IFACE_PARAM_FIELD_AM_ALIGN_OFFSET;
    params.am_alignment = 8;
    params.am_align_offset = 8; // it must be below the alignment
    REFUSED("am_align_offset", uct_iface_open(md_, worker_, &params, iface_config_, &iface));
    params.field_mask &= ~uint64_t(UCT_IFACE_PARAM_FIELD_AM_ALIGNMENT);
    params.am_align_offset = 4; // of no alignment
    REFUSED("am_align_offset", uct_iface_open(md_, worker_, &params, iface_config_, &iface));
    EXPECT_EQ(nullptr, iface);

    uct_iface_attr_t attr;
    REFUSED("iface", uct_iface_query(nullptr, &attr));
    REFUSED("iface_attr", uct_iface_query(iface_, nullptr));
    auto cb = [](void *, void *, size_t, unsigned) { return UCS_OK; };
    REFUSED("iface", uct_iface_set_am_handler(nullptr, 0, cb, nullptr, 0));
    REFUSED("id", uct_iface_set_am_handler(iface_, UCT_AM_ID_MAX, cb, nullptr, 0));
    REFUSED("iface", uct_iface_get_address(nullptr, reinterpret_cast<uct_iface_addr_t *>(memory_)));
    REFUSED("addr", uct_iface_get_address(iface_, nullptr));
    REFUSED("iface",
            uct_iface_get_device_address(nullptr, reinterpret_cast<uct_device_addr_t *>(memory_)));
    REFUSED("addr", uct_iface_get_device_address(iface_, nullptr));
    int fd;
    REFUSED("iface", uct_iface_event_fd_get(nullptr, &fd));
    REFUSED("fd_p", uct_iface_event_fd_get(iface_, nullptr));
    REFUSED("iface", uct_iface_event_arm(nullptr, UCT_EVENT_RECV));
}

TEST_F(uct_invalid_args, endpoint)
{
    uct_ep_params_t params = {};
    uct_ep_h ep = nullptr;
    REFUSED("params", uct_ep_create(nullptr, &ep));
    REFUSED("ep_p", uct_ep_create(&params, nullptr));
    REFUSED("iface", uct_ep_create(&params, &ep));
    params.field_mask = UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_DEV_ADDR;
    params.iface = iface_;
    REFUSED("dev_addr", uct_ep_create(&params, &ep));
    params.dev_addr = reinterpret_cast<uct_device_addr_t *>(memory_);
    REFUSED("iface_addr", uct_ep_create(&params, &ep));
    params.field_mask = UCT_EP_PARAM_FIELD_CM;
    REFUSED("cm", uct_ep_create(&params, &ep));
    EXPECT_EQ(nullptr, ep);
    REFUSED("ep", uct_ep_check(nullptr, 0, nullptr));
    REFUSED("ep", uct_ep_connect(nullptr, nullptr));
    REFUSED("ep", uct_ep_disconnect(nullptr, 0));
    REFUSED("ep", uct_cm_client_ep_conn_notify(nullptr));
}

TEST_F(uct_invalid_args, connection_manager)
{
    uct_component_h tcp = component("tcp");
    if (!tcp) {
        GTEST_SKIP() << "no tcp component on this machine";
    }
    uct_cm_config_t *config = nullptr;
    uct_cm_h cm = nullptr;
    REFUSED("component", uct_cm_config_read(nullptr, nullptr, nullptr, &config));
    REFUSED("config_p", uct_cm_config_read(tcp, nullptr, nullptr, nullptr));
    ASSERT_EQ(UCS_OK, uct_cm_config_read(tcp, nullptr, nullptr, &config));
    REFUSED("component", uct_cm_open(nullptr, worker_, config, &cm));
    REFUSED("worker", uct_cm_open(tcp, nullptr, config, &cm));
    REFUSED("config", uct_cm_open(tcp, worker_, nullptr, &cm));
    REFUSED("cm_p", uct_cm_open(tcp, worker_, config, nullptr));
    EXPECT_EQ(nullptr, cm);
    ASSERT_EQ(UCS_OK, uct_cm_open(tcp, worker_, config, &cm));
    uct_config_release(config);

    uct_cm_attr_t attr = {};
    REFUSED("cm", uct_cm_query(nullptr, &attr));
    REFUSED("cm_attr", uct_cm_query(cm, nullptr));

    sockaddr_in any = {};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto *address = reinterpret_cast<sockaddr *>(&any);
    uct_listener_params_t good = {};
    good.field_mask = UCT_LISTENER_PARAM_FIELD_CONN_REQUEST_CB;
    good.conn_request_cb = [](uct_listener_h, void *, const uct_cm_listener_conn_request_args_t *) {
    };
    uct_listener_h listener = nullptr;
    REFUSED("cm", uct_listener_create(nullptr, address, sizeof(any), &good, &listener));
    REFUSED("saddr", uct_listener_create(cm, nullptr, sizeof(any), &good, &listener));
    REFUSED("socklen", uct_listener_create(cm, address, 1, &good, &listener));
    REFUSED("params", uct_listener_create(cm, address, sizeof(any), nullptr, &listener));
    REFUSED("listener_p", uct_listener_create(cm, address, sizeof(any), &good, nullptr));
    uct_listener_params_t none = {};
    REFUSED("conn_request_cb", uct_listener_create(cm, address, sizeof(any), &none, &listener));
    any.sin_addr.s_addr = htonl(0xc6336401); // 198.51.100.1, which no host has
    EXPECT_EQ(UCS_ERR_NO_DEVICE, uct_listener_create(cm, address, sizeof(any), &good, &listener));
    EXPECT_EQ(nullptr, listener);
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(UCS_OK, uct_listener_create(cm, address, sizeof(any), &good, &listener));
    uct_listener_attr_t listener_attr = {};
    REFUSED("listener", uct_listener_query(nullptr, &listener_attr));
    REFUSED("listener_attr", uct_listener_query(listener, nullptr));
    REFUSED("conn_request", uct_listener_reject(listener, nullptr));
    uct_listener_destroy(listener);
    uct_cm_close(cm);
}

} // namespace
