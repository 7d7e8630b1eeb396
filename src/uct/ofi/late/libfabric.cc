// SPDX-License-Identifier: BSD-3-Clause
// The functions of libfabric that are not inline, which load it when one of them is first called:
// its libraries for devices take most of a start, and a program that stays on its node does not pay
// for them. The libraries of UCX's face and the tools are linked with these functions. The provider
// is linked with libfabric, which has loaded it.
#include "config.h"
#include "ucs/log.h"
#include "uct/ofi/late/signal_handlers.h"

#include <cstring>
#include <dlfcn.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include <string>

namespace {

struct functions {
    decltype(&fi_getinfo) getinfo;
    decltype(&fi_freeinfo) freeinfo;
    decltype(&fi_dupinfo) dupinfo;
    decltype(&fi_fabric) fabric;
    decltype(&fi_strerror) strerror;
    decltype(&fi_tostr_r) tostr_r;
    decltype(&fi_version) version;
};

// The version of a symbol that the linker would have taken: LIBFABRIC_SYMBOLS is a list of
// "name@version", made by configure from a program that is linked with libfabric. Empty: none
// known.
std::string version_of(const char *name)
{
    constexpr const char *list = " " LIBFABRIC_SYMBOLS " ";
    std::string wanted = " " + std::string(name) + "@";
    const char *found = strstr(list, wanted.c_str());
    if (!found) {
        return {};
    }
    found += wanted.size();
    return {found, strcspn(found, " ")};
}

template <class F>
bool find(void *library, const char *name, F *out)
{
    std::string version = version_of(name);
    void *symbol = version.empty() ? dlsym(library, name) : dlvsym(library, name, version.c_str());
    *out = reinterpret_cast<F>(symbol);
    return symbol != nullptr;
}

bool find_all(void *library, functions *f)
{
    return find(library, "fi_getinfo", &f->getinfo) && find(library, "fi_freeinfo", &f->freeinfo) &&
           find(library, "fi_dupinfo", &f->dupinfo) && find(library, "fi_fabric", &f->fabric) &&
           find(library, "fi_strerror", &f->strerror) && find(library, "fi_tostr_r", &f->tostr_r) &&
           find(library, "fi_version", &f->version);
}

// All nullptr where libfabric cannot be loaded, of which the log tells.
functions load()
{
    uct::ofi::signal_handlers before;
    functions found = {};
    // Never closed: its providers have threads and handlers of their own.
    void *library = dlopen("libfabric.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library || !find_all(library, &found)) {
        ucs_warn("libfabric cannot be loaded, and no transport of its providers is used: %s",
                 dlerror());
        return {};
    }
    // The first question makes it load its providers.
    fi_info *list = nullptr;
    if (found.getinfo(FI_VERSION(1, 17), nullptr, nullptr, FI_PROV_ATTR_ONLY, nullptr, &list) ==
        0) {
        found.freeinfo(list);
    }
    before.restore();
    return found;
}

const functions &libfabric()
{
    static const functions loaded = load();
    return loaded;
}

} // namespace

extern "C" {

int fi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
               const fi_info *hints, fi_info **info)
{
    const functions &f = libfabric();
    return f.getinfo ? f.getinfo(version, node, service, flags, hints, info) : -FI_ENODATA;
}

void fi_freeinfo(fi_info *info)
{
    // What is to be freed was made by libfabric.
    if (info) {
        libfabric().freeinfo(info);
    }
}

fi_info *fi_dupinfo(const fi_info *info)
{
    const functions &f = libfabric();
    return f.dupinfo ? f.dupinfo(info) : nullptr;
}

int fi_fabric(fi_fabric_attr *attr, fid_fabric **fabric, void *context)
{
    const functions &f = libfabric();
    return f.fabric ? f.fabric(attr, fabric, context) : -FI_ENODATA;
}

const char *fi_strerror(int error)
{
    const functions &f = libfabric();
    return f.strerror ? f.strerror(error) : strerror(error);
}

char *fi_tostr_r(char *text, size_t size, const void *value, fi_type type)
{
    const functions &f = libfabric();
    if (f.tostr_r) {
        return f.tostr_r(text, size, value, type);
    }
    if (size > 0) {
        text[0] = '\0';
    }
    return text;
}

uint32_t fi_version(void)
{
    const functions &f = libfabric();
    return f.version ? f.version() : 0;
}
}
