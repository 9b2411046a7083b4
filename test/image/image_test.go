package image

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func TestTree(t *testing.T) {
	var deb bytes.Buffer
	tw := tar.NewWriter(&deb)
	for _, h := range []tar.Header{
		{Name: "./", Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: "./bin/", Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: "./bin/bash", Typeflag: tar.TypeReg, Mode: 0o755, Size: 1},
		{Name: "./usr/bin/su", Typeflag: tar.TypeReg, Mode: 0o4755, Size: 1},
		{Name: "./usr/share/doc/bash/README", Typeflag: tar.TypeReg, Mode: 0o644, Size: 1},
		{Name: "./lib/x86_64-linux-gnu/libc.so", Typeflag: tar.TypeSymlink, Linkname: "libc.so.6"},
		{Name: "./bin/rbash", Typeflag: tar.TypeLink, Linkname: "./bin/bash"},
	} {
		must(t, tw.WriteHeader(&h))
		if h.Size > 0 {
			_, err := tw.Write([]byte("x"))
			must(t, err)
		}
	}
	must(t, tw.Close())
	tree := NewTree()
	tree.Link("bin", "usr/bin")
	must(t, readTar(&deb, tree))
	want := map[string]string{
		"bin": "usr/bin", "usr": "", "usr/bin": "", "usr/bin/bash": "", "usr/bin/su": "", "usr/bin/rbash": "usr/bin/bash",
		"usr/lib": "", "usr/lib/x86_64-linux-gnu": "", "usr/lib/x86_64-linux-gnu/libc.so": "libc.so.6",
	}
	got := map[string]string{}
	for n, e := range tree.entries {
		got[n] = e.link
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("entries and links differ (-want +got):\n%s", diff)
	}
	if mode := tree.entries["usr/bin/su"].mode; mode != 0o4755 {
		t.Errorf("mode is %o", mode)
	}
}

func TestArchiveNamesAreThoseOfThePlanWithoutSetupPackages(t *testing.T) {
	plan := "Reading package lists...\n'http://deb/b_1_amd64.deb' b_1_amd64.deb 10 SHA256:x\n" +
		"'http://deb/a_2%3a1_all.deb' a_2%3a1_all.deb 10 SHA256:x\n'http://deb/perl-base_5_amd64.deb' perl-base_5_amd64.deb 10 SHA256:x\n"
	if diff := cmp.Diff([]string{"a_2%3a1_all.deb", "b_1_amd64.deb"}, archiveNames(plan)); diff != "" {
		t.Errorf("names differ (-want +got):\n%s", diff)
	}
}

func TestDorisVersion(t *testing.T) {
	for tag, want := range map[string]string{
		"docker.io/apache/doris:fe-2.1.8": "2.1.8", "apache/doris:be-ubuntu-3.0.3": "3.0.3",
		"localhost:5000/doris:be-4.1.3": "4.1.3", "selectdb/doris.fe-ubuntu:2.1.0": "2.1.0",
	} {
		if got := DorisVersion(tag); got != want {
			t.Errorf("%s: got %s, want %s", tag, got, want)
		}
	}
}

// TestEqualInputsGiveEqualArchives also reads the archive back as a runtime does.
func TestEqualInputsGiveEqualArchives(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "fairlead")
	must(t, os.WriteFile(binary, []byte("program"), 0o755))
	var sums [][32]byte
	for range 2 {
		file, err := Operator{Tag: DefaultOperatorTag, Binary: binary, OutDir: t.TempDir()}.Build()
		must(t, err)
		if got := filepath.Base(file); got != "fairlead-dev-fairlead-dev.tar" {
			t.Errorf("the file is called %s", got)
		}
		b, err := os.ReadFile(file)
		must(t, err)
		sums = append(sums, sha256.Sum256(b))
		tag, err := name.NewTag(DefaultOperatorTag)
		must(t, err)
		img, err := tarball.ImageFromPath(file, &tag)
		must(t, err)
		config, err := img.ConfigFile()
		must(t, err)
		if c := config.Config; c.User != "65532:65532" || strings.Join(c.Entrypoint, " ") != "/fairlead" {
			t.Errorf("got %+v", c)
		}
	}
	if sums[0] != sums[1] {
		t.Error("two builds of the same inputs differ")
	}
}

func TestADorisTreeHoldsOneComponent(t *testing.T) {
	tree, err := dorisTree("fe", DefaultFETag, []byte("program"))
	must(t, err)
	for _, n := range []string{"fe_entrypoint.sh", "fe_prestop.sh", "entrypoint_lib.sh", "doris-debug", "dorissim", "fe/bin/start_fe.sh", "fe/conf/fe.conf"} {
		if !tree.Has(dorisRoot + "/" + n) {
			t.Errorf("%s is missing", n)
		}
	}
	for _, n := range []string{"be_entrypoint.sh", "be/bin/start_be.sh"} {
		if tree.Has(dorisRoot + "/" + n) {
			t.Errorf("%s is in the FE image", n)
		}
	}
}

func TestNamesOfImagesAreWholeOnes(t *testing.T) {
	t.Parallel()
	for name, refused := range map[string]bool{
		DefaultFETag: false, DefaultBETag: false, "apache/doris:be-2.1.9": false, "localhost:5000/doris:be-2.1.9": false,
		"be-2.1.9": true, "localhost:5000/doris": true, "apache/doris:": true, "apache/:be-2.1.9": true, "": true,
	} {
		d := Doris{FETag: DefaultFETag, BETag: name, OutDir: t.TempDir(), Base: Base{CacheDir: filepath.Join(t.TempDir(), "none"), Packages: []string{"none"}, Log: io.Discard}}
		if err := wholeName(name); (err != nil) != refused {
			t.Errorf("%q: error %v, and it should be refused: %t", name, err, refused)
		}
		if !refused {
			continue
		}
		if _, err := d.Build(t.Context()); err == nil || !strings.Contains(err.Error(), "is no whole name") {
			t.Errorf("building %q: error %v, want one that asks for the whole name", name, err)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
