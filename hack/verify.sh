#!/usr/bin/env bash
# Fails, and names the files, when the tree is not what its sources say: stale
# generated files, unformatted code, untidy go.mod, vet findings. It changes
# nothing: generation runs in a copy. Called by `make verify`.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${TOOL:?run it as: make verify}"

failed=()
check() { # NAME COMMAND...
  local name=$1; shift
  echo "verify: $name"
  "$@" || failed+=("$name")
}

# snapshot copies every file that is, or could be, committed.
snapshot() { # DIR
  git ls-files -z --cached --others --exclude-standard |
    while IFS= read -r -d '' file; do
      if [[ -e "$file" ]]; then printf '%s\0' "$file"; fi
    done | tar --null --files-from - -cf - | tar -xf - -C "$1"
}

generated() {
  local dir status=0
  dir=$(mktemp -d)
  mkdir "$dir/tree" "$dir/new"
  snapshot "$dir/tree"
  cp -a "$dir/tree/." "$dir/new"
  if ! (cd "$dir/new" && hack/generate.sh); then
    rm -rf "$dir"
    return 1
  fi
  # A file and its generated successor, by name; then what differs.
  if ! diff -rq "$dir/tree" "$dir/new" >"$dir/names"; then
    echo "These generated files are stale; run 'make generate' and commit the result:" >&2
    sed -e "s|^Files $dir/tree/\(.*\) and .* differ|  stale    \1|" \
      -e "s|^Only in $dir/tree/\(.*\): |  orphan   \1/|" \
      -e "s|^Only in $dir/new/\(.*\): |  missing  \1/|" "$dir/names" >&2
    (cd "$dir" && diff -ru tree new | head -n 120) >&2 || true
    status=1
  fi
  rm -rf "$dir"
  return "$status"
}

formatted() {
  local unformatted dirs
  mapfile -t dirs < <(go_dirs)
  unformatted=$($TOOL gofumpt -l "${dirs[@]}")
  if [[ -n "$unformatted" ]]; then
    printf "These files are not formatted; run '%s':\n%s\n" \
      'go tool -modfile=hack/tools/go.mod gofumpt -w FILE' "$unformatted" >&2
    return 1
  fi
}

# go_dirs lists the top directories that hold Go files.
go_dirs() {
  git ls-files --cached --others --exclude-standard -- '*.go' | cut -d/ -f1 | sort -u |
    while read -r dir; do if [[ -e "$dir" ]]; then echo "$dir"; fi; done
}

in_module() { # DIR COMMAND...
  local dir=$1; shift
  (cd "$dir" && "$@")
}

check "generated files" generated
check "format (gofumpt)" formatted
for module in $(hack/modules.sh all); do
  check "go mod tidy ($module)" in_module "$module" go mod tidy -diff
done
for module in $(hack/modules.sh code); do
  check "go vet ($module)" in_module "$module" go vet ./...
done

if ((${#failed[@]})); then
  printf 'verify: FAILED: %s\n' "${failed[@]}" >&2
  exit 1
fi
echo "verify: all is up to date"
