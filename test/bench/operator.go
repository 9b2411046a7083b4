package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// operator is a running operator process.
type operator struct {
	cmd     *exec.Cmd
	metrics string // address
	health  string
	ended   chan struct{} // closed when the process has ended
	err     error         // how, once it has
	log     *os.File
}

// startOperator starts the operator and waits until it says it is ready.
func startOperator(ctx context.Context, o *options, kubeconfig string) (*operator, error) {
	p := &operator{ended: make(chan struct{})}
	var err error
	if p.metrics, err = freeAddress(ctx); err != nil {
		return nil, err
	}
	if p.health, err = freeAddress(ctx); err != nil {
		return nil, err
	}
	p.log, err = os.OpenFile(o.keepLog, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	args := append([]string{
		"operator", "--kubeconfig=" + kubeconfig, "--metrics-bind-address=" + p.metrics, "--health-probe-bind-address=" + p.health,
	}, o.args...)
	p.cmd = exec.Command(o.operator, args...) // no context: stop ends it, gently first
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	// An interrupt from the terminal is for the bench, which then ends the
	// operator; if the bench dies, the operator goes with it.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the operator: %w", err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	if err := p.awaitReady(ctx); err != nil {
		p.stop()
		return nil, err
	}
	return p, nil
}

func freeAddress(ctx context.Context) (string, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	return l.Addr().String(), l.Close()
}

func (p *operator) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		if body, err := get(ctx, "http://"+p.health+"/readyz"); err == nil {
			return body.Close()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("operator is not ready: %w", context.Cause(ctx))
		case <-p.ended:
			return fmt.Errorf("operator ended: %w", p.err)
		case <-ticker.C:
		}
	}
}

// stop ends the operator and waits for it.
func (p *operator) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(10 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
	_ = p.log.Close()
}

// alive returns an error if the process has ended by itself.
func (p *operator) alive() error {
	select {
	case <-p.ended:
		return fmt.Errorf("operator ended: %w", p.err)
	default:
		return nil
	}
}

// usage is what a process has used so far.
type usage struct {
	cpu       time.Duration
	rss, peak int64 // bytes
	anonymous int64 // bytes of rss that are not pages of files, which come and go with the page cache
	heap      int64 // bytes in use, by its own metrics
}

// measure reads the process's usage from the kernel, and its heap from its
// metrics.
func (p *operator) measure(ctx context.Context) (usage, error) {
	if err := p.alive(); err != nil {
		return usage{}, err
	}
	u, err := processUsage(p.cmd.Process.Pid)
	if err != nil {
		return usage{}, err
	}
	u.heap, err = p.metric(ctx, "go_memstats_heap_alloc_bytes")
	return u, err
}

// ticksPerSecond is the unit of processor times under /proc on Linux.
const ticksPerSecond = 100

func processUsage(pid int) (usage, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return usage{}, err
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return usage{}, err
	}
	return parseUsage(string(stat), string(status))
}

// parseUsage reads /proc/PID/stat and /proc/PID/status.
func parseUsage(stat, status string) (usage, error) {
	// The program's name, in parentheses, may contain anything.
	_, rest, found := strings.Cut(stat[max(0, strings.LastIndex(stat, ")")):], ") ")
	fields := strings.Fields(rest)
	if !found || len(fields) < 13 {
		return usage{}, fmt.Errorf("process statistics %q cannot be read", stat)
	}
	user, errUser := strconv.ParseInt(fields[11], 10, 64)
	system, errSystem := strconv.ParseInt(fields[12], 10, 64)
	rss, errRSS := statusBytes(status, "VmRSS:")
	peak, errPeak := statusBytes(status, "VmHWM:")
	anonymous, errAnonymous := statusBytes(status, "RssAnon:")
	return usage{
		cpu: time.Duration(user+system) * time.Second / ticksPerSecond, rss: rss, peak: peak, anonymous: anonymous,
	}, errors.Join(errUser, errSystem, errRSS, errPeak, errAnonymous)
}

func statusBytes(status, name string) (int64, error) {
	for line := range strings.Lines(status) {
		if text, found := strings.CutPrefix(line, name); found {
			kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(text), "kB")), 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("process status has no %s", name)
}

// settledMemory is the least of several measures: what is left when the
// garbage of the work before is gone.
func (p *operator) settledMemory(ctx context.Context, over time.Duration) (usage, error) {
	least, err := p.measure(ctx)
	if err != nil {
		return usage{}, err
	}
	ctx2, cancel := context.WithTimeout(ctx, over)
	defer cancel()
	ticker := time.NewTicker(time.Second) // each measure makes it work a little
	defer ticker.Stop()
	for {
		select {
		case <-ctx2.Done():
			return least, ctx.Err()
		case <-ticker.C:
			u, err := p.measure(ctx)
			if err != nil {
				return usage{}, err
			}
			least.rss, least.anonymous, least.heap = min(least.rss, u.rss), min(least.anonymous, u.anonymous), min(least.heap, u.heap)
			least.cpu, least.peak = u.cpu, u.peak
		}
	}
}

func get(ctx context.Context, url string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		_ = response.Body.Close()
		return nil, fmt.Errorf("get %s: %s", url, response.Status)
	}
	return response.Body, nil
}

// metric reads one number without labels from the operator's metrics.
func (p *operator) metric(ctx context.Context, name string) (int64, error) {
	body, err := get(ctx, "http://"+p.metrics+"/metrics")
	if err != nil {
		return 0, err
	}
	defer body.Close()
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if text, found := strings.CutPrefix(lines.Text(), name+" "); found {
			value, err := strconv.ParseFloat(text, 64)
			return int64(value), err
		}
	}
	return 0, errors.Join(lines.Err(), fmt.Errorf("operator has no metric %s", name))
}
