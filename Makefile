# Every target sets up what it needs by itself: a virtual environment in .venv and an editable install.
# On Debian that takes python3 (3.11 or newer); python3-venv is installed when it is missing and you are root.
# uv does the installing where it is on the path, pip otherwise; `make UV= ...` asks for pip.

PYTHON ?= python3
UV     ?= $(shell command -v uv 2>/dev/null)
VENV   := .venv
BIN    := $(VENV)/bin
XDIST  ?= -n 2
EXTRAS := ann,arrow,dask,experiments,mlflow,names,onnx,safetensors,serve,skops
# All but gpu: see .torch below.
comma  := ,
# wordllama, the extra names, needs numpy 2: the lowest versions are tried without it.
LOWEST := $(shell echo $(EXTRAS) | sed s/names,//)
BUILT  := matplotlib numpy onnx pandas pyarrow safetensors scikit-learn scipy
CORE   := $(addprefix tests/,baselines classifier metrics stats store streaming structure tagging theory)
QUICK  := $(CORE) $(addprefix tests/,contracts exchange serve) --ignore tests/streaming/test_same_choice.py
REPRODUCE := $(BIN)/streamlabel reproduce

# ../shared/data is where the developers keep the real data sets; elsewhere set STREAMLABEL_DATA yourself.
STREAMLABEL_DATA ?= $(abspath $(wildcard ../shared/data))
export STREAMLABEL_DATA

# $(call venv,FOLDER) makes an environment, `$(call install,FOLDER) ...` installs into it. Groups take pip 25.1.
ifeq ($(UV),)
venv    = $(PYTHON) -m venv $(1) && $(call install,$(1)) --upgrade 'pip>=25.1'
install = $(1)/bin/python -m pip --disable-pip-version-check --quiet install
else
venv    = $(UV) venv --quiet --seed --allow-existing --python "$$($(PYTHON) -c 'import sys; print(sys.executable)')" $(1)
install = $(UV) pip install --quiet --python $(1)/bin/python
endif
# Lowest versions, other Pythons and the lock are beyond pip: these targets bring uv where there is none.
ANY_UV := $(or $(UV),$(VENV)-uv/bin/uv)

.PHONY: help demo web test test-slow test-core test-lowest test-newest test-label-studio lint format bench results docs lock clean

help:  ## show the targets
	@grep -E '^[a-z-]+:.*## ' Makefile | sed -E 's/:.*## /\t/' | expand -t 14

$(VENV)/.ready:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "streamlabel needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version). Try: make PYTHON=python3.11 ..."; exit 1; }
	@[ -n "$(UV)" ] || $(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && apt-get install -y -qq python3-venv; } || \
	  { echo "the venv module is missing: sudo apt-get install python3-venv"; exit 1; }
	$(call venv,$(VENV))
	@touch $@

$(VENV)/.core: $(VENV)/.ready pyproject.toml constraints.txt
	$(call install,$(VENV)) -c constraints.txt -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.ready pyproject.toml constraints.txt
	$(call install,$(VENV)) -c constraints.txt -e '.[$(EXTRAS)]' --group dev
	@touch $@ $(VENV)/.core

# For the tests of the extra gpu, which are skipped without it. With pip and of this version it is the one for the CPU
# where that is what the index has; it is not in constraints.txt, for others bring gigabytes of CUDA.
$(VENV)/.torch: $(VENV)/.dev
	@$(BIN)/python -m pip --disable-pip-version-check --quiet install torch==2.13.0 && touch $@ || \
	  echo "PyTorch could not be installed; what needs it is not tested"

$(VENV)/.web: $(VENV)/.ready pyproject.toml constraints.txt
	$(call install,$(VENV)) -c constraints.txt -e '.[serve]'
	@touch $@ $(VENV)/.core

$(VENV)/.docs: $(VENV)/.core
	$(call install,$(VENV)) -c constraints.txt --group docs
	@touch $@

$(VENV)-uv/bin/uv: | $(VENV)/.ready
	$(PYTHON) -m venv $(VENV)-uv
	$(VENV)-uv/bin/python -m pip --disable-pip-version-check --quiet install uv

demo: $(VENV)/.core  ## the whole idea in a minute, offline; writes report.html
	$(BIN)/streamlabel demo

web: $(VENV)/.web  ## the web pages on texts that come with the package; opens a browser where there is a screen
	$(BIN)/streamlabel serve --demo --results docs/results.md $(ARGS)

