package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// The transfer dead-letter queue, which is one as the other in all but where its messages come from.
var undeliveredTests = []ruleTest{
	testDLQ_2_TransferDeadLetterPath,
	testDLQ_19_EmptyOneIsThere,
	testDLQ_19_SitsAtTheSource,
	testDLQ_19_KeepsWhatItHad,
	testDLQ_19_TakesAllReceiveVerbs,
	testDLQ_19_Waits,
	testDLQ_19_HasRoomOfItsOwn,
	testDLQ_19_LocksEnd,
	testDLQ_19_StatusOfTheSource,
	testDLQ_19_OptionsOfTheSource,
	testDLQ_3_NoSendToTheTransferDeadLetterQueue,
	testDLQ_4_NoDeadLetterThere,
	testDLQ_22_ResubmitsTransferDeadLetters,
	testDLQ_22_TransferDeadLettersElsewhere,
	testDLQ_22_TransferDeadLettersThatFailAgain,
	testDLQ_22_OfASubscription,
	testPURGE_1_TransferDeadLetters,
	testTTL_19_TransferDeadLetters,
	testENT_8_TakesTransferDeadLettersAlong,
	testENT_9_NoTransferDeadLettersAreBack,
}

// stranded makes orders, which forwards to archive, which takes nothing, and sends texts that so become transfer dead
// letters.
func (h *fixture) stranded(n int, changes ...change) {
	h.t.Helper()
	h.createNamed(archive.Path, hasStatus(semantics.StatusSendDisabled))
	h.create(append(changes, forwardsTo(archive.Path))...)
	h.sendTexts(n)
	h.forward()
}

func (h *fixture) opensArchive() {
	h.t.Helper()
	h.updateNamed(archive, hasStatus(semantics.StatusActive), "status")
}

func testDLQ_2_TransferDeadLetterPath(_ *testing.T, h *fixture) {
	h.same([]string{undelivered(orders).String(), undelivered(eu).String()},
		[]string{"orders/$transfer/$deadletterqueue", "news/Subscriptions/eu/$transfer/$deadletterqueue"})
}

func testDLQ_19_EmptyOneIsThere(t *testing.T, h *fixture) {
	h.create()
	h.createTopic()
	h.createSubscription(eu)
	for _, source := range []semantics.Source{undelivered(orders), undelivered(eu)} {
		h.receiveNone(source)
		h.wantNumbers(h.peek(source))
		h.same(h.purge(source, broker.PurgeOptions{}), int64(0))
		results, _, err := h.broker.Resubmit(t.Context(), source, broker.ResubmitOptions{Numbers: []int64{1}})
		h.ok(err)
		h.same(results, []broker.ResubmitResult{notMoved(1, semantics.MessageNotFound)})
		codes, err := h.broker.Complete(t.Context(), source, []semantics.LockToken{semantics.NewLockToken()})
		h.wantCodes(codes, err, semantics.MessageLockLost)
	}
	h.same(h.counts(), semantics.Runtime{})
	h.same(len(h.listed(semantics.QueueKind, "", 9)), 1)
	h.same(h.listed(semantics.SubscriptionKind, news, 9), []string{eu.Path})
	for _, source := range []semantics.Source{undelivered(archive), undelivered(us)} {
		h.wantCode(second(h.broker.Peek(t.Context(), source, 0, 1, semantics.ShowAll)), semantics.EntityNotFound)
		h.wantCode(second(h.broker.Receive(t.Context(), source, broker.ReceiveOptions{MaxMessages: 1})), semantics.EntityNotFound)
	}
	news := semantics.Source{Path: news, SubQueue: semantics.TransferDeadLetterQueue}
	h.wantCode(second(h.broker.Receive(t.Context(), news, broker.ReceiveOptions{MaxMessages: 1})), semantics.InvalidOperation)
}

