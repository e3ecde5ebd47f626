package semantics

import (
	"context"
	"io"
	"sync"
	"time"
)

// Bounds and defaults of a subscription (RECV-13, LOCK-9, SESS-23, SESS-27).
const (
	MaxCredits           = 1000
	DefaultMaxAutoRenew  = 5 * time.Minute
	MaxAutoRenew         = 24 * time.Hour
	MaxSessionIdle       = 24 * time.Hour
	MaxSubscriptionIDLen = 128
)

// SubscribeOptions say how a subscription takes messages. DefaultSubscribeOptions has what a client gets that says nothing.
type SubscribeOptions struct {
	// ID names the subscription. A Broker takes one subscription of a name at a time (RECV-13); empty: no name.
	ID   string
	Mode Mode
	// Credits are the most messages the client wants to have unsettled, 0 to MaxCredits; 0 pauses (RECV-13).
	Credits int
	// MaxAutoRenew is how long after its delivery a message's lock is renewed, at most MaxAutoRenew; 0: never (LOCK-9).
	MaxAutoRenew time.Duration

	// Prefetch is how many messages are fetched beyond the credits, 0 to MaxPrefetch; not for queues with sessions (RECV-12).
	Prefetch int

	// MaxSessions is the most sessions held at a time, 1 to MaxConcurrentSession. Only for queues with sessions, as the rest.
	MaxSessions int
	// SessionInFlight is the most unsettled messages of one session, 1 to MaxSessionInFlight; the queue's own bound holds too
	// (SESS-27).
	SessionInFlight int
	// SessionIdle is after how long without a message a session is given up (SESS-23). One without messages is given up at
	// once when another is ready and there is no room for it.
	SessionIdle time.Duration
}

// DefaultSubscribeOptions are one message at a time, one in flight in each of at most eight sessions, with locks renewed for five
// minutes.
func DefaultSubscribeOptions() SubscribeOptions {
	return SubscribeOptions{
		Credits: 1, MaxAutoRenew: DefaultMaxAutoRenew, MaxSessions: DefaultMaxSessions, SessionInFlight: 1,
		SessionIdle: DefaultSessionIdle,
	}
}

func (o SubscribeOptions) validate() error {
	numbers := []struct {
		name             string
		value, low, high int
	}{
		{"credits", o.Credits, 0, MaxCredits},
		{"prefetch", o.Prefetch, 0, MaxPrefetch},
		{"maxConcurrentSessions", o.MaxSessions, 1, MaxConcurrentSession},
		{"sessionInFlight", o.SessionInFlight, 1, MaxSessionInFlight},
	}
	for _, n := range numbers {
		if n.value < n.low || n.value > n.high {
			return fieldError(ArgumentOutOfRange, n.name, "is %d, must be %d to %d", n.value, n.low, n.high)
		}
	}
	if d := o.MaxAutoRenew; d < 0 || d > MaxAutoRenew {
		return fieldError(ArgumentOutOfRange, "maxAutoRenew", "is %s, must be 0s to %s", d, MaxAutoRenew)
	}
	if d := o.SessionIdle; d < 0 || d > MaxSessionIdle {
		return fieldError(ArgumentOutOfRange, "sessionIdle", "is %s, must be 0s to %s", d, MaxSessionIdle)
	}
	if o.Mode > ReceiveAndDelete {
		return fieldError(InvalidArgument, "mode", "must be PEEK_LOCK or RECEIVE_AND_DELETE")
	}
	if n := utf16Length(o.ID); n > MaxSubscriptionIDLen {
		return fieldError(InvalidArgument, "id", "is %d characters long, at most %d are allowed", n, MaxSubscriptionIDLen)
	}
	return nil
}

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
	Delivery      *Delivery // messages; Delivered or Undelivered of the Subscription must be called, not of the Delivery
	SessionOpened *Session  // its messages follow
	SessionClosed *ClosedSession
	LocksLost     []LockToken // of messages that were delivered and can no longer be settled
	Failure       *Error      // that passes: the subscription goes on (RECV-13)
}

