// SPDX-License-Identifier: BSD-3-Clause
// UCX_STATS_*: where a report goes, when, and in which form.
#pragma once

#include "ucs/stats/stats.h"

#include <string>
#include <vector>

namespace ucs::stats {

struct destination {
    enum class kind { none, standard_output, standard_error, file, udp };
    kind where = kind::none;
    std::string name; // of the file, or the host
    std::string port;
};

struct trigger {
    enum class kind { exit, signal, timer };
    kind when = kind::exit;
    int signal = 0;
    double seconds = 0;
};

enum class form { full, agg, summary, json, prometheus };

struct settings {
    destination dest;
    stats::trigger trigger;
    form format = form::full;
    std::vector<std::string> patterns;
};

// What the environment and the files say; read once.
const settings &the_settings();

} // namespace ucs::stats
