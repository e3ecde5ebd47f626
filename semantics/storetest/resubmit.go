package storetest

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

var resubmitTests = []ruleTest{
	testDLQ_22_MovesToTheParent,
	testMSG_17_ResubmittedIsNew,
	testDLQ_22_AnotherTarget,
	testDLQ_22_NewMessageIDs,
	testDLQ_22_NamedOnes,
	testDLQ_22_LockedAreSkipped,
	testDLQ_22_DeferredToo,
	testDLQ_22_Matching,
	testDLQ_22_MaxAndMore,
	testDLQ_22_MoreThanOneStep,
	testDLQ_22_Arguments,
	testDLQ_22_RaceHasOneWinner,
	testDLQ_22_Wakes,
	testTTL_25_NewLife,
	testTTL_25_KeepExpiry,
	testTTL_25_KeptExpiryIsCutToo,
}

// moved is what is heard of dead letters that got the given numbers.
func moved(pairs ...[2]int64) (results []broker.ResubmitResult) {
	for _, p := range pairs {
		results = append(results, broker.ResubmitResult{
			SequenceNumber: p[0], Resubmitted: semantics.Resubmitted{Stored: stored(p[1])},
		})
	}
	return results
}

func notMoved(number int64, code semantics.Code) broker.ResubmitResult {
	return broker.ResubmitResult{SequenceNumber: number, Resubmitted: semantics.Resubmitted{Code: code}}
}

func testDLQ_22_MovesToTheParent(_ *testing.T, h *fixture) {
	h.create()
	h.same(h.resubmit(broker.ResubmitOptions{}), []broker.ResubmitResult(nil)) // there is nothing
	h.deadLetterTexts("a", "b", "c")
	h.sendTexts(1)
	size := h.runtime().SizeInBytes
	h.same(h.resubmit(broker.ResubmitOptions{}), moved([2]int64{1, 5}, [2]int64{2, 6}, [2]int64{3, 7}))
	h.same(h.counts(), semantics.Runtime{Active: 4, Available: 4})
	h.same(h.runtime().SizeInBytes, size)
	h.wantNumbers(h.receive(orders, 9), 4, 5, 6, 7)
	h.wantNumbers(h.peek(deadOrders))
}

func testMSG_17_ResubmittedIsNew(t *testing.T, h *fixture) {
	h.create(deliversAtMost(2))
	sent := &semantics.Message{
		MessageID: "id", SessionID: "s", PartitionKey: "s", CorrelationID: "c", Subject: "x", To: "to", ReplyTo: "r", ReplyToSessionID: "rs",
		ContentType: "text/plain", ScheduledAt: h.in(-time.Hour), Properties: properties{"p": semantics.Int64(1)}, Body: []byte("b"), BodyKind: semantics.BodyText,
		AMQP: []byte{2, 0, 0xff},
	}
	h.send(sent)
	h.abandon(orders, h.receiveOne(orders))
	options := why("why", "how")
	options.Properties = properties{"p": semantics.Int64(2), "q": semantics.Null()}
	codes, err := h.broker.DeadLetter(t.Context(), orders, tokensOf(h.receiveOne(orders)), options)
	h.settled(codes, err)
	h.abandon(deadOrders, h.receiveOne(deadOrders))
	h.Advance(time.Second)
	h.same(h.resubmit(broker.ResubmitOptions{}), moved([2]int64{1, 2}))
	// Everything that the sender set stays, and so do modifications; all else begins again.
	want := semantics.Received{Message: *sent, SequenceNumber: 2, EnqueuedSequenceNumber: 2, EnqueuedAt: h.Now(), Size: sent.Size() + 1}
	want.Properties = options.Properties
	h.same(h.peek(orders), []*semantics.Received{&want})
	h.same(h.runtime(), semantics.Runtime{Active: 1, Available: 1, SizeInBytes: want.Size, OldestEnqueuedAt: h.Now(), AvailableSince: h.Now()})
	h.abandon(orders, h.receiveOne(orders))
	h.abandon(orders, h.receiveOne(orders)) // so many deliveries again
	dead := h.row(deadOrders, 2)
	h.same([]any{dead.DeadLetterReason, dead.DeadLetterDeliveryCount, dead.DeadLetteredAt}, []any{"MaxDeliveryCountExceeded", 0, h.Now()})
}

