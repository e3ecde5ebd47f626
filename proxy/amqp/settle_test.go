package amqp_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/sidebus/sidebus/proxy/amqp/internal/frame"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// failing is a store that completes only after some failures, whose outcome is unknown.
type failing struct {
	semantics.Store

	left atomic.Int64
}

func (s *failing) Complete(
	ctx context.Context, source semantics.Source, tokens []semantics.LockToken,
) ([]semantics.Code, error) {
	if s.left.Add(-1) >= 0 {
		return nil, semantics.Errorf(semantics.StoreUnavailable, "lost").With(semantics.DetailOutcome, semantics.OutcomeUnknown)
	}
	return s.Store.Complete(ctx, source, tokens)
}

// apart is a store in which the second message of a settlement is in a partition that is away for some tries.
type apart struct {
	semantics.Store

	left atomic.Int64
}

func (s *apart) Complete(
	ctx context.Context, source semantics.Source, tokens []semantics.LockToken,
) ([]semantics.Code, error) {
	if len(tokens) != 2 || s.left.Add(-1) < 0 {
		return s.Store.Complete(ctx, source, tokens)
	}
	codes, err := s.Store.Complete(ctx, source, tokens[:1])
	return append(codes, semantics.StoreUnavailable), err
}

// TestPART_7_SettlementsOfOnePartitionAreTriedAgain completes two messages, the second of which fails at first.
func TestPART_7_SettlementsOfOnePartitionAreTriedAgain(t *testing.T) {
	t.Parallel()
	store := &apart{Store: memstore.New()}
	store.left.Store(1)
	s := startOn(t, store, nil)
	s.queue("q", nil)
	c := s.dial(nil).open()
	sender := c.sender("q")
	c.transfer(sender, data("x"))
	c.transfer(sender, data("y"))
	c.receiver("q", 2)
	want[*frame.Transfer](c)
	want[*frame.Transfer](c)
	c.send(&frame.Disposition{IsReceiver: true, First: 0, Last: 1, State: frame.Accepted{}})
	if d := want[*frame.Disposition](c); d.First != 0 || d.Last != 1 || d.State != (frame.Accepted{}) {
		t.Errorf("settled with %+v", d)
	}
	if got := s.counts("q"); got.Locked != 0 || got.SizeInBytes != 0 {
		t.Errorf("the queue has %+v", got)
	}
}

// TestSettlementsAreFinal completes a message while the store is away. The SDK for Go takes a message for settled when
// its settlement is rejected, whatever the reason, so there is one only if it cannot succeed any more.
func TestSettlementsAreFinal(t *testing.T) {
	t.Parallel()
	for failures, condition := range map[int64]string{3: "", 1000: "com.microsoft:message-lock-lost"} {
		store := &failing{Store: memstore.New()}
		store.left.Store(failures)
		s := startOn(t, store, nil)
		s.queue("q", nil)
		c := s.dial(nil).open()
		c.transfer(c.sender("q"), data("x"))
		c.receiver("q", 1)
		want[*frame.Transfer](c)
		c.send(&frame.Disposition{IsReceiver: true, First: 0, Last: 0, State: frame.Accepted{}})
		got := ""
		if r, ok := want[*frame.Disposition](c).State.(frame.Rejected); ok {
			got = r.Error.Condition
		}
		if got != condition {
			t.Errorf("after %d failures: %q, want %q", failures, got, condition)
		}
	}
}
