#!/usr/bin/env bash
# Regenerates every generated file of the tree. Called by `make generate`.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${TOOL:?run it as: make generate}"

# What a generator no longer writes must go: start from nothing.
find api -name 'zz_generated.*.go' -delete
rm -f config/crd/*.yaml config/install/*.yaml
mkdir -p config/crd config/install docs/reference

# The API is a module of its own, so the generator works inside it.
(
  cd api
  $TOOL controller-gen object paths=./...
  $TOOL controller-gen crd:generateEmbeddedObjectMeta=true paths=./... output:crd:dir=../config/crd
)
go run ./hack/crd-rules config/crd/doris.selectdb.com_dorisclusters.yaml
go run ./hack/trim-crd config/crd/*.yaml

go run ./hack/gen-install
go run ./hack/gen-docs
go run ./hack/gen-chart
