// Package demo is the story that `make demo` tells and that the end-to-end test
// checks: a cluster with a real node, the operator in it under its own chart, a
// DorisCluster, a query, and rows that outlive the Pod they were
// written through.
//
// Doris itself is played by dorissim, a test double.
package demo

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/test/cluster"
)

// Namespace is where the DorisCluster lives.
const Namespace = "analytics"

// Name is that of the DorisCluster.
const Name = "doris"

// Demo is a story under way.
type Demo struct {
	// Cluster has a real node.
	Cluster *cluster.Cluster
	// Root is the top of the source tree.
	Root string
	// Images holds the archives of the images.
	Images string
	// Out gets the progress for a person.
	Out io.Writer

	start time.Time
}

// Begin starts the clock.
func (d *Demo) Begin() { d.start = time.Now() }

// Sayf prints one line of progress with the time since Begin.
func (d *Demo) Sayf(format string, args ...any) {
	took := time.Since(d.start).Round(time.Second)
	fmt.Fprintf(d.Out, "[%2d:%02d] %s\n", int(took.Minutes()), int(took.Seconds())%60, fmt.Sprintf(format, args...))
}

// BuildImages makes the operator's binary and the images, without a registry.
// It needs no cluster, so that it can run beside the start of one.
func BuildImages(ctx context.Context, root, dir string, out io.Writer) error {
	binary := filepath.Join(dir, "fairlead")
	if err := goTool(ctx, root, out, "build", "-o", binary, "./cmd/fairlead"); err != nil {
		return err
	}
	if err := goTool(ctx, root, out, "run", "./hack/image", "operator", "--binary", binary, "--out", dir); err != nil {
		return err
	}
	return BuildStandIn(ctx, root, dir, out)
}

// BuildStandIn makes the images of the stand-in alone. The flags are those of
// "hack/image dorissim": other names have other versions reported.
func BuildStandIn(ctx context.Context, root, dir string, out io.Writer, flags ...string) error {
	return goTool(ctx, root, out, append([]string{"run", "./hack/image", "dorissim", "--out", dir}, flags...)...)
}

// BuildTools puts the programs with which a person goes on into bin/: that of the
// cluster and the plugin of kubectl. "go run" of a person's own shell has other flags,
// so that it would compile Kubernetes' libraries once more.
func BuildTools(ctx context.Context, root string, out io.Writer) error {
	return goTool(ctx, root, out, "build", "-o", filepath.Join(root, "bin")+string(filepath.Separator), "./hack/cluster", "./cmd/kubectl-fairlead")
}

func goTool(ctx context.Context, root string, out io.Writer, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = root, out, out
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

// Install loads the images into the node and installs the operator with its chart.
func (d *Demo) Install(ctx context.Context) error {
	if err := d.LoadImages(ctx); err != nil {
		return err
	}
	return d.InstallChart(ctx)
}

// LoadImages loads the images into the node.
func (d *Demo) LoadImages(ctx context.Context) error {
	archives, err := filepath.Glob(filepath.Join(d.Images, "*.tar"))
	if err != nil {
		return err
	}
	for _, a := range archives {
		d.Sayf("loading image %s", filepath.Base(a))
		if err := d.Cluster.LoadImage(ctx, a); err != nil {
			return err
		}
	}
	return nil
}

// InstallOperator installs the operator, whose image the node has, with the install
// manifest.
func (d *Demo) InstallOperator(ctx context.Context) error {
	d.Sayf("installing the operator: kubectl apply -f config/install/fairlead.yaml")
	if _, err := d.Kubectl(ctx, "apply", "--server-side", "-f", filepath.Join(d.Root, "config/install/fairlead.yaml")); err != nil {
		return err
	}
	return d.awaitOperator(ctx)
}

// awaitOperator waits until the operator is available.
func (d *Demo) awaitOperator(ctx context.Context) error {
	_, err := d.Kubectl(ctx, "-n", "fairlead-system", "rollout", "status", "deployment/fairlead", "--timeout=180s")
	if err != nil {
		return fmt.Errorf("the operator does not become available: %w\n%s", err, d.Diagnosis(ctx, "fairlead-system"))
	}
	d.Sayf("the operator runs")
	return nil
}

// Create applies the example.
func (d *Demo) Create(ctx context.Context) error {
	d.Sayf("creating three frontends and three backends: kubectl apply -n %s -f examples/doriscluster.yaml", Namespace)
	if _, err := d.Kubectl(ctx, "create", "namespace", Namespace); err != nil && !strings.Contains(err.Error(), "AlreadyExists") {
		return err
	}
	_, err := d.Kubectl(ctx, "apply", "-n", Namespace, "-f", filepath.Join(d.Root, "examples/doriscluster.yaml"))
	return err
}

// AwaitReady waits until the cluster is ready, and prints each change.
func (d *Demo) AwaitReady(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	const columns = `{range .status.conditions[?(@.type=="Ready")]}{.status} {.message}{end}`
	last := ""
	for {
		got, err := d.Kubectl(ctx, "get", "dcr", "-n", Namespace, Name, "-o", "jsonpath="+columns)
		if err == nil && got != "" && got != last {
			status, message, _ := strings.Cut(got, " ")
			d.Sayf("ready: %-5s %s", status, message)
			last = got
		}
		if strings.HasPrefix(got, "True ") {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not ready after %s: %s\n%s", limit, last, d.Diagnosis(context.WithoutCancel(ctx), Namespace))
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// Diagnosis collects what a person would look at.
func (d *Demo) Diagnosis(ctx context.Context, namespace string) string {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	var b strings.Builder
	for _, args := range [][]string{
		{"get", "pods,pvc", "-n", namespace, "-o", "wide"},
		{"get", "events", "-n", namespace, "--sort-by=.lastTimestamp"},
		{"get", "dcr", "-n", namespace, "-o", "yaml"},
		{"logs", "-n", "fairlead-system", "deployment/fairlead", "--tail=50"},
	} {
		out, err := d.Kubectl(ctx, args...)
		fmt.Fprintf(&b, "--- kubectl %s\n%s\n", strings.Join(args, " "), out)
		if err != nil {
			fmt.Fprintf(&b, "%v\n", err)
		}
	}
	return b.String()
}

// Kubectl runs kubectl of the cluster's version and returns what it printed.
func (d *Demo) Kubectl(ctx context.Context, args ...string) (string, error) {
	return d.run(ctx, d.Cluster.Record().Kubectl, nil, args)
}

// run runs a program on the cluster, with these variables besides our own, and returns
// what it printed.
func (d *Demo) run(ctx context.Context, program string, env, args []string) (string, error) {
	cmd := exec.CommandContext(ctx, program, append([]string{"--kubeconfig", d.Cluster.Kubeconfig()}, args...)...)
	cmd.Env = append(append(os.Environ(), "KUBECACHEDIR="+d.Cluster.ClientCache()), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%s %s: %w: %s", filepath.Base(program), args[0], err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}
