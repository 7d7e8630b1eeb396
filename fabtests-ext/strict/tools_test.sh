#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The short form of tools.sh: two programs over two imitations.

exec "$(dirname "$0")/tools.sh" cxi/perftest psm3/mpich
