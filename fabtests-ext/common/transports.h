// SPDX-License-Identifier: BSD-3-Clause
//
// The sets of transports that a suite runs over, one case of each test for each set: UCX_TLS for
// UCP, FI_UCXLIKE_TLS for the provider.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <gtest/gtest.h>
#include <initializer_list>
#include <list>
#include <sstream>
#include <string>
#include <vector>

namespace ucp_test {

// Those sets of `usual`, or the ones that UCXLIKE_TEST_TLS names, with spaces between them: for
// transports that only some machines have.
inline std::vector<const char *> transports(std::initializer_list<const char *> usual)
{
    const char *asked = getenv("UCXLIKE_TEST_TLS");
    if (!asked) {
        return usual;
    }
    static std::list<std::string> kept; // the names are pointers
    std::vector<const char *> sets;
    std::istringstream words(asked);
    for (std::string word; words >> word;) {
        sets.push_back(kept.emplace_back(word).c_str());
    }
    return sets;
}

// "sm,tcp,self" is called sm_tcp.
inline std::string transports_name(const testing::TestParamInfo<const char *> &info)
{
    std::string name = info.param;
    if (name.ends_with(",self")) {
        name.erase(name.rfind(','));
    }
    std::replace(name.begin(), name.end(), ',', '_');
    return name;
}

} // namespace ucp_test

namespace prov_test {

// Each of the two ways on a node beside tcp, and tcp alone; or what UCXLIKE_TEST_TLS names.
inline std::vector<const char *> transports()
{
    return ucp_test::transports({"\\sm,tcp", "ofi_shm,tcp", "tcp"});
}

// An `Over` of each kind of endpoint over each of those. It begins with the two.
template <class Over>
std::vector<Over> endpoints_over(std::initializer_list<decltype(Over::type)> types)
{
    std::vector<Over> all;
    for (auto type : types) {
        for (const char *set : transports()) {
            all.push_back({.type = type, .transports = set});
        }
    }
    return all;
}

// "\sm,tcp" is called sm.
inline std::string first_transport(const char *set)
{
    std::string name = set + (*set == '\\');
    return name.substr(0, name.find(','));
}

} // namespace prov_test

#define UCP_TEST_OVER(suite, ...)                                                                  \
    INSTANTIATE_TEST_SUITE_P(over, suite, testing::ValuesIn(ucp_test::transports({__VA_ARGS__})),  \
                             ucp_test::transports_name)
#define UCP_TEST_OVER_ALL(suite) UCP_TEST_OVER(suite, "self", "sm", "ofi_shm", "tcp", "ofi_shm,tcp")
