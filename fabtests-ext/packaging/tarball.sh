# SPDX-License-Identifier: BSD-3-Clause
#
# Sourced by the tests that build from a copy of this tree, after report.sh: from what `make dist` makes of it, or from
# the tree itself.

# give_objects FOLDER DIRECTORY...: what has been compiled in these of the build tree, where this runs. The first make
# that reads FOLDER/take.mk and begins in another build directory has it there and does not compile it once more: it
# comes from the same sources.
give_objects()
{
    local folder=$1 directory
    local -a there=()
    shift
    for directory in "$@"; do
        [ ! -d "$directory" ] || there+=("$directory")
    done
    mkdir -p "$folder/objects" || return 1
    # unity/*.cc: what the objects of whole folders are compiled from.
    [ ${#there[@]} -eq 0 ] || find "${there[@]}" \( -name '*.o' -o -name '*.lo' -o -name .dirstamp \
        -o -path 'unity/*.cc' \) -print0 | tar --null -T - -c | tar -C "$folder/objects" -x || return 1
    cat >"$folder/take.mk" <<TAKE
ifneq (\$(wildcard config.status),)
ifneq (\$(CURDIR),$(pwd -P))
\$(shell cp -Rp '$folder/objects/.' . && rm -r '$folder/objects' '$folder/take.mk')
endif
endif
TAKE
}

# make_tarball FOLDER: puts it there, and nothing else anywhere. `make dist` has one name for it and works in the build
# directory, which several tests have at the same time.
make_tarball()
{
    local status lock=fabtests-ext/packaging/dist.lock
    mkdir -p "${lock%/*}" && exec 8>"$lock" && flock 8 || return 1
    env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL XZ_OPT=-0 make dist 8>&- && mv ./ucxlike-*.tar.xz "$1/"
    status=$?
    exec 8>&-
    return $status
}

# copy_tree TREE FOLDER: as it is, without what git ignores.
copy_tree()
{
    mkdir -p "$2" || return 1
    if [ -e "$1/.git" ]; then
        git -C "$1" ls-files -z --cached --others --exclude-standard | tar -C "$1" --null -T - -c | tar -C "$2" -x
    else
        tar -C "$1" -c . | tar -C "$2" -x
    fi
}
