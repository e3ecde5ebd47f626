package stream

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/delivery"
)

// SessionEnd says why a subscription no longer holds a session.
type SessionEnd uint8

// The ends of a session.
const (
	SessionIdle    SessionEnd = iota // it had no message for SessionIdle
	SessionYielded                   // another session was ready and waited for its place
	SessionClosed                    // the client asked for it
	SessionLost                      // its lock ended, or the entity is gone
	SessionDrained                   // this Broker drains
	SessionPaused                    // the client has no credit left for it
)

// Event is one thing that a subscription has to tell its client. Exactly one of its parts is set.
type Event struct {
	// messages; Delivered or Undelivered of the Subscription must be called, not of the Delivery
	Delivery      *delivery.Delivery
	SessionOpened *semantics.Session // its messages follow
	SessionClosed *ClosedSession
	LocksLost     []semantics.LockToken // of messages that were delivered and can no longer be settled
	Failure       *semantics.Error      // that passes: the subscription goes on (RECV-13)
}

// ClosedSession is a session that a subscription no longer holds.
type ClosedSession struct {
	ID   string
	Lock semantics.LockToken
	Why  SessionEnd
}

// Subscription delivers messages of one source as they come, never more than its client has credits for, and keeps
// their locks alive. Its methods may be called concurrently; Next by one goroutine at a time. Whoever made it must end
// it with Close, Drop or Detach, of which only the first call counts and the others wait for it.
//
// Pumps take messages from the store, one for a source without sessions, one for each session that is held, and each
// hands on what it has before it takes more. So nothing is queued here that the client has no credits for, however slow
// it is.
type Subscription struct {
	broker    Broker
	streams   *Streams
	source    semantics.Source
	options   Options
	bySession bool // the source has sessions

	events  chan Event
	lostAny chan struct{} // has room for one: lost is not empty
	wake    chan struct{} // has room for one: the pump of a source without sessions may have credits
	place   chan struct{} // has room for one: there may be a place for a session

	life     context.Context //nolint:containedctx // of its goroutines
	stop     context.CancelCauseFunc
	ending   sync.Once
	work     sync.WaitGroup
	over     chan struct{}  // closed when no event will come any more
	removing sync.WaitGroup // deliveries in ReceiveAndDelete mode that are on their way to the client

	mu        sync.Mutex
	ended     *semantics.Error // why it ended by itself
	credits   credits
	ahead     *prefetch                          // nil: nothing is fetched ahead
	unsettled map[semantics.LockToken]*delivered // handed out, or on the way, and neither settled nor lost
	lost      []semantics.LockToken              // that the client is to be told of
	gone      goneTokens                         // that were unsettled when their sessions ended
	sessions  map[semantics.LockToken]*sessionPump
	leavers   int           // of them, that are being given up
	idlers    int           // of them, that have nothing to do
	troubled  bool          // the client was told of a failure that lasts
	lockFor   time.Duration // the queue's LockDuration as last read
	renewSoon bool          // locks that have been running for long were handed out
}

// delivered is a message that the client has, or is about to get.
type delivered struct {
	source  semantics.Source
	pump    *sessionPump // nil: of no session
	isTaken bool         // Next gave it
	since   time.Time    // when Next gave it; before that, when it came from the store
	endsAt  time.Time    // no earlier than the end of its lock, by this process' clock

	settling int    // settlements under way
	doubt    *doubt // the last settlement may have taken effect or not; nil: none such
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

// HasSessions tells whether the source has sessions.
func (s *Subscription) HasSessions() bool { return s.bySession }

// Source gives the source of a session that was opened, and with the zero token that of the subscription.
func (s *Subscription) Source(session semantics.LockToken) semantics.Source {
	source := s.source
	source.SessionLock = session
	return source
}

// Next gives the next event. It blocks until there is one, ctx ends (CANCELLED), or the subscription ends: then it is
// io.EOF after Close, Drop or Detach, and else the reason, which is one that does not pass: ENTITY_NOT_FOUND,
// ENTITY_DISABLED, SESSION_REQUIRED or SESSION_NOT_SUPPORTED when the queue was made anew as another kind,
// INVALID_OPERATION when its sessions must be named (RR-5) or it forwards all it gets (FWD-2), or STORE_UNAVAILABLE
// with cause "draining" when the Broker drains and everything was settled.
func (s *Subscription) Next(ctx context.Context) (Event, error) {
	for {
		if lost := s.takeLost(); len(lost) > 0 { // first, since the same messages may come again
			return Event{LocksLost: lost}, nil
		}
		select {
		case e := <-s.events:
			if s.take(e) {
				return e, nil
			}
			s.giveUp(ctx, e)
		case <-s.lostAny:
		case <-s.over:
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.ended != nil {
				return Event{}, s.ended
			}
			return Event{}, io.EOF
		case <-ctx.Done():
			return Event{}, semantics.CancelledBy(ctx)
		}
	}
}

// Ready gives an event that Next would give at once, if there is one, so that several can be carried together; of lost
// locks only Next tells. It does not block, but for a round trip when the subscription ends.
func (s *Subscription) Ready(ctx context.Context) (Event, bool) {
	s.mu.Lock()
	isLost := len(s.lost) > 0
	s.mu.Unlock()
	if isLost { // what comes now may be the same messages again
		return Event{}, false
	}
	select {
	case e := <-s.events:
		if s.take(e) {
			return e, true
		}
		s.giveUp(ctx, e)
	default:
	}
	return Event{}, false
}

// take says whether an event is still worth carrying to the client. Of a delivery it leaves those messages whose locks
// were not lost while the client was busy.
func (s *Subscription) take(e Event) bool {
	if e.Delivery == nil {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.Err() != nil {
		return false // what it had is being given back
	}
	now := time.Now()
	e.Delivery.Keep(func(t semantics.LockToken) bool {
		d := s.unsettled[t]
		if d != nil {
			d.isTaken, d.since = true, now
		}
		return d != nil
	})
	if len(e.Delivery.Messages) == 0 {
		return false
	}
	if s.removes() {
		s.removing.Add(1)
	}
	return true
}

func (s *Subscription) takeLost() []semantics.LockToken {
	s.mu.Lock()
	defer s.mu.Unlock()
	lost := s.lost
	s.lost = nil
	return lost
}

// removes says whether messages are removed as soon as the client has them.
func (s *Subscription) removes() bool { return s.options.Mode == semantics.ReceiveAndDelete }

// Delivered says that an event reached the client's connection. Messages in ReceiveAndDelete mode are removed now
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
		defer s.removing.Done()
		_ = e.Delivery.Delivered(ctx) // what could not be removed comes again when its lock ends
		s.forget(e.Delivery.Tokens())
	}()
}

// Undelivered says that an event did not reach the client: its messages are available again at once and nothing is
// counted (RECV-7). It blocks for one round trip.
func (s *Subscription) Undelivered(ctx context.Context, e Event) {
	if e.Delivery != nil && s.removes() {
		defer s.removing.Done()
	}
	s.giveUp(ctx, e)
}

// giveUp gives back the messages of an event that nobody carries.
func (s *Subscription) giveUp(ctx context.Context, e Event) {
	if e.Delivery != nil {
		_ = e.Delivery.Undelivered(ctx) // what cannot be given back comes again when its lock ends
		s.forget(e.Delivery.Tokens())
	}
}

// tell gives an event to Next. It reports false when the subscription ends first.
func (s *Subscription) tell(e Event) bool {
	select {
	case s.events <- e:
		return true
	case <-s.life.Done():
		return false
	}
}
