# SPDX-License-Identifier: MIT OR Apache-2.0
# The figures and the table as Markdown. Needs figures.awk.

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
            line = line sprintf(" %.1f (%.1f) |", instructions(mean(12, methods[i], columns[12, j])),
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
            line = line sprintf(" %.1f (%.1f) |", per_million(mean(13, methods[i], columns[13, j])),
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
