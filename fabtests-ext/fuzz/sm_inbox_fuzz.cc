// SPDX-License-Identifier: BSD-3-Clause
// What another process of the trust domain writes into the inboxes of `sm`: messages, requests and
// answers with any field wrong, marks that lie about length and frame, and any word of the memory
// that both sides map. A live interface receives them, with registered memory and with operations
// that wait for answers; its peer is honest.
#include "fabtests-ext/fuzz/mutate.h"
#include "fabtests-ext/fuzz/target.h"
#include "ucs/sys.h"
#include "uct/sm/inbox.h"
#include "uct/sm/md.h"
#include "uct/sm/remote_op.h"

#include <uct/api/uct.h>

#include <cstddef>
#include <memory>
#include <string_view>
#include <unistd.h>

namespace {

using fuzz::expect;
using fuzz::message;
namespace sm = uct::sm;

constexpr size_t memory_size = 4096;
constexpr uint8_t am_id = 5;

enum kind : uint8_t { plain, request, answer, mark, words, call, kinds };
// A word of the memory: which array, and where in it. Of the peer's inbox with `of_peer`.
enum place : uint8_t {
    claim,
    slot,
    sender,
    position,
    tail,
    rounds,
    seen,
    frame,
    all_claims,
    places
};
struct write {
    uint8_t what;
    uint8_t of_peer;
    uint16_t index;
    uint32_t unused;
    uint64_t value;
};
enum action : uint8_t { put, get, atomic, send, arm, flush, check, actions };

class party {
  public:
    explicit party(uct_worker_h worker)
    {
        open_md();
        uct_iface_config_t *config = nullptr;
        expect(uct_md_iface_config_read(md, "sm", nullptr, nullptr, &config) == UCS_OK, "config");
        uct_iface_params_t p{};
        p.field_mask = UCT_IFACE_PARAM_FIELD_OPEN_MODE | UCT_IFACE_PARAM_FIELD_DEVICE |
                       UCT_IFACE_PARAM_FIELD_ERR_HANDLER;
        p.open_mode = UCT_IFACE_OPEN_MODE_DEVICE;
        p.mode.device.tl_name = "sm";
        p.mode.device.dev_name = "memory";
        p.err_handler = [](void *, uct_ep_h, ucs_status_t) { return UCS_OK; };
        expect(uct_iface_open(md, worker, &p, config, &iface) == UCS_OK, "uct_iface_open");
        uct_config_release(config);
        uct_iface_progress_enable(iface, UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
        uct_am_callback_t read_all = [](void *, void *data, size_t length, unsigned) {
            unsigned sum = 0;
            for (size_t i = 0; i < length; ++i) {
                sum += static_cast<const uint8_t *>(data)[i];
            }
            return sum == ~0u ? UCS_ERR_IO_ERROR : UCS_OK;
        };
        expect(uct_iface_set_am_handler(iface, am_id, read_all, nullptr, 0) == UCS_OK, "handler");
        expect(uct_iface_get_device_address(
                   iface, reinterpret_cast<uct_device_addr_t *>(&device)) == UCS_OK &&
                   uct_iface_get_address(iface, reinterpret_cast<uct_iface_addr_t *>(&address)) ==
                       UCS_OK,
               "an address");
        expect(uct_md_mem_reg(md, memory.get(), memory_size, UCT_MD_MEM_ACCESS_ALL, &memh) ==
                   UCS_OK,
               "uct_md_mem_reg");
        expect(uct_md_mkey_pack(md, memh, &key) == UCS_OK, "uct_md_mkey_pack");
        expect(uct_rkey_unpack(component, &key, &unpacked) == UCS_OK, "uct_rkey_unpack");
        page =
            std::make_unique<sm::inbox_memory>(static_cast<int>(address.inbox_fd), address.nonce);
    }
    party(const party &) = delete;
    party &operator=(const party &) = delete;
    ~party()
    {
        if (ep) {
            uct_ep_destroy(ep);
        }
        uct_iface_close(iface);
        uct_rkey_release(component, &unpacked);
        expect(uct_md_mem_dereg(md, memh) == UCS_OK, "uct_md_mem_dereg");
        uct_md_close(md);
    }
    void connect(const party &to)
    {
        uct_ep_params_t p{};
        p.field_mask =
            UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_DEV_ADDR | UCT_EP_PARAM_FIELD_IFACE_ADDR;
        p.iface = iface;
        p.dev_addr = reinterpret_cast<const uct_device_addr_t *>(&to.device);
        p.iface_addr = reinterpret_cast<const uct_iface_addr_t *>(&to.address);
        expect(uct_ep_create(&p, &ep) == UCS_OK, "uct_ep_create");
    }

    uct_component_h component = nullptr;
    uct_md_h md = nullptr;
    uct_iface_h iface = nullptr;
    uct_ep_h ep = nullptr;
    uct_mem_h memh = nullptr;
    uct_rkey_bundle_t unpacked{};
    sm::device_address device{};
    sm::iface_address address{};
    sm::packed_rkey key{};
    std::unique_ptr<char[]> memory{new char[memory_size]()};
    std::unique_ptr<sm::inbox_memory> page; // as another process maps it

  private:
    void open_md()
    {
        uct_component_h *all = nullptr;
        unsigned count = 0;
        expect(uct_query_components(&all, &count) == UCS_OK, "uct_query_components");
        for (unsigned i = 0; i < count && !md; ++i) {
            uct_component_attr_t attr{};
            attr.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME;
            expect(uct_component_query(all[i], &attr) == UCS_OK, "uct_component_query");
            if (std::string_view(attr.name) != "sm") {
                continue;
            }
            component = all[i];
            uct_md_config_t *config = nullptr;
            expect(uct_md_config_read(component, nullptr, nullptr, &config) == UCS_OK, "config");
            expect(uct_md_open(component, "sm", config, &md) == UCS_OK, "uct_md_open");
            uct_config_release(config);
        }
        uct_release_component_list(all);
        expect(md, "a memory domain of sm");
    }
};

class pair {
  public:
    pair()
    {
        expect(uct_worker_create(nullptr, UCS_THREAD_MODE_SINGLE, &worker_) == UCS_OK, "a worker");
        a_ = std::make_unique<party>(worker_);
        b_ = std::make_unique<party>(worker_);
        a_->connect(*b_);
        liar_ = std::make_unique<sm::outbox>(static_cast<int>(a_->address.inbox_fd),
                                             a_->address.nonce, getpid(), a_->address.birth);
    }
    ~pair()
    {
        liar_.reset();
        a_.reset();
        b_.reset();
        uct_worker_destroy(worker_);
    }
    // Memory that has been written to at random lets few messages through.
    bool usable() const { return spoiled_ < 8; }

