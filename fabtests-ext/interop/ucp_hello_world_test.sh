#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# UCX's ucp_hello_world between two processes: worker addresses, tag messages, the three ways to wait.

. "$(dirname "$0")/ucx_example.sh"
build_example ucp_hello_world

for transport in $transports; do
    export UCX_TLS=$transport
    for mode in b w f; do
        pair "ucp_hello_world -$mode over $transport" "-$mode -p @PORT@" "-$mode -p @PORT@ -n $address"
    done
    pair "ucp_hello_world -s 1000000 over $transport" "-s 1000000 -p @PORT@" "-s 1000000 -p @PORT@ -n $address"
done
finish
