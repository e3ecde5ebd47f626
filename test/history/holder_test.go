package history

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// holder is one application that accepts sessions through its sidecar and works on them, not always as it should.
type holder struct {
	*run
	rng    *rand.Rand
	post   *post
	states int // that it has set
	name   string
}

func (h *holder) work() {
	for !h.over.Load() {
		p := h.post.take()
		if held := h.accept(p); held != nil {
			h.use(p, held)
		}
	}
}

// chance is true in so many of a hundred cases, and never when the run calms down.
func (h *holder) chance(percent int) bool { return h.rng.IntN(100) < percent && !h.calm.Load() }

// try makes one call and records it.
func (h *holder) try(c *call, do func(ctx context.Context) error) outcome {
	ctx, cancel := context.WithTimeout(h.ctx, patience)
	defer cancel()
	c.began = time.Now()
	err := do(ctx)
	c.ended = time.Now()
	text := ""
	if c.outcome, text = outcomeOf(err); strings.HasPrefix(text, "unexpected") {
		h.t.Errorf("%s: %s %v", c.what, text, err)
	}
	h.record.add(func() { h.record.calls = append(h.record.calls, c) })
	return c.outcome
}

// accept takes the next session, or one by its name.
func (h *holder) accept(p *process) *hold {
	request := &sidebusv1.SessionsAcceptRequest{Source: source, MaxWait: wire(0)}
	c := &call{what: "accept", via: p}
	if h.chance(30) {
		c.session = h.sessions[h.rng.IntN(len(h.sessions))]
		request.SessionId = &c.session
	} else {
		waits := []time.Duration{0, 100 * time.Millisecond, 1500 * time.Millisecond}
		request.MaxWait = wire(waits[h.rng.IntN(len(waits))])
	}
	var response *sidebusv1.SessionsAcceptResponse
	got := h.try(c, func(ctx context.Context) (err error) {
		response, err = p.sessions.Accept(ctx, request)
		return err
	})
	session := response.GetSession()
	h.record.add(func() {
		if request.SessionId == nil {
			h.record.waits = append(h.record.waits, &wait{began: c.began, ended: c.ended, sidecar: p, outcome: got, gave: session.GetSessionId()})
		}
		if got == unknown {
			h.record.blind = append(h.record.blind, c)
		}
	})
	if session == nil {
		if got == nothing || got == unknown {
			h.pause(10 * time.Millisecond) // the sidecar is gone or goes
		}
		return nil
	}
	c.session, c.token, c.until = session.GetSessionId(), session.GetLockToken(), session.GetLockedUntil().AsTime()
	c.state = stateText(session.State)
	held := &hold{
		session: c.session, token: c.token, accepted: c.until.Add(-h.lock), until: c.until, sidecar: p, closed: open,
	}
	h.record.add(func() { h.record.holds = append(h.record.holds, held) })
	return held
}

func stateText(state []byte) string {
	if state == nil {
		return ""
	}
	return "=" + string(state)
}

// use works on a session for some rounds and closes it, or forgets to.
func (h *holder) use(p *process, held *hold) {
	if h.chance(20) && !h.receiveDeferred(p, held) {
		return
	}
	for range 1 + h.rng.IntN(4) {
		if h.chance(15) && h.renew(p, held) != done {
			h.stumble(held)
			return
		}
		if !h.round(p, held) {
			return
		}
	}
	if !h.chance(10) { // else the lock must expire
		h.close(p, held)
	}
}

// round receives once and settles what it gets. It reports whether the session is still worth working on.
func (h *holder) round(p *process, held *hold) bool {
	got, result := h.receive(p, held)
	if result != done {
		h.stumble(held, got...)
		return false
	}
	if len(got) == 0 {
		h.pause(time.Duration(h.rng.IntN(4)) * time.Millisecond)
		return h.rng.IntN(2) == 0
	}
	for i, d := range got {
		switch {
		case h.chance(2): // it crashes
			return false
		case h.chance(4): // it is slow
			h.pause(time.Until(held.until) + time.Duration(h.rng.IntN(40)-5)*time.Millisecond)
		case h.chance(10):
			if result = h.setState(p, held); result != done {
				h.stumble(held, got[i:]...)
				return false
			}
		}
		verb := h.verb()
		if result = h.settle(p, held, verb, d); result != done {
			h.stumble(held, got[i:]...)
			return false
		}
		if strings.HasPrefix(verb, "abandon") && verb != "abandon, skipping" || verb == "release" {
			// It is the next one now, so those behind it must wait: an application that cares for order gives them
			// back.
			return len(got) == i+1 || h.settle(p, held, "release", got[i+1:]...) == done
		}
	}
	return true
}

