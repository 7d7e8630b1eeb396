#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The short form of tools.sh. No job of MPI: its processes wait for each other at the end outside of UCX, where nobody
# progresses the imitation, which sends and acknowledges when it is polled only. On a busy machine one of them then waits
# for an acknowledgement for ever.

exec "$(dirname "$0")/tools.sh" cxi/perftest
