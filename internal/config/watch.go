package config

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	reloads = registered(prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "fairlead_config_reloads_total",
		Help: "Changed contents of the configuration file, by outcome (accepted, refused).",
	}, []string{"outcome"}))
	lastReload = registered(prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "fairlead_config_last_reload_successful",
		Help: "Whether the configuration file, as it is, is in force but for what needs a restart (1), or was refused (0).",
	}))
	restartRequired = registered(prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "fairlead_config_restart_required",
		Help: "One for each startup option whose value in the configuration file is not the one the operator was started with.",
	}, []string{"option"}))
)

func registered[C prometheus.Collector](c C) C {
	ctrlmetrics.Registry.MustRegister(c)
	return c
}

// Report is something about the configuration that people should see.
type Report struct {
	Warning         bool
	Reason, Message string
}

// The reasons of reports.
const (
	ReasonReloaded     = "ConfigurationReloaded"
	ReasonRefused      = "ConfigurationRefused"
	ReasonNeedsRestart = "ConfigurationNeedsRestart"
)

// DefaultPoll is how often the file is read. It is small, and on the node: this
// costs no request to anybody.
const DefaultPoll = 2 * time.Second

// Watcher knows the configuration in force, and follows its file. A mounted
// ConfigMap is replaced by a symbolic link, so it polls the content and not the
// file.
type Watcher struct {
	// Path is empty where there is no file.
	Path    string
	Sources Sources
	// Apply puts the dynamic options of the settings in force.
	Apply func(Settings)
	Log   logr.Logger
	Poll  time.Duration

	content []byte    // what was read last
	failure string    // why it could not be read, if so
	started Effective // what the operator was started with

	mu    sync.RWMutex
	state State
	told  chan struct{}
}

// State is the configuration in force, and what of the file is not.
type State struct {
	// Effective is what the operator was started with, with dynamic options as they
	// are now.
	Effective

	// Refused says why the file is not in force, a line for each fault.
	Refused []string
	// Wanted are the startup options that need a restart, by key, with the value that
	// the file has for them now.
	Wanted map[string]string
}

// State is how it is now.
func (w *Watcher) State() State {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.state
}

// For decides the options of a custom resource by the configuration in force.
func (w *Watcher) For(namespace string, annotations map[string]string) Resource {
	return w.State().For(w.Sources.Table, namespace, annotations)
}

// Told has something to read after the state became another one.
func (w *Watcher) Told() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.told == nil {
		w.told = make(chan struct{}, 1)
	}
	return w.told
}

func (w *Watcher) become(s State) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state = s
	if w.told == nil {
		return
	}
	select {
	case w.told <- struct{}{}:
	default: // it has not been read yet, and stands for this one, too
	}
}

// Start reads the file for the first time. Here a fault is an error: there is
// no older configuration to keep.
func (w *Watcher) Start() (Effective, error) {
	if w.Path == "" {
		e, err := w.Sources.Effective(nil)
		w.started = e
		w.become(State{Effective: e})
		lastReload.Set(1) // there is nothing that could be refused
		return e, err
	}
	content, err := os.ReadFile(w.Path)
	if err != nil {
		return Effective{}, fmt.Errorf("reading the configuration: %w", err)
	}
	file, err := Parse(w.Path, content, w.Sources.Table)
	if err != nil {
		return Effective{}, fmt.Errorf("configuration is refused:\n%w", err)
	}
	e, err := w.Sources.Effective(file)
	if err != nil {
		return Effective{}, err
	}
	w.content, w.started = content, e
	w.become(State{Effective: e})
	lastReload.Set(1)
	return e, nil
}

// Run follows the file until ctx ends.
func (w *Watcher) Run(ctx context.Context, report func(Report)) error {
	if w.Path == "" {
		return nil
	}
	ticker := time.NewTicker(w.Poll)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			w.look(report)
		}
	}
}

