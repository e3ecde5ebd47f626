package redisstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/storetest"
)

// When an operator removes a chunk from the log, its messages count for none once a call has found that out, and those
// of other chunks stay.
func TestChunkThatAnOperatorRemoved(t *testing.T) {
	t.Parallel()
	purge := func(show semantics.Show) func(s *swept, _ *storetest.Clock) error {
		return func(s *swept, _ *storetest.Clock) error {
			return second(s.Purge(t.Context(), orders, semantics.Purge{Show: show, Limit: 100}))
		}
	}
	deferAll := func(s *swept, _ *storetest.Clock) error {
		batch, err := s.Receive(t.Context(), orders, 100, semantics.RegisterNever)
		if err != nil {
			return err
		}
		return second(s.Defer(t.Context(), orders, tokensOf(batch.Messages), nil))
	}
	peek := func(s *swept, _ *storetest.Clock) error {
		return second(s.Peek(t.Context(), orders, 0, 10, semantics.ShowAll))
	}
	deliverForTheLastTime := func(s *swept, clock *storetest.Clock) error {
		batch, err := s.Receive(t.Context(), orders, 100, semantics.RegisterNever)
		if err == nil && len(batch.Messages) != 8 {
			t.Errorf("got %d messages of the other chunk", len(batch.Messages))
		}
		clock.Advance(time.Hour)
		return second(s.Receive(t.Context(), orders, 1, semantics.RegisterNever))
	}
	for what, test := range map[string]struct {
		before, after func(s *swept, clock *storetest.Clock) error
		left          semantics.Runtime
	}{
		"purge":         {after: purge(semantics.ShowAvailable)},
		"purge of some": {before: deferAll, after: purge(semantics.ShowDeferred)},
		"peek":          {after: peek, left: semantics.Runtime{Active: 8}},
		"last delivery": {after: deliverForTheLastTime, left: semantics.Runtime{DeadLetter: 8}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			clock := storetest.NewClock()
			s := openSwept(t, redisstore.Options{Now: clock.Now})
			s.create(t, func(o *semantics.Options) { o.MaxDeliveryCount = 1 })
			s.send(t, messagesOf(40, semantics.Message{Body: []byte("body")})...) // two chunks
			if test.before != nil {
				must(t, test.before(s, clock))
			}
			chunk := s.raw.XRange(t.Context(), s.key("log"), "-", "+").Val()[0]
			s.raw.XDel(t.Context(), s.key("log"), chunk.ID)
			clock.Advance(time.Second) // a purge takes what was sent before it
			must(t, test.after(s, clock))
			r, err := s.Runtime(t.Context(), semantics.QueueKind, "orders")
			must(t, err)
			if r.Active != test.left.Active || r.DeadLetter != test.left.DeadLetter {
				t.Errorf("%d active messages and %d dead letters", r.Active, r.DeadLetter)
			}
		})
	}
}

// Forwarding comes to an end when all that it takes is gone.
func TestForwardingOfAChunkThatAnOperatorRemoved(t *testing.T) {
	t.Parallel()
	s := openTransfers(t)
	s.make("archive")
	s.make("orders")
	s.send(t, messagesOf(3, semantics.Message{})...)
	must(t, s.raw.XTrimMaxLen(t.Context(), s.key("log"), 0).Err())
	options := semantics.DefaultOptions()
	options.ForwardTo = archive.Path
	must(t, second(s.UpdateEntity(t.Context(), semantics.QueueKind, "orders", options, []string{"forwardTo"})))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	must(t, s.SweepOnce(ctx, brokerOver(s.Store)))
	if r, err := s.Runtime(t.Context(), semantics.QueueKind, "orders"); err != nil || r.Total() != 0 {
		t.Errorf("%d messages are left, %v", r.Total(), err)
	}
}
