package migrate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// saving is a backup of two members, of which one has a file.
func saving(text string) *backup {
	return &backup{
		manifest: manifest{Version: manifestVersion, ID: "0123456789abcdef", Namespace: "shop", Name: "doris", UID: "uid", Generation: 3, Members: []savedMember{
			{Component: "fe", Pod: "doris-fe-0", UID: "a"},
			{Component: "be", Pod: "doris-be-0", UID: "b", File: "doris-be-0.be_custom.conf", Digest: digest([]byte(text))},
		}},
		files: map[string][]byte{"doris-be-0": []byte(text)},
	}
}

func directory(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "backup")
	if err := private(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestBackupIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	dir := directory(t)
	if b, err := load(dir); b != nil || err != nil {
		t.Fatalf("an empty directory holds %v, %v", b, err)
	}
	if b, err := load(dir + "-not-there"); b != nil || err != nil {
		t.Fatalf("one that is not there holds %v, %v", b, err)
	}
	want := saving("a = 1\x00\xff\n")
	for range 2 { // the second time it is all there
		if err := want.write(dir); err != nil {
			t.Fatal(err)
		}
	}
	got, err := load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.manifest, got.manifest); diff != "" || string(got.files["doris-be-0"]) != "a = 1\x00\xff\n" || want.sameAs(got) != "" {
		t.Errorf("(-written +read):\n%s%s", diff, want.sameAs(got))
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("%v, %v", entries, err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", e.Name(), info.Mode(), err)
		}
	}
}

// TestBackupIsNeverOverwritten holds that a file which is there and differs stays, and that
// there is no backup without all files.
func TestBackupIsNeverOverwritten(t *testing.T) {
	t.Parallel()
	dir := directory(t)
	if err := saving("a = 1\n").write(dir); err != nil {
		t.Fatal(err)
	}
	err := saving("a = 2\n").write(dir)
	if err == nil || !strings.Contains(err.Error(), "not overwritten") || strings.Contains(err.Error(), "a = ") {
		t.Errorf("another one: %v", err)
	}
	if b, err := load(dir); err != nil || string(b.files["doris-be-0"]) != "a = 1\n" {
		t.Errorf("%v, %v", b, err)
	}
	begun := directory(t)
	if err := put(begun, "doris-be-0.be_custom.conf", []byte("a = 2\n")); err != nil {
		t.Fatal(err)
	}
	if b, err := load(begun); b != nil || err != nil {
		t.Errorf("one that was interrupted is %v, %v", b, err)
	}
}

func TestBackupThatIsRefused(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		do   func(t *testing.T, dir string)
		says string
	}{
		"others may look into it": {func(t *testing.T, dir string) { t.Helper(); check(t, os.Chmod(dir, 0o750)) }, "chmod 700"},
		"a file was edited": {func(t *testing.T, dir string) {
			t.Helper()
			check(t, os.WriteFile(filepath.Join(dir, "doris-be-0.be_custom.conf"), []byte("a = 2\n"), 0o600))
		}, "not what was backed up"},
		"a file is gone": {func(t *testing.T, dir string) {
			t.Helper()
			check(t, os.Remove(filepath.Join(dir, "doris-be-0.be_custom.conf")))
		}, "not whole"},
		"the manifest is none": {func(t *testing.T, dir string) {
			t.Helper()
			check(t, os.WriteFile(filepath.Join(dir, manifestFile), []byte("{"), 0o600))
		}, "no manifest"},
		"of another version": {func(t *testing.T, dir string) {
			t.Helper()
			check(t, os.WriteFile(filepath.Join(dir, manifestFile), []byte(`{"version":2}`), 0o600))
		}, "no manifest"},
		"it names a file elsewhere": {func(t *testing.T, dir string) {
			t.Helper()
			check(t, os.WriteFile(filepath.Join(dir, manifestFile), []byte(`{"version":1,"members":[{"pod":"..","file":"../secret"}]}`), 0o600))
		}, "elsewhere"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := directory(t)
			check(t, saving("a = 1\n").write(dir))
			test.do(t, dir)
			if _, err := load(dir); err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%v; want %q", err, test.says)
			}
		})
	}
	if err := private(""); err == nil || !strings.Contains(err.Error(), "--backup-dir") {
		t.Errorf("no directory: %v", err)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestBackupsDiffer names in what a cluster is another one than when it was backed up.
func TestBackupsDiffer(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		do   func(*backup)
		says string
	}{
		"nothing":         {func(*backup) {}, ""},
		"another cluster": {func(b *backup) { b.UID = "x" }, "of another cluster"},
		"an edit":         {func(b *backup) { b.Generation++ }, "edited"},
		"a Pod more":      {func(b *backup) { b.Members = append(b.Members, savedMember{}) }, "other Pods"},
		"another Pod":     {func(b *backup) { b.Members[0].UID = "x" }, "doris-fe-0 is another one"},
		"other settings":  {func(b *backup) { b.Members[1].Digest = "x" }, "settings of doris-be-0"},
		"a file now":      {func(b *backup) { b.Members[0].File = "x" }, "settings of doris-fe-0"},
		"a container":     {func(b *backup) { b.Members[0].Container = "x" }, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := saving("a")
			test.do(now)
			if got := saving("a").sameAs(now); (got == "") != (test.says == "") || !strings.Contains(got, test.says) {
				t.Errorf("%q; want %q", got, test.says)
			}
		})
	}
}

// FuzzLoad holds that no manifest has a file read outside of the directory.
func FuzzLoad(f *testing.F) {
	f.Add(`{"version":1,"members":[{"pod":"a","file":"a.be_custom.conf","digest":"x"}]}`)
	f.Add(`{"version":1,"members":[{"pod":"..","file":"../x"},{"pod":"/","file":"//"}]}`)
	f.Add(`{"version":1,"members":null}`)
	f.Fuzz(func(t *testing.T, text string) {
		dir := directory(t)
		check(t, os.WriteFile(filepath.Join(dir, manifestFile), []byte(text), 0o600))
		check(t, os.WriteFile(filepath.Join(dir, "..", "secret.x"), []byte("secret"), 0o600))
		b, err := load(dir)
		if err != nil || b == nil {
			return
		}
		for pod, content := range b.files {
			if strings.Contains(string(content), "secret") {
				t.Errorf("%q reads a file elsewhere for %q", text, pod)
			}
		}
	})
}
