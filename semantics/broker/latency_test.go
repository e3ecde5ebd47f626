package broker

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// near reports whether a time is that of a step that has the wanted one: at most a fifth longer.
func near(got, want time.Duration) bool { return got >= want && got <= want*6/5 }

// What is measured are the waits of first deliveries, and the times of settlements, since the last look.
func TestLatenciesOfDeliveriesAndSettlements(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &Broker{}
		b.held.init()
		b.MeasureLatency(true)
		source := semantics.Source{Path: "Orders"}
		var tokens []semantics.LockToken
		deliver := func(waited time.Duration, count int, at semantics.Source) {
			m := &semantics.Received{LockToken: semantics.NewLockToken(), LockedUntil: time.Now().Add(time.Hour), DeliveryCount: count}
			m.EnqueuedAt = time.Now().Add(-waited)
			tokens = append(tokens, m.LockToken)
			b.held.add(at, []*semantics.Received{m}, nil)
		}
		for range 18 {
			deliver(100*time.Millisecond, 1, source)
		}
		deliver(7*time.Second, 1, source)
		deliver(-time.Second, 1, source) // a clock that is behind
		deliver(time.Hour, 2, source)    // its wait was counted with its first delivery
		deliver(time.Hour, 1, semantics.Source{Path: "orders", SubQueue: semantics.DeadLetterQueue})
		<-time.After(3 * time.Second)
		codes := make([]semantics.Code, len(tokens))
		codes[0] = semantics.MessageLockLost
		b.held.ended(source, tokens, codes)
		waits, takes := b.TakeLatency("orders")
		if waits.Count != 20 || !near(waits.Half, 100*time.Millisecond) || !near(waits.At95, 100*time.Millisecond) {
			t.Errorf("the waits are %+v", waits)
		}
		if takes.Count != 20 || !near(takes.Half, 3*time.Second) || takes.At95 != takes.Half {
			t.Errorf("the receivers took %+v", takes)
		}
		if waits, takes = b.TakeLatency("orders"); waits.Count+takes.Count != 0 {
			t.Errorf("the second look has %+v and %+v", waits, takes)
		}
	})
}

// What was delivered before it is measured has no time, and after it ended nothing is kept.
func TestLatenciesAreOffAtFirst(t *testing.T) {
	t.Parallel()
	b := &Broker{}
	b.held.init()
	source := semantics.Source{Path: "orders"}
	m := &semantics.Received{LockToken: semantics.NewLockToken(), LockedUntil: time.Now().Add(time.Hour), DeliveryCount: 1}
	b.held.add(source, []*semantics.Received{m}, nil)
	b.MeasureLatency(true)
	b.held.ended(source, []semantics.LockToken{m.LockToken}, []semantics.Code{""})
	if waits, takes := b.TakeLatency("orders"); waits.Count+takes.Count != 0 {
		t.Errorf("got %+v and %+v", waits, takes)
	}
	m.LockToken = semantics.NewLockToken()
	b.held.add(source, []*semantics.Received{m}, nil)
	b.MeasureLatency(false)
	if b.held.latencies != nil {
		t.Error("times are kept")
	}
}

func TestLatencyQuantiles(t *testing.T) {
	t.Parallel()
	var h histogram
	for n := range 100 {
		h.note(time.Duration(n+1) * 10 * time.Millisecond)
	}
	h.note(1000 * time.Hour) // longer than all steps
	if l := h.summary(); l.Count != 101 || !near(l.Half, 510*time.Millisecond) || !near(l.At95, 960*time.Millisecond) {
		t.Errorf("got %+v", l)
	}
	if l := (&histogram{}).summary(); l != (Latency{}) {
		t.Errorf("nothing is %+v", l)
	}
}
