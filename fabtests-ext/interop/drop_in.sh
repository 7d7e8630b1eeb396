# SPDX-License-Identifier: BSD-3-Clause
#
# Sourced by the tests that run programs which Debian built for Debian's UCX, with our libucp.so.0 and
# libuct.so.0 in the place of UCX's. Debian's libucs.so.0 and libucm.so.0 stay: such programs may call
# them directly. Every case proves that no other library of UCX's was in the process, and that the
# transport which it names carried the messages.

. "$(dirname "${BASH_SOURCE[0]}")/report.sh"
. "$(dirname "${BASH_SOURCE[0]}")/pair.sh"
. "$(dirname "${BASH_SOURCE[0]}")/installed.sh"

scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT

# What to run over, and where servers listen. The guest with RDMA devices sets others.
transports=${EXAMPLE_TRANSPORTS:-sm ofi_shm tcp sm,tcp ofi_shm,tcp}
address=${EXAMPLE_ADDRESS:-127.0.0.1}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# on_ours COMMAND...: the dynamic linker writes what it loads to $scratch/loaded.PID, our library tells
# its log which lanes it chose.
on_ours()
{
    rm -f "$scratch"/loaded.*
    env LD_LIBRARY_PATH="$libraries" LD_DEBUG=libs LD_DEBUG_OUTPUT="$scratch/loaded" UCX_LOG_LEVEL=info "$@"
}

# alone COMMAND...: with our libucs.so.0 and libucm.so.0, too, as where UCX is not installed.
alone()
{
    local libraries=$dropin:$dropin/base replaced=ptsm
    "$@"
}

# only_ours COUNT: at least so many processes initialised our libucp, and no process a libucp, libuct or
# transport module from elsewhere.
only_ours()
{
    local count foreign
    count=$(grep -l "calling init: $dropin/libucp\\.so\\.0" "$scratch"/loaded.* 2>/dev/null | wc -l)
    [ "$count" -ge "$1" ] || {
        echo "$count processes loaded $dropin/libucp.so.0, expected $1"
        return 1
    }
    foreign=$(sed -n 's/.*calling init: //p' "$scratch"/loaded.* |
        grep -E "/libuc[$replaced][^/]*\\.so" | grep -v "^$dropin/" | sort -u)
    [ -z "$foreign" ] || {
        echo "libraries of another UCX: $foreign"
        return 1
    }
}

# Prints the lanes of active messages in a log, as "transport/device", once each.
lanes_of()
{
    sed -n 's/.* UCX  INFO  ep 0x[0-9a-f]*: lanes: //p' "$@" |
        tr ',' '\n' | sed -n 's/^ *\([^ ]*\) am.*/\1/p' | sort -u
}

# The transports of UCX_TLS as the log calls them.
in_the_log()
{
    sed 's/\bshm\b/sm/g; s/\bofi_shm\b/shm/g' <<<"$1"
}

# carried_by TRANSPORTS LOG...: some endpoint used the first of the transports that can carry messages
# between two processes on a host; none used what was not asked for.
carried_by()
{
    local asked=$1 wanted fastest lanes
    wanted=$(in_the_log "$1")
    fastest=${wanted%%,*}
    shift
    lanes=$(lanes_of "$@")
    grep -q "^$fastest/" <<<"$lanes" || {
        echo "no endpoint has a lane over $fastest; the lanes are:" $lanes
        return 1
    }
    lanes=$(grep -vE "^(self|${wanted//,/|})/" <<<"$lanes")
    [ -z "$lanes" ] || {
        echo "lanes over what UCX_TLS=$asked does not name:" $lanes
        return 1
    }
}

# pair_on_ours TRANSPORTS SERVER_COMMAND... -- CLIENT_COMMAND...: run_pair with all proofs; the outputs
# stay in $PAIR_OUTPUT. The commands see their port as @PORT@.
pair_on_ours()
{
    local tls=$1
    shift
    next_port
    export PAIR_OUTPUT=$scratch/pair
    rm -rf "$PAIR_OUTPUT"
    mkdir "$PAIR_OUTPUT"
    UCX_TLS=$tls on_ours_pair "$pair_port" "${@//@PORT@/$pair_port}" && only_ours 2 &&
        carried_by "$tls" "$PAIR_OUTPUT/client" "$PAIR_OUTPUT/server"
}

# job_on_ours TRANSPORTS PROCESSES PARTS COMMAND...: a parallel program that says "PASS part" for each part,
# with all proofs.
job_on_ours()
{
    local tls=$1 processes=$2 parts=$3 part status
    shift 3
    UCX_TLS=$tls,self on_ours timeout -k 5 "${JOB_TIMEOUT:-300}" "$@" >"$scratch/output" 2>&1
    status=$?
    grep -v ' UCX  INFO ' "$scratch/output" | tail -n 30
    [ $status -eq 0 ] || return $status
    for part in $parts; do
        grep -q "^PASS $part$" "$scratch/output" || {
            echo "the job did not say 'PASS $part'"
            return 1
        }
    done
    only_ours "$processes" && carried_by "$tls" "$scratch/output"
}

# job_without_networks PROCESSES PARTS COMMAND...: a job on one node which may use networks, and opens none.
job_without_networks()
{
    job_on_ours sm,all "$@" || return
    ! grep ' opens its networks$' "$scratch/output"
}

# on_ours is for commands; run_pair is a function of this shell. The environment is the same.
on_ours_pair()
{
    rm -f "$scratch"/loaded.*
    LD_LIBRARY_PATH=$libraries LD_DEBUG=libs LD_DEBUG_OUTPUT=$scratch/loaded UCX_LOG_LEVEL=info run_pair "$@"
}

find_installed || skip_all "nothing is installed to run with"
dropin=$(cd "$dropin" && pwd)
libraries=$dropin
replaced=pt # the letters of libuc?.so.0
