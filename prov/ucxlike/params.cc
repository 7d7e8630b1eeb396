// SPDX-License-Identifier: BSD-3-Clause
//
// The administrator's parameters, FI_UCXLIKE_*: one row each, reading them, and what is said when
// one does not mean what it seems to. libfabric itself reads a number by atoi().
#include "prov/ucxlike/params.h"

#include "prov/ucxlike/prov.h"

#include "ucs/config/environment.h"
#include "ucs/log.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

extern char **environ;

namespace ucxlike {

namespace {

constexpr const char *prefix = "FI_UCXLIKE_";

struct param {
    const char *name;
    const char *variable;
    fi_param_type type;
    const char *help;
};

constexpr param params[] = {
    {"iface", "FI_UCXLIKE_IFACE", FI_PARAM_STRING,
     "Network interface or address that endpoints get when the application names none (default: "
     "the one that routes to the peer, else the default route's)"},
    {"tls", "FI_UCXLIKE_TLS", FI_PARAM_STRING,
     "Transports to use, as UCX_TLS (default: all that work)"},
    {"net_devices", "FI_UCXLIKE_NET_DEVICES", FI_PARAM_STRING,
     "Network devices to use, as UCX_NET_DEVICES (default: all)"},
    {"strict", "FI_UCXLIKE_STRICT", FI_PARAM_BOOL,
     "Fail instead of falling back when the interface or a transport that was chosen is not there, "
     "or a variable cannot be honoured (default: false)"},
    {"tx_size", "FI_UCXLIKE_TX_SIZE", FI_PARAM_INT,
     "Operations an endpoint may have in flight before -FI_EAGAIN (default: 1024)"},
    {"backlog", "FI_UCXLIKE_BACKLOG", FI_PARAM_INT,
     "Connection requests that may wait for an answer at a passive endpoint (default: 1024)"},
    {"close_timeout", "FI_UCXLIKE_CLOSE_TIMEOUT", FI_PARAM_INT,
     "Milliseconds that closing an endpoint may wait for its peer (default: 500)"},
    {"linger", "FI_UCXLIKE_LINGER", FI_PARAM_INT,
     "Milliseconds that closing waits for a silent peer to take what was sent completely (default: "
     "10000)"},
    {"peer_timeout", "FI_UCXLIKE_PEER_TIMEOUT", FI_PARAM_INT,
     "Milliseconds after which a connection to an RDM endpoint ends whose peer has not said who it "
     "is (default: 60000)"},
};
static_assert(limit::tx_size == 1024 && limit::backlog == 1024 && limit::peer_timeout == 60000);

const param &row_of(const char *name)
{
    return *std::find_if(std::begin(params), std::end(params),
                         [&](const param &p) { return strcmp(p.name, name) == 0; });
}

bool is_number(const char *text, int *value)
{
    char *end;
    errno = 0;
    long number = strtol(text, &end, 0);
    *value = static_cast<int>(number);
    return *text && !*end && errno == 0 && number >= 0 && number <= INT_MAX;
}

// What is wrong with a variable that begins with our prefix, or "".
std::string complaint(const std::string &name, const char *value)
{
    auto same = [&](const param &p) { return name == p.variable; };
    auto found = std::find_if(std::begin(params), std::end(params), same);
    int number;
    if (found == std::end(params)) {
        std::vector<std::string> known;
        for (const param &p : params) {
            known.push_back(p.variable);
        }
        std::string hint = ucs::config::nearest(name, known);
        return name + ": no such parameter" + (hint.empty() ? "" : " (did you mean " + hint + "?)");
    }
    if (found->type == FI_PARAM_INT && !is_number(value, &number)) {
        return name + ": \"" + value + "\" is not a number; the default is used";
    }
    bool flag;
    if (found->type == FI_PARAM_BOOL && !ucs::config::bool_.parse(value, &flag)) {
        return name + ": \"" + value + "\" is neither true nor false";
    }
    return {};
}

std::vector<std::string> complaints()
{
    std::vector<std::string> texts;
    for (char **entry = environ; entry && *entry; ++entry) {
        std::string name(*entry, strcspn(*entry, "="));
        if (name.rfind(prefix, 0) != 0) {
            continue;
        }
        const char *value = *entry + name.size() + ((*entry)[name.size()] == '=');
        if (std::string text = complaint(name, value); !text.empty()) {
            texts.push_back(text);
        }
    }
    return texts;
}

fi_log_level level_of(ucs::log::level level)
{
    switch (level) {
    case ucs::log::level::fatal:
    case ucs::log::level::error:
    case ucs::log::level::warn:
        return FI_LOG_WARN;
    case ucs::log::level::diag:
    case ucs::log::level::info:
        return FI_LOG_INFO;
    default:
        return FI_LOG_DEBUG;
    }
}

// The provider sets the engine's settings by ucp_config_modify(), the user by variables.
std::string by_variables(std::string text)
{
    constexpr std::string_view by_program = " of ucp_config_modify()";
    if (size_t end = text.find(by_program); end != std::string::npos) {
        text.erase(end, by_program.size());
        text.insert(text.find_last_of(' ', end - 1) + 1, prefix);
    }
    return text;
}

void to_fi_log(ucs::log::level level, const char *file, int line, const char *text)
{
    fi_log_level at = level_of(level);
    if (fi_log_enabled(&provider, at, FI_LOG_CORE)) {
        fi_log(&provider, at, FI_LOG_CORE, file, line, "%s\n", by_variables(text).c_str());
    }
}

// The engine's lines become the provider's: FI_LOG_LEVEL, FI_LOG_PROV and FI_LOG_SUBSYS apply.
void hand_over_log()
{
    using ucs::log::level;
    ucs::log::set_sink(to_fi_log);
    bool debug = fi_log_enabled(&provider, FI_LOG_DEBUG, FI_LOG_CORE) != 0;
    bool info = fi_log_enabled(&provider, FI_LOG_INFO, FI_LOG_CORE) != 0;
    ucs::log::set_level(debug ? level::debug : info ? level::info : level::warn);
}

} // namespace

void define_params()
{
    for (const param &p : params) {
        fi_param_define(&provider, p.name, p.type, "%s", p.help);
    }
}

int check_params()
{
    static std::once_flag once;
    bool strict = param_bool("strict");
    std::vector<std::string> texts = complaints();
    std::call_once(once, [&] {
        hand_over_log();
        for (const std::string &text : texts) {
            PROV_WARN(CORE, "%s%s\n", text.c_str(), strict ? ", and FI_UCXLIKE_STRICT is set" : "");
        }
    });
    return strict && !texts.empty() ? -FI_ENODATA : 0;
}

std::string param_string(const char *name)
{
    char *value = nullptr;
    return fi_param_get_str(&provider, name, &value) == 0 && value ? value : "";
}

int param_int(const char *name, int fallback)
{
    const char *text = getenv(row_of(name).variable);
    int value;
    return text && is_number(text, &value) ? value : fallback;
}

bool param_bool(const char *name)
{
    int value = 0;
    fi_param_get_bool(&provider, name, &value);
    return value != 0;
}

} // namespace ucxlike
