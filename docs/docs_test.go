// Package docs holds the pages for users. Its tests hold them to the code.
package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestEveryReasonIsExplained holds that the page about conditions and reasons names
// each that there is.
func TestEveryReasonIsExplained(t *testing.T) {
	text, err := os.ReadFile("troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	words := map[string]string{}
	for _, dir := range []string{"../api/meta", "../internal/kernel", "../internal/system/doris"} {
		maps.Copy(words, wordsIn(t, dir))
	}
	for _, known := range []string{"Ready", "ReasonNot", "MembersCannotLeave", "Contested", "SettingsPending"} {
		if _, found := words[known]; found == (known == "ReasonNot") {
			t.Fatalf("%s: found is %t, so the constants are not read as they are", known, found)
		}
	}
	for _, word := range slices.Sorted(maps.Keys(words)) {
		if !strings.Contains(page, "`"+word+"`") {
			t.Errorf("troubleshooting.md does not say what %s means (%s)", word, words[word])
		}
	}
}

// TestEveryTestThatIsNamedIsThere holds that the page about faults names no test that
// there is not.
func TestEveryTestThatIsNamedIsThere(t *testing.T) {
	page, err := os.ReadFile("faults.md")
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]bool{}
	err = filepath.WalkDir("..", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, err := os.ReadFile(name)
		for _, found := range regexp.MustCompile(`(?m)^func (Test\w+)`).FindAllSubmatch(text, -1) {
			tests[string(found[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`(Test\\w+)`").FindAllSubmatch(page, -1)
	if len(named) == 0 {
		t.Fatal("no test is named, so the page is not read as it is written")
	}
	for _, name := range named {
		if !tests[string(name[1])] {
			t.Errorf("faults.md names %s, and there is no such test", name[1])
		}
	}
}

// TestEveryMetricAndAlertIsExplained holds that the page about metrics names those that
// there are, and no others.
func TestEveryMetricAndAlertIsExplained(t *testing.T) {
	text, err := os.ReadFile("metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	find := func(name string, pattern *regexp.Regexp) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range pattern.FindAllSubmatch(text, -1) {
			there[string(found[1])] = true
		}
	}
	err = filepath.WalkDir("../internal", func(name string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			find(name, regexp.MustCompile(`Name: +"(fairlead_\w+)"`))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	find("../config/monitoring/alerts.yaml", regexp.MustCompile(`- alert: (\w+)`))
	named := map[string]bool{}
	for _, found := range regexp.MustCompile("`((?:fairlead_|Fairlead)\\w+)`").FindAllSubmatch(text, -1) {
		named[string(found[1])] = true
	}
	if !there["fairlead_info"] || !there["FairleadDown"] {
		t.Fatalf("found are %v, so the code is not read as it is", there)
	}
	for _, name := range slices.Sorted(maps.Keys(there)) {
		if !named[name] {
			t.Errorf("metrics.md does not name %s", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(named)) {
		if !there[name] {
			t.Errorf("metrics.md names %s, which is not there", name)
		}
	}
}

// wordsIn returns the values of the constants of a package that are named as
// conditions and reasons are, each with its name.
func wordsIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	words := map[string]string{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if decl, is := d.(*ast.GenDecl); is && decl.Tok == token.CONST {
				maps.Copy(words, wordsOf(decl))
			}
		}
	}
	return words
}

func wordsOf(decl *ast.GenDecl) map[string]string {
	words := map[string]string{}
	for _, s := range decl.Specs {
		spec, is := s.(*ast.ValueSpec)
		if !is {
			continue
		}
		for i, name := range spec.Names {
			named := strings.HasPrefix(name.Name, "Condition") || strings.HasPrefix(strings.ToLower(name.Name), "reason")
			if !named || i >= len(spec.Values) {
				continue
			}
			if value, is := spec.Values[i].(*ast.BasicLit); is && value.Kind == token.STRING {
				if word, err := strconv.Unquote(value.Value); err == nil {
					words[word] = name.Name
				}
			}
		}
	}
	return words
}
