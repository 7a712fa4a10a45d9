# Two commands do everything on a fresh machine: make demo, make test.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SMALL := $(VENV)/.ready-demo
READY := $(VENV)/.ready
PYTEST := $(BIN)/python -m pytest -n 2 --dist loadgroup --no-loadscope-reorder
SOURCES := src tests benchmarks examples docs/*.py
INSTALL := $(BIN)/uv pip install --quiet --python $(BIN)/python

PINNED := $(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-annotate --no-header --quiet

# Python keeps what it has compiled, whatever the machine's image says: hundreds of short processes start in these tests.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup setup-all demo test quick test-slow proof lint style types kernels format bench docs dist programs browser java r constraints clean

help:  ## what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

setup: $(SMALL)  ## create .venv and install stirred with what the demo needs; neither Spark nor a browser

setup-all: $(READY)  ## add all that tests, benchmarks and documentation need

$(SMALL): pyproject.toml tools/demo.txt tools/uv.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "stirred needs Python 3.11 or newer; $(PYTHON) is older. fix: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV) …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r tools/uv.txt
	@$(INSTALL) --require-hashes -r tools/demo.txt
	@$(INSTALL) --no-build-isolation --no-deps -e .
	@touch $(SMALL)

$(READY): $(SMALL) constraints.txt
	@echo "installing what the tests need into $(VENV) …"
	@$(INSTALL) --require-hashes -r constraints.txt
	@touch $(READY)

demo: setup  ## run the main job on an embedded synthetic census; ends by naming the report to open
	@$(BIN)/stirred demo --out demo

lint: style types  ## ruff (lint, format) and mypy --strict

style: setup-all
	@$(BIN)/ruff check $(SOURCES)
	@$(BIN)/ruff format --check $(SOURCES)

types: setup-all
	@nice $(BIN)/mypy

format: setup-all  ## let ruff rewrite what it can
	@$(BIN)/ruff check --fix $(SOURCES)
	@$(BIN)/ruff format $(SOURCES)

test:  ## lint, then every test but the slow ones
	@$(MAKE) --no-print-directory -j 3 programs style kernels
	@$(MAKE) --no-print-directory -j 2 types quick

# the tests alone; mypy works beside them, in what two processes leave of two cores
quick: setup-all
	@$(PYTEST) -m "not slow"

# what the demo needs is enough: kernels are compiled while the rest is fetched
kernels: setup
	@$(BIN)/python tools/compile_kernels.py || echo "not every kernel was compiled beforehand: the tests will say why"

test-slow: setup-all browser java r  ## the slower statistical and scale checks, and slow code blocks of the docs
	@$(PYTEST) -m slow

proof: setup-all  ## check the machine-checked proofs (Coq, 1.6 GB), and Stirred against what Coq computes
	@nice $(BIN)/python formal/check.py
	@$(BIN)/python -m pytest -q tests/unit/formal

bench: setup-all  ## every benchmark at its default size
	@for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

docs: setup-all  ## the documentation as HTML in build/docs
	@$(BIN)/python -m sphinx -q -W -b html docs build/docs
	@echo "open build/docs/index.html"

dist: setup-all  ## sdist and wheel in build/dist, checked, installed in an empty environment and run there; fetches packages
	@$(BIN)/python tools/check_dist.py

programs:  # one after the other, since both may call apt-get
	@bash tools/browser
	@bash tools/java

browser:
	@bash tools/browser

java:
	@bash tools/java

r:
	@bash tools/r

constraints: setup  ## choose the pinned versions anew (hashes, no addresses)
	@$(PINNED) pyproject.toml --extra test --extra docs --upgrade -o constraints.txt
	@$(PINNED) pyproject.toml --extra report --extra solver --extra build -c constraints.txt --upgrade -o tools/demo.txt
	@echo 'uv>=0.8,<1' | $(PINNED) - --upgrade -o tools/uv.txt

clean:  ## remove what was built
	@rm -rf $(VENV) build demo .pytest_cache .mypy_cache .ruff_cache
