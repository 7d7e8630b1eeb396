#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# UCX's uct_hello_world between two processes: an active message by short, bcopy and zcopy.

. "$(dirname "$0")/ucx_example.sh"
build_example uct_hello_world

device_of()
{
    case $1 in
    sm | shm) echo memory ;;
    tcp) echo lo ;;
    verbs) echo rxe0 ;;
    esac
}

for transport in ${transports/ofi_shm/shm}; do # UCT has no aliases
    device=$(device_of "$transport")
    for mode in i b z; do
        pair "uct_hello_world -$mode over $transport" "-d $device -t $transport -$mode -p @PORT@" \
            "-d $device -t $transport -$mode -p @PORT@ -n $address"
    done
done
finish