    void deliver(message &m)
    {
        fuzz::resolve(m.bytes, [this](uint16_t n) { return live(n); });
        switch (m.kind % kinds) {
        case plain:
            publish(am_id, m);
            break;
        case request:
            publish(sm::am_request, m);
            break;
        case answer:
            publish(sm::am_answer, m);
            break;
        case mark:
            lie(m);
            break;
        case words:
            scribble(m);
            break;
        default:
            for (uint8_t byte : m.bytes) {
                act(static_cast<action>(byte % actions));
            }
        }
        settle();
    }
    void settle()
    {
        for (int i = 0; i < 4; ++i) {
            uct_worker_progress(worker_);
        }
    }

    // Words of the honest peer's address, then ids of the latest operations.
    enum : uint8_t {
        key,
        address,
        last_word,
        end,
        size,
        from,
        id = from + 7,
        live_values = id + 8
    };

  private:
    void publish(uint8_t as, const message &m)
    {
        if (!liar_->claim()) {
            return;
        }
        size_t length = std::min(m.bytes.size(), sm::segment_size);
        bool in_frame = length > sm::inline_size;
        std::copy_n(m.bytes.begin(), length, in_frame ? liar_->frame() : liar_->small());
        (void)liar_->publish(as, static_cast<uint32_t>(length), in_frame);
    }
    // A message with any mark: its length, flags and id are the input's.
    void lie(const message &m)
    {
        uint64_t said = 0;
        std::copy_n(m.bytes.begin(), std::min(m.bytes.size(), sizeof(said)),
                    reinterpret_cast<uint8_t *>(&said));
        if (!liar_->claim()) {
            return;
        }
        if (m.bytes.size() > sizeof(said)) {
            memcpy(liar_->small(), m.bytes.data() + sizeof(said),
                   std::min(m.bytes.size() - sizeof(said), sm::inline_size));
        }
        auto &at = *reinterpret_cast<sm::slot *>(liar_->small() - offsetof(sm::slot, data));
        (void)liar_->publish(0, 0, false);
        uint64_t turn = at.mark.load() >> sm::mark::turn_shift;
        at.mark.store(turn << sm::mark::turn_shift | (said & 0xffffffff));
    }
    void scribble(const message &m)
    {
        write w;
        ++spoiled_;
        for (size_t at = 0; at + sizeof(w) <= m.bytes.size(); at += sizeof(w)) {
            memcpy(&w, m.bytes.data() + at, sizeof(w));
            for (; w.what % places == all_claims && w.index < sm::slot_count; ++w.index) {
                claim_of(w).store(w.value);
            }
            word_of(w).store(w.value);
        }
    }
    sm::page &page_of(const write &w) const
    {
        return *(w.of_peer & 1 ? *b_ : *a_).page->operator->();
    }
    std::atomic<uint64_t> &claim_of(const write &w) const
    {
        return page_of(w).claims[w.index % sm::slot_count];
    }
    std::atomic<uint64_t> &word_of(const write &w) const
    {
        sm::page &p = page_of(w);
        size_t slot_index = w.index % sm::slot_count;
        switch (w.what % places) {
        case place::claim:
            return claim_of(w);
        case place::slot:
            return p.slots[slot_index].mark;
        case place::sender:
            return p.senders[w.index % (sm::max_senders + 1)];
        case place::position:
            return p.position;
        case place::tail:
            return p.tail;
        case place::rounds:
            return p.rounds;
        case place::seen:
            return p.seen;
        default:
            return *reinterpret_cast<std::atomic<uint64_t> *>(p.frames[slot_index]);
        }
    }

