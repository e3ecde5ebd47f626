package stream

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/sidebus/sidebus/semantics"
)

// Streams are the subscriptions of one broker.
type Streams struct {
	broker        Broker
	prefetchesCut atomic.Int64

	mu  sync.Mutex
	ids map[string]bool // of the subscriptions that stand
}

// New makes Streams over a broker. It starts nothing.
func New(broker Broker) *Streams { return &Streams{broker: broker, ids: map[string]bool{}} }

// Subscribe begins to take messages from source, which must be a queue or its dead letters. It blocks for one round
// trip; what comes is given by Next. INVALID_ARGUMENT, ARGUMENT_OUT_OF_RANGE, ENTITY_NOT_FOUND, STORE_UNAVAILABLE, and
// INVALID_OPERATION when a subscription of that ID stands (RECV-13).
func (r *Streams) Subscribe(ctx context.Context, source semantics.Source, options Options) (*Subscription, error) {
	source, err := source.ParseToReceive()
	if err != nil {
		return nil, err
	}
	if !source.SessionLock.IsZero() {
		return nil, semantics.FieldError(
			semantics.InvalidArgument, "source", "must be a queue; a subscription accepts its sessions itself",
		)
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
	s := &Subscription{
		broker: r.broker, streams: r, source: source, options: options, bySession: bySession,
		events: make(
			chan Event,
		), lostAny: make(chan struct{}, 1), wake: make(chan struct{}, 1), place: make(chan struct{}, 1),
		over: make(
			chan struct{},
		), unsettled: map[semantics.LockToken]*delivered{}, sessions: map[semantics.LockToken]*sessionPump{},
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
	endUse := r.broker.Use(ctx, source.Path)
	go func() {
		s.work.Wait()
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
			semantics.InvalidOperation, "id", "names a subscription that stands already; close it or use another id",
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
