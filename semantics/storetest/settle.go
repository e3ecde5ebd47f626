package storetest

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

var settleTests = []ruleTest{
	testSETTLE_1_EveryVerbIsFinal,
	testSETTLE_1_RaceHasOneWinner,
	testSETTLE_2_SecondSettleIsLost,
	testSETTLE_3_CompleteRemovesAndFrees,
	testSETTLE_4_AbandonGivesBackAtOnce,
	testSETTLE_6_DeadLetterTextBounds,
	testSETTLE_6_DeadLetterMoves,
	testSETTLE_8_NoDeadLetterFromTheDeadLetterQueue,
	testSETTLE_10_ReleaseCountsNothing,
	testSETTLE_12_LastAbandonDeadLetters,
	testSETTLE_13_NoSettleWithoutToken,
	testSETTLE_14_ResultPerToken,
	testSETTLE_14_TokenTwiceInOneCall,
	testSETTLE_14_CountBounds,
}

func testSETTLE_1_EveryVerbIsFinal(_ *testing.T, h *fixture) {
	h.create()
	h.sendTexts(6)
	got := h.receive(orders, 6)
	h.complete(orders, got[0])
	h.abandon(orders, got[1])
	h.release(orders, got[2])
	h.deadLetter(got[3])
	h.setAside(orders, got[4])
	h.abandonFor(time.Hour, orders, got[5])
	for _, m := range got {
		h.lost(orders, m)
		h.lost(deadOrders, m)
	}
	h.same(h.counts(), semantics.Runtime{Active: 4, Available: 3, Delayed: 1, Deferred: 1, DeadLetter: 1})
}

func testSETTLE_1_RaceHasOneWinner(t *testing.T, h *fixture) {
	h.races()
	h.create(deliversAtMost(1000))
	for range 10 {
		h.sendTexts(1)
		tokens := tokensOf(h.receiveOne(orders))
		var wins atomic.Int32
		var work sync.WaitGroup
		verbs := []func() ([]semantics.Code, error){
			func() ([]semantics.Code, error) { return h.broker.Complete(t.Context(), orders, tokens) },
			func() ([]semantics.Code, error) { return h.broker.Complete(t.Context(), orders, tokens) },
			func() ([]semantics.Code, error) {
				return h.broker.Abandon(t.Context(), orders, tokens, semantics.AbandonOptions{})
			},
			func() ([]semantics.Code, error) { return h.broker.Release(t.Context(), orders, tokens) },
			func() ([]semantics.Code, error) { return h.broker.Defer(t.Context(), orders, tokens, nil) },
			func() ([]semantics.Code, error) { return h.broker.DeadLetter(t.Context(), orders, tokens, why("", "")) },
		}
		for _, verb := range verbs {
			work.Go(func() {
				switch codes, err := verb(); {
				case err != nil:
					t.Error(err)
				case codes[0] == "":
					wins.Add(1)
				}
			})
		}
		work.Wait()
		h.same(wins.Load(), int32(1))
		r := h.runtime()
		h.same(r.Locked, int64(0))
		h.ok(h.reactivate(orders, h.showing(orders, semantics.ShowDeferred)...))
		if left := h.receive(orders, 1); len(left) > 0 {
			h.complete(orders, left...)
		}
	}
}

func testSETTLE_2_SecondSettleIsLost(_ *testing.T, h *fixture) {
	h.create()
	h.sendTexts(3)
	done, late := h.receiveOne(orders), h.receiveOne(orders)
	h.complete(orders, done)
	h.lost(orders, done)
	h.Advance(lock)
	h.lost(orders, late)
	h.wantCounts(2, 0, 0)
}

func testSETTLE_3_CompleteRemovesAndFrees(_ *testing.T, h *fixture) {
	h.create()
	h.send(sized(100), sized(50))
	h.complete(orders, h.receiveOne(orders))
	h.same(h.runtime().SizeInBytes, int64(50))
	h.wantNumbers(h.peek(orders), 2)
	h.complete(orders, h.receiveOne(orders))
	h.wantCounts(0, 0, 0)
	h.same(h.runtime().SizeInBytes, int64(0))
	h.wantNumbers(h.peek(deadOrders))
}

