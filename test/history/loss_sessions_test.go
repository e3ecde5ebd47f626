package history

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

var lossSessions = []string{"a", "b", "c"}

// holdAll accepts sessions, receives in them, changes their states and closes them, or forgets to.
func (r *lossRun) holdAll(rng *rand.Rand) {
	for states := 0; r.receiving.Load(); {
		m := r.any(rng)
		held := r.accept(m, rng)
		if held == nil {
			continue
		}
		source := semantics.Source{Path: inOrder, SessionLock: held.Lock}
		got := r.take(m, source, 1, semantics.PeekLock)
		for range 1 + rng.IntN(5) {
			if rng.IntN(3) == 0 && r.sending.Load() {
				states++
				r.setState(r.any(rng), held, fmt.Sprintf("%d %p %d", r.number, rng, states))
			}
			if len(got) == 0 {
				break
			}
			before := got[0]
			if rng.IntN(2) == 0 {
				got = r.turn(r.any(rng), source, before)
			} else if r.settle(r.any(rng), source, "complete", before) == done {
				got = r.take(m, source, 1, semantics.PeekLock)
			}
			if before.outcome != done {
				break
			}
		}
		if rng.IntN(8) > 0 || !r.sending.Load() {
			r.about(&call{what: "close", session: held.ID, token: held.Lock.String()}, func(ctx context.Context) error {
				return r.any(rng).closeSession(ctx, source)
			})
		}
	}
}

// about makes one call about a session and records it.
func (r *lossRun) about(c *call, do func(ctx context.Context) error) outcome {
	r.quiet.RLock()
	defer r.quiet.RUnlock()
	c.began = time.Now()
	err := do(r.ctx)
	c.ended, c.outcome = time.Now(), lossOutcome(err)
	c.until = r.slowNow().until(c.until, sessionLock, span{c.began, c.ended})
	r.unexpected(c.what, err)
	r.add(func() { r.calls = append(r.calls, c) })
	return c.outcome
}

func (r *lossRun) accept(m member, rng *rand.Rand) *semantics.Session {
	options := broker.AcceptOptions{MaxWait: 50 * time.Millisecond}
	c := &call{what: "accept"}
	if rng.IntN(5) == 0 {
		options = broker.AcceptOptions{SessionID: lossSessions[rng.IntN(len(lossSessions))]}
		c.session = options.SessionID
	}
	var held *semantics.Session
	if r.about(c, func(ctx context.Context) error {
		session, err := m.accept(ctx, inOrder, options)
		if err == nil && session != nil {
			held = session
			c.session, c.token, c.until, c.state = held.ID, held.Lock.String(), held.LockedUntil, stateText(held.State.Data)
		}
		return err
	}) != done {
		r.rest(5 * time.Millisecond)
	}
	return held
}

func (r *lossRun) setState(m member, held *semantics.Session, text string) {
	c := &call{what: "set state", session: held.ID, token: held.Lock.String(), state: stateText([]byte(text))}
	r.about(c, func(ctx context.Context) error {
		return m.setState(ctx, semantics.Source{Path: inOrder, SessionLock: held.Lock}, []byte(text))
	})
}

// forgetfulState is a session as a lock that may come back as it was at the mark.
type forgetfulState struct{ now, saved lockState }

// shifted is a lock as the machine sees it after the clock of the Redis was set.
func (s lockState) shifted(by time.Duration) lockState {
	if s.token != "" {
		s.atLeast, s.atMost = s.atLeast+by.Milliseconds(), s.atMost+by.Milliseconds()
	}
	return s
}

// forgetfulModel is lockModel for a Redis that forgets.
type forgetfulModel struct{ lockModel }

func (m forgetfulModel) model() porcupine.Model {
	nondeterministic := porcupine.NondeterministicModel{
		Init:              func() []any { return []any{forgetfulState{}} },
		Step:              func(state, input, _ any) []any { return m.step(state.(forgetfulState), input.(*call)) },
		DescribeOperation: func(input, _ any) string { return input.(*call).String() },
	}
	return nondeterministic.ToModel()
}

func (m forgetfulModel) step(s forgetfulState, c *call) []any {
	switch c.what {
	case "mark":
		return []any{forgetfulState{s.now, s.now}}
	case "lose":
		all := []any{forgetfulState{s.saved.shifted(c.shift), s.saved}}
		// it was over at the mark, and perhaps it is not even there
		if c.shift > 0 && s.saved.atLeast <= c.until.UnixMilli() {
			all = append(all, forgetfulState{lockState{state: s.saved.state}, s.saved})
		}
		return all
	case "set right":
		return []any{forgetfulState{s.now.shifted(c.shift), s.saved}}
	case "lose all":
		return []any{forgetfulState{}}
	}
	var all []any
	for _, next := range m.lockModel.step(s.now, c) {
		all = append(all, forgetfulState{next.(lockState), s.saved})
	}
	return all
}

