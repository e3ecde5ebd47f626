package storetest

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/partitioned"
)

func testPART_4_AllPartitionsInTurn(t *testing.T, h *fixture) {
	const n = 5
	h.spread(n)
	for range 5 * n {
		h.send(text("a"))
	}
	for range 2 {
		served := map[int]bool{}
		for range 2 * n {
			served[partitionOf(h.receiveOne(orders))] = true
			h.receiveNone(deadOrders) // has turns of its own
		}
		if len(served) != n {
			t.Fatalf("only partitions %v were served", served)
		}
	}
}

func testPART_4_OneReceiveTakesFromAll(t *testing.T, h *fixture) {
	h.spread(4)
	for i := range 3 {
		h.send(keyed(fmt.Sprint(i), "one"))
	}
	if got := h.receive(orders, 10); len(got) != 3 { // wherever it begins
		t.Fatalf("received %d, want 3", len(got))
	}
	for range 10 {
		h.send(text("a"))
	}
	got := h.receive(orders, 7)
	got = append(got, h.receive(orders, 7)...)
	if len(got) != 10 {
		t.Fatalf("received %d, want 7 and 3", len(got))
	}
	h.complete(orders, got...)
	h.wantCounts(0, 3, 0)
}

func testPART_4_WaitsForAnyPartition(t *testing.T, h *fixture) {
	h.spread(8)
	s := h.newSidecar(h.Store)
	for i := range 16 {
		done := s.waiting(t.Context(), orders, 5)
		id := fmt.Sprint(i)
		_, err := h.broker.Send(t.Context(), semantics.ToQueue("orders"), []*semantics.Message{text(id)})
		h.ok(err)
		h.complete(orders, h.awaitIDs(done, id)...)
	}
}

func testPART_4_WaitsAfterRecreation(t *testing.T, h *fixture) {
	h.spread(4)
	s := h.newSidecar(h.Store)
	for _, n := range []int64{2, 1, 3} {
		done := s.waiting(t.Context(), orders, 1)
		h.ok(h.broker.DeleteEntity(t.Context(), semantics.QueueKind, "orders"))
		h.wantCode(h.await(done).err, semantics.EntityNotFound)
		if n == 3 { // what waited on one partition finds out later: see docs/decisions/0042
			s = h.newSidecar(h.Store)
		}
		_, err := h.broker.CreateEntity(t.Context(), semantics.QueueKind, "orders", semantics.Options{Partitions: n}, []string{"partitions"})
		h.ok(err)
		done = s.waiting(t.Context(), orders, 1)
		h.send(text("a"))
		h.awaitIDs(done, "a")
	}
}

func testPART_4_EveryMessageOnce(t *testing.T, h *fixture) {
	h.spread(4)
	const total = 60
	for i := range total {
		h.send(text(fmt.Sprint(i)))
	}
	brokers := []*broker.Broker{h.broker, h.peer()}
	seen := make(chan string, total)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for i := range 6 {
		b := brokers[i%2]
		go func() {
			for ctx.Err() == nil {
				d, err := b.Receive(ctx, orders, broker.ReceiveOptions{MaxMessages: 1 + i, MaxWait: patience})
				if err != nil {
					return
				}
				codes, err := b.Complete(ctx, orders, tokensOf(d.Messages...))
				if len(d.Messages) > 0 && (err != nil || slices.ContainsFunc(codes, func(c semantics.Code) bool { return c != "" })) {
					t.Errorf("complete: %v, %v", codes, err)
				}
				for _, m := range d.Messages {
					seen <- m.MessageID
				}
			}
		}()
	}
	h.wantEachOnce(ctx, seen, total)
}

// wantEachOnce awaits so many ids, none of which may come twice.
func (h *fixture) wantEachOnce(ctx context.Context, ids <-chan string, total int) {
	h.t.Helper()
	once := map[string]bool{}
	for range total {
		select {
		case id := <-ids:
			if once[id] {
				h.t.Fatalf("%s came twice", id)
			}
			once[id] = true
		case <-ctx.Done():
			h.t.Fatalf("%d of %d came", len(once), total)
		}
	}
}

