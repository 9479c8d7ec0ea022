# Only Python 3.11+ and make are needed: every target makes the virtual environment it runs in.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test test-slow test-encoders lint docs results format release-check clean

demo: $(VENV)/.ready
	$(BIN)/medi demo --method mp --out demo

test: $(VENV)/.ready
	$(BIN)/pytest --numprocesses auto -m "not slow"

test-slow: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[ray]"
	$(BIN)/pytest --numprocesses auto

# The libraries of other encoders, in an environment of their own.
test-encoders:
	$(PYTHON) -m venv build/encoders
	build/encoders/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt \
		--editable ".[dev,timm,open_clip,transformers]"
	build/encoders/bin/pytest tests/hubs

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy --platform win32 src/medi/core
	$(BIN)/lint-imports --no-cache

# The site: open build/site/index.html.
docs: $(VENV)/.ready
	$(BIN)/python website/build.py

results: $(VENV)/.ready
	$(BIN)/python results/render.py

format: $(VENV)/.ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Builds the files of a release and uses them in an empty environment; they are then in build/release/dist.
release-check:
	$(PYTHON) release/check.py $(ARGS)

$(VENV)/.ready: pyproject.toml constraints.txt
	@echo "Setting up $(VENV) takes one to five minutes, as fast as your network is."
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[dev]"
	touch $@

clean:
	rm -rf $(VENV) build demo .pytest_cache .mypy_cache .ruff_cache
