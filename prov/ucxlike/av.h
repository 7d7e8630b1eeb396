// SPDX-License-Identifier: BSD-3-Clause
//
// An address vector: fi_addr_t is the index of an address, for map and table alike. Endpoints bound
// to it are told of insertions, because a peer may have sent before its address was inserted.
#pragma once

#include "prov/ucxlike/domain.h"

namespace ucxlike {

class rdm_endpoint;

class av final : public fid_av {
  public:
    static int open(fid_domain *dom, fi_av_attr *attr, fid_av **out, void *context);

    void attach(rdm_endpoint *ep);
    void detach(rdm_endpoint *ep);
    size_t size()
    {
        std::lock_guard g(mutex_);
        return entries_.size();
    }
    // An empty address for an index that is not in use.
    address at(fi_addr_t index);
    // What completions tell of it: the index, or what the application said (FI_AV_USER_ID).
    fi_addr_t reported(fi_addr_t index);
    // The index under which an address was inserted, FI_ADDR_NOTAVAIL if it was not.
    fi_addr_t index_of(const address &a);
    void attach_group() { ++users_; }
    void detach_group() { --users_; }

  private:
    av(domain *dom, const fi_av_attr &attr, void *context);
    ~av();

    uint32_t take_index();
    void forget(fi_addr_t index, const address &a) noexcept;
    int insert_one(const address &a, fi_addr_t *out, int *error, uint64_t user_id, bool by_user);
    int finish(size_t asked, size_t good, void *context, uint64_t flags);

    static int insert(fid_av *f, const void *addr, size_t count, fi_addr_t *out, uint64_t flags,
                      void *context);
    static int insertsvc(fid_av *f, const char *node, const char *service, fi_addr_t *out,
                         uint64_t flags, void *context);
    static int insertsym(fid_av *f, const char *node, size_t nodecnt, const char *service,
                         size_t svccnt, fi_addr_t *out, uint64_t flags, void *context);
    static int remove(fid_av *f, fi_addr_t *addrs, size_t count, uint64_t flags);
    static int lookup(fid_av *f, fi_addr_t index, void *addr, size_t *addrlen);
    static const char *straddr(fid_av *f, const void *addr, char *buf, size_t *len);
    static int close(fid_t f);
    static int bind(fid_t f, fid_t other, uint64_t flags);
    static fi_ops fid_ops_;
    static fi_ops_av ops_;

    domain *domain_;
    std::recursive_mutex mutex_;
    uint64_t flags_;
    eq *eq_ = nullptr;
    std::atomic<int> users_{0};
    std::vector<address> entries_;
    std::vector<fi_addr_t> reported_;
    std::vector<uint32_t> free_;
    std::unordered_multimap<address, fi_addr_t, address::hash> index_;
    std::vector<rdm_endpoint *> endpoints_;
};

// Text in libfabric's form, fi_sockaddr_in://1.2.3.4:5.
std::string address_text(const address &a);

} // namespace ucxlike
