#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The installed tree as README.md promises it: every file at its place, both pkg-config files good for a
# C and a C++ program, the provider found by libfabric.

here=$(dirname "$0")
. "$here/../interop/report.sh"
. "$here/../interop/installed.sh"
scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT

files_are_there()
{
    local file missing=0
    for file in "$libdir"/{libfabric/libucxlike-fi.so,libucxlike.so.0,pkgconfig/ucxlike.pc} \
        "$dropin"/{libucp.so.0,libuct.so.0,base/libucs.so.0,base/libucm.so.0,pkgconfig/ucx.pc} \
        "$prefix"/include/ucxlike/{ucp/api/ucp.h,uct/api/uct.h,ucs/type/status.h} "$prefix/bin/ucxlike_info"; do
        [ -e "$file" ] || {
            echo "missing: $file"
            missing=1
        }
    done
    return $missing
}

write_program()
{
    cat <<'PROGRAM'
#include <ucp/api/ucp.h>
#include <stdio.h>
int main(void)
{
    ucp_params_t params = {0};
    ucp_context_h context;
    unsigned major, minor, release;
    ucp_get_version(&major, &minor, &release);
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_TAG;
    if (ucp_init(&params, NULL, &context) != UCS_OK) {
        return 1;
    }
    printf("%u.%u\n", major, minor);
    ucp_cleanup(context);
    return 0;
}
PROGRAM
}

program_with_ucxlike_pc()
{
    build ucxlike "$scratch/program.c" "$scratch/program" -std=c99 -Wall -Werror &&
        with_library "$scratch/program"
}

cxx_program_with_ucxlike_pc()
{
    cp "$scratch/program.c" "$scratch/program.cc"
    CC=${CXX:-c++} build ucxlike "$scratch/program.cc" "$scratch/program_cxx" -Wno-missing-field-initializers &&
        with_library "$scratch/program_cxx"
}

# A UCX consumer that finds our ucx.pc must get our libraries under UCX's names.
program_with_ucx_pc()
{
    local used
    build ucx "$scratch/program.c" "$scratch/program_ucx" -std=c99 && with_library "$scratch/program_ucx" || return
    used=$(with_library ldd "$scratch/program_ucx" | awk '/libucp\.so\.0/ { print $3 }')
    [ "$(readlink -f "$used")" = "$(readlink -f "$dropin/libucp.so.0")" ] || {
        echo "the program uses libucp '$used'"
        return 1
    }
}

# uses_ours PROGRAM: its libucp is ours.
uses_ours()
{
    local used
    used=$(ldd "$1" | awk '/libucp\.so\.0/ { print $3 }')
    [ "$(readlink -f "$used")" = "$(readlink -f "$dropin/libucp.so.0")" ] || {
        echo "the program uses libucp '$used'"
        return 1
    }
}

# As configure scripts with --with-ucx=DIR do: DIR/include, DIR/lib, and DIR/lib in the RPATH.
program_with_the_prefix()
{
    ${CC:-cc} -std=c99 "$scratch/program.c" -I"$dropin/ucx/include" -L"$dropin/ucx/lib" \
        "-Wl,-rpath,$dropin/ucx/lib" -lucp -luct -lucs -lucm -o "$scratch/program_prefix" &&
        "$scratch/program_prefix" && uses_ours "$scratch/program_prefix"
}

pkg_config_knows_the_layers()
{
    local name folder
    for name in ucx-ucs ucx-uct; do
        folder=$(PKG_CONFIG_PATH=$dropin/ucx/lib/pkgconfig pkg-config --variable=pcfiledir "$name")
        [ "$(readlink -f "$folder")" = "$(readlink -f "$dropin/pkgconfig")" ] || {
            echo "pkg-config takes $name.pc of '$folder'"
            return 1
        }
    done
    PKG_CONFIG_PATH=$dropin/ucx/lib/pkgconfig pkg-config --libs ucx-uct | grep -q -- '-luct.*-lucs'
}

