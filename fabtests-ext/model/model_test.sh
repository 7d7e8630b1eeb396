#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The tests of the model. They measure nothing.
here=$(cd "$(dirname "$0")" && pwd)
command -v python3 >/dev/null || {
    echo "python3 is not installed"
    exit 77
}
cd "$here" && PYTHONDONTWRITEBYTECODE=1 exec python3 -m unittest model_test
