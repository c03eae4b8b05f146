# `make demo` and `make test` need nothing but Python and make: they set up .venv themselves.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
SAY    := echo "setting up $(VENV), once: this takes a minute" >&2
PIP    := $(BIN)/python -m pip --disable-pip-version-check install --quiet

.PHONY: help demo test docs golden golden-grid lint format typecheck check beds beds-quick fuzz bench \
        packages numerics-exhaustive clean

help: ## what can be made
	@sed -n 's/^\([a-z-]*\):.*## /\1	/p' $(MAKEFILE_LIST) | expand -t 22

demo: $(VENV)/.program ## print the SwiGLU trace
	@$(BIN)/llm-trace swiglu

test: $(VENV)/.developer ## run all tests
	@$(BIN)/python -m pytest -n auto

docs: $(VENV)/.developer ## write the command reference again
	@$(BIN)/python scripts/command_reference.py

golden: $(VENV)/.developer ## accept what the traces print now
	@$(BIN)/python -m pytest tests/test_golden.py -q -k prints_what_the_original_prints
	@$(BIN)/python -m pytest tests/test_golden.py tests/tools/test_diagram.py -k accepted --snapshot-update \
		-W ignore::UserWarning
	@$(BIN)/python scripts/golden_digests.py
	@git status --short golden src/golden.sha256 2>/dev/null || true

golden-grid: $(VENV)/.developer ## train the whole cue-recall grid again: half an hour or more
	@$(BIN)/llm-trace cue-recall --jobs 2 -o golden/cue-recall.trace
	@$(BIN)/python scripts/golden_digests.py

lint: $(VENV)/.developer ## ruff
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .

format: $(VENV)/.developer ## let ruff rewrite what it can
	@$(BIN)/ruff check --fix . && $(BIN)/ruff format .

typecheck: $(VENV)/.developer .typing/llm_trace ## mypy --strict
	@$(BIN)/mypy

check: lint typecheck test ## everything that a pull request needs

beds: $(VENV)/.developer ## one digest on every bed: processors, C libraries, Pythons, numpys
	@$(BIN)/python scripts/beds.py

beds-quick: $(VENV)/.developer ## the beds that install nothing
	@$(BIN)/python scripts/beds.py --quick

fuzz: $(VENV)/.developer ## ten thousand hostile cases, and how they ended
	@$(BIN)/python -m tests.fuzz 10000

bench: $(VENV)/.developer ## start-up, large fixtures and numerics, as ratios in one run
	@$(BIN)/python benchmarks/bench.py

packages: ## the source distribution and the wheel into dist/, both tried
	@$(PYTHON) scripts/packages.py

numerics-exhaustive: $(VENV)/.developer ## millions of inputs of every function against MPFR
	@$(BIN)/python benchmarks/numerics_exhaustive.py

clean: ## remove what was made here
	rm -rf $(VENV) .typing .beds build dist *.egg-info src/*.egg-info

$(VENV)/.program: pyproject.toml src/core/numerics/_products.c
	@$(SAY)
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) --editable .
	@touch $@

$(VENV)/.developer: pyproject.toml src/core/numerics/_products.c
	@$(SAY)
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) --editable '.[dev]'
	@touch $@ $(VENV)/.program

.typing/llm_trace:
	@mkdir -p .typing && ln -sfn ../src $@
