// SPDX-License-Identifier: BSD-3-Clause
// Messages of the wire-up to a live worker, from a peer that lies: about endpoints made from worker
// addresses, and about clients and servers, those that share a connection and those that are asked
// for over its lane. What a lie has ended is made anew before the next input.
#include "fabtests-ext/fuzz/mutate.h"
#include "fabtests-ext/fuzz/target.h"
#include "fabtests-ext/fuzz/ucp_party.h"
#include "ucp/connect/cm.h"
#include "ucp/connect/wireup.h"
#include "ucp/core/worker.h"
#include "ucp/endpoint/ep.h"
#include "ucp/endpoint/ep_control.h"

#include <algorithm>
#include <arpa/inet.h>
#include <memory>
#include <vector>

namespace {

using fuzz::expect;
using fuzz::message;
using fuzz::party;
using ucp::wireup_kind;

constexpr unsigned rounds_to_connect = 100000;

void close_now(ucp_ep_h *ep)
{
    ucp_request_param_t param = {};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = UCP_EP_CLOSE_FLAG_FORCE;
    if (*ep) {
        ucs_status_ptr_t closing = ucp_ep_close_nbx(std::exchange(*ep, nullptr), &param);
        if (UCS_PTR_IS_PTR(closing)) {
            ucp_request_free(closing);
        }
    }
}

void ignore_errors(ucp_ep_params_t *params)
{
    params->field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params->err_mode = UCP_ERR_HANDLING_MODE_PEER;
    params->err_handler.cb = [](void *, ucp_ep_h, ucs_status_t) {};
}

// A listener on loopback and the requests that it has.
struct listening {
    explicit listening(ucp_worker_h worker)
    {
        sockaddr_in any = {};
        any.sin_family = AF_INET;
        any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        ucp_listener_params_t params = {};
        params.field_mask =
            UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
        params.sockaddr = {reinterpret_cast<sockaddr *>(&any), sizeof(any)};
        params.conn_handler.cb = [](ucp_conn_request_h request, void *arg) {
            static_cast<listening *>(arg)->requests.push_back(request);
        };
        params.conn_handler.arg = this;
        expect(ucp_listener_create(worker, &params, &listener) == UCS_OK, "ucp_listener_create");
        ucp_listener_attr_t attr = {};
        attr.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR;
        expect(ucp_listener_query(listener, &attr) == UCS_OK, "ucp_listener_query");
        address = reinterpret_cast<sockaddr_in &>(attr.sockaddr);
    }
    listening(const listening &) = delete;
    listening &operator=(const listening &) = delete;
    ~listening() { ucp_listener_destroy(listener); }

    ucp_conn_request_h take()
    {
        ucp_conn_request_h first = requests.front();
        requests.erase(requests.begin());
        return first;
    }

    ucp_listener_h listener = nullptr;
    sockaddr_in address = {};
    std::vector<ucp_conn_request_h> requests;
};

struct ends {
    ucp_ep_h client = nullptr, server = nullptr;

    bool stand() const
    {
        return client && server && client->status == UCS_OK && server->status == UCS_OK &&
               client->state == ucp::ep_state::connected;
    }
    void close()
    {
        close_now(&client);
        close_now(&server);
    }
};

// `a` gets the lies, `b` is the peer.
class pair {
  public:
    pair() : at_a_(a_.worker), at_b_(b_.worker) { make_what_ended(); }
    ~pair()
    {
        close_now(&asking_);
        for (ends *e : {&served_[0], &served_[1], &asked_[0], &asked_[1]}) {
            e->close();
        }
        for (party *p : {&a_, &b_}) {
            close_now(&p->ep);
        }
        answer_all(at_a_);
        answer_all(at_b_);
        progress(100);
    }

    bool usable()
    {
        make_what_ended();
        return !stuck_;
    }

    void deliver(message &m)
    {
        fuzz::resolve(m.bytes, [this](uint16_t n) { return live(n); });
        complete(m.bytes);
        auto block = std::make_unique<uint8_t[]>(m.bytes.size());
        std::copy(m.bytes.begin(), m.bytes.end(), block.get());
        a_.worker->inside_progress = true;
        (void)ucp::wireup_handler(a_.worker, block.get(), m.bytes.size(), 0);
        a_.worker->inside_progress = false;
    }

    // Requests that only a lie has made are accepted, and closed.
    void settle()
    {
        progress(3);
        while (!at_a_.requests.empty()) {
            ucp_ep_h made = accept(a_.worker, at_a_.take());
            progress(1);
            close_now(&made);
        }
        progress(2);
    }

