package redisstore

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// appendTurns appends the arguments of the script for the calls. Only the first script for a call completes.
func appendTurns(args []any, calls turnCalls) []any {
	args = slices.Grow(args, 5*len(calls)+2*calls.weight())
	for _, c := range calls {
		tokens, open := c.tokens, 0
		if c.codes != nil {
			tokens = nil
		}
		if c.takes() {
			open = c.open()
		}
		args = append(
			args, sessionToken(c.source), open, c.bytesLeftText(), registerNumber(c.registersAs()), len(tokens),
		)
		for _, t := range tokens {
			l, ok := lockOf(t)
			if !ok {
				args = append(args, foreignLock, "0-0")
				continue
			}
			args = append(args, l.sessionText(), l.id())
		}
	}
	return args
}

// readTurn reads what the script did for one call: "<done> <left> <locked until> <position> ...".
func (s *Store) readTurn(c *turnCall, r *reply, recheck time.Duration) {
	c.positions, c.left = nil, false
	row := r.text()
	if row == string(semantics.SessionLockLost) {
		s.unanswered.forget(sessionToken(c.source))
		c.lose()
		return
	}
	done, rest, _ := strings.Cut(row, " ")
	c.readDone(strings.TrimPrefix(done, "-"), r)
	left, rest, _ := strings.Cut(rest, " ")
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
		c.failed = (&reply{err: err}).failure()
		return
	}
	c.left, c.lockedUntil, c.recheck = left == "1", instantOf(ends), recheck
	if len(c.positions) == 0 && c.left {
		c.recheck = 0
	}
}

// lose notes that the session is not held any more. The caller keeps what an earlier script returned.
func (c *turnCall) lose() {
	if c.codes == nil {
		c.codes = slices.Repeat([]semantics.Code{semantics.SessionLockLost}, len(c.tokens))
	}
	if c.takes() && len(c.entries) == 0 {
		c.failed = semantics.SessionFailure(semantics.SessionLockLost, c.source.Path)
	}
}

// readDone reads what became of the messages to complete, of the first script.
func (c *turnCall) readDone(done string, r *reply) {
	if c.codes != nil {
		return
	}
	c.codes = make([]semantics.Code, len(c.tokens))
	for i := range c.codes {
		if i >= len(done) || done[i] != '1' {
			c.codes[i] = semantics.MessageLockLost
		}
	}
	r.confirm(c.codes)
}

// readTaken reads the messages behind the positions of all calls, neighbouring ones with one command although they are
// of different sessions: those that advance together have their next messages side by side.
func (s *Store) readTaken(ctx context.Context, path string, nonce uint64, calls turnCalls, known known) error {
	var positions []int64
	for _, c := range calls {
		positions = append(positions, c.positions...)
	}
	if len(positions) == 0 {
		return nil
	}
	slices.Sort(positions)
	read, err := s.readSpans(ctx, s.keys(path), spansOf(positions))
	if err != nil {
		for _, c := range calls {
			s.giveBack(ctx, c.source, entriesIn(spansOf(c.positions), nonce))
		}
		return err
	}
	all := slices.Concat(read...)
	for _, c := range calls {
		for _, position := range c.positions {
			at, ok := slices.BinarySearchFunc(all, position, entry.compareTo)
			if ok {
				c.take(all[at], nonce, known)
			}
		}
	}
	return nil
}

// take adds to the call what was read for it, with what the script returned about it.
func (c *turnCall) take(e entry, nonce uint64, known known) {
	e.nonce, e.lockedUntil = nonce, c.lockedUntil
	known.addTo(&e)
	c.add(e)
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
