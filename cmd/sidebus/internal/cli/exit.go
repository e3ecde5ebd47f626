package cli

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// Exit codes. A signal that ends a verb, or the second one that "serve" receives, is 128 + its number.
const (
	Clean   = 0
	Failure = 1 // configuration or start failure; of a verb for operators: the call failed, in full or in part
	Usage   = 2 // invalid usage, or a question that cannot be asked
)

// usageError is a command line that parses but is not valid.
type usageError struct{ error }

// Unwrap returns what is wrong with it.
func (u usageError) Unwrap() error { return u.error }

// Misuse returns an error that exits with Usage.
func Misuse(format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...)}
}

// Interrupted is why the context of a verb for operators ends.
type Interrupted struct{ By os.Signal }

// Error names the signal.
func (i Interrupted) Error() string { return "ended by a signal: " + i.By.String() }

// codeOf returns the exit code of a verb that failed.
func codeOf(err error) int {
	var usage usageError
	var stopped Interrupted
	switch {
	case errors.As(err, &stopped):
		return CodeOf(stopped.By)
	case errors.As(err, &usage):
		return Usage
	default:
		return Failure
	}
}

// CodeOf returns what a shell reports for a process that a signal ended: 130 for SIGINT, 143 for SIGTERM.
func CodeOf(received os.Signal) int {
	if number, ok := received.(syscall.Signal); ok {
		return 128 + int(number)
	}
	return Failure
}