// checkSessions checks, session by session, that the answers to all calls are possible in some order that agrees with
// time and with what was forgotten.
func (r *lossRun) checkSessions() {
	r.t.Helper()
	m := forgetfulModel{lockModel{sessionLock}}
	for _, session := range lossSessions {
		var operations []porcupine.Operation
		for _, c := range r.calls {
			isLoss := c.session == "" && c.what != "accept"
			if c.session != session && !isLoss || c.outcome == nothing {
				continue
			}
			by := c.ended
			switch {
			case c.outcome == unknown && c.what == "accept":
				continue // it has no holder; see excused
			case c.outcome == unknown: // it may take effect until the connection is known to be lost
				by = by.Add(sessionLock)
			case c.outcome == refused:
				c.excused = slices.ContainsFunc(r.calls, func(b *call) bool {
					return b.what == "accept" && b.outcome == unknown && (b.session == "" || b.session == session) && b.began.Before(c.ended)
				})
			}
			operations = append(operations, porcupine.Operation{Input: c, Call: c.began.UnixNano(), Return: by.UnixNano()})
		}
		result, info := porcupine.CheckOperationsVerbose(m.model(), operations, time.Minute)
		if result != porcupine.Ok {
			r.t.Errorf("session %s: the lock's history is %s:\n%s", session, result, firstStuck(operations, info))
		}
	}
}

// checkSessionOrder checks that what was sent and received after the loss was completed in order. What a holder had
// before is still locked for it while it goes on to the next message, if Redis has forgotten only that it was completed;
// it comes again when that lock ends.
func (r *round) checkSessionOrder(fail func(format string, args ...any)) {
	last, had := map[string]*taking{}, map[string]bool{}
	var completed []*taking
	for _, d := range r.deliveries {
		switch {
		case d.source != inOrder:
		case r.forgets() && !d.began.After(r.lost.ended):
			had[d.text] = true
		case d.verb == "complete" && d.outcome == done:
			completed = append(completed, d)
		}
	}
	slices.SortStableFunc(completed, func(a, b *taking) int { return a.settled.began.Compare(b.settled.began) })
	for _, d := range completed {
		if had[d.text] {
			continue
		}
		if before := last[d.session]; before != nil && d.number <= before.number {
			fail("session %s: message %d was completed after %d:\n%s", d.session, d.number, before.number, r.storyOfSession(d.session))
		}
		last[d.session] = d
	}
}

// storyOfSession is what was sent and delivered in a session, and what was done with its lock.
func (r *round) storyOfSession(id string) string {
	var lines []string
	for _, s := range r.sends {
		if s.session == id {
			lines = append(lines, fmt.Sprintf("%s: sent %s: %s", r.since(s.span), s.text, s.outcome))
		}
	}
	for _, d := range r.deliveries {
		if d.source == inOrder && d.session == id {
			lines = append(lines, fmt.Sprintf("%s: delivered %d, %s, by %s, then %s %s %s",
				r.since(d.span), d.number, d.text, d.token, r.since(d.settled), d.verb, d.outcome))
		}
	}
	return strings.Join(lines, "\n")
}

// A message that a holder had before the loss may come again after later ones; others may not.
func TestSessionOrderAfterALoss(t *testing.T) {
	t.Parallel()
	start := time.Now()
	at := func(second int) span {
		began := start.Add(time.Duration(second) * time.Second)
		return span{began, began.Add(time.Millisecond)}
	}
	completed := func(second int, number int64) *taking {
		return &taking{
			source: inOrder, session: "a", text: fmt.Sprint(number), number: number,
			span: at(second), verb: "complete", outcome: done, settled: at(second + 1),
		}
	}
	r := &round{loss: redistest.Failover, marked: at(10), lost: at(20)}
	for _, test := range []struct {
		deliveries []*taking
		failures   int
	}{
		{[]*taking{completed(5, 1), completed(30, 2), completed(40, 1)}, 0},
		{[]*taking{completed(5, 1), completed(30, 3), completed(40, 2)}, 1},
	} {
		failures := 0
		r.deliveries = test.deliveries
		r.checkSessionOrder(func(string, ...any) { failures++ })
		if failures != test.failures {
			t.Errorf("got %d failures, want %d: %s", failures, test.failures, r.storyOfSession("a"))
		}
	}
}
