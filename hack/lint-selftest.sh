#!/usr/bin/env bash
# Proves that the rules of .golangci.yml bite: lints a small stand-in tree with
# one package per case below and compares what is refused with what should be.
# Also refuses a package under internal/ that no dependency rule names.
# Called by hack/lint.sh; a few seconds.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${TOOL:?run it as: make lint}"
config=$PWD/.golangci.yml
module=github.com/fairlead-dev/fairlead

tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

# Imports: FROM (a directory), TO (an import path; a leading ./ is this module),
# and the verdict. A FROM that ends in _test stands for a test file.
imports='
api                   k8s.io/apimachinery/leaf                       allowed
api                   encoding/json                                  allowed
api                   os                                             refused
api                   net/http                                       refused
api                   ./internal/plan/leaf                           refused
api                   sigs.k8s.io/controller-runtime/pkg/client      refused
internal/plan         ./api/leaf                                     allowed
internal/plan         k8s.io/api/leaf                                allowed
internal/plan         sigs.k8s.io/controller-runtime/pkg/client      allowed
internal/plan         net/url                                        allowed
internal/plan         os                                             refused
internal/plan         os/exec                                        refused
internal/plan         net                                            refused
internal/plan         context                                        refused
internal/plan         math/rand/v2                                   refused
internal/plan         k8s.io/client-go/leaf                          refused
internal/plan         sigs.k8s.io/controller-runtime/pkg/reconcile   refused
internal/plan         ./internal/kernel/leaf                         refused
internal/plan         ./internal/observe/leaf                        refused
internal/plan         ./internal/system/doris/leaf                   refused
internal/diff         ./internal/apply/leaf                          refused
internal/build        net/http                                       refused
internal/rollout      ./internal/system/doris/leaf                   refused
internal/status       ./internal/apply/leaf                          refused
internal/event        k8s.io/client-go/leaf                          refused
internal/plan_test    os                                             allowed
internal/plan_test    ./test/sim/leaf                                allowed
internal/observe      ./internal/plan/leaf                           allowed
internal/observe      ./internal/system/doris/leaf                   refused
internal/observe      ./internal/kernel/leaf                         refused
internal/observe      k8s.io/client-go/kubernetes                    refused
internal/apply        k8s.io/client-go/kubernetes                    allowed
internal/apply        ./internal/plan/leaf                           allowed
internal/apply        ./internal/kernel/leaf                         refused
internal/apply        ./internal/system/doris/leaf                   refused
internal/kernel       ./internal/observe/leaf                        allowed
internal/kernel       ./internal/plan/leaf                           allowed
internal/kernel       ./internal/apply/leaf                          allowed
internal/kernel       ./internal/status/leaf                         allowed
internal/kernel       ./internal/event/leaf                          allowed
internal/kernel       ./internal/system/doris/leaf                   refused
internal/kernel       ./internal/rollout/leaf                        refused
internal/kernel       k8s.io/client-go/dynamic                       refused
internal/system/doris ./internal/plan/leaf                           allowed
internal/system/doris ./internal/rollout/leaf                        allowed
internal/system/doris ./internal/observe/leaf                        allowed
internal/system/doris ./internal/system/doris/leaf                   allowed
internal/system/doris ./internal/system/cache/leaf                   refused
internal/system/doris ./internal/kernel/leaf                         refused
internal/system/doris ./internal/apply/leaf                          refused
internal/dial         net                                            allowed
internal/dial         ./internal/observe/leaf                        refused
internal/config       os                                             allowed
internal/config       ./internal/kernel/leaf                         refused
internal/config       k8s.io/client-go/leaf                          refused
internal/operator     ./internal/cli/leaf                            refused
internal/kernel       ./internal/operator/leaf                       refused
internal/cli          ./internal/operator/leaf                       refused
internal/version      k8s.io/client-go/leaf                          refused
internal/cli          ./internal/system/doris/leaf                   allowed
internal/cli          ./internal/plan/leaf                           allowed
internal/cli          ./internal/apply/leaf                          refused
internal/cli          ./internal/kernel/leaf                         refused
internal/cli          ./test/sim/leaf                                refused
internal/operator     ./internal/kernel/leaf                         allowed
internal/operator     ./internal/system/doris/leaf                   allowed
internal/operator     ./internal/apply/leaf                          refused
internal/operator     k8s.io/client-go/dynamic                       refused
internal/operator     ./test/sim/leaf                                refused
cmd/fairlead          ./internal/kernel/leaf                         allowed
cmd/fairlead          ./internal/system/doris/leaf                   allowed
cmd/fairlead          ./test/sim/leaf                                refused
hack/demo             ./test/sim/leaf                                allowed
test/e2e              ./internal/system/doris/leaf                   allowed
test/dorissim         ./test/sim/leaf                                allowed
test/dorissim         ./internal/system/doris/leaf                   refused
internal/kernel_test  sigs.k8s.io/controller-runtime/pkg/client/fake refused
'

# Code: FROM, the text a finding must hold, and a statement that causes it.
statements='
internal/kernel  context\.Background         _ = context.Background()
internal/kernel  time\.Sleep                 time.Sleep(time.Second)
internal/plan    time\.Now                   _ = time.Now()
internal/kernel  client\.Client              var _ client.Client
internal/kernel  write.belongs.in            var c client.Client; c.Patch()
internal/kernel  write.belongs.in            var c client.Client; c.Status().Patch()
internal/plan    client\.Reader              var _ client.Reader
'

write() { # FILE, content from stdin
  mkdir -p "$(dirname "$tree/$1")"
  cat >"$tree/$1"
}