func testPART_5_PeekOldestFirst(t *testing.T, h *fixture) {
	h.spread(4)
	var want []string
	for i := range 12 {
		id := fmt.Sprintf("%02d", i)
		h.send(text(id))
		h.Advance(time.Second)
		want = append(want, id)
	}
	h.same(messageIDs(h.peek(orders)), want)
	h.same(messageIDs(h.peekFrom(orders, 0, 5)), want[:5])
	h.same(messageIDs(h.peekFrom(semantics.Source{Path: "ORDERS"}, 0, 1)), want[:1])
}

func testPART_5_PeekByNumber(t *testing.T, h *fixture) {
	h.spread(3)
	for range 10 {
		h.send(text("a"))
	}
	seen, from := 0, int64(1)
	for {
		page := h.peekFrom(orders, from, 2)
		for _, m := range page {
			if m.SequenceNumber < from {
				t.Fatalf("%d comes behind %d", m.SequenceNumber, from)
			}
			from = m.SequenceNumber + 1
		}
		if seen += len(page); len(page) == 0 {
			break
		}
	}
	h.same(seen, 10)
}

func testPART_5_CountsAreSums(t *testing.T, h *fixture) {
	h.spread(3)
	for range 9 {
		h.send(text("a"))
		h.Advance(time.Second)
	}
	later := text("later")
	later.ScheduledAt = h.Now().Add(time.Hour)
	h.send(later)
	got := h.receive(orders, 4)
	h.setAside(orders, got[0])
	codes, err := h.broker.DeadLetter(t.Context(), orders, tokensOf(got[1]), broker.DeadLetterOptions{})
	h.settled(codes, err)
	counts := h.runtime()
	want := semantics.Runtime{
		Active: 8, Available: 5, Locked: 2, Deferred: 1, Scheduled: 1, DeadLetter: 1, SizeInBytes: counts.SizeInBytes,
		OldestEnqueuedAt: counts.OldestEnqueuedAt, AvailableSince: counts.AvailableSince,
	}
	h.same(counts, want)
	whole, err := h.broker.Runtime(t.Context(), semantics.QueueKind, orders.Path)
	h.ok(err)
	h.same(len(whole.Partitions), 3)
	active := make([]int64, 3)
	var oldest time.Time
	for _, m := range h.peek(orders) {
		if _, p := semantics.PartitionOf(m.SequenceNumber); m.State != semantics.Scheduled {
			active[p]++
		}
		if m.State != semantics.Scheduled && (oldest.IsZero() || m.EnqueuedAt.Before(oldest)) {
			oldest = m.EnqueuedAt
		}
	}
	for p, n := range active {
		h.same(whole.Partitions[p].Active, n)
	}
	h.same(counts.OldestEnqueuedAt, oldest) // that of the oldest available is tested by COMP_16
	h.Advance(time.Hour)
	h.same(h.runtime().Scheduled, int64(0))
}

func testPART_5_SettlesInAllPartitions(t *testing.T, h *fixture) {
	h.spread(4, deliversAtMost(2))
	for range 12 {
		h.send(text("a"))
	}
	got := h.receive(orders, 12)
	tokens := append(tokensOf(got...), semantics.NewLockToken(), semantics.NewLockToken().InPartition(3), semantics.NewLockToken().InPartition(63))
	renewals, err := h.broker.RenewLocks(t.Context(), orders, tokens)
	h.ok(err)
	for i, r := range renewals {
		h.same(r.Code == "", i < 12)
	}
	moved := got[0].LockToken // a token holds in its own partition only
	own, p := moved.Partition()
	codes, err := h.broker.Complete(t.Context(), orders, []semantics.LockToken{own.InPartition((p + 1) % 4), tokens[12], tokens[0], tokens[14], tokens[5]})
	h.wantCodes(codes, err, semantics.MessageLockLost, semantics.MessageLockLost, "", semantics.MessageLockLost, "")
	h.wantCounts(0, 10, 0)
	h.abandon(orders, got[1], got[2], got[3])
	h.abandon(orders, h.receive(orders, 3)...)
	h.wantCounts(0, 7, 3)
	dead := h.receive(deadOrders, 3)
	for _, m := range dead {
		h.same([]any{m.DeadLetterReason, m.DeadLetterSource}, []any{"MaxDeliveryCountExceeded", dead[0].DeadLetterSource})
	}
	h.complete(deadOrders, dead...)
	h.Advance(lock)
	h.wantCounts(7, 0, 0)
}

