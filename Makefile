.DEFAULT_GOAL := help
.PHONY: help setup demo test test-slow check lint collect docs bench chaos jepsen fuzz night wheels

bin := .venv/bin

# Tests start hundreds of processes. Each module is compiled once instead of by each process, whatever the caller's settings.
export PYTHONDONTWRITEBYTECODE :=

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | column -t -s '|' 2>/dev/null \
		|| sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1 - \2/p' Makefile

setup: ## Make .venv ready; quick if nothing changed
	@bash scripts/setup.sh

demo: setup ## Start seven brokers, kill one under load, and check what clients received
	@$(bin)/gapless demo

check: setup ## Check format, lint, types, layers, language and generated files
	@$(MAKE) --no-print-directory -j 2 lint collect
	@$(bin)/pytest -n 0 --no-header tests/test_layers.py
	@$(bin)/python -m scripts.language
	@$(bin)/python scripts/generate_sync_client.py --check

lint: setup
	@$(bin)/ruff format --quiet --check .
	@$(bin)/ruff check --quiet .
	@$(bin)/mypy --no-error-summary

# Compile everything before the tests begin, while the type checker leaves one core idle.
collect: setup .venv/.compiled
	@:

.venv/.compiled: $(shell find src tests benchmarks trials docs -name '*.py') pyproject.toml requirements.lock | setup
	@$(bin)/pytest -n 0 --no-header --collect-only -qq >/dev/null 2>&1 || true  # errors are reported by the tests
	@touch $@

test: setup ## Run everything above, and all tests
	@$(MAKE) --no-print-directory -j 2 lint collect
	@$(bin)/pytest

test-slow: setup ## Run the tests that take minutes each, which `make test` leaves out
	@$(bin)/pytest -m slow

wheels: setup ## Build all wheels that a broker's container needs into dist/; see deploy/Dockerfile
	@$(bin)/pip wheel -q --disable-pip-version-check --no-deps --no-build-isolation -w dist .
	@$(bin)/python -m scripts.locked broker >dist/requirements.txt
	@$(bin)/pip wheel -q --disable-pip-version-check --no-deps --require-hashes -w dist -r dist/requirements.txt

docs: setup ## Build the site under out/site; warnings and dead links are errors
	@$(bin)/sphinx-build -q -W --keep-going -d out/doctrees docs out/site

bench: setup ## Run every benchmark; ARGS=--quick for a glance, ARGS="--against FILE" for ratios to an earlier run
	@$(bin)/python benchmarks $(ARGS)

fuzz: setup ## Send malformed input to every entry point; ARGS="--minutes 5 --target frames" for one
	@$(bin)/python -m tests.fuzz $(ARGS)

chaos: setup ## Inject faults into a real network for 15 minutes, then audit it; ARGS="--minutes 3" is shorter
	@$(bin)/python -m trials.chaos_run $(ARGS)

jepsen: setup ## Repeat the faults of Jepsen's NATS analysis on real brokers; ARGS="--minutes 2 --f 1" is shorter
	@$(bin)/python -m trials.jepsen $(ARGS)

night: setup ## Search for hours, continuing the last search, and list branches not reached; ARGS="--hours 1"
	@$(bin)/python -m trials.night $(ARGS)
