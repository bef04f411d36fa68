# `make run` and `make test` are all that a fresh machine with Python 3.11+ and make needs.

VENV := .venv
PYTHON_VENV := $(VENV)/bin/python
READY := $(VENV)/.ready
CHECKED := $(wildcard src tests benchmarks examples docs scripts)
# Goes before a command that starts Spark.
WITH_JAVA := JAVA_HOME="$$(scripts/java.sh)" && export JAVA_HOME &&

.DEFAULT_GOAL := help
.PHONY: help run test test-all lint style bench bench-all bench-check docs dist clean

help: ## this list
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

run: $(READY) ## set up, then a guided tour on sample data
	@$(WITH_JAVA) $(VENV)/bin/trellis demo

# Kernels that do not ship are compiled without optimisations here, since each runs for a moment; `test-all` has all.
test: style ## set up, then lint, types and the tests that are not slow
	@$(WITH_JAVA) NUMBA_OPT=0 scripts/test.sh "not slow"

test-all: style ## the same with the slow tests, and random tests from fresh seeds
	@$(WITH_JAVA) scripts/test.sh "slow or not slow" --hypothesis-profile=explore

lint: style ## ruff and mypy only
	@$(PYTHON_VENV) -m mypy --no-error-summary

style: $(READY)
	@$(PYTHON_VENV) -m ruff check --quiet $(CHECKED)
	@$(PYTHON_VENV) -m ruff format --quiet --check $(CHECKED)

bench: $(READY) ## set up, then Trellis beside its peers in ten minutes: benchmarks/results.json, and from it the documents' tables
	@$(WITH_JAVA) $(VENV)/bin/trellis bench short --results benchmarks/results.json --out benchmarks/out
	@$(PYTHON_VENV) scripts/figures.py

bench-all: $(READY) ## the same with every benchmark, in some two hours; only benchmarks/out is written
	@$(WITH_JAVA) $(VENV)/bin/trellis bench all --out benchmarks/out
	@$(VENV)/bin/trellis bench law --large --out benchmarks/out

bench-check: $(READY) ## the ten minutes again: fails where Trellis has lost more than 25 % on a peer since the committed results
	@$(WITH_JAVA) $(PYTHON_VENV) scripts/bench_check.py

# Sizes are small: it shows that every figure can be made, not how fast anything is. `make papers SIZES=` has the full ones.
SIZES := --quick
# Seconds for each benchmark; one that is not done by then keeps its earlier figures.
LIMIT := 300
LIMITED := $(if $(shell command -v timeout),timeout -k 10 $(LIMIT))
papers: $(READY) ## set up, then the quick form of the benchmarks of the five papers: benchmarks/papers.json, and from it docs/papers.md
	@$(WITH_JAVA) failed=; for name in abi join cet cet_plans graph debs_operators vertex history history_thesis history_tree sequences condensed; do \
		sizes="$(SIZES)"; [ $$name != condensed ] || sizes=; \
		$(LIMITED) $(VENV)/bin/trellis bench $$name $$sizes --no-progress --results benchmarks/papers.json || failed="$$failed $$name"; done; \
		$(PYTHON_VENV) scripts/figures.py && [ -z "$$failed" ] || { echo "failed, or not done in $(LIMIT) s:$$failed" >&2; exit 1; }

docs: $(READY) ## set up, then the site of the documentation, in build/site
	@$(PYTHON_VENV) scripts/docs.py build/site

dist: $(READY) ## set up, then the wheel, tried in an empty environment
	@scripts/dist.sh

clean: ## remove .venv, caches and build output
	rm -rf src/trellis/compiled/code $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .numba_cache build dist out benchmarks/out \
		spark-warehouse metastore_db derby.log
	find src tests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

$(READY): requirements.lock pyproject.toml scripts/setup.sh
	@scripts/setup.sh
	@touch $@
