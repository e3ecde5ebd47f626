package stream_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/delivery"
	"github.com/sidebus/sidebus/semantics/broker/stream"
)

// endless is a Broker whose queue always has messages, so that only the work of the subscription is measured.
type endless struct {
	sessions int64 // 0: the queue has none
	accepted atomic.Int64
	taken    atomic.Uint64
	removals delivery.Removals
}

func (e *endless) token() (t semantics.LockToken) {
	binary.BigEndian.PutUint64(t[:], e.taken.Add(1))
	return t
}

func (e *endless) Draining() <-chan struct{} { return nil }
func (e *endless) Charge() error             { return nil }

func (e *endless) Entity(context.Context, string) (semantics.Entity, error) {
	return semantics.Entity{Options: semantics.Options{LockDuration: time.Minute, RequiresSession: e.sessions > 0}}, nil
}

func (e *endless) Use(context.Context, string) func() { return func() {} }

func (e *endless) Take(
	ctx context.Context, source semantics.Source, n int, _ time.Duration, mode semantics.Mode, _ stream.Owner,
) (*delivery.Delivery, error) {
	messages := make([]*semantics.Received, n)
	for i := range messages {
		messages[i] = &semantics.Received{LockToken: e.token()}
	}
	return delivery.New(ctx, source, mode, messages, settled{}, &e.removals), nil
}

func (e *endless) RenewLocks(_ context.Context, _ semantics.Source, tokens []semantics.LockToken) ([]semantics.Renewal, error) {
	return make([]semantics.Renewal, len(tokens)), nil
}

func (e *endless) Accept(ctx context.Context, _ string, maxWait time.Duration) (*semantics.Session, error) {
	if n := e.accepted.Add(1); n <= e.sessions {
		return &semantics.Session{ID: fmt.Sprint(n), Lock: e.token()}, nil
	}
	if maxWait > 0 {
		<-ctx.Done()
	}
	return nil, ctx.Err()
}

func (e *endless) Complete(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
	return settled{}.Complete(ctx, source, tokens)
}

func (e *endless) Turn(ctx context.Context, path string, turns []semantics.Turn, owner stream.Owner) []stream.Turned {
	all := make([]stream.Turned, len(turns))
	for i, t := range turns {
		all[i].Codes = make([]semantics.Code, len(t.Complete))
		if t.Receive > 0 {
			all[i].Delivery, all[i].Err = e.Take(ctx, semantics.Source{Path: path, SessionLock: t.Session}, t.Receive, 0, semantics.PeekLock, owner)
		}
	}
	return all
}

func (e *endless) Look(ctx context.Context, path string, turns []semantics.Turn, _ semantics.Mode, owner stream.Owner) []stream.Turned {
	return e.Turn(ctx, path, turns, owner)
}

func (e *endless) WatchSessions(context.Context, string) (semantics.Watch, error) {
	return quiet{}, nil
}

// quiet is a Watch that hears nothing.
type quiet struct{}

func (quiet) C() <-chan int                   { return nil }
func (quiet) Sessions() []semantics.LockToken { return nil }
func (quiet) Close()                          {}

func (e *endless) RenewSession(context.Context, semantics.Source) error { return nil }
func (e *endless) CloseSession(context.Context, semantics.Source) error { return nil }

func (e *endless) Release(context.Context, semantics.Source, []semantics.LockToken) {}

// settled settles all at once.
type settled struct{}

func (settled) Complete(_ context.Context, _ semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
	return make([]semantics.Code, len(tokens)), nil
}

func (settled) Release(_ context.Context, _ semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
	return make([]semantics.Code, len(tokens)), nil
}

// BenchmarkDeliver measures what a subscription adds to a message from its receive to its settlement.
func BenchmarkDeliver(b *testing.B) {
	for _, shape := range []struct {
		name     string
		sessions int64
		options  stream.Options
	}{
		{"plain", 0, stream.Options{Credits: 100}},
		{"prefetch", 0, stream.Options{Credits: 100, Prefetch: 100}},
		{"sessions", 50, stream.Options{Credits: 100, MaxSessions: 50, SessionInFlight: 2, SessionIdle: time.Minute}},
	} {
		b.Run(shape.name, func(b *testing.B) {
			options := shape.options
			options.MaxSessions, options.SessionInFlight = max(options.MaxSessions, 1), max(options.SessionInFlight, 1)
			broker := &endless{sessions: shape.sessions}
			s, err := stream.New(broker).Subscribe(b.Context(), semantics.Source{Path: "orders"}, options)
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close(context.WithoutCancel(b.Context()))
			b.ReportAllocs()
			left := 0 // of the last delivery
			for b.Loop() {
				for left == 0 {
					e, err := s.Next(b.Context())
					if err != nil {
						b.Fatal(err)
					}
					s.Delivered(b.Context(), e)
					if e.Delivery == nil {
						continue
					}
					left = len(e.Delivery.Tokens())
					if _, err := s.Complete(b.Context(), e.Delivery.Tokens()); err != nil {
						b.Fatal(err)
					}
				}
				left--
			}
		})
	}
}
