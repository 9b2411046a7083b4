package build

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// reportEvery is how often a running compile tells that it lives.
const reportEvery = 10 * time.Second

// goCommand runs the go tool in a generated module.
type goCommand struct {
	dir string
	log io.Writer
	env []string
}

func (g goCommand) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = g.dir
	// The surroundings' workspace and flags (-race, -mod=vendor, tags) are not
	// for these modules, and static binaries need no C compiler.
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod -buildvcs=false", "CGO_ENABLED=0")
	cmd.Env = append(cmd.Env, g.env...)
	// A cancelled go tool must take its compilers with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd
}

func (g goCommand) output(ctx context.Context, args ...string) ([]byte, error) {
	cmd := g.command(ctx, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, tail(stderr.String(), 20))
	}
	return out, nil
}

// progress runs "go build -v", which names each package as it is compiled,
// and reports their number and the time.
func (g goCommand) progress(ctx context.Context, what string, args ...string) error {
	cmd := g.command(ctx, args...)
	pipe, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := make(chan string)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(pipe); s.Scan(); {
			lines <- s.Text()
		}
	}()
	packages, last := g.follow(what, start, lines)
	if err := cmd.Wait(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("go %s: %w: %s", args[0], err, tail(strings.Join(last, "\n"), 20))
	}
	fmt.Fprintf(g.log, "build %s: done, %d packages, %s\n", what, packages, elapsed(start))
	return nil
}

// follow counts packages until the lines end and keeps the last lines for an
// error message.
func (g goCommand) follow(what string, start time.Time, lines <-chan string) (packages int, last []string) {
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	fmt.Fprintf(g.log, "build %s: started\n", what)
	for {
		select {
		case line, more := <-lines:
			if !more {
				return packages, last
			}
			packages++
			last = append(last, line)
			if len(last) > 40 {
				last = last[1:]
			}
		case <-tick.C:
			fmt.Fprintf(g.log, "build %s: %d packages compiled, %s\n", what, packages, elapsed(start))
		}
	}
}

func elapsed(start time.Time) time.Duration { return time.Since(start).Round(time.Second) }

func tail(s string, n int) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return strings.Join(lines, "\n")
}
