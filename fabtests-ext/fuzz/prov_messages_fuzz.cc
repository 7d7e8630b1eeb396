// SPDX-License-Identifier: BSD-3-Clause
// Messages of a lying peer to live endpoints of the provider: a reliable-datagram pair and a
// connection, with receives, operations that wait for an answer, and a region there to be named.
// Messages come in as UCP hands them on, each in a heap block of its exact size, or by a real
// rendezvous. What a run leaves stays for the next; a pair that has been cut is replaced.
#include "fabtests-ext/fuzz/mutate.h"
#include "fabtests-ext/fuzz/target.h"
#include "prov/ucxlike/data/op.h"
#include "prov/ucxlike/endpoint.h"
#include "prov/ucxlike/params.h"
#include "ucp/core/am_id.h"
#include "ucp/core/worker.h"
#include "ucp/endpoint/ep.h"
#include "ucp/proto/wire.h"

#include <memory>

namespace {

using fuzz::expect;
using fuzz::message;
namespace wire = ucxlike::wire;

constexpr size_t memory_size = 4096;
constexpr size_t large = 16 << 10;
constexpr size_t receives = 4;   // of each kind, posted
constexpr size_t operations = 6; // that wait for the peer, at most

// How a message arrives; the lowest bit of a kind says at which endpoint.
enum way : uint8_t { known = 0, with_reply = 2, rendezvous = 4, kinds = 6 };

// An endpoint, and what it is bound to.
struct side {
    fid_ep *ep = nullptr;
    fid_cq *cq = nullptr;
    size_t posted[2] = {}; // receives: plain, tagged

    ucxlike::endpoint &own() const { return *static_cast<ucxlike::endpoint *>(ep); }
    void take()
    {
        fi_cq_tagged_entry entries[16];
        ssize_t n;
        while ((n = fi_cq_read(cq, entries, 16)) > 0 || n == -FI_EAVAIL) {
            fi_cq_err_entry e = {};
            if (n == -FI_EAVAIL && fi_cq_readerr(cq, &e, 0) == 1) {
                ended(e.flags);
            }
            for (ssize_t i = 0; i < n; ++i) {
                ended(entries[i].flags);
            }
        }
    }
    void ended(uint64_t flags)
    {
        if (flags & FI_RECV) {
            --posted[flags & FI_TAGGED ? 1 : 0];
        }
    }
};

class pair {
  public:
    pair()
    {
        fi_info *hints = fi_allocinfo();
        hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC;
        hints->mode = FI_CONTEXT | FI_CONTEXT2;
        hints->domain_attr->mr_mode =
            FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
        hints->domain_attr->threading = FI_THREAD_SAFE;
        expect(ucxlike::getinfo(FI_VERSION(1, 17), "127.0.0.1", nullptr, FI_SOURCE, hints,
                                &infos_) == 0,
               "fi_getinfo");
        fi_freeinfo(hints);
        fi_info *rdm = find(FI_EP_RDM), *msg = find(FI_EP_MSG);
        fi_eq_attr e = {};
        fi_av_attr v = {};
        expect(ucxlike::open_fabric(rdm->fabric_attr, &fabric_, nullptr) == 0 &&
                   fi_eq_open(fabric_, &e, &eq_, nullptr) == 0 &&
                   fi_domain(fabric_, rdm, &domain_, nullptr) == 0 &&
                   fi_av_open(domain_, &v, &av_, nullptr) == 0,
               "opening");
        open_rdm(rdm);
        open_msg(msg);
        expect(fi_mr_reg(domain_, memory_.get(), memory_size, FI_REMOTE_READ | FI_REMOTE_WRITE, 0,
                         0, 0, &mr_, nullptr) == 0,
               "fi_mr_reg");
    }
    ~pair()
    {
        for (auto &both : sides_) {
            for (side &s : both) {
                fi_close(&s.ep->fid);
                fi_close(&s.cq->fid);
            }
        }
        fi_close(&mr_->fid);
        fi_close(&av_->fid);
        fi_close(&domain_->fid);
        expect(fi_close(&eq_->fid) == 0 && fi_close(&fabric_->fid) == 0, "closing");
        fi_freeinfo(infos_);
    }
    bool usable()
    {
        for (bool msg : {false, true}) {
            if (!link_of(msg, 0) || !link_of(msg, 1)) {
                return false;
            }
        }
        return true;
    }

