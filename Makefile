# `make run` and `make test` are all a newcomer needs; each does its own set-up.
.PHONY: run test bench mips setup install dist ci clean

run: setup
	@scripts/run

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

# What users are given, in target/dist: a tarball and a Debian package.
dist: setup
	@scripts/dist

ci:
	@.ci/run

clean:
	@scripts/cargo clean
