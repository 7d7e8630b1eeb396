// SPDX-License-Identifier: BSD-3-Clause
// The rows of UCT's configuration objects.
#include "uct/base/config.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <strings.h>

namespace uct {

config_object::config_object(std::string name)
{
    for (char c : name) {
        prefix += static_cast<char>(toupper(static_cast<unsigned char>(c)));
    }
    prefix += '_';
    title = name;
}

namespace {

using namespace ucs::config;

using md_values = decltype(uct_md_config::v);
using iface_values = decltype(uct_iface_config::v);
using cm_values = decltype(uct_cm_config::v);

bool parse_port_range(const char *text, void *member)
{
    char *end;
    unsigned long first = strtoul(text, &end, 10), last = first;
    bool is_number = isdigit(static_cast<unsigned char>(*text)) != 0;
    if (is_number && *end == '-') {
        is_number = isdigit(static_cast<unsigned char>(end[1])) != 0;
        last = strtoul(end + 1, &end, 10);
    }
    if (!is_number || *end || last > UINT16_MAX || first > last || (first == 0 && last > 0)) {
        return false;
    }
    *static_cast<port_range *>(member) = {static_cast<uint16_t>(first),
                                          static_cast<uint16_t>(last)};
    return true;
}

std::string format_port_range(const void *member)
{
    auto *range = static_cast<const port_range *>(member);
    std::string first = std::to_string(range->first);
    return range->first == range->last ? first : first + "-" + std::to_string(range->last);
}

constexpr type port_range_type = {"<port> or <port>-<port>, 0: any", parse_port_range,
                                  format_port_range};

bool parse_families(const char *text, void *member)
{
    families found{};
    size_t count = 0;
    for (const char *begin = text;; ++begin) {
        size_t length = strcspn(begin, ",");
        auto is = [&](const char *name) {
            return length == strlen(name) && strncasecmp(begin, name, length) == 0;
        };
        sa_family_t family = is("inet") ? AF_INET : is("inet6") ? AF_INET6 : AF_UNSPEC;
        if (family == AF_UNSPEC || count == found.size() || (count == 1 && found[0] == family)) {
            return false;
        }
        found[count++] = family;
        begin += length;
        if (!*begin) {
            break;
        }
    }
    *static_cast<families *>(member) = found;
    return true;
}

std::string format_families(const void *member)
{
    std::string text;
    for (sa_family_t family : *static_cast<const families *>(member)) {
        if (family != AF_UNSPEC) {
            text += text.empty() ? "" : ",";
            text += family == AF_INET ? "inet" : "inet6";
        }
    }
    return text;
}

constexpr type families_type = {"inet, inet6, or both with a comma", parse_families,
                                format_families};

constexpr type auth_keys_type = {
    "<service>:<vni> or hexadecimal digits, or <device>=<key>,...",
    [](const char *text, void *member) { return static_cast<auth_keys *>(member)->parse(text); },
    [](const void *member) { return static_cast<const auth_keys *>(member)->text(); }};

// The first is of connectionless endpoints to other hosts, the last of tcp alone.
constexpr field md_fields[] = {
    {"AUTH_KEY", "",
     "Key of the part of the fabric that this process belongs to, for all devices or for each: "
     "service and VNI of Slingshot, or the hexadecimal digits of a UUID. Without it the provider "
     "takes what the job's launcher has set. Of connectionless endpoints to other hosts.",
     offsetof(md_values, auth_key), &auth_keys_type},
    {"REG_NONBLOCK", "n", "Register memory without waiting for its pages to be mapped.",
     offsetof(md_values, reg_nonblock), &bool_},
    {"AF_PRIO", "inet,inet6",
     "Families of addresses, the preferred one first: a device is used by its address of the first "
     "family that it has one of. Processes must agree. Of tcp alone.",
     offsetof(md_values, families), &families_type},
};

// Each transport has the rows that it honours, which stand one behind the other here.
constexpr field iface_fields[] = {
    {"RX_QUEUE_LEN", "0",
     "Receive buffers that the provider has at once; not of self and sm. 0: 256 of ofi_shm, and "
     "else 32 to 256, as many as are used, of those that the interfaces of a worker share.",
     offsetof(iface_values, rx_queue_len), &uint_},
    {"SEG_SIZE", "auto",
     "Largest message sent through an internal buffer, in bytes. auto: 33024 over tcp, 8192 over "
     "verbs and self, 8448 over sm and 4096 over shm, which take no more. Where processes differ "
     "in it UCP sends what both have room for; users of UCT must agree.",
     offsetof(iface_values, seg_size), &size_},
    {"TX_QUEUE_LEN", "0",
     "Operations in flight; over tcp also the copied messages of an endpoint that are on their "
     "way, at most 200. 0: as many as the provider takes, and 32 copied messages.",
     offsetof(iface_values, tx_queue_len), &uint_},
    {"MAX_NUM_EPS", "auto",
     "Endpoints an interface reports as its limit. auto or 0: as the provider says.",
     offsetof(iface_values, max_num_eps), &limit_},
    {"CONN_TIMEOUT", "inf",
     "How long a connection may take to come up; a peer need not make progress meanwhile. Of tcp, "
     "tcprdm and verbs, which make some.",
     offsetof(iface_values, connect_timeout), &time_},
    {"BACKLOG", "2048",
     "Small messages of an endpoint that the provider may hold for a peer that takes none. Further "
     "sends find no room until the peer makes progress. Not of self and shm, which have bounds of "
     "their own.",
     offsetof(iface_values, backlog), &uint_},
    {"BATCH", "4224",
     "Largest message that may leave together with others, when they are sent faster than one by "
     "one, in bytes. 0: none. Of tcp alone.",
     offsetof(iface_values, batch), &size_},
    {"ATTEND", "y",
     "A thread, one for the process, answers reads of its memory, and sends gathered messages, "
     "while the program does not call in. Without it reads wait, and nothing is gathered. Of tcp "
     "alone.",
     offsetof(iface_values, attend), &bool_},
    {"LOCAL_PACING", "n",
     "Leave connections within the host to the system's congestion control though it paces, as BBR "
     "does, which costs a timer for each packet. Of tcp alone.",
     offsetof(iface_values, local_pacing), &bool_},
    {"PORT_RANGE", "0",
     "Ports that interfaces listen on for connections of other processes: one of these, or, "
     "with 0, any that the system chooses. Listeners of programs have ports of their own. Of tcp "
     "alone.",
     offsetof(iface_values, ports), &port_range_type},
    {"PEER_TIMEOUT", "60s",
     "How long a connection to an interface may stay open before it asks for anything. It is "
     "looked "
     "at while the program progresses. Of tcp alone.",
     offsetof(iface_values, peer_timeout), &time_},
    {"SEQUENCE", "auto",
     "Number active messages and put them in order at the receiver. auto: where the provider keeps "
     "no order. Processes must agree. Tagged messages are not matched by the provider then. Of "
     "connectionless endpoints to other hosts.",
     offsetof(iface_values, sequence), &ternary_},
    {"MULTI_RECV", "n",
     "Messages share receive buffers where the provider can do that: an interface has 1 MiB of "
     "them, or room for RX_QUEUE_LEN messages of the greatest length. Of connectionless endpoints "
     "to other hosts.",
     offsetof(iface_values, multi_recv), &bool_},
};
struct rows {
    size_t first;
    size_t count;
};
constexpr rows shm_rows = {0, 4};
constexpr rows self_rows = {1, 3}; // and of sm
constexpr rows network_rows = {0, 6};
constexpr rows tcp_rows = {0, 11};

// Of connectionless endpoints: those of every network, and the last two.
constexpr auto rdm_fields = [] {
    constexpr size_t own = 2;
    std::array<field, network_rows.count + own> found{};
    for (size_t i = 0; i < network_rows.count; ++i) {
        found[i] = iface_fields[network_rows.first + i];
    }
    for (size_t i = 0; i < own; ++i) {
        found[network_rows.count + i] = iface_fields[std::size(iface_fields) - own + i];
    }
    return found;
}();

constexpr field cm_fields[] = {
    {"PRIV_DATA_LEN", "4k", "Private data a connection request or reply carries, in bytes.",
     offsetof(cm_values, max_conn_priv), &size_},
    {"REUSEADDR", "y", "Listen on an address that has connections of an earlier listener.",
     offsetof(cm_values, reuse_addr), &bool_},
    {"PEER_TIMEOUT", "60s",
     "How long a server waits for a client's request, for the rest of it, and for the client's "
     "word "
     "that it has the answer. Then the connection ends.",
     offsetof(cm_values, peer_timeout), &time_},
};

// To other hosts.
bool is_connectionless(const std::string &title)
{
    constexpr const char *others[] = {"shm", "self", "sm", "tcp", "verbs"};
    return std::none_of(std::begin(others), std::end(others),
                        [&](const char *name) { return title == name; });
}

} // namespace
} // namespace uct

namespace uct {

void know_variables(const std::string &transport)
{
    ucs::config::know(uct_md_config(transport).table());
    ucs::config::know(uct_iface_config(transport).table());
    ucs::config::know(uct_cm_config(transport + "_CM").table());
}

} // namespace uct

std::span<const ucs::config::field> uct_md_config::fields() const
{
    std::span<const ucs::config::field> all = uct::md_fields;
    if (title.empty()) { // of the manual page
        return all;
    }
    return uct::is_connectionless(title) ? all.first(2) : all.subspan(1, title == "tcp" ? 2 : 1);
}

std::span<const ucs::config::field> uct_iface_config::fields() const
{
    std::span<const ucs::config::field> all = uct::iface_fields;
    if (title.empty()) { // of the manual page
        return all;
    }
    if (uct::is_connectionless(title)) {
        return uct::rdm_fields;
    }
    uct::rows rows = title == "shm"    ? uct::shm_rows
                     : title == "self" ? uct::self_rows
                     : title == "sm"   ? uct::self_rows
                     : title == "tcp"  ? uct::tcp_rows
                                       : uct::network_rows;
    return all.subspan(rows.first, rows.count);
}

std::span<const ucs::config::field> uct_cm_config::fields() const
{
    return uct::cm_fields;
}
