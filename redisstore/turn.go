package redisstore

import (
	"cmp"
	"context"
	"slices"
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

// completes reports whether the next script for the call completes messages.
func (c *turnCall) completes() bool { return c.codes == nil && len(c.tokens) > 0 }

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
	args := appendTurns([]any{s.now(), maxScriptBytes, nonce, s.holder()}, calls)
	lasts := ctx
	if slices.ContainsFunc(calls, (*turnCall).completes) {
		lasts = s.lasting(ctx)
	}
	r, err := s.run(lasts, "turn", s.keys(path), args...)
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
		s.readTurn(c, r, recheck)
		if err != nil && c.takes() {
			c.failed = err
		}
	}
	if err := r.failure(); err != nil {
		return err
	}
	return s.readTaken(ctx, path, nonce, calls, known)
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
	args := appendTurns([]any{s.now()}, calls)
	r, err := s.run(s.lasting(ctx), "complete_in_sessions", s.keys(calls[0].source.Path), args...)
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
		s.readTurn(c, r, 0)
	}
	return r.failure()
}