func (h *holder) verb() string {
	switch {
	case h.chance(10):
		return "abandon"
	case h.chance(4):
		return "abandon, skipping"
	case h.chance(4):
		return "abandon, delayed"
	case h.chance(4):
		return "release"
	case h.chance(4):
		return "dead-letter"
	case h.chance(5):
		return "defer"
	default:
		return "complete"
	}
}

// stumble makes the mistakes of an application whose lock is lost or whose sidecar is gone: sometimes it goes on
// nevertheless, through any sidecar that it finds. That must never harm the present holder of the session.
func (h *holder) stumble(held *hold, left ...*handout) {
	for range h.rng.IntN(4) {
		p := h.post.any(h.rng)
		if p != held.sidecar {
			h.record.add(func() { held.elsewhere = append(held.elsewhere, p) })
		}
		switch h.rng.IntN(6) {
		case 0:
			h.setState(p, held)
		case 1:
			h.renew(p, held)
		case 2:
			h.receive(p, held)
		case 3:
			h.close(p, held)
		default:
			if len(left) > 0 && (left[0].verb == "" || left[0].outcome == lost || left[0].outcome == nothing) {
				h.settle(p, held, "complete", left[0])
			}
		}
	}
}

func (h *holder) renew(p *process, held *hold) outcome {
	c := &call{via: p, what: "renew", session: held.session, token: held.token}
	var response *sidebusv1.SessionsRenewLockResponse
	got := h.try(c, func(ctx context.Context) (err error) {
		response, err = p.sessions.RenewLock(ctx, &sidebusv1.SessionsRenewLockRequest{Source: source, LockToken: held.token})
		return err
	})
	if got == done {
		c.until = response.GetLockedUntil().AsTime()
		h.record.add(func() { held.until = c.until })
	}
	if got == unknown {
		h.record.add(func() { held.until = c.ended.Add(h.lock) }) // at the latest
	}
	return got
}

func (h *holder) close(p *process, held *hold) outcome {
	c := &call{via: p, what: "close", session: held.session, token: held.token}
	got := h.try(c, func(ctx context.Context) error {
		_, err := p.sessions.Close(ctx, &sidebusv1.SessionsCloseRequest{Source: source, LockToken: held.token})
		return err
	})
	h.record.add(func() {
		if held.closed != done && held.closed != unknown {
			held.closed, held.closedAt = got, c.ended
		}
	})
	return got
}

func (h *holder) setState(p *process, held *hold) outcome {
	h.states++
	c := &call{via: p, what: "set state", session: held.session, token: held.token}
	request := &sidebusv1.SessionsSetStateRequest{Source: source, LockToken: held.token}
	if h.rng.IntN(6) > 0 {
		request.State = fmt.Appendf(nil, "%s %d", h.name, h.states)
	}
	c.state = stateText(request.State)
	return h.try(c, func(ctx context.Context) error {
		_, err := p.sessions.SetState(ctx, request)
		return err
	})
}

func (h *holder) receive(p *process, held *hold) ([]*handout, outcome) {
	request := &sidebusv1.ReceiveRequest{
		Source: source, SessionLockToken: &held.token, MaxMessages: proto.Int32(int32(1 + h.rng.IntN(3))),
		MaxWait: wire(time.Duration(h.rng.IntN(2)) * 20 * time.Millisecond),
	}
	return h.receiveBy(p, held, false, func(ctx context.Context) ([]*sidebusv1.ReceivedMessage, error) {
		if h.chance(2) { // it goes away while it waits for the answer
			var gone context.CancelFunc
			ctx, gone = context.WithTimeout(ctx, time.Duration(h.rng.IntN(1500))*time.Microsecond)
			defer gone()
		}
		response, err := p.messages.Receive(ctx, request)
		return response.GetMessages(), err
	})
}

