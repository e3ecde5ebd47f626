package storetest

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

var countEveryStateTests = []ruleTest{
	testCNT_1_EveryState,
	testCNT_1_Times,
	testCNT_2_OldestOfTheMainQueue,
	testCNT_2_LastSequence,
	testCNT_4_PartsSumUpWhateverHappens,
	testRECV_4_NothingLeavesUnasked,
	testQUOTA_12_EveryRemovalFreesAtOnce,
}

func testCNT_1_EveryState(_ *testing.T, h *fixture) {
	h.oneOfEach()
	r := h.runtime()
	h.same(r, semantics.Runtime{
		Active: 4, Available: 2, Delayed: 1, Locked: 1, Deferred: 1, Scheduled: 1, DeadLetter: 3, SizeInBytes: 8 * 2,
		OldestEnqueuedAt: h.in(-ms), AvailableSince: h.in(-ms),
	})
	h.same(r.Total(), int64(8))
}

func testCNT_2_OldestOfTheMainQueue(_ *testing.T, h *fixture) {
	h.create()
	h.send(later("a", h.in(5*ms))) // it is not enqueued yet
	h.same(h.runtime().OldestEnqueuedAt, time.Time{})
	h.Advance(ms)
	second := h.Now()
	h.sendTexts(2)
	h.Advance(4 * ms)
	h.setAside(orders, h.receiveOne(orders))
	h.same(h.runtime().OldestEnqueuedAt, second) // a deferred one is there too
	h.deadLetter(h.takeDeferred(orders, 2)...)
	h.complete(orders, h.receiveOne(orders))
	h.same(h.runtime().OldestEnqueuedAt, h.Now())
}

// It grows with what is accepted and with what is activated, and nothing that leaves lowers it.
func testCNT_2_LastSequence(t *testing.T, h *fixture) {
	last := func(kind semantics.Kind, path string) int64 {
		t.Helper()
		r, err := h.broker.Runtime(t.Context(), kind, path)
		h.ok(err)
		return r.LastSequence
	}
	h.create()
	h.same(last(semantics.QueueKind, orders.Path), int64(0))
	h.sendTexts(3)
	h.same(last(semantics.QueueKind, orders.Path), int64(3))
	h.complete(orders, h.receiveOne(orders))
	h.deadLetter(h.receiveOne(orders))
	h.same(last(semantics.QueueKind, orders.Path), int64(3))
	h.send(later("a", h.in(5*ms)))
	h.same(last(semantics.QueueKind, orders.Path), int64(4))
	h.Advance(5 * ms)
	h.same(len(h.receive(orders, 2)), 2)
	h.same(last(semantics.QueueKind, orders.Path), int64(5))
}

// A property test with fixed seeds: whatever was done, the counts are those of what can be seen.
func testCNT_4_PartsSumUpWhateverHappens(_ *testing.T, h *fixture) {
	h.create(buriesExpired, deliversAtMost(3), locksFor(5000*ms), delaysFor(500*ms))
	random := rand.New(rand.NewPCG(4, 2))
	var held [2][]*semantics.Received
	take := func(n int) semantics.Source {
		source := []semantics.Source{orders, orders, orders, deadOrders}[random.IntN(4)]
		held[source.SubQueue] = append(held[source.SubQueue], h.receive(source, n)...)
		return source
	}
	someHeld := func(sub semantics.SubQueue) []semantics.LockToken {
		random.Shuffle(len(held[sub]), func(i, j int) { held[sub][i], held[sub][j] = held[sub][j], held[sub][i] })
		some := held[sub][:min(len(held[sub]), 2)]
		held[sub] = held[sub][len(some):]
		if len(some) == 0 {
			return []semantics.LockToken{semantics.NewLockToken()}
		}
		return tokensOf(some...)
	}
	ctx := h.t.Context()
	ops := []func(){
		func() { h.send(text("a"), lasting("b", 1000*ms), later("c", h.in(2000*ms))) },
		func() { h.send(text("d"), text("e")) },
		func() { take(2) },
		func() { take(3) },
		func() { source := take(1); _, _ = h.broker.Complete(ctx, source, someHeld(source.SubQueue)) },
		func() {
			source := take(1)
			delay := time.Duration(random.IntN(2)) * time.Second
			_, _ = h.broker.Abandon(ctx, source, someHeld(source.SubQueue), semantics.AbandonOptions{
				Delay: &delay, Properties: map[string]semantics.Value{"p": semantics.Int64(1)},
			})
		},
		func() { source := take(1); _, _ = h.broker.Defer(ctx, source, someHeld(source.SubQueue), nil) },
		func() { source := take(1); _, _ = h.broker.Release(ctx, source, someHeld(source.SubQueue)) },
		func() { take(1); _, _ = h.broker.DeadLetter(ctx, orders, someHeld(semantics.MainQueue), why("a", "b")) },
		func() { h.Advance(time.Duration(random.IntN(2500)) * ms) },
		func() {
			h.purge(orders, broker.PurgeOptions{MaxMessages: 1, Deferred: random.IntN(2) == 0, Scheduled: true})
		},
		func() { _, _, _ = h.broker.Resubmit(ctx, deadOrders, broker.ResubmitOptions{Max: 1}) },
		func() { _ = h.reactivate(orders, h.showing(orders, semantics.ShowDeferred)...) },
	}
	for range 300 {
		ops[random.IntN(len(ops))]()
		h.checkCounts()
	}
}

