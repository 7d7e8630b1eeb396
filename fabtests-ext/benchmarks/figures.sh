# SPDX-License-Identifier: BSD-3-Clause
#
# Medians and ratios, for benchmarks that are scripts.

# middle LINES: the median of sorted ones
middle()
{
    sed -n "$((($(wc -l <<<"$1") + 1) / 2))p" <<<"$1"
}

ratio()
{
    awk -v a="$1" -v b="$2" 'BEGIN { print (a > 0 && b > 0 ? sprintf("%.3f", a / b) : "-") }'
}
