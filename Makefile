# Each target works on a fresh machine with CPython >= 3.11 (venv, pip) and make.
PYTHON ?= python3
BIN := .venv/bin
# One process for each core.
PYTEST := -m pytest --numprocesses auto --maxprocesses 4

.PHONY: help run test oldest lint types layers check bench docs clean

help:
	@echo "make run    the quickstart: five Jacobians, explained and timed"
	@echo "make test   the test suite"
	@echo "make oldest the test suite with the oldest NumPy, SciPy and networkx that are allowed"
	@echo "make check  lint, types and layers"
	@echo "make bench  the speed table (needs the bench extra)"
	@echo "make docs   the documentation as web pages, in site/"

.venv/installed: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	@touch $@

# The demo needs no tools for development, which take a minute to install.
.venv/demo: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[plot]"
	@touch $@

run: $(or $(wildcard .venv/installed),.venv/demo)
	$(BIN)/python examples/quickstart.py

test: .venv/installed
	$(BIN)/python $(PYTEST)

oldest: pyproject.toml
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check --editable ".[test]" \
		"numpy==2.0.*" "scipy==1.13.*" "networkx==3.2.*" "threadpoolctl==3.1.*"
	.venv-oldest/bin/python $(PYTEST)

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/installed
	$(BIN)/mypy

layers: .venv/installed
	$(BIN)/lint-imports

check: lint types layers

bench: .venv/installed
	$(BIN)/python -m benchmarks

docs: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[docs]"
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

clean:
	rm -rf .venv .venv-oldest site .pytest_cache .mypy_cache .ruff_cache .hypothesis