    // What the interface that is lied to does meanwhile.
    void act(action what)
    {
        uct_iov_t iov{};
        iov.buffer = in_.get();
        iov.length = 64;
        iov.count = 1;
        done_.count = 1 << 30;
        done_.func = [](uct_completion_t *) {};
        uct_rkey_t to = b_->unpacked.rkey;
        auto at = reinterpret_cast<uint64_t>(b_->memory.get());
        switch (what) {
        case put:
            (void)uct_ep_put_zcopy(a_->ep, &iov, 1, at, to, &done_);
            break;
        case get:
            (void)uct_ep_get_zcopy(a_->ep, &iov, 1, at, to, &done_);
            break;
        case atomic:
            (void)uct_ep_atomic64_fetch(a_->ep, UCT_ATOMIC_OP_ADD, 1,
                                        reinterpret_cast<uint64_t *>(in_.get()), at, to, &done_);
            break;
        case send:
            (void)uct_ep_am_short(a_->ep, am_id, 1, in_.get(), 16);
            break;
        case arm:
            (void)uct_iface_event_arm(a_->iface, UCT_EVENT_RECV);
            break;
        case flush:
            (void)uct_iface_flush(a_->iface, 0, nullptr);
            break;
        default:
            (void)uct_ep_check(a_->ep, 0, nullptr);
        }
    }
    uint64_t live(uint16_t n) const
    {
        n %= live_values;
        auto at = reinterpret_cast<uint64_t>(a_->memory.get());
        uint64_t word = 0;
        if (n >= id) {
            const sm::page &p = *b_->page->operator->();
            const sm::slot &s = p.slots[(p.tail.load() - 1 - (n - id)) % sm::slot_count];
            memcpy(&word, s.data + offsetof(sm::request, op_id), sizeof(word));
        } else if (n >= from) {
            memcpy(&word, reinterpret_cast<const char *>(&b_->address) + 8 * (n - from),
                   sizeof(word));
        } else {
            const uint64_t values[from] = {a_->key.key, at, at + memory_size - 8, at + memory_size,
                                           memory_size};
            word = values[n];
        }
        return word;
    }

    uct_worker_h worker_ = nullptr;
    std::unique_ptr<party> a_, b_;
    std::unique_ptr<sm::outbox> liar_;
    std::unique_ptr<char[]> in_{new char[64]()};
    uct_completion_t done_{};
    unsigned spoiled_ = 0;
};

template <class Header>
message valid(kind k, const Header &header, size_t data = 0)
{
    message m{k, std::vector<uint8_t>(sizeof(header) + data, 1)};
    memcpy(m.bytes.data(), &header, sizeof(header));
    return m;
}

constexpr uint64_t symbol(unsigned n)
{
    return fuzz::symbol_base + n;
}

message valid_request(sm::work what, uint32_t length, uint8_t width, size_t data)
{
    sm::request r{};
    for (unsigned i = 0; i < sizeof(r.from) / 8; ++i) {
        uint64_t word = symbol(pair::from + i);
        memcpy(reinterpret_cast<char *>(&r.from) + 8 * i, &word, sizeof(word));
    }
    r.op_id = 1 << 24;
    r.key = symbol(pair::key);
    r.address = symbol(pair::address);
    r.length = length;
    r.what = static_cast<uint8_t>(what);
    r.width = width;
    return valid(request, r, data);
}

const std::vector<message> &templates()
{
    static std::vector<message> all;
    if (!all.empty()) {
        return all;
    }
    all = {valid(plain, uint64_t(1), 24),
           valid(plain, uint64_t(1), 1000),
           valid_request(sm::work::put, 16, 0, 16),
           valid_request(sm::work::get, 64, 0, 0),
           valid_request(sm::work::atomic, 8, 8, 0),
           valid_request(sm::work::atomic, 4, 4, 0),
           valid(mark, uint64_t(24) << sm::mark::length_shift | am_id, 24),
           valid(mark, uint64_t(8448) << sm::mark::length_shift | sm::mark::in_frame | am_id),
           valid(call, uint64_t(0x0006050403020100)),
           valid(call, uint64_t(0x0102010204040102))};
    for (unsigned i = 0; i < 4; ++i) {
        all.push_back(valid(answer, sm::answer{symbol(pair::id + i), 0, 7, 64, UCS_OK}, 64));
        all.push_back(valid(answer, sm::answer{symbol(pair::id + i), 0, 7, 8, UCS_OK}, 0));
    }
    for (uint8_t what = 0; what < places; ++what) {
        auto peer = static_cast<uint8_t>(what % 2);
        all.push_back(valid(words, write{what, peer, 0, 0, 1ull << sm::claim::turns_shift}));
    }
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
