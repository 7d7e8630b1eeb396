# SPDX-License-Identifier: BSD-3-Clause
#
# Sourced: how long a script of several steps still takes. Each step is expected to take the seconds that it is known to
# take; what those that have ended took instead, and one that is late, corrects the rest. The clock is bash's SECONDS.

declare -A step_seconds=()
current_step="" step_began=0 seconds_to_come=0 known_seconds=0 spent_seconds=0

# expect NAME SECONDS: one of the steps to come.
expect()
{
    step_seconds[$1]=$2
    seconds_to_come=$((seconds_to_come + $2))
}

# begin_step NAME: the one before it has ended. One that was not expected corrects nothing.
begin_step()
{
    local known=${step_seconds[${current_step:-none}]:-0}
    if [ "$known" -gt 0 ]; then
        known_seconds=$((known_seconds + known))
        spent_seconds=$((spent_seconds + SECONDS - step_began))
    fi
    current_step=$1 step_began=$SECONDS
    seconds_to_come=$((seconds_to_come - ${step_seconds[$1]:-0}))
}

# time_left: "2:05 left", or nothing where no more is expected.
time_left()
{
    local known=${step_seconds[${current_step:-none}]:-0} spent=$((SECONDS - step_began)) scale=1000 late=0 rest left
    [ $known_seconds -eq 0 ] || scale=$((spent_seconds * 1000 / known_seconds))
    [ "$known" -eq 0 ] || late=$(((spent_seconds + spent) * 1000 / (known_seconds + known)))
    [ $late -le $scale ] || scale=$late
    rest=$((known * scale / 1000 - spent))
    [ $rest -gt 0 ] || rest=0
    left=$((seconds_to_come * scale / 1000 + rest))
    [ $((known + seconds_to_come)) -eq 0 ] || printf '%d:%02d left' $((left / 60)) $((left % 60))
}
