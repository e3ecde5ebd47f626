package redisstore

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// How many messages to complete and to receive share one turn script.
const (
	fullTurn = 64
	mostTurn = maxScriptMessages
)

// turnCall is what one holder does in its session in one step, on its way to the script: it completes messages, and
// takes the next ones. Calls for different sessions of a queue share a script.
type turnCall struct {
	source semantics.Source
	tokens []semantics.LockToken // of the messages to complete
	codes  []semantics.Code
	err    error // why nothing was completed or received
	answer       // with a limit of 0 nothing is received
	failed error // why nothing was received

	// What the last script returned.
	positions   []int64
	lockedUntil time.Time
	left        bool

	recheck time.Duration
}

// turnCalls are the turns of one caller that share one script.
type turnCalls []*turnCall

func (calls turnCalls) weight() int {
	n := 0
	for _, c := range calls {
		n += len(c.tokens) + c.answer.weight()
	}
	return n
}

func (c *turnCall) takes() bool { return c.limit > 0 }

// Turn implements semantics.Sessions. If one script does not take all, further ones follow.
func (s *Store) Turn(ctx context.Context, path string, turns []semantics.Turn) []semantics.TurnOutcome {
	all, calls := make([]turnCall, len(turns)), make(turnCalls, len(turns))
	for i, t := range turns {
		all[i] = turnCall{
			source: semantics.Source{Path: path, SessionLock: t.Session}, tokens: t.Complete,
			answer: answer{limit: t.Receive, register: t.Register},
		}
		calls[i] = &all[i]
	}
	outcomes := make([]semantics.TurnOutcome, 0, len(turns))
	for _, some := range piecesOf(calls, turnCalls.weight, mostTurn) {
		err := s.turns.do(ctx, semantics.Fold(path), some)
		for _, c := range some {
			outcomes = append(outcomes, s.outcomeOf(ctx, c, err))
		}
	}
	return outcomes
}

func (s *Store) outcomeOf(ctx context.Context, c *turnCall, err error) semantics.TurnOutcome {
	o := semantics.TurnOutcome{Codes: c.codes, Err: cmp.Or(err, c.err), Failure: c.failed}
	if o.Err == nil && o.Failure == nil && c.takes() {
		o.Batch, o.Failure = s.batchFor(ctx, c.source, c.entries, c.recheck)
	}
	return o
}

// turn makes a turn in one session.
func (s *Store) turn(ctx context.Context, source semantics.Source, turn semantics.Turn) semantics.TurnOutcome {
	turn.Session = source.SessionLock
	return s.Turn(ctx, source.Path, []semantics.Turn{turn})[0]
}

func (s *Store) receiveInSession(
	ctx context.Context, source semantics.Source, limit int, register semantics.Register,
) (semantics.Batch, error) {
	o := s.turn(ctx, source, semantics.Turn{Receive: limit, Register: register})
	return o.Batch, cmp.Or(o.Err, o.Failure)
}

func (s *Store) completeInSession(
	ctx context.Context, source semantics.Source, tokens []semantics.LockToken,
) ([]semantics.Code, error) {
	o := s.turn(ctx, source, semantics.Turn{Complete: tokens})
	return o.Codes, o.Err
}

// runTurns makes the turns, with as many scripts as it takes to fill those that receive. The first script completes.
func (s *Store) runTurns(ctx context.Context, callers []turnCalls) {
	calls := slices.Concat(callers...)
	if err := s.releaseUnanswered(ctx, calls[0].source.Path, calls); err != nil {
		for _, c := range calls {
			if c.takes() {
				c.err = err
			}
		}
		calls = slices.DeleteFunc(calls, (*turnCall).takes)
	}
	for len(calls) > 0 {
		if err := s.turnOnce(ctx, calls); err != nil {
			for _, c := range calls {
				switch {
				case c.codes == nil:
					c.err = err
				case len(c.entries) == 0: // the caller keeps what an earlier script returned
					c.failed = err
				}
			}
			return
		}
		calls = slices.DeleteFunc(calls, (*turnCall).satisfied)
	}
}

