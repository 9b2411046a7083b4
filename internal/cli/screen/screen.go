// Package screen is how the kubectl plugin talks to people: tables, colours on
// terminals alone, and questions.
package screen

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// Screen is where a command prints.
type Screen struct {
	io.Writer
	// Terminal tells that a person looks at it and that it can be redrawn.
	Terminal bool
	// Colour tells that it may be coloured.
	Colour bool
}

// New returns the screen of an output stream. getenv looks into the environment.
func New(out io.Writer, getenv func(string) string) Screen {
	terminal := IsTerminal(out) && getenv("TERM") != "dumb"
	return Screen{Writer: out, Terminal: terminal, Colour: terminal && getenv("NO_COLOR") == ""}
}

// IsTerminal tells whether a stream is a terminal.
func IsTerminal(stream any) bool {
	f, isFile := stream.(*os.File)
	return isFile && term.IsTerminal(int(f.Fd()))
}

// Paint is a colour.
type Paint string

// The colours, by what they say.
const (
	Plain Paint = ""
	Good  Paint = "32"
	Mind  Paint = "33"
	Bad   Paint = "31"
	Faint Paint = "2"
	Head  Paint = "1"
)

// Painted returns the text in a colour, where the screen has any.
func (s Screen) Painted(p Paint, text string) string {
	if !s.Colour || p == Plain {
		return text
	}
	return "\x1b[" + string(p) + "m" + text + "\x1b[0m"
}

// Linef prints a line. What is not ours to vouch for goes through Clean first.
func (s Screen) Linef(format string, args ...any) { _, _ = fmt.Fprintf(s, format+"\n", args...) }

// Clear begins a screen anew.
func (s Screen) Clear() {
	if s.Terminal {
		_, _ = io.WriteString(s, "\x1b[H\x1b[2J")
	}
}

// Clean makes one printable line of a text that may hold anything.
func Clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case r < ' ' || r >= 0x7f && r < 0xa0:
			return '·'
		}
		return r
	}, text)
}

// ErrNotConfirmed says that a person did not agree.
var ErrNotConfirmed = errors.New("not confirmed; nothing was changed")

// Confirm asks a person. Without a terminal there is nobody to ask.
func Confirm(ctx context.Context, in io.Reader, out io.Writer, question string) error {
	if !IsTerminal(in) {
		return errors.New("nothing was changed: standard input is no terminal, so nobody can be asked; look at the plan above and give --yes")
	}
	fmt.Fprintf(out, "%s [y/N] ", question)
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(in).ReadString('\n') // an end of the input is a no
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(out)
		return ErrNotConfirmed
	case a := <-answer:
		if a == "y" || a == "yes" {
			return nil
		}
		return ErrNotConfirmed
	}
}

// Many is a number of things, such as "1 Pod" and "2 Pods".
func Many(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
