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

	// MaxSessions is the most sessions held at a time, 1 to MaxConcurrentSession. Only for queues with sessions, as the rest.
	MaxSessions int
	// SessionInFlight is the most unsettled messages of one session, 1 to the queue's SessionInFlight (SESS-27).
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
)

// Event is one thing that a subscription has to tell its client. Exactly one of its parts is set.
type Event struct {
	Delivery      *Delivery // messages; see Delivery for what must be called
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
// locks alive. Its methods may be called concurrently; Next by one goroutine at a time. End it with Close, Drop or Detach, of
// which only the first call counts.
type Subscription struct {
	broker  *Broker
	source  Source
	options SubscribeOptions

	bySession bool // the source has sessions

	events  chan Event
	life    context.Context //nolint:containedctx // of its goroutines
	stop    context.CancelCauseFunc
	stopped sync.Once
	work    sync.WaitGroup
	over    chan struct{} // closed when no event will come any more

	mu        sync.Mutex
	ended     *Error // why it ended by itself
	credits   int
	reserved  int                          // credits of receives under way
	unsettled map[LockToken]*delivered     // delivered and neither settled nor lost
	receiving map[*context.CancelFunc]bool // receives under way
	starved   []chan struct{}              // of pumps that wait for credits
	lost      []LockToken                  // that the client is to be told of
	lostAny   chan struct{}                // has room for one: lost is not empty
	sessions  map[LockToken]*sessionPump   // that are held
	room      chan struct{}                // has room for one: there may be a place for a session
	troubled  bool                         // the client was told of a failure that lasts
	lockFor   time.Duration                // the queue's LockDuration as last read
}

// delivered is a message that the client has.
type delivered struct {
	source Source
	pump   *sessionPump // nil: of no session
	since  time.Time    // of this delivery
	endsAt time.Time    // no earlier than the end of its lock, by this process' clock
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
	queue, err := b.store.GetQueue(ctx, source.Path)
	if err != nil {
		return nil, err
	}
	if err := b.subscriptions.register(options.ID); err != nil {
		return nil, err
	}
	s := &Subscription{
		broker: b, source: source, options: options, events: make(chan Event), over: make(chan struct{}),
		credits: options.Credits, unsettled: map[LockToken]*delivered{}, receiving: map[*context.CancelFunc]bool{},
		lostAny: make(chan struct{}, 1), room: make(chan struct{}, 1), sessions: map[LockToken]*sessionPump{},
		lockFor: queue.Options.LockDuration,
	}
	s.life, s.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	s.bySession = queue.Options.RequiresSession && source.SubQueue == MainQueue
	if s.bySession {
		s.work.Go(s.acceptSessions)
	} else {
		s.work.Go(s.pump)
	}
	if options.Mode == PeekLock {
		s.work.Go(s.keepLocks)
	}
	go func() {
		s.work.Wait()
		close(s.over)
	}()
	return s, nil
}

// Next gives the next event. It blocks until there is one, ctx ends (CANCELLED), or the subscription ends: then it is io.EOF
// after Close or Drop, and else the reason, which is never one that passes: ENTITY_NOT_FOUND, ENTITY_DISABLED, or
// STORE_UNAVAILABLE with cause "draining" when the Broker drains and everything was settled.
func (s *Subscription) Next(ctx context.Context) (Event, error) {
	select {
	case e := <-s.events:
		return e, nil
	case <-s.lostAny:
		s.mu.Lock()
		defer s.mu.Unlock()
		lost := s.lost
		s.lost = nil
		return Event{LocksLost: lost}, nil
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

// Ready gives an event that Next would give at once, if there is one, so that several can be carried together. It does not
// block.
func (s *Subscription) Ready() (Event, bool) {
	select {
	case e := <-s.events:
		return e, true
	default:
		return Event{}, false
	}
}

// SetCredits changes how many messages the client wants to have unsettled, 0 to MaxCredits; those it has stay. With 0 nothing
// is delivered and the subscription stands. It does not block. ARGUMENT_OUT_OF_RANGE.
func (s *Subscription) SetCredits(credits int) error {
	if credits < 0 || credits > MaxCredits {
		return fieldError(ArgumentOutOfRange, "credits", "is %d, must be 0 to %d", credits, MaxCredits)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.credits = credits
	if s.free() < 0 { // what is under way might be more than is wanted now
		for cancel := range s.receiving {
			(*cancel)()
		}
	}
	s.freed()
	return nil
}

// HasSessions tells whether the source has sessions.
func (s *Subscription) HasSessions() bool { return s.bySession }

// Source gives the source of a session that was opened, and with the zero token that of the subscription.
func (s *Subscription) Source(session LockToken) Source {
	source := s.source
	source.SessionLock = session
	return source
}

// Settle lets verb, a settlement of the Broker, act on delivered messages, those of each session by themselves and at the same
// time, and gives the outcome of each. It blocks as long as verb does. A message that was not delivered here, or whose lock is
// known to be lost, is MESSAGE_LOCK_LOST if it was of a session; else it is tried. The errors are those of verb.
func (s *Subscription) Settle(ctx context.Context, tokens []LockToken, verb func(context.Context, Source, []LockToken) ([]Code, error)) ([]Code, error) {
	codes, groups := make([]Code, len(tokens)), map[Source][]int{}
	s.mu.Lock()
	for i, t := range tokens {
		switch d := s.unsettled[t]; {
		case d != nil:
			groups[d.source] = append(groups[d.source], i)
		case s.bySession:
			codes[i] = MessageLockLost
		default:
			groups[s.source] = append(groups[s.source], i)
		}
	}
	s.mu.Unlock()
	if len(groups) == 1 {
		for source := range groups {
			return s.settle(ctx, source, tokens, verb)
		}
	}
	var work sync.WaitGroup
	var failed error // of any of them
	var mu sync.Mutex
	for source, places := range groups {
		work.Go(func() {
			some := make([]LockToken, len(places))
			for i, at := range places {
				some[i] = tokens[at]
			}
			outcome, err := s.settle(ctx, source, some, verb)
			mu.Lock()
			defer mu.Unlock()
			for i, code := range outcome {
				codes[places[i]] = code
			}
			if err != nil {
				failed = err
			}
		})
	}
	work.Wait()
	return codes, failed
}

func (s *Subscription) settle(ctx context.Context, source Source, tokens []LockToken, verb func(context.Context, Source, []LockToken) ([]Code, error)) ([]Code, error) {
	codes, err := verb(ctx, source, tokens)
	if err == nil {
		s.settled(tokens, codes)
	}
	return codes, err
}

// settled notes the outcome of a settlement of delivered messages, so that others take their places.
func (s *Subscription) settled(tokens []LockToken, codes []Code) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, t := range tokens {
		switch codes[i] {
		case "", MessageLockLost, SessionLockLost:
			s.drop(t)
		default: // the lock holds
		}
	}
	s.freed()
}

// drop takes one message off the books. The caller holds the mutex and calls freed.
func (s *Subscription) drop(t LockToken) {
	d := s.unsettled[t]
	if d == nil {
		return
	}
	delete(s.unsettled, t)
	if d.pump != nil {
		d.pump.inFlight--
		d.pump.lastActive = time.Now()
		poke(d.pump.wake)
	}
}

// free is how many credits nobody uses. The caller holds the mutex.
func (s *Subscription) free() int { return s.credits - len(s.unsettled) - s.reserved }

// freed lets those go on that waited for credits. The caller holds the mutex.
func (s *Subscription) freed() {
	for n := s.free(); n > 0 && len(s.starved) > 0; n-- {
		poke(s.starved[0])
		s.starved = s.starved[1:]
	}
	poke(s.room)
}

// poke wakes the one goroutine that reads c, now or as soon as it looks.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// lose notes locks that the client has to be told of. The caller holds the mutex. It does not block, so that a client that does
// not listen keeps no lock from being renewed.
func (s *Subscription) lose(tokens []LockToken) {
	if len(tokens) == 0 {
		return
	}
	s.lost = append(s.lost, tokens...)
	poke(s.lostAny)
}

// Close ends the subscription in order: what the client has not settled is available again at once and nothing is counted, and
// sessions are free (SESS-21). It blocks for some round trips.
func (s *Subscription) Close(ctx context.Context) { s.end(ctx, true) }

// Drop ends a subscription whose client is gone. What it had is released, or left to the end of its lock, as the queue's
// OnDisconnect says (LOCK-10). What it cannot have seen is released in any case (RECV-7).
func (s *Subscription) Drop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	queue, err := s.broker.store.GetQueue(ctx, s.source.Path)
	s.end(ctx, err == nil && queue.Options.OnDisconnect == ReleaseOnDisconnect)
}

// Detach ends a subscription and leaves to the client what it has: its locks hold until their ends, and it may settle by calls.
// What it cannot have seen is released, and sessions of which it has nothing are free. It is for an end that the client did
// not ask for.
func (s *Subscription) Detach(ctx context.Context) { s.end(ctx, false) }

// Undelivered says that an event did not reach the client: its messages are available again at once and nothing is counted
// (RECV-7). It blocks for one round trip.
func (s *Subscription) Undelivered(ctx context.Context, e Event) {
	if e.Delivery != nil {
		_ = e.Delivery.Undelivered(ctx)
		s.forget(e.Delivery.tokens)
	}
}

func (s *Subscription) end(ctx context.Context, release bool) {
	s.stopped.Do(func() {
		s.stop(nil)
		for open := true; open; {
			select {
			case e := <-s.events: // nobody carries it any more
				s.Undelivered(ctx, e)
			case <-s.over:
				open = false
			}
		}
		s.broker.subscriptions.unregister(s.options.ID)
		s.giveBack(ctx, release)
	})
}

// giveBack carries out what becomes of what the client had. Failures are made up for by the ends of the locks.
func (s *Subscription) giveBack(ctx context.Context, release bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	s.mu.Lock()
	plain, busy := []LockToken{}, map[LockToken]bool{}
	for token, d := range s.unsettled {
		busy[d.source.SessionLock] = true
		if d.source.SessionLock.IsZero() {
			plain = append(plain, token)
		}
	}
	held := s.sessions
	s.mu.Unlock()
	for lock := range held {
		// A session of which the client had nothing has nothing to wait for.
		if release || !busy[lock] {
			_ = s.broker.closeSession(ctx, s.Source(lock))
		}
	}
	if release && len(plain) > 0 {
		_, _ = s.broker.settleFree(ctx, s.source, plain, s.broker.store.Release)
	}
}

// fail ends the subscription with a reason that does not pass.
func (s *Subscription) fail(err error) {
	s.mu.Lock()
	if s.ended == nil {
		s.ended = AsError(err)
	}
	s.mu.Unlock()
	s.stop(err)
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

func (s *Subscription) forget(tokens []LockToken) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range tokens {
		s.drop(t)
	}
	s.freed()
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
