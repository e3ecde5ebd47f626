package history

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// lockState is a session as a lock: who has it, until when at least and at most, and the state kept with it.
type lockState struct {
	token           string
	atLeast, atMost int64 // ms; they differ when it is not known whether a renewal took effect
	state           string
}

// lockModel checks which answers to calls about one session are possible, and what they lead to. The end of the lock in
// the answer to an accept or a renewal shows the instant of its script, so time is exact.
type lockModel struct{ lock time.Duration }

func (m lockModel) model() porcupine.Model {
	nondeterministic := porcupine.NondeterministicModel{
		Init:              func() []any { return []any{lockState{}} },
		Step:              func(state, input, _ any) []any { return m.step(state.(lockState), input.(*call)) },
		DescribeOperation: func(input, _ any) string { return input.(*call).String() },
	}
	return nondeterministic.ToModel()
}

func (c *call) String() string {
	via := ""
	if c.via != nil {
		via = filepath.Base(c.via.GRPC)
	}
	return fmt.Sprintf("%s %s %q -> %q until %s by %.8s via %s", c.session, c.what, c.state, c.outcome, c.until.Format("05.000"), c.token, via)
}

func (c *call) line() string {
	return c.began.Format("05.000000") + " to " + c.ended.Format("05.000000") + " " + c.String()
}

func (m lockModel) step(s lockState, c *call) []any {
	holds := s.token != "" && s.token == c.token
	inTime := c.began.UnixMilli() < s.atMost // it may have run before the lock ended
	same := []any{s}
	switch c.outcome {
	case lost:
		if holds && c.ended.Before(time.UnixMilli(s.atLeast)) {
			return nil
		}
		return same
	case refused:
		if c.excused || s.token != "" && inTime {
			return same
		}
		return nil
	case unknown:
		if !holds || !inTime {
			return same
		}
		return append(same, m.unknownStep(s, c)...)
	case done:
	default:
		return same
	}
	if c.what == "accept" {
		free := s.token == "" || !c.until.Add(-m.lock).Before(time.UnixMilli(s.atLeast))
		if !free || c.state != s.state {
			return nil
		}
		return []any{lockState{token: c.token, atLeast: c.until.UnixMilli(), atMost: c.until.UnixMilli(), state: s.state}}
	}
	if !holds || !inTime {
		return nil
	}
	switch c.what {
	case "renew":
		if c.until.Add(-m.lock).UnixMilli() >= s.atMost {
			return nil
		}
		s.atLeast, s.atMost = c.until.UnixMilli(), c.until.UnixMilli()
	case "close":
		s = lockState{state: s.state}
	case "set state":
		s.state = c.state
	}
	return []any{s}
}

// unknownStep gives what a call of unknown outcome leads to if it took effect.
func (m lockModel) unknownStep(s lockState, c *call) []any {
	switch c.what {
	case "renew":
		s.atLeast, s.atMost = max(s.atLeast, c.began.Add(m.lock).UnixMilli()), s.atMost+m.lock.Milliseconds()
	case "close":
		s = lockState{state: s.state}
	case "set state":
		s.state = c.state
	default:
		return nil
	}
	return []any{s}
}

// checkLocks checks, session by session, that the answers to all calls are possible in some order that agrees with time
// (I3, I5): at most one client holds the session, a call of a former holder has no effect, and the next holder finds
// the state that was set last.
func (r *run) checkLocks() {
	r.t.Helper()
	for _, session := range r.sessions {
		var operations []porcupine.Operation
		add := func(c *call, by time.Time) {
			operations = append(operations, porcupine.Operation{Input: c, Call: c.began.UnixNano(), Return: by.UnixNano()})
		}
		ends := map[string]time.Time{} // of locks, at the latest
		for _, h := range r.record.holds {
			ends[h.token] = h.until.Add(r.lock)
			for _, p := range h.drained() {
				if h.session == session && p.drained.Before(ends[h.token]) {
					add(&call{via: p, what: "close", session: session, token: h.token, began: p.drained, ended: p.exited, outcome: unknown}, p.exited)
				}
			}
		}
		for _, c := range r.record.calls {
			if c.session != session || c.outcome == nothing {
				continue
			}
			if c.outcome != unknown {
				c.excused = c.outcome == refused && r.isHeldBlindly(c)
				add(c, c.ended)
			} else if c.what == "renew" || c.what == "close" || c.what == "set state" {
				add(c, latest(c.ended, ends[c.token])) // it may take effect as long as the lock holds
			}
		}
		result, info := porcupine.CheckOperationsVerbose(lockModel{r.lock}.model(), operations, time.Minute)
		if result == porcupine.Ok {
			continue
		}
		r.t.Errorf("%s: the lock's history is %s (I3, I5):\n%s", session, result, firstStuck(operations, info))
	}
}

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// firstStuck shows the calls around the first one that has no place in the longest order that was found.
func firstStuck(operations []porcupine.Operation, info porcupine.LinearizationInfo) string {
	placed := map[int]bool{}
	for _, partition := range info.PartialLinearizations() {
		if len(partition) == 0 {
			continue // not even one call has a place
		}
		longest := slices.MaxFunc(partition, func(a, b []int) int { return len(a) - len(b) })
		for _, i := range longest {
			placed[i] = true
		}
	}
	order := make([]int, len(operations))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return int(operations[a].Call - operations[b].Call) })
	at := slices.IndexFunc(order, func(i int) bool { return !placed[i] && operations[i].Input.(*call).outcome != unknown })
	var text strings.Builder
	for i := max(0, at-12); i < min(len(order), at+6); i++ {
		c := operations[order[i]].Input.(*call)
		mark := "   "
		if i == at {
			mark = "-> "
		}
		text.WriteString(mark + c.line() + "\n")
	}
	return text.String()
}

// isHeldBlindly reports whether an accept of unknown outcome may have taken the session that c was refused: its answer
// was lost, so the session has no holder until the lock expires, or the sidecar notices and closes it.
func (r *run) isHeldBlindly(c *call) bool {
	return r.mayBeTakenBlindly(c.session, c.began.Add(-r.lock), c.ended)
}

// mayBeTakenBlindly reports whether an accept of unknown outcome may have taken a session in a piece of time.
func (r *run) mayBeTakenBlindly(session string, from, to time.Time) bool {
	return slices.ContainsFunc(r.record.blind, func(b *call) bool {
		// a sidecar that was halted may carry the call out that long after the client gave up
		const late = 2 * time.Second
		return b.what == "accept" && (b.session == "" || b.session == session) && b.began.Before(to) && from.Before(b.ended.Add(late))
	})
}
