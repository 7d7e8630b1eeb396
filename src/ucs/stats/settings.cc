// SPDX-License-Identifier: BSD-3-Clause
// The values of UCX_STATS_*: see settings.h.
#include "ucs/stats/settings.h"

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <strings.h>

namespace ucs::stats {
namespace {

constexpr const char *udp_port = "37873"; // UCX's

bool parse_destination(const char *text, void *member)
{
    using kind = destination::kind;
    destination value;
    if (!strcmp(text, "stdout")) {
        value.where = kind::standard_output;
    } else if (!strcmp(text, "stderr")) {
        value.where = kind::standard_error;
    } else if (!strncmp(text, "file:", 5) && text[5]) {
        value = {kind::file, text + 5, ""};
    } else if (!strncmp(text, "udp:", 4) && text[4] && text[4] != ':') {
        const char *port = strrchr(text + 4, ':');
        value = port ? destination{kind::udp, std::string(text + 4, port), port + 1}
                     : destination{kind::udp, text + 4, udp_port};
        if (value.port.empty() || value.port.find_first_not_of("0123456789") != std::string::npos ||
            atol(value.port.c_str()) > UINT16_MAX) {
            return false;
        }
    } else if (*text) {
        return false;
    }
    *static_cast<destination *>(member) = value;
    return true;
}

std::string format_destination(const void *member)
{
    using kind = destination::kind;
    const auto &value = *static_cast<const destination *>(member);
    switch (value.where) {
    case kind::standard_output:
        return "stdout";
    case kind::standard_error:
        return "stderr";
    case kind::file:
        return "file:" + value.name;
    case kind::udp:
        return "udp:" + value.name + ":" + value.port;
    case kind::none:
        break;
    }
    return "";
}

constexpr config::type destination_ = {"<stdout|stderr|file:path|udp:host[:port]>",
                                       parse_destination, format_destination};

struct signal_name {
    const char *name;
    int number;
};

// Those that end nothing by being handled.
constexpr signal_name signal_names[] = {
    {"HUP", SIGHUP},   {"INT", SIGINT},       {"QUIT", SIGQUIT}, {"USR1", SIGUSR1},
    {"USR2", SIGUSR2}, {"ALRM", SIGALRM},     {"TERM", SIGTERM}, {"CONT", SIGCONT},
    {"URG", SIGURG},   {"VTALRM", SIGVTALRM}, {"PROF", SIGPROF}, {"WINCH", SIGWINCH},
    {"IO", SIGIO},     {"PWR", SIGPWR}};

// 0: no signal for this.
int signal_number(const char *text)
{
    const char *bare = strncasecmp(text, "SIG", 3) ? text : text + 3;
    char *end;
    long number = strtol(text, &end, 10);
    for (const signal_name &s : signal_names) {
        if (!strcasecmp(bare, s.name) || (end != text && !*end && number == s.number)) {
            return s.number;
        }
    }
    bool real_time = end != text && !*end && number >= SIGRTMIN && number <= SIGRTMAX;
    return real_time ? static_cast<int>(number) : 0;
}

bool parse_trigger(const char *text, void *member)
{
    using kind = trigger::kind;
    trigger value;
    if (!strncmp(text, "signal:", 7)) {
        value = {kind::signal, signal_number(text + 7), 0};
        if (value.signal == 0) {
            return false;
        }
    } else if (!strncmp(text, "timer:", 6)) {
        char *end;
        value = {kind::timer, 0, strtod(text + 6, &end)};
        bool plain = end != text + 6 && !*end; // seconds, as UCX has it
        if (!plain && !config::time_.parse(text + 6, &value.seconds)) {
            return false;
        }
        if (!(value.seconds >= 1e-3 && value.seconds <= 1e9)) {
            return false;
        }
    } else if (strcmp(text, "exit")) {
        return false;
    }
    *static_cast<trigger *>(member) = value;
    return true;
}

std::string format_trigger(const void *member)
{
    const auto &value = *static_cast<const trigger *>(member);
    switch (value.when) {
    case trigger::kind::signal:
        return "signal:" + std::to_string(value.signal);
    case trigger::kind::timer:
        return "timer:" + config::time_.format(&value.seconds);
    case trigger::kind::exit:
        break;
    }
    return "exit";
}

constexpr config::type trigger_ = {"<exit|signal:name or number|timer:interval>", parse_trigger,
                                   format_trigger};

struct form_name {
    const char *name;
    form value;
};
constexpr form_name form_names[] = {{"full", form::full}, {"text", form::full},
                                    {"agg", form::agg},   {"summary", form::summary},
                                    {"json", form::json}, {"prometheus", form::prometheus}};

bool parse_form(const char *text, void *member)
{
    for (const form_name &f : form_names) {
        if (!strcasecmp(text, f.name)) {
            *static_cast<form *>(member) = f.value;
            return true;
        }
    }
    return false;
}

std::string format_form(const void *member)
{
    for (const form_name &f : form_names) {
        if (f.value == *static_cast<const form *>(member)) {
            return f.name;
        }
    }
    return "";
}

constexpr config::type form_ = {"<full|text|agg|summary|json|prometheus>", parse_form, format_form};

constexpr config::field fields[] = {
    {"DEST", "",
     "Count what goes over each lane, and report it there. Nothing is counted if it is empty. In a "
     "path, %h is the name of the host and %p the process id; the file has the newest report. To "
     "udp goes the same text, in datagrams of whole lines; without a port to 37873.",
     offsetof(settings, dest), &destination_},
    {"TRIGGER", "exit",
     "When the report is made: as the process ends, on a signal, or again and again. An interval "
     "without a unit is in seconds.",
     offsetof(settings, trigger), &trigger_},
    {"FORMAT", "full",
     "How the report looks. full or text: a table for each lane; agg: the lanes of an interface "
     "are added up; summary: the interfaces of a device, too; json and prometheus: for programs, "
     "with each lane.",
     offsetof(settings, format), &form_},
    {"FILTER", "*",
     "Report only protocols whose names match one of these patterns, which are those of a shell.",
     offsetof(settings, patterns), &config::string_list_},
};

} // namespace

const config::table config_table = {"Statistics", "STATS_", fields};

const settings &the_settings()
{
    // Never destroyed: the report is made while the process ends.
    static const settings &read = *[] {
        auto values = std::make_unique<settings>();
        config::fill(config_table, values.get(), nullptr);
        return values.release();
    }();
    return read;
}

bool wanted()
{
    return the_settings().dest.where != destination::kind::none;
}

} // namespace ucs::stats
