package redisstore_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// Wherever a sidecar dies that sends dead letters again to a topic, the next one ends what it began, and every letter
// is where it belongs, once and in order: at the topic, or among the dead letters if the topic refuses it.
func TestDLQ_22_ResubmissionCutOff(t *testing.T) {
	t.Parallel()
	small := func(o *semantics.Options) { o.MaxMessageSizeInKilobytes = 1 }
	batch := func() []*semantics.Message {
		return []*semantics.Message{{MessageID: "a"}, {MessageID: "big", Body: make([]byte, 2000)}, {MessageID: "b"}}
	}
	places := map[string]struct {
		prepare func(s *swept)
		source  semantics.Source
	}{
		"of a queue": {
			source: deadOrders,
			prepare: func(s *swept) {
				must(t, createTopic(t, s, small))
				s.create(t, func(*semantics.Options) {})
				s.send(t, batch()...)
				deadLetter(t, s, 3)
			},
		},
		"that could not be forwarded": {
			source: undelivered,
			prepare: func(s *swept) {
				must(t, createTopic(t, s, small))
				must(t, makeQueue(t, s, "archive", func(o *semantics.Options) { o.Status = semantics.StatusSendDisabled }))
				s.create(t, func(o *semantics.Options) { o.ForwardTo = "archive" })
				s.send(t, batch()...)
				broker := brokerOver(s)
				defer broker.Close()
				must(t, broker.Forward(t.Context(), orders))
			},
		},
	}
	options := broker.ResubmitOptions{Target: "news", TargetIsTopic: true}
	for name, place := range places {
		for _, carriedOnBy := range []string{"a sweeper", "the next resubmission"} {
			t.Run(name+" by "+carriedOnBy, func(t *testing.T) {
				t.Parallel()
				for cut := 1; ; cut++ {
					s := openSwept(t, redisstore.Options{})
					place.prepare(s)
					must(t, subscribe(t, s, "eu"))
					dying, ctx := killedAfterAny(t, s.namespace, cut, nil)
					broker := brokerOver(dying)
					_, _, err := broker.Resubmit(ctx, place.source, options)
					broker.Close()
					isOver := err == nil && ctx.Err() == nil
					if isOver && cut < 6 {
						t.Fatalf("it was over after %d scripts: this proves little", cut-1)
					}
					next := brokerOver(s)
					if carriedOnBy == "a sweeper" {
						must(t, next.Forward(t.Context(), place.source))
					}
					_, _, err = next.Resubmit(t.Context(), place.source, options)
					must(t, err)
					next.Close()
					for source, want := range map[semantics.Source][]string{of("eu"): {"a", "b"}, place.source: {"big"}, orders: {}} {
						if diff := cmp.Diff(want, ids(t, s, source)); diff != "" {
							t.Fatalf("cut off after %d scripts, %s (-want +got):\n%s", cut, source, diff)
						}
					}
					auditAll(t, s, "orders", "news")
					if isOver {
						return
					}
				}
			})
		}
	}
}

// The sweeper of another sidecar finds a resubmission whose sidecar has died, and nobody has called it.
func TestDLQ_22_SweeperCarriesOnResubmission(t *testing.T) {
	t.Parallel()
	for name, source := range map[string]semantics.Source{"dead letters": deadOrders, "transfer dead letters": undelivered} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openTransfers(t)
			must(t, createTopic(t, s.swept))
			must(t, subscribe(t, s.swept, "eu"))
			s.make("archive", func(o *semantics.Options) { o.Status = semantics.StatusSendDisabled })
			if source == undelivered {
				s.make("orders", func(o *semantics.Options) { o.ForwardTo = "archive" })
			} else {
				s.make("orders")
			}
			s.send(t, messagesOf(2, semantics.Message{})...)
			if source == undelivered {
				s.ok("forward", s.SweepOnce(t.Context(), brokerOver(s.Store)))
			} else {
				deadLetter(t, s, 2)
			}
			to, err := s.Destination(t.Context(), "news")
			s.ok("destination", err)
			_, err = s.BeginResubmission(t.Context(), source, to, []int64{1}, semantics.Resubmitting{})
			s.ok("begin", err)
			s.clock.Advance(time.Minute)
			s.ok("sweep", s.SweepOnce(context.WithoutCancel(t.Context()), brokerOver(s.Store)))
			if got := ids(t, s, of("eu")); !slices.Equal(got, []string{"0"}) {
				t.Errorf("arrived: %q", got)
			}
			if got := ids(t, s, source); !slices.Equal(got, []string{"1"}) {
				t.Errorf("left: %q", got)
			}
			s.audit("orders", "news")
		})
	}
}

// However many send the same again at once, each letter arrives once.
func TestDLQ_22_SeveralResubmissionsAtOnce(t *testing.T) {
	t.Parallel()
	const letters = 120
	s := openSwept(t, redisstore.Options{})
	must(t, createTopic(t, s))
	must(t, subscribe(t, s, "eu"))
	s.create(t, func(*semantics.Options) {})
	s.send(t, messagesOf(letters, semantics.Message{})...)
	deadLetter(t, s, letters)
	var work sync.WaitGroup
	for range 3 {
		b := brokerOver(redistest.Open(t, redisstore.Options{Namespace: s.namespace}))
		t.Cleanup(b.Close)
		work.Go(func() {
			for range 3 {
				options := broker.ResubmitOptions{Target: "news", TargetIsTopic: true, Max: 50}
				if _, _, err := b.Resubmit(t.Context(), deadOrders, options); err != nil {
					t.Errorf("resubmit: %v", err)
				}
			}
		})
	}
	work.Wait()
	b := brokerOver(s)
	defer b.Close()
	_, _, err := b.Resubmit(t.Context(), deadOrders, broker.ResubmitOptions{Target: "news", TargetIsTopic: true})
	must(t, err)
	got := ids(t, s, of("eu"))
	slices.Sort(got)
	if len(got) != letters || len(slices.Compact(got)) != letters {
		t.Errorf("%d letters have arrived, want %d", len(got), letters)
	}
	auditAll(t, s, "orders", "news")
}
