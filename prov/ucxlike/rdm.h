// SPDX-License-Identifier: BSD-3-Clause
//
// A reliable-datagram endpoint: an engine of its own with a listener, whose address is the
// endpoint's name. A peer is whoever has a name; the first message to it makes a connection, unless
// it has made one to us. The first messages on a connection say who we are (hello), until the peer
// has given us an id (welcome).
#pragma once

#include "endpoint.h"

namespace ucxlike {

class rdm_endpoint;

struct peer final : conn {
    address name;
    uint64_t incarnation = 0; // of the remote endpoint; 0: not heard from
    link *welcomed = nullptr; // where the id was sent already
    link *greeted = nullptr;  // where a hello went without a message
    int refused = 0;          // why the last connection failed, until somebody is told

    explicit peer(rdm_endpoint *ep);
    void link_failed(link *l) override;
    void control(const wire::message &m, const void *data, size_t length, link *reply) override;
};

class rdm_endpoint final : public endpoint, public engine::acceptor {
  public:
    rdm_endpoint(domain *dom, const fi_info &info, void *context);
    ~rdm_endpoint();

    void address_inserted(const address &a, fi_addr_t index);
    void address_removed(const address &a, fi_addr_t index);
    ssize_t not_yet(conn *to) override;
    wire::hello hello_for(const conn *to) override;
    void alias(peer *p, const address &name);

    void connected(ucp_conn_request_h request) override;
    conn *identify(link *l, const wire::message &m) override;

  private:
    conn *route_slow(fi_addr_t dest, int *error) override;
    const conn *source_slow(fi_addr_t addr) override;
    int enable() override;
    int bind_av(av *a) override;
    void detach() override;
    peer *peer_named(const address &name);
    peer *peer_at(fi_addr_t index);

    static int getname(fid_t f, void *addr, size_t *length);
    static int setname(fid_t f, void *addr, size_t length);
    static fi_ops_cm cm_ops_;

    address name_;
    uint64_t incarnation_;
    av *av_ = nullptr;
    ucp_listener_h listener_ = nullptr;
    std::unique_ptr<engine> engine_;
    std::vector<address> table_; // the address vector, as this endpoint knows it
    std::unordered_multimap<address, fi_addr_t, address::hash> index_;
    std::unordered_map<address, peer *, address::hash> names_;
    std::vector<std::unique_ptr<peer>> peers_;
};

} // namespace ucxlike
