package proxy_test

import (
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

func (w *wire) deferred(t *testing.T, mode sidebusv1.ReceiveRequest_Mode, numbers ...int64) []*sidebusv1.ReceivedMessage {
	t.Helper()
	taken, err := w.messages.ReceiveDeferred(t.Context(), &sidebusv1.ReceiveDeferredRequest{Source: orders, SequenceNumbers: numbers, Mode: mode})
	if err != nil {
		t.Fatal(err)
	}
	return taken.GetMessages()
}

func TestDEFER_3_ReceivedByNumber(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		w.put(t, text("one"), text("two"), text("three"))
		for _, m := range w.take(t, 10) {
			settled(t)(w.messages.Defer(t.Context(), &sidebusv1.DeferRequest{Source: orders, LockTokens: []string{m.GetLockToken()}}))
		}
		if taken := w.take(t, 10); len(taken) != 0 {
			t.Errorf("a plain receive gave %v", taken)
		}
		if counts := w.runtime(t); counts.GetDeferredCount() != 3 || counts.GetActiveMessageCount() != 3 || counts.GetAvailableCount() != 0 {
			t.Errorf("got %v", counts)
		}
		taken := w.deferred(t, sidebusv1.ReceiveRequest_PEEK_LOCK, 3, 1, 3)
		if got := texts(taken); got != "three one" {
			t.Fatalf("received %q, want the order of the numbers", got)
		}
		for _, m := range taken { // DC-2: deferring counts nothing
			if m.GetState() != sidebusv1.ReceivedMessage_DEFERRED || m.GetLockToken() == "" || m.GetLockedUntil() == nil || m.GetDeliveryCount() != 1 {
				t.Errorf("got %v", m)
			}
		}
		if w.broker.Held() != 2 {
			t.Errorf("%d held, want 2", w.broker.Held())
		}
		settled(t)(w.messages.Abandon(t.Context(), &sidebusv1.AbandonRequest{Source: orders, LockTokens: []string{taken[0].GetLockToken()}}))
		settled(t)(w.messages.Complete(t.Context(), &sidebusv1.CompleteRequest{Source: orders, LockTokens: []string{taken[1].GetLockToken()}}))
		again := w.deferred(t, sidebusv1.ReceiveRequest_RECEIVE_AND_DELETE, 3) // DEFER-5
		if len(again) != 1 || again[0].GetDeliveryCount() != 2 || again[0].LockToken != nil || again[0].LockedUntil != nil {
			t.Errorf("after the abandon: got %v", again)
		}
		eventually(t, "only number 2 is left", func() bool {
			counts := w.runtime(t)
			return counts.GetTotalMessageCount() == 1 && counts.GetDeferredCount() == 1
		})
	})
}

func TestDEFER_4_EmptyListAndMissingNumbers(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		there := w.furnish(t)
		if taken := w.deferred(t, sidebusv1.ReceiveRequest_PEEK_LOCK); len(taken) != 0 {
			t.Errorf("got %v", taken)
		}
		check := w.unchanged(t)
		for _, missing := range []int64{there.available, there.locked, there.scheduled, there.dead, 99} {
			_, err := w.messages.ReceiveDeferred(t.Context(), &sidebusv1.ReceiveDeferredRequest{Source: orders, SequenceNumbers: []int64{there.deferred, missing}})
			if infoOf(t, err).GetReason() != "MESSAGE_NOT_FOUND" || infoOf(t, err).GetMetadata()["sequenceNumbers"] == "" {
				t.Errorf("receive %d: got %v", missing, err)
			}
			_, err = w.messages.Reactivate(t.Context(), &sidebusv1.ReactivateRequest{Source: orders, SequenceNumbers: []int64{there.deferred, missing}})
			if infoOf(t, err).GetReason() != "MESSAGE_NOT_FOUND" {
				t.Errorf("reactivate %d: got %v", missing, err)
			}
		}
		for _, missing := range []int64{there.deferred, there.locked, there.scheduled, there.dead, 99} {
			_, err := w.messages.ReceiveBySequence(t.Context(), &sidebusv1.ReceiveBySequenceRequest{Source: orders, SequenceNumbers: []int64{there.available, missing}})
			if infoOf(t, err).GetReason() != "MESSAGE_NOT_FOUND" {
				t.Errorf("receive by sequence %d: got %v", missing, err)
			}
		}
		check(t)
		if w.broker.Held() != 1 {
			t.Errorf("%d held, want 1", w.broker.Held())
		}
	})
}

