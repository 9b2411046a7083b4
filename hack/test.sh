#!/usr/bin/env bash
# Runs every check and test, goes on after a failure so that one run tells all,
# and closes with a table of phases and the count of tests. Called by `make test`.
set -euo pipefail
cd "$(dirname "$0")/.."

TEST_RESULTS=$(mktemp -d)
export TEST_RESULTS
trap 'rm -rf "$TEST_RESULTS"' EXIT

table=()
status=0
phase() { # NAME
  local start=$SECONDS result=ok
  printf '\n=== %s\n' "$1"
  make "$1" || { result=FAILED; status=1; }
  table+=("$(printf '%-12s %-7s %4d s' "$1" "$result" $((SECONDS - start)))")
}

# tally counts top-level tests (not subtests) by outcome in go test's own records.
tally() { # ACTION
  cat "$TEST_RESULTS"/*.json 2>/dev/null |
    grep -c "\"Action\":\"$1\".*\"Test\":\"[^/\"]*\"" || true
}

phase lint
phase verify
phase test-unit
phase test-e2e # with what test-cluster runs, from the same test binaries

printf '\n=== summary\n'
printf '%s\n' "${table[@]}"
cat "$TEST_RESULTS"/*.json 2>/dev/null |
  grep -o '"Output":"\(ok\|FAIL\) .*"}' | sed -e 's/^"Output":"//; s/\\t/\t/g; s/\\n"}$//' | sort || true
passed=$(tally pass) failed=$(tally fail) skipped=$(tally skip)
echo "$passed passed, $failed failed, $skipped skipped (a test that was told twice counts twice)"
if grep -h . "$TEST_RESULTS"/*.again 2>/dev/null; then
  echo "^ told twice: look into each, even where the second time passed"
fi
if ((passed == 0)); then
  echo "FAIL: no test ran" >&2
  status=1
fi
exit "$status"
