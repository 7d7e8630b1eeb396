// SPDX-License-Identifier: BSD-3-Clause
// Packed keys of a lying peer, with their checks made good so that the fuzzer gets behind them:
// they are unpacked by a live endpoint over shared memory, and what they name is read and written,
// at its first and at its last word. Each key is a heap block of its exact size.
#include "fabtests-ext/fuzz/mutate.h"
#include "fabtests-ext/fuzz/target.h"

#include <ucp/api/ucp.h>

#include <cstddef>
#include <memory>

namespace {

using fuzz::expect;
using fuzz::message;

constexpr size_t memory_size = 8192;

// As src/ucp/mem/mem.h draws it.
struct header {
    uint8_t magic, version;
    uint16_t length;
    uint32_t check, list_check, denied;
    uint64_t memh_id, base, size;
};

uint32_t sum(const uint8_t *p, size_t length, uint32_t h = 2166136261u)
{
    for (size_t i = 0; i < length; ++i) {
        h = (h ^ p[i]) * 16777619u;
    }
    return h;
}

void seal(std::vector<uint8_t> &key)
{
    auto length = static_cast<uint16_t>(key.size());
    memcpy(&key[offsetof(header, length)], &length, sizeof(length));
    uint32_t list = sum(&key[sizeof(header)], key.size() - sizeof(header));
    memcpy(&key[offsetof(header, list_check)], &list, sizeof(list));
    constexpr size_t rest = offsetof(header, list_check);
    uint32_t check = sum(&key[rest], sizeof(header) - rest, sum(key.data(), 4));
    memcpy(&key[offsetof(header, check)], &check, sizeof(check));
}

// A worker that has memory, and one that is given keys for it.
class pair {
  public:
    pair()
    {
        for (party &p : parties_) {
            open(p);
        }
        connect();
        ucp_mem_map_params_t map = {};
        map.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS;
        map.length = memory_size;
        map.flags = UCP_MEM_MAP_ALLOCATE;
        expect(ucp_mem_map(owner_.context, &map, &memh_) == UCS_OK, "ucp_mem_map");
        void *buffer = nullptr;
        size_t size = 0;
        expect(ucp_rkey_pack(owner_.context, memh_, &buffer, &size) == UCS_OK, "ucp_rkey_pack");
        auto *bytes = static_cast<uint8_t *>(buffer);
        key_ = {0, {bytes, bytes + size}};
        ucp_rkey_buffer_release(buffer);
        memcpy(&memory_, &key_.bytes[offsetof(header, base)], sizeof(memory_));
        std::vector<uint8_t> again = key_.bytes;
        seal(again);
        expect(again == key_.bytes, "the check of a key is another one");
        use(key_.bytes);
        expect(used_ == 1, "the valid key is refused");
    }
    ~pair()
    {
        ucp_request_param_t param = {};
        param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
        param.flags = UCP_EP_CLOSE_FLAG_FORCE;
        finish(ucp_ep_close_nbx(ep_, &param));
        expect(ucp_mem_unmap(owner_.context, memh_) == UCS_OK, "ucp_mem_unmap");
        for (party &p : parties_) {
            ucp_worker_destroy(p.worker);
            ucp_cleanup(p.context);
        }
    }
    const message &key() const { return key_; }
    bool usable() const { return failures_ == 0; }

    void use(const std::vector<uint8_t> &bytes)
    {
        auto block = std::make_unique<uint8_t[]>(bytes.size());
        std::copy(bytes.begin(), bytes.end(), block.get());
        ucp_rkey_h rkey = nullptr;
        if (ucp_ep_rkey_unpack(ep_, block.get(), &rkey) != UCS_OK) {
            return;
        }
        ++used_;
        header h;
        memcpy(&h, bytes.data(), sizeof(h));
        touch(rkey, h.base);
        touch(rkey, h.base + h.size - sizeof(word_));
        ucp_rkey_destroy(rkey);
    }