func testDLQ_19_SitsAtTheSource(_ *testing.T, h *fixture) {
	h.createTopic()
	for _, source := range []semantics.Source{eu, us} {
		h.createSubscription(source, forwardsTo(archive.Path))
	}
	h.createNamed(attic.Path, forwardsTo(archive.Path))
	h.create(forwardsTo(attic.Path))
	h.createNamed(archive.Path, hasStatus(semantics.StatusDisabled))
	h.publishTexts("a", "b")
	h.sendTexts(1)
	h.forward()
	for source, want := range map[semantics.Source][]string{eu: {"a", "b"}, us: {"a", "b"}, attic: {"m1"}, orders: nil} {
		h.wantIDs(undelivered(source), want...)
		h.wantIDs(deadOf(source))
		h.wantIDs(source)
	}
	h.same(h.runtimeOf(eu), semantics.Runtime{TransferDeadLetter: 2, SizeInBytes: 4})
	h.complete(undelivered(eu), h.receiveOne(undelivered(eu)))
	h.wantIDs(undelivered(eu), "b")
	h.wantIDs(undelivered(us), "a", "b")
}

func testDLQ_19_KeepsWhatItHad(_ *testing.T, h *fixture) {
	h.createNamed(archive.Path)
	h.create()
	sent := &semantics.Message{MessageID: "id", SessionID: "s", Subject: "x", Properties: properties{"p": semantics.Int64(1)}, Body: []byte("b")}
	ttl := time.Hour
	sent.TimeToLive = &ttl
	h.send(text("other"), sent)
	h.abandon(orders, h.takeNumbers(orders, 2)...)
	h.deleteQueue(archive)
	h.forwardTo(archive.Path)
	accepted := h.Now()
	h.Advance(time.Second)
	h.forward()
	m := h.row(undelivered(orders), 2)
	want := semantics.Received{
		Message: *sent, SequenceNumber: 2, EnqueuedSequenceNumber: 2, EnqueuedAt: accepted, ExpiresAt: accepted.Add(ttl), DeliveryCount: 1,
		Size: sent.Size(),
	}
	reason, description := semantics.ReasonDestinationNotFound, m.DeadLetterErrorDescription
	want.SetDeadLetter(semantics.DeadLetterTexts{Reason: &reason, Description: &description}, h.Now())
	h.same(m, &want)
}

func testDLQ_19_TakesAllReceiveVerbs(t *testing.T, h *fixture) {
	h.stranded(6)
	source := undelivered(orders)
	h.wantNumbers(h.peek(source), 1, 2, 3, 4, 5, 6)
	got := h.receive(source, 4)
	h.wantNumbers(got, 1, 2, 3, 4)
	h.same(h.counts(), semantics.Runtime{TransferDeadLetter: 6})
	h.Advance(lock / 2)
	h.same(h.renew(source, got[0]).LockedUntil, h.in(lock))
	h.complete(source, got[0])
	h.abandon(source, got[1])
	h.release(source, got[2])
	h.setAside(source, got[3])
	h.same([]int{h.row(source, 2).DeadLetterDeliveryCount, h.row(source, 2).DeliveryCount}, []int{1, 0}) // DC-7
	taken := h.receiveAs(source, 1, semantics.ReceiveAndDelete)
	h.wantNumbers(taken.Messages, 2)
	h.ok(taken.Delivered(t.Context()))
	h.same(h.deleteNumbers(source, 6), []semantics.Code{""})
	h.wantNumbers(h.takeNumbers(source, 5), 5)
	h.wantNumbers(h.takeDeferred(source, 4), 4)
	h.wantNumbers(h.receive(source, 9), 3)
	h.same(h.counts(), semantics.Runtime{TransferDeadLetter: 3})
	h.wantNumbers(h.peek(orders))
	h.wantNumbers(h.peek(deadOrders))
}