    void post()
    {
        for (bool msg : {false, true}) {
            side &s = sides_[msg][0];
            for (; s.posted[0] < receives; ++s.posted[0]) {
                expect(fi_recv(s.ep, received_.get(), memory_size, nullptr, FI_ADDR_UNSPEC,
                               nullptr) == 0,
                       "fi_recv");
            }
            for (; s.posted[1] < receives; ++s.posted[1]) {
                uint64_t ignore = s.posted[1] % 2 ? ~uint64_t(0) : 0;
                expect(fi_trecv(s.ep, received_.get(), memory_size, nullptr, FI_ADDR_UNSPEC, 7,
                                ignore, nullptr) == 0,
                       "fi_trecv");
            }
            if (s.own().inflight < operations) {
                ask(s);
            }
        }
    }

    void deliver(message &m)
    {
        fuzz::resolve(m.bytes, [this, &m](uint16_t n) { return live(n, m.kind & 1); });
        if (m.kind % kinds / 2 == rendezvous / 2) {
            send(m);
            return;
        }
        ucp_worker_h worker = sides_[m.kind & 1][0].own().eng->worker;
        uint8_t id = m.kind % kinds / 2 ? ucp::AM_ID_AM_REPLY : ucp::AM_ID_AM_SINGLE;
        // A header is behind the data, so that the block ends with it.
        ucp::wire::am_hdr head = {};
        std::copy_n(m.bytes.begin(), std::min(m.bytes.size(), sizeof(head)),
                    reinterpret_cast<uint8_t *>(&head));
        size_t front = sizeof(head) + (id == ucp::AM_ID_AM_REPLY ? sizeof(uint64_t) : 0);
        if (m.bytes.size() >= front && head.header_len <= m.bytes.size() - front) {
            auto at = m.bytes.begin() + static_cast<ptrdiff_t>(front);
            std::rotate(at, at + head.header_len, m.bytes.end());
        }
        auto block = std::make_unique<uint8_t[]>(m.bytes.size());
        std::copy(m.bytes.begin(), m.bytes.end(), block.get());
        for (size_t i = 0; i < ucp::am_handler_count; ++i) {
            if (ucp::am_handlers[i].id == id) {
                worker->inside_progress = true;
                (void)ucp::am_handlers[i].fn(worker, block.get(), m.bytes.size(), 0);
                worker->inside_progress = false;
            }
        }
    }

    void settle()
    {
        for (int i = 0; i < 2; ++i) {
            for (auto &both : sides_) {
                both[1].take();
                both[0].take();
            }
        }
        read_events();
    }

    enum : uint8_t { link_id, peer, peers_id, key, address, last_word, end, size, first_ack };
    static constexpr unsigned live_values = first_ack + operations;

