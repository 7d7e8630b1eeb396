#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Debian's io_demo between two processes: reads and writes of a storage server over connections, by
# tagged and by active messages, every byte and transaction checked.

. "$(dirname "$0")/drop_in.sh"
need io_demo ucx-utils
export PAIR_ENDLESS=yes PAIR_EXPECT="Client exit with status 'OK'"

demo()
{
    local tls=$1
    shift
    PAIR_TIMEOUT=${PAIR_TIMEOUT:-200} pair_on_ours "$tls" io_demo -p @PORT@ "$@" -- \
        io_demo "$address" -p @PORT@ -o read,write "$@"
}

few=${IO_DEMO_FEW:-100} # operations with long data
for tls in $transports; do
    case $tls in
    sm | ofi_shm) continue ;; # shared memory cannot listen: it comes with the connection by tcp
    esac
    check "io_demo over $tls: tag" demo $tls -q -i $((20 * few)) -d 8:65536
    check "io_demo over $tls: active messages" demo $tls -q -i $((20 * few)) -d 8:65536 -A
    check "io_demo over $tls: tag, up to 4 MiB" demo $tls -q -i "$few" -d 8:4194304 -w 4
    check "io_demo over $tls: active messages, up to 4 MiB, registered" demo $tls -q -i "$few" -d 8:4194304 -w 4 -A -z
done
finish
