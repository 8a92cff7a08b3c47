# Two commands: `make run` and `make test`. Each makes what it needs first. ARGS is handed on.

SHELL := /bin/sh
VENV := .venv
PY := $(VENV)/bin/python
ARGS ?=
export RECOURSE_STARTED := $(shell date +%s)

.PHONY: help run test test-all check format lock simulate bench chaos base-packages test-packages bench-packages chromium
.DEFAULT_GOAL := help

help:  ## this list
	@echo 'Recourse. Each command makes what it needs first.'
	@sed -n 's/^\([a-z-]*\):.*## /  make \1|/p' Makefile | while IFS='|' read -r name what; do printf '%-18s %s\n' "$$name" "$$what"; done

run: base-packages  ## start everything; ARGS="--port 8000 --data var --demo|--no-demo --workers 1"
	@exec $(PY) manage.py up $(ARGS)

test: test-packages chromium  ## checks and tests; ARGS="tests/unit" runs only those tests
	@if [ -z "$(ARGS)" ]; then $(MAKE) --no-print-directory check; fi
	$(PY) -m pytest $(ARGS)

test-all: test-packages chromium  ## the same with every combination of faults
	@$(MAKE) --no-print-directory check
	$(PY) -m pytest -m '' $(ARGS)

check: test-packages  ## linters, types, import directions
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/lint-imports --no-cache
	$(VENV)/bin/mypy

format: test-packages  ## put the code into shape
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

simulate: base-packages  ## seeded runs, people, faults, clocks; ARGS="--seeds 200 --json" or ARGS="--seed 7 --trace"
	@exec $(PY) manage.py simulate $(ARGS)

bench: bench-packages  ## figures beside peers
	@exec $(PY) -m tests.bench $(ARGS)

chaos: test-packages  ## break the live stack on purpose; ARGS="kills --times 50", "outage --seconds 10", "storm --seconds 600 --seed 7"
	@exec $(PY) -m tests.chaos $(ARGS)

# Hashes are those of the published files: what this machine's pip adds from elsewhere is left out.
lock: test-packages  ## write requirements/*.lock anew from requirements/*.in
	@for name in base test bench; do \
	  echo "Locking $$name"; \
	  PIP_CONFIG_FILE=/dev/null PIP_FIND_LINKS= PIP_EXTRA_INDEX_URL= $(VENV)/bin/pip-compile --quiet --no-header \
	    --generate-hashes --allow-unsafe --strip-extras --no-emit-index-url --no-emit-find-links \
	    --output-file requirements/$$name.lock requirements/$$name.in || exit 1; \
	done

base-packages:
	@.ci/packages base

test-packages:
	@.ci/packages test

bench-packages:
	@.ci/packages bench

chromium:
	@case "$(ARGS)" in ""|*browser*) .ci/chromium ;; esac
