// SPDX-License-Identifier: BSD-3-Clause
// Looks for providers' libraries as libfabric does, and loads what is not in the process again to
// learn why.
#include "uct/ofi/fabric/modules.h"

#include <cstdlib>
#include <dirent.h>
#include <dlfcn.h>
#include <memory>
#include <sstream>
#include <sys/stat.h>

namespace uct::ofi {

namespace {

constexpr const char *entry_point = "fi_prov_ini";

std::string name_of(const std::string &file)
{
    return file.substr(file.rfind('/') + 1);
}

// Folders, or from libfabric 2 on also files; @ and + say how they stand to the usual ones.
// std::filesystem's iterator ends the process when it finds no memory.
std::vector<std::string> modules_of_path(const char *path)
{
    std::vector<std::string> found;
    std::istringstream parts(path);
    std::string part;
    while (std::getline(parts, part, ':')) {
        part.erase(0, part.find_first_not_of("@+"));
        std::unique_ptr<DIR, int (*)(DIR *)> folder(opendir(part.c_str()), closedir);
        if (!folder) {
            found.push_back(part);
            continue;
        }
        while (const dirent *entry = readdir(folder.get())) {
            found.push_back(part + "/" + entry->d_name);
        }
    }
    std::erase_if(found, [](const std::string &file) {
        struct stat status;
        return !file.ends_with("-fi.so") || stat(file.c_str(), &status) != 0;
    });
    return found;
}

// Empty: it loads.
std::string problem_of(const std::string &file)
{
    void *module = dlopen(file.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (!module) {
        module = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    }
    if (!module) {
        const char *why = dlerror();
        return why ? why : file + ": dlopen fails";
    }
    bool has_entry = dlsym(module, entry_point) != nullptr;
    dlclose(module);
    return has_entry ? "" : file + ": it has no function " + entry_point;
}

} // namespace

std::vector<broken_module> broken_modules()
{
    std::vector<broken_module> broken;
    const char *path = getenv("FI_PROVIDER_PATH");
    if (!path) {
        return broken;
    }
    for (const std::string &file : modules_of_path(path)) {
        std::string why = problem_of(file);
        if (!why.empty()) {
            broken.push_back({name_of(file), std::move(why)});
        }
    }
    return broken;
}

} // namespace uct::ofi