func testSETTLE_4_AbandonGivesBackAtOnce(_ *testing.T, h *fixture) {
	h.create()
	h.sendTexts(2)
	got := h.receiveOne(orders)
	h.abandon(orders, got)
	h.wantCounts(2, 0, 0)
	again := h.receiveOne(orders)
	h.same([]int64{again.SequenceNumber, int64(again.DeliveryCount)}, []int64{1, 2})
	want, have := *got, *again
	want.DeliveryCount, want.LockToken, want.LockedUntil = have.DeliveryCount, have.LockToken, have.LockedUntil
	h.same(have, want) // nothing else changed
}

func testSETTLE_6_DeadLetterTextBounds(t *testing.T, h *fixture) {
	h.create()
	h.sendTexts(2)
	got := h.receive(orders, 2)
	longest := strings.Repeat("ü", semantics.MaxDeadLetterText)
	for _, texts := range [][2]string{{longest + "x", ""}, {"", longest + "x"}} {
		h.refused(semantics.ArgumentOutOfRange, func() error {
			_, err := h.broker.DeadLetter(t.Context(), orders, tokensOf(got[0]), why(texts[0], texts[1]))
			return err
		})
	}
	h.refused(semantics.InvalidArgument, func() error {
		_, err := h.broker.DeadLetter(t.Context(), orders, tokensOf(got[0]), why("\xff", ""))
		return err
	})
	codes, err := h.broker.DeadLetter(t.Context(), orders, tokensOf(got[0]), why(longest, longest))
	h.settled(codes, err)
	dead := h.peek(deadOrders)[0]
	h.same([]string{dead.DeadLetterReason, dead.DeadLetterErrorDescription}, []string{longest, longest})
	codes, err = h.broker.DeadLetter(t.Context(), orders, tokensOf(got[1]), why("", ""))
	h.settled(codes, err)
}

func testSETTLE_6_DeadLetterMoves(_ *testing.T, h *fixture) {
	h.create()
	h.sendTexts(2)
	got := h.receiveOne(orders)
	h.deadLetter(got)
	h.wantCounts(1, 0, 1)
	h.wantNumbers(h.peek(orders), 2)
	h.wantNumbers(h.peek(deadOrders), 1)
	h.Advance(2 * lock)
	h.wantCounts(1, 0, 1)
}

func testSETTLE_8_NoDeadLetterFromTheDeadLetterQueue(t *testing.T, h *fixture) {
	h.create()
	h.sendTexts(1)
	h.deadLetter(h.receiveOne(orders))
	got := h.receiveOne(deadOrders)
	h.refused(semantics.InvalidOperation, func() error {
		_, err := h.broker.DeadLetter(t.Context(), deadOrders, tokensOf(got), why("again", ""))
		return err
	})
	h.complete(deadOrders, got) // the lock still holds
}

func testSETTLE_10_ReleaseCountsNothing(_ *testing.T, h *fixture) {
	h.create(deliversAtMost(2))
	h.sendTexts(2)
	for range 5 {
		got := h.receiveOne(orders)
		h.same([]int64{got.SequenceNumber, int64(got.DeliveryCount)}, []int64{1, 1})
		h.release(orders, got)
		h.wantCounts(2, 0, 0)
	}
	h.abandon(orders, h.receiveOne(orders))
	for range 3 {
		got := h.receiveOne(orders)
		h.same(got.DeliveryCount, 2) // the stored count stays what it was
		h.release(orders, got)
	}
}

func testSETTLE_12_LastAbandonDeadLetters(_ *testing.T, h *fixture) {
	h.create(deliversAtMost(2))
	h.sendTexts(1)
	h.abandon(orders, h.receiveOne(orders))
	h.wantCounts(1, 0, 0)
	got := h.receiveOne(orders)
	h.abandon(orders, got)
	h.wantCounts(0, 0, 1)
	h.same(h.peek(deadOrders)[0].DeadLetterReason, "MaxDeliveryCountExceeded")
	h.lost(orders, got)
}

func testSETTLE_13_NoSettleWithoutToken(_ *testing.T, h *fixture) {
	h.create()
	h.sendTexts(1)
	row := h.peek(orders)[0]
	_, err := semantics.ParseLockToken("") // what a peeked message carries on the wire
	h.wantCode(err, semantics.InvalidOperation)
	h.lost(orders, row) // and a Store given the zero token finds nothing by it
	h.receiveOne(orders)
	h.lost(orders, row)
}

