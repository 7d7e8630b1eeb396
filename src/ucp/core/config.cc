// SPDX-License-Identifier: BSD-3-Clause
//
// The table of UCP's variables and the ucp_config_* calls.
#include "ucp/core/config.h"

#include "ucs/check.h"
#include "ucs/error.h"
#include "ucs/other_ucx.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <strings.h>

namespace ucp {

namespace {

using namespace ucs::config;

constexpr const char *scheme_names[] = {"auto",      "get_zcopy", "get_ppln", "rkey_ptr",
                                        "put_zcopy", "put_ppln",  "am"};

bool parse_scheme(const char *text, void *member)
{
    for (size_t i = 0; i < std::size(scheme_names); ++i) {
        if (!strcasecmp(text, scheme_names[i])) {
            *static_cast<rndv_scheme *>(member) = static_cast<rndv_scheme>(i);
            return true;
        }
    }
    return false;
}

std::string format_scheme(const void *member)
{
    return scheme_names[static_cast<size_t>(*static_cast<const rndv_scheme *>(member))];
}

constexpr type scheme_ = {"<auto|get_zcopy|get_ppln|rkey_ptr|put_zcopy|put_ppln|am>", parse_scheme,
                          format_scheme};

// "SIZE", or a list of "intra:SIZE" and "inter:SIZE"; what a list leaves out is auto.
bool parse_thresholds(const char *text, void *member)
{
    thresholds value = {SIZE_AUTO, SIZE_AUTO};
    if (!strchr(text, ':')) {
        if (!size_.parse(text, &value.intra)) {
            return false;
        }
        value.inter = value.intra;
    } else {
        std::vector<std::string> items;
        string_list_.parse(text, &items);
        for (const std::string &item : items) {
            bool intra = item.starts_with("intra:");
            if ((!intra && !item.starts_with("inter:")) ||
                !size_.parse(item.c_str() + strlen("intra:"),
                             intra ? &value.intra : &value.inter)) {
                return false;
            }
        }
    }
    *static_cast<thresholds *>(member) = value;
    return true;
}

std::string format_thresholds(const void *member)
{
    const auto &value = *static_cast<const thresholds *>(member);
    std::string intra = size_.format(&value.intra), inter = size_.format(&value.inter);
    return intra == inter ? intra : "intra:" + intra + ",inter:" + inter;
}

constexpr type thresholds_ = {
    "<memory units: number[k|m|g], inf, auto; or intra:number[k|m|g],inter:number[k|m|g]>",
    parse_thresholds, format_thresholds};

bool parse_address_format(const char *text, void *member)
{
    bool v2 = !strcasecmp(text, "v2");
    if (!v2 && strcasecmp(text, "v1")) {
        return false;
    }
    *static_cast<address_format *>(member) = v2 ? address_format::v2 : address_format::v1;
    return true;
}

constexpr type address_format_ = {"<v1|v2>", parse_address_format, [](const void *member) {
                                      bool v2 = *static_cast<const address_format *>(member) ==
                                                address_format::v2;
                                      return std::string(v2 ? "v2" : "v1");
                                  }};

// The words of a boolean become y and n. Everything else that is no word of its own is a pattern.
bool parse_proto_info(const char *text, void *member)
{
    bool on = false;
    std::string &value = *static_cast<std::string *>(member);
    value = bool_.parse(text, &on) ? (on ? "y" : "n") : text;
    for (const char *word : {"auto", "used"}) {
        value = strcasecmp(text, word) ? value : word;
    }
    return !value.empty();
}

constexpr type proto_info_ = {"<y|n|auto|used|pattern>", parse_proto_info, [](const void *member) {
                                  return *static_cast<const std::string *>(member);
                              }};

constexpr const char *default_interval = "20s";

constexpr type interval_ = {"<time value: number[s|ms|us|ns|m|h], inf, auto>",
                            [](const char *text, void *member) {
                                return time_.parse(
                                    strcasecmp(text, "auto") ? text : default_interval, member);
                            },
                            [](const void *member) { return time_.format(member); }};

// What `all` parses, where `is_allowed` says so.
template <class T>
bool parse_part(const type &all, const char *text, void *member, bool (*is_allowed)(T))
{
    T value = 0;
    bool ok = all.parse(text, &value) && is_allowed(value);
    if (ok) {
        *static_cast<T *>(member) = value;
    }
    return ok;
}

constexpr type positive_ = {"<unsigned integer above 0 | inf>",
                            [](const char *text, void *member) {
                                return parse_part<unsigned>(uint_, text, member,
                                                            [](unsigned v) { return v > 0; });
                            },
                            [](const void *member) { return uint_.format(member); }};

constexpr type percent_ = {"<number from 0 to 100>",
                           [](const char *text, void *member) {
                               return parse_part<double>(double_, text, member,
                                                         [](double v) { return v <= 100; });
                           },
                           [](const void *member) { return double_.format(member); }};

constexpr const char *atomic_names[] = {"cpu", "device", "guess"};

bool parse_atomic_mode(const char *text, void *member)
{
    for (size_t i = 0; i < std::size(atomic_names); ++i) {
        if (!strcasecmp(text, atomic_names[i])) {
            *static_cast<atomic_mode *>(member) = static_cast<atomic_mode>(i);
            return true;
        }
    }
    return false;
}

std::string format_atomic_mode(const void *member)
{
    return atomic_names[static_cast<size_t>(*static_cast<const atomic_mode *>(member))];
}

constexpr type atomic_mode_ = {"<cpu|device|guess>", parse_atomic_mode, format_atomic_mode};

constexpr field fields[] = {
    {"TLS", "all",
     "Transports to use, in any order: all, self, sm, tcp, verbs, or names that ucxlike_info "
     "prints. shm, posix, sysv and cma mean sm, and libfabric's provider shm where sm does not "
     "open; ofi_shm means that provider alone; ib, rc, ud and dc mean verbs. A leading ^ on the "
     "first name takes the listed ones away from all.",
     offsetof(config, tls), &string_list_},
    {"NET_DEVICES", "all", "Network devices to use, by the names that ucxlike_info prints.",
     offsetof(config, net_devices), &string_list_},
    {"LATE_NETWORKS", "auto",
     "Whether networks stay closed until something needs them: a peer that shared memory does not "
     "reach, a listener or a connection to one, or memory that is mapped for peers. auto: where "
     "the "
     "launcher says that all processes of the job run on this node (Hydra, Open MPI, Slurm); y: "
     "always; n: never. A peer elsewhere asks at a port that the worker's address names. Not for "
     "contexts or workers that several threads share, where UCX_TLS or UCX_NET_DEVICES name "
     "networks or UCX_TCP_PORT_RANGE ports, with UCX_STRICT or UCX_RCACHE_ENABLE=y, or without sm.",
     offsetof(config, late_networks), &ternary_},
    {"RNDV_THRESH", "auto",
     "Message size from which the rendezvous protocol is used. auto: from where it is expected to "
     "take no longer, by the speed of the transport, UCX_BCOPY_BW and UCX_RNDV_PERF_DIFF: some 4 "
     "KiB over shared memory, there 105 KiB for memory that ucp_mem_map() did not allocate, 90 KiB "
     "over tcp, 17 KiB over fabrics of 200 Gb/s, more over slower ones; at most 1 MiB, and for "
     "tagged messages not below what goes short. UCX_PROTO_INFO=y prints it. 0: always. inf: "
     "never. A list like intra:8k,inter:inf gives one size for shared memory and self and one for "
     "the other transports.",
     offsetof(config, rndv_thresh), &thresholds_},
    {"ZCOPY_THRESH", "auto",
     "Message size from which messages are sent without a copy, where the transport can. auto: "
     "from where it is expected to take no longer by UCX_BCOPY_BW, some 8 KiB over tcp and 16 KiB "
     "over networks that register memory; over shared memory inf.",
     offsetof(config, zcopy_thresh), &size_},
    {"BCOPY_THRESH", "auto",
     "Message size from which messages are copied into a buffer of the transport. Smaller ones go "
     "short, or without a copy where they are too long for that. inf: none is copied. auto: from "
     "where they are too long to be short.",
     offsetof(config, bcopy_thresh), &size_},
    {"BCOPY_BW", "auto",
     "Speed of a copy from one processor's buffer to another's, which the thresholds that are auto "
     "follow from. auto: 10000MBps.",
     offsetof(config, bcopy_bw), &bandwidth_},
    {"RNDV_PERF_DIFF", "1.000",
     "Percent by which a rendezvous may be expected to take longer than an eager message and is "
     "used all the same, where UCX_RNDV_THRESH is auto.",
     offsetof(config, rndv_perf_diff), &percent_},
    {"RNDV_SCHEME", "auto",
     "How rendezvous moves the data: auto, get_zcopy, get_ppln and rkey_ptr: the receiver reads it "
     "where the transport can; put_zcopy, put_ppln and am: the sender sends it in active messages "
     "(emulated).",
     offsetof(config, scheme), &scheme_},
    {"MAX_RNDV_RAILS", "2",
     "Network devices that one large message may be spread over, 4 at most. A worker opens so many "
     "of the nearest devices of a fabric, or as many as UCX_MAX_RMA_RAILS says, or all that "
     "UCX_NET_DEVICES names.",
     offsetof(config, max_rndv_rails), &uint_},
    {"MAX_EAGER_RAILS", "1", "Accepted for compatibility; has no effect.",
     offsetof(config, max_eager_lanes), &uint_},
    {"MAX_RMA_RAILS", "1",
     "Network devices that one large put or get may be spread over, 4 at most.",
     offsetof(config, max_rma_rails), &uint_},
    {"LISTENER_BACKLOG", "auto",
     "Connection requests that may wait at a listener, and at all listeners of a context from "
     "clients that share a connection. auto: 1024.",
     offsetof(config, listener_backlog), &limit_},
    {"CM_REUSEADDR", "y", "Listen on a port whose last user has just gone.",
     offsetof(config, cm_reuseaddr), &bool_},
    {"KEEPALIVE_INTERVAL", default_interval,
     "How often peers of endpoints with error handling are checked; inf or 0: never; auto: as by "
     "default. Over tcp a host or link that is gone is found some seconds after a check.",
     offsetof(config, keepalive_interval), &interval_},
    {"KEEPALIVE_NUM_EPS", "128", "Endpoints of a worker that are checked at a time, in turn.",
     offsetof(config, keepalive_num_eps), &positive_},
    {"MAX_PEER_EPS", "262144",
     "Endpoints of a worker that peers have made by connecting to its address and that the program "
     "does not have. Further peers wait, some hundreds of them, until there are fewer. Each takes "
     "about 1 KiB.",
     offsetof(config, max_peer_eps), &positive_},
    {"PROTO_INFO", "n",
     "Print which protocol carries which sizes of each operation. y: all, when the first endpoint "
     "with some set of lanes is made; used: those that were used, and how often, when the worker "
     "ends; auto: as y if UCX_LOG_LEVEL is debug or higher; a pattern like *tag*: as y for the "
     "operations whose titles match it.",
     offsetof(config, proto_info), &proto_info_},
    {"PROGRESS_YIELD", "auto",
     "Whether ucp_worker_progress() gives the processor up after some calls that found nothing. "
     "auto: "
     "while the machine has more runnable threads than processors; y: always; n: never. Not for "
     "workers of mode MULTI.",
     offsetof(config, progress_yield), &ternary_},
    {"ARM_POLL_TIME", "50us",
     "How long after an event ucp_worker_arm() returns UCS_ERR_BUSY and ucp_worker_wait() does not "
     "wait, so that the program polls rather than sleeps. It is done less often where waits take "
     "longer, and not while the machine has more runnable threads than processors. 0: never.",
     offsetof(config, arm_poll_time), &time_},
    {"WAKEUP_INTERVAL", "1ms",
     "The longest sleep of a worker of which a device has no descriptor to wait for; each wake-up "
     "costs some microseconds of a processor. 0 or inf: such a worker does not sleep, "
     "ucp_worker_arm() answers busy.",
     offsetof(config, wakeup_interval), &time_},
    {"ATOMIC_MODE", "guess",
     "What executes the atomic operations of a context, one kind for all of them, so that they are "
     "atomic to each other. cpu and guess: the processor, the target's or that of a process which "
     "maps the memory. device is not possible: a warning, with UCX_STRICT an error.",
     offsetof(config, atomics), &atomic_mode_},
    {"RCACHE_ENABLE", "try",
     "Whether buffers stay registered after an operation, where the core needs that and it is "
     "dear. "
     "try: where the kernel tells of memory that is unmapped (userfaultfd); y: fail where it does "
     "not.",
     offsetof(config, rcache_enable), &ternary_},
    {"RCACHE_MAX_SIZE", "inf", "Bytes that stay registered with each device.",
     offsetof(config, rcache_max_size), &size_},
    {"RCACHE_MAX_REGIONS", "inf", "Regions that stay registered with each device.",
     offsetof(config, rcache_max_regions), &ulong_},
    {"UNIFIED_MODE", "n", "Accepted for compatibility; has no effect.",
     offsetof(config, unified_mode), &bool_},
    {"ADDRESS_VERSION", "v1", "Accepted for compatibility; has no effect.",
     offsetof(config, address_version), &address_format_},
    {"STRICT", "n",
     "Fail with a message that names the variable, where otherwise a warning is printed: about "
     "unknown variables, variables of UCX that cannot be honoured, and transports and devices that "
     "do not exist or do not open.",
     offsetof(config, strict), &bool_},
};

} // namespace

const table config_table = {"UCP context", "", fields};

} // namespace ucp

