// Package terminal holds the streams of a command and what is known about them.
package terminal

import (
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

// Streams are what a command reads and writes.
type Streams struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer

	CanAsk                      bool // stdin is a terminal, where a person can answer questions
	IsScreen                    bool // stdout is a terminal
	IsWatched                   bool // stderr is a terminal, where a line of progress can be redrawn
	HasColours, HasErrorColours bool // stdout, stderr may be coloured

	ProgressEvery time.Duration // between two lines of progress where it cannot
}

// progressPause is the pause between two lines of progress in a log.
const progressPause = 5 * time.Second

// Process returns the streams of this process.
func Process() Streams {
	s := Streams{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		CanAsk: Is(os.Stdin), IsScreen: Is(os.Stdout), IsWatched: Is(os.Stderr),
		ProgressEvery: progressPause,
	}
	s.HasColours, s.HasErrorColours = s.IsScreen && hasColours(), s.IsWatched && hasColours()
	return s
}

// Is reports whether a stream is a terminal. The null device is a character device too, but not a terminal.
func Is(stream any) bool {
	file, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}

// defaultWidth is the width of what is not a terminal.
const defaultWidth = 80

// Size returns the size of the terminal that stdout is, and 80 columns without limit of lines if it is not one.
func (s Streams) Size() (columns, lines int) {
	if file, ok := s.Stdout.(*os.File); ok {
		if columns, lines, err := term.GetSize(int(file.Fd())); err == nil && columns > 0 {
			return columns, lines
		}
	}
	return defaultWidth, 0
}
