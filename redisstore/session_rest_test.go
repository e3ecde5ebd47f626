package redisstore_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
)

// The rest of a session of many messages becomes dead letters slice by slice. From the first one on nothing of it can
// be had, and when the sidecar that was asked is gone another one goes on. What expires meanwhile with a later message
// keeps its own reason.
func TestSESS_29_DeadLetterRestInSlices(t *testing.T) {
	t.Parallel()
	const messages, atOnce = 1100, 250
	s := openSessions(t, func(o *semantics.Options) {
		o.SessionExpiryMode, o.DeadLetteringOnMessageExpiration = semantics.ExpireSession, true
		o.SessionOnDeadLetter = semantics.BlockSession
	})
	for left := messages; left > 0; left -= 100 {
		s.sendTo("a", 100)
	}
	held := s.accept("a")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var scripts atomic.Int64
	dying := redistest.Open(t, redisstore.Options{Namespace: s.namespace, Now: func() time.Time {
		if scripts.Add(1) == 2 {
			cancel() // it dies before its second script
		}
		return s.clock.Now()
	}})
	if err := dying.DeadLetterRest(ctx, "orders", "a"); semantics.CodeOf(err) != semantics.Cancelled {
		t.Fatalf("got %v, want it cut off", err)
	}
	if n := s.raw.XLen(t.Context(), s.key("dead_log")).Val(); n != atOnce {
		t.Fatalf("the first slice has %d messages", n)
	}
	s.audit()
	if got := s.receiveIn(held, 9); len(got) > 0 {
		t.Fatalf("%d messages of it can be had", len(got))
	}

	// A message that comes later and expires takes only those along that are no dead letters by then.
	last := part("a", "last")
	last.TimeToLive = ofMinutes(1)
	s.sendTo("a", 1)
	s.send(t, last)
	s.clock.Advance(time.Minute)
	other := redistest.Open(t, redisstore.Options{Namespace: s.namespace, Now: s.clock.Now})
	s.fails("sweep", other.SweepOnce(context.WithoutCancel(t.Context()), brokerOver(other)))
	s.audit()
	reasons := map[string]int{}
	for from := int64(1); ; {
		rows, err := s.Peek(t.Context(), semantics.Source{Path: "orders", SubQueue: semantics.DeadLetterQueue}, from, 250, semantics.ShowAll)
		if err != nil {
			t.Fatal(err)
		}
		if len(rows) == 0 {
			break
		}
		for _, m := range rows {
			reasons[m.DeadLetterReason]++
		}
		from = rows[len(rows)-1].SequenceNumber + 1
	}
	if reasons[semantics.ReasonSession] != messages || reasons["TTLExpiredException"] != 2 || len(reasons) != 2 {
		t.Errorf("the reasons are %v", reasons)
	}
}

// The second mark of a session waits for the first, also when the expiry is what comes while the dead letters are still
// being made.
func TestSESS_29_ExpiryWhileTheRestIsMarked(t *testing.T) {
	t.Parallel()
	s := openSessions(t, func(o *semantics.Options) { o.SessionExpiryMode, o.SessionInFlight = semantics.ExpireSession, 10 })
	first := part("a", "first")
	first.TimeToLive = ofMinutes(1)
	s.send(t, first)
	for range 9 {
		s.sendTo("a", 100)
	}
	held := s.accept("a")
	got := s.receiveIn(held, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var scripts atomic.Int64
	dying := redistest.Open(t, redisstore.Options{Namespace: s.namespace, Now: func() time.Time {
		if scripts.Add(1) == 2 {
			cancel()
		}
		return s.clock.Now()
	}})
	if err := dying.DeadLetterRest(ctx, "orders", "a"); semantics.CodeOf(err) != semantics.Cancelled {
		t.Fatalf("got %v, want it cut off", err)
	}
	s.sendTo("a", 300)
	s.clock.Advance(time.Minute - time.Millisecond)
	if _, err := s.RenewSessionLock(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	s.clock.Advance(time.Millisecond)
	s.settle(s.Abandon(t.Context(), held, tokensOf(got), semantics.AbandonOptions{})) // it expires, and all after it
	s.audit()
	s.fails("sweep", s.SweepOnce(context.WithoutCancel(t.Context()), brokerOver(s.Store)))
	s.audit()
	counts, err := s.Runtime(t.Context(), semantics.QueueKind, "orders")
	if err != nil || counts.DeadLetter != 900 || counts.Active != 0 {
		t.Errorf("got %+v, %v; want 900 dead letters and nothing else: the other 301 expired", counts, err)
	}
}
