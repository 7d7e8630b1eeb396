// SPDX-License-Identifier: BSD-3-Clause
// A memory domain: where memory is registered and interfaces are opened. Control path: calls throw
// ucs::error unless they return a status.
#pragma once

#include "ucs/error.h"
#include "uct/base/config.h"

#include <uct/api/uct.h>

#include <span>
#include <vector>

struct uct_md {
    explicit uct_md(uct_component &component) : component(component) {}
    uct_md(const uct_md &) = delete;
    uct_md &operator=(const uct_md &) = delete;
    virtual ~uct_md() = default;

    virtual void query(uct_md_attr_t *attr) = 0;
    virtual std::vector<uct_tl_resource_desc_t> tl_resources() = 0;

    // The interface's ops are filled; it closes itself through ops.iface_close. Every interface is
    // closed before its domain and its worker.
    virtual uct_iface *open_iface(uct_worker *worker, const uct_iface_params_t &params,
                                  const uct_iface_config &config) = 0;

    // Registered memory stays usable until dereg. A domain that needs no registration returns a
    // handle all the same.
    virtual uct_mem_h reg(void *address, size_t length, unsigned flags) = 0;
    virtual void dereg(uct_mem_h memh) = 0;
    virtual void pack_mkey(uct_mem_h memh, void *buffer) = 0; // md_attr.rkey_packed_size bytes

    // What a handle of reg() or alloc() covers.
    virtual std::span<char> memory_of(uct_mem_h memh) const = 0;

    // address: AF_INET or AF_INET6. Whether a server of this domain can listen on it (LOCAL), or a
    // client connect to it (REMOTE): UCT_MD_FLAG_SOCKADDR.
    virtual bool is_sockaddr_accessible(const sockaddr *, uct_sockaddr_accessibility_t) const
    {
        return false;
    }

    // Memory of the domain itself: UCT_MD_FLAG_ALLOC.
    virtual uct_mem_h alloc(size_t *, void **, unsigned)
    {
        throw ucs::error(UCS_ERR_UNSUPPORTED, "this memory domain does not allocate");
    }
    virtual void free(uct_mem_h) {}

    uct_component &component;
};
