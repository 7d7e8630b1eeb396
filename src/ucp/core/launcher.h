// SPDX-License-Identifier: BSD-3-Clause
//
// What the program that started this process says of its job.
#pragma once

namespace ucp {

// Whether all processes of the job run on this node, as the variables of Hydra (MPICH), Open MPI or
// Slurm say. False where none of them says anything.
bool job_is_on_this_node() noexcept;

} // namespace ucp
