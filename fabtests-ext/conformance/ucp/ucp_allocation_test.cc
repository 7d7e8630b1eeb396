// SPDX-License-Identifier: BSD-3-Clause
//
// One allocation of the library fails: the call returns its error, or what it began ends with one,
// and the same again works. Each n-th allocation of a run fails in a process of its own.
// UCXLIKE_ALLOCATION=all tries every n, UCXLIKE_ALLOCATION=n that one.
#include "fabtests-ext/common/open_files.h"
#include "fabtests-ext/common/own_allocations.h"
#include "fabtests-ext/common/ucp_entity.h"
#include "fabtests-ext/common/ucp_pair.h"

namespace {

using namespace ucp_test;

constexpr size_t small = 8, large = 300000;
constexpr unsigned am_id = 3;

// Everything that the run has; a step that failed is repeated, and must work then.
class run_of_all : own_allocations::steps {
  public:
    explicit run_of_all(const char *tls) : tls_(tls) {}
    run_of_all(const run_of_all &) = delete;
    run_of_all &operator=(const run_of_all &) = delete;
    ~run_of_all() { close_all(); }

    std::string wrong()
    {
        (void)(twice("opening", [this] { return open(); }) &&
               twice("messages", [this] { return exchange_messages(); }) &&
               twice("remote memory", [this] { return use_remote_memory(); }) &&
               twice("client and server", [this] { return connect_to_listener(); }));
        close_all();
        return wrong_;
    }

  private:
    bool works(const char *what, ucs_status_t status)
    {
        return steps::works(what, status == UCS_OK, ucs_status_string(status));
    }

    template <class Done>
    bool until(Done &&done)
    {
        auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (!done()) {
            for (ucp_worker_h w : workers_) {
                if (w) {
                    ucp_worker_progress(w);
                }
            }
            if (std::chrono::steady_clock::now() > end) {
                return false;
            }
        }
        return true;
    }

    // How an operation ends. One that waits for the other side is ended when an endpoint failed.
    ucs_status_t result(const char *what, ucs_status_ptr_t r, ucp_worker_h cancel = nullptr)
    {
        if (!UCS_PTR_IS_PTR(r)) {
            return UCS_PTR_STATUS(r);
        }
        auto over = [&] { return ucp_request_check_status(r) != UCS_INPROGRESS; };
        if (!until([&] { return over() || (cancel && seen_.count); })) {
            wrong_ += std::string(what) + " does not end; ";
            return UCS_INPROGRESS; // the request stays
        }
        if (!over()) {
            ucp_request_cancel(cancel, r);
            if (!until(over)) {
                wrong_ += std::string(what) + " is not cancelled; ";
                return UCS_INPROGRESS;
            }
        }
        ucs_status_t status = ucp_request_check_status(r);
        ucp_request_free(r);
        return status;
    }

    bool open();
    bool connect();
    bool exchange_messages();
    bool send_tag(size_t length, ucp_ep_h ep);
    bool send_am(size_t length);
    bool send_stream();
    bool use_remote_memory();
    bool access(ucp_rkey_h rkey);
    bool connect_to_listener();
    bool talk_to_server(const ucp_ep_params_t &to, int number);
    void close(ucp_ep_h *ep, bool force);
    void close_endpoints();
    void close_all();

    static ucs_status_t on_am(void *arg, const void *, size_t, void *data, size_t length,
                              const ucp_am_recv_param_t *p);

