// SPDX-License-Identifier: BSD-3-Clause
// Configuration objects behind uct_md_config_t, uct_iface_config_t and uct_cm_config_t. uct.h hands
// them around as void *, so each starts with the table that describes it.
#pragma once

#include "ucs/config/config.h"
#include "uct/base/auth_key.h"

#include <uct/api/uct.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <sys/socket.h>

namespace uct {

// Ports to choose from; 0 to 0: the system chooses.
struct port_range {
    uint16_t first = 0;
    uint16_t last = 0;
};

// AF_INET, AF_INET6, the preferred one first; AF_UNSPEC: no more.
using families = std::array<sa_family_t, 2>;

struct config_object {
    explicit config_object(std::string prefix);
    config_object(const config_object &) = delete;
    config_object &operator=(const config_object &) = delete;
    virtual ~config_object() = default;

    // The rows and the title; prefix is filled in by table().
    virtual std::span<const ucs::config::field> fields() const = 0;
    virtual void *values() = 0;

    ucs::config::table table() const { return {title.c_str(), prefix.c_str(), fields(), "UCT_"}; }

    std::string title;
    std::string prefix; // "TCP_": after UCX_
};

} // namespace uct

// Memory domains have nothing to configure beyond registration.
struct uct_md_config final : uct::config_object {
    using config_object::config_object;
    struct {
        uct::auth_keys auth_key;   // AUTH_KEY
        bool reg_nonblock = false; // REG_NONBLOCK
        uct::families families{};  // AF_PRIO: the first that a device has; none: not asked
    } v;
    std::span<const ucs::config::field> fields() const override;
    void *values() override { return &v; }
};

struct uct_iface_config final : uct::config_object {
    using config_object::config_object;
    struct {
        size_t seg_size = 0;        // SEG_SIZE: largest bcopy, bytes; auto: by transport
        unsigned rx_queue_len = 0;  // RX_QUEUE_LEN: receive buffers posted; 0: by transport
        unsigned tx_queue_len = 0;  // TX_QUEUE_LEN: operations in flight; 0: as the provider says
        unsigned max_num_eps = 0;   // MAX_NUM_EPS: 0: as the provider says
        double connect_timeout = 0; // CONN_TIMEOUT, seconds
        unsigned backlog = 0;       // BACKLOG, messages
        size_t batch = 0;           // BATCH, bytes
        bool attend = false;        // ATTEND
        bool local_pacing = false;  // LOCAL_PACING
        uct::port_range ports;      // PORT_RANGE
        double peer_timeout = 0;    // PEER_TIMEOUT, seconds
        ucs::config::ternary sequence = ucs::config::ternary::auto_; // SEQUENCE
        bool multi_recv = false;                                     // MULTI_RECV
    } v;
    std::span<const ucs::config::field> fields() const override;
    void *values() override { return &v; }
};

struct uct_cm_config final : uct::config_object {
    using config_object::config_object;
    struct {
        size_t max_conn_priv = 0; // PRIV_DATA_LEN
        bool reuse_addr = false;  // REUSEADDR
        double peer_timeout = 0;  // PEER_TIMEOUT, seconds
    } v;
    std::span<const ucs::config::field> fields() const override;
    void *values() override { return &v; }
};

namespace uct {

// The variables of a transport and its component are valid names, whether it is here or not.
void know_variables(const std::string &transport);

// A filled object for "<PREFIX>" (component or transport name in upper case, without the trailing
// underscore). Throws ucs::error.
template <class Config>
std::unique_ptr<Config> read_config(const std::string &name, const char *env_prefix,
                                    const char *file)
{
    auto config = std::make_unique<Config>(name);
    ucs::config::fill(config->table(), config->values(), env_prefix, file);
    return config;
}

} // namespace uct