func testDLQ_19_LocksEnd(_ *testing.T, h *fixture) {
	h.stranded(2, locksFor(5*time.Second), deliversAtMost(1))
	source := undelivered(orders)
	got := h.receive(source, 1)
	h.Advance(5 * time.Second)
	h.lost(source, got[0])
	h.wantNumbers(h.receive(source, 9), 1, 2) // what came back first
	h.Advance(5 * time.Second)
	h.same(h.row(source, 1).DeadLetterDeliveryCount, 2)
}

func testDLQ_19_Waits(t *testing.T, h *fixture) {
	h.createNamed(archive.Path, hasStatus(semantics.StatusDisabled))
	h.create(forwardsTo(archive.Path))
	s := h.newSidecar(h.Store)
	first, second := s.waiting(t.Context(), undelivered(orders), 9), s.waiting(t.Context(), undelivered(orders), 9)
	h.sendTexts(1)
	h.forward()
	o := first
	select {
	case done := <-first:
		h.ok(done.err)
		h.wantNumbers(done.delivery.Messages, 1)
		o = second
	case done := <-second:
		h.ok(done.err)
		h.wantNumbers(done.delivery.Messages, 1)
	case <-time.After(patience):
		t.Fatal("no waiter was woken")
	}
	h.setStatus(semantics.StatusDisabled)
	h.wantCode(h.await(o).err, semantics.EntityDisabled)
}

// It may hold as much as the queue itself. Messages beyond that stay in transfer.
func testDLQ_19_HasRoomOfItsOwn(t *testing.T, h *fixture) {
	h.createNamed(archive.Path, hasStatus(semantics.StatusDisabled))
	h.create(forwardsTo(archive.Path), megabytes(1))
	for range 4 {
		h.send(sized(250 << 10))
	}
	h.forward()
	h.same(h.counts(), semantics.Runtime{TransferDeadLetter: 4})
	for range 4 { // as many again fit
		h.send(sized(250 << 10))
	}
	h.wantCode(h.broker.Forward(t.Context(), orders), semantics.EntityFull)
	h.same(h.counts(), semantics.Runtime{Transfer: 4, TransferDeadLetter: 4})
	h.same(h.runtime().SizeInBytes, int64(2000<<10))
	h.complete(undelivered(orders), h.receive(undelivered(orders), 4)...)
	h.forward()
	h.same(h.counts(), semantics.Runtime{TransferDeadLetter: 4})
	h.same(h.runtime().SizeInBytes, int64(1000<<10))
	h.forwardTo("")
	h.send(sized(800 << 10))
	results, _, err := h.broker.Resubmit(t.Context(), undelivered(orders), broker.ResubmitOptions{Numbers: []int64{8}})
	h.ok(err)
	// since it was none of the size of the queue
	h.same(results, []broker.ResubmitResult{notMoved(8, semantics.EntityFull)})
}

func testDLQ_19_StatusOfTheSource(t *testing.T, h *fixture) {
	h.stranded(2)
	got := h.receiveOne(undelivered(orders))
	for _, status := range allStatuses {
		h.setStatus(status)
		want := semantics.Code("")
		if !status.CanReceive() {
			want = semantics.EntityDisabled
		}
		_, err := h.broker.Peek(t.Context(), undelivered(orders), 0, 1, semantics.ShowAll)
		h.wantCode(err, want)
		_, _, err = h.broker.Resubmit(t.Context(), undelivered(orders), broker.ResubmitOptions{Numbers: []int64{99}, Target: orders.Path})
		if want == "" && !status.CanSend() {
			want = semantics.EntityDisabled
		}
		h.wantCode(err, want)
		h.renew(undelivered(orders), got)
	}
	h.complete(undelivered(orders), got)
}

func testDLQ_19_OptionsOfTheSource(_ *testing.T, h *fixture) {
	h.stranded(3, locksFor(10*time.Second))
	source := undelivered(orders)
	h.same(h.receiveOne(source).LockedUntil, h.in(10*time.Second))
	h.update(locksFor(20*time.Second), "lockDuration")
	h.same(h.receiveOne(source).LockedUntil, h.in(20*time.Second))
	h.update(delaysFor(time.Hour), "redeliveryDelay")
	m := h.receiveOne(source)
	h.abandon(source, m) // which dead letters do not have
	h.wantNumbers(h.receive(source, 9), m.SequenceNumber)
}

