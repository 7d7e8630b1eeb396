// SPDX-License-Identifier: BSD-3-Clause
// Looks for providers' libraries as libfabric does, and loads what is not in the process again to
// learn why.
#include "uct/ofi/fabric/modules.h"

#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <sstream>

namespace uct::ofi {

namespace {

namespace fs = std::filesystem;

constexpr const char *entry_point = "fi_prov_ini";

bool is_module(const fs::path &file)
{
    return file.filename().string().ends_with("-fi.so");
}

// Folders, or from libfabric 2 on also files; @ and + say how they stand to the usual ones.
std::vector<fs::path> modules_of_path(const char *path)
{
    std::vector<fs::path> found;
    std::istringstream parts(path);
    std::string part;
    while (std::getline(parts, part, ':')) {
        part.erase(0, part.find_first_not_of("@+"));
        std::error_code none;
        if (fs::is_directory(part, none)) {
            for (fs::directory_iterator at(part, none), end; !none && at != end;
                 at.increment(none)) {
                if (is_module(at->path())) {
                    found.push_back(at->path());
                }
            }
        } else if (is_module(part)) {
            found.emplace_back(part);
        }
    }
    return found;
}

// Empty: it loads.
std::string problem_of(const fs::path &file)
{
    void *module = dlopen(file.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (!module) {
        module = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    }
    if (!module) {
        return dlerror();
    }
    bool has_entry = dlsym(module, entry_point) != nullptr;
    dlclose(module);
    return has_entry ? "" : file.string() + ": it has no function " + entry_point;
}

} // namespace

std::vector<broken_module> broken_modules()
{
    std::vector<broken_module> broken;
    const char *path = getenv("FI_PROVIDER_PATH");
    if (!path) {
        return broken;
    }
    for (const fs::path &file : modules_of_path(path)) {
        std::string why = problem_of(file);
        if (!why.empty()) {
            broken.push_back({file.filename().string(), std::move(why)});
        }
    }
    return broken;
}

} // namespace uct::ofi
