# Each target sets up .venv by itself, once; a change of pyproject.toml or constraints.txt sets it up again.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test browser check bench clean

demo: .venv/ready
	$(BIN)/glassformer demo

test: .venv/ready-dev browser
	$(BIN)/python -m pytest -n 2

# The page is tested in a real browser: one that is here, or one that is fetched now.
browser: .venv/ready-dev
	@$(BIN)/python tests/serve/browser.py

check: .venv/ready-dev
	$(BIN)/ruff check src tests
	$(BIN)/ruff format --check src tests
	$(BIN)/mypy --strict src/glassformer
	$(BIN)/python -m pytest tests/test_house.py

bench: .venv/ready-dev
	$(BIN)/glassformer bench train

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit("glassformer needs Python 3.11 or newer; run: make PYTHON=python3.12 ...") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv .venv

.venv/ready: pyproject.toml constraints.txt | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch -e '.[plot,web]'
	@touch $@

.venv/ready-dev: pyproject.toml constraints.txt | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch -e '.[dev]'
	@touch $@ .venv/ready

clean:
	rm -rf .venv build dist src/*.egg-info
