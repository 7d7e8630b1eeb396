// SPDX-License-Identifier: BSD-3-Clause
//
// An engine is one UCP worker and everything that lives on it: its UCP endpoints (links), the ids
// that incoming messages carry, the pools of operations. An RDM endpoint has an engine of its own;
// all MSG and passive endpoints of a fabric share one, because a connection request can only be
// turned into an endpoint where it arrived. Reading a queue progresses the engines behind it.
#pragma once

#include "prov/ucxlike/address.h"
#include "prov/ucxlike/auto_progress.h"
#include "prov/ucxlike/id_map.h"
#include "prov/ucxlike/prov.h"
#include "prov/ucxlike/wire.h"

#include "ucs/mpool.h"

#include <atomic>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ucxlike {

class endpoint;
class engine;
struct conn;
struct rx_op;
struct tx_op;
struct msg_in;

// One UCP endpoint. It outlives its owner until UCP has closed it.
struct link {
    engine *eng;
    ucp_ep_h ep = nullptr;
    conn *owner = nullptr;
    ucs_status_t status = UCS_OK;
    bool failed = false;
    bool closing = false;
    bool promised = false;           // it has carried what the application takes for sent
    bool spoke = false;              // it has carried words of our own
    uint64_t accepted_at = 0;        // of a stranger: when it connected
    address from;                    // where it comes from, if that is asked for
    struct acceptor *home = nullptr; // asked whose a hello is
    ucs::list_node node;             // of the engine's failed links
    ucs::list_node stranger;         // of its links that have carried no hello yet
};

// A remote party as messages see it: an RDM peer or one MSG connection.
struct conn {
    engine *eng;
    endpoint *owner = nullptr; // whose receives its messages match
    link *tx = nullptr;
    uint64_t tx_id = 0; // our id at the remote side, carried by every message; 0: not known yet
    uint64_t rx_id = 0; // the id it uses towards us: a secret, which tells its messages
    fi_addr_t addr = FI_ADDR_NOTAVAIL;
    size_t outstanding = 0; // operations that have not completed
    size_t writes = 0;      // of the peer, on their way into our memory; and 1 until it may send
    struct deferred_messages *deferred = nullptr; // messages that wait for those

    explicit conn(engine *e) : eng(e) {}
    virtual ~conn() = default;
    // UCP, or we, answer the peer: the link cannot end without a word any more.
    void answers()
    {
        if (tx) {
            tx->spoke = true;
        }
    }
    // The link has failed and is about to be closed.
    virtual void link_failed(link *l) = 0;
    // Its name, if messages of strangers are to be told apart (FI_SOURCE_ERR).
    virtual address source() const { return {}; }
    // A message of am_control; `reply` is the link it came by, if that is known.
    virtual void control(const wire::message &m, const void *data, size_t length, link *reply) = 0;
    // A data message while there is no owner. False: it was not kept for later.
    virtual bool keep(unsigned am, const wire::message &m, void *data, size_t length,
                      const ucp_am_recv_param_t *param, ucs_status_t *status)
    {
        (void)am, (void)m, (void)data, (void)length, (void)param, (void)status;
        return false;
    }
    // The last outstanding operation has completed.
    virtual void drained() {}
    // What the peer answered to the words of connect() or accept(); nothing when it confirms.
    virtual void answered(std::string_view words) { (void)words; }
    // A message has come while `writes` is not 0: what is done with it.
    enum class admission { now, later, never };
    virtual admission admit() { return admission::later; }
};

// What happens to connections that arrive at a listener.
struct acceptor {
    virtual void connected(ucp_conn_request_h request) = 0;
    // A hello came by this link: whose is it?
    virtual conn *identify(link *l, const wire::message &m) = 0;

  protected:
    ~acceptor() = default;
};

class engine {
  public:
    // lasting: it is the fabric's and outlives the queues.
    engine(ucp_context_h context, bool locked, bool lasting = false);
    ~engine();
    engine(const engine &) = delete;
    engine &operator=(const engine &) = delete;

