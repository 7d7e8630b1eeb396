// SPDX-License-Identifier: BSD-3-Clause
// The rows of UCT's configuration objects.
#include "uct/config.h"

#include <cctype>
#include <cstddef>

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

constexpr field md_fields[] = {
    {"REG_NONBLOCK", "n", "Register memory without waiting for its pages to be mapped.",
     offsetof(md_values, reg_nonblock), &bool_},
};

constexpr field iface_fields[] = {
    {"SEG_SIZE", "auto", "Largest message sent through an internal buffer, in bytes.",
     offsetof(iface_values, seg_size), &size_},
    {"RX_QUEUE_LEN", "0", "Receive buffers kept posted. 0: by transport.",
     offsetof(iface_values, rx_queue_len), &uint_},
    {"TX_QUEUE_LEN", "0", "Operations in flight. 0: as many as the provider takes.",
     offsetof(iface_values, tx_queue_len), &uint_},
    {"MAX_NUM_EPS", "0", "Endpoints an interface reports as its limit. 0: as the provider says.",
     offsetof(iface_values, max_num_eps), &uint_},
    {"CONN_TIMEOUT", "10s", "How long a connection may take to come up.",
     offsetof(iface_values, connect_timeout), &time_},
};

constexpr field cm_fields[] = {
    {"PRIV_DATA_LEN", "4k", "Private data a connection request or reply carries, in bytes.",
     offsetof(cm_values, max_conn_priv), &size_},
    {"REUSEADDR", "n", "Listen on an address that has connections of an earlier listener.",
     offsetof(cm_values, reuse_addr), &bool_},
};

} // namespace
} // namespace uct

std::span<const ucs::config::field> uct_md_config::fields() const
{
    return uct::md_fields;
}

std::span<const ucs::config::field> uct_iface_config::fields() const
{
    return uct::iface_fields;
}

std::span<const ucs::config::field> uct_cm_config::fields() const
{
    return uct::cm_fields;
}
