package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"github.com/fairlead-dev/fairlead/test/dorissim/rootfs"
)

// Doris describes the images of the stand-in for Doris. They take the names that users' manifests carry.
type Doris struct {
	// FETag and BETag are full image names; the version after "fe-" and "be-" is the one that the nodes report.
	FETag, BETag string
	// Program is the stand-in's static binary; if empty it is built from this module.
	Program string
	// OutDir takes the archives.
	OutDir string
	Base   Base
}

// Default names of the stand-in's images.
const (
	DefaultFETag = "docker.io/apache/doris:fe-2.1.8"
	DefaultBETag = "docker.io/apache/doris:be-2.1.8"
)

const (
	dorisRoot = "opt/apache-doris"
	imagePath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

// Build writes the FE's and the BE's archive and returns their files.
func (d Doris) Build(ctx context.Context) ([]string, error) {
	if err := errors.Join(wholeName(d.FETag), wholeName(d.BETag)); err != nil {
		return nil, err
	}
	base, err := d.Base.Layer(ctx)
	if err != nil {
		return nil, err
	}
	program, err := d.program(ctx)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(d.OutDir, 0o755); err != nil {
		return nil, fmt.Errorf("make output directory: %w", err)
	}
	var files []string
	for _, image := range []struct{ component, tag string }{{"fe", d.FETag}, {"be", d.BETag}} {
		top, err := dorisTree(image.component, image.tag, program)
		if err != nil {
			return nil, err
		}
		file, err := WriteArchive(d.OutDir, Image{
			Tag: image.tag, BaseLayer: base, Top: top, Env: []string{imagePath}, WorkingDir: "/" + dorisRoot,
			Cmd: []string{"/bin/bash", "/" + dorisRoot + "/" + image.component + "_entrypoint.sh"},
		})
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(d.Base.Log, "image: %s is in %s\n", image.tag, file)
		files = append(files, file)
	}
	return files, nil
}

// wholeName refuses a name without a repository, or without a tag: a tag alone would be
// taken for the name of another image.
func wholeName(image string) error {
	repository, tag, _ := strings.Cut(image[strings.LastIndexByte(image, '/')+1:], ":")
	if repository == "" || tag == "" {
		return fmt.Errorf("%q is no whole name of an image: give its repository and its tag, as in apache/doris:be-2.1.8", image)
	}
	return nil
}

func (d Doris) program(ctx context.Context) ([]byte, error) {
	file := d.Program
	if file == "" {
		dir, err := os.MkdirTemp("", "dorissim-")
		if err != nil {
			return nil, fmt.Errorf("make build directory: %w", err)
		}
		defer func() { _ = os.RemoveAll(dir) }()
		file = filepath.Join(dir, "dorissim")
		if err := GoBuild(ctx, d.Base.Log, "github.com/fairlead-dev/fairlead/test/dorissim/cmd/dorissim", file); err != nil {
			return nil, err
		}
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the stand-in's program: %w", err)
	}
	return b, nil
}

// GoBuild builds a static program, the same bytes wherever it is built.
func GoBuild(ctx context.Context, log io.Writer, pkg, out string) error {
	fmt.Fprintf(log, "image: building %s\n", pkg)
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -buildid=", "-o", out, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build %s: %w", pkg, err)
	}
	return nil
}

// dorisTree lays out /opt/apache-doris: the program, the scripts and the tree of one component.
func dorisTree(component, tag string, program []byte) (*Tree, error) {
	t := NewTree()
	err := fs.WalkDir(rootfs.Files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		top, _, nested := strings.Cut(name, "/")
		if nested && top != component || !nested && strings.HasPrefix(name, otherComponent(component)) {
			return nil
		}
		b, err := rootfs.Files.ReadFile(name)
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o755)
		if path.Ext(name) == ".conf" {
			mode = 0o644
		}
		t.File(path.Join(dorisRoot, name), mode, b)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("lay out %s: %w", component, err)
	}
	t.File(dorisRoot+"/dorissim", 0o755, program)
	t.File(dorisRoot+"/DORIS_VERSION", 0o644, []byte(DorisVersion(tag)+"\n"))
	t.Dir(dorisRoot+"/"+component+"/log", 0o755)
	return t, nil
}

func otherComponent(component string) string {
	if component == "fe" {
		return "be_"
	}
	return "fe_"
}

// DorisVersion reads the version out of an image name such as apache/doris:fe-2.1.8.
func DorisVersion(tag string) string {
	version := tag[strings.LastIndexByte(tag, ':')+1:]
	for _, prefix := range []string{"fe-", "be-", "ms-", "broker-"} {
		version = strings.TrimPrefix(version, prefix)
	}
	return strings.TrimPrefix(version, "ubuntu-")
}
