# Two commands do everything on a fresh machine: make demo, make test. Both need only Python and make.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test setup check unit wheel clean

demo: setup
	$(BIN)/dialemb demo --output demo

test: setup check unit wheel

setup: .venv/.ready

.venv/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip -c constraints.txt
	$(BIN)/python -m pip install --quiet -c constraints.txt torch
	$(BIN)/python -m pip install --quiet -c constraints.txt --editable ".[dev]"
	touch $@

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

unit: setup
	$(BIN)/python -m pytest

# The built wheel, in an environment that holds nothing else, does the demo's steps.
wheel: setup
	rm -rf dist .venv-wheel build/wheel-demo
	$(BIN)/python -m build --wheel --outdir dist > build-wheel.log 2>&1 || (cat build-wheel.log; exit 1)
	rm -f build-wheel.log
	$(PYTHON) -m venv .venv-wheel
	.venv-wheel/bin/python -m pip install --quiet -c constraints.txt torch
	.venv-wheel/bin/python -m pip install --quiet -c constraints.txt "$$(ls $(CURDIR)/dist/*.whl)[demo]"
	cd / && $(CURDIR)/.venv-wheel/bin/dialemb demo --output $(CURDIR)/build/wheel-demo --max-steps 3

clean:
	rm -rf .venv .venv-wheel build dist demo .mypy_cache .pytest_cache .ruff_cache
