#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Debian's fi_pingpong between two processes, with data check; prints the client's table.
# Usage: pingpong.sh ADDRESS FI_PINGPONG_OPTION...    (such as: 127.0.0.1 -p ucxlike -e rdm -S all)

. "$(dirname "$0")/pair.sh"
address=$1
shift
command -v fi_pingpong >/dev/null || {
    echo "fi_pingpong is not installed (package libfabric-bin)"
    exit 77
}
next_port
run_pair "$pair_port" fi_pingpong "$@" -c -B "$pair_port" -- \
    fi_pingpong "$@" -c -P "$pair_port" "$address"
