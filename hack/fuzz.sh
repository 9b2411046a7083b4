#!/usr/bin/env bash
# Runs every fuzz test of every module for FUZZTIME. Called by `make fuzz`.
# Then the properties draw anew. A failing input is written to the package's testdata: commit it with the fix.
set -euo pipefail
cd "$(dirname "$0")/.."
fuzztime=${FUZZTIME:-30s}

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# fuzz MODULE FUNCTION PACKAGE. On a busy machine Go's fuzzer at times reports the end of
# its own time as a failure, with no input that failed (golang/go#75804, mended in Go 1.27). That says
# nothing about the code: such a test is run once more.
fuzz() {
  local try
  for try in 1 2; do
    if (cd "$1" && go test -run '^$' -fuzz "^$2\$" -fuzztime "$fuzztime" "$3") 2>&1 | tee "$log"; then return 0; fi
    if ! grep -q '^ *context deadline exceeded$' "$log" || grep -q 'Failing input written' "$log"; then return 1; fi
    echo "fuzz: no input failed; the fuzzer ran out of its own time (try $try)"
  done
  return 1
}

status=0 found=0
while IFS=: read -r file function; do
  name=$(sed -E 's/^func (Fuzz[A-Za-z0-9_]*)\(.*/\1/' <<<"$function")
  module=. ; [[ "$file" == api/* ]] && module=api
  package=./$(realpath --relative-to="$module" "$(dirname "$file")")
  found=$((found + 1))
  echo "fuzz: $package $name ($fuzztime)"
  fuzz "$module" "$name" "$package" || status=1
done < <(git ls-files --cached --others --exclude-standard -- '*_test.go' | xargs -r grep -HE '^func Fuzz[A-Za-z0-9_]*\(' /dev/null)
if ((found == 0)); then
  echo "fuzz: no fuzz test found" >&2
  exit 1
fi
# The properties of the planner draw other cases than those of every day.
echo "fuzz: ./internal/system/doris properties"
FAIRLEAD_EXPLORE=1 go test -count=1 -run '^TestAny|^TestProperty|Settle' ./internal/system/doris || status=1
exit "$status"