// ClosedSession is a session that a subscription no longer holds.
type ClosedSession struct {
	ID   string
	Lock LockToken
	Why  SessionEnd
}

// Subscription delivers messages of one source as they come, never more than its client has credits for, and keeps their
// locks alive. Its methods may be called concurrently; Next by one goroutine at a time. Whoever made it must end it with Close,
// Drop or Detach, of which only the first call counts and the others wait for it.
//
// Pumps take messages from the store, one for a source without sessions, one for each session that is held, and each hands on
// what it has before it takes more. So nothing is queued here that the client has no credits for, however slow it is.
type Subscription struct {
	broker    *Broker
	source    Source
	options   SubscribeOptions
	bySession bool // the source has sessions

	events  chan Event
	lostAny chan struct{} // has room for one: lost is not empty
	wake    chan struct{} // has room for one: the pump of a source without sessions may have credits
	room    chan struct{} // has room for one: there may be a place for a session

	life   context.Context //nolint:containedctx // of its goroutines
	stop   context.CancelCauseFunc
	ending sync.Once
	work   sync.WaitGroup
	over   chan struct{}  // closed when no event will come any more
	hands  sync.WaitGroup // deliveries in ReceiveAndDelete mode that are on their way to the client

	mu        sync.Mutex
	ended     *Error // why it ended by itself
	credits   credits
	ahead     *prefetch                // nil: nothing is fetched ahead
	unsettled map[LockToken]*delivered // handed out, or on the way, and neither settled nor lost
	lost      []LockToken              // that the client is to be told of
	gone      goneTokens               // that were unsettled when their sessions ended
	sessions  map[LockToken]*sessionPump
	leavers   int           // of them, that are being given up
	idlers    int           // of them, that have nothing to do
	troubled  bool          // the client was told of a failure that lasts
	lockFor   time.Duration // the queue's LockDuration as last read
	renewSoon bool          // locks that have been running for long were handed out
}

// delivered is a message that the client has, or is about to get.
type delivered struct {
	source  Source
	pump    *sessionPump // nil: of no session
	isTaken bool         // Next gave it
	since   time.Time    // when Next gave it; before that, when it came from the store
	endsAt  time.Time    // no earlier than the end of its lock, by this process' clock

	settling int    // settlements under way
	doubt    *doubt // the last settlement may have taken effect or not; nil: none such
}

// Subscribe begins to take messages from source, which must be a queue or its dead letters. It blocks for one round trip; what
// comes is given by Next. INVALID_ARGUMENT, ARGUMENT_OUT_OF_RANGE, ENTITY_NOT_FOUND, STORE_UNAVAILABLE, and
// INVALID_OPERATION when a subscription of that ID stands (RECV-13).
func (b *Broker) Subscribe(ctx context.Context, source Source, options SubscribeOptions) (*Subscription, error) {
	source, err := checkReceiveSource(source)
	if err != nil {
		return nil, err
	}
	if !source.SessionLock.IsZero() {
		return nil, fieldError(InvalidArgument, "source", "must be a queue; a subscription accepts its sessions itself")
	}
	if err := options.validate(); err != nil {
		return nil, err
	}
	if err := b.refuseIfDraining(); err != nil {
		return nil, err
	}
	if err := b.admit(callCost); err != nil {
		return nil, err
	}
	queue, err := b.getSource(ctx, source.Path)
	if err != nil {
		return nil, err
	}
	bySession := queue.Options.RequiresSession && source.SubQueue == MainQueue
	if bySession && options.Prefetch > 0 {
		return nil, fieldError(InvalidOperation, "prefetch", "is not for queues with sessions; raise sessionInFlight and credits instead")
	}
	if err := b.subscriptions.register(options.ID); err != nil {
		return nil, err
	}
	s := &Subscription{
		broker: b, source: source, options: options, bySession: bySession,
		events: make(chan Event), lostAny: make(chan struct{}, 1), wake: make(chan struct{}, 1), room: make(chan struct{}, 1),
		over: make(chan struct{}), unsettled: map[LockToken]*delivered{}, sessions: map[LockToken]*sessionPump{},
		lockFor: queue.Options.LockDuration,
	}
	s.life, s.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	s.credits.init(s.life, options.Credits)
	if options.Prefetch > 0 {
		s.ahead = &prefetch{sub: s, wake: make(chan struct{}, 1)}
		s.ahead.limit()
		s.work.Go(s.ahead.run)
	}
	if s.bySession {
		s.work.Go(s.acceptSessions)
	} else {
		s.work.Go(s.pump)
	}
	s.work.Go(s.keepLocks)
	b.uses.begin(ctx, source.Path)
	go func() {
		s.work.Wait()
		b.uses.end(source.Path)
		close(s.over)
	}()
	return s, nil
}

