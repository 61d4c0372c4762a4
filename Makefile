# Every target sets up what it needs by itself: a virtual environment in .venv and an editable install.
# On Debian that takes python3 (3.11 or newer); python3-venv is installed when it is missing and you are root.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet
XDIST  ?= -n 2
CORE   := $(addprefix tests/,baselines classifier metrics stats store streaming structure tagging theory)
REPRODUCE := $(BIN)/streamlabel reproduce

# ../shared/data is where the developers keep the real data sets; elsewhere set STREAMLABEL_DATA yourself.
STREAMLABEL_DATA ?= $(abspath $(wildcard ../shared/data))
export STREAMLABEL_DATA

.PHONY: help demo test test-slow test-core test-lowest lint format bench results docs lock clean

help:  ## show the targets
	@grep -E '^[a-z-]+:.*## ' Makefile | sed -E 's/:.*## /\t/' | expand -t 14

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "streamlabel needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version). Try: make PYTHON=python3.11 ..."; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && apt-get install -y -qq python3-venv; } || \
	  { echo "the venv module is missing: sudo apt-get install python3-venv"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.core: $(VENV)/.created pyproject.toml constraints.txt
	$(PIP) install -c constraints.txt -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.created pyproject.toml constraints.txt
	$(PIP) install -c constraints.txt -e '.[dev]'
	@touch $@ $(VENV)/.core

$(VENV)/.docs: $(VENV)/.core
	$(PIP) install -c constraints.txt -e '.[docs]'
	@touch $@

demo: $(VENV)/.core  ## the whole idea in a minute, offline; writes report.html
	$(BIN)/streamlabel demo

test: $(VENV)/.dev  ## the tests (minutes)
	$(BIN)/python -m pytest $(XDIST) -m "not slow" $(ARGS)

test-slow: $(VENV)/.dev  ## the slow tests: fuzzing, large shapes
	$(BIN)/python -m pytest $(XDIST) -m slow $(ARGS)

test-core: $(VENV)/.created  ## the tests with no extra installed, in an environment of their own
	$(PYTHON) -m venv $(VENV)-core
	$(VENV)-core/bin/python -m pip --disable-pip-version-check --quiet install -c constraints.txt -e '.[test]'
	$(VENV)-core/bin/python -m pytest $(XDIST) -m "not slow" $(ARGS)

test-lowest: $(VENV)/.created  ## the tests of the core with the lowest versions that pyproject.toml allows
	$(PYTHON) -m venv $(VENV)-lowest
	$(VENV)-lowest/bin/python -m pip --disable-pip-version-check --quiet install uv
	$(VENV)-lowest/bin/uv pip install --quiet --python $(VENV)-lowest/bin/python --resolution lowest-direct -e '.[test]'
	$(VENV)-lowest/bin/python -m pytest $(XDIST) -m "not slow" $(CORE) $(ARGS)

lint: $(VENV)/.dev  ## style, import directions, types, the size of the house
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy
	$(BIN)/python tools/house.py --check

format: $(VENV)/.dev  ## rewrite the code in the common style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.dev  ## the benchmarks, as ratios within one run
	$(BIN)/python benchmarks/run.py $(ARGS)

results: $(VENV)/.dev  ## all experiments into results/, then docs/results.md of them (hours; goes on where it stopped)
	$(REPRODUCE) table3
	$(REPRODUCE) bounds
	$(REPRODUCE) budget
	-$(REPRODUCE) budget --dataset reuters-21578  # where benchmarks/reuters_set.py was run
	$(REPRODUCE) timeline --start 1985,1995,2004
	$(REPRODUCE) figure1
	$(REPRODUCE) figure2
	$(REPRODUCE) figure2 --dataset eurlex57k --seeds 1 --methods 'SLL,BR ridge,BR logistic,LEML,SLEEC,omikuji'
	$(REPRODUCE) figure2 --dataset wiki10-31k --dataset citeulike-t --seeds 1 --methods 'SLL,BR ridge,BR logistic,LEML,SLEEC'
	$(REPRODUCE) table2
	$(REPRODUCE) table2 --dataset eurlex-4k --dataset wiki10-31k --methods 'SLL,BR ridge,LEML,SLEEC'
	$(REPRODUCE) table2 --dataset eurlex-4k --methods 'BR logistic,SLL logistic'
	$(REPRODUCE) report --from results --template src/streamlabel/experiments/pages/results.md --out docs/results.md
	cd results && tar --sort=name --owner=0 --group=0 --mtime=@0 -czf ../docs/_static/results/records.tar.gz *.jsonl *.run.json

docs: $(VENV)/.docs  ## the documentation as HTML in docs/_build/html
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html

lock: pyproject.toml  ## raise the development versions in constraints.txt
	$(PYTHON) -m venv $(VENV)-lock
	$(VENV)-lock/bin/python -m pip --quiet install pip-tools
	$(VENV)-lock/bin/pip-compile --quiet --strip-extras --all-extras --no-emit-index-url --no-emit-find-links --no-header --no-annotate --output-file constraints.txt pyproject.toml
	sed -i "/^streamlabel @/d" constraints.txt
	rm -rf $(VENV)-lock

clean:  ## remove what the targets made, but for results/
	rm -rf $(VENV) $(VENV)-core $(VENV)-lowest $(VENV)-lock build dist docs/_build .mypy_cache .ruff_cache .pytest_cache .hypothesis
