package config

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

// mount is a directory as the kubelet mounts a ConfigMap: the file is a link
// into a directory that is exchanged as a whole.
type mount struct {
	t   *testing.T
	dir string
	n   int
}

func newMount(t *testing.T, content string) *mount {
	t.Helper()
	m := &mount{t: t, dir: t.TempDir()}
	m.write(content)
	if err := os.Symlink(filepath.Join("..data", "config.yaml"), m.file()); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *mount) file() string { return filepath.Join(m.dir, "config.yaml") }

func (m *mount) write(content string) {
	m.t.Helper()
	m.n++
	version := filepath.Join(m.dir, "..v"+string(rune('0'+m.n)))
	if err := os.Mkdir(version, 0o700); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(version, "config.yaml"), []byte(content), 0o600); err != nil {
		m.t.Fatal(err)
	}
	next := filepath.Join(m.dir, "..next")
	if err := os.Symlink(version, next); err != nil {
		m.t.Fatal(err)
	}
	if err := os.Rename(next, filepath.Join(m.dir, "..data")); err != nil {
		m.t.Fatal(err)
	}
}

// watched is a watcher that has started, with what it does.
type watched struct {
	*Watcher
	*mount
	levels  []string
	reports []Report
	log     bytes.Buffer
}

func watch(t *testing.T, content string) *watched {
	t.Helper()
	w := &watched{mount: newMount(t, head+content)}
	w.Watcher = &Watcher{
		Path: w.file(), Sources: none(), Poll: time.Millisecond,
		Apply: func(s Settings) { w.levels = append(w.levels, s.LogLevel) },
	}
	w.Log = logr.FromSlogHandler(slog.NewTextHandler(&w.log, nil))
	if _, err := w.Start(); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *watched) edit(content string) {
	w.write(head + content)
	w.see()
}

func (w *watched) see() { w.look(func(r Report) { w.reports = append(w.reports, r) }) }

