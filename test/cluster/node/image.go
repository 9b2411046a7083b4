package node

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// WriteImage writes an archive of an image whose only file, and entry point,
// is the static program.
func WriteImage(w io.Writer, tag, program string) error {
	image, err := imageOf(program)
	if err != nil {
		return err
	}
	ref, err := name.NewTag(tag)
	if err != nil {
		return err
	}
	return tarball.Write(ref, image, w)
}

func imageOf(program string) (v1.Image, error) {
	entry := filepath.Base(program)
	binary, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	var files bytes.Buffer
	archive := tar.NewWriter(&files)
	header := &tar.Header{Name: entry, Mode: 0o755, Size: int64(len(binary)), Typeflag: tar.TypeReg}
	if err := archive.WriteHeader(header); err != nil {
		return nil, err
	}
	if _, err := archive.Write(binary); err != nil {
		return nil, err
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(files.Bytes())), nil
	})
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, err
	}
	config := &v1.ConfigFile{OS: "linux", Architecture: runtime.GOARCH}
	config.Config.Entrypoint = []string{"/" + entry}
	current, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config.RootFS = current.RootFS
	return mutate.ConfigFile(image, config)
}
