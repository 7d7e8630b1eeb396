// SPDX-License-Identifier: BSD-3-Clause
// Parsers and printers of the value types: see config.h.
#include "ucs/config/config.h"

#include <cerrno>
#include <climits>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <strings.h>

namespace ucs::config {
namespace {

template <class T>
T &as(void *member)
{
    return *static_cast<T *>(member);
}

template <class T>
const T &as(const void *member)
{
    return *static_cast<const T *>(member);
}

bool parse_yes_no(const char *text, bool *value)
{
    for (const char *yes : {"y", "yes", "on", "1", "true"}) {
        if (!strcasecmp(text, yes)) {
            *value = true;
            return true;
        }
    }
    for (const char *no : {"n", "no", "off", "0", "false"}) {
        if (!strcasecmp(text, no)) {
            *value = false;
            return true;
        }
    }
    return false;
}

bool parse_long(const char *text, long least, long most, long *value)
{
    char *end;
    errno = 0;
    *value = strtol(text, &end, 0);
    return *text && !*end && errno == 0 && *value >= least && *value <= most;
}

// A number and what follows it.
bool parse_number(const char *text, double *value, const char **unit)
{
    char *end;
    errno = 0;
    *value = strtod(text, &end);
    *unit = end;
    return end != text && errno == 0 && std::isfinite(*value) && *value >= 0;
}

bool parse_ulong(const char *text, void *member)
{
    if (!strcasecmp(text, "inf")) {
        as<size_t>(member) = SIZE_MAX;
        return true;
    }
    char *end;
    errno = 0;
    unsigned long value = strtoul(text, &end, 0);
    if (!*text || *text == '-' || *end || errno) {
        return false;
    }
    as<size_t>(member) = value;
    return true;
}

bool parse_size(const char *text, void *member)
{
    if (!strcasecmp(text, "auto")) {
        as<size_t>(member) = memunits_auto;
        return true;
    }
    if (!strcasecmp(text, "inf") || !strcmp(text, "-1")) {
        as<size_t>(member) = memunits_inf;
        return true;
    }
    double value;
    const char *unit;
    if (!parse_number(text, &value, &unit)) {
        return false;
    }
    static const char *const suffixes = "bkmgt";
    if (*unit) {
        const char *at = strchr(suffixes, tolower(*unit));
        if (!at || (unit[1] && strcasecmp(unit + 1, "b"))) {
            return false;
        }
        value *= std::pow(1024.0, static_cast<double>(at - suffixes));
    }
    if (value >= static_cast<double>(memunits_auto)) {
        return false;
    }
    as<size_t>(member) = static_cast<size_t>(value);
    return true;
}

std::string format_size(const void *member)
{
    size_t value = as<size_t>(member);
    if (value == memunits_inf) {
        return "inf";
    }
    if (value == memunits_auto) {
        return "auto";
    }
    static const char *const units[] = {"", "K", "M", "G", "T"};
    size_t unit = 0;
    while (value && value % 1024 == 0 && unit + 1 < std::size(units)) {
        value /= 1024;
        ++unit;
    }
    return std::to_string(value) + units[unit];
}

bool parse_time(const char *text, void *member)
{
    if (!strcasecmp(text, "inf")) {
        as<double>(member) = INFINITY;
        return true;
    }
    double value;
    const char *unit;
    if (!parse_number(text, &value, &unit)) {
        return false;
    }
    static const struct {
        const char *name;
        double seconds;
    } units[] = {{"", 1},      {"s", 1},  {"ms", 1e-3}, {"us", 1e-6},
                 {"ns", 1e-9}, {"m", 60}, {"h", 3600}};
    for (const auto &u : units) {
        if (!strcmp(unit, u.name)) {
            as<double>(member) = value * u.seconds;
            return true;
        }
    }
    return false;
}

std::string format_double(double value, const char *suffix)
{
    if (std::isinf(value)) {
        return "inf";
    }
    char text[64];
    snprintf(text, sizeof(text), "%.6g%s", value, suffix);
    return text;
}

// UCX's form: a number, K, M, G or T (of 1024), B for bytes or b for bits, and ps, /s or s.
bool parse_bandwidth(const char *text, void *member)
{
    if (!strcasecmp(text, "auto")) {
        as<double>(member) = bandwidth_auto;
        return true;
    }
    double value;
    const char *unit;
    if (!parse_number(text, &value, &unit) || value <= 0) {
        return false;
    }
    static const char *const prefixes = "KMGT";
    if (const char *at = *unit ? strchr(prefixes, toupper(*unit)) : nullptr) {
        value *= std::pow(1024.0, static_cast<double>(at - prefixes + 1));
        ++unit;
    }
    bool bits = *unit == 'b';
    if (!bits && *unit != 'B') {
        return false;
    }
    ++unit;
    if (*unit && strcmp(unit, "ps") && strcmp(unit, "/s") && strcmp(unit, "s")) {
        return false;
    }
    as<double>(member) = bits ? value / 8 : value;
    return true;
}

std::string format_bandwidth(const void *member)
{
    double value = as<double>(member);
    if (value == bandwidth_auto) {
        return "auto";
    }
    char text[64];
    snprintf(text, sizeof(text), "%.2fMBps", value / (1024 * 1024));
    return text;
}

bool parse_list(const char *text, void *member)
{
    auto &list = as<std::vector<std::string>>(member);
    list.clear();
    for (const char *p = text; *p;) {
        size_t length = strcspn(p, ",");
        if (length) {
            list.emplace_back(p, length);
        }
        p += length + (p[length] == ',');
    }
    return true;
}

std::string format_list(const void *member)
{
    std::string text;
    for (const std::string &item : as<std::vector<std::string>>(member)) {
        text += (text.empty() ? "" : ",") + item;
    }
    return text;
}

bool parse_ternary(const char *text, void *member)
{
    bool yes;
    if (!strcasecmp(text, "try") || !strcasecmp(text, "maybe")) {
        as<ternary>(member) = ternary::try_;
    } else if (!strcasecmp(text, "auto")) {
        as<ternary>(member) = ternary::auto_;
    } else if (parse_yes_no(text, &yes)) {
        as<ternary>(member) = yes ? ternary::yes : ternary::no;
    } else {
        return false;
    }
    return true;
}

} // namespace

const type bool_ = {"<y|n>",
                    [](const char *text, void *m) { return parse_yes_no(text, &as<bool>(m)); },
                    [](const void *m) { return std::string(as<bool>(m) ? "y" : "n"); }};

const type int_ = {"<integer>",
                   [](const char *text, void *m) {
                       long value;
                       bool ok = parse_long(text, INT_MIN, INT_MAX, &value);
                       if (ok) {
                           as<int>(m) = static_cast<int>(value);
                       }
                       return ok;
                   },
                   [](const void *m) { return std::to_string(as<int>(m)); }};

const type uint_ = {"<unsigned integer | inf>",
                    [](const char *text, void *m) {
                        if (!strcasecmp(text, "inf")) {
                            as<unsigned>(m) = UINT_MAX;
                            return true;
                        }
                        long value;
                        bool ok = parse_long(text, 0, UINT_MAX, &value);
                        if (ok) {
                            as<unsigned>(m) = static_cast<unsigned>(value);
                        }
                        return ok;
                    },
                    [](const void *m) {
                        return as<unsigned>(m) == UINT_MAX ? "inf"
                                                           : std::to_string(as<unsigned>(m));
                    }};

const type limit_ = {
    "<unsigned integer, inf, auto>",
    [](const char *text, void *m) {
        if (!strcasecmp(text, "inf") || !strcasecmp(text, "auto")) {
            as<unsigned>(m) = strcasecmp(text, "inf") ? 0 : UINT_MAX;
            return true;
        }
        return uint_.parse(text, m);
    },
    [](const void *m) { return as<unsigned>(m) == UINT_MAX ? "inf" : uint_.format(m); }};

const type ulong_ = {"<unsigned integer | inf>", parse_ulong, [](const void *m) {
                         return as<size_t>(m) == SIZE_MAX ? "inf" : std::to_string(as<size_t>(m));
                     }};

const type size_ = {"<memory units: number[k|m|g], inf, auto>", parse_size, format_size};

const type time_ = {"<time value: number[s|ms|us|ns|m|h], inf>", parse_time,
                    [](const void *m) { return format_double(as<double>(m), "s"); }};

const type bandwidth_ = {"<bandwidth value: number[T|G|M|K]B|b[[p|/]s], auto>", parse_bandwidth,
                         format_bandwidth};

const type double_ = {"<number>",
                      [](const char *text, void *m) {
                          double value;
                          const char *unit;
                          bool ok = parse_number(text, &value, &unit) && !*unit;
                          if (ok) {
                              as<double>(m) = value;
                          }
                          return ok;
                      },
                      [](const void *m) { return format_double(as<double>(m), ""); }};

const type string_ = {"<string>",
                      [](const char *text, void *m) {
                          as<std::string>(m) = text;
                          return true;
                      },
                      [](const void *m) { return as<std::string>(m); }};

const type string_list_ = {"<comma-separated list>", parse_list, format_list};

const type ternary_ = {"<y|n|try|auto>", parse_ternary, [](const void *m) {
                           switch (as<ternary>(m)) {
                           case ternary::no:
                               return std::string("n");
                           case ternary::yes:
                               return std::string("y");
                           case ternary::try_:
                               return std::string("try");
                           case ternary::auto_:
                               break;
                           }
                           return std::string("auto");
                       }};

} // namespace ucs::config
