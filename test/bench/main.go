// Command bench measures the operator with many clusters at once, on a real
// control plane and simulated nodes, and prints a table. It judges nothing:
// times depend on the machine, so a person reads them.
//
//	go run ./test/bench --clusters 100,300
//
// For each number of clusters it brings up a control plane of its own, starts
// the operator as a process of its own, creates all DorisClusters (one
// frontend, one backend, a namespace each) at once, and counts: the time until
// all are available, requests by the audit log, what an idle operator asks for,
// processor time and memory. With the largest number it then adds ConfigMaps
// and Secrets that concern nobody, and tells what each costs the operator.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// options are the flags.
type options struct {
	clusters    []int
	ready       time.Duration
	idle        time.Duration
	quiet       time.Duration
	timeout     time.Duration
	foreign     int
	foreignSize int
	version     string
	operator    string
	args        []string
	namespaces  int
	floor       bool
	keepLog     string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

func command() *cobra.Command {
	o := options{}
	cmd := &cobra.Command{
		Use:           "bench",
		Short:         "Measure the operator with many clusters at once",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.IntSliceVar(&o.clusters, "clusters", []int{100, 300}, "numbers of clusters")
	f.DurationVar(&o.ready, "ready", time.Second, "time until a bound Pod is Ready")
	f.DurationVar(&o.idle, "idle", 30*time.Second, "how long the idle operator is watched")
	f.DurationVar(&o.quiet, "quiet", 3*time.Second, "how long the operator makes no request before it counts as settled")
	f.DurationVar(&o.timeout, "timeout", 5*time.Minute, "the longest that a number of clusters may take until all are available")
	f.IntVar(&o.foreign, "foreign", 5000, "ConfigMaps, and as many Secrets, that concern nobody; 0 skips that part")
	f.IntVar(&o.foreignSize, "foreign-size", 10<<10, "bytes in each of them")
	f.IntVar(&o.namespaces, "namespaces", 0, "namespaces that the clusters are spread over; 0: one each")
	f.StringVar(&o.version, "version", "", "Kubernetes version (default: that of the local cluster)")
	f.StringVar(&o.operator, "operator", "", "operator binary (default: built from ./cmd/fairlead)")
	f.StringArrayVar(&o.args, "operator-arg", nil, "further argument of the operator; may be repeated")
	f.BoolVar(&o.floor, "floor", true, "also measure the same StatefulSets and Services without any operator: what Kubernetes alone takes")
	f.StringVar(&o.keepLog, "operator-log", "", "file for the operator's log (default: kept only when the bench fails)")
	return cmd
}

func (o *options) run(ctx context.Context, out, progress io.Writer) error {
	work, err := os.MkdirTemp("", "fairlead-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	if o.operator == "" {
		o.operator = filepath.Join(work, "fairlead")
		fmt.Fprintln(progress, "bench: building ./cmd/fairlead")
		build := exec.CommandContext(ctx, "go", "build", "-o", o.operator, "./cmd/fairlead")
		build.Dir, build.Stdout, build.Stderr = root, progress, progress
		if err := build.Run(); err != nil {
			return fmt.Errorf("build the operator: %w", err)
		}
	}
	if o.keepLog == "" {
		o.keepLog = filepath.Join(work, "operator.log")
	}
	report := report{machine: describeMachine(), options: *o}
	for i, n := range o.clusters {
		s := &scene{options: o, root: root, n: n, foreign: i == len(o.clusters)-1, progress: progress}
		measured, err := s.run(ctx)
		if err != nil {
			o.showLog(progress)
			return fmt.Errorf("measure %d clusters: %w", n, err)
		}
		report.runs = append(report.runs, measured)
	}
	return report.print(out)
}

// showLog prints the end of the operator's log, which is about to go.
func (o *options) showLog(progress io.Writer) {
	text, err := os.ReadFile(o.keepLog)
	if err != nil {
		return
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	fmt.Fprintf(progress, "bench: the operator's last words:\n%s\n", strings.Join(lines[max(0, len(lines)-20):], "\n"))
}

// moduleRoot is the directory of the module's go.mod.
func moduleRoot(ctx context.Context) (string, error) {
	text, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	file := strings.TrimSpace(string(text))
	if filepath.Base(file) != "go.mod" {
		return "", errors.New("run it inside the module: it needs config/crd")
	}
	return filepath.Dir(file), nil
}
