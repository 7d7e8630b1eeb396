// SPDX-License-Identifier: BSD-3-Clause
//
// A reliable-datagram endpoint: an engine of its own with a listener, whose address is the
// endpoint's name. A peer is anything with a name; the first message to it makes a connection,
// unless it has made one to us. The first messages on a connection name this endpoint (hello),
// until the peer has given us an id (welcome).
#pragma once

#include "prov/ucxlike/connect/claim.h"
#include "prov/ucxlike/endpoint.h"

namespace ucxlike {

class group;
class rdm_endpoint;

struct peer final : conn {
    address name;
    address called;           // its own name, where it is not the one that reached it
    uint64_t incarnation = 0; // of the remote endpoint; 0: not heard from
    uint64_t given_id = 0;    // the id that it gave this endpoint alone in that incarnation
    link *welcomed = nullptr; // where the id was sent already
    link *greeted = nullptr;  // where a hello went without a message
    int refused = 0;          // why the last connection failed, until a call has returned it
    bool detached = false;    // no endpoint any more: goes when it is drained
    bool rumoured = false;    // known from a multicast notice alone: goes when it cannot be reached

    explicit peer(rdm_endpoint *ep);
    void link_failed(link *l) override;
    void drained() override;
    address source() const override { return name; }
    void control(const wire::message &m, const void *data, size_t length, link *reply) override;

  private:
    void prove(uint64_t word);
};

class rdm_endpoint final : public endpoint, public acceptor, public engine::reader {
  public:
    rdm_endpoint(domain *dom, const fi_info &info, void *context);
    ~rdm_endpoint();

    void address_inserted(const address &a, fi_addr_t index, fi_addr_t reported);
    void address_removed(const address &a, fi_addr_t index);
    ssize_t not_yet(conn *to) override;
    wire::hello hello_for(const conn *to) override;
    void alias(peer *p, const address &name);
    void unalias(const address &name);

    // Multicast groups.
    const address &name() const { return name_; }
    wire::hello introduce(uint64_t id) const { return wire::make_hello(name_, incarnation_, id); }
    uint32_t add_group(group *g, uint64_t *wire_id);
    void remove_group(group *g);
    peer *rumoured_peer(const address &name);
    void forget_rumour(peer *p); // if it is one, and leads nowhere
    bool reach(peer *p);         // makes a connection, if there is none
    void ask_membership(peer *p, const address &group);
    void on_membership(peer *p, const wire::message &m, const void *data, size_t length);
    void peer_ready();
    void peer_lost(peer *p);
    void collect() override;
    bool in_group(uint64_t id) const override;
    group *group_at(fi_addr_t addr) override;
    bool has_groups() const override { return !groups_.empty(); }

    void connected(ucp_conn_request_h request) override;
    conn *identify(link *l, const wire::message &m) override;
    void proven(claim *c);
    std::unique_ptr<claim> take_claim(const claim *c);

  private:
    conn *route_slow(fi_addr_t dest, int *error) override;
    const conn *source_slow(fi_addr_t addr) override;
    int check_bound() override;
    int enable() override;
    int bind_av(av *a) override;
    void bind_shared_rx() override;
    void listen();
    void leave_shared_engine();
    void detach() override;
    fi_addr_t reported(const address &name) const;
    peer *peer_named(const address &name);
    peer *claimed(link *l, const wire::hello &h);
    bool shown(const peer *p, const link *l, const wire::hello &h) const;
    claim *claim_of(const link *l) const;
    void take_link(peer *p, link *l, const wire::hello &h);
    void revive(peer *p, link *l);
    void welcome(peer *p, link *l, uint64_t id);
    void call(peer *p); // throws failure
    void greet(peer *p);
    peer *peer_at(fi_addr_t index);

    static int getname(fid_t f, void *addr, size_t *length);
    static int setname(fid_t f, void *addr, size_t length);
    static fi_ops_cm cm_ops_;

    address name_;
    uint64_t incarnation_;
    av *av_ = nullptr;
    ucp_listener_h listener_ = nullptr;
    std::unique_ptr<engine> engine_;
    struct entry {
        address at;
        fi_addr_t reported; // what completions tell of it
    };
    std::vector<entry> table_; // the address vector, as this endpoint knows it
    std::unordered_multimap<address, fi_addr_t, address::hash> index_;
    std::unordered_map<address, peer *, address::hash> names_;
    std::vector<std::unique_ptr<peer>> peers_;
    std::vector<std::unique_ptr<claim>> claims_;
    id_map<group, 12> group_ids_;
    std::vector<group *> groups_;
};

} // namespace ucxlike
