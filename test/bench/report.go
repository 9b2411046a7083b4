package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/fairlead-dev/fairlead/test/counts"
)

// existing are the figures of the existing operator on a machine with two
// cores, clusters of the same shape and Pods that are Ready after one second.
var existing = struct {
	all                map[int]time.Duration
	writesPerCluster   float64
	idleWritesPerSec   float64
	memoryAt           int // clusters
	memory             int64
	foreignBytesWanted float64 // what this operator aims at
}{
	all:                map[int]time.Duration{100: 41 * time.Second, 300: 130 * time.Second},
	writesPerCluster:   15,
	idleWritesPerSec:   20,
	memoryAt:           300,
	memory:             99 << 20,
	foreignBytesWanted: 512,
}

// report is everything measured.
type report struct {
	machine string
	options options
	runs    []measured
}

// row is one line of the table: a name, then a value for each run.
type row struct {
	name  string
	value func(measured) string
}

func (r report) print(out io.Writer) error {
	w := &errorKeeper{w: out}
	fmt.Fprintf(w, "\n%s\n1 frontend and 1 backend each, Pods Ready %s after they are bound. Times depend on the machine.\n\n", r.machine, r.options.ready)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "clusters\t")
	for _, m := range r.runs {
		fmt.Fprintf(table, "%d\t", m.clusters)
	}
	fmt.Fprintln(table)
	for _, line := range rows() {
		fmt.Fprintf(table, "%s\t", line.name)
		for _, m := range r.runs {
			fmt.Fprintf(table, "%s\t", line.value(m))
		}
		fmt.Fprintln(table)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, m := range r.runs {
		fmt.Fprintf(w, "\nRequests with %d clusters until settled, per cluster (all in all: %s)\n", m.clusters, m.tally.Summary())
		printRequests(w, m.tally, m.clusters)
		if m.idle.Restless() > 0 {
			fmt.Fprintf(w, "\nRequests of the idle operator with %d clusters in %s: %s", m.clusters, m.idleFor, m.idle)
		}
		if m.foreign != nil {
			m.foreign.print(w, r.options)
		}
	}
	return w.err
}

func rows() []row {
	return []row{
		{"all available after", func(m measured) string { return seconds(m.all) }},
		{"existing operator", func(m measured) string { return ifSet(existing.all[m.clusters], seconds) }},
		{"times faster", func(m measured) string {
			return ifSet(existing.all[m.clusters], func(d time.Duration) string { return ratio(float64(d), float64(m.all)) })
		}},
		{"without any operator", func(m measured) string { return ifSet(m.floor, seconds) }},
		{"a cluster, median", func(m measured) string { return seconds(percentile(m.each, 50)) }},
		{"a cluster, 95th percentile", func(m measured) string { return seconds(percentile(m.each, 95)) }},
		{"all created after", func(m measured) string { return seconds(m.created) }},
		{"writes per cluster", func(m measured) string { return per(m.tally.Writes(), m.clusters) }},
		{"  of objects", func(m measured) string { return per(m.tally.ObjectWrites, m.clusters) }},
		{"  of status", func(m measured) string { return per(m.tally.StatusWrites, m.clusters) }},
		{"existing operator", func(measured) string { return fmt.Sprintf("%.1f", existing.writesPerCluster) }},
		{"events per cluster", func(m measured) string { return per(m.tally.Events, m.clusters) }},
		{"reads per cluster", func(m measured) string { return per(m.tally.Reads, m.clusters) }},
		{"idle: requests", func(m measured) string { return fmt.Sprintf("%d in %s", m.idle.Restless(), m.idleFor) }},
		{"existing operator: writes", func(m measured) string {
			return fmt.Sprintf("%.0f in %s", existing.idleWritesPerSec*m.idleFor.Seconds(), m.idleFor)
		}},
		{"idle: watches begun", func(m measured) string { return fmt.Sprint(m.idle.Watches) }},
		{"processor until available", func(m measured) string { return seconds(m.cpu) }},
		{"processor per cluster", func(m measured) string { return fmt.Sprintf("%d ms", m.cpu.Milliseconds()/int64(m.clusters)) }},
		{"processor while idle", func(m measured) string { return seconds(m.idleCPU) }},
		{"memory at rest (RSS)", func(m measured) string { return mebibytes(m.atRest.rss) }},
		{"existing operator", func(m measured) string {
			if m.clusters != existing.memoryAt {
				return "-"
			}
			return mebibytes(existing.memory)
		}},
		{"memory at most (RSS)", func(m measured) string { return mebibytes(m.atRest.peak) }},
		{"heap at rest", func(m measured) string { return mebibytes(m.atRest.heap) }},
	}
}

func (f *foreignMemory) print(w io.Writer, o options) {
	fmt.Fprintf(w, "\nMemory with %d foreign objects (ConfigMaps and Secrets, %d bytes each); aim: at most %.0f B per object\n",
		f.objects, o.foreignSize, existing.foreignBytesWanted)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\tbefore\tadded while it runs\tper object\trestarted with them\tper object\t")
	for _, line := range []struct {
		name string
		of   func(usage) int64
	}{
		{"RSS", func(u usage) int64 { return u.rss }},
		{"RSS without files", func(u usage) int64 { return u.anonymous }},
		{"heap", func(u usage) int64 { return u.heap }},
	} {
		before := line.of(f.before)
		fmt.Fprintf(table, "%s\t%s\t", line.name, mebibytes(before))
		for _, after := range []int64{line.of(f.live), line.of(f.restarted)} {
			fmt.Fprintf(table, "%s\t%.0f B\t", mebibytes(after), float64(after-before)/float64(f.objects))
		}
		fmt.Fprintln(table)
	}
	_ = table.Flush() // w keeps the error
	fmt.Fprintf(w, "requests of the operator while they were added: %d, and %d watches begun\n", f.requestsMeantime.Restless(), f.requestsMeantime.Watches)
}

// printRequests lists the requests by verb and resource, the most frequent first.
func printRequests(w io.Writer, t counts.Tally, clusters int) {
	type line struct {
		what string
		n    int
	}
	var lines []line
	for key, n := range t.ByKey {
		lines = append(lines, line{key.Verb + " " + key.Resource, n})
	}
	for what, n := range t.Refused {
		lines = append(lines, line{"refused: " + what, n})
	}
	slices.SortFunc(lines, func(a, b line) int { return cmp.Or(b.n-a.n, strings.Compare(a.what, b.what)) })
	for _, l := range lines {
		fmt.Fprintf(w, "%10s  %s\n", per(l.n, clusters), l.what)
	}
}

// errorKeeper keeps the first error of a writer.
type errorKeeper struct {
	w   io.Writer
	err error
}

func (k *errorKeeper) Write(p []byte) (int, error) {
	n, err := k.w.Write(p)
	k.err = cmp.Or(k.err, err)
	return n, err
}

func ifSet(d time.Duration, text func(time.Duration) string) string {
	if d == 0 {
		return "-"
	}
	return text(d)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

func mebibytes(b int64) string { return fmt.Sprintf("%.1f MiB", float64(b)/(1<<20)) }

func per(total, clusters int) string {
	return fmt.Sprintf("%.2f", float64(total)/float64(clusters))
}

func ratio(a, b float64) string {
	if b == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", a/b)
}

// percentile of sorted durations, by the nearest rank.
func percentile(sorted []time.Duration, p int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max(0, (len(sorted)*p+99)/100-1)]
}

// describeMachine says on what the times were measured.
func describeMachine() string {
	model := "unknown processor"
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	return fmt.Sprintf("%s, %d cores, %s/%s, %s", model, runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version())
}
