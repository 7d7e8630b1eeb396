// SPDX-License-Identifier: BSD-3-Clause
// The table of what is supported against what the calls do: a UCT operation works when the
// interface of some transport on this machine has it, and calls that are listed as unsupported say
// so.
#include "fabtests-ext/common/sanitized.h"
#include "fabtests-ext/common/support_table.h"
#include "uct/base/ops.h"

#include <uct/api/uct.h>

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <netinet/in.h>
#include <string>
#include <vector>

namespace {

template <class Slot>
bool has(Slot slot)
{
    return slot && slot != uct::unsupported<Slot>::call;
}

// An interface that listens, where the domain has them.
void open_server(uct_md_h md, uct_worker_h worker,
                 const std::function<void(uct_md_h, uct_iface_h)> &f)
{
    uct_md_attr_t attr;
    ASSERT_EQ(UCS_OK, uct_md_query(md, &attr));
    if (!(attr.cap.flags & UCT_MD_FLAG_SOCKADDR)) {
        return;
    }
    sockaddr_in any = {};
    any.sin_family = AF_INET;
    uct_iface_config_t *config;
    ASSERT_EQ(UCS_OK, uct_md_iface_config_read(md, nullptr, nullptr, nullptr, &config));
    uct_iface_params_t params = {};
    params.field_mask = UCT_IFACE_PARAM_FIELD_OPEN_MODE | UCT_IFACE_PARAM_FIELD_SOCKADDR;
    params.open_mode = UCT_IFACE_OPEN_MODE_SOCKADDR_SERVER;
    params.mode.sockaddr.listen_sockaddr = {reinterpret_cast<sockaddr *>(&any), sizeof(any)};
    params.mode.sockaddr.conn_request_cb = [](uct_iface_h, void *, uct_conn_request_h, const void *,
                                              size_t) {};
    uct_iface_h iface;
    ASSERT_EQ(UCS_OK, uct_iface_open(md, worker, &params, config, &iface));
    f(md, iface);
    uct_iface_close(iface);
    uct_config_release(config);
}

// Calls f with the operations of every interface that this machine offers.
void for_each_interface(uct_worker_h worker, const std::function<void(uct_md_h, uct_iface_h)> &f)
{
    uct_component_h *components;
    unsigned component_count;
    ASSERT_EQ(UCS_OK, uct_query_components(&components, &component_count));
    for (unsigned c = 0; c < component_count; ++c) {
        uct_component_attr_t attr = {};
        attr.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT;
        ASSERT_EQ(UCS_OK, uct_component_query(components[c], &attr));
        std::vector<uct_md_resource_desc_t> mds(attr.md_resource_count);
        attr.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
        attr.md_resources = mds.data();
        ASSERT_EQ(UCS_OK, uct_component_query(components[c], &attr));
        uct_md_config_t *md_config;
        ASSERT_EQ(UCS_OK, uct_md_config_read(components[c], nullptr, nullptr, &md_config));
        for (const uct_md_resource_desc_t &resource : mds) {
            uct_md_h md;
            if (uct_md_open(components[c], resource.md_name, md_config, &md) != UCS_OK) {
                continue;
            }
            uct_tl_resource_desc_t *tls;
            unsigned tl_count;
            ASSERT_EQ(UCS_OK, uct_md_query_tl_resources(md, &tls, &tl_count));
            for (unsigned t = 0; t < tl_count; ++t) {
                uct_iface_config_t *config;
                ASSERT_EQ(UCS_OK,
                          uct_md_iface_config_read(md, tls[t].tl_name, nullptr, nullptr, &config));
                uct_iface_params_t params = {};
                params.field_mask = UCT_IFACE_PARAM_FIELD_OPEN_MODE | UCT_IFACE_PARAM_FIELD_DEVICE;
                params.open_mode = UCT_IFACE_OPEN_MODE_DEVICE;
                params.mode.device.tl_name = tls[t].tl_name;
                params.mode.device.dev_name = tls[t].dev_name;
                uct_iface_h iface;
                if (uct_iface_open(md, worker, &params, config, &iface) == UCS_OK) {
                    f(md, iface);
                    uct_iface_close(iface);
                }
                uct_config_release(config);
            }
            uct_release_tl_resource_list(tls);
            open_server(md, worker, f);
            uct_md_close(md);
        }
        uct_config_release(md_config);
    }
    uct_release_component_list(components);
}

class support : public ::testing::Test {
  protected:
    void SetUp() override
    {
        ASSERT_FALSE(table_.empty()) << "fabtests-ext/abi/support.tsv was not found";
        ASSERT_EQ(UCS_OK, ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK, &async_));
        ASSERT_EQ(UCS_OK, uct_worker_create(async_, UCS_THREAD_MODE_SINGLE, &worker_));
    }
    void TearDown() override
    {
        uct_worker_destroy(worker_);
        ucs_async_context_destroy(async_);
    }

    const std::map<std::string, bool> table_ = support_table::read();
    ucs_async_context_t *async_ = nullptr;
    uct_worker_h worker_ = nullptr;
};

TEST_F(support, uct_operation_works_when_some_transport_has_it)
{
    if (leaks_by_itself("tcprdm")) {
        GTEST_SKIP() << "needs tcprdm, whose endpoints libfabric before 1.18 does not free";
    }
    std::map<std::string, bool> found;
    for_each_interface(worker_, [&](uct_md_h, uct_iface_h iface) {
        const uct_iface_ops_t &ops = iface->ops;
#define SLOT(slot) found["uct_" #slot] |= has(ops.slot)
        SLOT(ep_put_short), SLOT(ep_put_bcopy), SLOT(ep_put_zcopy);
        SLOT(ep_get_short), SLOT(ep_get_bcopy), SLOT(ep_get_zcopy);
        SLOT(ep_am_short), SLOT(ep_am_short_iov), SLOT(ep_am_bcopy), SLOT(ep_am_zcopy);
        SLOT(ep_atomic_cswap64), SLOT(ep_atomic_cswap32), SLOT(ep_atomic32_post);
        SLOT(ep_atomic64_post), SLOT(ep_atomic32_fetch), SLOT(ep_atomic64_fetch);
        SLOT(ep_tag_eager_short), SLOT(ep_tag_eager_bcopy), SLOT(ep_tag_eager_zcopy);
        SLOT(ep_tag_rndv_zcopy), SLOT(ep_tag_rndv_cancel), SLOT(ep_tag_rndv_request);
        SLOT(iface_tag_recv_zcopy), SLOT(iface_tag_recv_cancel);
        SLOT(ep_pending_add), SLOT(ep_pending_purge), SLOT(ep_flush), SLOT(ep_fence);
        SLOT(ep_check), SLOT(ep_create), SLOT(ep_destroy);
        SLOT(ep_get_address), SLOT(ep_connect_to_ep);
        SLOT(iface_accept), SLOT(iface_reject), SLOT(iface_flush), SLOT(iface_fence);
        SLOT(iface_progress_enable), SLOT(iface_progress_disable), SLOT(iface_progress);
        SLOT(iface_event_fd_get), SLOT(iface_event_arm), SLOT(iface_close), SLOT(iface_query);
        SLOT(iface_get_device_address), SLOT(iface_get_address), SLOT(iface_is_reachable);
#undef SLOT
    });
    for (const auto &[function, works] : found) {
        auto row = table_.find(function);
        ASSERT_NE(table_.end(), row) << function;
        EXPECT_EQ(row->second, works) << function;
    }
}

} // namespace
