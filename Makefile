# Two commands do everything on a fresh machine with make and Python 3.11 to 3.13:
#   make demo    runs the main job on the embedded default, on real inventories
#   make test    runs every test
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c

VENV := .venv
BIN := $(VENV)/bin
# isolate from the user's environment: no INFRAHUB_* or APPLY_LEDGER_* settings, no proxies, XDG folders of our own
CLEAN = env -u PYTHONDONTWRITEBYTECODE $$(env | grep -v '^APPLY_LEDGER_TEST_' | sed -nE 's/^((INFRAHUB|INFRAHUBCTL|APPLY_LEDGER|NETBOX|NAUTOBOT)_[A-Za-z0-9_]*|[A-Za-z]*_proxy|[A-Z]*_PROXY)=.*/-u \1/p') \
	XDG_CONFIG_HOME="$(CURDIR)/$(STATE)/config" XDG_DATA_HOME="$(CURDIR)/$(STATE)/data" \
	XDG_STATE_HOME="$(CURDIR)/$(STATE)/state" XDG_CACHE_HOME="$(CURDIR)/$(STATE)/cache"
STATE = .state/$@

.PHONY: help demo demo-kafka test live live-crash live-start live-stop lint rules hostile mutants bench bench-live faults soak tamper streams screenshots lock clean

help: ## this list
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 24

$(BIN)/.installed: requirements.lock pyproject.toml
	@python=$$(for name in $${PYTHON:-} python3 python3.13 python3.12 python3.11; do \
	    "$$name" -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null && echo "$$name" && break; done); \
	if [ -z "$$python" ]; then \
	    echo "No Python 3.11 to 3.13 with venv was found. On Debian: apt-get install python3 python3-venv; or name one: make PYTHON=/path/to/python3.12" >&2; exit 1; fi; \
	"$$python" -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

demo: $(BIN)/.installed ## plan, commit, apply and verify real inventories (about four minutes after installation)
	@rm -rf $(STATE) && mkdir -p $(STATE)
	@$(CLEAN) $(BIN)/python -m tests.demo --state $(STATE)

demo-kafka: $(BIN)/.installed ## three sources, two destinations, two workers, a real Kafka broker; one worker is killed (about two minutes)
	@rm -rf $(STATE) && mkdir -p $(STATE)
	@bash tests/support/require_kafka.sh
	@$(CLEAN) $(BIN)/python -m tests.demo.kafka --state $(STATE)

# a file's tests stay together; the long ones come first in the order of their folders
TEST_JOBS = 2
test: $(BIN)/.installed ## lint, types, import rules and every test
	@rm -rf $(STATE) && mkdir -p $(STATE)
	@bash tests/support/require_postgresql_15.sh
	@bash tests/support/require_kafka.sh
	@bash tests/support/require_chromium.sh
	@$(MAKE) --no-print-directory lint
	@$(CLEAN) $(BIN)/python -m pytest -n $(TEST_JOBS) --dist loadfile --no-loadscope-reorder $(PYTEST_ARGS)

# a server of our own, installed once, started for the tests and stopped after them; or the test server that is named
LIVE_HOME := .state/infrahub
LIVE_SERVER = $(CLEAN) $(BIN)/python -m tests.live.server
LIVE_LIMIT = 360
LIVE_PATHS = tests/live tests/bench/live tests/contract
# what is fetched for it comes the user's way: their proxies, their caches
LIVE_INSTALL = $(BIN)/python -m tests.live.server install $(LIVE_HOME)
LIVE_START = $(LIVE_HOME) --schema tests/data/schema.yml --limit $(LIVE_LIMIT)
LIVE_PYTEST = $(if $(LIVE_ROWS),env APPLY_LEDGER_TEST_LIVE_ROWS=$(LIVE_ROWS)) $(BIN)/python -m pytest
LIVE_TESTS = $(LIVE_PYTEST) $(LIVE_PATHS)
# the contract cases write to the default branch: on a server that is named they are asked for by name
NAMED_PATHS = $(if $(APPLY_LEDGER_TEST_INFRAHUB_MAIN),$(LIVE_PATHS),$(filter-out tests/contract,$(LIVE_PATHS)))

# infrahub-sync, which the bench compares us with, in an environment of its own
SYNC := .state/infrahub-sync
$(SYNC)/.installed: tests/bench/live/requirements.txt | $(BIN)/.installed
	@rm -rf $(SYNC)
	@$(BIN)/python -m venv $(SYNC)
	@$(SYNC)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement $<
	@touch $@

# and apply-ledger as its users install it, without what the tests need: some of that is slow to import
OURS := .state/apply-ledger
$(OURS)/.installed: requirements.lock pyproject.toml | $(BIN)/.installed
	@rm -rf $(OURS)
	@$(BIN)/python -m venv $(OURS)
	@sed -E 's/ *--hash=[^ ]+//; s/ *\\$$//' requirements.lock >$(OURS)/constraints.txt
	@$(OURS)/bin/python -m pip install --quiet --disable-pip-version-check --constraint $(OURS)/constraints.txt --editable .
	@touch $@

live: $(BIN)/.installed $(SYNC)/.installed ## the tests that meet a real Infrahub, which is installed, started and stopped (LIVE_ROWS=all: whole inventories)
	@rm -rf $(STATE) && mkdir -p $(STATE)
ifeq ($(APPLY_LEDGER_TEST_INFRAHUB_ADDRESS),)
	@bash tests/support/require_infrahub.sh $(BIN)/python
	@$(LIVE_INSTALL)
	@$(LIVE_SERVER) run $(LIVE_START) -- $(LIVE_TESTS) -m live $(PYTEST_ARGS)
