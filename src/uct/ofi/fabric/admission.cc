// SPDX-License-Identifier: BSD-3-Clause
// Keys of a fabric, and words for them.
#include "uct/ofi/fabric/admission.h"

#include "ucs/error.h"
#include "uct/ofi/fabric/error.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <new>
#include <rdma/fi_errno.h>
#include <string_view>
#include <vector>

namespace uct::ofi {

namespace {

std::vector<std::string> entries_of(const char *variable)
{
    std::vector<std::string> found;
    const char *value = getenv(variable);
    for (std::string_view rest(value ? value : ""); !rest.empty();) {
        size_t end = rest.find(',');
        found.emplace_back(rest.substr(0, end));
        rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    }
    return found;
}

// By the rules of libfabric's cxi: the first VNI, and the service that has the place of the device.
std::string slingshot_words(const std::string &device)
{
    std::vector<std::string> vnis = entries_of("SLINGSHOT_VNIS");
    std::vector<std::string> devices = entries_of("SLINGSHOT_DEVICES");
    std::vector<std::string> services = entries_of("SLINGSHOT_SVC_IDS");
    if (vnis.empty()) {
        return "no service of the job: SLINGSHOT_VNIS is not set";
    }
    for (size_t i = 0; i < devices.size() && i < services.size(); ++i) {
        if (devices[i] == device) {
            return "service " + services[i] + ", VNI " + vnis[0] +
                   " of SLINGSHOT_SVC_IDS and SLINGSHOT_VNIS";
        }
    }
    return "VNI " + vnis[0] + " of SLINGSHOT_VNIS and no service in SLINGSHOT_DEVICES and " +
           "SLINGSHOT_SVC_IDS";
}

std::string launcher_words(const core &c, const std::string &device)
{
    const char *variable = c.job_variable();
    if (!variable) {
        return "";
    }
    if (c.is_slingshot()) {
        return slingshot_words(device);
    }
    return getenv(variable) ? std::string("the job's key of ") + variable
                            : std::string("no job's key: ") + variable + " is not set";
}

// Whatever the key is, there would be no more of it.
bool lacks_room(long ret)
{
    constexpr int errors[] = {FI_ENOSPC, FI_ENOMEM, FI_EMFILE, FI_EAGAIN, FI_ENOBUFS};
    return std::find(std::begin(errors), std::end(errors), -ret) != std::end(errors);
}

// A UUID is a secret of the job, numbers of services are not.
std::string setting_words(const key_bytes &key, const std::string &prefix, bool slingshot)
{
    std::string setting = " of UCX_" + prefix + "AUTH_KEY";
    if (slingshot && key.size() == slingshot_key(0, 0).size()) {
        uint32_t service;
        uint16_t vni;
        memcpy(&service, &key[0], sizeof(service));
        memcpy(&vni, &key[4], sizeof(vni));
        return "service " + std::to_string(service) + ", VNI " + std::to_string(vni) + setting;
    }
    return "the key of " + std::to_string(key.size()) + " bytes" + setting;
}

void set_key(const key_bytes &key, uint8_t **to, size_t *size)
{
    free(*to);
    *to = static_cast<uint8_t *>(malloc(key.size()));
    if (!*to) {
        throw std::bad_alloc();
    }
    memcpy(*to, key.data(), key.size());
    *size = key.size();
}

} // namespace

void admission::check(long ret, const char *call, const std::string &device) const
{
    if (ret >= 0 || words.empty() || lacks_room(ret)) {
        ofi::check(ret, call);
        return;
    }
    ofi::check(ret, (std::string(call) + " of " + device + ", with " + words).c_str());
}

admission find_admission(const core &c, const std::string &device, const auth_keys &own,
                         const std::string &prefix)
{
    key_bytes key = own.find(device);
    std::string words =
        key.empty() ? launcher_words(c, device) : setting_words(key, prefix, c.is_slingshot());
    return {std::move(key), std::move(words)};
}

info_ptr admitted_info(const core &c, const device &d, const admission &a)
{
    auto with_key = [&](fi_info *info) {
        set_key(a.key, &info->domain_attr->auth_key, &info->domain_attr->auth_key_size);
        set_key(a.key, &info->ep_attr->auth_key, &info->ep_attr->auth_key_size);
    };
    info_ptr info = query_device(c, d.name, with_key);
    if (!info) {
        const char *variable = c.job_variable();
        throw ucs::error(UCS_ERR_REJECTED, "%s of provider %s does not take %s%s%s", d.name.c_str(),
                         c.provider.c_str(), a.words.c_str(),
                         variable ? "; its own variable is " : "", variable ? variable : "");
    }
    with_key(info.get()); // some cores look at the hint and do not repeat it
    return info;
}

} // namespace uct::ofi
