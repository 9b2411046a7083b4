package build

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Versions of the programs that are not part of Kubernetes itself.
const (
	etcdVersion    = "v3.6.8"
	corednsVersion = "v1.15.0"
)

// module is one generated Go module and the programs it yields.
type module struct {
	name     string             // directory below the cache
	require  string             // module@version that is built; empty for the standard library alone
	packages map[Program]string // program to package path
	main     string             // source of the module's own main package, if any
	ldflags  string
	tags     string // build tags
	// staging says that the required module replaces modules by directories of
	// its own repository, which are published at v0.<minor>.<patch> as well.
	staging string
}

var versionPattern = regexp.MustCompile(`^1\.(\d+)\.(\d+)$`)

// modulesFor returns the modules of a Kubernetes version, the longest build first.
func modulesFor(version string) ([]module, error) {
	m := versionPattern.FindStringSubmatch(version)
	if m == nil {
		return nil, fmt.Errorf("kubernetes version %q is not of the form 1.x.y", version)
	}
	return []module{kubernetes(version, m[1], m[2]), etcd(), coredns(), pause()}, nil
}

func kubernetes(version, minor, patch string) module {
	packages := map[Program]string{}
	for _, p := range []Program{APIServer, ControllerManager, Scheduler, Kubelet, Proxy, Kubectl} {
		packages[p] = "k8s.io/kubernetes/cmd/" + string(p)
	}
	flags := []string{"-s", "-w"}
	// client-go's version goes into the user agent, which the audit log shows.
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		flags = append(flags,
			"-X "+pkg+".gitVersion=v"+version,
			"-X "+pkg+".gitMajor=1",
			"-X "+pkg+".gitMinor="+minor,
			"-X "+pkg+".gitTreeState=clean")
	}
	return module{
		name:     "kubernetes/v" + version,
		require:  "k8s.io/kubernetes@v" + version,
		packages: packages,
		ldflags:  strings.Join(flags, " "),
		// Until 1.30 the controller manager has cloud providers built in, and
		// their module is not published for every version.
		tags:    "providerless",
		staging: "v0." + minor + "." + patch,
	}
}

func etcd() module {
	return module{
		name:     "etcd/" + etcdVersion,
		require:  "go.etcd.io/etcd/server/v3@" + etcdVersion,
		packages: map[Program]string{Etcd: "."},
		ldflags:  "-s -w",
		main: `package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
`,
	}
}

// coredns is built with the few plugins that a cluster's DNS needs; all of
// them would take four times as long.
func coredns() module {
	return module{
		name:     "coredns/" + corednsVersion,
		require:  "github.com/coredns/coredns@" + corednsVersion,
		packages: map[Program]string{CoreDNS: "."},
		ldflags:  "-s -w",
		main: `package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
)

func main() {
	dnsserver.Directives = []string{"bind", "errors", "kubernetes"}
	coremain.Run()
}
`,
	}
}

// pause is the program that holds a Pod's namespaces: it waits to be told to
// end and collects the orphans of a shared PID namespace meanwhile.
func pause() module {
	return module{
		name:     "pause/v1",
		packages: map[Program]string{Pause: "."},
		ldflags:  "-s -w",
		main: `package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGCHLD)
	for s := range signals {
		if s != syscall.SIGCHLD {
			return
		}
		for {
			if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 || err != nil {
				break
			}
		}
	}
}
`,
	}
}

// modFile is the part of "go mod edit -json" that is read here.
type modFile struct {
	Go      string
	Require []struct{ Path, Version string }
}

// generate writes the module's go.mod and main package. An existing go.sum
// stays: it only saves work.
func (m module) generate(ctx context.Context, g goCommand) error {
	if err := os.MkdirAll(g.dir, 0o755); err != nil {
		return err
	}
	fmt.Fprintf(g.log, "build %s: downloading modules\n", m.name)
	upstream, err := m.upstream(ctx, g)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(g.dir, "go.mod"), []byte(m.goMod(upstream)), 0o644); err != nil {
		return err
	}
	if m.main == "" {
		return nil
	}
	return os.WriteFile(filepath.Join(g.dir, "main.go"), []byte(m.main), 0o644)
}

// upstream reads the go.mod of the required module.
func (m module) upstream(ctx context.Context, g goCommand) (modFile, error) {
	if m.require == "" {
		return modFile{Go: "1.24"}, nil
	}
	var file modFile
	out, err := g.output(ctx, "mod", "download", "-json", m.require)
	if err != nil {
		return file, err
	}
	var downloaded struct{ GoMod string }
	if err := json.Unmarshal(out, &downloaded); err != nil {
		return file, fmt.Errorf("read the answer about %s: %w", m.require, err)
	}
	if out, err = g.output(ctx, "mod", "edit", "-json", downloaded.GoMod); err != nil {
		return file, err
	}
	if err := json.Unmarshal(out, &file); err != nil {
		return file, fmt.Errorf("read go.mod of %s: %w", m.require, err)
	}
	return file, nil
}

// goMod renders the module: it takes over the Go version, because that sets
// the defaults of the runtime's compatibility switches.
func (m module) goMod(upstream modFile) string {
	var b strings.Builder
	fmt.Fprintf(&b, "module fairlead.dev/local/%s\n\ngo %s\n\n", strings.ReplaceAll(m.name, "/", "-"), upstream.Go)
	if path, version, ok := strings.Cut(m.require, "@"); ok {
		fmt.Fprintf(&b, "require %s %s\n", path, version)
	}
	if m.staging == "" {
		return b.String()
	}
	b.WriteString("\nreplace (\n")
	for _, r := range upstream.Require {
		if r.Version == "v0.0.0" {
			fmt.Fprintf(&b, "\t%s => %s %s\n", r.Path, r.Path, m.staging)
		}
	}
	b.WriteString(")\n")
	return b.String()
}