  private:
    fi_info *find(fi_ep_type type) const
    {
        fi_info *i = infos_;
        while (i && i->ep_attr->type != type) {
            i = i->next;
        }
        expect(i, "an info of each type");
        return i;
    }
    void open(side &s, fi_info *info)
    {
        fi_cq_attr c = {};
        c.format = FI_CQ_FORMAT_TAGGED;
        expect(fi_cq_open(domain_, &c, &s.cq, nullptr) == 0 &&
                   fi_endpoint(domain_, info, &s.ep, nullptr) == 0 &&
                   fi_ep_bind(s.ep, &s.cq->fid, FI_TRANSMIT | FI_RECV) == 0 &&
                   fi_ep_bind(s.ep, info->ep_attr->type == FI_EP_RDM ? &av_->fid : &eq_->fid, 0) ==
                       0 &&
                   fi_enable(s.ep) == 0,
               "an endpoint");
    }
    void open_rdm(fi_info *info)
    {
        for (side &s : sides_[0]) {
            open(s, info);
        }
        for (side &s : sides_[0]) {
            char name[64];
            size_t length = sizeof(name);
            expect(fi_getname(&s.ep->fid, name, &length) == 0 &&
                       fi_av_insert(av_, name, 1, nullptr, 0, nullptr) == 1,
                   "a name");
        }
        // Both know each other's id when a message has gone each way.
        for (int to : {0, 1}) {
            side &from = sides_[0][1 - to], &at = sides_[0][to];
            ++at.posted[0];
            expect(fi_recv(at.ep, received_.get(), 8, nullptr, FI_ADDR_UNSPEC, nullptr) == 0,
                   "fi_recv");
            await([&] { return fi_inject(from.ep, memory_.get(), 8, to) == 0; });
            await([&] { return at.posted[0] == 0; });
        }
        await([&] { return link_of(false, 0) && link_of(false, 1); });
    }
    void open_msg(fi_info *info)
    {
        fid_pep *pep;
        char name[64];
        size_t length = sizeof(name);
        expect(fi_passive_ep(fabric_, info, &pep, nullptr) == 0 &&
                   fi_pep_bind(pep, &eq_->fid, 0) == 0 && fi_listen(pep) == 0 &&
                   fi_getname(&pep->fid, name, &length) == 0,
               "a listener");
        open(sides_[1][1], info);
        expect(fi_connect(sides_[1][1].ep, name, nullptr, 0) == 0, "fi_connect");
        fi_info *request = nullptr;
        await([&] { return event(&request) == FI_CONNREQ; });
        open(sides_[1][0], request);
        fi_freeinfo(request);
        expect(fi_accept(sides_[1][0].ep, nullptr, 0) == 0, "fi_accept");
        int connected = 0;
        await([&] { return (connected += event(&request) == FI_CONNECTED) == 2; });
        fi_close(&pep->fid);
    }
    template <class F>
    void await(F &&done)
    {
        for (int i = 0; i < 1000000; ++i) {
            if (done()) {
                return;
            }
            for (auto &both : sides_) {
                for (side &s : both) {
                    if (s.cq) {
                        s.take();
                    }
                }
            }
        }
        expect(false, "what is waited for comes");
    }
    uint32_t event(fi_info **request)
    {
        uint32_t type = 0;
        fi_eq_cm_entry entry = {};
        if (fi_eq_read(eq_, &type, &entry, sizeof(entry), 0) <= 0) {
            return 0;
        }
        *request = entry.info;
        return type;
    }
    void read_events()
    {
        fi_info *none;
        fi_eq_err_entry e = {};
        while (event(&none)) {
        }
        (void)fi_eq_readerr(eq_, &e, 0);
    }

    ucxlike::conn *conn_of(bool msg, int at)
    {
        int error = 0;
        return sides_[msg][at].own().route(msg ? 0 : static_cast<fi_addr_t>(1 - at), &error);
    }
    ucxlike::link *link_of(bool msg, int at)
    {
        ucxlike::conn *c = conn_of(msg, at);
        return c && c->tx_id ? c->tx : nullptr;
    }

