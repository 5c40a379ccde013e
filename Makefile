# The whole developer interface. Every target sets up what it needs: a virtual environment in .venv,
# made with python3 (>= 3.11) and pip alone, from the hashes in requirements.lock. The kernels are
# compiled there with the machine's C compiler, or with one that pip installs where there is none.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PACKAGES_STAMP := $(VENV)/.installed-packages
EDITABLE_STAMP := $(VENV)/.installed-editable
STAMP := $(VENV)/.installed
SPARK_STAMP := $(VENV)/.installed-spark
RAY_STAMP := $(VENV)/.installed-ray
BROWSER_STAMP := $(VENV)/.installed-browser
DOCS_STAMP := $(VENV)/.installed-docs
KERNELS := $(wildcard src/windtunnel/kernel/* src/windtunnel/serving/kernels/*)
KERNELS := $(filter %.py %.pxd %.txt,$(KERNELS))
# Two processes; one that dies of its test, or hangs (pyproject.toml), ends the run.
TWO := -n 2 --dist loadscope --max-worker-restart 0
# Where the kernels work hard, random cases first of all.
FUZZ := tests/kernel tests/properties/test_oracle.py tests/serving/test_theory.py
ON_KERNELS := tests/kernel tests/sim tests/elastic tests/serving tests/properties/test_oracle.py \
  tests/properties/test_promises.py tests/properties/test_rounds_and_elastic.py
IN_PROCESS := --ignore-glob="*_command.py" --ignore-glob="*_commands.py"
# Some systems ship python3 without ensurepip: then the outer pip installs into a bare environment.
INSTALL = $(BIN)/python -m pip --version >/dev/null 2>&1 && pip="$(BIN)/python -m pip" || \
  pip="$(PYTHON) -m pip --python $(BIN)/python"; \
  $$pip install --quiet --disable-pip-version-check

# What Python and pytest keep of each module halves the start of every run after the first.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-engines test-slow test-spark test-ray test-browser lint bench docs clean lock
.PHONY: help java chromium test-checked test-sanitized kernel-checked kernel-sanitized
.PHONY: dist test-dist test-fuzz test-hostile

help:
	@echo "make demo   fly a real trace under four policies; page in build/demo/report.html"
	@echo "make test   run the tests"
	@echo "make test-engines  engine and reference on thousands of random runs"
	@echo "make test-slow  all cases and random examples, killed studies, bad files, twins of full size"
	@echo "make test-fuzz  random calls of every command, with odd values and damaged files"
	@echo "make test-hostile  these, a read-only root, a full disk, kills"
	@echo "make test-spark  the tests of the analyses once more, on Spark (needs Java 17)"
	@echo "make test-ray  studies on a local Ray cluster"
	@echo "make test-browser  the pages and the lab in Chromium (needs chromium)"
	@echo "make test-checked  the kernels' tests on a build that checks every index"
	@echo "make test-sanitized  their random cases on a build under sanitizers (needs gcc)"
	@echo "make lint   formatting, style, types, import directions"
	@echo "make bench  speed and memory figures"
	@echo "make docs   these pages and the reference from docstrings, in build/docs"
	@echo "make dist   a source archive and a wheel, in dist; make test-dist tries them on each Python"
	@echo "make lock   resolve requirements.lock again (needs network)"

$(PACKAGES_STAMP): requirements.lock requirements-compiler.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "windtunnel needs Python >= 3.11; found $$($(PYTHON) --version)."; exit 1; }
	@$(PYTHON) build_kernel.py headers
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) 2>/dev/null || \
	  $(PYTHON) -m venv --without-pip $(VENV)
	$(INSTALL) --require-hashes -r requirements.lock
	@$(BIN)/python build_kernel.py compiler >/dev/null || \
	  { echo "There is no C compiler here: pip installs one."; \
	  $(INSTALL) --require-hashes -r requirements-compiler.lock; }
	@touch $@

$(EDITABLE_STAMP): $(PACKAGES_STAMP) pyproject.toml setup.py build_backend.py
	export WINDTUNNEL_BUILD=none; $(INSTALL) --no-deps --no-build-isolation -e .
	@touch $@

# Compiles the units, in place; where a kernel changes, its unit alone again. And what Python keeps
# of each module, which pip does for packages: the first command is then as fast as all others.
$(STAMP): $(EDITABLE_STAMP) build_kernel.py $(KERNELS)
	$(BIN)/python setup.py --quiet build_ext --inplace
	@$(BIN)/python -m compileall -q src
	@touch $@

$(SPARK_STAMP): $(STAMP) requirements-spark.lock
	$(INSTALL) --require-hashes -r requirements-spark.lock
	@touch $@

$(RAY_STAMP): $(STAMP) requirements-ray.lock
	$(INSTALL) --require-hashes -r requirements-ray.lock
	@touch $@

$(BROWSER_STAMP): $(STAMP) requirements-browser.lock
	$(INSTALL) --require-hashes -r requirements-browser.lock
	@touch $@

$(DOCS_STAMP): $(STAMP) requirements-docs.lock
	$(INSTALL) --require-hashes -r requirements-docs.lock
	@touch $@

demo: $(STAMP)
	$(BIN)/windtunnel demo --out build/demo

test: $(STAMP)
	HYPOTHESIS_PROFILE=$${HYPOTHESIS_PROFILE:-brief} \
	  $(BIN)/python -m pytest $(TWO) -m "not engines and not slow"

# Every property of random runs with all its examples, slow ones too; `make test` draws a twentieth,
# and the targets on other builds of the kernels a quarter. `make test-slow` has those of other parts.
# The matrix is half of all: its tests are shared out one by one, so that no worker waits for it.
test-engines: $(STAMP)
	$(BIN)/python -m pytest $(TWO) --dist worksteal tests/properties

# Builds for debugging lie beside the one that runs; WINDTUNNEL_KERNEL chooses.
kernel-checked kernel-sanitized: kernel-%: $(STAMP)
	WINDTUNNEL_BUILD=$* $(BIN)/python setup.py --quiet build_ext --inplace

test-checked: kernel-checked
	WINDTUNNEL_KERNEL=checked HYPOTHESIS_PROFILE=quarter \
	  $(BIN)/python -m pytest $(TWO) -m "not engines and not slow" \
	  $(ON_KERNELS) $(IN_PROCESS)

test-sanitized: kernel-sanitized
	LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libubsan.so)" \
	  ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
	  PYTHONMALLOC=malloc WINDTUNNEL_KERNEL=sanitized HYPOTHESIS_PROFILE=quarter \
	  $(BIN)/python -m pytest -p no:xdist -m "not engines and not slow and not data" $(FUZZ)

test-slow: $(STAMP)
	$(BIN)/python -m pytest $(TWO) -m "slow or hypothesis" --ignore tests/hostile \
	  --ignore tests/properties -o faulthandler_timeout=900

# Random calls of every command: of a seed that stays, and beside it of one that is new with each
# change, so that a change is judged by the same calls wherever, and however often. A failure is
# printed with the command that makes the call again.
test-fuzz: $(STAMP)
	calls="$(BIN)/python tests/fuzz/judged.py --calls 5000 --seconds 120"; \
	  $$calls --seed fixed & fixed=$$!; \
	  $$calls --seed "$$(git rev-parse --short 'HEAD^{tree}' 2>/dev/null || date)"; new=$$?; \
	  wait $$fixed && exit $$new

# A hostile world: no rights, no home, a read-only root, a full disk, kills.
test-hostile: $(STAMP) test-fuzz
	$(BIN)/python -m pytest $(TWO) -rs -m slow -o faulthandler_timeout=900 tests/hostile

# The same test bodies as on DuckDB, over the same tables.
test-spark: java $(SPARK_STAMP)
	WINDTUNNEL_BACKENDS=spark $(BIN)/python -m pytest -m spark -o faulthandler_timeout=900 tests/spark tests/characterize

test-ray: $(RAY_STAMP)
	$(BIN)/python -m pytest -m ray tests/ray

test-browser: chromium $(BROWSER_STAMP)
	$(BIN)/python -m pytest -m browser tests/browser

chromium:
	@command -v chromium >/dev/null || \
	  { echo "make test-browser needs Chromium: apt-get install chromium."; exit 1; }

java:
	@java="$${JAVA_HOME:+$$JAVA_HOME/bin/}java"; \
	found=$$("$$java" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p' | head -n 1); \
	test "$${found:-0}" -ge 17 || \
	  { echo "make test-spark needs Java 17 or later, which Spark 4 runs on; found $${found:-none}."; exit 1; }

lint: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(STAMP)
	$(BIN)/python -m pytest benchmarks -p no:xdist -q -s -o faulthandler_timeout=900

docs: $(DOCS_STAMP)
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs build/docs
	$(BIN)/python -m pytest -q tests/docs/test_notebook.py tests/library/test_tables.py \
	  tests/docs/test_types.py -k "not mypy"

dist: $(STAMP)
	$(BIN)/python scripts/dist.py

# One wheel for all Pythons: tried on this one, and on the others that are here.
test-dist: dist
	$(PYTHON) scripts/try_wheel.py
	@for python in python3.11 python3.12 python3.13 python3.14; do \
	  if [ "$$($$python --version 2>/dev/null)" = "$$($(PYTHON) --version)" ]; then continue; fi; \
	  if $$python -c 'import ensurepip' 2>/dev/null; then $$python scripts/try_wheel.py || exit 1; \
	  else echo "There is no $$python with ensurepip here: the wheel is not tried on it."; fi; \
	done

lock: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/python scripts/lock.py

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
	rm -rf src/*.egg-info
	find src \( -name '*.so' -o -name '*.pyd' \) -delete
