package screen

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// terminal opens a terminal of the kernel: what a person types, and what the
// program has.
func terminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	t.Cleanup(func() { _ = person.Close() })
	fd := int(person.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = program.Close() })
	return person, program
}

func environment(pairs ...string) func(string) string {
	return func(key string) string {
		for i := 0; i+1 < len(pairs); i += 2 {
			if pairs[i] == key {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestColoursAreForTerminalsAlone(t *testing.T) {
	_, tty := terminal(t)
	file, err := os.CreateTemp(t.TempDir(), "out")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for _, tc := range []struct {
		name             string
		screen           Screen
		terminal, colour bool
	}{
		{"a terminal", New(tty, environment("TERM", "xterm")), true, true},
		{"a terminal with NO_COLOR is redrawn without colours", New(tty, environment("TERM", "xterm", "NO_COLOR", "1")), true, false},
		{"a dumb terminal", New(tty, environment("TERM", "dumb")), false, false},
		{"a buffer", New(&bytes.Buffer{}, environment()), false, false},
		{"a file", New(file, environment("TERM", "xterm")), false, false},
		{"nowhere", New(null, environment("TERM", "xterm")), false, false},
	} {
		if tc.screen.Terminal != tc.terminal || tc.screen.Colour != tc.colour {
			t.Errorf("%s: terminal %t, colour %t", tc.name, tc.screen.Terminal, tc.screen.Colour)
		}
		if got := strings.Contains(tc.screen.Painted(Bad, "x"), "\x1b"); got != tc.colour {
			t.Errorf("%s: coloured %t", tc.name, got)
		}
	}
}

func TestConfirm(t *testing.T) {
	for answer, agreed := range map[string]bool{"y\n": true, "Yes\n": true, " y \n": true, "\n": false, "n\n": false, "yo\n": false, "\x04": false} {
		person, program := terminal(t)
		if _, err := person.WriteString(answer); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		err := Confirm(t.Context(), program, &out, "Really?")
		if agreed != (err == nil) || err != nil && !errors.Is(err, ErrNotConfirmed) {
			t.Errorf("%q: %v", answer, err)
		}
		if out.String() != "Really? [y/N] " {
			t.Errorf("it asked %q", out.String())
		}
	}
}

func TestConfirmIsInterrupted(t *testing.T) {
	_, program := terminal(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := Confirm(ctx, program, &bytes.Buffer{}, "Really?"); !errors.Is(err, ErrNotConfirmed) {
		t.Errorf("after an interrupt: %v", err)
	}
}

func TestNobodyIsAskedWithoutATerminal(t *testing.T) {
	err := Confirm(t.Context(), strings.NewReader("y\n"), &bytes.Buffer{}, "Really?")
	if err == nil || !strings.Contains(err.Error(), "--yes") {
		t.Errorf("error: %v", err)
	}
}

func TestTable(t *testing.T) {
	var out bytes.Buffer
	table := Table{Indent: "  "}
	table.Head("NAME", "STATE")
	table.Row(Cell{Text: "é-long-name"}, Cell{Text: "bad", Paint: Bad})
	table.Row(Cell{Text: "b\x1b[2J\nc"}, Cell{})
	s := Screen{Writer: &out}
	s.Print(table)
	want := "  NAME         STATE\n  é-long-name  bad\n  b·[2J c      -\n"
	if out.String() != want {
		t.Errorf("plain:\n%q\nwant\n%q", out.String(), want)
	}
	out.Reset()
	s.Colour = true
	s.Print(table)
	if got := strings.NewReplacer("\x1b[31m", "", "\x1b[1m", "", "\x1b[0m", "").Replace(out.String()); got != want || !strings.Contains(out.String(), "\x1b[31mbad\x1b[0m") {
		t.Errorf("coloured:\n%q", out.String())
	}
}
