# SPDX-License-Identifier: MIT OR Apache-2.0
# Reads the lines "FIGURE 12|13 method column value" and "FOOTPRINT part method bytes". The means
# omit the least and the greatest run (the paper, section 3). report.awk and json.awk print them.

$1 == "FIGURE" {
    key = $2 SUBSEP $3 SUBSEP $4
    value[key, ++runs[key]] = $5
    method($3)
    column($2, $4)
}

$1 == "FOOTPRINT" {
    method($3)
    part($2)
    weight[$2, $3] = $4
    total[$3] += $4
}

function method(name) {
    if (!(name in method_seen)) { method_seen[name] = 1; methods[++method_count] = name }
}

function column(figure, name) {
    if (!((figure, name) in column_seen)) {
        column_seen[figure, name] = 1
        columns[figure, ++column_count[figure]] = name
    }
}

function part(name) {
    if (!(name in part_seen)) { part_seen[name] = 1; parts[++part_count] = name }
}

# Sets `least` and `greatest` of all runs.
function mean(figure, name, at,    key, i, n, sum) {
    key = figure SUBSEP name SUBSEP at
    n = runs[key]
    if (n == 0) return 0
    least = greatest = value[key, 1]
    for (i = 1; i <= n; i++) {
        sum += value[key, i]
        if (value[key, i] < least) least = value[key, i]
        if (value[key, i] > greatest) greatest = value[key, i]
    }
    return n > 2 ? (sum - least - greatest) / (n - 2) : sum / n
}

# Figure 12 is measured in picoseconds an operation, figure 13 in items a second.
function instructions(picoseconds) { return picoseconds / 1000 / nanoseconds }
function per_million(items) { return items * nanoseconds / 1000 }
