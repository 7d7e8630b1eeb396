// SPDX-License-Identifier: BSD-3-Clause
//
// What the provider puts on the wire: headers of UCP active messages, little-endian. Every message
// starts with the id that its receiver gave to the sender; an RDM sender that has not been given
// one yet uses 0 and appends a hello, which names it.
//
//   0            7       8
//   +------------+-------+----------- - - -
//   | id         | flags | optional words, in the order of the flags, then the hello, then the kind
//   +------------+-------+----------- - - -
//
// One parser (parse) reads all of them; a length that does not fit what the flags announce drops
// the message.
#pragma once

#include "prov/ucxlike/address.h"

#include "ucs/compiler.h"
#include "ucs/wire/protocol.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace ucxlike::wire {

// Of a hello, which is within messages of UCP.
constexpr ucs::protocol protocol = {0, 7, "the provider's protocol"};
constexpr uint8_t version = protocol.version;

// UCP active-message ids.
enum am : unsigned { am_msg = 0, am_tagged = 1, am_control = 2, am_rma = 3, am_last };

enum flag : uint8_t {
    has_tag = 1 << 0,
    has_data = 1 << 1,   // remote CQ data
    has_ack = 1 << 2,    // the receiver acknowledges the delivery with this word
    has_rma = 1 << 3,    // three words: address, key, length
    has_group = 1 << 4,  // sent to a multicast group: its id at the receiver
    on_arrival = 1 << 5, // with has_ack: acknowledged before it is matched
    has_hello = 1 << 6,
    has_kind = 1 << 7, // 2 bytes; without, it is none
};

enum kind : uint16_t {
    none = 0,
    // am_control
    welcome,  // to a hello: word = the id to use from now on; a hello follows
    acked,    // word = the has_ack word of the message; data = 0 or the error at the receiver
    shutdown, // nothing follows
    // in a connection's request and answer, in front of the user's data
    connect, // hello: name and id of the caller
    accept,  // word = the id to use
    reject,
    // am_rma
    write,
    read,      // ack word names the request
    read_data, // word = the request's ack word
    atomic,
    atomic_result,
    // am_control, with a membership behind them
    asks_membership,
    tells_membership,
    // am_control: whether a hello came from where it says (connect/claim.h)
    challenge, // word = what to prove it with; to the id of the hello
    proof,     // word = the challenge's, over the link that has carried the hello
};

constexpr unsigned id_bits = 56;
// Whether a peer may ask for this id in its messages.
constexpr bool is_id(uint64_t id)
{
    return id && !(id >> id_bits);
}

struct header {
    uint64_t bits;

    static constexpr header of(uint64_t id, uint8_t flags)
    {
        return {id | static_cast<uint64_t>(flags) << id_bits};
    }
    constexpr uint64_t id() const { return bits & ((uint64_t(1) << id_bits) - 1); }
    constexpr uint8_t flags() const { return static_cast<uint8_t>(bits >> id_bits); }
};
static_assert(sizeof(header) == 8);

// The sender: its name, which start of it, and the id under which it knows the receiver.
struct hello {
    uint8_t version;
    uint8_t family; // 4 or 6
    uint16_t port;  // network order
    uint32_t reserved;
    uint64_t id; // for messages to the sender; 0: not given
    uint64_t incarnation;
    uint8_t address[16];
};
static_assert(sizeof(hello) == 40);

struct rma {
    uint64_t address;
    uint64_t key;
    uint64_t length;
};

// An announcement of a member of a multicast group, the only thing that is sent by IP multicast.
//
//   0       4      5       6         8
//   +-------+------+-------+---------+-----
//   | magic | kind | roles | members | hello; its id is the group's, at the member
//   +-------+------+-------+---------+-----
struct notice {
    static constexpr uint32_t right_magic = 0x676d7875; // "uxmg"
    enum : uint8_t { here = 1, leaves = 2 };
    enum : uint8_t { sends = 1, receives = 2 };
    uint32_t magic;
    uint8_t kind;
    uint8_t roles;
    uint16_t members; // that the sender knows of, with itself
    hello sender;
};
static_assert(sizeof(notice) == 48);