// satisfied reports whether a further script would add nothing to the call. A call that found nothing because too much
// was due first is satisfied too: its caller tries again.
func (c *turnCall) satisfied() bool {
	return !c.takes() || c.err != nil || c.failed != nil || !c.left || len(c.positions) == 0 || c.isFull()
}

// turnOnce completes and locks with one script, and reads what it locked with one pipeline. It releases what it cannot
// read.
func (s *Store) turnOnce(ctx context.Context, calls turnCalls) error {
	if !slices.ContainsFunc(calls, (*turnCall).takes) {
		return s.completeOnce(ctx, calls)
	}
	path, nonce := calls[0].source.Path, newNonce()
	args := appendTurns([]any{s.now(), maxScriptBytes, nonce, s.sidecar}, calls)
	r, err := s.run(ctx, "turn", s.keys(path), args...)
	if err != nil {
		if semantics.IsOutcomeUnknown(err) {
			s.noteReceive(calls, nonce)
		}
		return err
	}
	if r.status == string(semantics.SessionNotSupported) {
		return refuseTurns(calls, r)
	}
	err = s.onSource(ctx, calls[0].source, r)
	if err != nil && r.status != string(semantics.EntityDisabled) {
		return err
	}
	var known known
	recheck := time.Duration(0)
	if err == nil {
		recheck = time.Duration(r.number()) * time.Millisecond
		known = readKnown(r)
	}
	for _, c := range calls {
		row := r.text()
		if row == string(semantics.SessionLockLost) {
			s.unanswered.forget(sessionToken(c.source))
		}
		c.readRow(row, recheck)
		if err != nil && c.takes() {
			c.failed = err
		}
	}
	if err := r.failure(); err != nil {
		return err
	}
	return s.readBodies(ctx, path, nonce, calls, known)
}

// refuseTurns notes that a queue has no sessions. A call that only receives hears first that nothing can be received
// (ERR-5).
func refuseTurns(calls turnCalls, r *reply) error {
	status := r.text()
	for _, c := range calls {
		c.err = semantics.SessionFailure(semantics.SessionNotSupported, c.source.Path)
		if status != "" && len(c.tokens) == 0 {
			c.err = semantics.Disabled(c.source.Path, status)
		}
	}
	return r.failure()
}

// completeOnce is turnOnce for calls that only complete.
func (s *Store) completeOnce(ctx context.Context, calls turnCalls) error {
	r, err := s.run(ctx, "complete_in_sessions", s.keys(calls[0].source.Path), appendTurns([]any{s.now()}, calls)...)
	if err != nil {
		return err
	}
	switch r.status {
	case string(semantics.SessionNotSupported):
		return refuseTurns(calls, r)
	case string(semantics.EntityNotFound):
		return s.notFound(ctx, calls[0].source.Path)
	}
	for _, c := range calls {
		row := r.text()
		if row == string(semantics.SessionLockLost) {
			s.unanswered.forget(sessionToken(c.source))
		}
		c.readRow(row, 0)
	}
	return r.failure()
}

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

// readRow reads what the script did for one call: "<done> <left> <locked until> <position> ...".
func (c *turnCall) readRow(row string, recheck time.Duration) {
	c.positions, c.left = nil, false
	if row == string(semantics.SessionLockLost) {
		c.lose()
		return
	}
	done, rest, _ := strings.Cut(row, " ")
	c.readDone(strings.TrimPrefix(done, "-"))
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
func (c *turnCall) readDone(done string) {
	if c.codes != nil {
		return
	}
	c.codes = make([]semantics.Code, len(c.tokens))
	for i := range c.codes {
		if i >= len(done) || done[i] != '1' {
			c.codes[i] = semantics.MessageLockLost
		}
	}
}

// readBodies reads the messages behind the positions of all calls, neighbouring ones with one command although they are
// of different sessions: those that advance together have their next messages side by side.
func (s *Store) readBodies(ctx context.Context, path string, nonce uint64, calls turnCalls, known known) error {
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
