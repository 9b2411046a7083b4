package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func readCRD(t *testing.T, path string) apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(content, &crd); err != nil {
		t.Fatal(err)
	}
	return crd
}

func TestPageGolden(t *testing.T) {
	t.Parallel()
	got, err := page(readCRD(t, "testdata/crd.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	const golden = "testdata/page.md"
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Fatalf("page differs from %s (-want +got):\n%s", golden, diff)
	}
}

func TestPageIsTheSameEachTime(t *testing.T) {
	t.Parallel()
	crd := readCRD(t, "testdata/crd.yaml")
	first, err := page(crd)
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		again, err := page(crd)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(first), string(again)); diff != "" {
			t.Fatal(diff)
		}
	}
}

func TestPageOfCRDWithoutStoredSchemaIsRefused(t *testing.T) {
	t.Parallel()
	crd := readCRD(t, "testdata/crd.yaml")
	crd.Spec.Versions[0].Schema = nil
	if _, err := page(crd); err == nil {
		t.Fatal("a CRD without a schema got a page")
	}
}

// Every link of the committed pages has its target, and every field a meaning.
func TestCommittedPagesAreWhole(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("../../config/crd/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no CRDs: %v", err)
	}
	for _, path := range paths {
		text, err := page(readCRD(t, path))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "| `") && strings.HasSuffix(line, "|  |\n") {
				t.Errorf("%s: a field without a description: %s", path, line)
			}
			for rest := line; ; {
				_, after, found := strings.Cut(rest, "](#")
				if !found {
					break
				}
				target, after, _ := strings.Cut(after, ")")
				if !strings.Contains(string(text), `<a id="`+target+`">`) {
					t.Errorf("%s: link to #%s leads nowhere", path, target)
				}
				rest = after
			}
		}
	}
}