// HasSessions tells whether the source has sessions.
func (s *Subscription) HasSessions() bool { return s.bySession }

// Source gives the source of a session that was opened, and with the zero token that of the subscription.
func (s *Subscription) Source(session LockToken) Source {
	source := s.source
	source.SessionLock = session
	return source
}

// Next gives the next event. It blocks until there is one, ctx ends (CANCELLED), or the subscription ends: then it is io.EOF
// after Close, Drop or Detach, and else the reason, which is one that does not pass: ENTITY_NOT_FOUND, ENTITY_DISABLED,
// SESSION_REQUIRED or SESSION_NOT_SUPPORTED when the queue was made anew as another kind, INVALID_OPERATION when its sessions must
// be named (RR-5) or it forwards all it gets (FWD-2), or STORE_UNAVAILABLE with cause "draining" when the Broker drains and
// everything was settled.
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
			return Event{}, cancelled(ctx)
		}
	}
}

// Ready gives an event that Next would give at once, if there is one, so that several can be carried together; of lost locks only
// Next tells. It does not block, but for a round trip when the subscription ends.
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

// take says whether an event is still worth carrying to the client. Of a delivery it leaves those messages whose locks were not
// lost while the client was busy.
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
	e.Delivery.keep(func(t LockToken) bool {
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
		s.hands.Add(1)
	}
	return true
}

func (s *Subscription) takeLost() []LockToken {
	s.mu.Lock()
	defer s.mu.Unlock()
	lost := s.lost
	s.lost = nil
	return lost
}

// removes says whether messages are removed as soon as the client has them.
func (s *Subscription) removes() bool { return s.options.Mode == ReceiveAndDelete }

// Delivered says that an event reached the client's connection. Messages in ReceiveAndDelete mode are removed now (RECV-7), and
// then their credits are free. It does not block.
func (s *Subscription) Delivered(ctx context.Context, e Event) {
	if e.Delivery == nil || !s.removes() {
		return
	}
	go func() { // so that sessions need not wait for each other; as many as there are credits at most
		defer s.hands.Done()
		_ = e.Delivery.Delivered(ctx) // what could not be removed comes again when its lock ends
		s.forget(e.Delivery.tokens)
	}()
}

// Undelivered says that an event did not reach the client: its messages are available again at once and nothing is counted
// (RECV-7). It blocks for one round trip.
func (s *Subscription) Undelivered(ctx context.Context, e Event) {
	if e.Delivery != nil && s.removes() {
		defer s.hands.Done()
	}
	s.giveUp(ctx, e)
}

// giveUp gives back the messages of an event that nobody carries.
func (s *Subscription) giveUp(ctx context.Context, e Event) {
	if e.Delivery != nil {
		_ = e.Delivery.Undelivered(ctx) // what cannot be given back comes again when its lock ends
		s.forget(e.Delivery.tokens)
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

// poke wakes the one goroutine that reads c, now or as soon as it looks.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// subscriptions are the names of those that stand.
type subscriptions struct {
	mu  sync.Mutex
	ids map[string]bool
}

func (r *subscriptions) register(id string) error {
	if id == "" {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ids[id] {
		return fieldError(InvalidOperation, "id", "names a subscription that stands already (RECV-13); close it or use another id")
	}
	if r.ids == nil {
		r.ids = map[string]bool{}
	}
	r.ids[id] = true
	return nil
}

func (r *subscriptions) unregister(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.ids, id)
}
