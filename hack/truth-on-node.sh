#!/usr/bin/env bash
# Holds some drawn edits against what `kubectl fairlead plan` says of them, with Pods on a
# real node. Skips, and says so, where there can be none.
#
#   hack/truth-on-node.sh PLANS
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

plans=${1:?how many plans}
if [[ "$(uname -s)" != Linux || "$(id -u)" != 0 ]]; then
  echo "SKIP: $plans plans on a real node: they need root on Linux" >&2
  exit 0
fi
FAIRLEAD_TRUTH_NODES=real FAIRLEAD_TRUTH_PLANS=$plans CGO_ENABLED=1 go test -race -vet=off -count=1 -v -timeout 120m -parallel 2 ./test/truth
