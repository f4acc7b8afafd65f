# Two commands do everything: `make demo` and `make test`. Both install what they need into .venv.
SHELL := /bin/bash
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet install --constraint constraints.txt

.PHONY: demo test lint docs notebooks wheel bench clean

demo: $(VENV)/.run
	$(BIN)/armid demo --out demo

test: $(VENV)/.test lint
	$(BIN)/python -m pytest --numprocesses 2

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

notebooks: $(VENV)/.run
	$(BIN)/python tools/notebooks.py notebooks
	cp examples/*.urdf notebooks/

# The wheel in dist/, installed into an environment of its own and tried on an example.
wheel: $(VENV)/bin/python
	rm -rf dist build/try
	$(BIN)/python -m pip --disable-pip-version-check --quiet wheel --no-deps --wheel-dir dist .
	$(PYTHON) -m venv build/try
	build/try/bin/python -m pip --disable-pip-version-check --quiet install dist/armid-*.whl
	build/try/bin/armid --version
	cd build/try && bin/python ../../tools/try_wheel.py ../../examples/trio.urdf

bench: $(VENV)/.bench
	$(BIN)/python -m bench

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "armid: needs Python 3.11 or newer (Debian/Ubuntu: apt-get install python3.11)"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "armid: $$($(PYTHON) --version) is too old, Python 3.11 or newer is needed (set PYTHON=...)"; exit 1; }
	@$(PYTHON) -m venv $(VENV) 2>/dev/null || { rm -rf $(VENV); echo "armid: cannot create $(VENV) (Debian/Ubuntu: apt-get install python3-venv)"; exit 1; }

# An editable install is compiled when it is first imported; where that may not be written, it would be compiled at every start.
COMPILED := $(BIN)/python -m compileall -q src/armid

$(VENV)/.run: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PIP) --editable '.[sim,symbolic,report]'
	@$(COMPILED)
	@touch $@

$(VENV)/.test: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PIP) --editable '.[test]'
	@$(COMPILED)
	@touch $@ $(VENV)/.run

$(VENV)/.docs: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PIP) --editable '.[sim,symbolic,report,docs]'
	@touch $@ $(VENV)/.run

$(VENV)/.bench: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PIP) --editable '.[bench]'
	@touch $@ $(VENV)/.run

clean:
	rm -rf $(VENV) demo armid-out site notebooks
