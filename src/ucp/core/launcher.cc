// SPDX-License-Identifier: BSD-3-Clause
#include "ucp/core/launcher.h"

#include <cstdlib>

namespace ucp {

namespace {

// Processes on this node, and of the job.
struct counts {
    const char *here;
    const char *all;
};
constexpr counts launchers[] = {
    {"MPI_LOCALNRANKS", "PMI_SIZE"},                        // Hydra
    {"OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_SIZE"}, // Open MPI
};
// Slurm. A job of several parts has a step of each.
constexpr const char *nodes_of_a_step = "SLURM_STEP_NUM_NODES";
constexpr const char *parts_of_a_job = "SLURM_HET_SIZE";

// 0: not set, or no number.
unsigned long number(const char *variable) noexcept
{
    const char *text = getenv(variable);
    return text ? strtoul(text, nullptr, 10) : 0;
}

} // namespace

bool job_is_on_this_node() noexcept
{
    for (const counts &said : launchers) {
        unsigned long here = number(said.here), all = number(said.all);
        if (here != 0 && all != 0) { // some launchers set one of them alone
            return here == all;
        }
    }
    return number(nodes_of_a_step) == 1 && number(parts_of_a_job) <= 1;
}

} // namespace ucp
