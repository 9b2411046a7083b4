package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// restartAfter is the pause before a program that has ended is started again.
const restartAfter = time.Second

// Init is the first process of the node. It mounts the node's files, sets up
// its network, starts its programs, starts those anew that end, and collects
// the orphans of the containers, as a first process has to. It returns only
// for an error; its end is the end of the node.
func Init(ctx context.Context, dir string, log *slog.Logger) error {
	if os.Getpid() != 1 {
		return errors.New("the node's init must be the first process of a PID namespace: it would change the host otherwise")
	}
	data, err := os.ReadFile(filepath.Join(dir, configFile))
	if err != nil {
		return err
	}
	var c Config
	if err := json.Unmarshal(data, &c); err != nil {
		return fmt.Errorf("read %s: %w", configFile, err)
	}
	if err := unix.Sethostname([]byte(Name)); err != nil {
		return fmt.Errorf("set the host name: %w", err)
	}
	if err := c.mountAll(); err != nil {
		return err
	}
	if err := c.Network.configureNode(ctx); err != nil {
		return err
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644); err != nil {
		return err
	}
	s := supervisor{log: log, running: map[int]chan<- syscall.WaitStatus{}}
	for _, p := range c.Programs {
		go s.keep(ctx, p)
	}
	return s.collect(ctx)
}

// supervisor starts programs and learns of their ends from the one loop that
// waits for all children.
type supervisor struct {
	log     *slog.Logger
	mu      sync.Mutex // held while a child is started, so that its end finds it registered
	running map[int]chan<- syscall.WaitStatus
}

// keep runs the program again and again.
func (s *supervisor) keep(ctx context.Context, p Program) {
	for ctx.Err() == nil {
		if p.After == "" || accepts(p.After) {
			ended, err := s.start(p)
			if err != nil {
				s.log.Error("program did not start", "program", p.Name, "error", err)
			} else {
				status := <-ended
				s.log.Error("program ended", "program", p.Name, "code", status.ExitStatus(), "signal", int(status.Signal()))
			}
		}
		pause := restartAfter
		if p.After != "" {
			pause /= 20
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// accepts tells whether a server listens on the socket.
func accepts(socket string) bool {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

func (s *supervisor) start(p Program) (<-chan syscall.WaitStatus, error) {
	path := filepath.Join(clusterDir, "logs", p.Name+".log")
	out, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	child, err := os.StartProcess(programPath(p.Name), append([]string{p.Name}, p.Args...), &os.ProcAttr{
		Dir:   "/",
		Env:   os.Environ(),
		Files: []*os.File{nil, out, out},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return nil, err
	}
	ended := make(chan syscall.WaitStatus, 1)
	s.running[child.Pid] = ended
	s.log.Info("program started", "program", p.Name, "pid", child.Pid)
	return ended, child.Release()
}

// collect waits for children and orphans for ever.
func (s *supervisor) collect(ctx context.Context) error {
	for ctx.Err() == nil {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.ECHILD): // none at the moment
			time.Sleep(20 * time.Millisecond)
			continue
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return fmt.Errorf("wait for children: %w", err)
		}
		s.mu.Lock()
		ended, ours := s.running[pid]
		delete(s.running, pid)
		s.mu.Unlock()
		if ours {
			ended <- status
		}
	}
	return ctx.Err()
}
