// Package exit holds the exit codes of the kubectl plugin. They are documented:
// scripts decide by them.
package exit

import (
	"errors"
	"fmt"
)

// The exit codes.
const (
	// OK says that it was done, or that there is nothing to do.
	OK = 0
	// Failed says that it could not be done or was not confirmed.
	Failed = 1
	// Changes says, when it was asked for, that there are changes to apply.
	Changes = 2
	// Refused says that something that is asked for is refused or, when it was
	// asked for, that something is held.
	Refused = 3
)

// What --help says of the codes: of plan, and of all other verbs.
const (
	HelpOfPlan = `Exit codes:
  0  done; with --exit-code: nothing to do
  1  it failed
  2  with --exit-code: there are changes to apply
  3  something that the resource asks for is refused; with --exit-code also:
     something is held until a person approves (3 goes before 2)`
	Help = `Exit codes:
  0  done
  1  it failed, or was not confirmed; nothing was changed`
)

// StatusError ends the program with a code although nothing failed.
type StatusError int

func (s StatusError) Error() string { return fmt.Sprintf("exit code %d", int(s)) }

// Code is the exit code for the error that a command ended with, and whether
// the error is to be printed.
func Code(err error) (code int, say bool) {
	var status StatusError
	switch {
	case err == nil:
		return OK, false
	case errors.As(err, &status):
		return int(status), false
	}
	return Failed, true
}
