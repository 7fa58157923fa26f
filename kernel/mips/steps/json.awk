# SPDX-License-Identifier: MIT OR Apache-2.0
# The same figures and table as JSON: one line a value, so that a difference of two is readable.
# Needs figures.awk.

function separator(is_last) { return is_last ? "\n" : ",\n" }

# Methods by columns: the mean with its least and greatest run, and the ratio to the system call.
function cells(figure, column_name, unit, is_cost,    i, j, slow, here, ratio) {
    for (i = 1; i <= method_count; i++)
        for (j = 1; j <= column_count[figure]; j++) {
            slow = mean(figure, "system-call", columns[figure, j])
            here = mean(figure, methods[i], columns[figure, j])
            ratio = !here || !slow ? "null" : sprintf("%.3f", is_cost ? slow / here : here / slow)
            printf "    { \"method\": \"%s\", \"%s\": %s, \"%s\": %.3f, \"least\": %.3f, \"most\": %.3f, \"runs\": %d, \"over_system_call\": %s }%s", \
                methods[i], column_name, figure == 12 ? "\"" columns[figure, j] "\"" : columns[figure, j], unit, \
                scaled(figure, here), scaled(figure, least), scaled(figure, greatest), \
                runs[figure, methods[i], columns[figure, j]], ratio, \
                separator(i == method_count && j == column_count[figure])
        }
}

function scaled(figure, number) { return figure == 12 ? instructions(number) : per_million(number) }

function weights(    i, j) {
    for (i = 1; i <= method_count; i++) {
        printf "    { \"method\": \"%s\"", methods[i]
        for (j = 1; j <= part_count; j++)
            printf ", \"%s\": %s", parts[j], (parts[j], methods[i]) in weight ? weight[parts[j], methods[i]] : "null"
        printf ", \"total\": %d }%s", total[methods[i]], separator(i == method_count)
    }
}

END {
    print "{\n  \"machine\": \"qemu, Malta board, 24Kf, one CPU\",\n  \"unit\": \"instructions\","
    print "  \"figure_12\": ["
    cells(12, "operation", "instructions", 1)
    print "  ],\n  \"figure_13\": ["
    cells(13, "producers", "items_per_million_instructions", 0)
    print "  ],\n  \"table_1_bytes\": ["
    weights()
    print "  ]\n}"
}
