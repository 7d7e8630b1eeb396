// SPDX-License-Identifier: BSD-3-Clause
// A wrong argument of a UCP call gives UCS_ERR_INVALID_PARAM and an error line that names
// the argument. Nothing else happens: the objects stay usable, outputs are not written.
#include "fabtests-ext/conformance/common/refused.h"

#include <ucp/api/ucp.h>

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>

namespace {

constexpr uint64_t all_features = UCP_FEATURE_TAG | UCP_FEATURE_RMA | UCP_FEATURE_AMO32 |
                                  UCP_FEATURE_AMO64 | UCP_FEATURE_WAKEUP | UCP_FEATURE_STREAM |
                                  UCP_FEATURE_AM;

class ucp_invalid_args : public ::testing::Test {
  protected:
    void SetUp() override
    {
        ASSERT_EQ(UCS_OK, ucp_config_read(nullptr, nullptr, &config_));
        ASSERT_EQ(UCS_OK, ucp_config_modify(config_, "TLS", "self,tcp"));
        context_ = make_context(all_features);
        worker_ = make_worker(context_);
        ep_ = make_ep(UCP_ERR_HANDLING_MODE_NONE);
        refused::keep_errors();
    }

    void TearDown() override
    {
        refused::let_errors_go();
        close(ep_);
        ucp_worker_destroy(worker_);
        ucp_cleanup(context_);
        ucp_config_release(config_);
    }

    ucp_context_h make_context(uint64_t features)
    {
        ucp_params_t params = {};
        params.field_mask = UCP_PARAM_FIELD_FEATURES;
        params.features = features;
        ucp_context_h context = nullptr;
        EXPECT_EQ(UCS_OK, ucp_init(&params, config_, &context));
        return context;
    }

    ucp_worker_h make_worker(ucp_context_h context)
    {
        ucp_worker_params_t params = {};
        ucp_worker_h worker = nullptr;
        EXPECT_EQ(UCS_OK, ucp_worker_create(context, &params, &worker));
        return worker;
    }

    // To the own worker.
    ucp_ep_h make_ep(ucp_err_handling_mode_t mode, ucp_worker_h worker = nullptr)
    {
        worker = worker ? worker : worker_;
        ucp_address_t *address;
        size_t length;
        EXPECT_EQ(UCS_OK, ucp_worker_get_address(worker, &address, &length));
        ucp_ep_params_t params = {};
        params.field_mask =
            UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
        params.address = address;
        params.err_mode = mode;
        ucp_ep_h ep = nullptr;
        EXPECT_EQ(UCS_OK, ucp_ep_create(worker, &params, &ep));
        ucp_worker_release_address(worker, address);
        return ep;
    }

    void close(ucp_ep_h ep)
    {
        ucp_request_param_t param = {};
        void *request = ucp_ep_close_nbx(ep, &param);
        for (int i = 0; i < 1000000 && UCS_PTR_IS_PTR(request) &&
                        ucp_request_check_status(request) == UCS_INPROGRESS;
             ++i) {
            ucp_worker_progress(worker_);
        }
        if (UCS_PTR_IS_PTR(request)) {
            ucp_request_free(request);
        }
    }

    ucp_mem_h map()
    {
        ucp_mem_map_params_t params = {};
        params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
        params.address = memory_;
        params.length = sizeof(memory_);
        ucp_mem_h memh = nullptr;
        EXPECT_EQ(UCS_OK, ucp_mem_map(context_, &params, &memh));
        return memh;
    }

    ucp_rkey_h key(ucp_mem_h memh)
    {
        void *buffer;
        size_t length;
        EXPECT_EQ(UCS_OK, ucp_rkey_pack(context_, memh, &buffer, &length));
        ucp_rkey_h rkey = nullptr;
        EXPECT_EQ(UCS_OK, ucp_ep_rkey_unpack(ep_, buffer, &rkey));
        ucp_rkey_buffer_release(buffer);
        return rkey;
    }