func testDLQ_22_AnotherTarget(t *testing.T, h *fixture) {
	h.create()
	h.createNamed("Other", megabytes(1), func(o *semantics.Options) { o.MaxMessageSizeInKilobytes = 100 })
	h.send(sized(100<<10), sized(100<<10+1), text("c"))
	h.deadLetter(h.receive(orders, 9)...)
	for range 9 {
		_, err := h.broker.Send(t.Context(), semantics.ToQueue("other"), []*semantics.Message{sized(100 << 10)})
		h.ok(err)
	}
	_, err := h.broker.Send(t.Context(), semantics.ToQueue("other"), []*semantics.Message{sized(24<<10 + 1)})
	h.ok(err)
	h.Advance(ms)
	got := h.resubmit(broker.ResubmitOptions{Target: "oTHER"})
	h.same(got, []broker.ResubmitResult{
		notMoved(1, semantics.EntityFull), notMoved(2, semantics.MessageSizeExceeded), moved([2]int64{3, 11})[0],
	})
	h.wantNumbers(h.peek(deadOrders), 1, 2) // what is not taken stays where it is
	h.same(h.runtime().SizeInBytes, int64(200<<10+1))
	other := semantics.Source{Path: "other"}
	h.wantNumbers(h.peekFrom(other, 11, 9), 11)
	r, err := h.broker.Runtime(t.Context(), semantics.QueueKind, "other")
	h.ok(err)
	h.same(r.SizeInBytes, int64(924<<10+1+2))
	h.wantNumbers(h.receive(other, 1), 1)
	_, _, err = h.broker.Resubmit(t.Context(), deadOrders, broker.ResubmitOptions{Target: "missing"})
	h.same(h.wantCode(err, semantics.EntityNotFound).Details[semantics.DetailEntity], "missing")
}

func testDLQ_22_NewMessageIDs(_ *testing.T, h *fixture) {
	h.create()
	h.deadLetterTexts("a", "b")
	h.resubmit(broker.ResubmitOptions{Numbers: []int64{1}})
	h.resubmit(broker.ResubmitOptions{NewMessageIDs: true})
	got := h.receive(orders, 2)
	h.same(got[0].MessageID, "a") // only on request
	if id, err := semantics.ParseLockToken(got[1].MessageID); err != nil || id.IsZero() {
		h.t.Errorf("the new message id is %q", got[1].MessageID)
	}
	h.same([]int64{got[1].Size, h.runtime().SizeInBytes}, []int64{1 + 36, 1 + 36 + 2})
}

func testDLQ_22_NamedOnes(_ *testing.T, h *fixture) {
	h.create()
	h.deadLetterTexts("a", "b", "c", "d")
	h.takeNumbers(deadOrders, 2)
	h.sendTexts(1)
	got := h.resubmit(broker.ResubmitOptions{Numbers: []int64{4, 2, 99, 5, 1, 4}})
	missing := semantics.MessageNotFound
	h.same(got, []broker.ResubmitResult{
		moved([2]int64{4, 6})[0], notMoved(2, missing), notMoved(99, missing), notMoved(5, missing), moved([2]int64{1, 7})[0], notMoved(4, missing),
	})
	h.wantNumbers(h.peek(deadOrders), 2, 3)
	h.wantNumbers(h.receive(orders, 9), 5, 6, 7)
}

func testDLQ_22_LockedAreSkipped(_ *testing.T, h *fixture) {
	h.create()
	h.deadLetterTexts("a", "b", "c")
	got := h.takeNumbers(deadOrders, 2)[0]
	h.same(h.resubmit(broker.ResubmitOptions{}), moved([2]int64{1, 4}, [2]int64{3, 5}))
	h.Advance(lock)
	h.lost(deadOrders, got)
	h.same(h.resubmit(broker.ResubmitOptions{}), moved([2]int64{2, 6}))
}

func testDLQ_22_DeferredToo(_ *testing.T, h *fixture) {
	h.create()
	h.deadLetterTexts("a", "b")
	h.setAside(deadOrders, h.receiveOne(deadOrders))
	h.abandonFor(time.Hour, deadOrders, h.receiveOne(deadOrders))
	h.same(h.resubmit(broker.ResubmitOptions{}), moved([2]int64{1, 3}, [2]int64{2, 4}))
	h.wantNumbers(h.receive(orders, 9), 3, 4)
	h.same(h.runtime().DeadLetter, int64(0))
}

