# A newcomer needs only `make run` and `make test`. Each installs missing tools first.
.PHONY: run test bench paper mips setup install dist ci clean

run: setup
	@scripts/run

test: setup
	@scripts/test

bench: setup
	@bench/run

# Every table and figure of the five papers beside what they published, as a page for the book.
paper: setup
	@bench/paper --out docs/measured

# Paper 0's original method on a MIPS Linux in an emulator: builds a kernel, tests it, measures.
mips:
	@kernel/mips/run

setup:
	@scripts/setup

install: setup
	@scripts/install "$${PREFIX:-/usr/local}"

# Builds a tarball and a Debian package for users, in target/dist.
dist: setup
	@scripts/dist

ci:
	@.ci/run

clean:
	@scripts/cargo clean
