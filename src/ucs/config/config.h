// SPDX-License-Identifier: BSD-3-Clause
// Configuration as tables: one constexpr row per variable says its name, default, meaning, type and
// the member that holds it. A struct is filled once, at creation: defaults, then the ucx.conf
// files, then the caller's file, then the environment, where PREFIX_UCX_NAME (the caller's prefix)
// wins over UCX_NAME.
// Listings and the manual page come from the same tables.
#pragma once

#include <ucs/type/status.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

namespace ucs::config {

// How the text of a value becomes a member and back.
struct type {
    const char *syntax; // for the documentation: "<time value>"
    bool (*parse)(const char *text, void *member);
    std::string (*format)(const void *member);
};

struct field {
    const char *name;  // without UCX_ and without the table's prefix
    const char *deflt; // must parse
    const char *doc;
    size_t offset;
    const type *value;
};

struct table {
    const char *title;  // "tcp interface"
    const char *prefix; // "TCP_" or ""
    std::span<const field> fields;
    // A second name of every variable: "UCT_" for UCT_NAME, UCT_PREFIX_NAME. Wins over UCX_NAME and
    // PREFIX_UCX_NAME.
    const char *alias = nullptr;
};

constexpr size_t memunits_inf = SIZE_MAX;
constexpr size_t memunits_auto = SIZE_MAX - 1;
constexpr double bandwidth_auto = 0;
enum class ternary : int { no, yes, try_, auto_ };

extern const type bool_;        // bool: y/n, yes/no, on/off, 1/0
extern const type int_;         // int
extern const type uint_;        // unsigned: plain number, or "inf" for UINT_MAX
extern const type ulong_;       // size_t: plain number or "inf"
extern const type size_;        // size_t bytes: 8192, 8k, 1m, 2g, inf or -1, auto
extern const type time_;        // double seconds: 10us, 10ms, 1s, 2m, inf
extern const type bandwidth_;   // double bytes per second: 10000MBps, 10Gb/s, auto
extern const type double_;      // double
extern const type string_;      // std::string
extern const type string_list_; // std::vector<std::string>, comma separated
extern const type ternary_;     // ternary: y, n, try, auto
extern const type limit_;       // unsigned: number, inf (UINT_MAX), auto (0)

// Sets every member from its default, the files and the environment. env_prefix: nullptr, or "MPI"
// for MPI_UCX_*. file: of UCX_NAME=value lines, or nullptr; one that does not exist is ignored.
// Throws ucs::error(INVALID_PARAM) naming the variable whose value does not parse.
void fill(const table &t, void *config, const char *env_prefix, const char *file = nullptr);

// One member by name (with or without UCX_, with the table's prefix). UCS_ERR_NO_ELEM: no such
// name; UCS_ERR_INVALID_PARAM: the value does not parse.
ucs_status_t set(const table &t, void *config, const char *name, const char *value);
ucs_status_t get(const table &t, const void *config, const char *name, std::string *value_p);

enum print_flags : unsigned {
    print_header = 1, // "# title" above
    print_doc = 2,    // the meaning as comment lines above each variable
};
// UCX_NAME=value lines; without flags nothing but such lines.
void print(const table &t, const void *config, const char *env_prefix, unsigned flags,
           FILE *stream);

// The variables that count as known: those of every table that was filled or named with know(), and
// those that are read without a table. environment.h reports the others.
void know(const table &t);
bool is_known(const std::string &name);
std::vector<std::string> known_variables();

} // namespace ucs::config
