// SPDX-License-Identifier: BSD-3-Clause
// Messages of a lying peer to a live worker: every handler of UCP, in any order, with receives,
// sends, mapped memory and both endpoints of a connection there to be named. Each message is a heap
// block of its exact size. What a run leaves stays for the next; a pair whose endpoint has failed
// is replaced.
#include "fabtests-ext/fuzz/mutate.h"
#include "fabtests-ext/fuzz/target.h"
#include "fabtests-ext/fuzz/ucp_party.h"
#include "ucp/core/am_id.h"
#include "ucp/core/request.h"
#include "ucp/core/worker.h"
#include "ucp/endpoint/ep.h"
#include "ucp/mem/mem.h"
#include "ucp/proto/wire.h"

#include <memory>

namespace {

using fuzz::expect;
using fuzz::message;
using fuzz::party;

constexpr size_t memory_size = 4096;
constexpr size_t large = 64 << 10;
constexpr unsigned am_number = 1;

// What the messages are about: `a` gets them, `b` is the peer that lies.
class pair {
  public:
    pair()
    {
        a_.connect(b_);
        b_.connect(a_);
        for (party *p : {&a_, &b_}) {
            ucp_request_param_t none = {};
            finish(ucp_ep_flush_nbx(p->ep, &none));
        }
        ucp_mem_map_params_t map = {};
        map.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
        map.address = memory_.get();
        map.length = memory_size;
        expect(ucp_mem_map(a_.context, &map, &memh_) == UCS_OK, "ucp_mem_map");
        ucp_am_handler_param_t handler = {};
        handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB;
        handler.id = am_number;
        handler.cb = [](void *, const void *header, size_t header_length, void *data, size_t length,
                        const ucp_am_recv_param_t *param) {
            unsigned sum = 0; // reads what it was given
            for (size_t i = 0; i < header_length; ++i) {
                sum += static_cast<const uint8_t *>(header)[i];
            }
            if (!(param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV)) {
                for (size_t i = 0; i < length; ++i) {
                    sum += static_cast<const uint8_t *>(data)[i];
                }
            }
            return sum == ~0u ? UCS_ERR_INVALID_PARAM : UCS_OK;
        };
        expect(ucp_worker_set_am_recv_handler(a_.worker, &handler) == UCS_OK, "handler");
    }
    ~pair()
    {
        for (party *p : {&a_, &b_}) {
            ucp_request_param_t param = {};
            param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
            param.flags = UCP_EP_CLOSE_FLAG_FORCE;
            finish(ucp_ep_close_nbx(p->ep, &param));
        }
        for (void *r : {tag_, stream_, sync_, rndv_}) {
            if (r) {
                ucp_request_cancel(a_.worker, r);
                finish(r);
            }
        }
        expect(ucp_mem_unmap(a_.context, memh_) == UCS_OK, "ucp_mem_unmap");
    }

    bool usable() const { return a_.ep->status == UCS_OK && b_.ep->status == UCS_OK; }

    void post()
    {
        ucp_request_param_t none = {};
        none.op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
        renew(&tag_, [&] {
            return ucp_tag_recv_nbx(a_.worker, received_.get(), memory_size, 7, ~0ull, &none);
        });
        renew(&stream_, [&] {
            size_t length;
            return ucp_stream_recv_nbx(a_.ep, streamed_.get(), 64, &length, &none);
        });
        renew(&sync_, [&] { return ucp_tag_send_sync_nbx(a_.ep, memory_.get(), 8, 1, &none); });
        renew(&rndv_, [&] { return ucp_tag_send_nbx(a_.ep, large_.get(), large, 2, &none); });
    }

    void deliver(message &m)
    {
        const ucp::am_handler_entry &row = ucp::am_handlers[m.kind % ucp::am_handler_count];
        fuzz::resolve(m.bytes, [this](uint16_t n) { return live(n); });
        auto block = std::make_unique<uint8_t[]>(m.bytes.size());
        std::copy(m.bytes.begin(), m.bytes.end(), block.get());
        a_.worker->inside_progress = true;
        (void)row.fn(a_.worker, block.get(), m.bytes.size(), 0);
        a_.worker->inside_progress = false;
    }

    void settle()
    {
        for (int i = 0; i < 2; ++i) {
            ucp_worker_progress(a_.worker);
            ucp_worker_progress(b_.worker);
        }
        for (party *p : {&a_, &b_}) {
            ucp_tag_recv_info_t info;
            while (ucp_tag_message_h m = ucp_tag_probe_nb(p->worker, 0, 0, 1, &info)) {
                ucp_request_param_t none = {};
                drop(ucp_tag_msg_recv_nbx(p->worker, spare_.get(), memory_size, m, &none));
            }
        }
    }

    static constexpr unsigned live_values = 12;

  private:
    uint64_t live(uint16_t n) const
    {
        auto at = reinterpret_cast<uint64_t>(memory_.get());
        auto id = [](void *r) { return r ? ucp_request::from_user(r)->id : 0; };
        const uint64_t values[live_values] = {a_.ep->local_id,
                                              a_.ep->remote_id,
                                              a_.worker->uuid,
                                              b_.worker->uuid,
                                              memh_->id,
                                              at,
                                              at + memory_size - 8,
                                              at + memory_size,
                                              id(tag_),
                                              id(sync_),
                                              id(rndv_),
                                              memory_size};
        return values[n % live_values];
    }