func testSETTLE_14_ResultPerToken(t *testing.T, h *fixture) {
	verbs := map[string]func([]semantics.LockToken) ([]semantics.Code, error){
		"complete": func(tokens []semantics.LockToken) ([]semantics.Code, error) {
			return h.broker.Complete(t.Context(), orders, tokens)
		},
		"abandon": func(tokens []semantics.LockToken) ([]semantics.Code, error) {
			return h.broker.Abandon(t.Context(), orders, tokens, semantics.AbandonOptions{})
		},
		"release": func(tokens []semantics.LockToken) ([]semantics.Code, error) {
			return h.broker.Release(t.Context(), orders, tokens)
		},
		"defer": func(tokens []semantics.LockToken) ([]semantics.Code, error) {
			return h.broker.Defer(t.Context(), orders, tokens, map[string]semantics.Value{"p": semantics.Null()})
		},
		"deadLetter": func(tokens []semantics.LockToken) ([]semantics.Code, error) {
			return h.broker.DeadLetter(t.Context(), orders, tokens, why("", ""))
		},
	}
	for name, verb := range verbs {
		h.create(deliversAtMost(1000))
		h.sendTexts(4)
		got := h.receive(orders, 4)
		h.complete(orders, got[1])
		codes, err := verb([]semantics.LockToken{got[3].LockToken, got[1].LockToken, semantics.NewLockToken(), got[0].LockToken})
		h.wantCodes(codes, err, "", semantics.MessageLockLost, semantics.MessageLockLost, "")
		r := h.runtime()
		if r.Locked != 1 {
			t.Errorf("%s: %d messages are still locked, want the one that was not named", name, r.Locked)
		}
		h.complete(orders, got[2])
		h.ok(h.Store.DeleteEntity(t.Context(), semantics.QueueKind, "orders"))
	}
}

func testSETTLE_14_TokenTwiceInOneCall(t *testing.T, h *fixture) {
	h.create(deliversAtMost(1000))
	h.sendTexts(5)
	got := h.receive(orders, 5)
	twice := func(m *semantics.Received) []semantics.LockToken { return tokensOf(m, m) }
	codes, err := h.broker.Complete(t.Context(), orders, twice(got[0]))
	h.wantCodes(codes, err, "", semantics.MessageLockLost)
	codes, err = h.broker.Abandon(t.Context(), orders, twice(got[1]), semantics.AbandonOptions{})
	h.wantCodes(codes, err, "", semantics.MessageLockLost)
	codes, err = h.broker.Release(t.Context(), orders, twice(got[2]))
	h.wantCodes(codes, err, "", semantics.MessageLockLost)
	codes, err = h.broker.DeadLetter(t.Context(), orders, twice(got[3]), why("", ""))
	h.wantCodes(codes, err, "", semantics.MessageLockLost)
	codes, err = h.broker.Defer(t.Context(), orders, twice(got[4]), map[string]semantics.Value{"p": semantics.Null()})
	h.wantCodes(codes, err, "", semantics.MessageLockLost)
	h.same(h.counts(), semantics.Runtime{Active: 3, Available: 2, Deferred: 1, DeadLetter: 1})
	rows := h.peek(orders)
	h.same([]int{rows[0].DeliveryCount, rows[1].DeliveryCount, rows[2].DeliveryCount}, []int{1, 0, 0})
}

func testSETTLE_14_CountBounds(t *testing.T, h *fixture) {
	h.create()
	h.sendTexts(semantics.MaxSettleTokens)
	tokens := tokensOf(h.receive(orders, semantics.MaxSettleTokens)...)
	tooMany := append(tokens[:len(tokens):len(tokens)], semantics.NewLockToken())
	h.refused(semantics.ArgumentOutOfRange, func() error {
		_, err := h.broker.Complete(t.Context(), orders, tooMany)
		return err
	})
	h.refused(semantics.InvalidArgument, func() error {
		_, err := h.broker.Abandon(t.Context(), orders, nil, semantics.AbandonOptions{})
		return err
	})
	codes, err := h.broker.DeadLetter(t.Context(), orders, tokens, why("", ""))
	h.settled(codes, err)
	h.wantCounts(0, 0, semantics.MaxSettleTokens)
}
