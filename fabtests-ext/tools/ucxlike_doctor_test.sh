#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# `ucxlike_info doctor` on a machine that is spoilt on purpose: for everything that it looks for it says what is wrong,
# what that costs and how to mend it.

here=$(cd "$(dirname "$0")" && pwd)
. "$here/../interop/report.sh"
export IPATH_NO_BACKTRACE=1
info=$PWD/ucxlike_info
libs=$PWD/.libs
strict=$PWD/fabtests-ext/strict/.libs
without_copies=$PWD/fabtests-ext/tools/without_copies
[ -x "$info" ] || skip_all "ucxlike_info was not built"
scratch=$(mktemp -d) || exit 99
process=
trap '[ -z "$process" ] || kill "$process"; rm -rf "$scratch"' EXIT
cd "$scratch" || exit 99

# says_the_doctor TEXT FIX COMMAND...: one warning begins with TEXT and is followed by its cost and a remedy that has FIX;
# the status tells that there is one.
says_the_doctor()
{
    local text=$1 fix=$2 status
    shift 2
    "$@" >"$scratch/output" 2>&1
    status=$?
    [ $status -ne 77 ] || { cat "$scratch/output"; return 77; }
    [ $status -eq 1 ] && grep -A 2 -e "^WARN $text" "$scratch/output" >"$scratch/warning" &&
        sed -n 2p "$scratch/warning" | grep -q '^     cost: .' &&
        sed -n 3p "$scratch/warning" | grep -q "^     -> .*$fix" || {
        echo "exit status $status, no '$text' with its cost and '$fix' in:"
        cat "$scratch/output"
        return 1
    }
}

# is_content CHECK COMMAND...: it has no warning of that; of other things it may have.
is_content()
{
    local check=$1
    shift
    "$@" >"$scratch/output" 2>&1
    grep -q "^ok   $check" "$scratch/output" || {
        echo "no 'ok   $check' in:"
        cat "$scratch/output"
        return 1
    }
}

may_mount()
{
    unshare --mount true 2>/dev/null || { echo "mount namespaces are not allowed here"; return 77; }
}

# background COMMAND...: as $process, when it has become what it is to be.
background()
{
    "$@" &
    process=$!
    # It maps what LD_PRELOAD names before it runs.
    timeout 20 bash -c "until [ \"\$(readlink /proc/$process/exe)\" = \"\$(realpath \$(command -v tail))\" ] &&
        grep -q 'SigBlk:.0000000000000000' /proc/$process/status; do :; done"
}

end_process()
{
    kill "$process"
    wait "$process" 2>/dev/null
    process=
}

finds_few_descriptors()
{
    says_the_doctor 'descriptors: 200 ' 'ulimit -n 4096' bash -c "ulimit -Sn 200; exec $info doctor" &&
        is_content 'descriptors: 4096' bash -c "ulimit -Sn 4096; exec $info doctor"
}

finds_few_descriptors_of_a_process()
{
    local status=0
    background bash -c 'ulimit -Sn 200; exec tail -f /dev/null'
    says_the_doctor 'descriptors: 200 ' 'ulimit -n' "$info" doctor --pid "$process" || status=$?
    end_process
    return $status
}

# limited_to BYTES COMMAND...: without the right that lifts the limit.
limited_to()
{
    local bytes=$1
    shift
    if [ "$(id -u)" -eq 0 ]; then
        setpriv --bounding-set -ipc_lock prlimit --memlock="$bytes" "$@"
    else
        prlimit --memlock="$bytes:" "$@"
    fi
}

# A device that locks memory is imitated; the limit is real.
finds_little_locked_memory()
{
    [ -e "$strict/strict-cxi-fi.so" ] || { echo "the strict cores are not built"; return 77; }
    says_the_doctor 'locked memory: 65536 bytes ' 'ulimit -l unlimited' \
        limited_to 65536 env FI_PROVIDER_PATH="$strict" "$info" doctor || return
    is_content 'locked memory: .* no device here needs it' limited_to 65536 \
        env FI_PROVIDER_PATH="$scratch" FI_PROVIDER='tcp' "$info" doctor || return
    [ "$(id -u)" -ne 0 ] || [ "$(awk '{ print $3 }' /proc/self/uid_map)" -lt 4294967295 ] ||
        is_content 'locked memory: 65536 .*CAP_IPC_LOCK lifts' \
            prlimit --memlock=65536 env FI_PROVIDER_PATH="$strict" "$info" doctor
}

finds_memory_of_others_closed()
{
    says_the_doctor 'ptrace: process_vm_readv is refused: Operation not permitted' 'cap-add=SYS_PTRACE' \
        in_scope 0 "$without_copies" "$info" doctor
}

