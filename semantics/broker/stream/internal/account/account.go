package account

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// MaxCredits is the most credits that a client may grant.
const MaxCredits = 1000

// Settings are what does not change while the subscription lives.
type Settings struct {
	Source          semantics.Source
	BySession       bool // the source has sessions
	Removes         bool // messages are removed as soon as the client has them
	Prefetch        int
	MaxSessions     int
	SessionInFlight int
	SessionIdle     time.Duration
	MaxAutoRenew    time.Duration
	PrefetchesCut   *atomic.Int64 // counts how often the client was too slow for its prefetch
}

// Account is what the goroutines of one subscription share. Its methods may be called concurrently.
type Account struct {
	Settings

	// Each channel has a buffer of one and one reader.
	CreditsFree     chan struct{} // the pump of a source without sessions may have credits
	PlaceFree       chan struct{} // there may be a place for a session
	SessionsChanged chan struct{} // Steps may have something
	EventReady      chan struct{} // NextEvent has something
	Fetched         chan struct{} // what was fetched ahead, or the credits for it, have changed
	LocksLost       chan struct{} // TakeLost has something

	// Removals are deliveries in ReceiveAndDelete mode that are on their way to the client.
	Removals sync.WaitGroup

	life context.Context //nolint:containedctx // of the subscription
	stop context.CancelCauseFunc

	mu        sync.Mutex // guards what follows, and the unexported fields of each Session
	failure   *semantics.Error
	credits   credits
	ahead     *ahead                           // nil: nothing is fetched ahead
	unsettled map[semantics.LockToken]*message // handed out, or on the way, and neither settled nor lost
	lost      []semantics.LockToken            // that the client is to be told of
	gone      goneTokens                       // that were unsettled when their sessions ended
	sessions  map[semantics.LockToken]*Session
	byID      map[string]*Session // the last ones of each id
	leavers   int                 // of them, that are being given up
	idlers    int                 // of them, that have nothing to do
	changed   []*Session          // of them, that Steps looks at
	nextDue   time.Time           // no later than what time brings; zero: nothing
	drains    bool                // Steps knows that the Broker drains
	mayTake   bool                // a session may be accepted, as MayAccept last reported
	out       []out               // for the client
	noneReady time.Time           // when a session that was to yield found no other one ready
	lockFor   time.Duration       // the queue's LockDuration as last read
	renewSoon bool                // locks that have been running for long were handed out
}

// New returns the account of a subscription that lives until stop is called, which ends life.
func New(
	life context.Context, stop context.CancelCauseFunc, settings Settings, granted int, lockFor time.Duration,
) *Account {
	a := &Account{
		Settings: settings, CreditsFree: make(chan struct{}, 1), PlaceFree: make(chan struct{}, 1),
		SessionsChanged: make(chan struct{}, 1), EventReady: make(chan struct{}, 1),
		Fetched: make(chan struct{}, 1), LocksLost: make(chan struct{}, 1), life: life, stop: stop,
		unsettled: map[semantics.LockToken]*message{}, sessions: map[semantics.LockToken]*Session{},
		byID: map[string]*Session{}, lockFor: lockFor,
	}
	a.credits.granted = granted
	a.credits.wanted, a.credits.unwant = context.WithCancel(life)
	if settings.Prefetch > 0 {
		a.ahead = &ahead{account: a}
		a.ahead.limit()
	}
	return a
}

// Stop ends the life of the subscription. From now on Take takes nothing. err is the reason, which does not pass; nil:
// the end is in order. The first reason counts.
func (a *Account) Stop(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil && a.failure == nil {
		a.failure = semantics.AsError(err)
	}
	a.stop(err)
}

// Failure returns the reason that Stop was called with, nil if there was none.
func (a *Account) Failure() *semantics.Error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.failure
}

// Left returns, at the end, which messages without a session are unsettled, and which sessions are to be freed: those
// of which the client has nothing, and with releases all.
func (a *Account) Left(releases bool) (messages, sessions []semantics.LockToken) {
	a.mu.Lock()
	defer a.mu.Unlock()
	hasUnsettled := map[semantics.LockToken]bool{}
	for token, m := range a.unsettled {
		hasUnsettled[m.source.SessionLock] = true
		if m.source.SessionLock.IsZero() {
			messages = append(messages, token)
		}
	}
	for lock, p := range a.sessions {
		if !p.isClosed && (releases || !hasUnsettled[lock]) {
			sessions = append(sessions, lock)
		}
	}
	return messages, sessions
}