    const char *tls_;
    ucp_context_h context_ = nullptr;
    ucp_worker_h workers_[2] = {};
    ucp_ep_h ep_ = nullptr;
    // The second shares the connection of the first, the third is asked for over that.
    static constexpr int client_count = 3;
    ucp_ep_h clients_[client_count] = {}, servers_[client_count] = {};
    ucp_listener_h listener_ = nullptr;
    std::vector<ucp_conn_request_h> requests_;
    errors seen_;
    size_t am_length_ = 0;
    std::vector<char> am_data_, memory_;
    ucs_status_ptr_t am_request_ = nullptr;
};

ucs_status_t run_of_all::on_am(void *arg, const void *, size_t, void *data, size_t length,
                               const ucp_am_recv_param_t *p)
{
    auto *self = static_cast<run_of_all *>(arg);
    if (p->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) {
        ucp_request_param_t none = {};
        self->am_request_ =
            ucp_am_recv_data_nbx(self->workers_[1], data, self->am_data_.data(), length, &none);
    } else {
        memcpy(self->am_data_.data(), data, length);
    }
    self->am_length_ = length;
    return UCS_OK;
}

bool run_of_all::open()
{
    close_all();
    ucp_config_t *config = nullptr;
    if (!works("config_read", ucp_config_read(nullptr, nullptr, &config))) {
        return false;
    }
    bool set = works("config_modify", ucp_config_modify(config, "TLS", tls_));
    ucp_params_t params = {};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_TAG | UCP_FEATURE_AM | UCP_FEATURE_RMA | UCP_FEATURE_AMO64 |
                      UCP_FEATURE_STREAM | UCP_FEATURE_WAKEUP;
    bool has = set && works("init", ucp_init(&params, config, &context_));
    ucp_config_release(config);
    ucp_worker_params_t w = {};
    for (ucp_worker_h &one : workers_) {
        if (!has || !works("worker_create", ucp_worker_create(context_, &w, &one))) {
            return false;
        }
    }
    int fd = -1;
    am_data_.assign(large, 0);
    return works("get_efd", ucp_worker_get_efd(workers_[0], &fd)) &&
           works("set_am_recv_handler", ucp_test::set_am_handler(workers_[1], am_id, on_am, this));
}

bool run_of_all::connect()
{
    close_endpoints();
    ucp_address_t *address = nullptr;
    size_t length = 0;
    if (!works("get_address", ucp_worker_get_address(workers_[1], &address, &length))) {
        return false;
    }
    ucp_ep_params_t p = {};
    p.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    p.address = address;
    seen_.watch(&p);
    bool made = works("ep_create", ucp_ep_create(workers_[0], &p, &ep_));
    ucp_worker_release_address(workers_[1], address);
    return made;
}

bool run_of_all::send_tag(size_t length, ucp_ep_h ep)
{
    std::vector<char> out = pattern(length), in(length);
    ucp_request_param_t p = {};
    ucs_status_ptr_t recv = ucp_tag_recv_nbx(workers_[1], in.data(), length, 1, ~ucp_tag_t(0), &p);
    if (UCS_PTR_IS_ERR(recv)) {
        return works("tag_recv", UCS_PTR_STATUS(recv));
    }
    ucs_status_t sent = result("tag_send", ucp_tag_send_nbx(ep, out.data(), length, 1, &p));
    if (sent != UCS_OK && UCS_PTR_IS_PTR(recv)) {
        ucp_request_cancel(workers_[1], recv);
    }
    ucs_status_t received = result("tag_recv", recv, workers_[1]);
    if (received == UCS_OK && sent == UCS_OK && in != out) {
        wrong_ += "another message came; ";
    }
    return works("tag_send", sent) && works("tag_recv", received);
}

bool run_of_all::send_am(size_t length)
{
    am_length_ = 0;
    am_request_ = nullptr;
    std::vector<char> out = pattern(length);
    ucp_request_param_t p = {};
    ucs_status_t sent =
        result("am_send", ucp_am_send_nbx(ep_, am_id, nullptr, 0, out.data(), length, &p));
    if (sent == UCS_OK && !until([&] { return am_length_ || seen_.count; })) {
        wrong_ += "an active message does not come; ";
    }
    ucs_status_t received = am_request_ ? result("am_recv_data", am_request_) : UCS_OK;
    am_request_ = nullptr;
    return works("am_send", sent) && works("am_recv_data", received) && !seen_.count;
}

bool run_of_all::send_stream()
{
    std::vector<char> out = pattern(small);
    ucp_request_param_t p = {};
    return works("stream_send",
                 result("stream_send", ucp_stream_send_nbx(ep_, out.data(), small, &p)));
}

bool run_of_all::exchange_messages()
{
    ucp_request_param_t none = {};
    bool well = connect();
    for (size_t length : {small, large}) {
        well = well && send_tag(length, ep_) && send_am(length);
    }
    well = well && send_stream() &&
           works("ep_flush", result("ep_flush", ucp_ep_flush_nbx(ep_, &none)));
    return works("errors", seen_.status) && well;
}

// Small and large, so that each way is taken.
bool run_of_all::access(ucp_rkey_h rkey)
{
    const auto at = reinterpret_cast<uint64_t>(memory_.data());
    std::vector<char> out = pattern(large), in(large);
    ucp_request_param_t p = {};
    for (size_t length : {small, large}) {
        bool well =
            works("put", result("put", ucp_put_nbx(ep_, out.data(), length, at, rkey, &p))) &&
            works("flush", result("flush", ucp_worker_flush_nbx(workers_[0], &p))) &&
            works("get", result("get", ucp_get_nbx(ep_, in.data(), length, at, rkey, &p)));
        if (!well) {
            return false;
        }
        if (memcmp(in.data(), out.data(), length) != 0) {
            wrong_ += "other memory was read; ";
        }
    }
    uint64_t one = 1, before = 0;
    p.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REPLY_BUFFER;
    p.datatype = ucp_dt_make_contig(sizeof(one));
    p.reply_buffer = &before;
    return works(
        "fetch and add",
        result("fetch and add", ucp_atomic_op_nbx(ep_, UCP_ATOMIC_OP_ADD, &one, 1, at, rkey, &p)));
}

bool run_of_all::use_remote_memory()
{
    if (seen_.count && !connect()) {
        return false;
    }
    memory_.assign(large, 0);
    ucp_mem_map_params_t map = {};
    map.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
    map.address = memory_.data();
    map.length = large;
    ucp_mem_h memh = nullptr;
    if (!works("mem_map", ucp_mem_map(context_, &map, &memh))) {
        return false;
    }
    void *packed = nullptr;
    size_t length = 0;
    bool well = works("rkey_pack", ucp_rkey_pack(context_, memh, &packed, &length));
    if (well) {
        ucp_rkey_h rkey = nullptr;
        well = works("rkey_unpack", ucp_ep_rkey_unpack(ep_, packed, &rkey));
        ucp_rkey_buffer_release(packed);
        if (well) {
            well = access(rkey);
            ucp_rkey_destroy(rkey);
        }
    }
    return works("mem_unmap", ucp_mem_unmap(context_, memh)) && well;
}

// The client has its endpoint, the server the request of it.
bool run_of_all::talk_to_server(const ucp_ep_params_t &to, int number)
{
    if (!works("ep_create", ucp_ep_create(workers_[0], &to, &clients_[number]))) {
        return false;
    }
    if (!until([&] { return !requests_.empty() || seen_.count; })) {
        wrong_ += "a client does not come; ";
    }
    if (requests_.empty()) {
        return false;
    }
    ucp_ep_params_t p = {};
    p.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST;
    p.conn_request = requests_.front();
    seen_.watch(&p);
    requests_.clear();
    return works("accept", ucp_ep_create(workers_[1], &p, &servers_[number])) &&
           send_tag(small, clients_[number]);
}

bool run_of_all::connect_to_listener()
{
    close_endpoints();
    sockaddr_in at = host_address(0);
    ucp_listener_params_t p = {};
    p.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
    p.sockaddr.addr = reinterpret_cast<sockaddr *>(&at);
    p.sockaddr.addrlen = sizeof(at);
    p.conn_handler.cb = [](ucp_conn_request_h request, void *arg) {
        static_cast<run_of_all *>(arg)->requests_.push_back(request);
    };
    p.conn_handler.arg = this;
    ucp_listener_attr_t attr = {};
    attr.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR;
    if ((!listener_ &&
         !works("listener_create", ucp_listener_create(workers_[1], &p, &listener_))) ||
        !works("listener_query", ucp_listener_query(listener_, &attr))) {
        return false;
    }
    ucp_ep_params_t e = {};
    e.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR;
    e.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
    e.sockaddr.addr = reinterpret_cast<sockaddr *>(&attr.sockaddr);
    e.sockaddr.addrlen = sizeof(at);
    seen_.watch(&e);
    bool well = true;
    for (int i = 0; i < client_count && well; ++i) {
        well = talk_to_server(e, i) && !seen_.count;
    }
    return well;
}

void run_of_all::close(ucp_ep_h *ep, bool force)
{
    if (*ep) {
        (void)result("ep_close", close_nb(*ep, force));
        *ep = nullptr;
    }
}

void run_of_all::close_endpoints()
{
    for (ucp_conn_request_h request : std::exchange(requests_, {})) {
        (void)ucp_listener_reject(listener_, request);
    }
    for (int i = 0; i < client_count; ++i) {
        close(&clients_[i], seen_.count);
        close(&servers_[i], seen_.count);
    }
    close(&ep_, seen_.count);
    seen_ = {};
}

void run_of_all::close_all()
{
    close_endpoints();
    if (listener_) {
        ucp_listener_destroy(listener_);
        listener_ = nullptr;
    }
    for (ucp_worker_h &w : workers_) {
        if (w) {
            ucp_worker_destroy(w);
            w = nullptr;
        }
    }
    if (context_) {
        ucp_cleanup(context_);
        context_ = nullptr;
    }
}

class ucp_allocation : public testing::TestWithParam<const char *> {
  protected:
    void SetUp() override
    {
        if (!own_allocations::can_fail()) {
            GTEST_SKIP() << "the sanitizer has an allocator of its own";
        }
        setenv("IPATH_NO_BACKTRACE", "1", 0);
    }
};

std::string use_everything()
{
    size_t before = open_files();
    std::string wrong = run_of_all(ucp_allocation::GetParam()).wrong();
    size_t after = open_files();
    return after == before ? wrong
                           : wrong + std::to_string(after - before) + " descriptors are left";
}

TEST_P(ucp_allocation, fails_once)
{
    constexpr size_t step = 61;
    EXPECT_EQ(own_allocations::run_each(step, use_everything), "");
}

UCP_TEST_OVER(ucp_allocation, "sm,self", "tcp,self");

} // namespace
