// Package build compiles the programs of a Kubernetes cluster from their Go
// modules and caches them by version.
//
// Three modules of their own are generated under the cache directory, so that
// no version in the operator's go.mod is touched by them: kubernetes/<version>,
// etcd/<version> and coredns/<version>. A binary is written beside its final
// name and renamed, so one that exists is whole; a lock on the module's
// directory keeps two builds apart, and an interrupted build is simply begun
// again by the next one (the Go build cache remembers what was compiled).
package build

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// Program is the file name of one binary.
type Program string

// The programs that this package can build.
const (
	APIServer         Program = "kube-apiserver"
	ControllerManager Program = "kube-controller-manager"
	Scheduler         Program = "kube-scheduler"
	Kubelet           Program = "kubelet"
	Proxy             Program = "kube-proxy"
	Kubectl           Program = "kubectl"
	Etcd              Program = "etcd"
	CoreDNS           Program = "coredns"
	Pause             Program = "pause"
)

// DefaultVersion is the Kubernetes version of a cluster that names none.
const DefaultVersion = "1.36.3"

// ControlPlane lists what a cluster without real nodes needs.
func ControlPlane() []Program {
	return []Program{Etcd, APIServer, ControllerManager, Scheduler, Kubectl}
}

// RealNode lists what a cluster with a real node needs.
func RealNode() []Program {
	return append(ControlPlane(), Kubelet, Proxy, CoreDNS, Pause)
}

// Options say which version to build and where.
type Options struct {
	Version  string    // Kubernetes version without "v"; empty means DefaultVersion
	CacheDir string    // empty means CacheDir()
	Log      io.Writer // progress for a person; nil means none
	Env      []string  // further environment of the go tool, such as a mark to find it by
}

// Binaries are the paths of built programs.
type Binaries map[Program]string

// Dir returns the directory that holds the given program.
func (b Binaries) Dir(p Program) string { return filepath.Dir(b[p]) }

// CacheDir returns the default place for modules and binaries:
// $XDG_CACHE_HOME/fairlead or ~/.cache/fairlead.
func CacheDir() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache directory: %w", err)
	}
	return filepath.Join(base, "fairlead"), nil
}

// Build returns the paths of the programs and compiles those that the cache lacks.
func Build(ctx context.Context, opts Options, programs ...Program) (Binaries, error) {
	if opts.Version == "" {
		opts.Version = DefaultVersion
	}
	if opts.Log == nil {
		opts.Log = io.Discard
	}
	if opts.CacheDir == "" {
		dir, err := CacheDir()
		if err != nil {
			return nil, err
		}
		opts.CacheDir = dir
	}
	modules, err := modulesFor(opts.Version)
	if err != nil {
		return nil, err
	}
	out := Binaries{}
	for _, m := range modules {
		wanted := m.programsAmong(programs)
		if len(wanted) == 0 {
			continue
		}
		if err := m.build(ctx, opts, wanted); err != nil {
			return nil, fmt.Errorf("build %s: %w", m.name, err)
		}
		for _, p := range wanted {
			out[p] = m.binary(opts.CacheDir, p)
		}
	}
	for _, p := range programs {
		if out[p] == "" {
			return nil, fmt.Errorf("unknown program %q", p)
		}
	}
	return out, nil
}

func (m module) build(ctx context.Context, opts Options, programs []Program) error {
	dir := filepath.Join(opts.CacheDir, m.name)
	missing := m.missing(opts.CacheDir, programs)
	if len(missing) == 0 {
		return nil
	}
	if err := os.MkdirAll(filepath.Join(dir, "bin"), 0o755); err != nil {
		return err
	}
	unlock, err := lock(ctx, filepath.Join(dir, "lock"), opts.Log)
	if err != nil {
		return err
	}
	defer unlock()
	missing = m.missing(opts.CacheDir, programs) // another build may have made them meanwhile
	if len(missing) == 0 {
		return nil
	}
	g := goCommand{dir: filepath.Join(dir, "module"), log: opts.Log, env: opts.Env}
	if err := m.generate(ctx, g); err != nil {
		return err
	}
	if err := m.download(ctx, g, missing); err != nil {
		return err
	}
	for _, p := range missing {
		if err := m.compile(ctx, g, p, m.binary(opts.CacheDir, p)); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	return nil
}

func (m module) missing(cache string, programs []Program) []Program {
	var out []Program
	for _, p := range programs {
		if _, err := os.Stat(m.binary(cache, p)); err != nil {
			out = append(out, p)
		}
	}
	return out
}

func (m module) binary(cache string, p Program) string {
	return filepath.Join(cache, m.name, "bin", string(p))
}

func (m module) programsAmong(all []Program) []Program {
	var out []Program
	for _, p := range all {
		if _, ok := m.packages[p]; ok && !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

// download fetches the modules of all programs, so that one that cannot be had
// is known before minutes go into the others.
func (m module) download(ctx context.Context, g goCommand, programs []Program) error {
	args := []string{"list", "-deps", "-f", "{{.Name}}", "-tags", m.tags}
	for _, p := range programs {
		args = append(args, m.packages[p])
	}
	_, err := g.output(ctx, args...)
	return err
}

// compile writes the binary by way of a temporary name: a file under its
// final name is always a whole one.
func (m module) compile(ctx context.Context, g goCommand, p Program, to string) error {
	tmp := to + ".tmp"
	defer os.Remove(tmp)
	args := []string{"build", "-v", "-trimpath", "-o", tmp, "-ldflags", m.ldflags, "-tags", m.tags, m.packages[p]}
	if err := g.progress(ctx, string(p), args...); err != nil {
		return err
	}
	return os.Rename(tmp, to)
}
