#!/usr/bin/env bash
# Runs one level of the tests: unit, cluster, e2e or fault. Called by `make test-*`.
#
#   unit     packages that need no cluster, every module
#   cluster  packages that start one, without the real-node tests
#   e2e      the same packages with the real-node tests: root on Linux; elsewhere
#            it says so and runs as "cluster" does
#   fault    the stories of test/fault with every fault at every write, of which
#            the levels above run a few; counts are printed
#
# FAIRLEAD_REAL_NODE=0|1          switches the real-node tests off or on
# FAIRLEAD_REQUIRE_REAL_NODE=1    a missing real node is a failure, not a skip
# TEST_RESULTS                    directory that gets LEVEL-RUN.json (go test -json) and
#                                 LEVEL-RUN.again (what was told twice, and how it went)
set -euo pipefail
cd "$(dirname "$0")/.."
: "${TOOL:?run it as: make test-unit, test-cluster, test-e2e or test-fault}"
level=${1:?usage: gotest.sh unit|cluster|e2e|fault [go test flags]}
shift

# Packages that start a Kubernetes control plane: those under these directories,
# and those whose tests ask clustertest for one.
cluster_pattern='/fairlead/test/(cluster|e2e)(/[^ ]*)? |/test/cluster/clustertest( |$)'

# The planner is pure code that one goroutine runs, and its tales take six times as long
# under the race detector: a share of them is told with it, and all of them without.
planner=internal/system/doris
detector=-race cgo=1 # which -race needs
runs=0

# run_tests FORMAT MODULE PACKAGES FLAGS...: vet is left to verify.
# Stories have deadlines, and a machine may stand still for longer: if few fail (six
# with their subtests), each is told once more. What fails again has failed; what
# passes then is named at the end, with what it said the first time above. More
# failures than that are no accident, and none is told again.
run_tests() {
  local format=$1 module=$2 packages=$3; shift 3
  local options=(--format "$format" --hide-summary=skipped --packages "$packages")
  runs=$((runs + 1))
  local name="$level-$runs"
  if [[ -n "${TEST_RESULTS:-}" ]]; then
    mkdir -p "$TEST_RESULTS"
    options+=(--jsonfile "$TEST_RESULTS/$name.json")
  fi
  if [[ "$level" == cluster || "$level" == e2e ]]; then
    options+=(--rerun-fails=1 --rerun-fails-max-failures=6 --rerun-fails-run-root-test)
    if [[ -n "${TEST_RESULTS:-}" ]]; then options+=(--rerun-fails-report "$TEST_RESULTS/$name.again"); fi
  fi
  (
    cd "$module"
    CGO_ENABLED=$cgo $TOOL gotestsum "${options[@]}" -- $detector -vet=off "$@"
  )
}

has_real_node() { [[ "$(uname -s)" == Linux && "$(id -u)" == 0 ]]; }

choose_real_node() {
  if [[ "$level" == cluster ]]; then
    FAIRLEAD_REAL_NODE=0
    return
  fi
  if [[ -z "${FAIRLEAD_REAL_NODE:-}" ]]; then
    if has_real_node; then FAIRLEAD_REAL_NODE=1; else FAIRLEAD_REAL_NODE=0; fi
  fi
  if [[ "$FAIRLEAD_REAL_NODE" == 1 ]]; then return; fi
  if [[ "${FAIRLEAD_REQUIRE_REAL_NODE:-0}" == 1 ]]; then
    echo "FAIL: the real-node tests are required (FAIRLEAD_REQUIRE_REAL_NODE=1), but cannot run: they need root on Linux and FAIRLEAD_REAL_NODE other than 0" >&2
    exit 1
  fi
  echo "SKIP: the real-node tests do not run: they need root on Linux, and FAIRLEAD_REAL_NODE other than 0" >&2
}

list() { # MODULE: its packages, each with what its tests import; keeps go list's exit code
  (cd "$1" && go list -f '{{.ImportPath}} {{join .TestImports " "}} {{join .XTestImports " "}}' ./...)
}

names() { cut -d' ' -f1; }

status=0
case "$level" in
unit)
  # They allocate much and keep little: a lazier collector saves a fifth of the time.
  export GOGC="${GOGC:-400}"
  for module in $(hack/modules.sh code); do
    listed=$(list "$module")
    mapfile -t packages < <(grep -vE "$cluster_pattern" <<<"$listed" | grep -vE "/$planner " | names)
    run_tests standard-quiet "$module" "${packages[*]}" -timeout 30m "$@" || status=1
  done
  run_tests standard-quiet . "./$planner" -timeout 30m -short -run 'TestAny|TestGolden|KilledAtEveryStep' "$@" || status=1
  detector='' cgo=0
  run_tests standard-quiet . "./$planner" -timeout 30m "$@" || status=1
  ;;
cluster | e2e)
  choose_real_node
  export FAIRLEAD_REAL_NODE
  ran=0
  for module in $(hack/modules.sh code); do
    listed=$(list "$module")
    mapfile -t packages < <(grep -E "$cluster_pattern" <<<"$listed" | names)
    if ((${#packages[@]} == 0)); then continue; fi
    ran=$((ran + ${#packages[@]}))
    # Two packages at a time, each with clusters of its own: stories mostly wait, and so
    # more of them run beside each other than there are cores. Never from the test cache:
    # what they prove lies outside the test binary.
    run_tests testname "$module" "${packages[*]}" -timeout 60m -count=1 -p 2 -parallel 4 "$@" || status=1
  done
  if ((ran == 0)); then
    echo "FAIL: no package matches $cluster_pattern" >&2
    exit 1
  fi
  ;;
fault)
  export FAIRLEAD_FAULT=all
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  run_tests standard-verbose . ./test/fault/... -timeout 90m -count=1 "$@" | tee "$log" || status=1
  printf '\n=== counts\n'
  sed -n 's/.*COUNT //p' "$log"
  ;;
*)
  echo "unknown level $level" >&2
  exit 2
  ;;
esac
exit "$status"