ucp_config::ucp_config(const char *env_prefix, const char *filename) : source(env_prefix, filename)
{
    ucs::config::fill(ucp::config_table, &values, source.prefix(), source.file());
}

extern "C" {

ucs_status_t ucp_config_read(const char *env_prefix, const char *filename, ucp_config_t **config_p)
{
    UCS_CHECK_ARG(config_p, "ucp_config_read: config_p must not be NULL");
    ucs_status_t status = ucs::refuse_other_ucx("ucp_config_read", __builtin_return_address(0));
    if (status != UCS_OK) {
        return status;
    }
    return ucs::guard([&] { *config_p = new ucp_config(env_prefix, filename); });
}

void ucp_config_release(ucp_config_t *config)
{
    delete config;
}

ucs_status_t ucp_config_modify(ucp_config_t *config, const char *name, const char *value)
{
    UCS_CHECK_ARG(config, "ucp_config_modify: config must not be NULL");
    UCS_CHECK_ARG(name, "ucp_config_modify: name must not be NULL");
    UCS_CHECK_ARG(value, "ucp_config_modify: value must not be NULL");
    return ucs::guard([&]() -> ucs_status_t {
        ucs_status_t status = ucs::config::set(ucp::config_table, &config->values, name, value);
        if (status == UCS_ERR_NO_ELEM) {
            // A name of a transport, or one that we do not have: the transports decide.
            config->overrides.emplace_back(name, value);
            return UCS_OK;
        }
        const char *bare = strncmp(name, "UCX_", 4) ? name : name + 4;
        config->values.tls_by_program |= strcmp(bare, "TLS") == 0;
        config->values.net_devices_by_program |= strcmp(bare, "NET_DEVICES") == 0;
        if (status != UCS_OK) {
            ucs_error("ucp_config_modify: value '%s' of %s is not valid", value, name);
        }
        return status;
    });
}

void ucp_config_print(const ucp_config_t *config, FILE *stream, const char *title,
                      ucs_config_print_flags_t print_flags)
{
    if (!config || !stream) {
        ucs_error("ucp_config_print: config and stream must not be NULL");
        return;
    }
    ucs::guard([&] {
        if ((print_flags & UCS_CONFIG_PRINT_HEADER) && title) {
            fprintf(stream, "#\n# %s\n#\n\n", title);
        }
        if (print_flags & (UCS_CONFIG_PRINT_CONFIG | UCS_CONFIG_PRINT_DOC)) {
            unsigned flags =
                print_flags & UCS_CONFIG_PRINT_DOC ? unsigned(ucs::config::print_doc) : 0u;
            const char *prefix = config->source.prefix();
            ucs::config::print(ucp::config_table, &config->values, prefix, flags, stream);
        }
    });
}

} // extern "C"
