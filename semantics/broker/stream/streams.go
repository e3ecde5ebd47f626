package stream

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/stream/internal/account"
)

// Streams are the subscriptions of one broker.
type Streams struct {
	broker        Broker
	prefetchesCut atomic.Int64

	mu  sync.Mutex
	ids map[string]bool // of the subscriptions that stand
	all map[*Subscription]struct{}
}

// New makes Streams over a broker. It starts nothing.
func New(broker Broker) *Streams {
	return &Streams{broker: broker, ids: map[string]bool{}, all: map[*Subscription]struct{}{}}
}

// Subscribe begins to take messages from source, which must be a queue or its dead letters. It blocks for one round
// trip; what comes is given by Next. INVALID_ARGUMENT, ARGUMENT_OUT_OF_RANGE, ENTITY_NOT_FOUND, STORE_UNAVAILABLE, and
// INVALID_OPERATION when a subscription of that ID stands (RECV-13).
func (r *Streams) Subscribe(ctx context.Context, source semantics.Source, options Options) (*Subscription, error) {
	source, err := source.ParseToReceive()
	if err != nil {
		return nil, err
	}
	if !source.SessionLock.IsZero() {
		return nil, semantics.InvalidField("source", "must be a queue; a subscription accepts its sessions itself")
	}
	if err := options.validate(); err != nil {
		return nil, err
	}
	select {
	case <-r.broker.Draining():
		return nil, semantics.Draining()
	default:
	}
	if err := r.broker.Charge(); err != nil {
		return nil, err
	}
	queue, err := r.broker.Entity(ctx, source.Path)
	if err != nil {
		return nil, err
	}
	bySession := queue.Options.RequiresSession && source.SubQueue == semantics.MainQueue
	if bySession && options.Prefetch > 0 {
		return nil, semantics.FieldError(
			semantics.InvalidOperation, "prefetch",
			"is not for queues with sessions; raise sessionInFlight and credits instead",
		)
	}
	if err := r.register(options.ID); err != nil {
		return nil, err
	}
	life, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	s := &Subscription{
		broker: r.broker, streams: r, source: source, options: options, bySession: bySession,
		account: account.New(life, stop, account.Settings{
			Source: source, BySession: bySession, Removes: options.Mode == semantics.ReceiveAndDelete,
			Prefetch: options.Prefetch, MaxSessions: options.MaxSessions, SessionInFlight: options.SessionInFlight,
			SessionIdle: options.SessionIdle, MaxAutoRenew: options.MaxAutoRenew, PrefetchesCut: &r.prefetchesCut,
		}, options.Credits, queue.Options.LockDuration),
		events: make(chan Event), life: life, over: make(chan struct{}),
	}
	if options.Prefetch > 0 {
		s.work.Go(s.handOnPrefetched)
	}
	if s.bySession {
		s.work.Go(s.acceptSessions)
		s.work.Go(s.runSessions)
	} else {
		s.work.Go(s.pump)
	}
	s.work.Go(s.keepLocks)
	endUse := r.broker.Use(ctx, source.Path)
	r.mu.Lock()
	r.all[s] = struct{}{}
	r.mu.Unlock()
	go func() {
		s.work.Wait()
		r.mu.Lock()
		delete(r.all, s)
		r.mu.Unlock()
		endUse()
		close(s.over)
	}()
	return s, nil
}

func (r *Streams) register(id string) error {
	if id == "" {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ids[id] {
		return semantics.FieldError(
			semantics.InvalidOperation, "id", "names a subscription that exists already; close it or use another id",
		)
	}
	r.ids[id] = true
	return nil
}

func (r *Streams) unregister(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.ids, id)
}

// Waiting returns how many sessions of a queue or subscription have no message and wait for one.
func (r *Streams) Waiting(path string) (n int) {
	path = semantics.Fold(path)
	r.mu.Lock()
	defer r.mu.Unlock()
	for s := range r.all {
		if semantics.Fold(s.source.Path) == path {
			n += s.account.Waiting()
		}
	}
	return n
}

// PrefetchesCut is how often subscriptions have begun to fetch less ahead for a client than it wants, because it is too
// slow for it (RECV-12).
func (r *Streams) PrefetchesCut() int64 { return r.prefetchesCut.Load() }
