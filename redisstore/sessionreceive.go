package redisstore

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// sessionReceiveCall is one Receive from a held session on its way to the script. Calls for different sessions of a
// queue share a script.
type sessionReceiveCall struct {
	source semantics.Source
	answer

	// What the last script returned.
	positions   []int64
	lockedUntil time.Time
	left        bool

	recheck time.Duration
	err     error
}

func (s *Store) receiveInSession(
	ctx context.Context, source semantics.Source, limit int, register semantics.Register,
) (semantics.Batch, error) {
	call := &sessionReceiveCall{source: source, answer: answer{limit: limit, register: register}}
	if err := s.sessionReceives.do(ctx, semantics.Fold(source.Path), call); err != nil {
		return semantics.Batch{}, err
	}
	if call.err != nil {
		return semantics.Batch{}, call.err
	}
	return s.batchFor(ctx, source, call.entries, call.recheck)
}

// runSessionReceives fills the calls, with as many scripts as that takes.
func (s *Store) runSessionReceives(ctx context.Context, calls []*sessionReceiveCall) {
	for len(calls) > 0 {
		if err := s.receiveInSessionsOnce(ctx, calls); err != nil {
			for _, c := range calls {
				if len(c.entries) == 0 { // the caller keeps what an earlier script returned
					c.err = err
				}
			}
			return
		}
		calls = slices.DeleteFunc(calls, (*sessionReceiveCall).satisfied)
	}
}

// satisfied reports whether a further script would add nothing to the call. A call that found nothing because too much
// was due first is satisfied too: its caller tries again.
func (c *sessionReceiveCall) satisfied() bool {
	return c.err != nil || !c.left || len(c.positions) == 0 || c.isFull()
}

// receiveInSessionsOnce locks with one script and reads what it locked with one pipeline. It releases what it cannot
// read.
func (s *Store) receiveInSessionsOnce(ctx context.Context, calls []*sessionReceiveCall) error {
	path, nonce := calls[0].source.Path, newNonce()
	if err := s.releaseUnanswered(ctx, path, calls); err != nil {
		return err
	}
	args := []any{s.now(), maxScriptBytes, nonce, s.sidecar}
	for _, c := range calls {
		args = append(args, sessionToken(c.source), c.open(), c.bytesLeftText(), registerNumber(c.registersAs()))
	}
	r, err := s.run(ctx, "receive_in_sessions", s.keys(path), args...)
	if err != nil {
		if semantics.IsOutcomeUnknown(err) {
			s.noteReceive(calls, nonce)
		}
		return err
	}
	if err := s.onSource(ctx, calls[0].source, r); err != nil {
		return err
	}
	recheck := time.Duration(r.number()) * time.Millisecond
	known := readKnown(r)
	for _, c := range calls {
		c.readLocks(r.text(), recheck)
		if semantics.CodeOf(c.err) == semantics.SessionLockLost {
			s.unanswered.forget(sessionToken(c.source))
		}
	}
	if err := r.failure(); err != nil {
		return err
	}
	return s.readBodies(ctx, path, nonce, calls, known)
}

// readLocks reads what the script locked for one call: "<left> <locked until> <position> ...".
func (c *sessionReceiveCall) readLocks(row string, recheck time.Duration) {
	c.positions, c.left = nil, false
	if row == string(semantics.SessionLockLost) {
		if len(c.entries) == 0 {
			c.err = semantics.SessionFailure(semantics.SessionLockLost, c.source.Path)
		}
		return
	}
	left, rest, _ := strings.Cut(row, " ")
	until, rest, more := strings.Cut(rest, " ")
	ends, err := strconv.ParseInt(until, 10, 64)
	for more && err == nil {
		var position string
		position, rest, more = strings.Cut(rest, " ")
		var number int64
		number, err = strconv.ParseInt(position, 10, 64)
		c.positions = append(c.positions, number)
	}
	if err != nil {
		c.err = (&reply{err: err}).failure()
		return
	}
	c.left, c.lockedUntil, c.recheck = left == "1", instantOf(ends), recheck
	if len(c.positions) == 0 && c.left {
		c.recheck = 0
	}
}

// readBodies reads the messages behind the positions of all calls, neighbouring ones with one command.
func (s *Store) readBodies(
	ctx context.Context, path string, nonce uint64, calls []*sessionReceiveCall, known known,
) error {
	var spans []span
	for _, c := range calls {
		spans = append(spans, spansOf(c.positions)...)
	}
	if len(spans) == 0 {
		return nil
	}
	read, err := s.readSpans(ctx, s.keys(path), spans)
	if err != nil {
		for _, c := range calls {
			s.giveBack(ctx, c.source, entriesIn(spansOf(c.positions), nonce))
		}
		return err
	}
	for _, c := range calls {
		n := len(spansOf(c.positions))
		if c.err == nil {
			c.take(slices.Concat(read[:n]...), nonce, known)
		}
		read = read[n:]
	}
	return nil
}

// take adds to the call what was read for it, with what the script returned about it.
func (c *sessionReceiveCall) take(read []entry, nonce uint64, known known) {
	for i := range read {
		e := &read[i]
		e.nonce, e.lockedUntil = nonce, c.lockedUntil
		known.addTo(e)
	}
	c.add(read...)
}

// spansOf returns the first and last of each run of consecutive positions. positions ascend.
func spansOf(positions []int64) []span {
	var spans []span
	for first := 0; first < len(positions); {
		last := first
		for last+1 < len(positions) && positions[last+1] == positions[last]+1 {
			last++
		}
		spans = append(spans, span{
			first: strconv.FormatInt(positions[first], 10), last: strconv.FormatInt(positions[last], 10),
		})
		first = last + 1
	}
	return spans
}
