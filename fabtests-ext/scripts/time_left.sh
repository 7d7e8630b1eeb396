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

# leave_out NAME: a step that will not come.
leave_out()
{
    seconds_to_come=$((seconds_to_come - ${step_seconds[$1]:-0}))
    step_seconds[$1]=0
}

# end_step: the one that was begun. One that was not expected corrects nothing.
end_step()
{
    local known=${step_seconds[${current_step:-none}]:-0}
    if [ "$known" -gt 0 ]; then
        known_seconds=$((known_seconds + known))
        spent_seconds=$((spent_seconds + SECONDS - step_began))
    fi
    current_step="" step_began=$SECONDS
}

# begin_step NAME: the one before it has ended.
begin_step()
{
    end_step
    current_step=$1
    seconds_to_come=$((seconds_to_come - ${step_seconds[$1]:-0}))
}

# pace: thousandths of the known time that those which have ended took.
pace()
{
    echo $((known_seconds ? spent_seconds * 1000 / known_seconds : 1000))
}

# ends_by SECONDS NAME...: between two steps, whether these of those to come end before then.
ends_by()
{
    local limit=$1 name sum=0
    shift
    end_step
    for name in "$@"; do
        sum=$((sum + ${step_seconds[$name]:-0}))
    done
    [ $((SECONDS + sum * $(pace) / 1000)) -le "$limit" ]
}

# time_left: "2:05 left", or nothing where no more is expected.
time_left()
{
    local known=${step_seconds[${current_step:-none}]:-0} spent=$((SECONDS - step_began)) scale late=0 rest left
    scale=$(pace)
    [ "$known" -eq 0 ] || late=$(((spent_seconds + spent) * 1000 / (known_seconds + known)))
    [ $late -le $scale ] || scale=$late
    rest=$((known * scale / 1000 - spent))
    [ $rest -gt 0 ] || rest=0
    left=$((seconds_to_come * scale / 1000 + rest))
    [ $((known + seconds_to_come)) -eq 0 ] || printf '%d:%02d left' $((left / 60)) $((left % 60))
}
