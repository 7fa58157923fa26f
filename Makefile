# `make run` and `make test` are all a newcomer needs; each does its own set-up.
.PHONY: run test bench mips setup install ci clean

run: setup
	@scripts/cargo build --release --quiet -p kyocho-cli
	@target/release/kyocho tour

test: setup
	@scripts/test

bench: setup
	@bench/run

# Paper 0's original, on a MIPS Linux in an emulator: builds a kernel, tests, measures.
mips:
	@kernel/mips/run

setup:
	@scripts/setup

install: setup
	@scripts/install "$${PREFIX:-/usr/local}"

ci:
	@.ci/run

clean:
	@scripts/cargo clean
