package storetest

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

var purgeTests = []ruleTest{
	testPURGE_1_OldestFirst,
	testPURGE_1_BeforeAnInstant,
	testPURGE_1_Bounds,
	testPURGE_2_LockedStay,
	testPURGE_2_AgainstReceivers,
	testPURGE_3_NothingToDelete,
	testPURGE_4_OnlyWhatWasThereBefore,
	testPURGE_4_MoreThanOneStep,
	testPURGE_5_AvailableOnlyByDefault,
	testPURGE_5_Include,
	testPURGE_6_DeadLetters,
	testPURGE_8_WithoutATrace,
	testPURGE_9_DeleteBySequence,
	testPURGE_9_DeleteBySequenceBounds,
	testPURGE_9_ReceiveBySequence,
	testPURGE_9_ReceiveBySequenceAllOrNone,
	testPURGE_9_ReceiveBySequenceOfDeadLetters,
}

func testPURGE_1_OldestFirst(_ *testing.T, h *fixture) {
	h.create()
	h.sendTexts(12)
	h.Advance(ms)
	h.same(h.purge(orders, broker.PurgeOptions{MaxMessages: 3}), int64(3))
	h.wantNumbers(h.peek(orders), 4, 5, 6, 7, 8, 9, 10, 11, 12)
	got := h.receive(orders, 7)
	h.abandon(orders, got[1]) // 5 comes back to its place
	h.same(h.purge(orders, broker.PurgeOptions{MaxMessages: 2}), int64(2))
	h.wantNumbers(h.peek(orders), 4, 6, 7, 8, 9, 10, 12)
	h.same(h.purge(orders, broker.PurgeOptions{MaxMessages: 4000}), int64(1))
	h.same(h.counts(), semantics.Runtime{Active: 6, Locked: 6})
}

func testPURGE_1_BeforeAnInstant(_ *testing.T, h *fixture) {
	h.create()
	h.sendTexts(2)
	h.Advance(5 * ms)
	h.sendTexts(2)
	h.Advance(5 * ms)
	h.same(h.purge(orders, broker.PurgeOptions{Before: h.in(-10 * ms)}), int64(0))
	// not what was enqueued at the instant
	h.same(h.purge(orders, broker.PurgeOptions{Before: h.in(-5 * ms)}), int64(2))
	h.wantNumbers(h.peek(orders), 3, 4)
	h.same(h.purge(orders, broker.PurgeOptions{Before: h.in(-5*ms + ms)}), int64(2))
}

func testPURGE_1_Bounds(t *testing.T, h *fixture) {
	h.create()
	h.sendTexts(1)
	h.Advance(ms)
	for _, n := range []int{-1, 4001} {
		h.refused(semantics.ArgumentOutOfRange, func() error {
			_, err := h.broker.Purge(t.Context(), orders, broker.PurgeOptions{MaxMessages: n})
			return err
		})
	}
	result, err := h.broker.Purge(t.Context(), orders, broker.PurgeOptions{MaxMessages: 4000})
	h.ok(err)
	h.same(result, broker.PurgeResult{Deleted: 1, Before: h.Now()})
	h.same(h.accessed(), h.Now())
}

func testPURGE_2_LockedStay(_ *testing.T, h *fixture) {
	h.create()
	h.sendTexts(3)
	got := h.receive(orders, 2)
	h.Advance(ms)
	h.same(h.purge(orders, broker.PurgeOptions{Deferred: true}), int64(1))
	h.complete(orders, got[0])
	h.abandon(orders, got[1])
	h.same(h.purge(orders, broker.PurgeOptions{}), int64(1))
	h.lost(orders, got[1])
	h.Advance(2 * lock)
	h.same(h.runtime(), semantics.Runtime{}) // nor does the end of its lock bring it back
}

func testPURGE_2_AgainstReceivers(t *testing.T, h *fixture) {
	h.races()
	h.create()
	const messages, receivers = 300, 4
	h.sendTexts(messages)
	h.Advance(ms)
	brokers := h.sidecars()
	var taken, purged atomic.Int64
	var work sync.WaitGroup
	for i := range receivers {
		work.Go(func() {
			for {
				delivery, err := brokers[i%len(brokers)].Receive(t.Context(), orders, broker.ReceiveOptions{MaxMessages: 3})
				if err != nil {
					t.Error(err)
					return
				}
				if len(delivery.Messages) == 0 {
					return
				}
				codes, err := brokers[i%len(brokers)].Complete(t.Context(), orders, tokensOf(delivery.Messages...))
				for _, code := range codes {
					if code != "" {
						t.Errorf("a message that was received could not be completed: %s", code)
					}
				}
				if err != nil {
					t.Error(err)
				}
				taken.Add(int64(len(codes)))
			}
		})
		work.Go(func() {
			for {
				result, err := brokers[i%len(brokers)].Purge(t.Context(), orders, broker.PurgeOptions{MaxMessages: 5})
				if err != nil {
					t.Error(err)
				}
				if purged.Add(result.Deleted); result.Deleted == 0 || err != nil {
					return
				}
			}
		})
	}
	work.Wait()
	h.same(taken.Load()+purged.Load(), int64(messages)) // each to exactly one of them
	h.same(h.runtime(), semantics.Runtime{})
}

