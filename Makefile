# Plain pip and venv: any of these targets works in a fresh clone on a machine with Python 3.11 or newer and make.
#   make test PYTHON=python3.12      use another interpreter (only when .venv does not exist yet)
#   make test PYTEST_ARGS="-k graph" pass arguments on to pytest
#   make test WORKERS=0               run the tests in this process (default: one process a core, at most four)
#   make results CHECK=1             compare the published results with the rows instead of writing them

PYTHON ?= python3
VENV ?= .venv
PYTEST_ARGS ?=
WORKERS ?= auto

BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
TOOLS := $(VENV)/.installed-tools
INSTALL := $(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check --constraint constraints.txt --editable
VERSION_CHECK := import sys; sys.exit(sys.version_info < (3, 11))
VERSION_TEXT := import platform; print(platform.python_version())

.DEFAULT_GOAL := help
.PHONY: help venv tools demo test test-fast golden kills spark-kills serve-kills serve-fuzz solves roundtrips memory lint types format results clean

help:  ## Show this list
	@echo "Targets:"
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

venv: $(STAMP)  ## Create .venv and install pprop with all that its commands use, but Spark
tools: $(TOOLS)  ## Add what the tests and checks use

# A stamp is written last, so an interrupted installation is taken up again by the next call.
$(STAMP): pyproject.toml constraints.txt
	@if [ ! -x $(BIN)/python ]; then \
	    command -v "$(PYTHON)" >/dev/null || { \
	        echo "pprop needs Python 3.11 or newer, but '$(PYTHON)' was not found. Name one with: make venv PYTHON=/path/to/python3" >&2; exit 1; }; \
	    "$(PYTHON)" -c '$(VERSION_CHECK)' || { \
	        echo "pprop needs Python 3.11 or newer, but '$(PYTHON)' is $$("$(PYTHON)" -c '$(VERSION_TEXT)'). Name another with: make venv PYTHON=python3.12" >&2; exit 1; }; \
	    echo "Creating $(VENV) with Python $$("$(PYTHON)" -c '$(VERSION_TEXT)')"; \
	    "$(PYTHON)" -m venv "$(VENV)" || { \
	        rm -rf "$(VENV)"; \
	        echo "'$(PYTHON) -m venv' failed. On Debian and Ubuntu the module comes with: apt install python3-venv" >&2; exit 1; }; \
	fi
	@$(BIN)/python -c '$(VERSION_CHECK)' || { \
	    echo "pprop needs Python 3.11 or newer, but $(VENV) holds $$($(BIN)/python -c '$(VERSION_TEXT)'). Remove $(VENV) and call make again." >&2; exit 1; }
	@echo "Installing pprop into $(VENV) (minutes the first time: torch is large)"
	@$(INSTALL) ".[convert,figures,serve,tune]"
	@touch $@
	@echo "Ready: $(BIN)/python"

$(TOOLS): $(STAMP)
	@echo "Installing the tools of tests and checks into $(VENV) (minutes the first time: Spark is large)"
	@$(INSTALL) ".[dev]"
	@touch $@

demo: venv  ## Train three models on the bundled recipes (results in demo-output)
	@$(BIN)/pprop demo

# A file of tests stays in one process, so that what it compiles and prepares is made once; tests/conftest.py orders the files.
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --maxprocesses 4 --dist loadfile --no-loadscope-reorder

test: tools  ## Run every test and doctest (PYTEST_ARGS=... is passed on)
	$(PYTEST) $(PYTEST_ARGS)

test-fast: tools  ## Run the tests without those marked slow, for the inner loop
	$(PYTEST) -m "not slow" $(PYTEST_ARGS)

golden: tools  ## Compute golden rows of all graphs here once more (DEVICE=cuda, WRITE=1: see tools/golden.py)
	$(BIN)/python -m tools.golden $(if $(DEVICE),--device $(DEVICE)) $(if $(WRITE),--write)

kills: tools  ## Kill studies inside their computations, 200 times (output: results/study_kill.txt)
	@for seed in 0 1 2 3 4; do $(BIN)/python experiments/study_kill.py --kills 40 --seed $$seed || exit 1; done

spark-kills: tools  ## Kill Spark in the middle of its steps, ten times (output: results/spark_kill.txt)
	@$(BIN)/python experiments/spark_kill.py --kills 10

serve-kills: tools  ## Kill a server during live edits, 50 times (output: results/serve_kill.txt)
	@$(BIN)/python experiments/serve_kill.py --kills 50

serve-fuzz: tools  ## Send 10,000 made-up requests to a server (output: results/serve_fuzz.txt)
	@$(BIN)/python experiments/serve_fuzz.py --cases 10000

solves: tools  ## Compare 5,000 certified solves with exact arithmetic (output: results/certified_solves.txt)
	@$(BIN)/python experiments/certified_solves.py --solves 5000

roundtrips: tools  ## Send 10,000 graphs through networkx, PyG, scipy and pandas and back (output: results/roundtrips.txt)
	@$(BIN)/python experiments/roundtrips.py --graphs 10000

memory: tools  ## Compare the memory of trainings with what is planned (output: results/memory_cpu.txt; DEVICE=cuda)
	@$(BIN)/python benchmarks/memory.py $(if $(DEVICE),--device $(DEVICE))

lint: tools  ## Check style and formatting with ruff
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: tools  ## Check types with basedpyright
	$(BIN)/basedpyright

format: tools  ## Fix what ruff can fix and format the code
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format

# One thread: the small products of the report are several times slower where threads wait for a busy core.
results: tools  ## Write reports, figures and tables from results/*.pack (CHECK=1 compares instead)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tools.publish_results $(if $(CHECK),--check)

clean:  ## Remove caches and build outputs (keeps .venv; delete that folder to start afresh)
	rm -rf build dist .pytest_cache .ruff_cache
	find . -name '.?*' -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +
