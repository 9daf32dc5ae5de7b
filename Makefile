# `make demo` shows what wiretape does, `make test` checks that it works. Nothing needs to be installed first but
# Python: each target builds its environment in $(VENV) and refreshes it when pyproject.toml changes.
#
#   make test PYTHON=python3.12 VENV=.venv-3.12     another Python, an environment of its own
#   make test TESTS=tests/unit                      some of the tests
#   make fuzz SECONDS=300                           longer than a minute for each decoder
#   make clients CASES="codex pi-"                  some of the clients

VENV ?= .venv
PYTHON ?=
JOBS ?= 3
SECONDS ?= 60
TESTS ?=
# What touches the libraries that wiretape patches.
COMPAT ?= $(addprefix tests/unit/adapters/,inprocess mitm http1 replay_server pytest) tests/plugin/test_guard.py \
	$(wildcard tests/integration/test_inprocess_*.py) $(wildcard tests/integration/test_record_*.py) \
	$(wildcard tests/integration/test_replay_*.py)

BIN := $(VENV)/bin

# Without it each worker of the tests, and each program that they start, compiles all of wiretape anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help venv demo test test-all compat check corpus fuzz torture bench captures clients clean

help:
	@echo "make demo       record, replay and explain a small agent"
	@echo "make test       run the tests, without the slow ones (about two minutes)"
	@echo "make test-all   run all tests (about ten minutes)"
	@echo "make compat     run the tests of patched libraries with the lowest versions that pyproject.toml allows"
	@echo "make check      formatting, lint, types and tests: what must pass before a commit"
	@echo "make corpus     decode recorded traffic of other projects, where it is there"
	@echo "make fuzz       feed the decoders with strange traffic: a minute each"
	@echo "make torture    kills, full disks, planted secrets, escapes, mutated tapes: minutes"
	@echo "make bench      measure, printed as ratios"
	@echo "make captures   record captures/ anew"
	@echo "make clients    record and replay the real clients that are installed (minutes)"
	@echo "make clean      remove what these made"

venv:
	@.ci/venv '$(VENV)' '$(PYTHON)'

demo: venv
	@$(BIN)/wiretape demo

test: venv
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal $(TESTS)

test-all: venv
	WIRETAPE_TESTS=all $(BIN)/python -m pytest -n $(JOBS) --dist worksteal $(TESTS)

# Old versions warn of one another: only what the tests assert counts here.
compat:
	@python=$$(.ci/pythons | grep -m 1 '3\.12') || { echo "make compat needs Python 3.12"; exit 1; }; \
	.ci/lowest .venv-lowest "$$python" && \
	WIRETAPE_TESTS=all .venv-lowest/bin/python -m pytest -n $(JOBS) --dist worksteal -p no:anyio \
		-W ignore $(COMPAT)

check: venv
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal

corpus: venv
	@$(BIN)/python -m tests.corpus.proof
	@$(BIN)/python -m tests.corpus.caches

fuzz: venv
	@SECONDS=$(SECONDS) $(BIN)/python -m tests.fuzz.run

torture: venv
	@failed=; for campaign in $$(grep -l '^def main(argv' tests/torture/*.py); do \
		name=$$(basename "$$campaign" .py); \
		$(BIN)/python -m "tests.torture.$$name" || failed="$$failed $$name"; \
	done; test -z "$$failed" || { echo "failed:$$failed"; exit 1; }

bench: venv
	@missed=; for bench in tests/benchmarks/bench_*.py; do \
		echo "== $$bench"; $(BIN)/python "$$bench" || missed="$$missed $$bench"; \
	done; test -z "$$missed" || { echo "missed its target:$$missed"; exit 1; }

captures: venv
	$(BIN)/python -m tests.support.make_captures

clients: venv
	$(BIN)/python tests/clients/run.py $(CASES)

clean:
	rm -rf .venv .venv-ci-* build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -not -path './.venv*' -prune -exec rm -rf {} +
