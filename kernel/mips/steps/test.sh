# SPDX-License-Identifier: MIT OR Apache-2.0
# Boots the guest and judges what its console says.

failures=0

# An emulated machine: the console goes to $build/LOG.log. Never longer than that many seconds.
boot() { # log seconds kernel words-of-the-command-line emulator-options...
    local log=$build/$1.log seconds=$2 kernel=$3 words=$4
    shift 4
    timeout -s KILL "$seconds" qemu-system-mipsel -M malta -m 128 -nographic -nic none -vga none -no-reboot -monitor none \
        -serial stdio -kernel "$kernel" -initrd "$build/initramfs" \
        -append "console=ttyS0 quiet panic=-1 hpt_frequency=$hpt_frequency $words" "$@" </dev/null >"$log" 2>&1 || true
    tr -d '\r' <"$log" >"$log.text" && mv "$log.text" "$log"
}

passed() { # log: the program ended, and well
    grep -q '^EXIT 0$' "$build/$1.log" && ! grep -q '^FAIL' "$build/$1.log"
}

judge() { # log what
    local count
    count=$(grep -c '^PASS' "$build/$1.log" || true)
    if passed "$1"; then
        say "ok    $2 ($count passed)"
        grep '^SKIP' "$build/$1.log" | sed 's/^SKIP /      skipped /' || true
    else
        say "FAILED $2: see $build/$1.log"
        grep '^FAIL' "$build/$1.log" || tail -n 3 "$build/$1.log"
        failures=$((failures + 1))
    fi
}

# A kernel or a module with a part left out: that test must notice.
must_fail() { # log test words
    boot "$1" 200 "$build/vmlinux.flawed" "$3 run=tests" -cpu 24Kf
    if grep -q "^FAIL $2:" "$build/$1.log"; then
        say "ok    $1 is noticed by $2"
    else
        say "FAILED $1 is not noticed by $2: see $build/$1.log"
        failures=$((failures + 1))
    fi
}

test_contract() {
    boot contract 100 "$build/vmlinux.magic" "load=tst.ko run=tests" -cpu 24Kf
    judge contract "tests, 24Kf"
    boot contract-rixi 100 "$build/vmlinux.magic" "load=tst.ko run=tests ieee754=relaxed nohtw" -cpu P5600
    judge contract-rixi "tests, P5600 (refuses loads from the page)"
}

test_mutants() {
    local flaw=k1magic.flaws
    must_fail without-refill k1_is_magic_after_a_refill "load=tst.ko $flaw=1"
    must_fail without-load k1_is_magic_after_a_load_of_an_invalid_page "load=tst.ko $flaw=2"
    must_fail without-store every_slot_restarts_after_an_invalid_page_at_its_store "load=tst.ko $flaw=4"
    must_fail without-modify every_slot_restarts_after_a_clean_page_at_its_store "load=tst.ko $flaw=8"
    must_fail any-access a_load_of_the_magic_address_is_not_restarted "load=tst.ko $flaw=16"
    must_fail any-address a_store_of_the_page_to_another_address_is_not_restarted "load=tst.ko $flaw=32"
    must_fail any-place a_store_to_the_magic_address_from_elsewhere_is_not_restarted "load=tst.ko $flaw=64"
    must_fail slot-clobbers every_slot_restarts_after_a_clean_page_at_its_store "load=tst_clobber.ko"
    must_fail slot-overlong every_slot_restarts_after_a_clean_page_at_its_store "load=tst_overlong.ko"
    must_fail slot-plain every_slot_restarts_after_a_clean_page_at_its_store "load=tst_plain.ko"
}

# One instruction at a time, so that an interrupt can come between any two.
test_stress() {
    boot stress 400 "$build/vmlinux.flawed" "load=tst.ko run=stress,tst,10" -cpu 24Kf $counting -singlestep &
    boot stress-rseq 400 "$build/vmlinux.magic" "run=stress,rseq,10" -cpu 24Kf $counting -singlestep &
    wait
    boot deaths 400 "$build/vmlinux.magic" "run=deaths" -cpu 24Kf $counting -singlestep
    judge deaths "Lamport's algorithm, participants killed anywhere"
    judge stress "stress, /dev/tst"
    judge stress-rseq "stress, rseq"
    if fetch_debian_kernel; then
        # This kernel cannot be told the frequency of its timer: it measures against a clock that counts, too,
        # which takes too long one instruction at a time.
        boot stress-debian 400 "$(ls "$build"/debian/boot/vmlinuz-*)" "run=stress,rseq,10" -cpu 24Kf -rtc clock=vm $counting
        judge stress-debian "stress, rseq, Debian's own kernel"
    else
        say "skipped Debian's own kernel: it could not be fetched, see $build/debian.log"
    fi
}