func testDLQ_22_Matching(t *testing.T, h *fixture) {
	h.create()
	h.deadLetterTexts("a", "b", "c", "d")
	matches := func(m *semantics.Received) (bool, error) {
		return m.DeadLetterReason == "poison" && m.MessageID != "b", nil
	}
	h.same(h.resubmit(broker.ResubmitOptions{Matches: matches, Max: 2}), moved([2]int64{1, 5}, [2]int64{3, 6}))
	h.same(h.resubmit(broker.ResubmitOptions{Matches: matches}), moved([2]int64{4, 7}))
	h.wantNumbers(h.peek(deadOrders), 2)
	h.refused(semantics.FilterInvalid, func() error {
		_, _, err := h.broker.Resubmit(t.Context(), deadOrders, broker.ResubmitOptions{
			Matches: func(*semantics.Received) (bool, error) {
				return true, semantics.Errorf(semantics.FilterInvalid, "fails")
			},
		})
		return err
	})
}

func testDLQ_22_MaxAndMore(t *testing.T, h *fixture) {
	h.create()
	h.deadLetterTexts("a", "b", "c")
	results, more, err := h.broker.Resubmit(t.Context(), deadOrders, broker.ResubmitOptions{Max: 2})
	h.ok(err)
	h.same(results, moved([2]int64{1, 4}, [2]int64{2, 5}))
	h.same(more, true)
	results, more, err = h.broker.Resubmit(t.Context(), deadOrders, broker.ResubmitOptions{Max: 2})
	h.ok(err)
	h.same(results, moved([2]int64{3, 6}))
	h.same(more, false)
}

func testDLQ_22_MoreThanOneStep(_ *testing.T, h *fixture) {
	h.create(holdsAtMost(550))
	const many = 450
	h.sendTexts(many)
	h.deadLetter(h.receive(orders, many)...)
	h.sendTexts(150)
	results := h.resubmit(broker.ResubmitOptions{})
	h.same(len(results), many)
	for i, r := range results { // 400 fit
		want := moved([2]int64{int64(i + 1), int64(many + 150 + i + 1)})[0]
		if i >= 400 {
			want = notMoved(int64(i+1), semantics.EntityFull)
		}
		h.same(r, want)
	}
	h.same(h.counts(), semantics.Runtime{Active: 550, Available: 550, DeadLetter: 50})
}

func testDLQ_22_Arguments(t *testing.T, h *fixture) {
	h.create()
	h.deadLetterTexts("a")
	all := func(*semantics.Received) (bool, error) { return true, nil }
	for _, c := range []struct {
		code    semantics.Code
		source  semantics.Source
		options broker.ResubmitOptions
	}{
		{semantics.InvalidOperation, orders, broker.ResubmitOptions{}},
		{semantics.InvalidOperation, deadOrders, broker.ResubmitOptions{Target: deadOrders.String()}},
		{semantics.InvalidArgument, deadOrders, broker.ResubmitOptions{Target: "a//b"}},
		{semantics.InvalidArgument, deadOrders, broker.ResubmitOptions{Numbers: []int64{1}, Matches: all}},
		{semantics.ArgumentOutOfRange, deadOrders, broker.ResubmitOptions{Numbers: []int64{0}}},
		{semantics.ArgumentOutOfRange, deadOrders, broker.ResubmitOptions{Numbers: []int64{1, 2}, Max: 1}},
		{semantics.ArgumentOutOfRange, deadOrders, broker.ResubmitOptions{Max: -1}},
		{semantics.ArgumentOutOfRange, deadOrders, broker.ResubmitOptions{Max: broker.MaxResubmitMessages + 1}},
	} {
		h.refused(c.code, func() error {
			_, _, err := h.broker.Resubmit(t.Context(), c.source, c.options)
			return err
		})
	}
	h.same(len(h.resubmit(broker.ResubmitOptions{Max: broker.MaxResubmitMessages, Target: "ORDERS"})), 1)
}

