package build

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// stub is a module without dependencies, so that a build takes no network.
func stub(source string) module {
	return module{name: "stub/v1", packages: map[Program]string{"stub": "."}, main: source}
}

const trivial = "package main\n\nfunc main() {}\n"

func options(t *testing.T) Options {
	t.Helper()
	return Options{CacheDir: t.TempDir(), Log: io.Discard}
}

func TestBuildLeavesAWholeBinary(t *testing.T) {
	opts, m := options(t), stub(trivial)
	if err := m.build(t.Context(), opts, []Program{"stub"}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(m.binary(opts.CacheDir, "stub"))
	if err != nil || info.Mode()&0o111 == 0 {
		t.Fatalf("binary: %v, %v", info, err)
	}
}

func TestBuildTwiceCompilesOnce(t *testing.T) {
	opts, m := options(t), stub(trivial)
	if err := m.build(t.Context(), opts, []Program{"stub"}); err != nil {
		t.Fatal(err)
	}
	// A second compile would fail.
	if err := stub("not Go").build(t.Context(), opts, []Program{"stub"}); err != nil {
		t.Errorf("a cached program was built again: %v", err)
	}
}

func TestFailedBuildLeavesNothing(t *testing.T) {
	opts, m := options(t), stub("package main\n\nfunc main() { undefined() }\n")
	err := m.build(t.Context(), opts, []Program{"stub"})
	if err == nil || !strings.Contains(err.Error(), "undefined") {
		t.Errorf("error = %v, want the compiler's message", err)
	}
	files, err := os.ReadDir(filepath.Dir(m.binary(opts.CacheDir, "stub")))
	if err != nil || len(files) != 0 {
		t.Errorf("left behind: %v, %v", files, err)
	}
}

func TestSecondBuildWaitsForTheFirst(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(t.Context(), path, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var told strings.Builder
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := lock(ctx, path, &told); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error = %v, want the deadline's", err)
	}
	if !strings.Contains(told.String(), "waiting") {
		t.Errorf("the log does not tell of the wait: %q", told.String())
	}
	unlock()
	unlock, err = lock(t.Context(), path, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}

func TestGoModReplacesStagingModulesOnly(t *testing.T) {
	m := kubernetes("1.36.3", "36", "3")
	upstream := modFile{Go: "1.26.0"}
	upstream.Require = []struct{ Path, Version string }{
		{"k8s.io/api", "v0.0.0"},
		{"k8s.io/utils", "v0.0.0-20260210185600-b8788abfbbc2"},
		{"golang.org/x/net", "v0.50.0"},
	}
	want := `module fairlead.dev/local/kubernetes-v1.36.3

go 1.26.0

require k8s.io/kubernetes v1.36.3

replace (
	k8s.io/api => k8s.io/api v0.36.3
)
`
	if diff := cmp.Diff(want, m.goMod(upstream)); diff != "" {
		t.Errorf("go.mod (-want +got):\n%s", diff)
	}
}

func TestVersionsThatAreNone(t *testing.T) {
	for _, version := range []string{"v1.36.3", "1.36", "2.0.0", "1.36.3-rc.1", ""} {
		if _, err := modulesFor(version); err == nil {
			t.Errorf("version %q was accepted", version)
		}
	}
}

func TestUnknownProgramIsRefused(t *testing.T) {
	if _, err := Build(t.Context(), options(t), "kube-unknown"); err == nil {
		t.Error("an unknown program was built")
	}
}
