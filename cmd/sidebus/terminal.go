package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/client"
)

// terminal is what a verb reads and writes.
type terminal struct {
	stdin          io.Reader
	stdout, stderr io.Writer

	asks          bool          // somebody answers questions at stdin
	isScreen      bool          // stdout is a screen that can be cleared
	isWatched     bool          // stderr is a screen, where progress may move
	progressEvery time.Duration // between two lines of progress where it may not move
}

// progressPause is the pause between two lines of progress in a log.
const progressPause = 5 * time.Second

// processTerminal is that of this process.
func processTerminal() terminal {
	return terminal{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		asks: isTerminal(os.Stdin), isScreen: isTerminal(os.Stdout), isWatched: isTerminal(os.Stderr),
		progressEvery: progressPause,
	}
}

// confirmation are the flags of verbs that destroy.
type confirmation struct {
	Yes bool `name:"yes" short:"y" help:"Do not ask."`
}

var errNoAnswer = errors.New("nobody can be asked, since stdin is no terminal; --yes goes on without a question")

// check refuses, before anything is called, a verb that would have to ask and cannot.
func (c *confirmation) check(to terminal) error {
	if c.Yes || to.asks {
		return nil
	}
	return usageError{errNoAnswer}
}

// confirm asks whether to do what the text says with the resource. Without --yes it goes on only after "y", "yes" or the
// name.
func (o *operator) confirm(ctx context.Context, c *confirmation, resource, text string) error {
	if c.Yes {
		return nil
	}
	if err := c.check(o.terminal); err != nil {
		return err
	}
	name := client.Name(resource)
	fmt.Fprintf(o.stderr, "%s\nType %q or \"y\" to go on: ", text, name)
	answer, err := await(ctx, func() (string, error) { return bufio.NewReader(o.stdin).ReadString('\n') })
	answer = strings.TrimSpace(answer)
	switch {
	case done(ctx) != nil:
		fmt.Fprintln(o.stderr)
		return err
	case strings.EqualFold(answer, "y"), strings.EqualFold(answer, "yes"), strings.EqualFold(answer, name), strings.EqualFold(answer, resource):
		return nil
	case err != nil && answer == "":
		fmt.Fprintln(o.stderr)
		return usageError{errNoAnswer}
	default:
		return errors.New("not confirmed; nothing was changed")
	}
}

// await gives what work gives, or the cause of the end of ctx if that comes first. Work that waits for a terminal is then
// left behind, it ends with the process.
func await[T any](ctx context.Context, work func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	came := make(chan outcome, 1)
	go func() {
		value, err := work()
		came <- outcome{value, err}
	}()
	select {
	case o := <-came:
		return o.value, o.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

// progress tells how far long work is: in one line that moves on a terminal, else in a line every few seconds.
type progress struct {
	to          *operator
	what, of    string // such as "sent" and "message"
	began, last time.Time
	isShown     bool
}

// moves is how often a line on a terminal moves.
const moves = 200 * time.Millisecond

func (o *operator) progress(what, of string) *progress {
	now := time.Now()
	return &progress{to: o, what: what, of: of, began: now, last: now}
}

// tell says that n are done, when it is time to.
func (p *progress) tell(n int64) {
	pause := p.to.progressEvery
	if p.to.isWatched {
		pause = moves
	}
	now := time.Now()
	if now.Sub(p.last) < pause {
		return
	}
	p.last = now
	text := fmt.Sprintf("%s %s, %s", p.what, count(n, p.of), p.rate(n))
	if p.to.isWatched {
		p.isShown = true
		fmt.Fprintf(p.to.stderr, "\r%s\x1b[K", text)
		return
	}
	p.to.note("%s", text)
}

// end takes the moving line away.
func (p *progress) end() {
	if p.isShown {
		fmt.Fprint(p.to.stderr, "\r\x1b[K")
	}
}

// rate gives n over the time since the beginning.
func (p *progress) rate(n int64) string {
	took := time.Since(p.began)
	return fmt.Sprintf("%.0f/s in %s", float64(n)/max(took.Seconds(), 1e-9), took.Round(time.Millisecond))
}