else
	@$(if $(APPLY_LEDGER_TEST_INFRAHUB_MAIN),,echo "tests/contract writes to the default branch and is left out; APPLY_LEDGER_TEST_INFRAHUB_MAIN=yes runs it")
	@$(CLEAN) $(LIVE_PYTEST) $(NAMED_PATHS) -m live $(PYTEST_ARGS)
endif

live-crash: $(BIN)/.installed ## kill -9 of a real Infrahub's API and database in the middle of an apply
	@rm -rf $(STATE) && mkdir -p $(STATE)
	@bash tests/support/require_infrahub.sh $(BIN)/python
	@$(LIVE_INSTALL)
	@$(LIVE_SERVER) run $(LIVE_START) -- $(LIVE_TESTS) -m live_crash $(PYTEST_ARGS)

live-start: $(BIN)/.installed $(SYNC)/.installed ## start the server of make live ahead of it, and leave it running
	@bash tests/support/require_infrahub.sh $(BIN)/python
	@$(LIVE_INSTALL)
	@$(LIVE_SERVER) start $(LIVE_START)

live-stop: $(BIN)/.installed ## stop the server that make live-start started
	@$(LIVE_SERVER) stop $(LIVE_HOME)

lint: $(BIN)/.installed ## ruff, mypy --strict, import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

rules: $(BIN)/.installed ## write the pages of docs/ that are made from code and tests anew
	@$(BIN)/python -m tests.support.rules_document
	@$(BIN)/python -m tests.support.refusals_document
	@$(BIN)/python -m tests.support.field_failures_document
	@$(BIN)/python -m tests.support.classification_document
	@$(BIN)/python -m tests.support.message_documents
	@$(BIN)/python -m tests.support.contract_document
	@$(BIN)/python -m tests.support.openapi_document
	@$(BIN)/python -m tests.support.metrics_document
	@$(BIN)/python -m tests.support.cli_document
	@$(BIN)/python -m tests.support.log_events_document
	@$(BIN)/python -m tests.support.schema_document

hostile: N = 10000
hostile: SEED = 1
hostile: JOBS = 1
hostile: $(BIN)/.installed ## N hostile artifacts and N hostile answers (make hostile N=500000 SEED=7)
	@$(CLEAN) $(BIN)/python -m tests.hostile.artifacts --count $(N) --seed $(SEED) --jobs $(JOBS)
	@$(CLEAN) $(BIN)/python -m tests.hostile.answers --count $(N) --seed $(SEED)

mutants: $(BIN)/.installed ## mutation testing: remove each critical line, name the test that fails
	@bash tests/support/require_postgresql_15.sh
	@$(CLEAN) $(BIN)/python -m tests.support.load_bearing

bench: $(BIN)/.installed ## figures beside their targets, side by side in one run (about half an hour; wants a quiet machine)
	@mkdir -p $(STATE)
	@$(CLEAN) $(BIN)/python -m tests.bench --state $(STATE) $(BENCH_ARGS)

BENCH_LIVE = $(BIN)/python -m tests.bench.live --state $(STATE) --ours $(OURS)/bin/apply-ledger $(BENCH_ARGS)
bench-live: $(BIN)/.installed $(SYNC)/.installed $(OURS)/.installed ## the same on a real Infrahub, beside what people use today (BENCH_ARGS="--sizes small")
	@mkdir -p $(STATE)
ifeq ($(APPLY_LEDGER_TEST_INFRAHUB_ADDRESS),)
	@bash tests/support/require_infrahub.sh $(BIN)/python
	@$(LIVE_INSTALL)
	@$(LIVE_SERVER) run $(LIVE_START) -- $(BENCH_LIVE)
else
	@$(CLEAN) $(BENCH_LIVE)
endif

N ?= 100
SEED ?= 1
faults: $(BIN)/.installed ## the crash campaign: N episodes (100) of a SEED (1), kill -9 of writers and database
	@bash tests/support/require_postgresql_15.sh
	@mkdir -p $(STATE)
	@$(CLEAN) $(BIN)/python -m tests.faults.campaign --count $(N) --seed $(SEED) $(FAULTS_ARGS)

SECONDS ?= 600
soak: $(BIN)/.installed ## SECONDS (600) of a SEED (1): three workers, a broker and a database are killed at random, then every account is checked
	@bash tests/support/require_kafka.sh
	@$(CLEAN) $(BIN)/python -m tests.faults.soak --seconds $(SECONDS) --seed $(SEED) $(SOAK_ARGS)

tamper: $(BIN)/.installed ## N random edits (1000) of a ledger with all rights, of a SEED (1): verify must find each
	@$(CLEAN) $(BIN)/python -m tests.support.tampering_campaign --count $(if $(filter command,$(origin N)),$(N),1000) --seed $(SEED)

streams: $(BIN)/.installed ## 50 readers of the event stream during 20,000 operations, the server restarted twice (STREAMS_ARGS)
	@$(CLEAN) $(BIN)/python -m tests.streams $(STREAMS_ARGS)

screenshots: $(BIN)/.installed ## draw every page of the dashboard into .state/screenshots, to be looked at
	@bash tests/support/require_chromium.sh
	@$(CLEAN) $(BIN)/python -m tests.browser.screenshots --to $(STATE)

lock: ## resolve requirements.lock anew (needs uv)
	uv pip compile pyproject.toml --group dev --universal --python-version 3.11 --no-emit-index-url --generate-hashes --output-file requirements.lock
	uv pip compile tests/bench/live/requirements.in --universal --python-version 3.11 --no-emit-index-url --generate-hashes --output-file tests/bench/live/requirements.txt

clean: ## remove what the commands above made
	rm -rf $(VENV) .state .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