    ucp_config_t *config_ = nullptr;
    ucp_context_h context_ = nullptr;
    ucp_worker_h worker_ = nullptr;
    ucp_ep_h ep_ = nullptr;
    const ucp_request_param_t param_ = {};
    alignas(64) char memory_[4096] = "";
};

TEST_F(ucp_invalid_args, library_and_configuration)
{
    REFUSED("attr", ucp_lib_query(nullptr));
    REFUSED("config_p", ucp_config_read(nullptr, nullptr, nullptr));
    REFUSED("config", ucp_config_modify(nullptr, "TLS", "self"));
    REFUSED("name", ucp_config_modify(config_, nullptr, "self"));
    REFUSED("value", ucp_config_modify(config_, "TLS", nullptr));
    REFUSED("RNDV_THRESH", ucp_config_modify(config_, "RNDV_THRESH", "much"));
}

TEST_F(ucp_invalid_args, context)
{
    ucp_params_t params = {};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_TAG;
    ucp_context_h context = nullptr;
    REFUSED("params", ucp_init(nullptr, config_, &context));
    REFUSED("context_p", ucp_init(&params, config_, nullptr));
    ucp_context_attr_t attr = {};
    REFUSED("context", ucp_context_query(nullptr, &attr));
    REFUSED("attr", ucp_context_query(context_, nullptr));
    EXPECT_EQ(nullptr, context);
}

TEST_F(ucp_invalid_args, worker)
{
    ucp_worker_params_t params = {};
    ucp_worker_h worker = nullptr;
    REFUSED("context", ucp_worker_create(nullptr, &params, &worker));
    REFUSED("params", ucp_worker_create(context_, nullptr, &worker));
    REFUSED("worker_p", ucp_worker_create(context_, &params, nullptr));
    params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    params.thread_mode = static_cast<ucs_thread_mode_t>(UCS_THREAD_MODE_LAST);
    REFUSED("thread_mode", ucp_worker_create(context_, &params, &worker));
    params.field_mask = UCP_WORKER_PARAM_FIELD_AM_ALIGNMENT;
    for (size_t alignment : {0, 3, 48}) {
        params.am_alignment = alignment;
        REFUSED("am_alignment", ucp_worker_create(context_, &params, &worker));
    }
    EXPECT_EQ(nullptr, worker);

    ucp_worker_attr_t attr = {};
    REFUSED("worker", ucp_worker_query(nullptr, &attr));
    REFUSED("attr", ucp_worker_query(worker_, nullptr));
    ucp_address_t *address = nullptr;
    size_t length;
    REFUSED("worker", ucp_worker_get_address(nullptr, &address, &length));
    REFUSED("address_p", ucp_worker_get_address(worker_, nullptr, &length));
    REFUSED("address_length_p", ucp_worker_get_address(worker_, &address, nullptr));
    EXPECT_EQ(nullptr, address);

    ucp_worker_address_attr_t address_attr = {};
    REFUSED("address", ucp_worker_address_query(nullptr, &address_attr));
    ASSERT_EQ(UCS_OK, ucp_worker_get_address(worker_, &address, &length));
    REFUSED("attr", ucp_worker_address_query(address, nullptr));
    ucp_worker_release_address(worker_, address);

    REFUSED("worker", ucp_worker_fence(nullptr));
    REFUSED("worker", ucp_worker_flush(nullptr));
    REFUSED("worker", ucp_worker_flush_nb(nullptr, 0, nullptr));
    REFUSED("worker", ucp_worker_flush_nbx(nullptr, &param_));
    REFUSED("param", ucp_worker_flush_nbx(worker_, nullptr));
}

TEST_F(ucp_invalid_args, waiting)
{
    int fd;
    REFUSED("worker", ucp_worker_get_efd(nullptr, &fd));
    REFUSED("fd", ucp_worker_get_efd(worker_, nullptr));
    REFUSED("worker", ucp_worker_arm(nullptr));
    REFUSED("worker", ucp_worker_wait(nullptr));
    REFUSED("worker", ucp_worker_signal(nullptr));
}

TEST_F(ucp_invalid_args, listener)
{
    sockaddr_in any = {};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ucp_listener_params_t good = {};
    good.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
    good.sockaddr = {reinterpret_cast<sockaddr *>(&any), sizeof(any)};
    good.conn_handler.cb = [](ucp_conn_request_h, void *) {};
    ucp_listener_h listener = nullptr;

    REFUSED("worker", ucp_listener_create(nullptr, &good, &listener));
    REFUSED("params", ucp_listener_create(worker_, nullptr, &listener));
    REFUSED("listener_p", ucp_listener_create(worker_, &good, nullptr));

    ucp_listener_params_t params = good;
    params.field_mask &= ~static_cast<uint64_t>(UCP_LISTENER_PARAM_FIELD_SOCK_ADDR);
    REFUSED("sockaddr", ucp_listener_create(worker_, &params, &listener));
    params = good;
    params.sockaddr.addr = nullptr;
    REFUSED("sockaddr", ucp_listener_create(worker_, &params, &listener));
    params = good;
    params.field_mask &= ~static_cast<uint64_t>(UCP_LISTENER_PARAM_FIELD_CONN_HANDLER);
    REFUSED("handler", ucp_listener_create(worker_, &params, &listener));
    params = good;
    params.conn_handler.cb = nullptr;
    REFUSED("handler", ucp_listener_create(worker_, &params, &listener));
    params = good;
    params.field_mask |= UCP_LISTENER_PARAM_FIELD_ACCEPT_HANDLER;
    params.accept_handler.cb = [](ucp_ep_h, void *) {};
    REFUSED("handler", ucp_listener_create(worker_, &params, &listener));
    EXPECT_EQ(nullptr, listener);

    ASSERT_EQ(UCS_OK, ucp_listener_create(worker_, &good, &listener));
    ucp_listener_attr_t attr = {};
    REFUSED("listener", ucp_listener_query(nullptr, &attr));
    REFUSED("attr", ucp_listener_query(listener, nullptr));
    REFUSED("conn_request", ucp_listener_reject(listener, nullptr));
    ucp_conn_request_attr_t request_attr = {};
    REFUSED("conn_request", ucp_conn_request_query(nullptr, &request_attr));
    ucp_listener_destroy(listener);
}

TEST_F(ucp_invalid_args, endpoint)
{
    ucp_ep_params_t params = {};
    ucp_ep_h ep = nullptr;
    REFUSED("worker", ucp_ep_create(nullptr, &params, &ep));
    REFUSED("params", ucp_ep_create(worker_, nullptr, &ep));
    REFUSED("ep_p", ucp_ep_create(worker_, &params, nullptr));
    REFUSED("address", ucp_ep_create(worker_, &params, &ep));
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    REFUSED("address", ucp_ep_create(worker_, &params, &ep));
    params.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST;
    REFUSED("conn_request", ucp_ep_create(worker_, &params, &ep));
    params.field_mask = UCP_EP_PARAM_FIELD_FLAGS;
    params.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
    REFUSED("sockaddr", ucp_ep_create(worker_, &params, &ep));
    params.field_mask |= UCP_EP_PARAM_FIELD_SOCK_ADDR;
    REFUSED("sockaddr", ucp_ep_create(worker_, &params, &ep));
    EXPECT_EQ(nullptr, ep);

    ucp_ep_attr_t attr = {};
    REFUSED("ep", ucp_ep_query(nullptr, &attr));
    REFUSED("attr", ucp_ep_query(ep_, nullptr));
    attr.field_mask = UCP_EP_ATTR_FIELD_TRANSPORTS;
    attr.transports.num_entries = 1;
    REFUSED("transports", ucp_ep_query(ep_, &attr));

    ucp_ep_evaluate_perf_param_t perf = {};
    ucp_ep_evaluate_perf_attr_t estimate = {};
    REFUSED("ep", ucp_ep_evaluate_perf(nullptr, &perf, &estimate));
    REFUSED("param", ucp_ep_evaluate_perf(ep_, nullptr, &estimate));
    REFUSED("attr", ucp_ep_evaluate_perf(ep_, &perf, nullptr));
    REFUSED("message_size", ucp_ep_evaluate_perf(ep_, &perf, &estimate));

    REFUSED("ep", ucp_ep_flush(nullptr));
    REFUSED("ep", ucp_ep_flush_nb(nullptr, 0, nullptr));
    REFUSED("ep", ucp_ep_flush_nbx(nullptr, &param_));
    REFUSED("param", ucp_ep_flush_nbx(ep_, nullptr));
    REFUSED("ep", ucp_ep_close_nb(nullptr, UCP_EP_CLOSE_MODE_FLUSH));
    REFUSED("ep", ucp_ep_close_nbx(nullptr, &param_));
    REFUSED("ep", ucp_disconnect_nb(nullptr));
    REFUSED("ep", ucp_ep_modify_nb(nullptr, &params));
    REFUSED("params", ucp_ep_modify_nb(ep_, nullptr));
}

TEST_F(ucp_invalid_args, forced_close_needs_error_mode_peer)
{
    ucp_request_param_t force = {};
    force.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    force.flags = UCP_EP_CLOSE_FLAG_FORCE;
    REFUSED("FORCE", ucp_ep_close_nbx(ep_, &force)); // and the endpoint stays open
}

TEST_F(ucp_invalid_args, memory)
{
    ucp_mem_map_params_t good = {};
    good.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                      UCP_MEM_MAP_PARAM_FIELD_FLAGS;
    good.address = memory_;
    good.length = sizeof(memory_);
    ucp_mem_h memh = nullptr;
    REFUSED("context", ucp_mem_map(nullptr, &good, &memh));
    REFUSED("params", ucp_mem_map(context_, nullptr, &memh));
    REFUSED("memh_p", ucp_mem_map(context_, &good, nullptr));
    ucp_mem_map_params_t params = good;
    params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS;
    REFUSED("length", ucp_mem_map(context_, &params, &memh));
    params = good;
    params.address = nullptr;
    REFUSED("address", ucp_mem_map(context_, &params, &memh));
    params = good;
    params.field_mask |= UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE;
    params.flags = UCP_MEM_MAP_ALLOCATE; // not host memory instead
    for (auto type : {UCS_MEMORY_TYPE_CUDA, UCS_MEMORY_TYPE_ROCM_MANAGED}) {
        params.memory_type = type;
        EXPECT_EQ(UCS_ERR_UNSUPPORTED, ucp_mem_map(context_, &params, &memh));
        EXPECT_EQ(nullptr, memh);
    }
    params = good;
    params.flags = UCP_MEM_MAP_FIXED;
    REFUSED("FIXED", ucp_mem_map(context_, &params, &memh));
    params.flags = UCP_MEM_MAP_FIXED | UCP_MEM_MAP_ALLOCATE;
    params.address = memory_ + 1;
    REFUSED("address", ucp_mem_map(context_, &params, &memh));
    params = good;
    params.flags = UCP_MEM_MAP_NONBLOCK | UCP_MEM_MAP_LOCK;
    REFUSED("LOCK", ucp_mem_map(context_, &params, &memh));
    EXPECT_EQ(nullptr, memh);

    memh = map();
    REFUSED("context", ucp_mem_unmap(nullptr, memh));
    REFUSED("memh", ucp_mem_unmap(context_, nullptr));
    ucp_mem_attr_t attr = {};
    REFUSED("memh", ucp_mem_query(nullptr, &attr));
    REFUSED("attr", ucp_mem_query(memh, nullptr));

    ucp_mem_advise_params_t advise = {};
    REFUSED("params", ucp_mem_advise(context_, memh, nullptr));
    REFUSED("params", ucp_mem_advise(context_, memh, &advise));
    advise.field_mask = UCP_MEM_ADVISE_PARAM_FIELD_ADDRESS | UCP_MEM_ADVISE_PARAM_FIELD_LENGTH |
                        UCP_MEM_ADVISE_PARAM_FIELD_ADVICE;
    advise.address = memory_;
    advise.length = sizeof(memory_) + 1;
    REFUSED("length", ucp_mem_advise(context_, memh, &advise));
    advise.length = sizeof(memory_);
    REFUSED("memh", ucp_mem_advise(context_, nullptr, &advise));

    ucp_memh_pack_params_t pack = {};
    void *buffer = nullptr;
    size_t length;
    REFUSED("memh", ucp_memh_pack(nullptr, &pack, &buffer, &length));
    REFUSED("buffer_p", ucp_memh_pack(memh, &pack, nullptr, &length));
    REFUSED("buffer_size_p", ucp_memh_pack(memh, &pack, &buffer, nullptr));
    REFUSED("memh", ucp_rkey_pack(context_, nullptr, &buffer, &length));
    REFUSED("rkey_buffer_p", ucp_rkey_pack(context_, memh, nullptr, &length));
    REFUSED("size_p", ucp_rkey_pack(context_, memh, &buffer, nullptr));
    ASSERT_EQ(UCS_OK, ucp_rkey_pack(context_, memh, &buffer, &length));
    ucp_rkey_h rkey = nullptr;
    REFUSED("ep", ucp_ep_rkey_unpack(nullptr, buffer, &rkey));
    REFUSED("rkey_buffer", ucp_ep_rkey_unpack(ep_, nullptr, &rkey));
    REFUSED("rkey_p", ucp_ep_rkey_unpack(ep_, buffer, nullptr));
    EXPECT_EQ(nullptr, rkey);
    ucp_rkey_buffer_release(buffer);

    rkey = key(memh);
    void *address = nullptr;
    REFUSED("rkey", ucp_rkey_ptr(nullptr, 0, &address));
    REFUSED("addr_p", ucp_rkey_ptr(rkey, 0, nullptr));
    ucp_rkey_compare_params_t compare = {};
    int result;
    REFUSED("worker", ucp_rkey_compare(nullptr, rkey, rkey, &compare, &result));
    REFUSED("rkey1", ucp_rkey_compare(worker_, nullptr, rkey, &compare, &result));
    REFUSED("rkey2", ucp_rkey_compare(worker_, rkey, nullptr, &compare, &result));
    REFUSED("result", ucp_rkey_compare(worker_, rkey, rkey, &compare, nullptr));
    ucp_rkey_destroy(rkey);
    ASSERT_EQ(UCS_OK, ucp_mem_unmap(context_, memh));
}

TEST_F(ucp_invalid_args, active_messages)
{
    ucp_am_handler_param_t handler = {};
    REFUSED("worker", ucp_worker_set_am_recv_handler(nullptr, &handler));
    REFUSED("param", ucp_worker_set_am_recv_handler(worker_, nullptr));
    REFUSED("id", ucp_worker_set_am_recv_handler(worker_, &handler));
    handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB;
    handler.id = 65536;
    REFUSED("id", ucp_worker_set_am_recv_handler(worker_, &handler));
    REFUSED("worker", ucp_worker_set_am_handler(nullptr, 0, nullptr, nullptr, 0));

    REFUSED("ep", ucp_am_send_nbx(nullptr, 0, nullptr, 0, memory_, 8, &param_));
    REFUSED("id", ucp_am_send_nbx(ep_, 65536, nullptr, 0, memory_, 8, &param_));
    REFUSED("header", ucp_am_send_nbx(ep_, 0, nullptr, 8, memory_, 8, &param_));
    REFUSED("header_length", ucp_am_send_nbx(ep_, 0, memory_, 1 << 30, memory_, 8, &param_));
    REFUSED("buffer", ucp_am_send_nbx(ep_, 0, nullptr, 0, nullptr, 8, &param_));
    REFUSED("param", ucp_am_send_nbx(ep_, 0, nullptr, 0, memory_, 8, nullptr));
    REFUSED("ep", ucp_am_send_nb(nullptr, 0, memory_, 8, ucp_dt_make_contig(1), nullptr, 0));
    REFUSED("worker", ucp_am_recv_data_nbx(nullptr, memory_, memory_, 8, &param_));
    REFUSED("data_desc", ucp_am_recv_data_nbx(worker_, nullptr, memory_, 8, &param_));
}

TEST_F(ucp_invalid_args, streams)
{
    size_t length;
    ucp_stream_poll_ep_t polled;
    REFUSED("ep", ucp_stream_send_nbx(nullptr, memory_, 8, &param_));
    REFUSED("buffer", ucp_stream_send_nbx(ep_, nullptr, 8, &param_));
    REFUSED("param", ucp_stream_send_nbx(ep_, memory_, 8, nullptr));
    REFUSED("ep", ucp_stream_recv_nbx(nullptr, memory_, 8, &length, &param_));
    REFUSED("buffer", ucp_stream_recv_nbx(ep_, nullptr, 8, &length, &param_));
    REFUSED("length", ucp_stream_recv_nbx(ep_, memory_, 8, nullptr, &param_));
    REFUSED("param", ucp_stream_recv_nbx(ep_, memory_, 8, &length, nullptr));
    REFUSED("ep", ucp_stream_recv_data_nb(nullptr, &length));
    REFUSED("length", ucp_stream_recv_data_nb(ep_, nullptr));
    REFUSED("ep", ucp_stream_send_nb(nullptr, memory_, 8, ucp_dt_make_contig(1), nullptr, 0));
    REFUSED("worker", ucp_stream_worker_poll(nullptr, &polled, 1, 0));
    REFUSED("poll_eps", ucp_stream_worker_poll(worker_, nullptr, 1, 0));
}

TEST_F(ucp_invalid_args, tagged_messages)
{
    ucp_tag_recv_info_t info;
    REFUSED("ep", ucp_tag_send_nbx(nullptr, memory_, 8, 1, &param_));
    REFUSED("buffer", ucp_tag_send_nbx(ep_, nullptr, 8, 1, &param_));
    REFUSED("param", ucp_tag_send_nbx(ep_, memory_, 8, 1, nullptr));
    REFUSED("ep", ucp_tag_send_sync_nbx(nullptr, memory_, 8, 1, &param_));
    REFUSED("buffer", ucp_tag_send_sync_nbx(ep_, nullptr, 8, 1, &param_));
    REFUSED("worker", ucp_tag_recv_nbx(nullptr, memory_, 8, 1, 1, &param_));
    REFUSED("buffer", ucp_tag_recv_nbx(worker_, nullptr, 8, 1, 1, &param_));
    REFUSED("param", ucp_tag_recv_nbx(worker_, memory_, 8, 1, 1, nullptr));
    REFUSED("worker", ucp_tag_msg_recv_nbx(nullptr, memory_, 8, nullptr, &param_));
    REFUSED("message", ucp_tag_msg_recv_nbx(worker_, memory_, 8, nullptr, &param_));
    REFUSED("request", ucp_tag_recv_request_test(nullptr, &info));
    ucp_datatype_t bytes = ucp_dt_make_contig(1);
    REFUSED("ep", ucp_tag_send_nb(nullptr, memory_, 8, bytes, 1, nullptr));
    REFUSED("ep", ucp_tag_send_nbr(nullptr, memory_, 8, bytes, 1, memory_ + 2048));
    REFUSED("req", ucp_tag_send_nbr(ep_, memory_, 8, bytes, 1, nullptr));
    REFUSED("worker", ucp_tag_recv_nb(nullptr, memory_, 8, bytes, 1, 1, nullptr));
    REFUSED("req", ucp_tag_recv_nbr(worker_, memory_, 8, bytes, 1, 1, nullptr));

    ucp_request_param_t typed = {};
    typed.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
    typed.datatype = UCP_DATATYPE_STRIDED;
    REFUSED("datatype", ucp_tag_send_nbx(ep_, memory_, 8, 1, &typed));
    REFUSED("datatype", ucp_tag_recv_nbx(worker_, memory_, 8, 1, 1, &typed));
}

TEST_F(ucp_invalid_args, remote_memory)
{
    ucp_mem_h memh = map();
    ucp_rkey_h rkey = key(memh);
    auto remote = reinterpret_cast<uint64_t>(memory_);
    REFUSED("ep", ucp_put_nbx(nullptr, memory_, 8, remote, rkey, &param_));
    REFUSED("buffer", ucp_put_nbx(ep_, nullptr, 8, remote, rkey, &param_));
    REFUSED("rkey", ucp_put_nbx(ep_, memory_, 8, remote, nullptr, &param_));
    REFUSED("param", ucp_put_nbx(ep_, memory_, 8, remote, rkey, nullptr));
    REFUSED("ep", ucp_get_nbx(nullptr, memory_, 8, remote, rkey, &param_));
    REFUSED("buffer", ucp_get_nbx(ep_, nullptr, 8, remote, rkey, &param_));
    REFUSED("rkey", ucp_get_nbx(ep_, memory_, 8, remote, nullptr, &param_));
    REFUSED("param", ucp_get_nbx(ep_, memory_, 8, remote, rkey, nullptr));
    REFUSED("ep", ucp_put(nullptr, memory_, 8, remote, rkey));
    REFUSED("rkey", ucp_put_nbi(ep_, memory_, 8, remote, nullptr));
    REFUSED("rkey", ucp_put_nb(ep_, memory_, 8, remote, nullptr, nullptr));
    REFUSED("ep", ucp_get(nullptr, memory_, 8, remote, rkey));
    REFUSED("rkey", ucp_get_nbi(ep_, memory_, 8, remote, nullptr));
    REFUSED("rkey", ucp_get_nb(ep_, memory_, 8, remote, nullptr, nullptr));

    ucp_request_param_t wide = {};
    wide.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
    wide.datatype = ucp_dt_make_contig(8);
    ucp_request_param_t odd = wide;
    odd.datatype = ucp_dt_make_contig(3);
    uint64_t operand = 1;
    auto op = UCP_ATOMIC_OP_ADD;
    REFUSED("ep", ucp_atomic_op_nbx(nullptr, op, &operand, 1, remote, rkey, &wide));
    REFUSED("opcode", ucp_atomic_op_nbx(ep_, UCP_ATOMIC_OP_LAST, &operand, 1, remote, rkey, &wide));
    REFUSED("buffer", ucp_atomic_op_nbx(ep_, op, nullptr, 1, remote, rkey, &wide));
    REFUSED("count", ucp_atomic_op_nbx(ep_, op, &operand, 2, remote, rkey, &wide));
    REFUSED("rkey", ucp_atomic_op_nbx(ep_, op, &operand, 1, remote, nullptr, &wide));
    REFUSED("param", ucp_atomic_op_nbx(ep_, op, &operand, 1, remote, rkey, nullptr));
    REFUSED("datatype", ucp_atomic_op_nbx(ep_, op, &operand, 1, remote, rkey, &param_));
    REFUSED("datatype", ucp_atomic_op_nbx(ep_, op, &operand, 1, remote, rkey, &odd));
    REFUSED("remote_addr", ucp_atomic_op_nbx(ep_, op, &operand, 1, remote + 1, rkey, &wide));
    REFUSED("reply_buffer",
            ucp_atomic_op_nbx(ep_, UCP_ATOMIC_OP_SWAP, &operand, 1, remote, rkey, &wide));
    REFUSED("op_size", ucp_atomic_post(ep_, UCP_ATOMIC_POST_OP_ADD, 1, 3, remote, rkey));
    REFUSED("opcode", ucp_atomic_post(ep_, UCP_ATOMIC_POST_OP_LAST, 1, 8, remote, rkey));
    REFUSED("result", ucp_atomic_fetch_nb(ep_, UCP_ATOMIC_FETCH_OP_FADD, 1, nullptr, 8, remote,
                                          rkey, nullptr));
    REFUSED("result", ucp_atomic_fadd64(ep_, 1, remote, rkey, nullptr));
    REFUSED("result", ucp_atomic_swap32(ep_, 1, remote, rkey, nullptr));
    REFUSED("result", ucp_atomic_cswap64(ep_, 1, 2, remote, rkey, nullptr));
    REFUSED("ep", ucp_atomic_add32(nullptr, 1, remote, rkey));
    ucp_rkey_destroy(rkey);
    ASSERT_EQ(UCS_OK, ucp_mem_unmap(context_, memh));
}

TEST_F(ucp_invalid_args, memory_of_a_device)
{
    ucp_mem_h memh = map();
    ucp_rkey_h rkey = key(memh);
    auto remote = reinterpret_cast<uint64_t>(memory_);
    ucp_request_param_t p = {};
    p.op_attr_mask = UCP_OP_ATTR_FIELD_MEMORY_TYPE | UCP_OP_ATTR_FIELD_DATATYPE;
    p.memory_type = UCS_MEMORY_TYPE_CUDA;
    p.datatype = ucp_dt_make_contig(8);
    size_t length;
    for (ucs_status_ptr_t got :
         {ucp_tag_send_nbx(ep_, memory_, 1, 1, &p), ucp_tag_send_sync_nbx(ep_, memory_, 1, 1, &p),
          ucp_tag_recv_nbx(worker_, memory_, 1, 1, 1, &p),
          ucp_am_send_nbx(ep_, 0, nullptr, 0, memory_, 1, &p),
          ucp_am_recv_data_nbx(worker_, memory_ + 64, memory_, 1, &p),
          ucp_stream_send_nbx(ep_, memory_, 1, &p),
          ucp_stream_recv_nbx(ep_, memory_, 1, &length, &p),
          ucp_put_nbx(ep_, memory_, 1, remote, rkey, &p),
          ucp_get_nbx(ep_, memory_, 1, remote, rkey, &p),
          ucp_atomic_op_nbx(ep_, UCP_ATOMIC_OP_ADD, memory_, 1, remote, rkey, &p)}) {
        EXPECT_EQ(UCS_ERR_UNSUPPORTED, UCS_PTR_STATUS(got));
    }
    ucp_rkey_destroy(rkey);
    ASSERT_EQ(UCS_OK, ucp_mem_unmap(context_, memh));
}

TEST_F(ucp_invalid_args, data_types_that_put_and_get_do_not_take)
{
    ucp_mem_h memh = map();
    ucp_rkey_h rkey = key(memh);
    auto remote = reinterpret_cast<uint64_t>(memory_);
    ucp_generic_dt_ops_t ops = {};
    ucp_request_param_t p = {};
    p.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
    ASSERT_EQ(UCS_OK, ucp_dt_create_generic(&ops, nullptr, &p.datatype));
    for (size_t count : {size_t(1), size_t(100)}) {
        EXPECT_EQ(UCS_ERR_UNSUPPORTED,
                  UCS_PTR_STATUS(ucp_put_nbx(ep_, memory_, count, remote, rkey, &p)));
        EXPECT_EQ(UCS_ERR_UNSUPPORTED,
                  UCS_PTR_STATUS(ucp_get_nbx(ep_, memory_, count, remote, rkey, &p)));
    }
    ucp_dt_destroy(p.datatype);
    ucp_rkey_destroy(rkey);
    ASSERT_EQ(UCS_OK, ucp_mem_unmap(context_, memh));
}

TEST_F(ucp_invalid_args, requests_and_data_types)
{
    ucp_request_attr_t attr = {};
    REFUSED("request", ucp_request_query(nullptr, &attr));
    size_t length;
    REFUSED("request", ucp_stream_recv_request_test(nullptr, &length));

    ucp_datatype_t type = 0;
    ucp_generic_dt_ops_t ops = {};
    REFUSED("ops", ucp_dt_create_generic(nullptr, nullptr, &type));
    REFUSED("datatype_p", ucp_dt_create_generic(&ops, nullptr, nullptr));
    REFUSED("attr", ucp_dt_query(ucp_dt_make_contig(1), nullptr));
}

TEST_F(ucp_invalid_args, features_that_were_not_asked_for)
{
    ucp_context_h context = make_context(UCP_FEATURE_WAKEUP);
    ucp_worker_h worker = make_worker(context);
    ucp_ep_h ep = make_ep(UCP_ERR_HANDLING_MODE_NONE, worker);
    ucp_am_handler_param_t handler = {};
    handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID;
    REFUSED("UCP_FEATURE_TAG", ucp_tag_send_nbx(ep, memory_, 8, 1, &param_));
    REFUSED("UCP_FEATURE_TAG", ucp_tag_recv_nbx(worker, memory_, 8, 1, 1, &param_));
    REFUSED("UCP_FEATURE_AM", ucp_am_send_nbx(ep, 0, nullptr, 0, memory_, 8, &param_));
    REFUSED("UCP_FEATURE_AM", ucp_worker_set_am_recv_handler(worker, &handler));
    REFUSED("UCP_FEATURE_STREAM", ucp_stream_send_nbx(ep, memory_, 8, &param_));
    ucp_request_param_t close_param = {};
    void *request = ucp_ep_close_nbx(ep, &close_param);
    for (int i = 0; i < 1000000 && UCS_PTR_IS_PTR(request) &&
                    ucp_request_check_status(request) == UCS_INPROGRESS;
         ++i) {
        ucp_worker_progress(worker);
    }
    if (UCS_PTR_IS_PTR(request)) {
        ucp_request_free(request);
    }
    ucp_worker_destroy(worker);
    ucp_cleanup(context);

    context = make_context(UCP_FEATURE_TAG);
    worker = make_worker(context);
    int fd;
    REFUSED("UCP_FEATURE_WAKEUP", ucp_worker_get_efd(worker, &fd));
    REFUSED("UCP_FEATURE_WAKEUP", ucp_worker_arm(worker));
    REFUSED("UCP_FEATURE_WAKEUP", ucp_worker_wait(worker));
    ucp_worker_destroy(worker);
    ucp_cleanup(context);
}

} // namespace