func testDLQ_3_NoSendToTheTransferDeadLetterQueue(t *testing.T, h *fixture) {
	h.create()
	for _, address := range []string{undelivered(orders).String(), "ORDERS/$Transfer/$DeadLetterQueue", `orders\$transfer\$deadletterqueue`} {
		err := h.refused(semantics.InvalidOperation, func() error {
			return second(h.broker.Send(t.Context(), semantics.ToQueue(address), []*semantics.Message{text("a")}))
		})
		h.same(err.Details[semantics.DetailSubQueue], "TRANSFER_DEAD_LETTER")
	}
}

func testDLQ_4_NoDeadLetterThere(t *testing.T, h *fixture) {
	h.stranded(1, livesFor(5*time.Second), deliversAtMost(1), buriesExpired)
	got := h.receiveOne(undelivered(orders))
	h.wantCode(second(h.broker.DeadLetter(t.Context(), undelivered(orders), tokensOf(got), why("", ""))), semantics.InvalidOperation)
	for range 3 {
		h.Advance(lock)
		h.abandon(undelivered(orders), h.receiveOne(undelivered(orders)))
	}
	h.same(h.counts(), semantics.Runtime{TransferDeadLetter: 1})
}

func testDLQ_22_ResubmitsTransferDeadLetters(t *testing.T, h *fixture) {
	h.stranded(3)
	h.opensArchive()
	results, more, err := h.broker.Resubmit(t.Context(), undelivered(orders), broker.ResubmitOptions{})
	h.ok(err)
	h.same([]any{results, more}, []any{moved([2]int64{1, 4}, [2]int64{2, 5}, [2]int64{3, 6}), false})
	h.same(h.counts(), semantics.Runtime{Active: 3, Available: 3})
	h.forward()
	for i, m := range h.receive(archive, 9) {
		h.same([]any{m.MessageID, m.EnqueuedSequenceNumber, m.DeadLetterReason}, []any{fmt.Sprintf("m%d", i+1), int64(i + 4), ""})
	}
	h.same(h.countsOf(archive).Locked, int64(3))
}

func testDLQ_22_TransferDeadLettersElsewhere(t *testing.T, h *fixture) {
	h.stranded(3)
	h.createNamed(attic.Path, holdsAtMost(2))
	source := undelivered(orders)
	locked := h.receiveOne(source)
	results, _, err := h.broker.Resubmit(t.Context(), source, broker.ResubmitOptions{Target: attic.Path})
	h.ok(err)
	h.same(results, moved([2]int64{2, 1}, [2]int64{3, 2}))
	h.release(source, locked)
	results, _, err = h.broker.Resubmit(t.Context(), source, broker.ResubmitOptions{Target: attic.Path})
	h.ok(err)
	h.same(results, []broker.ResubmitResult{notMoved(1, semantics.EntityFull)})
	h.wantIDs(attic, "m2", "m3")
	h.wantIDs(source, "m1")
}

// They come back under new numbers, and the call ends all the same.
func testDLQ_22_TransferDeadLettersThatFailAgain(t *testing.T, h *fixture) {
	h.stranded(3)
	again := func(*semantics.Received) (bool, error) {
		h.forward() // as others do meanwhile
		return true, nil
	}
	results, _, err := h.broker.Resubmit(t.Context(), undelivered(orders), broker.ResubmitOptions{Matches: again})
	h.ok(err)
	h.same(len(results), 3)
	h.forward()
	h.wantNumbers(h.peek(undelivered(orders)), 4, 5, 6)
}

