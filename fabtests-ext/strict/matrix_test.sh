#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# docs/fabrics.md has the table of what is native and what is supplied as the library says it.

exec "$(dirname "$0")/../scripts/core-matrix" --check
