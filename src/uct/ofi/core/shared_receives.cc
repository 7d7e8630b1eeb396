// SPDX-License-Identifier: BSD-3-Clause
// Posting buffers that messages share.
#include "uct/ofi/core/shared_receives.h"

#include "uct/ofi/fabric/error.h"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <utility>

namespace uct::ofi {

namespace {

// Before the messages stands the piece that the buffer is posted as, because some cores read it
// until they give the buffer back.
constexpr size_t front = 64;
static_assert(sizeof(iovec) <= front);

char *allocate(size_t length)
{
    constexpr size_t page = 4096;
    void *block = std::aligned_alloc(page, (front + length + page - 1) / page * page);
    if (!block) {
        throw std::bad_alloc();
    }
    char *messages = static_cast<char *>(block) + front;
    new (block) iovec{messages, length};
    return messages;
}

void release(char *messages)
{
    if (messages) {
        std::free(messages - front);
    }
}

iovec *piece_of(char *messages)
{
    return reinterpret_cast<iovec *>(messages - front);
}

} // namespace

bool shared_receives::prepare(fid_ep *endpoint, size_t longest)
{
    return fi_setopt(&endpoint->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &longest,
                     sizeof(longest)) == 0;
}

shared_receives::shared_receives(md &domain, fid_ep *endpoint, size_t longest, unsigned messages)
    : endpoint_(endpoint), length_(std::max(2u, messages / buffers) * longest)
{
    try {
        for (buffer &b : all_) {
            b.what = op::kind::shared_receive;
            b.has_buffer = false;
            b.owner = nullptr;
            b.completion = nullptr;
            b.data = allocate(length_);
            b.region = std::make_unique<memory>(domain.reg_local(b.data, length_));
        }
    } catch (...) {
        for (buffer &b : all_) {
            b.region.reset();
            release(b.data);
        }
        throw;
    }
}

shared_receives::~shared_receives()
{
    for (buffer &b : all_) {
        b.region.reset();
        release(b.data);
    }
}

bool shared_receives::post(buffer *b)
{
    fi_msg message{};
    message.msg_iov = piece_of(b->data);
    message.desc = &b->region->desc;
    message.iov_count = 1;
    message.addr = FI_ADDR_UNSPEC;
    message.context = static_cast<fi_context2 *>(b);
    ssize_t ret = fi_recvmsg(endpoint_, &message, FI_MULTI_RECV | FI_COMPLETION);
    if (ret != 0 && ret != -FI_EAGAIN && !std::exchange(has_failed_, true)) {
        ucs_error("fi_recvmsg: %s", fi_strerror(static_cast<int>(-ret)));
    }
    if (ret == 0) {
        b->is = state::posted;
    }
    return ret == 0;
}

unsigned shared_receives::post()
{
    unsigned missing = 0;
    for (buffer &b : all_) {
        missing += b.is == state::early || (b.is == state::ours && !post(&b));
    }
    return missing;
}

void shared_receives::returned(op *o)
{
    static_cast<buffer *>(o)->is = state::ours;
}

void shared_receives::returned_early(op *o)
{
    static_cast<buffer *>(o)->is = state::early;
}

void shared_receives::queue_is_empty()
{
    for (buffer &b : all_) {
        if (b.is == state::early) {
            b.is = state::ours;
        }
    }
}

} // namespace uct::ofi