// look reads the file, and acts if it is not what it was.
func (w *Watcher) look(report func(Report)) {
	content, err := os.ReadFile(w.Path)
	if err != nil {
		if w.failure != err.Error() {
			w.failure = err.Error()
			w.refuse(err, report)
		}
		return
	}
	if w.failure == "" && bytes.Equal(content, w.content) {
		return
	}
	w.content, w.failure = content, ""
	file, err := Parse(w.Path, content, w.Sources.Table)
	if err != nil {
		w.refuse(err, report)
		return
	}
	e, err := w.Sources.Effective(file)
	if err != nil {
		w.refuse(err, report)
		return
	}
	w.take(e, report)
}

// refuse keeps what is in force and says so.
func (w *Watcher) refuse(err error, report func(Report)) {
	reloads.WithLabelValues("refused").Inc()
	lastReload.Set(0)
	w.Log.Error(err, "the configuration file is refused; the former configuration stays in force", "file", w.Path)
	s := w.State()
	s.Refused = strings.Split(err.Error(), "\n")
	w.become(s)
	report(Report{Warning: true, Reason: ReasonRefused, Message: "the former configuration stays in force: " + err.Error()})
}

// take puts what is dynamic in force, all of it at once, and names the rest.
func (w *Watcher) take(e Effective, report func(Report)) {
	reloads.WithLabelValues("accepted").Inc()
	lastReload.Set(1)
	before := w.State()
	next := State{Effective: before.Effective, Wanted: map[string]string{}}
	next.From = maps.Clone(before.From)
	var changed, pending []string
	restartRequired.Reset()
	for _, o := range w.Sources.Table {
		switch {
		case o.Class == Dynamic:
			next.From[o.Key()] = e.From[o.Key()]
			if o.same(e.Settings, before.Settings) {
				continue
			}
			o.copy(&next.Settings, &e.Settings)
			changed = append(changed, o.Key())
			w.Log.Info("option is in force", o.values(before.Settings, e.Settings)...)
		case !o.same(e.Settings, w.started.Settings):
			restartRequired.WithLabelValues(o.Key()).Set(1)
			pending = append(pending, o.Key())
			next.Wanted[o.Key()] = o.shown(e.Settings)
			w.Log.Info("option needs a restart of the operator", o.values(w.started.Settings, e.Settings)...)
		}
	}
	next.Overridden = e.Overridden
	next.namespaces = e.namespaces
	if of := otherNamespaces(before.namespaces, e.namespaces); len(of) > 0 {
		changed = append(changed, PerNamespace+" ("+strings.Join(of, ", ")+")")
		w.Log.Info("options of namespaces are in force", "namespaces", of)
	}
	w.become(next)
	if len(changed) > 0 {
		w.Apply(next.Settings)
		report(Report{Reason: ReasonReloaded, Message: "in force without a restart: " + strings.Join(changed, ", ")})
	}
	if sorted := slices.Sorted(slices.Values(pending)); len(pending) > 0 && !slices.Equal(sorted, slices.Sorted(maps.Keys(before.Wanted))) {
		report(Report{Warning: true, Reason: ReasonNeedsRestart, Message: "these options are read at start only and need a restart of the operator: " + strings.Join(pending, ", ")})
	}
}

// otherNamespaces are those for which two files say something else, sorted.
func otherNamespaces(a, b map[string]map[string]string) []string {
	var out []string
	for namespace := range a {
		if !maps.Equal(a[namespace], b[namespace]) {
			out = append(out, namespace)
		}
	}
	for namespace, said := range b {
		if _, both := a[namespace]; !both && len(said) > 0 {
			out = append(out, namespace)
		}
	}
	slices.Sort(out)
	return out
}

// values are an option and its change as keys and values of a log line.
func (o Option) values(from, to Settings) []any {
	if o.Secret {
		return []any{"option", o.Key()}
	}
	return []any{"option", o.Key(), "from", o.field(&from).String(), "to", o.field(&to).String()}
}

// shown is the value of an option for people, without what may be a password.
func (o Option) shown(s Settings) string {
	text := o.field(&s).String()
	if o.Secret && text != "" {
		return "(not shown)"
	}
	return text
}