// checkCounts compares the counts of orders with what peek shows.
func (h *fixture) checkCounts() {
	h.t.Helper()
	group := func(source semantics.Source, show semantics.Show) int64 { return int64(len(h.showing(source, show))) }
	r := h.runtime()
	h.same(h.counts(), semantics.Runtime{
		Active:    group(orders, semantics.ShowAll&^semantics.ShowScheduled),
		Available: group(orders, semantics.ShowAvailable), Locked: group(orders, semantics.ShowLocked),
		Deferred: group(orders, semantics.ShowDeferred), Scheduled: group(orders, semantics.ShowScheduled),
		DeadLetter: group(deadOrders, semantics.ShowAll), Delayed: r.Delayed,
	})
	bytes, delayed := int64(0), int64(0)
	for _, m := range append(h.peek(orders), h.peek(deadOrders)...) {
		bytes += m.Size
		if m.DeadLetteredAt.IsZero() && m.State == semantics.Active && !m.VisibleAt.IsZero() {
			delayed++
		}
	}
	h.same([]int64{r.SizeInBytes, r.Delayed}, []int64{bytes, delayed})
}

func testRECV_4_NothingLeavesUnasked(_ *testing.T, h *fixture) {
	h.create(deliversAtMost(1000), delaysFor(100*ms))
	h.sendTexts(5)
	h.send(later("6", h.in(1000*ms)))
	for range 5 {
		got := h.receive(orders, 5)
		h.abandonFor(50*ms, orders, got[0])
		h.setAside(orders, got[1:3]...)
		h.ok(h.reactivate(orders, got[1].SequenceNumber))
		h.release(orders, h.takeDeferred(orders, got[2].SequenceNumber)...)
		h.ok(h.reactivate(orders, got[2].SequenceNumber))
		h.abandon(orders, got[3])
		h.deadLetter(got[4])
		h.setAside(deadOrders, h.receiveOne(deadOrders))
		h.Advance(lock)
		h.abandon(deadOrders, h.takeDeferred(deadOrders, got[4].SequenceNumber)...)
		h.resubmit(broker.ResubmitOptions{})
		h.same(h.counts(), semantics.Runtime{Active: 6, Available: 6})
	}
}

func testQUOTA_12_EveryRemovalFreesAtOnce(_ *testing.T, h *fixture) {
	removals := map[string]func(){
		"delete by number": func() { h.deleteNumbers(orders, 1) },
		"purge":            func() { h.purge(orders, broker.PurgeOptions{}) },
		"purge deferred": func() {
			h.setAside(orders, h.receiveOne(orders))
			h.purge(orders, broker.PurgeOptions{Deferred: true})
		},
		"purge dead letters":  func() { h.deadLetter(h.receiveOne(orders)); h.purge(deadOrders, broker.PurgeOptions{}) },
		"delete dead letters": func() { h.deadLetter(h.receiveOne(orders)); h.deleteNumbers(deadOrders, 1) },
		"complete deferred": func() {
			h.setAside(orders, h.receiveOne(orders))
			h.complete(orders, h.takeDeferred(orders, 1)...)
		},
		"resubmit elsewhere": func() {
			h.deadLetter(h.receiveOne(orders))
			h.resubmit(broker.ResubmitOptions{Target: "other"})
		},
	}
	h.createNamed("other", func(o *semantics.Options) { o.MaxMessageSizeInKilobytes = 1024 })
	for name, remove := range removals {
		h.create(megabytes(1))
		h.send(sized(mebibyte))
		h.Advance(ms)
		remove()
		if _, err := h.broker.Send(h.t.Context(), semantics.ToQueue("orders"), []*semantics.Message{sized(mebibyte)}); err != nil {
			h.t.Errorf("%s: %v", name, err)
		}
		h.drop()
	}
}

// The times of an entity are told with its counts, as they are told with its options.
func testCNT_1_Times(t *testing.T, h *fixture) {
	h.create()
	h.createNews()
	h.Advance(time.Second)
	h.update(livesFor(time.Hour), "defaultMessageTimeToLive")
	h.Advance(time.Second)
	h.sendTexts(1)
	h.publish(text("a"))
	h.Advance(time.Second)
	for path, kind := range map[string]semantics.Kind{orders.Path: semantics.QueueKind, news: semantics.TopicKind, eu.Path: semantics.SubscriptionKind} {
		entity, err := h.Store.GetEntity(t.Context(), kind, path)
		h.ok(err)
		counts, err := h.Store.Runtime(t.Context(), kind, path)
		h.ok(err)
		h.same([]time.Time{counts.CreatedAt, counts.UpdatedAt, counts.AccessedAt}, []time.Time{entity.CreatedAt, entity.UpdatedAt, entity.AccessedAt})
		h.same(entity.CreatedAt.IsZero(), false)
		if kind == semantics.QueueKind {
			h.same([]time.Duration{counts.UpdatedAt.Sub(counts.CreatedAt), counts.AccessedAt.Sub(counts.CreatedAt)}, []time.Duration{time.Second, 2 * time.Second})
		}
	}
}