    static constexpr unsigned live_values = 14;
    static constexpr unsigned address_symbol = live_values; // the address of b's worker
    static constexpr uint16_t address_length = 0x5a5a;      // its length

  private:
    uint64_t live(uint16_t n) const
    {
        auto connection = [](const ends &e) { return e.server->control->by_cm->cm; };
        const ucp::cm_connection *of_a = connection(served_[1]), *of_b = connection(asked_[1]);
        const uint64_t values[live_values] = {a_.ep->local_id,
                                              a_.ep->remote_id,
                                              a_.worker->uuid,
                                              b_.worker->uuid,
                                              served_[0].server->local_id,
                                              served_[0].server->remote_id,
                                              served_[1].server->local_id,
                                              served_[1].server->remote_id,
                                              asked_[0].client->local_id,
                                              asked_[0].client->remote_id,
                                              asking_ ? asking_->local_id : 0,
                                              of_a ? of_a->id : 0,
                                              of_b ? of_b->id : 0,
                                              77};
        return n < live_values ? values[n] : fuzz::symbol_base + n;
    }

    // Where a message has an address in it, that of b; where it asks for an address, that of a.
    void complete(std::vector<uint8_t> &bytes) const
    {
        const std::vector<uint8_t> &address = b_.worker->cm->address;
        const uint64_t placeholder = fuzz::symbol_base + address_symbol;
        const auto *p = reinterpret_cast<const uint8_t *>(&placeholder);
        auto at = std::search(bytes.begin(), bytes.end(), p, p + sizeof(placeholder));
        if (at != bytes.end()) {
            at = bytes.erase(at, at + sizeof(placeholder));
            bytes.insert(at, address.begin(), address.end());
        }
        for (size_t i = 0; i + 1 < std::min<size_t>(bytes.size(), 64); i += 2) {
            if (bytes[i] == (address_length & 0xff) && bytes[i + 1] == address_length >> 8) {
                auto length = static_cast<uint16_t>(address.size());
                memcpy(bytes.data() + i, &length, sizeof(length));
            }
        }
        const uint8_t asks[] = {7, '@', '@', '@', '@', '@', '@', '@'};
        constexpr size_t head = sizeof(ucp::wireup_hdr);
        if (bytes.size() >= head + sizeof(asks) &&
            std::equal(std::begin(asks), std::end(asks), bytes.begin() + head)) {
            char text[32];
            int length =
                snprintf(text, sizeof(text), "?127.0.0.1:%u", ntohs(at_a_.address.sin_port));
            text[0] = static_cast<char>(length - 1);
            auto begin = bytes.erase(bytes.begin() + head, bytes.begin() + head + sizeof(asks));
            bytes.insert(begin, text, text + length);
        }
        if (bytes.size() >= head && bytes[2] == 0xff && bytes[3] == 0xff) {
            auto tail = static_cast<uint16_t>(bytes.size() - head);
            memcpy(bytes.data() + 2, &tail, sizeof(tail));
        }
    }

    void progress(unsigned rounds)
    {
        for (unsigned i = 0; i < rounds; ++i) {
            ucp_worker_progress(a_.worker);
            ucp_worker_progress(b_.worker);
        }
    }

    template <class Done>
    void progress_until(Done &&done)
    {
        for (unsigned i = 0; i < rounds_to_connect && !done(); ++i) {
            progress(1);
        }
        stuck_ = stuck_ || !done();
    }

    static ucp_ep_h call(ucp_worker_h from, const listening &to)
    {
        ucp_ep_params_t params = {};
        params.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR;
        params.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
        params.sockaddr = {reinterpret_cast<const sockaddr *>(&to.address), sizeof(to.address)};
        ignore_errors(&params);
        ucp_ep_h ep = nullptr;
        expect(ucp_ep_create(from, &params, &ep) == UCS_OK, "ucp_ep_create to an address");
        return ep;
    }

    static ucp_ep_h accept(ucp_worker_h worker, ucp_conn_request_h request)
    {
        ucp_ep_params_t params = {};
        params.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST;
        params.conn_request = request;
        ignore_errors(&params);
        ucp_ep_h ep = nullptr;
        (void)ucp_ep_create(worker, &params, &ep); // its client may be gone
        return ep;
    }

    void answer_all(listening &at)
    {
        while (!at.requests.empty()) {
            (void)ucp_listener_reject(at.listener, at.take());
        }
    }

    void connect(ends *e, party &from, party &to, listening &at)
    {
        if (e->stand()) {
            return;
        }
        e->close();
        answer_all(at);
        e->client = call(from.worker, at);
        progress_until([&] { return !at.requests.empty() || e->client->status != UCS_OK; });
        if (!at.requests.empty()) {
            e->server = accept(to.worker, at.take());
        }
        progress_until([&] { return e->stand() || e->client->status != UCS_OK || !e->server; });
        stuck_ = stuck_ || !e->stand();
    }