  private:
    struct party {
        ucp_context_h context = nullptr;
        ucp_worker_h worker = nullptr;
    };

    static void open(party &p)
    {
        ucp_config_t *config;
        expect(ucp_config_read(nullptr, nullptr, &config) == UCS_OK, "ucp_config_read");
        expect(ucp_config_modify(config, "TLS", "shm") == UCS_OK, "ucp_config_modify");
        ucp_params_t params = {};
        params.field_mask = UCP_PARAM_FIELD_FEATURES;
        params.features = UCP_FEATURE_RMA | UCP_FEATURE_AMO64;
        expect(ucp_init(&params, config, &p.context) == UCS_OK, "ucp_init");
        ucp_config_release(config);
        ucp_worker_params_t w = {};
        expect(ucp_worker_create(p.context, &w, &p.worker) == UCS_OK, "ucp_worker_create");
    }
    void connect()
    {
        ucp_address_t *address;
        size_t length;
        expect(ucp_worker_get_address(owner_.worker, &address, &length) == UCS_OK, "address");
        ucp_ep_params_t params = {};
        params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                            UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
        params.address = address;
        params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
        params.err_handler.cb = [](void *arg, ucp_ep_h, ucs_status_t) {
            ++static_cast<pair *>(arg)->failures_;
        };
        params.err_handler.arg = this;
        expect(ucp_ep_create(user_.worker, &params, &ep_) == UCS_OK, "ucp_ep_create");
        ucp_worker_release_address(owner_.worker, address);
        ucp_request_param_t none = {};
        finish(ucp_ep_flush_nbx(ep_, &none));
    }
    void touch(ucp_rkey_h rkey, uint64_t at)
    {
        void *direct = nullptr;
        bool mapped = ucp_rkey_ptr(rkey, at, &direct) == UCS_OK;
        if (mapped) {
            memcpy(&word_, direct, 1);
        }
        ucp_request_param_t none = {};
        finish(ucp_get_nbx(ep_, &word_, sizeof(word_), at, rkey, &none));
        // What is not mapped is written to wherever the peer says in its own process: in this one.
        if (mapped || at - memory_ <= memory_size - sizeof(word_)) {
            finish(ucp_put_nbx(ep_, &word_, sizeof(word_), at, rkey, &none));
        }
        finish(ucp_ep_flush_nbx(ep_, &none));
    }
    void finish(void *request)
    {
        if (!UCS_PTR_IS_PTR(request)) {
            return;
        }
        for (int i = 0; i < 10000 && ucp_request_check_status(request) == UCS_INPROGRESS; ++i) {
            ucp_worker_progress(user_.worker);
            ucp_worker_progress(owner_.worker);
        }
        expect(ucp_request_check_status(request) != UCS_INPROGRESS, "an access does not end");
        ucp_request_free(request);
    }

    party parties_[2];
    party &owner_ = parties_[0], &user_ = parties_[1];
    ucp_ep_h ep_ = nullptr;
    ucp_mem_h memh_ = nullptr;
    message key_;
    uint64_t memory_ = 0; // the owner's
    uint64_t word_ = 0;
    unsigned used_ = 0, failures_ = 0;
};

} // namespace

extern "C" int LLVMFuzzerInitialize(int *, char ***)
{
    fuzz::silence_log();
    fuzz::the_pair<pair>() = std::make_unique<pair>();
    atexit([] { fuzz::the_pair<pair>().reset(); });
    return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    return fuzz::mutator(seed, {&fuzz::the_pair<pair>()->key(), 1}, 1).mutate(data, size, max);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pair &now = fuzz::usable_pair<pair>();
    for (message &m : fuzz::parse(data, size)) {
        if (m.bytes.size() > sizeof(header) && m.bytes.size() <= UINT16_MAX) {
            seal(m.bytes);
            now.use(m.bytes);
        }
    }
    return 0;
}
