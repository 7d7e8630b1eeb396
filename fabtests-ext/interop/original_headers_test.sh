#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What the public-API suites of UCP share compiles with the headers of the installed UCX, so that `make check-original`
# can build them.

here=$(cd "$(dirname "$0")" && pwd)
. "$here/report.sh"
top=$(cd "$here/../.." && pwd)
[ -r /usr/include/ucp/api/ucp.h ] || skip_all "UCX's headers are not there (package libucx-dev)"

shared_headers_compile()
{
    printf '#include "fabtests-ext/common/%s.h"\n' ucp_entity ucp_pair ucp_region |
        ${CXX:-g++} -std=c++20 -w -I"$top" -x c++ -fsyntax-only -
}

check "what suites share compiles with UCX's headers" shared_headers_compile
finish