    // An operation that waits for the peer's word, or its data.
    void ask(side &s)
    {
        auto at = reinterpret_cast<uint64_t>(memory_.get());
        bool msg = &s == &sides_[1][0];
        fi_addr_t to = msg ? FI_ADDR_UNSPEC : 1;
        switch (++asked_ % 4) {
        case 0:
            (void)fi_write(s.ep, out_.get(), 64, nullptr, to, at, fi_mr_key(mr_), nullptr);
            break;
        case 1:
            (void)fi_read(s.ep, in_.get(), 64, nullptr, to, at, fi_mr_key(mr_), nullptr);
            break;
        case 2:
            (void)fi_fetch_atomic(s.ep, out_.get(), 1, nullptr, in_.get(), nullptr, to, at,
                                  fi_mr_key(mr_), FI_UINT64, FI_SUM, nullptr);
            break;
        default: {
            iovec iov = {out_.get(), 64};
            fi_msg m = {&iov, nullptr, 1, to, nullptr, 0};
            (void)fi_sendmsg(s.ep, &m, FI_DELIVERY_COMPLETE);
        }
        }
    }
    // What the other side's library would not send, over its connection.
    void send(const message &m)
    {
        bool msg = m.kind & 1;
        ucxlike::link *l = link_of(msg, 1);
        if (!l || m.bytes.size() < sizeof(ucp::wire::am_hdr)) {
            return;
        }
        ucp::wire::am_hdr head;
        memcpy(&head, m.bytes.data(), sizeof(head));
        size_t length = std::min<size_t>(m.bytes.size() - sizeof(head), head.header_len);
        ucp_request_param_t p = {};
        p.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK;
        p.flags = UCP_AM_SEND_FLAG_RNDV | UCP_AM_SEND_FLAG_REPLY | UCP_AM_SEND_FLAG_COPY_HEADER;
        p.cb.send = [](void *request, ucs_status_t, void *) { ucp_request_free(request); };
        (void)ucp_am_send_nbx(l->ep, head.am_id % wire::am_last, m.bytes.data() + sizeof(head),
                              length, large_.get(), m.bytes.size() % 3 ? 64 : large, &p);
    }

    // With flags of the message in the upper byte, which a word that is an id has there.
    uint64_t live(uint16_t n, bool msg)
    {
        ucxlike::conn *c = conn_of(msg, 0);
        auto at = reinterpret_cast<uint64_t>(memory_.get());
        uint64_t values[live_values] = {0,  c ? c->rx_id : 0,     c ? c->tx_id : 0, fi_mr_key(mr_),
                                        at, at + memory_size - 8, at + memory_size, memory_size};
        if (ucxlike::link *l = link_of(msg, 0)) {
            values[link_id] = l->ep->local_id;
        }
        size_t i = first_ack;
        for (ucxlike::tx_op *op : sides_[msg][0].own().outstanding) {
            if (i < live_values) {
                values[i++] = op->ack_id;
            }
        }
        return values[(n & 0xff) % live_values] | static_cast<uint64_t>(n >> 8) << wire::id_bits;
    }