# stand_in writes the modules that cases import, without their weight.
stand_in() {
  cp "$config" "$tree/.golangci.yml"
  {
    printf 'module %s\n\ngo 1.26.0\n' "$module"
    for path in k8s.io/api k8s.io/apimachinery k8s.io/client-go sigs.k8s.io/controller-runtime; do
      printf 'require %s v0.0.0\nreplace %s => ./modules/%s\n' "$path" "$path" "$path"
      printf 'module %s\n\ngo 1.26.0\n' "$path" | write "modules/$path/go.mod"
    done
  } | write go.mod
  local package
  for package in k8s.io/{api,apimachinery,client-go}/leaf k8s.io/client-go/{kubernetes,dynamic} \
    sigs.k8s.io/controller-runtime/pkg/{reconcile,client/fake}; do
    echo "package $(basename "$package")" | write "modules/$package/leaf.go"
  done
  write modules/sigs.k8s.io/controller-runtime/pkg/client/client.go <<'GO'
package client

type (
	Reader interface{}
	Writer interface{ Patch() }
	Client interface {
		Reader
		Writer
		Status() Writer
	}
)
GO
  for package in api internal/{plan,rollout,status,event,observe,apply,kernel,operator,cli,system/doris,system/cache} test/sim; do
    echo "package leaf" | write "$package/leaf/leaf.go"
  done
}

# write_imports writes one package per import, so that no two cases make a cycle.
write_imports() {
  local n=0 from to verdict dir file
  while read -r from to verdict; do
    if [[ -z "$from" ]]; then continue; fi
    n=$((n + 1))
    dir=${from%_test}/case$n
    file=$dir/case.go
    if [[ "$from" == *_test ]]; then
      echo "package case$n" | write "$file"
      file=$dir/case_test.go
    fi
    printf 'package case%d\n\nimport _ "%s"\n' "$n" "${to/#.\//$module/}" | write "$file"
    printf '%s %s %s %s\n' "$file" "$verdict" "$from" "$to" >>"$tree/imports"
  done <<<"$imports"
}

write_statements() {
  local n=0 from text statement file import
  while read -r from text statement; do
    if [[ -z "$from" ]]; then continue; fi
    n=$((n + 1))
    file=$from/statement$n/statement.go
    {
      printf 'package statement%d\n\n' "$n"
      for import in context time sigs.k8s.io/controller-runtime/pkg/client; do
        if [[ "$statement" == *"$(basename "$import")."* ]]; then printf 'import "%s"\n' "$import"; fi
      done
      printf 'func f() {\n\t%s\n}\n' "$statement"
    } | write "$file"
    printf '%s %s\n' "$file" "$text" >>"$tree/findings"
  done <<<"$statements"
  {
    printf 'package long\n\nfunc f(n int) int {\n'
    for ((i = 0; i < 81; i++)); do printf '\tn++\n'; done
    printf '\treturn n\n}\n'
  } | write internal/kernel/long/long.go
  echo "internal/kernel/long/long.go funlen" >>"$tree/findings"
  {
    printf 'package branches\n\nfunc f(n int) {\n'
    for ((i = 0; i < 12; i++)); do printf '\tif n == %d {\n\t\tn++\n\t}\n' "$i"; done
    printf '}\n'
  } | write internal/kernel/branches/branches.go
  echo "internal/kernel/branches/branches.go cyclop" >>"$tree/findings"
  {
    printf 'package lines\n\n'
    for ((i = 0; i < 400; i++)); do printf 'const c%d = 0\n' "$i"; done
  } | write internal/kernel/lines/lines.go
  echo "internal/kernel/lines/lines.go file-length-limit" >>"$tree/findings"
  printf 'package parameters\n\nfunc f(a, b, c, d, e, f int) {}\n' | write internal/kernel/parameters/parameters.go
  echo "internal/kernel/parameters/parameters.go argument-limit" >>"$tree/findings"
  echo "package common" | write internal/common/common.go
  echo "internal/common/common.go package-naming" >>"$tree/findings"
}

status=0
complain() {
  echo "lint-selftest: $*" >&2
  status=1
}

# Every package that ships has a rule, so a new one cannot slip by.
unruled() {
  local directory
  for directory in internal/*/ internal/system/*/; do
    directory=${directory%/}
    if [[ "$directory" == *'*' || "$directory" == internal/system ]]; then continue; fi
    # shellcheck disable=SC2016 # a placeholder of golangci-lint
    grep -qF '${config-path}/'"$directory/**" .golangci.yml ||
      complain "$directory has no dependency rule in .golangci.yml"
  done
}

stand_in
write_imports
write_statements
unruled

(
  cd "$tree"
  $TOOL golangci-lint run --config .golangci.yml --enable-only depguard,forbidigo,funlen,cyclop,revive \
    --output.text.path stdout --output.text.print-issued-lines=false --show-stats=false ./...
) >"$tree/output" 2>"$tree/errors" || true
if [[ ! -s "$tree/output" ]]; then
  cat "$tree/errors" >&2
  complain "the linter said nothing at all"
  exit "$status"
fi

while read -r file verdict from to; do
  refused=allowed
  if grep -q "^$file:.*(depguard)" "$tree/output"; then refused=refused; fi
  [[ "$refused" == "$verdict" ]] || complain "$from importing $to is $refused, should be $verdict"
done <"$tree/imports"
while read -r file text; do
  grep -q "^$file:.*$text" "$tree/output" || complain "no finding '$text' in $file"
done <"$tree/findings"

if ((status)); then
  cat "$tree/errors" >&2
  exit "$status"
fi
echo "lint-selftest: $(wc -l <"$tree/imports") imports and $(wc -l <"$tree/findings") code rules judged as they should be"
