#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The short form of tools.sh.

exec "$(dirname "$0")/tools.sh" cxi/perftest cxi/pingpong psm3/mpich efa/openmpi
