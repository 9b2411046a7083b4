package image

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Image is what an archive holds.
type Image struct {
	// Tag is the full name that the runtime finds the image by, for example docker.io/apache/doris:fe-2.1.8.
	Tag string
	// BaseLayer is the file of a gzipped layer, or empty.
	BaseLayer string
	// Top holds the image's own files.
	Top *Tree
	// Entrypoint, Cmd, Env, User and WorkingDir are the run settings.
	Entrypoint, Cmd, Env []string
	User, WorkingDir     string
}

// WriteArchive writes the image as a docker-archive into the directory and returns the file's path.
func WriteArchive(dir string, img Image) (string, error) {
	tag, err := name.NewTag(img.Tag)
	if err != nil {
		return "", fmt.Errorf("image tag %q: %w", img.Tag, err)
	}
	built, err := img.build()
	if err != nil {
		return "", fmt.Errorf("build image %q: %w", img.Tag, err)
	}
	file := filepath.Join(dir, ArchiveName(img.Tag))
	err = writeAtomically(file, func(w io.Writer) error { return tarball.Write(tag, built, w) })
	if err != nil {
		return "", fmt.Errorf("write image %q: %w", img.Tag, err)
	}
	return file, nil
}

// ArchiveName returns the file name for an image: its tag without the registry, flattened.
func ArchiveName(tag string) string {
	short := strings.TrimPrefix(tag, "docker.io/")
	return strings.NewReplacer("/", "-", ":", "-").Replace(short) + ".tar"
}

func (img Image) build() (v1.Image, error) {
	var layers []v1.Layer
	if img.BaseLayer != "" {
		base, err := tarball.LayerFromFile(img.BaseLayer)
		if err != nil {
			return nil, fmt.Errorf("open base layer: %w", err)
		}
		layers = append(layers, base)
	}
	var top bytes.Buffer
	if err := img.Top.WriteLayer(&top); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(top.Bytes())), nil
	})
	if err != nil {
		return nil, fmt.Errorf("make top layer: %w", err)
	}
	out, err := mutate.AppendLayers(empty.Image, append(layers, layer)...)
	if err != nil {
		return nil, fmt.Errorf("append layers: %w", err)
	}
	file, err := out.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("read image config: %w", err)
	}
	file = file.DeepCopy()
	file.Architecture, file.OS, file.Created = runtime.GOARCH, "linux", v1.Time{Time: epoch}
	file.Config = v1.Config{
		Entrypoint: img.Entrypoint, Cmd: img.Cmd, Env: img.Env, User: img.User, WorkingDir: img.WorkingDir,
	}
	return mutate.ConfigFile(out, file)
}