# in_scope NUMBER COMMAND...: as if the kernel's Yama had that value.
in_scope()
{
    # shellcheck disable=SC2016 # expanded inside
    unshare --mount sh -c 'mount -t tmpfs tmpfs /proc/sys/kernel && mkdir /proc/sys/kernel/yama &&
        echo "$0" >/proc/sys/kernel/yama/ptrace_scope && exec "$@"' "$@"
}

names_the_setting_of_the_kernel()
{
    may_mount || return
    says_the_doctor 'ptrace: kernel.yama.ptrace_scope is 1: ' 'sysctl kernel.yama.ptrace_scope=0' \
        in_scope 1 "$without_copies" "$info" doctor &&
        says_the_doctor 'ptrace: kernel.yama.ptrace_scope is 3: ' 'boot with another value' \
            in_scope 3 "$without_copies" "$info" doctor
}

does_not_believe_the_setting()
{
    may_mount || return
    "$info" doctor | grep -q '^ok   ptrace' || { echo "this machine keeps processes apart"; return 77; }
    is_content 'ptrace: .*ptrace_scope is 1, which does not hold here' in_scope 1 "$info" doctor
}

# with_shm OPTIONS: a /dev/shm of that kind.
with_shm()
{
    unshare --mount sh -c "mount -t tmpfs -o $1 tmpfs /dev/shm && exec '$info' doctor"
}

finds_little_shared_memory()
{
    may_mount || return
    says_the_doctor '/dev/shm: 3 MiB free' 'shm-size' with_shm size=3m &&
        says_the_doctor '/dev/shm: Read-only file system' 'mount -t tmpfs' with_shm size=1g,ro &&
        is_content '/dev/shm: 1024 MiB free' with_shm size=1g
}

finds_two_libraries()
{
    local other status=0
    other=$(ldconfig -p | sed -n 's/.*libucp\.so\.0 .*=> //p' | head -n 1)
    [ -n "$other" ] || { echo "no UCX is installed"; return 77; }
    background env LD_PRELOAD="$other $libs/libucxlike.so.0" tail -f /dev/null
    says_the_doctor "UCX libraries: process $process has more than one: .*libuc.*, .*libuc" ucxlike-run \
        "$info" doctor --pid "$process" || status=$?
    end_process
    [ $status -eq 0 ] || return $status
    background env LD_PRELOAD="$libs/libucxlike.so.0" tail -f /dev/null
    is_content "UCX libraries: process $process has .*libucxlike" "$info" doctor --pid "$process" || status=$?
    end_process
    return $status
}

psm=$(ldconfig -p | sed -n 's/.*libinfinipath\.so\.4 .*=> //p' | head -n 1)

finds_the_handler_of_psm()
{
    [ -n "$psm" ] || { echo "PSM's library is not installed (package libpsm-infinipath1)"; return 77; }
    says_the_doctor "signal handlers: SIGSEGV, .*handled by .*libinfinipath" IPATH_NO_BACKTRACE=1 \
        env -u IPATH_NO_BACKTRACE LD_PRELOAD="$psm" "$info" doctor || return
    is_content 'signal handlers' env LD_PRELOAD="$psm" "$info" doctor
}

finds_the_handler_of_psm_in_a_process()
{
    local status=0
    [ -n "$psm" ] || { echo "PSM's library is not installed (package libpsm-infinipath1)"; return 77; }
    background env -u IPATH_NO_BACKTRACE LD_PRELOAD="$psm" tail -f /dev/null
    says_the_doctor "signal handlers: process $process handles SIGSEGV, .*as PSM does: .*libinfinipath" \
        IPATH_NO_BACKTRACE=1 "$info" doctor --pid "$process" || status=$?
    end_process
    return $status
}

leaves_handlers_of_the_program_alone()
{
    local status=0
    background tail -f /dev/null
    is_content "signal handlers: process $process" "$info" doctor --pid "$process" || status=$?
    end_process
    return $status
}

tells_that_a_process_may_not_be_asked()
{
    says_the_doctor 'process: process 4194305: No such file' 'of your own' "$info" doctor --pid 4194305
}

check "few descriptors" finds_few_descriptors
check "few descriptors of another process" finds_few_descriptors_of_a_process
check "little locked memory, with a device that needs it" finds_little_locked_memory
check "a filter that keeps processes from each other's memory" finds_memory_of_others_closed
check "the setting of the kernel that does" names_the_setting_of_the_kernel
check "a setting that does not hold is no warning" does_not_believe_the_setting
check "/dev/shm that is small or read-only" finds_little_shared_memory
check "two UCX libraries in a process" finds_two_libraries
check "the signal handler of PSM" finds_the_handler_of_psm
check "the same in another process" finds_the_handler_of_psm_in_a_process
check "a handler without PSM is no warning" leaves_handlers_of_the_program_alone
check "a process that is not there" tells_that_a_process_may_not_be_asked
finish
