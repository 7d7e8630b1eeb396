#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The short form of `make check-strict`: each profile has some suites, and together they are most of them.

exec "$(dirname "$0")/suites.sh" cxi/ucp_fence_test cxi/ucp_am_test efa/ucp_tag_test opx/ucp_stream_test \
    opx/ucp_buffers_test opx/ucp_ep_test psm3/ucp_wakeup_test psm3/prov_rma_test cxi/prov_message_test worst/ucp_rma_test \
    worst/ucp_compat_test
