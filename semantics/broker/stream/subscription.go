package stream

import (
	"context"
	"io"
	"sync"
	"sync/atomic"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/stream/internal/account"
)

// SessionEnd is why a subscription no longer holds a session.
type SessionEnd = account.SessionEnd

// The ends of a session.
const (
	SessionIdle    = account.SessionIdle    // it had no message for SessionIdle
	SessionYielded = account.SessionYielded // another session was ready and waited for its place
	SessionClosed  = account.SessionClosed  // the client asked for it
	SessionLost    = account.SessionLost    // its lock ended, or the entity is gone
	SessionDrained = account.SessionDrained // this Broker drains
	SessionPaused  = account.SessionPaused  // the client has no credit left for it
)

// Event is one event for the client. Exactly one of its fields is set.
type Event = account.Event

// ClosedSession is a session that a subscription no longer holds.
type ClosedSession = account.ClosedSession

// Subscription delivers messages of one source as they come, never more than its client has credits for, and renews
// their locks. Its methods may be called concurrently; Next by one goroutine at a time. The caller of Subscribe must
// end the subscription with Close, Drop or Detach. Only the first of these calls counts, and the others wait for it.
//
// One goroutine takes messages from the store: the pump of a source without sessions, which delivers what it has before
// it takes more, or the loop for all locked sessions, which takes what there are credits for. So no message without a
// credit is queued here, however slow the client is.
type Subscription struct {
	broker    Broker
	streams   *Streams
	source    semantics.Source
	options   Options
	bySession bool // the source has sessions

	account  *account.Account // what the goroutines below share
	events   chan Event
	troubled atomic.Bool // the client was told of a failure that lasts

	life   context.Context //nolint:containedctx // of its goroutines
	ending sync.Once
	work   sync.WaitGroup
	over   chan struct{} // closed when no event will come any more
}

// isDraining reports whether the broker drains.
func (s *Subscription) isDraining() bool {
	select {
	case <-s.broker.Draining():
		return true
	default:
		return false
	}
}

// HasSessions reports whether the source has sessions.
func (s *Subscription) HasSessions() bool { return s.bySession }

// Source returns the source of a session that was opened, and with the zero token that of the subscription.
func (s *Subscription) Source(session semantics.LockToken) semantics.Source {
	source := s.source
	source.SessionLock = session
	return source
}

// Next returns the next event. It blocks until there is one, ctx ends (CANCELLED), or the subscription ends: then it is
// io.EOF after Close, Drop or Detach, and else the reason, which is one that does not pass: ENTITY_NOT_FOUND,
// ENTITY_DISABLED, SESSION_REQUIRED or SESSION_NOT_SUPPORTED when the queue was recreated as another kind,
// INVALID_OPERATION when its sessions must be named (RR-5) or it forwards all it gets (FWD-2), or STORE_UNAVAILABLE
// with cause "draining" when the Broker drains and everything was settled.
func (s *Subscription) Next(ctx context.Context) (Event, error) {
	for {
		if lost := s.account.TakeLost(); len(lost) > 0 { // first, since the same messages may come again
			return Event{LocksLost: lost}, nil
		}
		if e, isReady := s.account.NextEvent(); isReady {
			if s.take(e) {
				return e, nil
			}
			s.giveUp(ctx, e)
			continue
		}
		select {
		case e := <-s.events:
			if s.take(e) {
				return e, nil
			}
			s.giveUp(ctx, e)
		case <-s.account.EventReady:
		case <-s.account.LocksLost:
		case <-s.over:
			if failure := s.account.Failure(); failure != nil {
				return Event{}, failure
			}
			return Event{}, io.EOF
		case <-ctx.Done():
			return Event{}, semantics.CancelledBy(ctx)
		}
	}
}

// Ready returns an event that Next would return at once, if there is one, so that several can be sent together. Only
// Next returns lost locks. Ready does not block, except for a round trip when the subscription ends.
func (s *Subscription) Ready(ctx context.Context) (Event, bool) {
	if s.account.HasLost() { // what comes now may be the same messages again
		return Event{}, false
	}
	e, isReady := s.account.NextEvent()
	if !isReady {
		select {
		case e = <-s.events:
		default:
			return Event{}, false
		}
	}
	if s.take(e) {
		return e, true
	}
	s.giveUp(ctx, e)
	return Event{}, false
}

// take reports whether an event is still worth sending to the client.
func (s *Subscription) take(e Event) bool { return e.Delivery == nil || s.account.Take(e.Delivery) }

// removes reports whether messages are removed as soon as the client has them.
func (s *Subscription) removes() bool { return s.options.Mode == semantics.ReceiveAndDelete }

// Delivered notes that an event reached the client's connection. Messages in ReceiveAndDelete mode are removed now
// (RECV-7), and then their credits are free. It does not block.
func (s *Subscription) Delivered(ctx context.Context, e Event) {
	if e.Delivery == nil {
		return
	}
	if !s.removes() {
		e.Delivery.FreeMemory()
		return
	}
	go func() { // so that sessions need not wait for each other; as many as there are credits at most
		defer s.account.Removals.Done()
		_ = e.Delivery.Delivered(ctx) // what could not be removed comes again when its lock ends
		s.account.Forget(e.Delivery.Tokens())
	}()
}

// Undelivered notes that an event did not reach the client: its messages are available again at once and nothing is
// counted (RECV-7). It blocks for one round trip.
func (s *Subscription) Undelivered(ctx context.Context, e Event) {
	if e.Delivery != nil && s.removes() {
		defer s.account.Removals.Done()
	}
	s.giveUp(ctx, e)
}

// giveUp releases the messages of an event that does not reach the client.
func (s *Subscription) giveUp(ctx context.Context, e Event) {
	if e.Delivery != nil {
		_ = e.Delivery.Undelivered(ctx) // what cannot be given back comes again when its lock ends
		s.account.Forget(e.Delivery.Tokens())
	}
}

// SetCredits changes how many messages the client wants to have unsettled, 0 to MaxCredits; those it has stay. With 0
// nothing is delivered and the subscription stands. It does not block. ARGUMENT_OUT_OF_RANGE.
func (s *Subscription) SetCredits(n int) error {
	if n < 0 || n > MaxCredits {
		return semantics.FieldError(semantics.ArgumentOutOfRange, "credits", "is %d, must be 0 to %d", n, MaxCredits)
	}
	s.account.Grant(n)
	return nil
}

// tell hands an event to Next. It reports false when the subscription ends first.
func (s *Subscription) tell(e Event) bool {
	select {
	case s.events <- e:
		return true
	case <-s.life.Done():
		return false
	}
}
