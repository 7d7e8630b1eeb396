// SPDX-License-Identifier: BSD-3-Clause
#include "fabtests-ext/common/uct_tap.h"

#include <cstring>
#include <unordered_map>
#include <vector>

namespace uct_tap {

namespace {

observer *watching;
std::unordered_map<uct_iface_h, uct_iface_ops_t> originals;

const uct_iface_ops_t &real(uct_ep_h ep)
{
    return originals.at(ep->iface);
}

template <class Status>
Status told(Status status)
{
    if (status >= 0) { // also UCS_INPROGRESS
        watching->after();
    }
    return status;
}

ucs_status_t am_short(uct_ep_h ep, uint8_t id, uint64_t header, const void *payload,
                      unsigned length)
{
    std::vector<uint8_t> bytes(sizeof(header) + length);
    memcpy(bytes.data(), &header, sizeof(header));
    if (length) {
        memcpy(bytes.data() + sizeof(header), payload, length);
    }
    size_t size = watching->before(id, bytes.data(), bytes.size());
    size_t rest = size < sizeof(header) ? 0 : size - sizeof(header);
    memcpy(&header, bytes.data(), sizeof(header));
    return told(real(ep).ep_am_short(ep, id, header, bytes.data() + sizeof(header),
                                     static_cast<unsigned>(rest)));
}

struct packing {
    uint8_t id;
    uct_pack_callback_t pack;
    void *arg;
};

size_t pack_and_show(void *dest, void *arg)
{
    const auto *p = static_cast<packing *>(arg);
    size_t length = p->pack(dest, p->arg);
    return watching->before(p->id, static_cast<uint8_t *>(dest), length);
}

ssize_t am_bcopy(uct_ep_h ep, uint8_t id, uct_pack_callback_t pack, void *arg, unsigned flags)
{
    packing p = {id, pack, arg};
    return told(real(ep).ep_am_bcopy(ep, id, pack_and_show, &p, flags));
}

ucs_status_t am_zcopy(uct_ep_h ep, uint8_t id, const void *header, unsigned length,
                      const uct_iov_t *iov, size_t count, unsigned flags, uct_completion_t *comp)
{
    const auto *from = static_cast<const uint8_t *>(header);
    std::vector<uint8_t> bytes(from, from + length);
    bytes.resize(watching->before(id, bytes.data(), length));
    return told(real(ep).ep_am_zcopy(ep, id, bytes.data(), static_cast<unsigned>(bytes.size()), iov,
                                     count, flags, comp));
}

void touch_memory()
{
    watching->before(remote_memory, nullptr, 0);
}

ucs_status_t put_short(uct_ep_h ep, const void *buffer, unsigned length, uint64_t address,
                       uct_rkey_t rkey)
{
    touch_memory();
    return told(real(ep).ep_put_short(ep, buffer, length, address, rkey));
}

ucs_status_t put_zcopy(uct_ep_h ep, const uct_iov_t *iov, size_t count, uint64_t address,
                       uct_rkey_t rkey, uct_completion_t *comp)
{
    touch_memory();
    return told(real(ep).ep_put_zcopy(ep, iov, count, address, rkey, comp));
}

ucs_status_t get_zcopy(uct_ep_h ep, const uct_iov_t *iov, size_t count, uint64_t address,
                       uct_rkey_t rkey, uct_completion_t *comp)
{
    touch_memory();
    return told(real(ep).ep_get_zcopy(ep, iov, count, address, rkey, comp));
}

} // namespace

void install(uct_iface_h iface, observer *seen)
{
    watching = seen;
    originals[iface] = iface->ops;
    iface->ops.ep_am_short = am_short;
    iface->ops.ep_am_bcopy = am_bcopy;
    iface->ops.ep_am_zcopy = am_zcopy;
    iface->ops.ep_put_short = put_short;
    iface->ops.ep_put_zcopy = put_zcopy;
    iface->ops.ep_get_zcopy = get_zcopy;
}

} // namespace uct_tap
