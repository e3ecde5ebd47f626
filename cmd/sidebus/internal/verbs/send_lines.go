package verbs

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/client"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics"
)

// Bounds of one batch of --lines.
const (
	batchLines = 100
	batchBytes = 128 << 10 // half of what the strictest queue takes, so that estimates may err
	// what a message counts for beyond what was given: the id Sidebus makes, and more
	messageBytes = 64
	lingerTime   = 50 * time.Millisecond // how long a batch waits for more lines, when lines come slowly
)

// textLine is one line of the input, counted from 1.
type textLine struct {
	number int
	text   []byte
}

// lineReader reads lines ahead, so that waiting for input can be interrupted.
type lineReader struct {
	lines chan textLine
	err   error // valid once lines is closed
	held  *textLine
}

func readLines(ctx context.Context, from io.Reader) *lineReader {
	r := &lineReader{lines: make(chan textLine, batchLines)}
	go func() {
		defer close(r.lines)
		input := bufio.NewReader(from)
		for number := 1; ; number++ {
			text, err := input.ReadBytes('\n')
			text = bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r"))
			if len(text) > 0 {
				select {
				case r.lines <- textLine{number, text}:
				case <-ctx.Done():
					return
				}
			}
			if err != nil {
				if !errors.Is(err, io.EOF) {
					r.err = fmt.Errorf("reading line %d: %w", number, err)
				}
				return
			}
		}
	}()
	return r
}

// batch returns the next lines to send together, none at the end. fixed is what each counts for besides its text.
func (r *lineReader) batch(ctx context.Context, fixed int) ([]textLine, error) {
	var batch []textLine
	size := 0
	if r.held != nil {
		batch, size, r.held = []textLine{*r.held}, fixed+len(r.held.text), nil
	}
	linger := time.NewTimer(lingerTime)
	defer linger.Stop()
	for len(batch) < batchLines {
		var enough <-chan time.Time
		if len(batch) > 0 {
			enough = linger.C
		}
		select {
		case line, ok := <-r.lines:
			if !ok {
				return batch, r.err
			}
			if size += fixed + len(line.text); len(batch) > 0 && size > batchBytes {
				r.held = &line
				return batch, nil
			}
			if len(batch) == 0 {
				linger.Reset(lingerTime)
			}
			batch = append(batch, line)
		case <-enough:
			return batch, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return batch, nil
}

// lineSending is one --lines under way.
type lineSending struct {
	flags      *sendCommand
	o          *operator
	target     string
	template   *sidebusv1.Message
	sent       int64 // stored and dropped ones
	duplicates int64
	first      int64 // lowest and highest number that was given
	last       int64
	upTo       int // the last line that was sent
}

// sendLines sends the lines in batches, each stored all or none, in order, until one fails. It reports what was done in
// any case.
func (s *sendCommand) sendLines(
	ctx context.Context, o *operator, target string, template *sidebusv1.Message, input io.Reader,
) error {
	reading, stop := context.WithCancel(ctx)
	defer stop()
	lines := readLines(reading, input)
	l := &lineSending{flags: s, o: o, target: target, template: template}
	fixed := proto.Size(template) + messageBytes
	progress := o.progress(s.progressFlag, "sent", "message", 0)
	var failed error
	for failed == nil {
		var batch []textLine
		batch, failed = lines.batch(ctx, fixed)
		if len(batch) == 0 {
			break
		}
		if err := l.send(ctx, batch); err != nil {
			failed = err
		}
		progress.tell(l.sent)
	}
	progress.end()
	summary := l.summary(progress)
	if failed == nil && !o.asJSON {
		return o.say("%s", summary)
	}
	if failed == nil || l.sent > 0 {
		o.note("%s", summary)
	}
	return failed
}

func (l *lineSending) send(ctx context.Context, batch []textLine) error {
	request := &sidebusv1.SendRequest{Target: l.target}
	var bad error
	for i, line := range batch {
		m, err := l.flags.message(l.template, line.text)
		if err != nil {
			batch, bad = batch[:i], fmt.Errorf("line %d %w; it was not sent", line.number, err)
			break
		}
		request.Messages = append(request.Messages, m)
	}
	if len(batch) == 0 {
		return bad
	}
	answer, err := l.o.Send(ctx, request)
	if err != nil {
		return explain(batch, err)
	}
	l.upTo = batch[len(batch)-1].number
	for _, result := range answer.GetResults() {
		l.sent++
		if result.GetDeduplicated() {
			l.duplicates++
			continue
		}
		if l.first == 0 {
			l.first = result.GetSequenceNumber()
		}
		l.last = result.GetSequenceNumber()
	}
	if l.o.asJSON {
		if err := errors.Join(l.o.results(answer), l.o.flush()); err != nil {
			return err
		}
	}
	return bad
}

// explain says which lines a failure is about.
func explain(batch []textLine, err error) error {
	first, last := batch[0].number, batch[len(batch)-1].number
	lines := fmt.Sprintf("lines %d to %d", first, last)
	if first == last {
		lines = fmt.Sprintf("line %d", first)
	}
	var failure *client.Failure
	if !errors.As(err, &failure) {
		return fmt.Errorf("%w; whether %s went out is not known", err, lines)
	}
	if i, e := strconv.Atoi(failure.Details[semantics.DetailIndex]); e == nil && i >= 0 && i < len(batch) {
		return fmt.Errorf("%w (at line %d; nothing from line %d on was sent)", err, batch[i].number, first)
	}
	if failure.IsUnknown() {
		return fmt.Errorf("%w (%s may have been sent, nothing after them was)", err, lines)
	}
	return fmt.Errorf("%w (nothing from line %d on was sent)", err, first)
}

func (l *lineSending) summary(p *progress) string {
	text := fmt.Sprintf("sent %s to %s", client.Count(l.sent, "message"), l.target)
	if l.upTo > 0 {
		text += fmt.Sprintf(", up to line %d", l.upTo)
	}
	if l.first > 0 {
		text += fmt.Sprintf(", sequence numbers %d to %d", l.first, l.last)
	}
	if l.duplicates > 0 {
		text += fmt.Sprintf(", %s dropped", client.Count(l.duplicates, "duplicate"))
	}
	return text + ", " + p.rate(l.sent)
}
