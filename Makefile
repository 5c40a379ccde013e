# The whole developer interface. Every target sets up what it needs: a virtual environment in .venv,
# made with python3 (>= 3.11) and pip alone, from the hashes in requirements.lock.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test lint bench clean lock help

help:
	@echo "make demo   fly a real trace under four policies; page in build/demo/report.html"
	@echo "make test   run the tests"
	@echo "make lint   formatting, style, types, import directions"
	@echo "make bench  speed and memory figures"
	@echo "make lock   resolve requirements.lock again (needs network)"

# Some systems ship python3 without ensurepip: then the outer pip installs into a bare environment.
$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "windtunnel needs Python >= 3.11; found $$($(PYTHON) --version)."; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) 2>/dev/null || \
	  $(PYTHON) -m venv --without-pip $(VENV)
	$(BIN)/python -m pip --version >/dev/null 2>&1 && pip="$(BIN)/python -m pip" || \
	  pip="$(PYTHON) -m pip --python $(BIN)/python"; \
	$$pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock && \
	$$pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: $(STAMP)
	$(BIN)/windtunnel demo --out build/demo

test: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist loadscope

lint: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(STAMP)
	$(BIN)/python -m pytest benchmarks -p no:xdist -q -s

lock: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/python scripts/lock.py

clean:
	rm -rf $(VENV) build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