// Two that resubmit and one that receives: each dead letter goes to exactly one of them.
func testDLQ_22_RaceHasOneWinner(t *testing.T, h *fixture) {
	h.races()
	h.create()
	const many = 60
	h.sendTexts(many)
	h.deadLetter(h.receive(orders, many)...)
	brokers := h.sidecars()
	var moves, taken atomic.Int64
	var work sync.WaitGroup
	for i := range 2 {
		work.Go(func() {
			results, _, err := brokers[i%len(brokers)].Resubmit(t.Context(), deadOrders, broker.ResubmitOptions{})
			if err != nil {
				t.Error(err)
			}
			for _, r := range results {
				switch r.Code {
				case "":
					moves.Add(1)
				case semantics.MessageNotFound: // the other was faster
				default:
					t.Error(r.Code)
				}
			}
		})
	}
	work.Go(func() {
		for range 10 {
			delivery, err := h.broker.Receive(t.Context(), deadOrders, broker.ReceiveOptions{MaxMessages: 3})
			if err != nil {
				t.Error(err)
				return
			}
			taken.Add(int64(len(delivery.Messages)))
		}
	})
	work.Wait()
	h.same(moves.Load()+taken.Load(), int64(many))
	h.same(h.counts(), semantics.Runtime{Active: moves.Load(), Available: moves.Load(), DeadLetter: taken.Load()})
}

func testDLQ_22_Wakes(t *testing.T, h *fixture) {
	h.create()
	h.createNamed("other")
	h.deadLetterTexts("a", "b")
	s := h.newSidecar(h.Store)
	here, there := s.waiting(t.Context(), orders, 9), s.waiting(t.Context(), semantics.Source{Path: "other"}, 9)
	h.resubmit(broker.ResubmitOptions{Numbers: []int64{2}})
	h.awaitNumbers(here, 3)
	h.resubmit(broker.ResubmitOptions{Target: "other"})
	h.awaitNumbers(there, 1)
}

func testTTL_25_NewLife(_ *testing.T, h *fixture) {
	h.create(buriesExpired)
	h.createNamed("short", livesFor(1500*ms))
	h.send(lasting("a", 1000*ms), lasting("b", 2000*ms), text("c"))
	h.deadLetter(h.receive(orders, 3)...)
	h.Advance(time.Hour)
	h.resubmit(broker.ResubmitOptions{Numbers: []int64{1}})
	row := h.row(orders, 4)
	h.same([]any{*row.TimeToLive, row.ExpiresAt}, []any{1000 * ms, h.in(1000 * ms)})
	h.resubmit(broker.ResubmitOptions{Target: "short"})
	// cut to the target's default, which is also that of those without
	for _, m := range h.peek(semantics.Source{Path: "short"}) {
		h.same([]any{*m.TimeToLive, m.ExpiresAt}, []any{1500 * ms, h.in(1500 * ms)})
	}
	h.Advance(1000 * ms)
	h.receiveNone(orders)
	h.same(h.row(deadOrders, 4).DeadLetterReason, "TTLExpiredException")
}

func testTTL_25_KeepExpiry(_ *testing.T, h *fixture) {
	h.create(buriesExpired)
	h.send(lasting("a", 2000*ms), lasting("b", 1000*ms), text("never"))
	ends := h.in(2000 * ms)
	h.deadLetter(h.receive(orders, 3)...)
	h.Advance(1000 * ms)
	h.resubmit(broker.ResubmitOptions{KeepExpiry: true})
	// The second has had its time and is dead-lettered again.
	h.wantNumbers(h.peek(orders), 4, 6)
	h.same([]time.Time{h.row(orders, 4).ExpiresAt, h.row(orders, 6).ExpiresAt}, []time.Time{ends, {}})
	dead := h.row(deadOrders, 5)
	h.same([]any{dead.MessageID, dead.DeadLetterReason}, []any{"b", "TTLExpiredException"})
	h.Advance(1000*ms - ms)
	h.release(orders, h.takeNumbers(orders, 4)...)
	h.Advance(ms)
	h.wantNumbers(h.receive(orders, 9), 6)
}

func testTTL_25_KeptExpiryIsCutToo(_ *testing.T, h *fixture) {
	h.create()
	h.createNamed("short", livesFor(1500*ms))
	h.send(lasting("a", time.Hour), lasting("b", 3000*ms), lasting("c", 2000*ms), text("never"))
	h.deadLetter(h.receive(orders, 4)...)
	h.Advance(1000 * ms)
	h.resubmit(broker.ResubmitOptions{KeepExpiry: true, Target: "short"})
	// the default is the ceiling (TTL-4)
	for i, left := range []time.Duration{1500 * ms, 1500 * ms, 1000 * ms, 1500 * ms} {
		m := h.row(semantics.Source{Path: "short"}, int64(i+1))
		h.same([]any{m.ExpiresAt, *m.TimeToLive}, []any{h.in(left), left})
	}
}
