// SPDX-License-Identifier: BSD-3-Clause
#include "fabtests-ext/common/ucp_actor.h"

#include "fabtests-ext/common/ucp_pair.h"

#include <algorithm>
#include <utility>

namespace ucp_actor {

namespace {

constexpr size_t small = 8, fragments = 40000, large = 150000; // around RNDV_THRESH
constexpr size_t remote_small = 200;                           // by messages, over tcp
constexpr size_t memory_size = 1 << 16;
constexpr unsigned am_number = 3;
constexpr unsigned seed = 5; // of what is sent
constexpr char am_header[] = "header";

ucp_test::options wide(const char *tls, const char *scheme)
{
    ucp_test::options o;
    o.tls = tls;
    o.features = UCP_FEATURE_TAG | UCP_FEATURE_AM | UCP_FEATURE_STREAM | UCP_FEATURE_RMA |
                 UCP_FEATURE_AMO32 | UCP_FEATURE_AMO64;
    o.config = {{"RNDV_THRESH", "100000"}, {"RNDV_SCHEME", scheme}};
    return o;
}

} // namespace

actor::actor(const char *tls, const char *scheme) : self_(wide(tls, scheme)), memory_(memory_size)
{
    ucp_mem_map_params_t map = {};
    map.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
    map.address = memory_.data();
    map.length = memory_.size();
    if (!self_.worker || ucp_mem_map(self_.context, &map, &memh_) != UCS_OK) {
        memh_ = nullptr;
        return;
    }
    (void)ucp_test::set_am_handler(self_.worker, am_number, on_am, this);
}

actor::~actor()
{
    if (rkey_) {
        ucp_rkey_destroy(rkey_);
    }
    if (memh_) {
        (void)ucp_mem_unmap(self_.context, memh_);
    }
}

contact actor::about() const
{
    contact c = {};
    std::vector<char> address = self_.address();
    c.address_length = std::min(address.size(), sizeof(c.address));
    memcpy(c.address, address.data(), c.address_length);
    void *packed = nullptr;
    size_t length = 0;
    if (memh_ && ucp_rkey_pack(self_.context, memh_, &packed, &length) == UCS_OK) {
        c.rkey_length = std::min(length, sizeof(c.rkey));
        memcpy(c.rkey, packed, c.rkey_length);
        ucp_rkey_buffer_release(packed);
    }
    c.memory = reinterpret_cast<uintptr_t>(memory_.data());
    return c;
}

bool actor::connect(const contact &to)
{
    std::vector<char> address(to.address, to.address + to.address_length);
    return memh_ && ucp_test::create_ep(self_, address, &ep_, &errors_) == UCS_OK;
}

bool actor::learn(const contact &to)
{
    remote_ = to.memory;
    return ucp_ep_rkey_unpack(ep_, to.rkey, &rkey_) == UCS_OK;
}

// ---- operations ----

actor::operation &actor::add(size_t length, unsigned with, bool fill)
{
    operation &op = sends_.emplace_back();
    op.owner = this;
    op.buffer.resize(length);
    op.seed = with;
    op.length = length;
    if (fill) {
        fill_pattern(op.buffer.data(), length, with);
    }
    return op;
}

void actor::posted(operation &op, ucs_status_ptr_t r)
{
    if (UCS_PTR_IS_PTR(r)) {
        op.request = r;
        return;
    }
    ++op.results;
    op.status = UCS_PTR_STATUS(r);
}

void actor::done(void *, ucs_status_t status, void *arg)
{
    auto *op = static_cast<operation *>(arg);
    ++op->results;
    op->status = status;
}

void actor::tag_received(void *r, ucs_status_t status, const ucp_tag_recv_info_t *, void *arg)
{
    done(r, status, arg);
}

void actor::stream_received(void *r, ucs_status_t status, size_t, void *arg)
{
    done(r, status, arg);
}

void actor::am_received(void *r, ucs_status_t status, size_t, void *arg)
{
    done(r, status, arg);
}

ucp_request_param_t actor::params(operation &op, unsigned flags)
{
    ucp_request_param_t p = {};
    p.op_attr_mask =
        UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
    p.cb.send = done;
    p.user_data = &op;
    p.flags = flags;
    return p;
}

void actor::send_tag(size_t length, ucp_tag_t tag, bool sync)
{
    operation &op = add(length, seed, true);
    ucp_request_param_t p = params(op);
    posted(op, sync ? ucp_tag_send_sync_nbx(ep_, op.buffer.data(), length, tag, &p)
                    : ucp_tag_send_nbx(ep_, op.buffer.data(), length, tag, &p));
}

void actor::receive_tag(size_t length, ucp_tag_t tag)
{
    operation &op = add(length, seed, false);
    receives_.splice(receives_.end(), sends_, std::prev(sends_.end()));
    op.waits_for_anybody = true;
    ucp_request_param_t p = params(op);
    p.cb.recv = tag_received;
    posted(op, ucp_tag_recv_nbx(self_.worker, op.buffer.data(), length, tag, ~ucp_tag_t(0), &p));
}

void actor::send_am(size_t length, unsigned flags)
{
    operation &op = add(length, seed, true);
    ucp_request_param_t p = params(op, flags);
    posted(op, ucp_am_send_nbx(ep_, am_number, am_header, sizeof(am_header), op.buffer.data(),
                               length, &p));
    ++am_expected_;
}

ucs_status_t actor::on_am(void *arg, const void *, size_t, void *data, size_t length,
                          const ucp_am_recv_param_t *param)
{
    auto *self = static_cast<actor *>(arg);
    ++self->am_came_;
    if (!(param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV)) {
        std::vector<char> copy(static_cast<char *>(data), static_cast<char *>(data) + length);
        return UCS_OK; // a sanitizer has looked at all of it
    }
    if (length > large) {
        return UCS_ERR_REJECTED; // it lies
    }
    operation &op = self->add(length, 0, false);
    self->receives_.splice(self->receives_.end(), self->sends_, std::prev(self->sends_.end()));
    ucp_request_param_t p = self->params(op);
    p.cb.recv_am = am_received;
    self->posted(op, ucp_am_recv_data_nbx(self->self_.worker, data, op.buffer.data(), length, &p));
    return UCS_INPROGRESS;
}

void actor::start_stream()
{
    operation &out = add(fragments, seed, true);
    ucp_request_param_t p = params(out);
    posted(out, ucp_stream_send_nbx(ep_, out.buffer.data(), fragments, &p));
    operation &in = add(fragments, seed, false);
    receives_.splice(receives_.end(), sends_, std::prev(sends_.end()));
    ucp_request_param_t r = params(in, UCP_STREAM_RECV_FLAG_WAITALL);
    r.cb.recv_stream = stream_received;
    size_t now = 0;
    posted(in, ucp_stream_recv_nbx(ep_, in.buffer.data(), fragments, &now, &r));
}

void actor::start_memory(unsigned protocols)
{
    for (size_t length : {remote_small, fragments}) {
        if (protocols & put) {
            operation &op = add(length, seed, true);
            ucp_request_param_t p = params(op);
            posted(op, ucp_put_nbx(ep_, op.buffer.data(), length, remote_ + 64, rkey_, &p));
        }
        if (protocols & get) {
            operation &op = add(length, 0, false);
            ucp_request_param_t p = params(op);
            posted(op, ucp_get_nbx(ep_, op.buffer.data(), length, remote_ + 64, rkey_, &p));
        }
    }
    if (protocols & atomics) {
        for (bool fetches : {false, true}) {
            operation &op = add(2 * sizeof(uint64_t), 0, false); // the operand, the answer
            ucp_request_param_t p = params(op);
            p.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
            p.datatype = ucp_dt_make_contig(sizeof(uint64_t));
            if (fetches) {
                p.op_attr_mask |= UCP_OP_ATTR_FIELD_REPLY_BUFFER;
                p.reply_buffer = op.buffer.data() + sizeof(uint64_t);
            }
            posted(op, ucp_atomic_op_nbx(ep_, UCP_ATOMIC_OP_ADD, op.buffer.data(), 1, remote_,
                                         rkey_, &p));
        }
    }
    operation &flush = add(0, 0, false);
    ucp_request_param_t p = params(flush);
    posted(flush, ucp_ep_flush_nbx(ep_, &p));
}

void actor::start(unsigned protocols)
{
    constexpr struct {
        protocol which;
        size_t length;
        bool sync;
    } tags[] = {{tag_eager, small, false},
                {tag_fragments, fragments, false},
                {tag_sync, small, true},
                {tag_rendezvous, large, false}};
    for (const auto &t : tags) {
        if (protocols & t.which) {
            receive_tag(t.length, t.which);
            send_tag(t.length, t.which, t.sync);
        }
    }
    constexpr struct {
        protocol which;
        size_t length;
        unsigned flags;
    } messages[] = {{am_eager, small, 0},
                    {am_reply, small, UCP_AM_SEND_FLAG_REPLY},
                    {am_fragments, fragments, UCP_AM_SEND_FLAG_REPLY},
                    {am_rendezvous, large, UCP_AM_SEND_FLAG_RNDV}};
    for (const auto &m : messages) {
        if (protocols & m.which) {
            send_am(m.length, m.flags);
        }
    }
    if (protocols & stream) {
        start_stream();
    }
    if ((protocols & (put | get | atomics)) && rkey_) {
        start_memory(protocols);
    }
}

// ---- judgement ----

bool actor::sent() const
{
    return std::all_of(sends_.begin(), sends_.end(),
                       [](const operation &op) { return op.results > 0; });
}

bool actor::received() const
{
    return am_came_ >= am_expected_ &&
           std::all_of(receives_.begin(), receives_.end(),
                       [](const operation &op) { return op.results > 0; });
}

bool actor::all_ended(bool with_tags) const
{
    return sent() && std::all_of(receives_.begin(), receives_.end(), [&](const operation &op) {
               return op.results > 0 || (op.waits_for_anybody && !with_tags);
           });
}

bool actor::has_two_results() const
{
    auto twice = [](const operation &op) { return op.results > 1; };
    return std::any_of(sends_.begin(), sends_.end(), twice) ||
           std::any_of(receives_.begin(), receives_.end(), twice);
}

bool actor::has_wrong_data() const
{
    return std::any_of(receives_.begin(), receives_.end(), [](const operation &op) {
        return op.status == UCS_OK && op.seed && op.buffer != ucp_test::pattern(op.length, op.seed);
    });
}

template <class Done>
bool actor::progress_until(Done &&done)
{
    return ucp_test::run_until({&self_}, done);
}

outcome actor::judge_success()
{
    if (!progress_until([&] { return (sent() && received()) || errors_.count; })) {
        return outcome::no_result;
    }
    auto failed = [](const operation &op) { return op.status != UCS_OK; };
    if (errors_.count || std::any_of(sends_.begin(), sends_.end(), failed) ||
        std::any_of(receives_.begin(), receives_.end(), failed) || has_wrong_data()) {
        return outcome::wrong_result;
    }
    return has_two_results() ? outcome::two_results : outcome::ok;
}

outcome actor::judge_end()
{
    if (!progress_until([&] { return errors_.count > 0; })) {
        return outcome::errors_not_one;
    }
    if (!progress_until([&] { return all_ended(false); })) {
        return outcome::no_result;
    }
    for (operation &op : receives_) {
        if (op.results == 0) {
            ucp_request_cancel(self_.worker, op.request);
        }
    }
    if (!progress_until([&] { return all_ended(true); })) {
        return outcome::no_result;
    }
    for (int i = 0; i < 200; ++i) {
        progress(); // what a second one would need to show itself
    }
    if (has_two_results()) {
        return outcome::two_results;
    }
    return errors_.count == 1 ? outcome::ok : outcome::errors_not_one;
}

outcome actor::leave(bool force)
{
    if (rkey_) {
        ucp_rkey_destroy(std::exchange(rkey_, nullptr));
    }
    ucs_status_ptr_t r = ep_ ? ucp_test::close_nb(ep_, force) : nullptr;
    ep_ = nullptr;
    ucs_status_t closed = ucp_test::wait({&self_}, r);
    for (std::list<operation> *all : {&sends_, &receives_}) {
        for (operation &op : *all) {
            if (op.request) {
                ucp_request_free(op.request);
            }
        }
    }
    return closed == UCS_INPROGRESS ? outcome::not_closed : outcome::ok;
}

} // namespace ucp_actor