    template <class Post>
    void renew(void **request, Post &&again)
    {
        if (*request && ucp_request_check_status(*request) == UCS_INPROGRESS) {
            return;
        }
        drop(*request);
        *request = nullptr;
        void *r = a_.ep->status == UCS_OK ? again() : nullptr;
        if (UCS_PTR_IS_PTR(r)) {
            *request = r;
        }
    }
    static void drop(void *request)
    {
        if (UCS_PTR_IS_PTR(request)) {
            ucp_request_free(request);
        }
    }
    void finish(void *request)
    {
        if (!UCS_PTR_IS_PTR(request)) {
            return;
        }
        for (int i = 0; i < 10000 && ucp_request_check_status(request) == UCS_INPROGRESS; ++i) {
            ucp_worker_progress(a_.worker);
            ucp_worker_progress(b_.worker);
        }
        ucp_request_free(request);
    }

    party b_;
    party a_;
    std::unique_ptr<char[]> memory_{new char[memory_size]()};
    std::unique_ptr<char[]> received_{new char[memory_size]()};
    std::unique_ptr<char[]> spare_{new char[memory_size]()};
    std::unique_ptr<char[]> streamed_{new char[64]()};
    std::unique_ptr<char[]> large_{new char[large]()};
    ucp_mem_h memh_ = nullptr;
    void *tag_ = nullptr;
    void *stream_ = nullptr;
    void *sync_ = nullptr;
    void *rndv_ = nullptr;
};

template <class Header>
message valid(uint8_t id, const Header &header, size_t data = 16)
{
    message m{0, std::vector<uint8_t>(sizeof(header) + data)};
    for (size_t i = 0; i < ucp::am_handler_count; ++i) {
        if (ucp::am_handlers[i].id == id) {
            m.kind = static_cast<uint8_t>(i);
        }
    }
    memcpy(m.bytes.data(), &header, sizeof(header));
    return m;
}

constexpr uint64_t symbol(unsigned n)
{
    return fuzz::symbol_base + n;
}

const std::vector<message> &templates()
{
    using namespace ucp;
    using namespace ucp::wire;
    constexpr uint64_t ep = symbol(0), peer = symbol(3), memh = symbol(4), address = symbol(5),
                       tag_recv = symbol(8), sync = symbol(9), rndv = symbol(10);
    static const std::vector<message> all = {
        valid(AM_ID_TAG_EAGER, uint64_t(7)),
        valid(AM_ID_TAG_FIRST, tag_first_hdr{7, 64, peer, 1, ep, 0}),
        valid(AM_ID_TAG_MIDDLE, frag_hdr{peer, 1, 16}),
        valid(AM_ID_TAG_SYNC, tag_sync_hdr{7, ep, 1}),
        valid(AM_ID_AM_SINGLE, am_hdr{am_number, 0, 8}, 24),
        valid(AM_ID_AM_REPLY, am_first_hdr{{am_number, 0, 4}, ep, 0, 0, 0}),
        valid(AM_ID_AM_FIRST, am_first_hdr{{am_number, 0, 8}, 64, peer, 2, ep}, 24),
        valid(AM_ID_AM_MIDDLE, frag_hdr{peer, 2, 16}),
        valid(AM_ID_RNDV_RTS, rts_hdr{RTS_TAG, 0, 0, 0, 0, 0, 7, ep, 1, 0, 2048}, 0),
        valid(AM_ID_RNDV_RTS,
              rts_hdr{RTS_AM, RTS_FLAG_REPLY, am_number, 8, 0, 0, 0, ep, 2, address, 2048}, 8),
        valid(AM_ID_RNDV_RTR, rtr_hdr{ep, rndv, 1, 1024}, 0),
        valid(AM_ID_RNDV_DATA, data_hdr{ep, tag_recv, 0}, 512),
        valid(AM_ID_RNDV_ATS, answer_hdr{ep, rndv, 0}, 0),
        valid(AM_ID_ACK, answer_hdr{ep, sync, 0}, 0),
        valid(AM_ID_STREAM, ep),
        valid(AM_ID_RMA_PUT, put_hdr{memh, address, ep}),
        valid(AM_ID_RMA_GET, get_hdr{memh, address, 64, ep, 1}, 0),
        valid(AM_ID_RMA_GET_REPLY, data_hdr{ep, 1, 0}),
        valid(AM_ID_AMO, amo_hdr{memh, address, ep, 1, 5, 6, UCP_ATOMIC_OP_ADD, 8, {}}, 0),
        valid(AM_ID_AMO_REPLY, amo_reply_hdr{ep, 1, 0, 0}, 0),
        valid(AM_ID_RMA_FLUSH, flush_hdr{ep, 1}, 0),
        valid(AM_ID_RMA_ACK, flush_hdr{ep, 1}, 0),
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