func testPURGE_3_NothingToDelete(_ *testing.T, h *fixture) {
	h.create()
	everything := broker.PurgeOptions{Deferred: true, Scheduled: true, DeadLetters: true}
	h.same(h.purge(orders, everything), int64(0))
	h.same(h.purge(deadOrders, everything), int64(0))
}

func testPURGE_4_OnlyWhatWasThereBefore(t *testing.T, h *fixture) {
	h.create()
	h.sendTexts(1)
	h.Advance(ms)
	h.sendTexts(1) // in the very millisecond in which the purge starts
	result, err := h.broker.Purge(t.Context(), orders, broker.PurgeOptions{})
	h.ok(err)
	h.same(result, broker.PurgeResult{Deleted: 1, Before: h.Now()})
	h.wantNumbers(h.peek(orders), 2)
	h.Advance(ms)
	h.same(h.purge(orders, broker.PurgeOptions{Before: result.Before}), int64(0)) // it goes on from where it began
	h.wantNumbers(h.peek(orders), 2)
}

func testPURGE_4_MoreThanOneStep(_ *testing.T, h *fixture) {
	h.create()
	const many = 1300 // more than a store may want to remove in one step
	h.sendTexts(many)
	h.deadLetter(h.receive(orders, 700)...)
	h.setAside(orders, h.receive(orders, 300)...)
	h.Advance(ms)
	h.sendTexts(1)
	h.same(h.purge(orders, broker.PurgeOptions{MaxMessages: 1200, Deferred: true, DeadLetters: true}), int64(1200))
	h.same(h.purge(orders, broker.PurgeOptions{Deferred: true, DeadLetters: true}), int64(100))
	h.same(h.counts(), semantics.Runtime{Active: 1, Available: 1})
}

// oneOfEach makes orders with one message in each state: 1 available, 2 locked, 3 deferred, 4 scheduled, 5 delayed, and
// among the dead letters 6 available, 7 locked, 8 deferred. All but the locks were there a millisecond ago.
func (h *fixture) oneOfEach() {
	h.t.Helper()
	h.create()
	batch := make([]*semantics.Message, 8)
	for i := range batch {
		batch[i] = text("m")
	}
	batch[3].ScheduledAt = h.in(time.Hour)
	h.send(batch...)
	h.setAside(orders, h.takeNumbers(orders, 3)...)
	h.abandonFor(time.Hour, orders, h.takeNumbers(orders, 5)...)
	h.deadLetter(h.takeNumbers(orders, 6, 7, 8)...)
	h.setAside(deadOrders, h.takeNumbers(deadOrders, 8)...)
	h.Advance(ms)
	h.takeNumbers(orders, 2)
	h.takeNumbers(deadOrders, 7)
}

func testPURGE_5_AvailableOnlyByDefault(_ *testing.T, h *fixture) {
	h.oneOfEach()
	h.same(h.purge(orders, broker.PurgeOptions{}), int64(2)) // the delayed one is available, but not yet visible
	h.wantNumbers(h.peek(orders), 2, 3, 4)
	h.wantNumbers(h.peek(deadOrders), 6, 7, 8)
}

func testPURGE_5_Include(_ *testing.T, h *fixture) {
	for _, c := range []struct {
		source     semantics.Source
		options    broker.PurgeOptions
		main, dead []int64
	}{
		{orders, broker.PurgeOptions{Deferred: true}, []int64{2, 4}, []int64{6, 7, 8}},
		{orders, broker.PurgeOptions{Scheduled: true}, []int64{2, 3}, []int64{6, 7, 8}},
		{orders, broker.PurgeOptions{DeadLetters: true}, []int64{2, 3, 4}, []int64{7, 8}},
		{orders, broker.PurgeOptions{DeadLetters: true, Deferred: true}, []int64{2, 4}, []int64{7}},
		{orders, broker.PurgeOptions{DeadLetters: true, Deferred: true, Scheduled: true}, []int64{2}, []int64{7}},
		{deadOrders, broker.PurgeOptions{}, []int64{1, 2, 3, 4, 5}, []int64{7, 8}},
		{deadOrders, broker.PurgeOptions{DeadLetters: true, Deferred: true, Scheduled: true}, []int64{1, 2, 3, 4, 5}, []int64{7}},
	} {
		h.oneOfEach()
		h.same(h.purge(c.source, c.options), int64(8-len(c.main)-len(c.dead)))
		h.same(numbersOf(h.peek(orders)), c.main)
		h.same(numbersOf(h.peek(deadOrders)), c.dead)
		h.runtime()
		h.drop()
	}
}