    std::unique_ptr<char[]> memory_{new char[memory_size]()};
    std::unique_ptr<char[]> received_{new char[memory_size]()};
    std::unique_ptr<char[]> in_{new char[64]()};
    std::unique_ptr<char[]> out_{new char[64]()};
    std::unique_ptr<char[]> large_{new char[large]()};
    fi_info *infos_ = nullptr;
    fid_fabric *fabric_ = nullptr;
    fid_domain *domain_ = nullptr;
    fid_eq *eq_ = nullptr;
    fid_av *av_ = nullptr;
    fid_mr *mr_ = nullptr;
    side sides_[2][2]; // RDM, MSG; each: the one that is lied to, and its peer
    unsigned asked_ = 0;
};

// A header of the provider in a message of UCP.
message valid(unsigned am, uint8_t how, const std::vector<uint64_t> &words, uint16_t kind = 0,
              size_t data = 16)
{
    size_t header = 8 * words.size() + (kind ? sizeof(kind) : 0);
    ucp::wire::am_hdr head = {static_cast<uint16_t>(am), 0, static_cast<uint32_t>(header)};
    std::vector<uint8_t> bytes(sizeof(head));
    memcpy(bytes.data(), &head, sizeof(head));
    if (how == with_reply) {
        const uint64_t ep = fuzz::symbol_base + pair::link_id;
        auto *at = reinterpret_cast<const uint8_t *>(&ep);
        bytes.insert(bytes.end(), at, at + sizeof(ep));
    }
    auto *at = reinterpret_cast<const uint8_t *>(words.data());
    bytes.insert(bytes.end(), at, at + 8 * words.size());
    if (kind) {
        at = reinterpret_cast<const uint8_t *>(&kind);
        bytes.insert(bytes.end(), at, at + sizeof(kind));
    }
    bytes.resize(bytes.size() + data, 1);
    return {how, bytes};
}

const std::vector<message> &templates()
{
    static std::vector<message> all;
    if (!all.empty()) {
        return all;
    }
    auto word = [](uint8_t flags) { return fuzz::symbol_base + (flags << 8) + pair::peer; };
    auto is = [](unsigned live) { return fuzz::symbol_base + live; };
    auto ack = [](unsigned n) { return fuzz::symbol_base + pair::first_ack + n; };
    constexpr uint64_t add = FI_SUM | FI_UINT64 << 8;
    constexpr uint64_t hello[] = {uint64_t(wire::version) | 4 << 8 | 1 << 16, pair::peers_id, 3,
                                  0x0100007f, 0};
    for (uint8_t how : {known, with_reply, rendezvous}) {
        size_t many = how == rendezvous ? 0 : 2000;
        all.push_back(valid(wire::am_msg, how, {word(0)}));
        all.push_back(
            valid(wire::am_msg, how, {word(wire::has_data | wire::has_ack), 1, 2}, 0, many));
        all.push_back(valid(wire::am_tagged, how, {word(wire::has_tag), 7}));
        all.push_back(valid(wire::am_tagged, how,
                            {word(wire::has_tag | wire::has_ack | wire::on_arrival), 7, 5}));
        all.push_back(valid(wire::am_rma, how,
                            {word(wire::has_ack | wire::has_rma | wire::has_kind), 9,
                             is(pair::address), is(pair::key), 16},
                            wire::write));
        all.push_back(valid(wire::am_rma, how,
                            {word(wire::has_ack | wire::has_rma | wire::has_kind), 9,
                             is(pair::address), is(pair::key), 64},
                            wire::read, 0));
        all.push_back(valid(wire::am_rma, how, {word(wire::has_ack | wire::has_kind), ack(0)},
                            wire::read_data, 64));
        all.push_back(valid(wire::am_rma, how,
                            {word(wire::has_tag | wire::has_ack | wire::has_rma | wire::has_kind),
                             add, 9, is(pair::address), is(pair::key), 1},
                            wire::atomic, 8));
        all.push_back(valid(wire::am_control, how,
                            {word(wire::has_tag | wire::has_data | wire::has_kind), ack(0), 0},
                            wire::acked, 0));
        all.push_back(valid(wire::am_control, how, {word(wire::has_kind)}, wire::shutdown, 0));
        all.push_back(valid(wire::am_control, how,
                            {word(wire::has_tag | wire::has_hello | wire::has_kind),
                             is(pair::peers_id), hello[0], hello[1], hello[2], hello[3], hello[4]},
                            wire::welcome, 0));
        all.push_back(valid(wire::am_msg, how,
                            {uint64_t(wire::has_hello) << wire::id_bits, hello[0], hello[1],
                             hello[2], hello[3], hello[4]}));
        for (uint16_t kind : {wire::asks_membership, wire::tells_membership}) {
            all.push_back(valid(wire::am_control, how, {word(wire::has_kind)}, kind, 40));
        }
    }
    size_t count = all.size();
    for (size_t i = 0; i < count; ++i) { // the same to the connection
        message m = all[i];
        m.kind |= 1;
        all.push_back(m);
    }
    return all;
}

} // namespace

extern "C" int LLVMFuzzerInitialize(int *, char ***)
{
    fuzz::silence_log();
    setenv("FI_UCXLIKE_TLS", "\\sm,tcp", 0);
    setenv("FI_UCXLIKE_CLOSE_TIMEOUT", "0", 0);
    setenv("FI_UCXLIKE_LINGER", "0", 0);
    setenv("FI_LOG_SUBSYS", "none", 0);
    setenv("FI_PROVIDER", "none", 0); // libfabric has to begin, and needs no other
    fi_info *none = nullptr;
    (void)fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, nullptr, &none);
    fi_freeinfo(none);
    ucxlike::define_params();
    atexit([] { fuzz::the_pair<pair>().reset(); });
    return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    return fuzz::mutator(seed, templates(), UINT16_MAX).mutate(data, size, max);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz::feed<pair>(data, size);
}
