// SPDX-License-Identifier: BSD-3-Clause
//
// What clients and servers say in the handshake of their endpoints; cm.h draws it.
#include "ucp/connect/cm.h"

#include "ucs/error.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace ucp {

namespace {

constexpr uint8_t HAS_CLIENT_ID = 1;
constexpr uint16_t SHARES = 1;

struct client_head {
    uint8_t version;
    uint8_t err_mode;
    uint8_t flags;
    uint8_t zero;
    uint16_t address_length;
    uint16_t greeting_length;
    uint64_t client_id;
    uint64_t ep_id;
    uint64_t to_share;
};
static_assert(sizeof(client_head) == 32);

struct server_head {
    uint8_t version;
    uint8_t status;
    uint16_t flags;
    uint16_t address_length;
    uint16_t greeting_length;
    uint64_t ep_id;
};
static_assert(sizeof(server_head) == 16);

template <class H>
std::vector<uint8_t> hello(const cm &m, H head, std::span<const uint8_t> greeting)
{
    size_t max = std::min<size_t>(m.max_private_data, UINT16_MAX);
    size_t other = sizeof(head) + greeting.size();
    bool fits = other + m.address.size() <= max;
    const std::vector<uint8_t> &address = fits ? m.address : m.net_address;
    if (greeting.size() > max || other + address.size() > max) {
        throw ucs::error(UCS_ERR_EXCEEDS_LIMIT,
                         "the worker's address of %zu bytes and %zu more do not fit the %zu bytes "
                         "that the connection manager carries",
                         address.size(), other, max);
    }
    head.address_length = static_cast<uint16_t>(address.size());
    head.greeting_length = static_cast<uint16_t>(greeting.size());
    std::vector<uint8_t> out(other + address.size());
    memcpy(out.data(), &head, sizeof(head));
    memcpy(out.data() + sizeof(head), address.data(), address.size());
    if (greeting.size() > 0) {
        memcpy(out.data() + sizeof(head) + address.size(), greeting.data(), greeting.size());
    }
    return out;
}

template <class H>
ucs_status_t parse(std::span<const uint8_t> data, H *head, const uint8_t **address,
                   std::span<const uint8_t> *greeting)
{
    if (ucs::is_other_version(hello_protocol, data.data(), data.size(), "the peer")) {
        return UCS_ERR_UNSUPPORTED;
    }
    if (ucs::read(hello_protocol, data.data(), data.size(), head) != ucs::spoken::ours ||
        size_t(head->address_length) + head->greeting_length != data.size() - sizeof(*head)) {
        return UCS_ERR_INVALID_PARAM;
    }
    *address = data.data() + sizeof(*head);
    *greeting = {*address + head->address_length, head->greeting_length};
    return UCS_OK;
}

} // namespace

std::vector<uint8_t> pack_client_hello(const cm &m, const client_hello &says)
{
    uint8_t flags = says.has_client_id ? HAS_CLIENT_ID : 0;
    return hello(m,
                 client_head{hello_protocol.version, says.err_mode, flags, 0, 0, 0, says.client_id,
                             says.ep_id, says.to_share},
                 says.greeting);
}

std::vector<uint8_t> pack_server_hello(const cm &m, const server_hello &says)
{
    uint16_t flags = says.shares ? SHARES : 0;
    return hello(m, server_head{hello_protocol.version, 0, flags, 0, 0, says.ep_id}, says.greeting);
}

void forget_to_share(std::span<uint8_t> client_hello) noexcept
{
    memset(client_hello.data() + offsetof(client_head, to_share), 0, sizeof(uint64_t));
}

ucs_status_t parse_client_hello(std::span<const uint8_t> data, client_hello *out) noexcept
{
    client_head head;
    ucs_status_t status = parse(data, &head, &out->address, &out->greeting);
    if (status == UCS_OK) {
        out->err_mode = head.err_mode;
        out->has_client_id = head.flags & HAS_CLIENT_ID;
        out->client_id = head.client_id;
        out->ep_id = head.ep_id;
        out->to_share = head.to_share;
        out->address_length = head.address_length;
    }
    return status;
}

ucs_status_t parse_server_hello(std::span<const uint8_t> data, server_hello *out) noexcept
{
    server_head head;
    ucs_status_t status = parse(data, &head, &out->address, &out->greeting);
    if (status == UCS_OK) {
        out->ep_id = head.ep_id;
        out->shares = head.flags & SHARES;
        out->address_length = head.address_length;
    }
    return status;
}

} // namespace ucp
