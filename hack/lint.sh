#!/usr/bin/env bash
# Lints every module with one configuration, then proves that the dependency
# rules bite. Called by `make lint`.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${TOOL:?run it as: make lint}"
root=$PWD

status=0
for module in $(hack/modules.sh code); do
  echo "lint: $module"
  (cd "$module" && $TOOL golangci-lint run --config "$root/.golangci.yml" ./...) || status=1
done
hack/lint-selftest.sh || status=1
exit "$status"
