#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# ucxlike_info of the build tree: its options, versions, settings with their sources, reasons why something is
# not used. Its doctor: ucxlike_doctor_test.sh.

. "$(dirname "$0")/../interop/report.sh"
export IPATH_NO_BACKTRACE=1
info=$PWD/ucxlike_info
source=$(cd "${top_srcdir:-..}" && pwd)
[ -x "$info" ] || skip_all "ucxlike_info was not built"
scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 99

refuses()
{
    local text=$1
    shift
    ! "$info" "$@" >"$scratch/output" 2>&1 && grep -qe "$text" "$scratch/output"
}

takes_the_letters()
{
    prints '^usage' '--why-not' -- "$info" --help && prints '^usage' -- "$info" -h &&
        refuses '^usage' --nosuch && refuses '^usage' && refuses "'x' is not one of" -p -u tx &&
        refuses "'far' is not one of" -e -P far && refuses "'0' is not a positive" -p -n 0
}

tells_versions()
{
    local fabric commit
    fabric=$(fi_info --version | sed -n 's/^libfabric: \([0-9]*\.[0-9]*\).*/\1/p')
    prints "^# libfabric version: $fabric " '^# ucxlike version: [0-9]' '^# API version: 1' -- "$info" -v || return
    [ -e "$source/.git" ] && command -v git >/dev/null || return 0
    commit=$(sed -n 's/^# Commit: \([0-9a-f]*\).*/\1/p' "$scratch/output")
    git -C "$source" rev-parse -q --verify "$commit^{commit}" >/dev/null
}

tells_where_settings_come_from()
{
    mkdir -p "$scratch/conf" && echo 'UCX_ZCOPY_THRESH=8765' >"$scratch/conf/ucx.conf" || return
    prints '^UCX_RNDV_THRESH=4321$' '^UCX_ZCOPY_THRESH=8765$' '^UCX_TCP_SEG_SIZE=' -- \
        env UCX_RNDV_THRESH=4321 UCX_CONFIG_DIR="$scratch/conf" "$info" -c || return
    prints '^# Source: environment, UCX_RNDV_THRESH$' "^# Source: file, $scratch/conf/ucx.conf$" '^# Source: default$' \
        -- env UCX_RNDV_THRESH=4321 UCX_CONFIG_DIR="$scratch/conf" "$info" -cf || return
    prints '^UCX_RNDV_THRESH=4321$' '^# UCX_ZCOPY_THRESH=' -- env UCX_RNDV_THRESH=4321 "$info" -cC
}

tells_why_not()
{
    prints 'transport tcprdm: it is used only where UCX_TLS names it' 'provider ofi_rxm: it is a layer' -- \
        "$info" --why-not || return
    prints 'transport tcp on lo: UCX_TLS leaves it out' -- env UCX_TLS=self "$info" --why-not || return
    prints 'transport tcp on lo: UCX_NET_DEVICES leaves it out' -- \
        env UCX_NET_DEVICES=nosuch "$info" --why-not || return
    prints 'transport shm: sm serves in its place' -- "$info" --why-not || return
    prints 'cache of registrations: UCX_RCACHE_ENABLE leaves it out' -- \
        env UCX_RCACHE_ENABLE=n "$info" --why-not || return
    # What is used is not among them.
    ! "$info" --why-not | grep -q 'transport tcp ' && ! "$info" --why-not | grep -q 'transport sm' &&
        ! UCX_TLS=all,ofi_shm "$info" --why-not | grep -q 'transport shm'
}

prints_json()
{
    command -v python3 >/dev/null || { echo "python3 is not installed"; return 77; }
    "$info" --json -vdcbysTpwe -m 4096 doctor >"$scratch/all.json" 2>"$scratch/errors"
    python3 - "$scratch/all.json" <<'CHECK'
import json, sys
all = json.load(open(sys.argv[1]))
wanted = {"version", "devices", "not_used", "settings", "build", "types", "system", "topology", "context", "worker",
          "endpoint", "endpoint_transports", "memory", "doctor"}
assert wanted == set(all), wanted ^ set(all)
names = [t["transport"] for d in all["devices"]["domains"] for t in d["transports"]]
assert "self" in names, names
assert all["endpoint_transports"][0]["transport"] == "self"
assert {s["name"] for s in all["settings"]} >= {"UCX_TLS", "UCX_SELF_SEG_SIZE"}
assert all["settings"][0]["source"] == "default" and len(all["doctor"]) >= 6
CHECK
}

# transports OPTION...: what carries the endpoint, each once.
transports()
{
    "$info" --json -e "$@" 2>"$scratch/errors" >"$scratch/endpoint.json" || { cat "$scratch/errors"; return 1; }
    sed -n '/"endpoint_transports"/,$s/.*"transport": "\(.*\)".*/\1/p' "$scratch/endpoint.json" | sort -u | tr '\n' ' '
}

places_the_peer()
{
    local self intra core inter client
    self=$(transports) && intra=$(transports -P intra) && core=$(UCX_TLS=ofi_shm transports -P intra) &&
        inter=$(UCX_NET_DEVICES=lo transports -P inter) &&
        client=$(UCX_TLS=tcp UCX_NET_DEVICES=lo transports -A 127.0.0.1) || return
    echo "self: $self, intra: $intra, of the core: $core, inter: $inter, client: $client"
    [[ $self = *self* && $intra = "sm " && $core = "shm " && $inter = "tcp " && $client = "tcp " ]] || return
    refuses "'nonsense' is no numeric IPv4 address" -e -A nonsense &&
        refuses "'127.0.0.1' is no numeric IPv6 address" -e -6 -A 127.0.0.1
}

filters_settings()
{
    prints '^UCX_RNDV_THRESH=' -- "$info" -c -F RNDV_THRESH && [ "$(wc -l <"$scratch/output")" -eq 1 ]
}

check "the letters and long options" takes_the_letters
check "versions" tells_versions
check "settings and their sources" tells_where_settings_come_from
check "why something is not used" tells_why_not
check "everything as JSON" prints_json
check "context, worker, endpoint, memory" prints '# UCP context' '# UCP worker' '# UCP endpoint' 'allocated' -- \
    "$info" -pwe -u tarswe -m 1M -D self -n 2 -N 2
check "an endpoint of this process, another, the network, a client" places_the_peer
check "settings whose name has a text" filters_settings
check "the machine, types, the build" prints 'kernel: ' 'ucp_params_t: ' 'compiler: ' 'memcpy MB/s: ' -- "$info" -bysTM
finish
