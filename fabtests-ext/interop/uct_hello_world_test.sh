#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# UCX's uct_hello_world between two processes: an active message by short, bcopy and zcopy.

. "$(dirname "$0")/ucx_example.sh"
build_example uct_hello_world

for resource in shm/memory tcp/lo; do
    transport=${resource%/*} device=${resource#*/}
    for mode in i b z; do
        pair "uct_hello_world -$mode over $transport" "-d $device -t $transport -$mode -p @PORT@" \
            "-d $device -t $transport -$mode -p @PORT@ -n 127.0.0.1"
    done
done
finish