// Whether the receiver of the question takes what is sent to a multicast group: the name is the
// group's. The id of the answer is the group's at its sender, 0: it takes nothing.
using membership = hello;

constexpr size_t ack_size = sizeof(header) + 2 * sizeof(uint64_t) + sizeof(uint16_t);
// Of a message that asks for nothing.
constexpr size_t plain_header = sizeof(header) + 2 * sizeof(uint64_t);
constexpr size_t max_header =
    sizeof(header) + 4 * sizeof(uint64_t) + sizeof(rma) + sizeof(hello) + sizeof(uint16_t);

// What a receive keeps of a message.
struct words {
    uint64_t tag = 0;
    uint64_t data = 0;
    uint64_t ack = 0;
    uint8_t flags = 0;
};

struct message : words {
    uint16_t kind = 0;
    uint64_t id = 0;
    uint64_t group = 0;
    const uint8_t *hello = nullptr; // unaligned
    uint8_t other_version = 0;      // of a hello that was not read for that
    struct rma rma = {};
};

inline hello make_hello(const address &name, uint64_t incarnation, uint64_t id)
{
    hello h = {};
    h.version = version;
    h.port = name.sa.sa_family == AF_INET ? name.in4.sin_port : name.in6.sin6_port;
    h.family = name.sa.sa_family == AF_INET ? 4 : 6;
    h.id = id;
    h.incarnation = incarnation;
    if (h.family == 4) {
        memcpy(h.address, &name.in4.sin_addr, 4);
    } else {
        memcpy(h.address, &name.in6.sin6_addr, 16);
    }
    return h;
}

inline address name_of(const hello &h)
{
    address a;
    if (h.family == 4) {
        a.in4.sin_family = AF_INET;
        a.in4.sin_port = h.port;
        memcpy(&a.in4.sin_addr, h.address, 4);
    } else {
        a.in6.sin6_family = AF_INET6;
        a.in6.sin6_port = h.port;
        memcpy(&a.in6.sin6_addr, h.address, 16);
    }
    return a;
}

// Appends to a header under construction.
class builder {
  public:
    explicit builder(uint8_t *to) : start_(to), at_(to + sizeof(header)) {}

    void tag(uint64_t v) { word(has_tag, v); }
    void data(uint64_t v) { word(has_data, v); }
    void ack(uint64_t v) { word(has_ack, v); }
    void ack_on_arrival() { flags_ |= on_arrival; }
    void group(uint64_t v) { word(has_group, v); }
    void rma(const wire::rma &r)
    {
        flags_ |= has_rma;
        memcpy(at_, &r, sizeof(r));
        at_ += sizeof(r);
    }
    void say_hello(const hello &h)
    {
        flags_ |= has_hello;
        memcpy(at_, &h, sizeof(h));
        at_ += sizeof(h);
    }
    size_t finish(uint64_t id, uint16_t kind)
    {
        if (kind) {
            flags_ |= has_kind;
            memcpy(at_, &kind, sizeof(kind));
            at_ += sizeof(kind);
        }
        header h = header::of(id, flags_);
        memcpy(start_, &h, sizeof(h));
        return static_cast<size_t>(at_ - start_);
    }

  private:
    void word(uint8_t f, uint64_t v)
    {
        flags_ |= f;
        memcpy(at_, &v, sizeof(v));
        at_ += sizeof(v);
    }

    uint8_t *start_;
    uint8_t *at_;
    uint8_t flags_ = 0;
};

// How many single words the flags announce. (A builtin would be a call on the oldest x86-64.)
constexpr size_t words_of(uint8_t flags)
{
    return (flags & 1u) + (flags >> 1 & 1u) + (flags >> 2 & 1u) + (flags >> 4 & 1u);
}
static_assert(words_of(has_tag) + words_of(has_data) + words_of(has_ack) + words_of(has_group) ==
                  words_of(0xff) &&
              words_of(has_rma) == 0);