func testPART_5_NumbersOfOnePartition(t *testing.T, h *fixture) {
	h.spread(2)
	schedule := func(key string) int64 {
		m := keyed(key, key)
		m.ScheduledAt = h.Now().Add(time.Hour)
		return h.send(m)
	}
	cancel := func(numbers ...int64) error {
		_, err := h.broker.CancelScheduled(t.Context(), semantics.ToQueue("orders"), numbers, nil)
		return err
	}
	keys := map[int]string{}
	for i := 0; len(keys) < 2; i++ {
		n := schedule(fmt.Sprint(i))
		_, p := semantics.PartitionOf(n)
		keys[p] = fmt.Sprint(i)
		h.ok(cancel(n))
		h.wantCode(cancel(n), semantics.MessageNotFound)
	}
	a, b := schedule(keys[0]), schedule(keys[1])
	h.wantCode(cancel(a, b), semantics.InvalidOperation)
	e := h.wantCode(cancel(b, b+1), semantics.MessageNotFound)
	h.same(e.Details[semantics.DetailNumbers], fmt.Sprint(b+1))
	h.wantCode(cancel(1<<50), semantics.MessageNotFound)
	h.ok(cancel(a))
	cancelled, err := h.broker.CancelScheduled(t.Context(), semantics.ToQueue("orders"), nil, []string{keys[0], keys[1]})
	h.ok(err)
	h.same(cancelled, 1)

	h.send(keyed("x", keys[0]))
	h.send(keyed("y", keys[1]))
	got := h.receive(orders, 2)
	h.setAside(orders, got...)
	for _, m := range got {
		found, err := h.broker.ReceiveDeferred(t.Context(), orders, []int64{m.SequenceNumber}, semantics.PeekLock)
		h.ok(err)
		h.same(numbersOf(found.Messages), []int64{m.SequenceNumber})
		h.complete(orders, found.Messages...)
	}
	h.wantCounts(0, 0, 0)
}

func testPART_5_PurgeGoesThroughAll(t *testing.T, h *fixture) {
	h.spread(4)
	fill := func() {
		for range 30 {
			h.send(text("a"))
		}
		h.Advance(time.Second)
	}
	fill()
	purged := semantics.Purged{More: true}
	total := 0
	for purged.More {
		var err error
		purged, err = h.Store.Purge(t.Context(), orders, semantics.Purge{
			Show: semantics.ShowAvailable, Before: purged.Before, After: purged.Last, Limit: 3,
		})
		h.ok(err)
		total += purged.Deleted
	}
	h.same(total, 30)
	h.wantCounts(0, 0, 0)
	fill()
	h.deadLetterAll()
	dead := h.peek(deadOrders)
	codes, err := h.Store.DeleteByNumber(t.Context(), deadOrders, append(numbersOf(dead[:8]), 1<<50, 1<<40))
	h.ok(err)
	h.same(codes, append(make([]semantics.Code, 8), semantics.MessageNotFound, semantics.MessageNotFound))
	h.wantCounts(0, 0, 22)
}

func testPART_7_OtherPartitionsGoOn(t *testing.T, h *fixture) {
	var gone atomic.Value
	gone.Store("")
	below := away{Below: h.below(), is: func(path string) bool { return path == gone.Load() }}
	h.Store = below
	h.spread(3)
	store := h.Store.(*partitioned.Store)
	h.send(keyed("k", "key"))
	lost := partitionOf(h.peek(orders)[0])
	gone.Store(store.Path("orders", lost))
	for range 6 {
		h.send(text("a"))
	}
	if got := h.receive(orders, 10); len(got) != 6 {
		t.Fatalf("received %d, want 6", len(got))
	}
	h.receiveNone(orders)
	_, err := h.Store.Send(t.Context(), "orders", []*semantics.Message{keyed("k", "key")})
	e := h.wantCode(err, semantics.StoreUnavailable)
	h.same(e.Details[semantics.DetailPartition], fmt.Sprint(lost))
	gone.Store("")
	d, err := h.newBroker(h.Store).Receive(t.Context(), orders, broker.ReceiveOptions{MaxMessages: 10, MaxWait: time.Minute})
	h.ok(err) // it passes the partition over, and hears when that is back
	h.same(messageIDs(d.Messages), []string{"k"})
}