// receiveDeferred receives one deferred message of the session, and reports whether to go on.
func (h *holder) receiveDeferred(p *process, held *hold) bool {
	number := h.takeDeferred(held.session)
	if number == 0 {
		return true
	}
	got, result := h.receiveBy(p, held, true, func(ctx context.Context) ([]*sidebusv1.ReceivedMessage, error) {
		response, err := p.messages.ReceiveDeferred(ctx, &sidebusv1.ReceiveDeferredRequest{
			Source: source, SessionLockToken: &held.token, SequenceNumbers: []int64{number},
		})
		return response.GetMessages(), err
	})
	if result == nothing {
		return true
	}
	if result != done {
		h.putDeferred(held.session, number)
		h.stumble(held)
		return false
	}
	verb := "complete"
	if h.chance(30) {
		verb = "abandon"
		h.putDeferred(held.session, number)
	}
	return h.settle(p, held, verb, got[0]) == done
}

func (h *holder) receiveBy(p *process, held *hold, byNumber bool, receive func(ctx context.Context) ([]*sidebusv1.ReceivedMessage, error)) ([]*handout, outcome) {
	c := &call{via: p, what: "receive", session: held.session, token: held.token}
	var messages []*sidebusv1.ReceivedMessage
	result := h.try(c, func(ctx context.Context) (err error) {
		messages, err = receive(ctx)
		return err
	})
	var got []*handout
	for _, m := range messages {
		got = append(got, &handout{
			hold: held, text: m.GetText(), number: m.GetSequenceNumber(), sequence: m.GetSessionSequence(), count: int(m.GetDeliveryCount()),
			deferred: byNumber, token: m.GetLockToken(), began: c.began, ended: c.ended, enqueued: m.GetEnqueuedTime().AsTime(),
		})
	}
	// A sidecar that was halted as it received may find, when it goes on, that the lock is over and messages are gone.
	unseen := result != nothing && c.began.Before(held.until) && !c.ended.Before(held.until)
	h.record.add(func() {
		h.record.deliveries = append(h.record.deliveries, got...)
		if result == unknown || unseen {
			h.record.blind = append(h.record.blind, c)
		}
	})
	return got, result
}

// settle settles messages of a session in one call. It gives done only when that is what became of all of them.
func (h *holder) settle(p *process, held *hold, verb string, which ...*handout) outcome {
	var tokens []string
	for _, d := range which {
		tokens = append(tokens, d.token)
	}
	c := &call{via: p, what: verb, session: held.session, token: held.token}
	var response *sidebusv1.SettleResponse
	result := h.try(c, func(ctx context.Context) (err error) {
		switch verb {
		case "complete":
			response, err = p.messages.Complete(ctx, &sidebusv1.CompleteRequest{Source: source, SessionLockToken: &held.token, LockTokens: tokens})
		case "release":
			response, err = p.messages.Release(ctx, &sidebusv1.ReleaseRequest{Source: source, SessionLockToken: &held.token, LockTokens: tokens})
		case "defer":
			response, err = p.messages.Defer(ctx, &sidebusv1.DeferRequest{Source: source, SessionLockToken: &held.token, LockTokens: tokens})
		case "dead-letter":
			response, err = p.messages.DeadLetter(ctx, &sidebusv1.DeadLetterRequest{
				Source: source, SessionLockToken: &held.token, LockTokens: tokens, Reason: proto.String(byHand),
			})
		default:
			request := &sidebusv1.AbandonRequest{Source: source, SessionLockToken: &held.token, LockTokens: tokens}
			if verb != "abandon" {
				request.Delay, request.SkipOrder = wire(50*time.Millisecond), verb == "abandon, skipping"
			}
			response, err = p.messages.Abandon(ctx, request)
		}
		return err
	})
	for i, d := range which {
		each := result
		if result == done {
			each = outcome(response.GetResults()[i].GetReason())
		}
		h.record.add(func() {
			d.verb, d.outcome, d.settleBegan, d.settled = verb, each, c.began, c.ended
			if each == lost {
				c.outcome = lost
			}
		})
		if verb == "defer" && (each == done || each == unknown) {
			h.putDeferred(held.session, d.number)
		}
		if each != done {
			result = each
		}
	}
	return result
}

const byHand = "by hand"