func TestDEFER_8_Reactivate(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		there := w.furnish(t)
		for _, numbers := range [][]int64{nil, {there.deferred, there.deferred}} {
			if _, err := w.messages.Reactivate(t.Context(), &sidebusv1.ReactivateRequest{Source: orders, SequenceNumbers: numbers}); err != nil {
				t.Fatal(err)
			}
		}
		if got := texts(w.take(t, 10)); got != "to defer available" {
			t.Errorf("received %q, want it at its old place", got)
		}
	})
}

func TestPURGE_9_ReceiveBySequence(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		w.put(t, text("one"), text("two"), text("three"))
		taken, err := w.messages.ReceiveBySequence(t.Context(), &sidebusv1.ReceiveBySequenceRequest{Source: orders, SequenceNumbers: []int64{3, 2}})
		if err != nil || texts(taken.GetMessages()) != "three two" || taken.GetMessages()[0].GetState() != sidebusv1.ReceivedMessage_ACTIVE {
			t.Fatalf("got %v, %v", taken, err)
		}
		settled(t)(w.messages.Release(t.Context(), &sidebusv1.ReleaseRequest{Source: orders, LockTokens: []string{taken.GetMessages()[0].GetLockToken()}}))
		if got := texts(w.take(t, 10)); got != "one three" {
			t.Errorf("then received %q", got)
		}
	})
}

func TestDLQ_3_DeferAmongDeadLetters(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		there := w.furnish(t)
		const dead = sidebusv1.SubQueue_DEAD_LETTER
		taken, err := w.messages.ReceiveBySequence(t.Context(), &sidebusv1.ReceiveBySequenceRequest{Source: orders, SubQueue: dead, SequenceNumbers: []int64{there.dead}})
		if err != nil {
			t.Fatal(err)
		}
		settled(t)(w.messages.Defer(t.Context(), &sidebusv1.DeferRequest{Source: orders, SubQueue: dead, LockTokens: []string{taken.GetMessages()[0].GetLockToken()}}))
		again, err := w.messages.ReceiveDeferred(t.Context(), &sidebusv1.ReceiveDeferredRequest{Source: orders, SubQueue: dead, SequenceNumbers: []int64{there.dead}})
		if err != nil || again.GetMessages()[0].GetState() != sidebusv1.ReceivedMessage_DEFERRED || again.GetMessages()[0].DeadLetterDeliveryCount == nil {
			t.Fatalf("got %v, %v", again, err)
		}
		settled(t)(w.messages.Abandon(t.Context(), &sidebusv1.AbandonRequest{Source: orders, SubQueue: dead, LockTokens: []string{again.GetMessages()[0].GetLockToken()}}))
		if _, err := w.messages.Reactivate(t.Context(), &sidebusv1.ReactivateRequest{Source: orders, SubQueue: dead, SequenceNumbers: []int64{there.dead}}); err != nil {
			t.Fatal(err)
		}
		seen := w.peek(t, dead)
		if len(seen) != 1 || seen[0].GetState() != sidebusv1.ReceivedMessage_ACTIVE || seen[0].GetDeadLetterDeliveryCount() != 1 || seen[0].GetDeliveryCount() != 0 {
			t.Errorf("DC-7: got %v", seen)
		}
	})
}

