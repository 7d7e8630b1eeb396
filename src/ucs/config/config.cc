// SPDX-License-Identifier: BSD-3-Clause
// Filling and listing of configuration tables: see config.h.
#include "ucs/config/config.h"

#include "ucs/config/config_origin.h"
#include "ucs/config/config_section.h"
#include "ucs/error.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <set>

namespace ucs::config {
namespace {

constexpr const char *base_prefix = "UCX_";

std::mutex known_mutex;

// Variables of the tables known so far, and those that are read without a table.
std::set<std::string> &known_names()
{
    static std::set<std::string> names = {"UCX_LOG_LEVEL",       "UCX_LOG_FILE",
                                          "UCX_LOG_FILE_FILTER", "UCX_LOG_FILE_SIZE",
                                          "UCX_LOG_FILE_ROTATE", "UCX_WARN_UNUSED_ENV_VARS",
                                          "UCX_CONFIG_DIR",      "UCX_TCP_CORE"};
    return names;
}

void *member(void *config, const field &f)
{
    return static_cast<char *>(config) + f.offset;
}

const void *member(const void *config, const field &f)
{
    return static_cast<const char *>(config) + f.offset;
}

std::string variable(const table &t, const field &f, const char *env_prefix)
{
    std::string name = env_prefix && *env_prefix ? std::string(env_prefix) + "_" : "";
    return name + base_prefix + t.prefix + f.name;
}

std::string trimmed(const std::string &text)
{
    size_t first = text.find_first_not_of(" \t\r");
    return first == std::string::npos
               ? ""
               : text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

struct file_value {
    std::string text, path;
};
using values_t = std::map<std::string, file_value>;

void read_file(const std::string &path, values_t &values)
{
    std::ifstream file(path);
    section where;
    for (std::string line; std::getline(file, line);) {
        line = trimmed(line);
        size_t equal = line.find('=');
        if (line.empty() || line[0] == '#') {
            continue;
        }
        if (line[0] == '[') {
            where.begin();
            continue;
        }
        if (equal == std::string::npos) {
            ucs_warn("%s: '%s' is not of the form NAME=VALUE", path.c_str(), line.c_str());
            continue;
        }
        std::string name = trimmed(line.substr(0, equal)), value = trimmed(line.substr(equal + 1));
        if (!where.condition(name, value) && where.applies()) {
            values[name] = {value, path};
        }
    }
}

// Later files win: system, home, UCX_CONFIG_DIR, current directory.
const values_t &file_values()
{
    static const values_t values = [] {
        values_t found;
        read_file("/etc/ucx/ucx.conf", found);
        for (const char *dir :
             {getenv("HOME"), getenv("UCX_CONFIG_DIR"), static_cast<char *>(nullptr)}) {
            if (dir) {
                read_file(std::string(dir) + "/ucx.conf", found);
            }
        }
        read_file("ucx.conf", found);
        return found;
    }();
    return values;
}

void parse_or_throw(const std::string &name, const field &f, const char *text, void *config)
{
    if (!f.value->parse(text, member(config, f))) {
        throw error(UCS_ERR_INVALID_PARAM, "%s='%s' is not valid: expected %s", name.c_str(), text,
                    f.value->syntax);
    }
}

// The names of a variable in the environment, the one that wins first.
std::vector<std::string> variables(const table &t, const field &f, const char *env_prefix)
{
    std::vector<std::string> names;
    bool prefixed = env_prefix && *env_prefix;
    if (prefixed && t.alias) {
        names.push_back(std::string(t.alias) + env_prefix + "_" + t.prefix + f.name);
    }
    if (prefixed) {
        names.push_back(variable(t, f, env_prefix));
    }
    if (t.alias) {
        names.push_back(std::string(t.alias) + t.prefix + f.name);
    }
    names.push_back(variable(t, f, nullptr));
    return names;
}

void fill_field(const table &t, const field &f, void *config, const char *env_prefix,
                const values_t &own_file)
{
    std::string plain = variable(t, f, nullptr);
    parse_or_throw(plain, f, f.deflt, config);
    for (const values_t *file : {&file_values(), &own_file}) {
        auto found = file->find(plain);
        if (found != file->end()) {
            parse_or_throw(plain, f, found->second.text.c_str(), config);
        }
    }
    for (const std::string &name : variables(t, f, env_prefix)) {
        if (const char *value = getenv(name.c_str())) {
            parse_or_throw(name, f, value, config);
            break;
        }
    }
}

const field *find(const table &t, const char *name)
{
    size_t base = strlen(base_prefix);
    if (!strncmp(name, base_prefix, base)) {
        name += base;
    }
    size_t prefix = strlen(t.prefix);
    if (strncmp(name, t.prefix, prefix)) {
        return nullptr;
    }
    for (const field &f : t.fields) {
        if (!strcmp(name + prefix, f.name)) {
            return &f;
        }
    }
    return nullptr;
}

} // namespace

void fill(const table &t, void *config, const char *env_prefix, const char *file)
{
    know(t);
    values_t own_file;
    if (file) {
        read_file(file, own_file);
    }
    for (const field &f : t.fields) {
        fill_field(t, f, config, env_prefix, own_file);
    }
}

origin origin_of(const table &t, const field &f)
{
    for (const std::string &name : variables(t, f, nullptr)) {
        if (getenv(name.c_str())) {
            return {origin::kind::environment, name};
        }
    }
    auto found = file_values().find(variable(t, f, nullptr));
    return found == file_values().end() ? origin{} : origin{origin::kind::file, found->second.path};
}

ucs_status_t set(const table &t, void *config, const char *name, const char *value)
{
    const field *f = find(t, name);
    if (!f) {
        return UCS_ERR_NO_ELEM;
    }
    return f->value->parse(value, member(config, *f)) ? UCS_OK : UCS_ERR_INVALID_PARAM;
}

ucs_status_t get(const table &t, const void *config, const char *name, std::string *value_p)
{
    const field *f = find(t, name);
    if (!f) {
        return UCS_ERR_NO_ELEM;
    }
    *value_p = f->value->format(member(config, *f));
    return UCS_OK;
}

void print(const table &t, const void *config, const char *env_prefix, unsigned flags, FILE *stream)
{
    if (flags & print_header) {
        fprintf(stream, "#\n# %s configuration\n#\n\n", t.title);
    }
    for (const field &f : t.fields) {
        if (flags & print_doc) {
            fprintf(stream, "#\n# %s\n#\n# Syntax: %s\n#\n", f.doc, f.value->syntax);
        }
        fprintf(stream, "%s=%s\n", variable(t, f, env_prefix).c_str(),
                f.value->format(member(config, f)).c_str());
    }
}

void know(const table &t)
{
    std::lock_guard lock(known_mutex);
    for (const field &f : t.fields) {
        known_names().insert(variable(t, f, nullptr));
    }
}

bool is_known(const std::string &name)
{
    std::lock_guard lock(known_mutex);
    return known_names().count(name) != 0;
}

std::vector<std::string> known_variables()
{
    std::lock_guard lock(known_mutex);
    return {known_names().begin(), known_names().end()};
}

} // namespace ucs::config
