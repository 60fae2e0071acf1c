# make demo    sets up and runs the main job
# make test    sets up and runs the tests
# make check   ruff, mypy --strict, architecture tests
#
# PYTHON=python3.12 names an interpreter, else tools/setup.sh finds one; VENV=.venv-3.12 names another environment.
# The core is installed first. A stamp for each part, .venv/.ready-PART, says that it is there; it is made last, so an
# install that failed or was interrupted begins anew.
PYTHON ?=
VENV   ?= .venv
BIN    := $(VENV)/bin
CORE   := $(VENV)/.ready-core
READY  := $(VENV)/.ready
#: What is installed with what the tests need.
PARTS  := core analytics bench compile load pgserver plot postgres smoke
export PYTHON

ifneq ($(PYTHON),)
ifneq ($(filter-out clean help,$(MAKECMDGOALS)),)
OTHER := $(shell PYTHON='$(PYTHON)' sh tools/setup.sh differs '$(VENV)')
$(if $(OTHER),$(error $(OTHER)))
endif
endif

.NOTPARALLEL:
.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all test-stress test-spark test-compose matrix check compiled proto sim bench bench-rpc bench-sql fig9 clean

help:          ## show this list
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

$(VENV)/.ready-%: pyproject.toml
	@sh tools/setup.sh install '$(VENV)' $*
	@touch $@

$(READY): pyproject.toml
	@sh tools/setup.sh install '$(VENV)' test
	@touch $(PARTS:%=$(VENV)/.ready-%) $@

setup: $(CORE)   ## make .venv with the core, which brings the command obo

demo: $(CORE)    ## a bank on three nodes: clients move money, a node is killed and comes back
	$(BIN)/obo demo

test: $(READY)   ## the tests that each change must pass, with make check
	$(BIN)/python -m pytest -n auto --dist loadscope --no-loadscope-reorder -m 'not full' --ignore tests/test_architecture.py tests

test-all: $(READY)  ## every test, also soaks and all mutants: before a release
	$(BIN)/python -m pytest -n auto --dist loadscope --no-loadscope-reorder tests

test-stress: $(READY)  ## the tests with real processes, dense, to find flakes: ROUNDS=3 MINUTES=.. COPIES=1 SEED=.. TESTS="paths, -k expression"
	$(BIN)/python -m tests.stress --rounds $(or $(ROUNDS),3) --minutes $(or $(MINUTES),0) --copies $(or $(COPIES),1) \
		--seed $(or $(SEED),0) -- $(TESTS)

test-spark: $(READY)  ## obo analyze and spark-submit on a real master with two workers on loopback
	OBO_TEST_CLUSTER=1 $(BIN)/python -m pytest -v -p no:xdist tests/analytics/test_cluster.py

test-compose: $(READY)  ## containers with faults, ten minutes or more; needs a Docker engine with Compose
	OBO_TEST_COMPOSE=1 $(BIN)/python -m pytest -v -s -rs -p no:xdist tests/compose

matrix:  ## a selection of the tests with each Python from 3.11 on that is here: ONLY="3.12 3.13" TESTS="paths"
	@sh tools/matrix.sh $(TESTS)

check: $(READY)  ## ruff, mypy --strict, architecture
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/test_architecture.py

compiled: $(VENV)/.ready-compile  ## com layer and the way of a call as machine code, for obo serve and obo sim; needs a C compiler, three minutes
	$(BIN)/obo compile

proto: $(READY)  ## generate framework/net/wire from proto/
	$(BIN)/python -m grpc_tools.protoc -Iframework/net/wire=proto --python_out=. --pyi_out=. --grpc_python_out=. \
		framework/net/wire/com.proto framework/net/wire/orb.proto framework/net/wire/trace.proto

sim: $(CORE)     ## the seeded world, 2000 seeds
	$(BIN)/obo sim --seeds 0:2000

bench: $(CORE)   ## cost per delivered request, against FIFO in the same run
	$(BIN)/obo bench core --json out/bench-core.json

bench-rpc: $(VENV)/.ready-bench  ## calls over loopback, beside plain grpcio and Pyro5 in the same run
	$(BIN)/obo bench rpc --json out/bench-rpc.json

bench-sql: $(VENV)/.ready-bench  ## a replicated database, beside plain SQLite and PostgreSQL in the same run
	$(BIN)/obo bench sql --json out/bench-sql.json

fig9: $(VENV)/.ready-plot  ## Fig. 9 of P0
	$(BIN)/obo fig9 --out out/fig9.png --json out/fig9.json

clean:         ## remove what make made
	rm -rf '$(VENV)' framework/_compiled out build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
