# SPDX-License-Identifier: MIT OR Apache-2.0
# Draws the tables from lines "FIGURE 12|13 method column value" and "FOOTPRINT part method bytes".
# Of several runs the least and the greatest are left out (the paper, section 3).

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

function mean(figure, name, at,    key, i, n, least, greatest, sum) {
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

function head(title, figure,    i, line, rule) {
    printf "\n### %s\n\n", title
    line = "| method |"; rule = "|---|"
    for (i = 1; i <= column_count[figure]; i++) {
        line = line " " (figure == 13 ? "(" columns[figure, i] "," columns[figure, i] ")" : columns[figure, i]) " |"
        rule = rule "---|"
    }
    print line; print rule
}

function figure_12(    i, j, line, slow) {
    head("Figure 12: instructions an operation (times fewer than by system call)", 12)
    for (i = 1; i <= method_count; i++) {
        line = "| " methods[i] " |"
        for (j = 1; j <= column_count[12]; j++) {
            slow = mean(12, "system-call", columns[12, j])
            line = line sprintf(" %.1f (%.1f) |", mean(12, methods[i], columns[12, j]) / 1000 / nanoseconds,
                slow / mean(12, methods[i], columns[12, j]))
        }
        print line
    }
}

function figure_13(    i, j, line, slow) {
    head("Figure 13: items in a million instructions (times as many as by system call)", 13)
    for (i = 1; i <= method_count; i++) {
        line = "| " methods[i] " |"
        for (j = 1; j <= column_count[13]; j++) {
            slow = mean(13, "system-call", columns[13, j])
            line = line sprintf(" %.1f (%.1f) |", mean(13, methods[i], columns[13, j]) * nanoseconds / 1000,
                slow ? mean(13, methods[i], columns[13, j]) / slow : 0)
        }
        print line
    }
}

function table_1(    i, j, line) {
    printf "\n### Table 1: footprint in KB\n\n| |"
    for (i = 1; i <= method_count; i++) printf " %s |", methods[i]
    printf "\n|---|"
    for (i = 1; i <= method_count; i++) printf "---|"
    printf "\n"
    for (j = 1; j <= part_count; j++) {
        line = "| " parts[j] " |"
        for (i = 1; i <= method_count; i++)
            line = line ((parts[j], methods[i]) in weight ? sprintf(" %.2f |", weight[parts[j], methods[i]] / 1024) : " - |")
        print line
    }
    line = "| total |"
    for (i = 1; i <= method_count; i++) line = line sprintf(" %.2f |", total[methods[i]] / 1024)
    print line
}

END {
    figure_12()
    figure_13()
    table_1()
}