func TestPEEK_7_Include(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		there := w.furnish(t)
		const (
			available, locked   = sidebusv1.PeekRequest_AVAILABLE, sidebusv1.PeekRequest_LOCKED
			deferred, scheduled = sidebusv1.PeekRequest_DEFERRED, sidebusv1.PeekRequest_SCHEDULED
		)
		cases := []struct {
			include []sidebusv1.PeekRequest_Include
			want    []int64
		}{
			{nil, []int64{there.deferred, there.locked, there.available, there.scheduled}},
			{[]sidebusv1.PeekRequest_Include{available}, []int64{there.available}},
			{[]sidebusv1.PeekRequest_Include{locked}, []int64{there.locked}},
			{[]sidebusv1.PeekRequest_Include{deferred}, []int64{there.deferred}},
			{[]sidebusv1.PeekRequest_Include{scheduled}, []int64{there.scheduled}},
			{[]sidebusv1.PeekRequest_Include{scheduled, deferred, scheduled}, []int64{there.deferred, there.scheduled}},
			{[]sidebusv1.PeekRequest_Include{available, locked, deferred, scheduled}, []int64{there.deferred, there.locked, there.available, there.scheduled}},
		}
		most := int32(10)
		for _, c := range cases {
			seen, err := w.messages.Peek(t.Context(), &sidebusv1.PeekRequest{Source: orders, MaxMessages: &most, Include: c.include})
			if err != nil {
				t.Fatal(err)
			}
			var got []int64
			for _, m := range seen.GetMessages() {
				got = append(got, m.GetSequenceNumber())
				if m.LockToken != nil || m.Locked == nil || m.GetLocked() != (m.GetSequenceNumber() == there.locked) || m.Expired == nil {
					t.Errorf("got %v", m)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%v: got %v, want %v", c.include, got, c.want)
			}
		}
	})
}

func TestSETTLE_11_Delay(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		abandon := func(delay time.Duration, hasDelay bool) {
			t.Helper()
			taken := w.take(t, 1)
			if len(taken) != 1 {
				t.Fatalf("nothing to abandon")
			}
			request := &sidebusv1.AbandonRequest{Source: orders, LockTokens: []string{taken[0].GetLockToken()}}
			if hasDelay {
				request.Delay = durationpb.New(delay)
			}
			settled(t)(w.messages.Abandon(t.Context(), request))
		}
		w.put(t, text("one"))
		const most = 7 * 24 * time.Hour
		for _, delay := range []time.Duration{time.Millisecond, 90 * time.Second, most} {
			abandon(delay, true)
			seen := w.peek(t, sidebusv1.SubQueue_NONE)
			if len(seen) != 1 || !seen[0].GetVisibleAt().AsTime().Equal(w.clock.Now().Add(delay)) {
				t.Fatalf("%s: got %v", delay, seen)
			}
			if counts := w.runtime(t); counts.GetDelayedCount() != 1 || counts.GetAvailableCount() != 1 {
				t.Errorf("%s: got %v", delay, counts)
			}
			w.clock.advance(delay - time.Millisecond)
			if taken := w.take(t, 1); len(taken) != 0 {
				t.Errorf("%s: received too early: %v", delay, taken)
			}
			w.clock.advance(time.Millisecond)
		}
		// Without a delay the queue's counts, 0s is none at all.
		mustPatch(t, w.sidecar, `{"redeliveryDelay":"10s"}`)
		abandon(0, false)
		if taken := w.take(t, 1); len(taken) != 0 {
			t.Errorf("redeliveryDelay: received too early: %v", taken)
		}
		w.clock.advance(10 * time.Second)
		abandon(0, true)
		if taken := w.take(t, 1); len(taken) != 1 || taken[0].GetDeliveryCount() != 6 {
			t.Errorf("0s: got %v", taken)
		}
	})
}

func TestTTL_10_RenewTellsOfExpiry(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		w.put(t, &sidebusv1.Message{TimeToLive: durationpb.New(10 * time.Second)})
		request := &sidebusv1.RenewLocksRequest{Source: orders, LockTokens: []string{w.take(t, 1)[0].GetLockToken()}}
		for _, want := range []bool{false, true} {
			renewed, err := w.messages.RenewLocks(t.Context(), request)
			if err != nil || renewed.GetResults()[0].GetExpiredInHand() != want || renewed.GetResults()[0].Reason != nil {
				t.Errorf("got %v, %v, want %t", renewed, err, want)
			}
			w.clock.advance(10 * time.Second)
		}
	})
}
