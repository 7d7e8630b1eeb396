// SPDX-License-Identifier: BSD-3-Clause
// Makes libfabric find the strict cores of this build; before its first use.
#pragma once

#include <cctype>
#include <climits>
#include <cstdlib>
#include <string>
#include <unistd.h>

// The build's top folder, from where the test is: fabtests-ext/FOLDER/.libs or above.
inline std::string strict_core_folder()
{
    char path[PATH_MAX] = {};
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    std::string self(path, n > 0 ? static_cast<size_t>(n) : 0);
    size_t at = self.rfind("/fabtests-ext/");
    return self.substr(0, at) + "/fabtests-ext/strict/.libs";
}

// A variable of the environment while it lives.
class environment {
  public:
    environment(const char *name, const char *value) : name_(name) { setenv(name, value, 1); }
    environment(const environment &) = delete;
    environment &operator=(const environment &) = delete;
    ~environment() { unsetenv(name_); }

  private:
    const char *name_;
};

// While it lives, whether messages over the transport share receive buffers.
struct sharing {
    std::string setting;
    environment is;

    explicit sharing(const std::string &transport, const char *value = "y")
        : setting("UCX_" + upper(transport) + "_MULTI_RECV"), is(setting.c_str(), value)
    {
    }

  private:
    static std::string upper(std::string text)
    {
        for (char &c : text) {
            c = static_cast<char>(toupper(c));
        }
        return text;
    }
};

// Names a case after the core that it runs over.
inline constexpr auto core_name = [](const auto &info) { return info.param; };

inline bool use_strict_cores()
{
    return setenv("FI_PROVIDER_PATH", strict_core_folder().c_str(), 1) == 0;
}
