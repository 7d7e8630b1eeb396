#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# docs/tutorial.md from its first line to its last, once from source and once by packages, each in a Debian 12 that has
# nothing but its essential packages, and how many minutes that takes. Not part of `make check`: it compiles the library
# twice and loads packages from a mirror.
# Usage: tutorial_fresh.sh [WAY...], source and package if none is named. DEBIAN12_TAR names what
# "mmdebstrap --variant=minbase bookworm FILE" has made before; TUTORIAL_KEEP a folder for the packages.

here=$(cd "$(dirname "$0")" && pwd)
. "$here/../interop/report.sh"
. "$here/tarball.sh"
top=$(cd "${top_srcdir:-$here/../..}" && pwd)
[ -e "${DEBIAN12_TAR:-}" ] || need mmdebstrap mmdebstrap
need python3 python3
[ "$(id -u)" -eq 0 ] || skip_all "needs root"
unshare --mount --pid --fork true 2>/dev/null || skip_all "mount and process namespaces are not allowed here"
scratch=$(mktemp -d) || exit 99
trap 'rm -rf --one-file-system "$scratch"' EXIT

base=${DEBIAN12_TAR:-$scratch/base.tar}

# fresh FOLDER: there is nobody to answer a question, and nobody to be but root.
fresh()
{
    [ -e "$base" ] || mmdebstrap --variant=minbase bookworm "$base" || return 1
    mkdir -p "$1" && tar -C "$1" -xf "$base" &&
        echo 'APT::Get::Assume-Yes "true";' >"$1/etc/apt/apt.conf.d/00yes" &&
        printf '#!/bin/sh\nexec "$@"\n' >"$1/usr/local/bin/sudo" && chmod +x "$1/usr/local/bin/sudo" &&
        cp -L /etc/resolv.conf "$1/etc/" && copy_tree "$top" "$1/root/sources"
}

# follow WAY
follow()
{
    local root=$scratch/$1
    # shellcheck disable=SC2016 # expanded inside
    python3 "$here/tutorial.py" "$top/docs/tutorial.md" "$1" unshare --mount --pid --fork --kill-child bash -c '
        mount --make-rprivate / && mount --bind "$1" "$1" && mount -t proc proc "$1/proc" &&
            mount --rbind /dev "$1/dev" && mount -t tmpfs tmpfs "$1/dev/shm" && mount --rbind /sys "$1/sys" &&
            exec chroot "$1" env -i HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive IPATH_NO_BACKTRACE=1 \
                PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin sh -c "cd /root/sources && exec bash"' bash "$root" \
        >"$scratch/$1.log" 2>&1 || {
        cat "$scratch/$1.log"
        return 1
    }
}

[ $# -gt 0 ] || set -- source package
for way in "$@"; do
    check "a fresh Debian 12 ($way)" fresh "$scratch/$way"
    check "docs/tutorial.md, $way" follow "$way"
    sed -n 's/^== /    /p' "$scratch/$way.log" | tail -n 2
    [ -z "${TUTORIAL_KEEP:-}" ] || mv "$scratch/$way.log" "$scratch/$way"/root/*.deb "$scratch/$way"/root/*.changes \
        "$TUTORIAL_KEEP" 2>/dev/null
    rm -rf --one-file-system "${scratch:?}/$way"
done
finish
