// SPDX-License-Identifier: BSD-3-Clause
// Reports about the environment: see environment.h.
#include "ucs/config/environment.h"

#include "ucs/config/ucx_variables.h"
#include "ucs/error.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <strings.h>

extern char **environ;

namespace ucs::config {
namespace {

constexpr const char *base_prefix = "UCX_";

struct explanation {
    reason why;
    const char *text;
};

constexpr explanation explanations[] = {
    {reason::served, "it is honoured"},
    {reason::mlx5, "devices are driven through libfabric, not through mlx5's own interface"},
    {reason::verbs, "verbs devices are driven by libfabric, which has FI_VERBS_* variables"},
    {reason::rdmacm, "connections over verbs are made by libfabric"},
    {reason::own_sm,
     "shared memory is the transports sm and shm, with UCX_SM_* and UCX_SHM_* variables"},
    {reason::one_size, "the transport self has no such choice"},
    {reason::core_tcp, "tcp has no buffers of this kind; see UCX_TCP_SEG_SIZE and UCX_TCP_BATCH"},
    {reason::core_socket, "the sockets of tcp belong to libfabric; the system's settings apply"},
    {reason::cm_choice, "tcp's connection manager is tried first, then the others"},
    {reason::log_form, "the log has UCX_LOG_LEVEL and UCX_LOG_FILE*, and no such choice"},
    {reason::modules, "there are no modules to load"},
    {reason::hooks, "no memory call is intercepted"},
    {reason::devices, "memory of accelerators is not served"},
    {reason::device_list, "each of these transports has one device; see UCX_TLS"},
    {reason::cache, "the registration cache has UCX_RCACHE_ENABLE, UCX_RCACHE_MAX_SIZE and "
                    "UCX_RCACHE_MAX_REGIONS"},
    {reason::progress, "progress has no such choice"},
    {reason::signals, "no signal is handled, and errors end no process"},
    {reason::profile, "there is no profile, memory tracking or virtual file system"},
    {reason::hw_tags, "tags are not matched in hardware"},
    {reason::rndv, "a rendezvous is one transfer, without fragments of its own"},
    {reason::protocols, "the protocols have no such choice"},
    {reason::wire, "addresses and messages have one format"},
    {reason::cost_model, "transports are ranked by class and distance, not by a cost model"},
    {reason::copy, "the C library copies memory"},
    {reason::eager_rails, "eager messages use one device"},
    {reason::other_name, "it is an older name; UCX_MAX_RMA_RAILS is honoured"},
};

struct notes {
    std::mutex mutex;
    std::vector<std::string> texts;
    std::set<std::string> said;
};

notes &all_notes()
{
    static notes n;
    return n;
}

size_t edit_distance(const std::string &a, const std::string &b)
{
    std::vector<size_t> row(b.size() + 1);
    for (size_t j = 0; j <= b.size(); ++j) {
        row[j] = j;
    }
    for (size_t i = 1; i <= a.size(); ++i) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b.size(); ++j) {
            size_t above = row[j];
            row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
            diagonal = above;
        }
    }
    return row[b.size()];
}

const ucx_variable *find_ucx_variable(const std::string &name)
{
    const ucx_variable *found = nullptr;
    for_each_ucx_variable([&](const ucx_variable &v) {
        if (name.compare(strlen(base_prefix), std::string::npos, v.name) == 0) {
            found = &v;
        }
    });
    return found;
}

finding unknown(const std::string &name)
{
    std::vector<std::string> known = known_variables();
    for_each_ucx_variable([&](const ucx_variable &v) {
        if (v.means == standing::honoured) {
            known.push_back(std::string(base_prefix) + v.name);
        }
    });
    std::string hint = nearest(name, known);
    return {"unknown variable " + name + (hint.empty() ? "" : " (did you mean " + hint + "?)") +
                "; UCX_WARN_UNUSED_ENV_VARS=n ends this warning",
            true};
}

bool warns_of_unknown()
{
    const char *wanted = getenv("UCX_WARN_UNUSED_ENV_VARS");
    bool warn = true;
    return !wanted || !bool_.parse(wanted, &warn) || warn;
}

// The variables that are read without a table, where a value that is not valid cannot fail a call.
bool is_valid(const std::string &name, const char *value)
{
    log::level level;
    bool flag;
    size_t size;
    unsigned number;
    if (name == "UCX_LOG_LEVEL") {
        return log::parse_level(value, &level);
    }
    if (name == "UCX_LOG_FILE_SIZE") {
        return size_.parse(value, &size);
    }
    if (name == "UCX_LOG_FILE_ROTATE") {
        return uint_.parse(value, &number);
    }
    return name != "UCX_WARN_UNUSED_ENV_VARS" || bool_.parse(value, &flag);
}

// What is said of one entry of the environment; an empty text: nothing.
finding check_variable(const std::string &name, const char *value, bool warn_unknown)
{
    const ucx_variable *v = find_ucx_variable(name);
    if (v && v->means != standing::honoured) {
        if (strcasecmp(value, v->deflt) == 0) {
            return {};
        }
        return {name + "=" + value + " has no effect: " + text_of(v->why),
                v->means == standing::misleading};
    }
    if (!is_valid(name, value)) {
        return {name + "=" + value + " is not valid and has no effect", true};
    }
    if (v || is_known(name) || !warn_unknown) {
        return {};
    }
    return unknown(name);
}

} // namespace

const char *text_of(reason why) noexcept
{
    auto same = [&](const explanation &e) { return e.why == why; };
    return std::find_if(std::begin(explanations), std::end(explanations), same)->text;
}

std::string nearest(const std::string &name, const std::vector<std::string> &known)
{
    std::string best;
    size_t best_distance = 4;
    for (const std::string &candidate : known) {
        size_t distance = edit_distance(name, candidate);
        if (distance < best_distance) {
            best_distance = distance;
            best = candidate;
        }
    }
    return best;
}

std::vector<finding> check_environment()
{
    std::vector<finding> found;
    bool warn_unknown = warns_of_unknown();
    for (char **entry = environ; entry && *entry; ++entry) {
        size_t length = strcspn(*entry, "=");
        std::string name(*entry, length);
        if (name.rfind(base_prefix, 0) != 0) {
            continue;
        }
        const char *value = *entry + length + ((*entry)[length] == '=');
        finding f = check_variable(name, value, warn_unknown);
        if (!f.text.empty()) {
            found.push_back(f);
        }
    }
    return found;
}

void note_environment(std::string text)
{
    notes &n = all_notes();
    std::lock_guard lock(n.mutex);
    n.texts.push_back(std::move(text));
}

void report_environment(bool strict)
{
    std::vector<finding> found = check_environment();
    notes &n = all_notes();
    std::lock_guard lock(n.mutex);
    for (const std::string &text : n.texts) {
        found.push_back({text, true});
    }
    for (const finding &f : found) {
        if (strict && f.misleading) {
            throw error(UCS_ERR_INVALID_PARAM, "%s (UCX_STRICT)", f.text.c_str());
        }
        if (!n.said.insert(f.text).second) {
            continue;
        }
        if (f.misleading) {
            ucs_warn("%s", f.text.c_str());
        } else {
            ucs_info("%s", f.text.c_str());
        }
    }
}

} // namespace ucs::config