// From the header to the end of what it announces.
constexpr size_t length_of(const header &h)
{
    uint8_t flags = h.flags();
    return sizeof(h) + sizeof(uint64_t) * words_of(flags) + (flags & has_rma ? sizeof(rma) : 0) +
           (flags & has_hello ? sizeof(hello) : 0) + (flags & has_kind ? sizeof(uint16_t) : 0);
}

// Of sizeof(hello) bytes.
inline ucs::spoken read_hello(const void *bytes, hello *said)
{
    ucs::spoken what = ucs::read(protocol, bytes, sizeof(*said), said);
    if (what == ucs::spoken::ours && said->family != 4 && said->family != 6) {
        return ucs::spoken::foreign;
    }
    return what;
}

// What follows the header h.
UCS_NOINLINE inline bool parse_words(const header &h, const void *bytes, size_t length, message &m)
{
    if (length != length_of(h)) {
        return false;
    }
    const uint8_t *at = static_cast<const uint8_t *>(bytes) + sizeof(h);
    auto take = [&](void *to, size_t n) {
        memcpy(to, at, n);
        at += n;
    };
    if (m.flags & has_tag) {
        take(&m.tag, 8);
    }
    if (m.flags & has_data) {
        take(&m.data, 8);
    }
    if (m.flags & has_ack) {
        take(&m.ack, 8);
    }
    if (m.flags & has_group) {
        take(&m.group, 8);
    }
    if (m.flags & has_rma) {
        take(&m.rma, sizeof(m.rma));
    }
    if (m.flags & has_hello) {
        wire::hello said;
        ucs::spoken what = read_hello(at, &said);
        m.other_version = what == ucs::spoken::other_version ? at[0] : 0;
        if (what != ucs::spoken::ours || (said.id && !is_id(said.id))) {
            return false;
        }
        m.hello = at;
        at += sizeof(wire::hello);
    }
    if (m.flags & has_kind) {
        take(&m.kind, sizeof(m.kind));
        return m.kind != none;
    }
    return true;
}

// False when the bytes are not a message of ours.
UCS_ALWAYS_INLINE bool parse(const void *bytes, size_t length, message &m)
{
    if (UCS_UNLIKELY(length < sizeof(header))) {
        return false;
    }
    header h;
    memcpy(&h, bytes, sizeof(h));
    m.id = h.id();
    m.flags = h.flags();
    if (UCS_LIKELY(m.flags == has_tag && length == sizeof(h) + sizeof(m.tag))) {
        memcpy(&m.tag, static_cast<const uint8_t *>(bytes) + sizeof(h), sizeof(m.tag));
        return true;
    }
    return parse_words(h, bytes, length, m);
}

// The same with a payload behind it, of which the rest of the bytes are taken.
inline bool parse(const void *bytes, size_t length, message &m, std::string_view *payload)
{
    header h;
    if (length < sizeof(h)) {
        return false;
    }
    memcpy(&h, bytes, sizeof(h));
    size_t front = length_of(h);
    if (length < front || !parse(bytes, front, m)) {
        return false;
    }
    *payload = {static_cast<const char *>(bytes) + front, length - front};
    return true;
}

inline bool parse(const void *bytes, size_t length, notice &n)
{
    if (length != sizeof(n)) {
        return false;
    }
    const uint8_t *first = static_cast<const uint8_t *>(bytes) + offsetof(notice, sender);
    memcpy(&n, bytes, sizeof(n));
    return n.magic == notice::right_magic && (n.kind == notice::here || n.kind == notice::leaves) &&
           n.roles && !(n.roles & ~(notice::sends | notice::receives)) &&
           read_hello(first, &n.sender) == ucs::spoken::ours && n.sender.port && n.sender.id;
}

// Of a group's name and id.
inline bool parse(const void *bytes, size_t length, membership &m)
{
    return length == sizeof(m) && read_hello(bytes, &m) == ucs::spoken::ours;
}

} // namespace ucxlike::wire
