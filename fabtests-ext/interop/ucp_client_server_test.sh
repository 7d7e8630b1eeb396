#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# UCX's ucp_client_server between two processes: listener, connection request, tag and active messages.

. "$(dirname "$0")/ucx_example.sh"
build_example ucp_client_server
export PAIR_ENDLESS=yes # its server waits for the next client, always

for transport in $transports; do
    # Shared memory cannot listen: the connection goes by tcp, the messages by the faster one.
    export UCX_TLS=$transport
    case $transport in
    sm | ofi_shm) UCX_TLS=$transport,tcp ;;
    esac
    for kind in tag am; do
        for size in 16 100000; do
            # The client of newer ones registers its handler when its last send has completed, which may be
            # after the server's answer to that has come.
            if [ "$kind $size" = "am 100000" ] && grep -q 'FIN message' "$example"; then
                skip "ucp_client_server -c am -s $size over $transport" "this one may lose the server's last message"
                continue
            fi
            pair "ucp_client_server -c $kind -s $size over $transport" \
                "-c $kind -s $size -i 10 -p @PORT@" "-c $kind -s $size -i 10 -p @PORT@ -a $address"
        done
    done
done
finish
