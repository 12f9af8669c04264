.DEFAULT_GOAL := help
.PHONY: help setup demo test test-slow check lint collect docs bench chaos fuzz night wheels

bin := .venv/bin

# Tests start hundreds of processes. Whatever the caller's settings, each module is compiled once, and not by each of them.
export PYTHONDONTWRITEBYTECODE :=

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | column -t -s '|' 2>/dev/null \
		|| sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1 - \2/p' Makefile

setup: ## Make .venv ready; quick if nothing changed
	@bash scripts/setup.sh

demo: setup ## See it work: subscribe, kill a broker, read the verdict
	@$(bin)/gapless demo

check: setup ## Format, lint, types, layers, plain terms
	@$(MAKE) --no-print-directory -j 2 lint collect
	@$(bin)/pytest -n 0 --no-header tests/test_layers.py
	@$(bin)/python -m scripts.language

lint: setup
	@$(bin)/ruff format --quiet --check .
	@$(bin)/ruff check --quiet .
	@$(bin)/mypy --no-error-summary

# So everything is compiled when the tests begin, at a time when checking types leaves a core to spare.
collect: setup .venv/.compiled
	@:

.venv/.compiled: $(shell find src tests benchmarks trials docs -name '*.py') pyproject.toml requirements.lock | setup
	@$(bin)/pytest -n 0 --no-header --collect-only -qq >/dev/null 2>&1 || true  # the tests will tell
	@touch $@

test: setup ## Everything above, and all tests
	@$(MAKE) --no-print-directory -j 2 lint collect
	@$(bin)/pytest

test-slow: setup ## The tests that take minutes each, which `make test` leaves out
	@$(bin)/pytest -m slow

wheels: setup ## Put all that a broker's container needs into dist/, as wheels; see deploy/Dockerfile
	@$(bin)/pip wheel -q --disable-pip-version-check --no-deps --no-build-isolation -w dist .
	@$(bin)/python -m scripts.locked broker >dist/requirements.txt
	@$(bin)/pip wheel -q --disable-pip-version-check --no-deps --require-hashes -w dist -r dist/requirements.txt

docs: setup ## Build the site under out/site; a warning or a dead link is an error
	@$(bin)/sphinx-build -q -W --keep-going -d out/doctrees docs out/site

bench: setup ## Run every benchmark; ARGS=--quick for a glance, ARGS="--against FILE" for ratios to an earlier run
	@$(bin)/python benchmarks $(ARGS)

fuzz: setup ## Hand rubbish to every door; ARGS="--minutes 5 --target frames" is one of them
	@$(bin)/python -m tests.fuzz $(ARGS)

chaos: setup ## Hurt a real network for 15 minutes, then audit it; ARGS="--minutes 3" is shorter
	@$(bin)/python -m trials.chaos_run $(ARGS)

night: setup ## Search for hours, from where the last night ended, and count which rules were reached; ARGS="--hours 1"
	@$(bin)/python -m trials.night $(ARGS)