    unsigned progress()
    {
        ucs::opt_guard g(lock);
        polls_.store(polls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        unsigned n = advance();
        if (UCS_UNLIKELY(watched_ && n > 0)) {
            taken_from_helper();
        }
        return n;
    }
    // The same with the lock held, not for the application.
    unsigned advance()
    {
        unsigned n = ucp_worker_progress(worker);
        if (UCS_UNLIKELY(!failed_.empty())) {
            handle_failures();
        }
        if (UCS_UNLIKELY(!strangers_.empty())) {
            dismiss_strangers();
        }
        read_mail();
        return n;
    }
    // Of the application, so far. Any thread.
    uint64_t polls() const { return polls_.load(std::memory_order_relaxed); }
    // What other threads have left for the readers.
    void read_mail()
    {
        if (UCS_UNLIKELY(mail.load(std::memory_order_relaxed))) {
            collect_mail();
        }
    }
    // Progresses until `done` or the time is over.
    template <class F>
    bool progress_until(F &&done, int milliseconds);

    // FI_PROGRESS_AUTO: the helper thread progresses too. The engine must be a locked one.
    void start_auto_progress(); // throws
    void stop_auto_progress();  // waits for its callback: without locks that one takes

    // True: nothing is pending and efd will become readable when something is.
    bool arm();
    // The same for the helper thread, with the lock held.
    bool arm_for_helper();
    int efd() const { return efd_; }
    // Makes efd readable, from any thread.
    void wake() { ucp_worker_signal(worker); }

    // Words go with the request and the answer; the owner hears of the peer's if it has any.
    link *connect(const address &to, const address *from, conn *owner, acceptor *home = nullptr,
                  std::string_view words = {}); // throws failure
    link *accept(ucp_conn_request_h request, conn *owner, acceptor *home = nullptr,
                 std::string_view words = {}); // nullptr: it is gone. Throws: it is still there
    void close(link *l, bool force);
    // Closes a link that has carried nothing, without a word. False: it is to be closed with one.
    bool leave(link *l);
    // Closes all links of this home, which goes away.
    void abandon(acceptor *home);
    // As if UCP had reported an error of this link.
    void fail(link *l, ucs_status_t status) { on_error(l, l->ep, status); }
    // Its hello is of another version. l may be nullptr.
    void refuse_version(link *l, const wire::message &m);
    // Something that the peer waits for cannot be had: it gets an error instead.
    void give_up(conn *c)
    {
        if (c->tx) {
            fail(c->tx, UCS_ERR_NO_MEMORY);
        }
    }
    // The link has carried a hello.
    void introduced(link *l)
    {
        if (l->stranger.linked()) {
            l->stranger.unlink();
            --strangers_count_;
        }
    }
    link *find(ucp_ep_h ep) const;
    size_t closing() const { return closing_; }

    ucp_listener_h listen(const address &at, acceptor *a, address *actual); // throws failure

    // A small message of our own: take an operation, build its header, send it with a copy of the
    // payload. Its end is not reported.
    tx_op *begin_own();              // throws failure
    tx_op *try_begin_own() noexcept; // nullptr when there is no memory
    void send_own(link *l, tx_op *op, size_t header_length, const void *payload, size_t length,
                  unsigned am = wire::am_control);
    // The same straight from memory that stays as it is until the message has left.
    void send_from(link *l, tx_op *op, size_t header_length, const void *payload, size_t length,
                   unsigned am);
    // The same without words in the header.
    void send_control(link *l, uint64_t id, uint16_t kind, const void *payload = nullptr,
                      size_t length = 0);

    const bool lasting;
    ucp_worker_h worker = nullptr;
    ucs::opt_lock lock;
    id_map<conn, 36, true> ids;
    id_map<tx_op, 36> acks; // operations that wait for a word of the peer
    ucs::mpool<tx_op> tx_ops;
    ucs::mpool<rx_op> rx_ops;
    ucs::mpool<msg_in> msgs;
    uint64_t refused = 0; // accesses to memory
    uint64_t dropped = 0; // messages that were not ours or came too late

    // Called by progress after another thread has set `mail`.
    struct reader {
        virtual void collect() = 0;

      protected:
        ~reader() = default;
    };
    std::atomic<bool> mail{false};
    std::vector<reader *> readers;

  private:
    using failed_list = ucs::list<link, &link::node>;

    bool arm_worker();
    UCS_NOINLINE void taken_from_helper();
    link *add(const ucp_ep_params_t &params, conn *owner, acceptor *home, std::string_view words,
              ucs_status_t *status);
    void handle_failures();
    void admit_stranger(link *l);
    UCS_NOINLINE void dismiss_strangers();
    void dismiss(link *l);
    UCS_NOINLINE void collect_mail();
    void linger(link *l);
    void forget(link *l);
    conn *sender(const wire::message &m, const ucp_am_recv_param_t *param, link **reply);

    static void on_error(void *arg, ucp_ep_h ep, ucs_status_t status);
    static void on_answered(void *arg, const void *data, size_t length);
    static void on_closed(void *request, ucs_status_t status, void *arg);
    void refuse(const wire::message &m, const ucp_am_recv_param_t *param);
    template <unsigned am>
    static ucs_status_t on_data(void *arg, const void *header, size_t header_length, void *data,
                                size_t length, const ucp_am_recv_param_t *param);
    static ucs_status_t on_control(void *arg, const void *header, size_t header_length, void *data,
                                   size_t length, const ucp_am_recv_param_t *param);

    int efd_ = -1;
    std::unique_ptr<auto_progress> auto_progress_;
    bool watched_ = false;            // the helper thread waits for efd, armed
    std::atomic<uint64_t> polls_ = 0; // written under the lock
    size_t closing_ = 0;
    size_t lingering_ =
        0; // what links that are being closed have promised is not with the peer yet
    failed_list failed_;
    std::unordered_map<ucp_ep_h, link *> links_;
    ucs::list<link, &link::stranger> strangers_; // the first to come in front
    size_t strangers_count_ = 0;
    const size_t most_strangers_;
    const uint64_t patience_; // with them, in milliseconds
};

uint64_t now_ms();

template <class F>
bool engine::progress_until(F &&done, int milliseconds)
{
    uint64_t end = now_ms() + milliseconds;
    for (unsigned i = 0; !done(); ++i) {
        progress();
        if ((i & 15) == 15 && now_ms() > end) {
            return done();
        }
    }
    return true;
}

} // namespace ucxlike
