// SPDX-License-Identifier: BSD-3-Clause
// Every variable that UCX 1.13 or 1.18 knows and what it means here, as data. A variable that is
// not honoured has a reason; setting it to something other than UCX's default is reported.
#pragma once

#include <cstddef>
#include <span>

namespace ucs::config {

enum class standing {
    honoured,   // changes what the library does
    none,       // no meaning here, and nothing that the program can observe is missing
    misleading, // the user asks for a behaviour that the library does not have
};

enum class reason {
    served,
    mlx5,
    verbs,
    rdmacm,
    own_sm,
    one_size,
    core_tcp,
    core_socket,
    cm_choice,
    log_form,
    modules,
    hooks,
    devices,
    device_list,
    cache,
    progress,
    signals,
    profile,
    hw_tags,
    rndv,
    protocols,
    wire,
    cost_model,
    copy,
    eager_rails,
    other_name,
};

struct ucx_variable {
    const char *name;  // without UCX_
    const char *deflt; // as UCX prints it
    standing means;
    reason why;
};

extern const std::span<const ucx_variable> ucx_variables;       // of 1.13
extern const std::span<const ucx_variable> newer_ucx_variables; // that 1.18 has beside them

template <class F>
void for_each_ucx_variable(F &&f)
{
    for (auto list : {ucx_variables, newer_ucx_variables}) {
        for (const ucx_variable &v : list) {
            f(v);
        }
    }
}

// Ends the sentence "UCX_NAME has no effect: ".
const char *text_of(reason why) noexcept;

} // namespace ucs::config
