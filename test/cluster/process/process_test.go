package process

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func start(t *testing.T, spec Spec) *Running {
	t.Helper()
	spec.Name, spec.Path = "sleep", "/bin/sleep"
	if spec.Args == nil {
		spec.Args = []string{"60"}
	}
	spec.Log = filepath.Join(t.TempDir(), "log")
	running, err := Start(spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = Signal(running.PID, running.Start, syscall.SIGKILL) })
	return running
}

func awaitEnd(t *testing.T, r *Running) {
	t.Helper()
	select {
	case <-r.Done:
	case <-time.After(10 * time.Second):
		t.Fatal("the process does not end")
	}
}

func TestSignalEndsTheProcess(t *testing.T) {
	r := start(t, Spec{ID: "signal"})
	if !Alive(r.PID, r.Start) {
		t.Fatal("a started process is not alive")
	}
	if err := Signal(r.PID, r.Start, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	awaitEnd(t, r)
	if Alive(r.PID, r.Start) {
		t.Error("an ended process is alive")
	}
}

func TestSignalSparesARecycledID(t *testing.T) {
	r := start(t, Spec{ID: "recycled"})
	if err := Signal(r.PID, r.Start-1, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if !Alive(r.PID, r.Start) {
		t.Error("a process of another start time was killed")
	}
}

func TestMarkedFindsTheClustersProcessesOnly(t *testing.T) {
	id := "marked-" + filepath.Base(t.TempDir()) + strings.ToLower(t.Name())
	ours, other := start(t, Spec{ID: id}), start(t, Spec{ID: id + "0"})
	// A child between fork and exec has its parent's environment still.
	deadline := time.Now().Add(10 * time.Second)
	for {
		pids, err := Marked(id)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Equal(pids, []int{ours.PID}) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("Marked() = %v, want [%d] and not %d", pids, ours.PID, other.PID)
		}
	}
}

func TestStartRunsInASessionOfItsOwn(t *testing.T) {
	r := start(t, Spec{})
	group, err := syscall.Getpgid(r.PID)
	if err != nil || group != r.PID {
		t.Errorf("process group %d (%v), want its own, %d", group, err, r.PID)
	}
}

func TestDieWithParentOutlivesTheStartingGoroutine(t *testing.T) {
	var r *Running
	done := make(chan struct{})
	go func() { // its thread may go as soon as it ends
		defer close(done)
		r = start(t, Spec{DieWithParent: true, Args: []string{"0.3"}})
	}()
	<-done
	begin := time.Now()
	awaitEnd(t, r)
	if took := time.Since(begin); took < 100*time.Millisecond {
		t.Errorf("the process was ended after %s, before its time", took)
	}
}

func TestParseStat(t *testing.T) {
	rest := " S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20 21"
	for _, tc := range []struct {
		name, text string
		state      byte
		start      uint64
		fails      bool
	}{
		{name: "plain name", text: "7 (sleep)" + rest, state: 'S', start: 4242},
		{name: "name with blanks and parentheses", text: "7 (a) (Z 1 2)" + rest, state: 'S', start: 4242},
		{name: "short line fails", text: "7 (sleep) S 1", fails: true},
		{name: "empty line fails", text: "", fails: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			state, start, err := parseStat(tc.text)
			if (err != nil) != tc.fails || state != tc.state || start != tc.start {
				t.Errorf("parseStat(%q) = %c, %d, %v", tc.text, state, start, err)
			}
		})
	}
}

func FuzzParseStat(f *testing.F) {
	own, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(own))
	f.Add(")")
	f.Fuzz(func(t *testing.T, text string) {
		if state, _, err := parseStat(text); err == nil && state == 0 {
			t.Errorf("no error and no state for %q", text)
		}
	})
}
