# Fairlead: every command a contributor needs. `make help` lists them.

SHELL         := /usr/bin/env bash
.SHELLFLAGS   := -eu -o pipefail -c
MAKEFLAGS     += --no-builtin-rules --no-print-directory
.DEFAULT_GOAL := help
.NOTPARALLEL:

ROOT    := $(abspath $(dir $(lastword $(MAKEFILE_LIST))))
BIN     := $(ROOT)/bin
VERSION ?= $(shell git -C $(ROOT) describe --tags --always --dirty 2>/dev/null || echo dev)

# Two sets of compiler flags for the whole tree, so that the Kubernetes
# libraries are compiled twice and not four times: this one for what is built,
# linted, vetted or run; -race with cgo (hack/gotest.sh) for what is tested.
export CGO_ENABLED := 0
export GOFLAGS     := -buildvcs=false -trimpath
export GOWORK      := off

# Tools are pinned in a module of their own; go builds and caches each when first used.
export TOOL := go tool -modfile=$(ROOT)/hack/tools/go.mod

FUZZTIME   ?= 30s
PLANS      ?= 1000
NODE_PLANS ?= 30
ARGS       ?=

##@ General

.PHONY: help
help: ## Show this help.
	@awk 'BEGIN {FS = ":.*## "; print "Usage: make <target> [VARIABLE=value]"} \
		/^##@/ {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z0-9-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Build

.PHONY: build
build: ## Build bin/fairlead and bin/kubectl-fairlead (static).
	go build -ldflags "-s -w -X github.com/fairlead-dev/fairlead/internal/version.value=$(VERSION)" -o $(BIN)/ ./cmd/fairlead ./cmd/kubectl-fairlead

.PHONY: generate
generate: ## Regenerate deepcopy code, CRDs, install manifest and reference docs.
	hack/generate.sh

.PHONY: clean
clean: ## Remove what the build made in this tree (caches outside it stay).
	rm -rf $(BIN)

##@ Check

.PHONY: verify
verify: ## Fail if generated files, formatting or go.mod files are not up to date, or vet complains.
	hack/verify.sh

.PHONY: lint
lint: ## Run the linters, and prove that the dependency rules bite.
	hack/lint.sh

##@ Test

.PHONY: test
test: ## Run everything: lint, verify, unit, control plane, and real node where possible.
	hack/test.sh

.PHONY: test-unit
test-unit: ## Run the tests that need no cluster (all modules, -race).
	hack/gotest.sh unit $(ARGS)

.PHONY: test-cluster
test-cluster: ## Run the tests on a real control plane with simulated nodes (any user).
	FAIRLEAD_REAL_NODE=0 hack/gotest.sh cluster $(ARGS)

.PHONY: test-e2e
test-e2e: ## Run the cluster tests and the stories on a real node (root on Linux).
	hack/gotest.sh e2e $(ARGS)

.PHONY: test-fault
test-fault: ## Kill, refuse and blind the operator at every write of every story (long).
	hack/gotest.sh fault $(ARGS)

.PHONY: test-plan
test-plan: ## Hold PLANS (default 1000) drawn edits against what `kubectl fairlead plan` says of them, NODE_PLANS (default 30) more on a real node (root on Linux).
	FAIRLEAD_TRUTH_PLANS=$(PLANS) CGO_ENABLED=1 go test -race -vet=off -count=1 -v -timeout 120m -parallel 6 ./test/truth
	hack/truth-on-node.sh $(NODE_PLANS)

.PHONY: fuzz
fuzz: ## Run every fuzz test for FUZZTIME each (default 30s).
	FUZZTIME=$(FUZZTIME) hack/fuzz.sh

.PHONY: bench
bench: ## Measure the operator with many clusters at once.
	go run ./test/bench $(ARGS)

.PHONY: bench-restarts
bench-restarts: ## Count restarts and settings of 40 edits under configUpdatePolicy Auto.
	go run ./test/bench/restarts $(ARGS)

##@ Try

.PHONY: demo
demo: ## Bring up a Doris cluster on a local Kubernetes with a real node (root on Linux).
	@echo 'Compiling the demonstration and what it needs of Kubernetes: on a new machine some minutes without a word, later seconds.'
	go run ./hack/demo up $(ARGS)

.PHONY: demo-down
demo-down: ## Remove all that `make demo` made.
	go run ./hack/demo down $(ARGS)
