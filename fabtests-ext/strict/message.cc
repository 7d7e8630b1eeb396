// SPDX-License-Identifier: BSD-3-Clause
// Messages and tagged messages: every call becomes a request.
#include "strict/strict.h"

namespace strict {

namespace {

using kind = request::kind;

std::unique_ptr<request> make(kind what, void *context, uint64_t flags)
{
    auto r = std::make_unique<request>();
    r->what = what;
    r->context = context;
    r->flags = flags;
    r->reported = true;
    return r;
}

// A message of one piece, whose iovec is not kept.
ssize_t send_one(fid_ep *fid, std::unique_ptr<request> r, const void *buffer, size_t length,
                 void *desc, fi_addr_t to)
{
    iovec piece{const_cast<void *>(buffer), length};
    return self<ep>(fid)->submit(std::move(r), &piece, &desc, 1, to);
}

ssize_t send_many(fid_ep *fid, std::unique_ptr<request> r, const iovec *iov, void *const *descs,
                  size_t count, fi_addr_t to)
{
    r->caller = iov;
    return self<ep>(fid)->submit(std::move(r), iov, descs, count, to);
}

std::unique_ptr<request> injected(kind what, uint64_t flags)
{
    auto r = make(what, nullptr, FI_INJECT | flags);
    r->reported = false;
    return r;
}

std::unique_ptr<request> with_data(std::unique_ptr<request> r, uint64_t data)
{
    r->data = data;
    return r;
}

std::unique_ptr<request> with_tag(std::unique_ptr<request> r, uint64_t tag, uint64_t ignore = 0)
{
    r->tag = tag;
    r->ignore = ignore;
    return r;
}

uint64_t tx_flags(fid_ep *fid)
{
    return self<ep>(fid)->tx_flags;
}

uint64_t rx_flags(fid_ep *fid)
{
    return self<ep>(fid)->rx_flags;
}

ssize_t recv(fid_ep *fid, void *buffer, size_t length, void *desc, fi_addr_t, void *context)
{
    return send_one(fid, make(kind::receive, context, rx_flags(fid)), buffer, length, desc,
                    FI_ADDR_UNSPEC);
}

ssize_t recvv(fid_ep *fid, const iovec *iov, void **descs, size_t count, fi_addr_t, void *context)
{
    return send_many(fid, make(kind::receive, context, rx_flags(fid)), iov, descs, count,
                     FI_ADDR_UNSPEC);
}

ssize_t recvmsg(fid_ep *fid, const fi_msg *m, uint64_t flags)
{
    return send_many(fid, make(kind::receive, m->context, flags), m->msg_iov, m->desc, m->iov_count,
                     FI_ADDR_UNSPEC);
}

ssize_t send(fid_ep *fid, const void *buffer, size_t length, void *desc, fi_addr_t to,
             void *context)
{
    return send_one(fid, make(kind::send, context, tx_flags(fid)), buffer, length, desc, to);
}

ssize_t sendv(fid_ep *fid, const iovec *iov, void **descs, size_t count, fi_addr_t to,
              void *context)
{
    return send_many(fid, make(kind::send, context, tx_flags(fid)), iov, descs, count, to);
}

ssize_t sendmsg(fid_ep *fid, const fi_msg *m, uint64_t flags)
{
    return send_many(fid, with_data(make(kind::send, m->context, flags), m->data), m->msg_iov,
                     m->desc, m->iov_count, m->addr);
}

ssize_t inject(fid_ep *fid, const void *buffer, size_t length, fi_addr_t to)
{
    return send_one(fid, injected(kind::send, 0), buffer, length, nullptr, to);
}

ssize_t senddata(fid_ep *fid, const void *buffer, size_t length, void *desc, uint64_t data,
                 fi_addr_t to, void *context)
{
    uint64_t flags = tx_flags(fid) | FI_REMOTE_CQ_DATA;
    return send_one(fid, with_data(make(kind::send, context, flags), data), buffer, length, desc,
                    to);
}

ssize_t injectdata(fid_ep *fid, const void *buffer, size_t length, uint64_t data, fi_addr_t to)
{
    return send_one(fid, with_data(injected(kind::send, FI_REMOTE_CQ_DATA), data), buffer, length,
                    nullptr, to);
}

ssize_t trecv(fid_ep *fid, void *buffer, size_t length, void *desc, fi_addr_t, uint64_t tag,
              uint64_t ignore, void *context)
{
    return send_one(fid, with_tag(make(kind::tagged_receive, context, rx_flags(fid)), tag, ignore),
                    buffer, length, desc, FI_ADDR_UNSPEC);
}

ssize_t trecvv(fid_ep *fid, const iovec *iov, void **descs, size_t count, fi_addr_t, uint64_t tag,
               uint64_t ignore, void *context)
{
    return send_many(fid, with_tag(make(kind::tagged_receive, context, rx_flags(fid)), tag, ignore),
                     iov, descs, count, FI_ADDR_UNSPEC);
}

ssize_t trecvmsg(fid_ep *fid, const fi_msg_tagged *m, uint64_t flags)
{
    return send_many(fid,
                     with_tag(make(kind::tagged_receive, m->context, flags), m->tag, m->ignore),
                     m->msg_iov, m->desc, m->iov_count, FI_ADDR_UNSPEC);
}

ssize_t tsend(fid_ep *fid, const void *buffer, size_t length, void *desc, fi_addr_t to,
              uint64_t tag, void *context)
{
    return send_one(fid, with_tag(make(kind::tagged_send, context, tx_flags(fid)), tag), buffer,
                    length, desc, to);
}

ssize_t tsendv(fid_ep *fid, const iovec *iov, void **descs, size_t count, fi_addr_t to,
               uint64_t tag, void *context)
{
    return send_many(fid, with_tag(make(kind::tagged_send, context, tx_flags(fid)), tag), iov,
                     descs, count, to);
}

ssize_t tsendmsg(fid_ep *fid, const fi_msg_tagged *m, uint64_t flags)
{
    auto r = with_tag(make(kind::tagged_send, m->context, flags), m->tag);
    return send_many(fid, with_data(std::move(r), m->data), m->msg_iov, m->desc, m->iov_count,
                     m->addr);
}

ssize_t tinject(fid_ep *fid, const void *buffer, size_t length, fi_addr_t to, uint64_t tag)
{
    return send_one(fid, with_tag(injected(kind::tagged_send, 0), tag), buffer, length, nullptr,
                    to);
}

ssize_t tsenddata(fid_ep *fid, const void *buffer, size_t length, void *desc, uint64_t data,
                  fi_addr_t to, uint64_t tag, void *context)
{
    auto r = with_tag(make(kind::tagged_send, context, tx_flags(fid) | FI_REMOTE_CQ_DATA), tag);
    return send_one(fid, with_data(std::move(r), data), buffer, length, desc, to);
}

ssize_t tinjectdata(fid_ep *fid, const void *buffer, size_t length, uint64_t data, fi_addr_t to,
                    uint64_t tag)
{
    auto r = with_tag(injected(kind::tagged_send, FI_REMOTE_CQ_DATA), tag);
    return send_one(fid, with_data(std::move(r), data), buffer, length, nullptr, to);
}

} // namespace

fi_ops_msg message_ops = {
    sizeof(fi_ops_msg), recv, recvv, recvmsg, send, sendv, sendmsg, inject, senddata, injectdata};
fi_ops_tagged tagged_ops = {sizeof(fi_ops_tagged),
                            trecv,
                            trecvv,
                            trecvmsg,
                            tsend,
                            tsendv,
                            tsendmsg,
                            tinject,
                            tsenddata,
                            tinjectdata};

} // namespace strict
