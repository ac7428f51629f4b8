# Everything real is in tools/ and pyproject.toml; this file only names it.
.DEFAULT_GOAL := help
.PHONY: help setup setup-dev demo docs what-if test lint lint-python lint-yaml lint-ansible lint-go test-go test-python test-mutants test-long test-slice test-times test-fresh coverage mutants calibrate smoke dist wheelhouse bench soak fuzz lab-up lab-down lab-learn lock clean

BIN := .venv/bin
# The Go that builds the lab: the machine's, else the wheel's in .venv.
GO = $(shell $(BIN)/python -c 'from vnuma.lab import find_go; print(find_go().program)')
GOFMT = $(shell $(GO) env GOROOT)/bin/gofmt
export PYTHON
export CGO_ENABLED = 0
# As in `vnuma` itself: threads for small matrices only take the cores from other workers.
export OPENBLAS_NUM_THREADS = 1
# Set-up leaves it to Python to compile what is imported; with this variable set, every process would do so anew.
unexport PYTHONDONTWRITEBYTECODE
PYTEST = $(BIN)/python -m pytest --numprocesses=4 --dist=worksteal
SETUP = python=$$(tools/find-python) && "$$python" -m tools.setup

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup:  ## .venv with what running needs, the lab, an ODBC driver; quick when all is there
	@$(SETUP)

demo:  ## a whole study on the lab, from nothing to the report
	@$(SETUP) --demo
	@$(BIN)/vnuma demo

# Tests of Python wait for labs a third of their time: linters and Go's tests use that time. What they say is
# somewhere among the tests' dots, so what failed is named at the end.
PARTS = test-python lint-python lint-yaml lint-ansible lint-go test-go test-mutants
export FAILED = $(CURDIR)/.venv/failed-parts

test: setup-dev  ## everything that CI checks
	@: >"$$FAILED"
	@$(MAKE) --no-print-directory --keep-going --jobs=2 $(PARTS:=.part) || { \
	    echo "Failed; each alone, with all that it says:"; sed 's/^/    make /' "$$FAILED"; exit 1; }

%.part:
	@$(MAKE) --no-print-directory $* || { echo $* >>"$$FAILED"; exit 1; }

setup-dev:  ## the same, with all that tests and linters need
	@$(SETUP) --dev

docs: setup-dev  ## the site of docs/, into build/site; a broken link fails
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict
	@echo "build/site/index.html; without its what-if page's Python (make what-if); with its search: python3 -m http.server -d build/site --bind 127.0.0.1"

what-if: docs  ## the same site with the what-if page's Python, from npm and PyPI
	@$(BIN)/python -m tools.what_if build/site/what-if/runtime
	@echo "build/site/what-if/ answers: copy build/site to any web server, or serve it as above"

lint: setup-dev lint-python lint-yaml lint-ansible  ## ruff, mypy, yamllint, ansible-lint

lint-python:
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

lint-yaml:
	$(BIN)/yamllint --strict .

lint-ansible:
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/ansible-lint --offline

lint-go:
	@cd lab && unformatted=$$($(GOFMT) -l .) && if [ -n "$$unformatted" ]; then \
	    echo "gofmt would change: $$unformatted"; exit 1; fi
	cd lab && $(GO) vet -trimpath ./...

# Built as `vnuma lab build` builds the lab, so that its packages are compiled once; lint-go vets the tests too.
test-go:
	cd lab && $(GO) test -trimpath -vet=off ./...

# In a new checkout each of the workers would compile most of what they all import.
test-python:
	@[ -d tests/__pycache__ ] || $(BIN)/python -m pytest --collect-only -q >/dev/null || true
	$(PYTEST) -m "not long" $(TESTS)

# Twenty of the faults of `make mutants`, other ones for another commit.
test-mutants:
	@$(BIN)/python -m tools.mutants --only 20 --seed "$$(git rev-parse HEAD)" --jobs 1

test-long: setup-dev  ## whole studies and further variants, which `make test` leaves out
	$(PYTEST) -m long $(TESTS)

test-slice: setup-dev  ## a few of the long tests, chosen by the commit (or by SEED)
	$(PYTEST) --long-slice=$(or $(SEED),$(shell git rev-parse HEAD)) $(TESTS)
test-times: setup-dev  ## the tests of `make test` and the slowest 30 of them
	$(PYTEST) -m "not long" --durations=30 --durations-min=1 $(TESTS)

test-fresh:  ## README's first command on new Debian roots (as root; busy machine: OPTIONS=--slow)
	$(BIN)/python -m tools.fresh $(OPTIONS)

coverage: setup-dev  ## the tests of `make test` with branches counted: twice as slow
	$(PYTEST) -m "not long" --cov --cov-report=term $(TESTS)

mutants: setup-dev  ## break the product in known ways and tell which faults no test notices (OPTIONS="--match affinity")
	$(BIN)/python -m tools.mutants $(OPTIONS)

calibrate: setup-dev  ## how often the statistics err, into docs/reference/calibration.md (OPTIONS="--studies 1000 --page FILE")
	$(BIN)/python -m tools.calibration $(OPTIONS)

smoke: setup-dev  ## the core's tests and one study on the other Pythons of this machine (OPTIONS=--newest)
	$(BIN)/python tools/smoke.py $(OPTIONS)

bench: setup-dev  ## figures that depend on the machine, into docs/benchmarks.md (quick: make bench OPTIONS=--quick)
	$(BIN)/python -m tools.bench $(OPTIONS)

soak: setup-dev  ## kill runs at seeded points and look what survives (make soak MINUTES=15 SEED=1)
	$(BIN)/python -m tools.soak --minutes $(or $(MINUTES),15) --seed $(or $(SEED),1) $(OPTIONS)

fuzz: setup-dev  ## mutate valid inputs and look what vnuma makes of them (make fuzz SECONDS=600 SEED=1)
	$(BIN)/python -m tools.fuzz --seconds $(or $(SECONDS),600) --seed $(or $(SEED),1) $(OPTIONS)

lab-up:  ## start a lab that stays (scenario: make lab-up SCENARIO=null)
	@$(BIN)/vnuma lab up $(or $(SCENARIO),paper)

lab-down:  ## stop it
	@$(BIN)/vnuma lab down

lab-learn:  ## teach the lab a file of vnuma doctor --record (FILE=contact.yml)
	$(BIN)/python tools/lab_learn.py $(FILE)

dist: setup-dev  ## sdist, wheels, the collection, a bill of materials and SHA256SUMS, into dist/
	@$(BIN)/python -m tools.dist

wheelhouse: setup-dev  ## one archive that installs vnuma where there is no internet, into dist/
	@$(BIN)/python -m tools.wheelhouse

lock:  ## resolve the dependencies anew (needs uv)
	tools/relock

clean:  ## remove .venv and what was built or measured by tests
	rm -rf .venv .ansible .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage* htmlcov dist build
