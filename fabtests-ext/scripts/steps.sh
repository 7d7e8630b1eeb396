# SPDX-License-Identifier: BSD-3-Clause
#
# Sourced: the steps of a long script, the commands that run in them, and where their output is kept ($logs).

. "$(dirname "${BASH_SOURCE[0]}")/time_left.sh"

elapsed()
{
    printf '%02d:%02d' $((SECONDS / 60)) $((SECONDS % 60))
}

# What has passed, and what is left where that is known.
times()
{
    local left
    left=$(time_left)
    printf '[%s%s]' "$(elapsed)" "${left:+, $left}"
}

# step NAME TEXT: NAME is what the step is expected by.
step()
{
    begin_step "$1"
    printf '\n%s == %s\n' "$(times)" "$2"
}

note()
{
    printf '%s    %s\n' "$(times)" "$*"
}

die()
{
    note "$*" >&2
    exit 1
}

# begin LOG COMMAND...: in the background, as process $begun; output to build/logs/LOG.
begin()
{
    local log=$logs/$1
    shift
    rm -f "$log.status"
    "$@" >"$log" 2>&1 </dev/null &
    begun=$!
    running+="$begun "
}

# begin_long LOG COMMAND...: the same, for what may have ended long before it is waited for. The shell forgets the
# status of a process when its number comes again.
begin_long()
{
    begin "$1" recorded "$@"
}

recorded()
{
    local log=$logs/$1
    shift
    "$@"
    echo $? >"$log.status"
}

still_runs()
{
    [ ! -s "$logs/$2.status" ] && kill -0 "$1" 2>/dev/null
}

# status_of PID LOG: when it has ended.
status_of()
{
    if [ -s "$logs/$2.status" ]; then
        return "$(cat "$logs/$2.status")"
    fi
    wait "$1"
}

# ended PID LOG: waits for it and has its status; says every 20 seconds where it is.
ended()
{
    local tick=0
    while still_runs "$1" "$2"; do
        sleep 0.5
        tick=$((tick + 1))
        [ $((tick % 40)) -ne 0 ] || note "... $(tail -n 1 "$logs/$2" | tr -d '\r' | cut -c 1-90)"
    done
    running=${running/ $1 / }
    status_of "$1" "$2"
}

# finish PID LOG COMMAND...: the same, and shows the end of the log if it fails.
finish()
{
    local log=$logs/$2 status
    ended "$1" "$2"
    status=$?
    shift 2
    if [ $status -ne 0 ]; then
        note "failed with status $status: $*"
        note "the end of $log:"
        tail -n 40 "$log" | sed 's/^/    | /'
    fi
    return $status
}

# quietly LOG COMMAND...
quietly()
{
    begin "$@"
    finish "$begun" "$@"
}

# A process group is not ours to kill from a script; the commands in progress are.
running=" "
trap 'kill $running 2>/dev/null; exit 130' INT
trap 'kill $running 2>/dev/null; exit 143' TERM HUP
