// SPDX-License-Identifier: BSD-3-Clause
// Keys of parts of a fabric, by the rules of its provider: cxi finds one in the variables of the
// job's launcher where the user gives none, and an endpoint has that of its domain; psm3 wants it
// with both.
#include "strict/strict.h"

#include <cstdlib>
#include <cstring>
#include <string>

namespace strict {

namespace {

using bytes = std::vector<uint8_t>;

bytes wanted()
{
    const char *digits = getenv("FI_STRICT_AUTH_KEY");
    bytes key(digits ? strlen(digits) / 2 : 0);
    for (size_t i = 0; i < key.size(); ++i) {
        key[i] = static_cast<uint8_t>(std::stoul(std::string(digits + 2 * i, 2), nullptr, 16));
    }
    return key;
}

bool finds_by_itself(const profile &p)
{
    return p.addr_format == FI_ADDR_CXI;
}

// Of the job's launcher, which names one device here.
bytes of_launcher()
{
    const char *vni = getenv("SLINGSHOT_VNIS"), *service = getenv("SLINGSHOT_SVC_IDS");
    bytes key;
    if (vni && service) {
        auto number = static_cast<uint32_t>(strtoul(service, nullptr, 10));
        auto network = static_cast<uint16_t>(strtoul(vni, nullptr, 10));
        key.resize(8);
        memcpy(&key[0], &number, sizeof(number));
        memcpy(&key[4], &network, sizeof(network));
    }
    return key;
}

bytes given(const uint8_t *key, size_t size)
{
    return key ? bytes(key, key + size) : bytes();
}

} // namespace

bool fits_key(const profile &p, const fi_info *hints)
{
    auto fits = [&](size_t size) { return size == 0 || size == p.auth_key_size; };
    return (!hints->domain_attr || fits(hints->domain_attr->auth_key_size)) &&
           (!hints->ep_attr || fits(hints->ep_attr->auth_key_size));
}

bool admits_domain(const profile &p, const fi_info *info)
{
    bytes key = given(info->domain_attr->auth_key, info->domain_attr->auth_key_size);
    if (key.empty() && finds_by_itself(p)) {
        key = of_launcher();
    }
    return wanted().empty() || key == wanted();
}

bool admits_ep(const profile &p, const fi_info *info)
{
    bytes key = given(info->ep_attr->auth_key, info->ep_attr->auth_key_size);
    return wanted().empty() || key == wanted() || (key.empty() && finds_by_itself(p));
}

} // namespace strict