    void make_what_ended()
    {
        if (!a_.ep || a_.ep->status != UCS_OK || b_.ep->status != UCS_OK) {
            close_now(&a_.ep);
            close_now(&b_.ep);
            a_.connect(b_);
            b_.connect(a_);
            progress_until([&] { return a_.ep->remote_id != 0 && b_.ep->remote_id != 0; });
        }
        for (int i = 0; i < 2; ++i) {
            connect(&served_[i], b_, a_, at_a_);
            connect(&asked_[i], a_, b_, at_b_);
        }
        if (stuck_ || (asking_ && asking_->status == UCS_OK && !at_b_.requests.empty())) {
            return;
        }
        close_now(&asking_);
        answer_all(at_b_);
        asking_ = call(a_.worker, at_b_);
        progress_until([&] { return !at_b_.requests.empty() || asking_->status != UCS_OK; });
    }

    party b_;
    party a_;
    listening at_a_;
    listening at_b_;
    ends served_[2]; // by a
    ends asked_[2];  // by a, of b
    ucp_ep_h asking_ = nullptr;
    bool stuck_ = false; // a lie has cost the peer more than an endpoint
};

constexpr uint64_t symbol(unsigned n)
{
    return fuzz::symbol_base + n;
}

message valid(wireup_kind kind, uint64_t from, uint64_t to, const std::vector<uint8_t> &tail = {})
{
    ucp::wireup_hdr hdr = {kind, 0, 0, 0, symbol(3), from, to};
    hdr.tail_length = tail.empty() ? 0 : 0xffff; // as long as it becomes
    message m{0, std::vector<uint8_t>(sizeof(hdr))};
    memcpy(m.bytes.data(), &hdr, sizeof(hdr));
    m.bytes.insert(m.bytes.end(), tail.begin(), tail.end());
    return m;
}

template <class T>
void put(std::vector<uint8_t> *to, T value)
{
    const auto *p = reinterpret_cast<const uint8_t *>(&value);
    to->insert(to->end(), p, p + sizeof(value));
}

std::vector<uint8_t> with_address(std::vector<uint8_t> front)
{
    put(&front, symbol(pair::address_symbol));
    return front;
}

std::vector<uint8_t> hello(bool of_client, uint64_t ep)
{
    std::vector<uint8_t> out = {ucp::hello_protocol.version, of_client ? uint8_t(1) : uint8_t(0), 0,
                                0};
    put(&out, pair::address_length);
    put(&out, uint16_t(0)); // greeting
    if (of_client) {
        put(&out, uint64_t(0)); // client id
        put(&out, ep);
        put(&out, symbol(11)); // to share
    } else {
        put(&out, ep);
    }
    return with_address(out);
}

std::vector<uint8_t> asks_a(const std::vector<uint8_t> &hello)
{
    std::vector<uint8_t> out = {7, '@', '@', '@', '@', '@', '@', '@'};
    out.insert(out.end(), hello.begin(), hello.end());
    return out;
}

const std::vector<message> &templates()
{
    constexpr uint64_t ep = symbol(0), peer = symbol(1), served = symbol(4), client = symbol(5),
                       asked = symbol(8), server = symbol(9), asking = symbol(10),
                       of_a = symbol(11), of_b = symbol(12), fresh = symbol(13);
    std::vector<uint8_t> name;
    put(&name, of_a);
    static const std::vector<message> all = {
        valid(wireup_kind::request, peer, 0, with_address({})),
        valid(wireup_kind::reply, peer, ep),
        valid(wireup_kind::close, peer, ep),
        valid(wireup_kind::ping, peer, ep),
        valid(wireup_kind::close, client, served),
        valid(wireup_kind::close, server, asked),
        valid(wireup_kind::share, client, served, with_address(name)),
        valid(wireup_kind::shared, server, asked),
        valid(wireup_kind::connect, fresh, of_a, asks_a(hello(true, fresh))),
        valid(wireup_kind::accepted, fresh, asking, hello(false, fresh)),
        valid(wireup_kind::refused, of_b, asking),
        valid(wireup_kind::parted, fresh, of_a),
    };
    return all;
}

} // namespace

extern "C" int LLVMFuzzerInitialize(int *, char ***)
{
    return fuzz::begin<pair>();
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    return fuzz::mutator(seed, templates(), pair::live_values).mutate(data, size, max);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz::feed<pair>(data, size);
}
