# `make` alone lists the targets. Set-up happens by itself, once, and again only when the pins change.

.DEFAULT_GOAL := help
SHELL := /bin/sh

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PYTHON ?=
LAB_ARGS ?=
WORKERS ?= auto
# Jupyter refuses to start as root unless told; in a container root is often all there is.
AS_ROOT := $(if $(filter 0,$(shell id -u)),--allow-root)
# What a learner's JupyterLab is set to, beside the settings of whoever runs it.
QUIET := $(CURDIR)/attention_course/authoring/lab

# nbgrader calls its helpers by name. Small tensors are fastest with one thread, and kernels inherit the setting.
export PATH := $(CURDIR)/$(BIN):$(PATH)
export OMP_NUM_THREADS ?= 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

.PHONY: setup
setup: $(READY) ## make .venv and install the course into it (the other targets do this by themselves)

.PHONY: lab
lab: $(READY) ## open your own copies of the lessons in JupyterLab (LAB_ARGS="--no-browser --port 8888" passes options on)
	@$(BIN)/attention-course work
	@JUPYTER_CONFIG_PATH="$(QUIET)" $(BIN)/jupyter lab $(AS_ROOT) $(LAB_ARGS)

.PHONY: teach
teach: $(READY) ## open everything an instructor needs: solutions, every kernel, the formgrader (LAB_ARGS as for lab)
	@JUPYTER_CONFIG_PATH="$(CURDIR)/attention_course/authoring" $(BIN)/jupyter lab --ServerApp.root_dir="$(CURDIR)" \
		--LabApp.default_url=/lab/tree/solutions $(AS_ROOT) $(LAB_ARGS)

.PHONY: test
test: $(READY) ## prove the course: solutions (nbval), tests, lint, and that nothing drifted
	@$(MAKE) --no-print-directory lint
	$(BIN)/python -m pytest --nbval --nbval-kernel-name attention-cpu --nbval-cell-timeout 900 \
		-n $(WORKERS) --dist loadfile --no-loadscope-reorder -q -p no:cacheprovider solutions tests

.PHONY: test-gpu
test-gpu: $(READY) ## prove the solutions on a GPU: the same stored outputs, computed there
	@$(BIN)/python -c 'import sys, torch; torch.cuda.is_available() or sys.exit("make test-gpu needs a GPU that PyTorch can use, and there is none here. make test proves the course on the CPU.")'
	$(BIN)/python -m pytest --nbval --nbval-kernel-name attention-gpu --nbval-cell-timeout 900 -q -p no:cacheprovider solutions

.PHONY: build
build: $(READY) ## bring answers, executed solutions and course/ up to date with the texts (LESSON=05 for one lesson)
	@$(BIN)/attention-course build $(LESSON)

.PHONY: release
release: $(READY) ## write dist/: what students get, to publish as it is (COURSE_URL=https://... says where)
	@$(BIN)/attention-course release

.PHONY: lint
lint: $(READY) ## look for mistakes in the package, the lessons' texts and the tests
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check . || { echo "Some files are not formatted. Run: make format"; exit 1; }

.PHONY: format
format: $(READY) ## mend what can be mended, and format it
	@$(BIN)/ruff check --quiet --fix .
	@$(BIN)/ruff format .

.PHONY: clean
clean: ## remove .venv and what tools leave behind; never a lesson, never anybody's work
	rm -rf $(VENV) .build build dist *.egg-info .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The first of these that is new enough and can make a virtual environment is used, unless PYTHON names one.
PYTHONS := $(if $(PYTHON),"$(PYTHON)",python3 python3.14 python3.13 python3.12 python3.11 python)
# On Linux PyTorch's default build brings CUDA. An index that has the CPU build, if one is named, is asked for torch alone.
TORCH_INDEX ?=
TORCH := $(shell sed -n 's/^\(torch==[^ ]*\).*/\1/p' requirements.txt)
PIP := $(BIN)/python -m pip install --quiet

$(READY): requirements.txt pyproject.toml instructor/pyproject.toml
	@made=; tried=; venvless=; \
	for each in $(PYTHONS); do \
		version=$$("$$each" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2>/dev/null) || continue; \
		if ! "$$each" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' 2>/dev/null; then \
			tried="$$tried $$each is $$version;"; continue; fi; \
		rm -f $(READY); \
		if "$$each" -m venv $(VENV) >/dev/null 2>&1; then made="$$each (Python $$version)"; break; fi; \
		tried="$$tried $$each ($$version) cannot make a virtual environment;"; venvless=yes; \
	done; \
	if [ -z "$$made" ]; then \
		if [ -n "$(PYTHON)" ] && [ -z "$$tried" ]; then echo "PYTHON=$(PYTHON) does not run: there is no such program, or it is not Python."; \
		elif [ -z "$$tried" ]; then echo "The course needs Python 3.11 to 3.14, and no Python was found on this machine."; \
		else echo "The course needs Python 3.11 to 3.14. Found:$$tried none of them will do."; fi; \
		if [ -n "$$venvless" ]; then echo "On Debian or Ubuntu, what is missing comes with: sudo apt install python3-venv. Then run make again."; \
		else echo "Install one from python.org or with your system's package manager, or name one you have: make lab PYTHON=/path/to/python3.12"; fi; \
		exit 1; \
	fi; \
	echo "Setting up $(VENV) with $$made. This takes a few minutes, once."; \
	if [ -n "$(TORCH_INDEX)" ]; then \
		$(PIP) --no-deps --index-url "$(TORCH_INDEX)" $(TORCH) \
			|| { echo "$(TORCH) is not to be had from TORCH_INDEX=$(TORCH_INDEX); pip's words are above. Without TORCH_INDEX the default build is taken."; exit 1; }; \
	elif [ "$$(uname -s)" = Linux ] && [ ! -e /proc/driver/nvidia ] && ! $(BIN)/python -c 'import torch' 2>/dev/null; then \
		echo "No NVIDIA GPU was found here, and PyTorch's default build for Linux may bring several gigabytes for one."; \
		echo "Its CPU build is much smaller: stop this with Ctrl-C and run make with TORCH_INDEX=..., see README, Small downloads."; \
	fi; \
	{ $(PIP) -r requirements.txt && $(PIP) --no-deps --no-build-isolation --editable . \
	  && $(PIP) --no-deps --no-build-isolation --force-reinstall ./instructor ; } \
		|| { echo "Installing the packages failed; pip's words are above. Is the network there? Run make again: it goes on where it stopped."; exit 1; }; \
	$(BIN)/jupyter labextension disable --level=sys_prefix @jupyterlab/apputils-extension:announcements >/dev/null 2>&1; \
	$(BIN)/attention-course kernels && touch $(READY)
