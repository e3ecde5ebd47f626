package broker

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/delivery"
	"github.com/sidebus/sidebus/semantics/broker/reply"
	"github.com/sidebus/sidebus/semantics/broker/stream"
)

// Broker is what the edges talk to: it validates, fills defaults, waits, and keeps account of what this process has
// locked. Everything that must be atomic is left to the Store. A Broker is safe for concurrent use; make one with New
// and end it with Drain and Close. With a rate limit every verb may also fail with THROTTLED (WithRateLimit).
type Broker struct {
	store        semantics.Store
	waitingLists waitingLists
	held         held
	uses         uses
	rate         *bucket // nil: no limit
	stamps       stamps

	compile semantics.CompileRule
	fanout  fanout

	forwarding   forwarding
	transactions transactions

	hasNoSessions bool

	streams  *stream.Streams
	requests *reply.Requests
	removals *delivery.Removals

	drain    sync.Once
	draining chan struct{} // closed when no new receives are taken
}

// New makes a Broker over a store. It starts nothing and does not block.
func New(store semantics.Store, options ...Option) *Broker {
	b := &Broker{store: store, draining: make(chan struct{})}
	b.waitingLists.init(store)
	b.held.init()
	b.uses.init(store)
	b.stamps.store = store
	b.streams = stream.New(forStreams{b})
	b.requests = reply.New(forRequests{b})
	b.removals = delivery.NewRemovals()
	b.compile = func(semantics.Rule) (semantics.CompiledRule, error) {
		return nil, semantics.Errorf(semantics.FilterInvalid, "this Broker was made without WithRules and has no filters")
	}
	for _, option := range options {
		option(b)
	}
	b.fanout = fanout{store: store, compile: b.compile, known: map[string]*router{}}
	return b
}

// WithRules lets topics have subscriptions: their rules are made ready for use by compile.
func WithRules(compile semantics.CompileRule) Option { return func(b *Broker) { b.compile = compile } }

// BeginDrain ends all waiting receives with what they have, which is nothing, and makes new ones, and requests that
// wait for their replies, fail with STORE_UNAVAILABLE and cause "draining". Sends and settlements go on. It does not
// block; further calls do nothing.
func (b *Broker) BeginDrain() { b.drain.Do(func() { close(b.draining) }) }

// Draining reports whether BeginDrain was called.
func (b *Broker) Draining() bool {
	select {
	case <-b.draining:
		return true
	default:
		return false
	}
}

// Held is the number of messages and sessions this Broker handed out that are neither settled or closed nor past the
// end of their lock as this process knows it.
func (b *Broker) Held() int { return b.held.count() }

// AwaitSettled blocks until nothing is held or ctx ends, and returns how many messages and sessions are still held.
func (b *Broker) AwaitSettled(ctx context.Context) int { return b.held.await(ctx) }

// ReleaseHeld releases everything that is still held without counting a delivery (SETTLE-10), so that others
// get it at once, and closes the sessions that are held. One that fails does not keep the others from it, and comes
// back when its lock ends; the error joins the failures. It blocks until all was tried, or ctx ends.
func (b *Broker) ReleaseHeld(ctx context.Context) error {
	var failed []error
	var sessions []semantics.Source
	for source, tokens := range b.held.bySource() {
		if !source.SessionLock.IsZero() {
			sessions = append(sessions, source)
			continue
		}
		for some := range slices.Chunk(tokens, semantics.MaxSettleTokens) {
			if _, err := b.settleFree(ctx, source, some, b.store.Release); err != nil {
				failed = append(failed, err)
			}
		}
	}
	failed = append(failed, b.closeSessions(ctx, sessions)...)
	isSame := func(one, other error) bool { return one.Error() == other.Error() } // an outage is told once
	return errors.Join(slices.CompactFunc(failed, isSame)...)
}

// Close ends all waiting and waits for the Broker's goroutines. It does not close the Store.
func (b *Broker) Close() {
	b.BeginDrain()
	b.requests.Close()
	b.waitingLists.close()
	b.uses.close()
}

func (b *Broker) refuseIfDraining() error {
	if b.Draining() {
		return semantics.Draining()
	}
	return nil
}
