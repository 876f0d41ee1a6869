# Each target sets up .venv by itself, once; a change of pyproject.toml or constraints.txt sets it up again.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: install demo build-it test test-long runtime page docs docs-test notebooks browser check check-page format-page package oldest box bench clean

install: .venv/ready
	@echo "To use it in this shell: source .venv/bin/activate"

demo: .venv/ready
	$(BIN)/glassformer demo

# The Transformer of docs/en/build, grown part by part: each part is trained for some seconds, and a table grows with it.
build-it: .venv/ready
	$(BIN)/python docs/build/grow.py

# Compiled once: where Python is told to keep no bytecode, each of the many processes would compile everything anew.
test test-long: export PYTHONDONTWRITEBYTECODE :=
# Three processes for two cores: a test often waits, for a browser or for a process that it has started.
PYTEST := $(BIN)/python -m pytest -n 3 --dist worksteal --durations=40 --durations-min=5

test: .venv/ready-dev browser runtime
	$(PYTEST) -m "not long"

# What takes long by its nature: processes killed at random moments, a cluster, notebooks, each chapter's training.
test-long: .venv/ready-dev browser runtime
	$(PYTEST) -m long

# A page of a model that needs no server, written to site/page: make page, or make page MODEL=FOLDER OUT=FOLDER. What runs
# it in a browser is fetched from npm's registry once and checked by its hash; neither node nor npm is needed.
page: .venv/ready-dev
	$(BIN)/python -m glassformer.deploy.export.runtime
	$(BIN)/glassformer export "$(or $(MODEL),runs/demo)" --to page --out "$(or $(OUT),site/page)" --force
	@echo "Open it from a file server: $(BIN)/python -m http.server --directory $(or $(OUT),site/page)"

# Without a network the tests of that page are skipped, and say so.
runtime: .venv/ready-dev
	@$(BIN)/python -m glassformer.deploy.export.runtime || true

# The handbook, read at site/index.html, with its figures and what its pages include drawn and written anew; a broken link, a wrong name of a source or an unknown equation stops it.
docs: .venv/ready-dev
	$(BIN)/python docs/make_figures.py
	$(BIN)/python docs/make_schematics.py
	$(BIN)/python docs/refresh.py
	$(BIN)/python docs/build/build_pages.py
	-$(BIN)/python docs/make_page.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict -f docs/en.yml
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict -f docs/zh.yml
	cp docs/welcome.html site/index.html

# Every block of code in the handbook and the READMEs, those that take minutes too.
docs-test: .venv/ready-dev
	DOCS_SLOW=1 $(BIN)/python -m pytest tests/docs
	$(BIN)/python docs/make_figures.py --check

notebooks: .venv/ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch -e '.[notebook]'
	$(BIN)/jupyter lab notebooks

# The page is tested in a real browser: one that is here, or one that is fetched now.
browser: .venv/ready-dev
	@$(BIN)/python tests/support/browser.py

check: .venv/ready-dev
	$(BIN)/ruff check src tests docs benchmarks
	$(BIN)/ruff format --check src tests docs benchmarks
	$(BIN)/mypy --strict src/glassformer
	$(BIN)/python -m pytest tests/test_house.py
	@$(MAKE) --no-print-directory check-page

# The page's scripts and styles: formatted, linted, typed. Node is needed for this alone; where it is missing, or its
# packages cannot be fetched, that is said, and the rest is checked. In CI packages that are missing are a failure.
PAGE_TOOLS := page-check/node_modules/.package-lock.json
check-page:
	@command -v npm > /dev/null || { echo "The page's code was not checked: there is no npm here."; exit; }; \
	$(MAKE) -s $(PAGE_TOOLS) || { echo "The page's code was not checked: npm could not fetch what checks it."; exit $${CI:+1}; }; \
	npm --prefix page-check run --silent check

format-page: $(PAGE_TOOLS)
	npm --prefix page-check run --silent format

$(PAGE_TOOLS): page-check/package.json page-check/package-lock.json
	cd page-check && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

# Wheel and sdist are built, and the wheel's commands run in an empty environment.
package: .venv/ready-dev
	$(BIN)/python tests/check_package.py

# The tests of the library with the oldest torch that pyproject.toml names, in an environment of its own.
oldest: .venv/ready-oldest
	.venv/oldest/bin/python -m pytest tests/model tests/data tests/weights/pretrained tests/decode tests/train tests/explain tests/weights/test_bundle.py

# A translator that ships, from the folder with its corpora: make box DATA=FOLDER MODEL=en-de. It trains it, which a GPU should
# do, packs and scores it, and writes its cards; all of it comes to runs/box-en-de.
box: .venv/ready-dev
	@test -n "$(DATA)" || { echo "Say where the corpora are: make box DATA=FOLDER [MODEL=en-de]"; exit 2; }
	$(BIN)/glassformer make "$(or $(MODEL),en-de)" --data "$(DATA)" --out "runs/box-$(or $(MODEL),en-de)" \
		--plan "src/glassformer/pipelines/box/$(or $(MODEL),en-de)/plan.toml"

bench: .venv/ready-dev
	$(BIN)/python -m benchmarks train

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit("glassformer needs Python 3.11 or newer; run: make PYTHON=python3.12 ...") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv .venv

.venv/ready: pyproject.toml constraints.txt | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch -e '.[plot,web]'
	@touch $@

.venv/ready-dev: pyproject.toml constraints.txt | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch -e '.[dev]'
	@touch $@ .venv/ready

.venv/ready-oldest: pyproject.toml constraints.txt | .venv/ready-dev
	$(PYTHON) -m venv .venv/oldest
	sed "s/^torch==.*/torch==$$(sed -n 's/.*"torch>=\(.*\)",/\1/p' pyproject.toml).*/" constraints.txt > .venv/oldest/constraints.txt
	.venv/oldest/bin/python -m pip install --quiet --disable-pip-version-check -c .venv/oldest/constraints.txt torch -e '.[dev]'
	@touch $@

clean:
	rm -rf .venv site build dist src/*.egg-info page-check/node_modules