func testPURGE_6_DeadLetters(_ *testing.T, h *fixture) {
	h.create()
	h.deadLetterTexts("a", "b", "c")
	h.Advance(ms)
	h.same(h.purge(deadOrders, broker.PurgeOptions{Before: h.in(-ms)}), int64(0)) // by EnqueuedTime, as anywhere
	h.same(h.purge(deadOrders, broker.PurgeOptions{MaxMessages: 2}), int64(2))
	h.same(h.runtime().SizeInBytes, int64(2))
	h.same(h.purge(deadOrders, broker.PurgeOptions{}), int64(1))
	h.same(h.runtime(), semantics.Runtime{})
}

func testPURGE_8_WithoutATrace(_ *testing.T, h *fixture) {
	h.create(buriesExpired, holdsAtMost(2), detectsDuplicates)
	h.send(lasting("a", time.Hour), later("b", h.in(time.Hour)))
	h.refusedSend(semantics.EntityFull, text("c"))
	h.Advance(ms)
	h.same(h.purge(orders, broker.PurgeOptions{Scheduled: true}), int64(2))
	h.same(h.runtime(), semantics.Runtime{}) // no dead letters, and the bytes are free
	h.same(h.sendAll(text("a"), text("b"), text("c"), text("d")), []semantics.Stored{duplicate(1), duplicate(2), stored(3), stored(4)})
	h.Advance(time.Hour)
	h.same(h.counts(), semantics.Runtime{Active: 2, Available: 2})
}

func testPURGE_9_DeleteBySequence(_ *testing.T, h *fixture) {
	const missing = semantics.MessageNotFound
	h.oneOfEach()
	h.same(h.deleteNumbers(orders, 5, 1, 2, 3, 4, 6, 99, 1), []semantics.Code{"", "", missing, "", missing, missing, missing, missing})
	h.wantNumbers(h.peek(orders), 2, 4)
	h.same(h.deleteNumbers(deadOrders, 8, 7, 6, 2), []semantics.Code{"", missing, "", missing})
	h.wantNumbers(h.peek(deadOrders), 7)
	h.same(h.runtime().SizeInBytes, int64(3*2))
	h.same(h.accessed(), h.Now())
	h.Advance(lock)
	h.same(h.deleteNumbers(orders, 2), []semantics.Code{""}) // whose lock has ended
}

func testPURGE_9_DeleteBySequenceBounds(t *testing.T, h *fixture) {
	h.create()
	h.sendTexts(251)
	all := make([]int64, 251)
	for i := range all {
		all[i] = int64(i + 1)
	}
	for code, bad := range map[semantics.Code][][]int64{semantics.InvalidArgument: {nil}, semantics.ArgumentOutOfRange: {all, {0}, {1, -1}}} {
		for _, numbers := range bad {
			h.refused(code, func() error {
				_, err := h.broker.DeleteBySequence(t.Context(), orders, numbers)
				return err
			})
		}
	}
	h.deleteNumbers(orders, all[:250]...)
	h.wantNumbers(h.peek(orders), 251)
}

func testPURGE_9_ReceiveBySequence(_ *testing.T, h *fixture) {
	h.create(locksFor(7000 * ms))
	h.sendTexts(12)
	h.Advance(ms)
	got := h.takeNumbers(orders, 11, 2, 12)
	h.same([]any{got[0].DeliveryCount, got[0].State, got[0].LockedUntil}, []any{1, semantics.Active, h.in(7000 * ms)})
	h.wantNumbers(h.receive(orders, 3), 1, 3, 4) // the rest keeps its order
	h.complete(orders, got[0])
	h.abandon(orders, got[1])
	h.wantNumbers(h.receive(orders, 2), 2, 5)
	h.Advance(7000 * ms)
	h.wantNumbers(h.receive(orders, 20), 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12)
}

func testPURGE_9_ReceiveBySequenceAllOrNone(_ *testing.T, h *fixture) {
	h.oneOfEach()
	for _, number := range []int64{2, 3, 4, 6, 99} {
		h.refused(semantics.MessageNotFound, func() error {
			err := h.receiveNumbers(orders, 1, number, 5)
			h.wantMissing(err, int64Text(number))
			return err
		})
	}
	h.takeNumbers(orders, 5, 1)
	delivery, err := h.broker.ReceiveBySequence(h.t.Context(), orders, nil, semantics.PeekLock)
	h.ok(err)
	h.wantNumbers(delivery.Messages)
	h.drop()
	h.create()
	h.send(lasting("a", 1000*ms), text("b"))
	h.Advance(1000 * ms)
	h.wantMissing(h.receiveNumbers(orders, 1, 2), "1") // it has expired
	h.takeNumbers(orders, 2)
}

func testPURGE_9_ReceiveBySequenceOfDeadLetters(_ *testing.T, h *fixture) {
	h.create()
	h.deadLetterTexts("a", "b", "c")
	got := h.takeNumbers(deadOrders, 3, 1)
	h.same(got[0].DeadLetterReason, "poison")
	h.complete(deadOrders, got[0])
	h.abandon(deadOrders, got[1])
	h.wantNumbers(h.receive(deadOrders, 9), 1, 2)
	h.wantMissing(h.receiveNumbers(deadOrders, 1, 3), "1,3")
}
