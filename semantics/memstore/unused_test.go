package memstore_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// Sweep removes what is unused on time, whatever it was waiting for when the entity was made or got its
// AutoDeleteOnIdle, and tells of it.
func TestIDLE_8_SweepRemovesOnTime(t *testing.T) {
	t.Parallel()
	const span = 10 * time.Minute
	temporary, stays := semantics.DefaultOptions(), semantics.DefaultOptions()
	temporary.AutoDeleteOnIdle = span
	makes := map[string]struct {
		before, call func(ctx context.Context, s *memstore.Store) error
		removed      string
	}{
		"create": {
			call: func(ctx context.Context, s *memstore.Store) error {
				_, _, err := s.CreateEntity(ctx, semantics.QueueKind, "q", temporary)
				return err
			},
			removed: "queue q",
		},
		"update": {
			before: func(ctx context.Context, s *memstore.Store) error {
				_, _, err := s.CreateEntity(ctx, semantics.TopicKind, "t", stays)
				return err
			},
			call: func(ctx context.Context, s *memstore.Store) error {
				_, err := s.UpdateEntity(ctx, semantics.TopicKind, "t", temporary, []string{"autoDeleteOnIdle"})
				return err
			},
			removed: "topic t",
		},
		"subscribe": {
			before: func(ctx context.Context, s *memstore.Store) error {
				_, _, err := s.CreateEntity(ctx, semantics.TopicKind, "t", stays)
				return err
			},
			call: func(ctx context.Context, s *memstore.Store) error {
				_, _, err := s.CreateSubscription(ctx, "t/Subscriptions/eu", temporary, nil)
				return err
			},
			removed: "subscription t/Subscriptions/eu",
		},
		"used later": {
			before: func(ctx context.Context, s *memstore.Store) error {
				_, _, err := s.CreateEntity(ctx, semantics.QueueKind, "q", temporary)
				return err
			},
			call: func(ctx context.Context, s *memstore.Store) error {
				_, err := s.Send(ctx, "q", []*semantics.Message{{MessageID: "m"}})
				return err
			},
			removed: "queue q",
		},
	}
	for name, c := range makes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var told []string
				var at time.Time
				store := memstore.New(memstore.WithRemoved(func(kind semantics.Kind, path string) {
					told, at = append(told, kind.String()+" "+path), time.Now()
				}))
				if c.before != nil {
					if err := c.before(t.Context(), store); err != nil {
						t.Fatal(err)
					}
				}
				ctx, cancel := context.WithCancel(t.Context())
				var work sync.WaitGroup
				work.Go(func() { store.Sweep(ctx, broker.New(store)) })
				<-time.After(7 * time.Minute)
				if err := c.call(t.Context(), store); err != nil {
					t.Fatal(err)
				}
				called := time.Now()
				<-time.After(3 * span)
				cancel()
				work.Wait()
				if late := at.Sub(called.Add(span)); !slices.Equal(told, []string{c.removed}) || late < 0 || late > time.Minute {
					t.Errorf("told %q, %s after the end of the span, want %q", told, late, c.removed)
				}
			})
		})
	}
}
