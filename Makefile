# `make run` and `make test` are all a newcomer needs; each does its own set-up.
.PHONY: run test bench setup install ci clean

run: setup
	@scripts/cargo build --release --quiet -p kyocho
	@target/release/kyocho tour

test: setup
	@scripts/test

bench: setup
	@bench/run

setup:
	@scripts/setup

install: setup
	@scripts/install "$${PREFIX:-/usr/local}"

ci:
	@.ci/run

clean:
	@scripts/cargo clean
