# `make run` sets up and trains the embedded default; `make test` sets up and runs every check.
# A GPU user makes .venv and installs the matching torch into it first: set-up then leaves that torch alone.

PYTHON ?= python3
CONFIG ?= configs/laptop.toml
ARGS ?=
VENV := .venv
BIN := $(VENV)/bin
STUDIO := render/studio
DEBIAN := chromium-headless-shell chromium-driver libegl1 libegl-mesa0 libgl1-mesa-dri libgles2

.PHONY: setup system run test lint bench clean

setup: system $(VENV)/.stamp $(STUDIO)/node_modules/.stamp

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

run: setup
	$(BIN)/python -m grpo.run $(CONFIG) $(ARGS)

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint
	$(BIN)/python -m pytest -n 2 --dist worksteal $(ARGS)

bench: setup
	$(BIN)/python -m bench.render

clean:
	rm -rf $(VENV) $(STUDIO)/node_modules .cache .pytest_cache .mypy_cache .ruff_cache build *.egg-info