// metric is the value of a metric as it is served, with one label or none.
func metric(t *testing.T, name, label string) float64 {
	t.Helper()
	families, err := ctrlmetrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && (label == "" || m.GetLabel()[0].GetValue() == label) {
				return m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	return 0
}

func (w *watched) need(levels []string, reports ...Report) {
	w.t.Helper()
	if diff := cmp.Diff(levels, w.levels); diff != "" {
		w.t.Error("levels:", diff)
	}
	if diff := cmp.Diff(reports, w.reports); diff != "" {
		w.t.Error("reports:", diff)
	}
	w.levels, w.reports = nil, nil
}

func TestDynamicOptionIsInForceAndStartupOptionIsNamed(t *testing.T) {
	w := watch(t, "workers: 2\n")
	w.see()
	w.need(nil) // nothing changed, nothing is said

	w.edit("workers: 2\nlogLevel: debug\n")
	w.need([]string{"debug"}, Report{Reason: ReasonReloaded, Message: "in force without a restart: logLevel"})

	w.edit("workers: 4\nlogFormat: text\nlogLevel: warn\n")
	w.need([]string{"warn"},
		Report{Reason: ReasonReloaded, Message: "in force without a restart: logLevel"},
		Report{Warning: true, Reason: ReasonNeedsRestart, Message: "these options are read at start only and need a restart of the operator: logFormat, workers"})
	for _, name := range []string{"workers", "logFormat"} {
		if metric(t, "fairlead_config_restart_required", name) != 1 {
			t.Errorf("the metric does not say that %s needs a restart", name)
		}
	}
	if log := w.log.String(); !strings.Contains(log, "option needs a restart of the operator") || !strings.Contains(log, "option=workers from=2 to=4") {
		t.Errorf("the log does not say that workers needs a restart:\n%s", log)
	}

	w.edit("workers: 4\nlogFormat: text\nlogLevel: warn\n# a comment\n")
	w.need(nil) // said once

	w.edit("workers: 2\nlogLevel: warn\n")
	w.need(nil)
	if metric(t, "fairlead_config_restart_required", "workers") != 0 {
		t.Error("workers is as at start again, and the metric still asks for a restart")
	}
}

func TestRefusedFileKeepsTheFormerConfiguration(t *testing.T) {
	w := watch(t, "logLevel: warn\n")
	refused := metric(t, "fairlead_config_reloads_total", "refused")
	w.edit("logLevel: debug\nworkers: none\n")
	w.see()
	w.need(nil, Report{Warning: true, Reason: ReasonRefused, Message: "the former configuration stays in force: " + w.file() + `:4: workers is "none"; write a whole number`})
	if metric(t, "fairlead_config_last_reload_successful", "") != 0 || metric(t, "fairlead_config_reloads_total", "refused") != refused+1 {
		t.Error("the metrics do not say that the file was refused once")
	}
	if !strings.Contains(w.log.String(), "the configuration file is refused") {
		t.Errorf("the log does not say so:\n%s", w.log.String())
	}
	w.edit("logLevel: debug\n")
	w.need([]string{"debug"}, Report{Reason: ReasonReloaded, Message: "in force without a restart: logLevel"})
	if metric(t, "fairlead_config_last_reload_successful", "") != 1 {
		t.Error("the metric does not say that the file is taken again")
	}
}

func TestMissingFileKeepsTheFormerConfiguration(t *testing.T) {
	w := watch(t, "logLevel: warn\n")
	if err := os.Remove(w.file()); err != nil {
		t.Fatal(err)
	}
	w.see()
	w.see()
	if len(w.levels) != 0 || len(w.reports) != 1 || w.reports[0].Reason != ReasonRefused {
		t.Fatalf("levels %v, reports %v", w.levels, w.reports)
	}
	if err := os.Symlink(filepath.Join("..data", "config.yaml"), w.file()); err != nil {
		t.Fatal(err)
	}
	w.see()
	if metric(t, "fairlead_config_last_reload_successful", "") != 1 {
		t.Error("the file is back, as it was, and the metric still says that it is refused")
	}
}

func TestFlagKeepsItsOptionFromTheFile(t *testing.T) {
	w := watch(t, "")
	w.Sources.Flags.LogLevel = "error"
	w.Sources.Changed = func(f string) bool { return f == "log-level" }
	if _, err := w.Start(); err != nil {
		t.Fatal(err)
	}
	w.edit("logLevel: debug\n")
	w.need(nil)
}

func TestValueThatMayHoldAPasswordIsNeverLogged(t *testing.T) {
	w := watch(t, "")
	w.edit("dialVia: socks5://proxy.example:1080\n")
	if len(w.reports) != 1 || strings.Contains(w.log.String(), "proxy.example") {
		t.Fatalf("reports %v, log:\n%s", w.reports, w.log.String())
	}
}

func TestStartRefusesWhatItCannotRead(t *testing.T) {
	for name, content := range map[string]string{"no such file": "", "a fault": head + "workers: 0\n"} {
		t.Run(name, func(t *testing.T) {
			w := &Watcher{Path: filepath.Join(t.TempDir(), "none"), Sources: none()}
			if content != "" {
				w.Path = newMount(t, content).file()
			}
			if e, err := w.Start(); err == nil {
				t.Fatalf("started with %+v", e)
			}
		})
	}
}

func TestRunFollowsTheFileUntilItIsTold(t *testing.T) {
	w := watch(t, "")
	ctx, cancel := context.WithCancel(t.Context())
	reports := make(chan Report, 1)
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx, func(r Report) { reports <- r }) }()
	w.write(head + "logLevel: debug\n")
	select {
	case r := <-reports:
		if r.Reason != ReasonReloaded {
			t.Errorf("got %v", r)
		}
	case <-time.After(10 * time.Second):
		t.Error("the change is not seen")
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