program_with_cmake()
{
    command -v cmake >/dev/null || { echo "cmake is not installed"; return 77; }
    mkdir -p "$scratch/cmake" && cp "$scratch/program.c" "$scratch/cmake" &&
        cat >"$scratch/cmake/CMakeLists.txt" <<'LISTS'
cmake_minimum_required(VERSION 3.13)
project(program C)
find_package(ucx 1.13 CONFIG REQUIRED)
add_executable(program program.c)
target_link_libraries(program ucx::ucp)
LISTS
    cmake -DCMAKE_PREFIX_PATH="$dropin/ucx" -S "$scratch/cmake" -B "$scratch/cmake/build" &&
        cmake --build "$scratch/cmake/build" && uses_ours "$scratch/cmake/build/program"
}

# As modules for CMake's find_package(UCX), such as Mercury's, look for it: by the text of the header and the libraries in
# the folders of ucx.pc, which are below another root where the tree is staged.
program_with_a_find_module()
{
    local root
    command -v cmake >/dev/null || { echo "cmake is not installed"; return 77; }
    root=${prefix%"$(PKG_CONFIG_PATH=$dropin/pkgconfig pkg-config --variable=prefix ucx)"}
    mkdir -p "$scratch/module" && cp "$scratch/program.c" "$scratch/module" &&
        cat >"$scratch/module/CMakeLists.txt" <<'LISTS'
cmake_minimum_required(VERSION 3.13)
project(program C)
find_package(PkgConfig REQUIRED)
pkg_check_modules(PC_UCX REQUIRED ucx)
find_path(UCX_INCLUDE_DIR ucp/api/ucp.h HINTS ${PC_UCX_INCLUDE_DIRS})
find_library(UCP_LIBRARY NAMES ucp HINTS ${PC_UCX_LIBRARY_DIRS})
find_library(UCS_LIBRARY NAMES ucs HINTS ${PC_UCX_LIBRARY_DIRS})
foreach(part MAJOR MINOR)
  file(STRINGS ${UCX_INCLUDE_DIR}/ucp/api/ucp_version.h line REGEX "^#define UCP_API_${part}[ ]+[0-9]+$")
  string(REGEX MATCH "[0-9]+$" UCX_${part} "${line}")
endforeach()
if("${UCX_MAJOR}.${UCX_MINOR}" VERSION_LESS 1.13)
  message(FATAL_ERROR "the header has version '${UCX_MAJOR}.${UCX_MINOR}'")
endif()
add_executable(program program.c)
target_include_directories(program PRIVATE ${UCX_INCLUDE_DIR})
target_link_libraries(program ${UCP_LIBRARY} ${UCS_LIBRARY})
LISTS
    PKG_CONFIG_PATH=$dropin/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root \
        cmake -S "$scratch/module" -B "$scratch/module/build" &&
        cmake --build "$scratch/module/build" && uses_ours "$scratch/module/build/program"
}

# RTLD_NOW makes any unresolved symbol fatal, and silently so; look for them here.
provider_is_found()
{
    ldd -r "$libdir/libfabric/libucxlike-fi.so" 2>&1 | grep -i 'undefined symbol\|not found' && return 1
    command -v fi_info >/dev/null || { echo "fi_info is not installed"; return 77; }
    FI_PROVIDER_PATH=$libdir/libfabric fi_info -l | grep '^ucxlike'
}

command -v pkg-config >/dev/null || skip_all "pkg-config is not installed"
[ -n "${UCXLIKE_PREFIX:-}" ] || check "make install" stage_build_tree
check "the tree is found" find_installed
find_installed >/dev/null || finish
write_program >"$scratch/program.c"
check "files are where they are promised" files_are_there
check "a C program with ucxlike.pc" program_with_ucxlike_pc
check "a C++ program with ucxlike.pc" cxx_program_with_ucxlike_pc
check "a program with ucx.pc" program_with_ucx_pc
check "a program with the prefix in UCX's shape" program_with_the_prefix
check "pkg-config knows ucx-ucs and ucx-uct" pkg_config_knows_the_layers
check "a program with CMake's find_package(ucx)" program_with_cmake
check "a program with a find module of CMake" program_with_a_find_module
check "fi_info -l lists the provider" provider_is_found
finish
