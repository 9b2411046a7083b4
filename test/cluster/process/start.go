package process

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// Spec describes a background program.
type Spec struct {
	Name string
	Path string
	Args []string
	Log  string // file that takes stdout and stderr
	ID   string // the cluster's id
	// Attributes are given to the new process beyond a session of its own.
	Attributes syscall.SysProcAttr
	// DieWithParent has the kernel end the program when the starting process
	// dies, however it dies.
	DieWithParent bool
}

// Running is a started program.
type Running struct {
	Name  string
	PID   int
	Start uint64
	Log   string
	Done  <-chan struct{} // closed when the program has ended
}

// Start starts the program in a session of its own, so that an interrupt typed
// at the terminal does not reach it.
func Start(spec Spec) (*Running, error) {
	log, err := os.OpenFile(spec.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(spec.Path, spec.Args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(), Mark+"="+spec.ID)
	cmd.Dir = "/"
	attributes := spec.Attributes
	attributes.Setsid = true
	cmd.SysProcAttr = &attributes
	start := cmd.Start
	if spec.DieWithParent {
		attributes.Pdeathsig = syscall.SIGKILL
		start = func() error { return onLastingThread(cmd.Start) }
	}
	if err := start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	ticks, err := StartTime(cmd.Process.Pid)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = cmd.Wait() // collects the child; how it ended is told by its log
	}()
	return &Running{Name: spec.Name, PID: cmd.Process.Pid, Start: ticks, Log: spec.Log, Done: done}, nil
}

var lasting struct {
	once sync.Once
	jobs chan func()
}

// onLastingThread runs the function on one thread that lives as long as the
// process: the kernel's death signal is bound to the thread that forked.
func onLastingThread(f func() error) error {
	lasting.once.Do(func() {
		lasting.jobs = make(chan func())
		go func() {
			runtime.LockOSThread()
			for job := range lasting.jobs {
				job()
			}
		}()
	})
	result := make(chan error)
	lasting.jobs <- func() { result <- f() }
	return <-result
}
