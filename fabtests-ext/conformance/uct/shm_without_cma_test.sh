#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Shared memory where no process may copy from or to the memory of another, as on machines that restrict ptrace:
# there the core's puts and gets are done by their target, later.

here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../interop/report.sh"
export FI_SHM_DISABLE_CMA=1

run() { "$(built_suite "$1")" --gtest_brief=1 --gtest_filter="$2"; }

check "uct" run uct_test '*/shm:uct_stopped_process.*'
for program in ucp_am_test ucp_fence_test ucp_kill_test ucp_memory_test ucp_rma_test ucp_tag_test prov_atomic_test \
    prov_message_test prov_rma_test; do
    check "$program" run "$program" '*shm*'
done
finish