func testDLQ_22_OfASubscription(t *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscription(us)
	h.createSubscription(eu, forwardsTo(archive.Path))
	h.createNamed(archive.Path, hasStatus(semantics.StatusDisabled))
	h.publishTexts("a", "b")
	h.forward()
	h.opensArchive()
	results, _, err := h.broker.Resubmit(t.Context(), undelivered(eu), broker.ResubmitOptions{})
	h.ok(err)
	h.same(results, moved([2]int64{1, 3}, [2]int64{2, 4}))
	h.forward()
	h.wantIDs(archive, "a", "b")
	h.wantIDs(us, "a", "b")
	h.same(h.runtimeOf(eu), semantics.Runtime{})
}

func testPURGE_1_TransferDeadLetters(_ *testing.T, h *fixture) {
	h.stranded(4)
	h.Advance(time.Second)
	h.setAside(undelivered(orders), h.receiveOne(undelivered(orders)))
	locked := h.receiveOne(undelivered(orders))
	h.same(h.purge(orders, broker.PurgeOptions{DeadLetters: true, Deferred: true}), int64(0)) // those are others
	h.same(h.purge(undelivered(orders), broker.PurgeOptions{DeadLetters: true}), int64(2))
	h.same(h.purge(undelivered(orders), broker.PurgeOptions{Deferred: true, Scheduled: true}), int64(1))
	h.wantNumbers(h.peek(undelivered(orders)), locked.SequenceNumber)
	h.same(h.runtime().SizeInBytes, locked.Size)
}

func testTTL_19_TransferDeadLetters(_ *testing.T, h *fixture) {
	h.stranded(2, keepsDeadFor(10*time.Second))
	h.Advance(10*time.Second - ms)
	locked := h.receiveOne(undelivered(orders))
	h.Advance(ms)
	h.wantNumbers(h.peek(undelivered(orders)), 1)
	h.release(undelivered(orders), locked)
	h.wantNumbers(h.peek(undelivered(orders)))
	h.same(h.runtime(), semantics.Runtime{})
	h.update(keepsDeadFor(5*time.Second), "deadLetterTtl")
	h.sendTexts(1)
	h.forward()
	h.Advance(5*time.Second - ms)
	h.same(h.counts(), semantics.Runtime{TransferDeadLetter: 1})
	h.Advance(ms)
	h.receiveNone(undelivered(orders))
	h.same(h.counts(), semantics.Runtime{})
}

func testENT_8_TakesTransferDeadLettersAlong(t *testing.T, h *fixture) {
	h.stranded(2)
	locked := h.receiveOne(undelivered(orders))
	s := h.newSidecar(h.Store)
	h.complete(undelivered(orders), h.receiveOne(undelivered(orders)))
	done := s.waiting(t.Context(), undelivered(orders), 1)
	h.drop()
	h.wantCode(h.await(done).err, semantics.EntityNotFound)
	codes, err := h.broker.Complete(t.Context(), undelivered(orders), tokensOf(locked))
	h.wantCode(err, semantics.EntityNotFound)
	h.same(len(codes), 0)
}

func testENT_9_NoTransferDeadLettersAreBack(_ *testing.T, h *fixture) {
	h.stranded(2)
	locked := h.receiveOne(undelivered(orders))
	h.sendTexts(1)
	h.begin(orders, archive.Path, 9)
	h.drop()
	h.create(forwardsTo(archive.Path))
	h.same(h.runtime(), semantics.Runtime{})
	h.wantNumbers(h.peek(undelivered(orders)))
	h.lost(undelivered(orders), locked)
	h.sendTexts(1)
	h.forward()
	h.wantNumbers(h.peek(undelivered(orders)), 1)
	h.createTopic()
	h.createSubscription(eu, forwardsTo(archive.Path))
	h.publishTexts("a")
	h.forward()
	h.wantIDs(undelivered(eu), "a")
	h.deleteTopic()
	h.createTopic()
	h.createSubscription(eu)
	h.wantIDs(undelivered(eu))
	h.deleteSubscription(eu)
	h.createSubscription(eu)
	h.wantIDs(undelivered(eu))
}