test: $(VENV)/.dev $(VENV)/.torch  ## the tests (minutes)
	$(BIN)/python -m pytest $(XDIST) -m "not slow" $(ARGS)

test-slow: $(VENV)/.dev  ## the slow tests: fuzzing, large shapes
	$(BIN)/python -m pytest $(XDIST) -m slow $(ARGS)

test-core: $(VENV)/.ready  ## the tests with no extra installed, in an environment of their own
	$(call venv,$(VENV)-core)
	$(call install,$(VENV)-core) -c constraints.txt -e . --group test
	$(VENV)-core/bin/python -m pytest $(XDIST) -m "not slow" $(ARGS)

test-lowest: $(ANY_UV)  ## the quick tests with the lowest versions that pyproject.toml allows
	tools/leg.sh $(ANY_UV) $(VENV)-lowest 3.11 --resolution lowest-direct $(addprefix --only-binary ,$(BUILT)) -e '.[$(LOWEST)]' --group test 'httpx>=0.27'
	$(VENV)-lowest/bin/python -m pytest $(XDIST) -m "not slow" $(QUICK) $(ARGS)

test-newest: $(ANY_UV)  ## the quick tests on Python 3.13 with the newest versions of everything
	tools/leg.sh $(ANY_UV) $(VENV)-newest 3.13 -e '.[$(EXTRAS)]' --group test httpx2
	$(VENV)-newest/bin/python -m pytest $(XDIST) -m "not slow" $(QUICK) $(ARGS)

test-label-studio: $(VENV)/.dev  ## the back end with a real Label Studio, in an environment of its own (about 1 GB)
	$(call venv,$(VENV)-label-studio)
	$(call install,$(VENV)-label-studio) 'label-studio==1.23.2'
	$(BIN)/python tests/serve/label_studio/real_run.py $(VENV)-label-studio/bin/label-studio $(ARGS)

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

results: $(VENV)/.dev  ## all experiments into results/, then docs/results.md and docs/found.md of them (hours; goes on where it stopped)
	$(REPRODUCE) table3
	$(REPRODUCE) bounds
	$(REPRODUCE) budget
	-$(REPRODUCE) budget --dataset reuters-21578  # where benchmarks/text_sets.py was run
	$(REPRODUCE) timeline --start 1985,1995,2004
	$(REPRODUCE) figure1
	$(REPRODUCE) figure2
	$(REPRODUCE) figure2 --dataset eurlex57k --seeds 1 --methods 'SLL,BR ridge,BR logistic,LEML,SLEEC,omikuji'
	$(REPRODUCE) figure2 --dataset wiki10-31k --dataset citeulike-t --seeds 1 --methods 'SLL,BR ridge,BR logistic,LEML,SLEEC'
	$(REPRODUCE) table2
	$(REPRODUCE) table2 --dataset eurlex-4k --dataset wiki10-31k --methods 'SLL,BR ridge,LEML,SLEEC'
	$(REPRODUCE) table2 --dataset eurlex-4k --methods 'BR logistic,SLL logistic'
	$(REPRODUCE) questions --out results/found
	$(REPRODUCE) names --out results/found
	$(REPRODUCE) report --from results/found --template src/streamlabel/experiments/pages/found.md --out docs/found.md --pictures docs/_static/found
	cd results/found && tar --sort=name --owner=0 --group=0 --mtime=@0 -czf ../../docs/_static/found/records.tar.gz *.jsonl *.run.json
	$(REPRODUCE) report --from results --template src/streamlabel/experiments/pages/results.md --out docs/results.md
	cd results && tar --sort=name --owner=0 --group=0 --mtime=@0 -czf ../docs/_static/results/records.tar.gz *.jsonl *.run.json

docs: $(VENV)/.docs  ## the documentation as HTML in docs/_build/html
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html

lock: $(ANY_UV)  ## raise the development versions in constraints.txt, for every Python from 3.11 on
	$(ANY_UV) pip compile --quiet --upgrade --universal --python-version 3.11 $(foreach one,$(subst $(comma), ,$(EXTRAS)),--extra $(one)) --group dev --group docs \
	  --no-emit-index-url --no-emit-find-links --no-header --no-annotate --output-file constraints.txt pyproject.toml

clean:  ## remove what the targets made, but for results/
	rm -rf $(VENV) $(addprefix $(VENV)-,core label-studio lowest newest uv) build dist docs/_build .mypy_cache .ruff_cache .pytest_cache .hypothesis
