#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The short form of mutants.sh.

exec "$(dirname "$0")/mutants.sh" no_binding key_read_too_early iovec_on_the_stack no_order
