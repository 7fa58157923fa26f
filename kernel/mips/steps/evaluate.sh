# SPDX-License-Identifier: MIT OR Apache-2.0
# The paper's evaluation: figures 12 and 13, table 1. Times are instructions, counted by the emulator.

methods=(k1/magic ll/sc lamport system-call)

measure() { # runs
    local method name
    : >"$build/figures"
    for method in "${methods[@]}"; do
        name=bench-${method/\//-}
        say "measuring $method"
        boot "$name-12" 200 "$build/vmlinux.magic" "load=tst.ko run=bench,$method,12,$1" -cpu 24Kf $counting
        passed "$name-12" || fail "figure 12, $method: see $build/$name-12.log"
        boot "$name-13" 600 "$build/vmlinux.magic" "load=tst.ko run=bench,$method,13,$1" -cpu 24Kf $counting
        passed "$name-13" || fail "figure 13, $method: see $build/$name-13.log"
        grep -h '^FIGURE' "$build/$name-12.log" "$build/$name-13.log" >>"$build/figures"
    done
}

# text + data + bss of all lines of size(1) output
total() {
    awk '$1 ~ /^[0-9]+$/ { n += $4 } END { print n + 0 }' "$@"
}

bytes() { # object...
    mipsel-linux-gnu-size "$@" | total
}

# "FOOTPRINT part method bytes"
weigh() {
    local system_call
    system_call=$(mipsel-linux-gnu-nm -S "$build/vmlinux.stock" |
        awk '$4 ~ /sysmips/ && !seen[$1]++ { printf "%s0x%s", plus, $2; plus = "+" }')
    {
        echo "FOOTPRINT library k1/magic $(bytes "$build/guest/tst.o")"
        echo "FOOTPRINT module k1/magic $(bytes "$build/module/tst.o")"
        echo "FOOTPRINT kernel k1/magic $(($(total "$build/size.magic") - $(total "$build/size.stock")))"
        echo "FOOTPRINT library ll/sc $(bytes "$build/guest/llsc.o")"
        echo "FOOTPRINT library lamport $(bytes "$build/guest/lamport.o")"
        echo "FOOTPRINT daemon lamport $(bytes "$build/guest/daemon.o")"
        echo "FOOTPRINT library system-call $(bytes "$build/guest/syscall.o")"
        echo "FOOTPRINT kernel system-call $((${system_call:-0}))"
    } >>"$build/figures"
}

read_figures() { # program
    awk -v nanoseconds="$nanoseconds_per_instruction" -f steps/figures.awk -f "steps/$1" "$build/figures"
}

report() {
    mkdir -p ../../bench/out
    cp "$build/figures" ../../bench/out/mips.txt
    read_figures json.awk >../../bench/out/mips.json
    read_figures report.awk | tee ../../bench/out/mips.md
}
