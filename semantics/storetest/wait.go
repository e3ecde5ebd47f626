package storetest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/broker/delivery"
)

var waitTests = []ruleTest{
	testRECV_5_WaitsForTheFirstMessage,
	testRECV_5_WaitOnTheDeadLetterQueue,
	testRECV_5_EmptyWhenTheWaitEnds,
	testRECV_5_WaitSeesTheEndOfALock,
	testRECV_5_FoundAtOnceDoesNotWait,
	testRECV_7_CancelledWaitLeavesNothingLocked,
	testRECV_7_CancelAgainstSend,
	testRECV_7_UndeliveredWakes,
	testSETTLE_4_AbandonWakes,
	testSETTLE_10_ReleaseWakes,
	testENT_8_DeleteEndsWaits,
	testENT_10_UpdateDoesNotEndWaits,
	testSTAT_5_DisablingEndsWaits,
}

// observed is a Store that reports each receive which found nothing and goes on to wait. From the report on no wake-up
// may be lost, whether the receive has sat down by then or not; so a test needs neither sleep nor poll.
type observed struct {
	semantics.Store
	empty   chan struct{}
	watched sync.Map // sources with a session whose subscription stands
}

func (o *observed) Receive(ctx context.Context, source semantics.Source, limit int, register semantics.Register) (semantics.Batch, error) {
	batch, err := o.Store.Receive(ctx, source, limit, register)
	if err == nil && len(batch.Messages) == 0 && register != semantics.RegisterNever {
		o.report(ctx)
	}
	return batch, err
}

func (o *observed) AcceptNextSession(ctx context.Context, path string, register semantics.Register) (*semantics.Session, time.Duration, error) {
	session, recheck, err := o.Store.AcceptNextSession(ctx, path, register)
	if err == nil && session == nil && register != semantics.RegisterNever {
		o.report(ctx)
	}
	return session, recheck, err
}

// AcceptSession does not register. That its subscription stands shows that it goes on to wait.
func (o *observed) AcceptSession(ctx context.Context, path, id string) (*semantics.Session, error) {
	_, waits := o.watched.Load(semantics.Source{Path: path, Session: id})
	session, err := o.Store.AcceptSession(ctx, path, id)
	if waits && semantics.CodeOf(err) == semantics.SessionCannotBeLocked {
		o.report(ctx)
	}
	return session, err
}

func (o *observed) Watch(ctx context.Context, source semantics.Source) (semantics.Watch, error) {
	w, err := o.Store.Watch(ctx, source)
	if err == nil && source.Session != "" {
		o.watched.Store(source, true)
	}
	return w, err
}

// firstLook is, in the context of a call, what is to happen when it has found nothing for the first time.
type firstLook struct{}

func (o *observed) report(ctx context.Context) {
	if first, ok := ctx.Value(firstLook{}).(func() bool); ok && first() {
		return
	}
	select {
	case o.empty <- struct{}{}:
	default: // no reader counts any more
	}
}

// sidecar is a Broker whose waiting receives can be observed.
type sidecar struct {
	h      *fixture
	broker *broker.Broker
	store  *observed
}

func (h *fixture) newSidecar(store semantics.Store) *sidecar {
	o := &observed{Store: store, empty: make(chan struct{}, 10_000)}
	return &sidecar{h: h, broker: h.newBroker(o), store: o}
}

type outcome struct {
	delivery *delivery.Delivery
	err      error
}

// waiting starts a receive of up to n messages and returns when it, and not another one that looks again, has found
// nothing and waits.
func (s *sidecar) waiting(ctx context.Context, source semantics.Source, n int) <-chan outcome {
	s.h.t.Helper()
	done := make(chan outcome, 1)
	s.awaitFirstLook(ctx, func(ctx context.Context) {
		delivery, err := s.broker.Receive(ctx, source, broker.ReceiveOptions{MaxMessages: n, MaxWait: time.Minute})
		done <- outcome{delivery, err}
	})
	return done
}

// awaitFirstLook starts a call and returns when it has found nothing for the first time.
func (s *sidecar) awaitFirstLook(ctx context.Context, call func(context.Context)) {
	s.h.t.Helper()
	empty := make(chan struct{})
	var once sync.Once
	go call(context.WithValue(ctx, firstLook{}, func() bool {
		isFirst := false
		once.Do(func() { isFirst = true; close(empty) })
		return isFirst
	}))
	s.await(empty)
}

// awaitEmpty blocks until a receive has found nothing, again if waiting began it.
func (s *sidecar) awaitEmpty() {
	s.h.t.Helper()
	s.await(s.store.empty)
}

func (s *sidecar) await(empty <-chan struct{}) {
	s.h.t.Helper()
	select {
	case <-empty:
	case <-time.After(patience):
		s.h.t.Fatal("the receive does not wait")
	}
}

// await returns the outcome of a receive that must end now.
func (h *fixture) await(done <-chan outcome) outcome {
	h.t.Helper()
	select {
	case o := <-done:
		return o
	case <-time.After(patience):
		h.t.Fatal("the receive still waits")
		return outcome{}
	}
}

func (h *fixture) awaitNumbers(done <-chan outcome, want ...int64) *delivery.Delivery {
	h.t.Helper()
	o := h.await(done)
	h.ok(o.err)
	h.wantNumbers(o.delivery.Messages, want...)
	return o.delivery
}

// awaitIDs returns the messages of a receive that must end now with those.
func (h *fixture) awaitIDs(done <-chan outcome, want ...string) []*semantics.Received {
	h.t.Helper()
	o := h.await(done)
	h.ok(o.err)
	h.same(messageIDs(o.delivery.Messages), want)
	return o.delivery.Messages
}

func testRECV_5_WaitsForTheFirstMessage(t *testing.T, h *fixture) {
	h.create()
	s := h.newSidecar(h.Store)
	done := s.waiting(t.Context(), orders, 10)
	h.sendTexts(3)
	h.awaitNumbers(done, 1, 2, 3)
	done = s.waiting(t.Context(), orders, 1)
	h.sendTexts(2)
	h.awaitNumbers(done, 4)
	h.wantCounts(1, 4, 0)
}

func testRECV_5_WaitOnTheDeadLetterQueue(t *testing.T, h *fixture) {
	h.create(deliversAtMost(1))
	s := h.newSidecar(h.Store)
	done := s.waiting(t.Context(), deadOrders, 1)
	h.sendTexts(2)
	got := h.receive(orders, 2)
	h.deadLetter(got[0])
	h.awaitNumbers(done, 1)
	done = s.waiting(t.Context(), deadOrders, 1)
	h.abandon(orders, got[1])
	h.awaitNumbers(done, 2)
}

func testRECV_5_EmptyWhenTheWaitEnds(t *testing.T, h *fixture) {
	h.create()
	for range 2 {
		delivery, err := h.broker.Receive(t.Context(), orders, broker.ReceiveOptions{MaxMessages: 1, MaxWait: 20 * ms})
		h.ok(err)
		h.wantNumbers(delivery.Messages)
	}
	h.sendTexts(1)
	h.wantCounts(1, 0, 0)
}

func testRECV_5_WaitSeesTheEndOfALock(t *testing.T, h *fixture) {
	// No wake-up is sent: the receive must look again, by its own clock, when the lock expires.
	h.create(locksFor(30 * ms))
	h.sendTexts(1)
	h.receiveOne(orders)
	done := h.newSidecar(h.Store).waiting(t.Context(), orders, 1)
	h.Advance(30 * ms)
	h.same(h.awaitNumbers(done, 1).Messages[0].DeliveryCount, 2)
}

func testRECV_5_FoundAtOnceDoesNotWait(t *testing.T, h *fixture) {
	h.create()
	s := h.newSidecar(h.Store)
	h.sendTexts(4)
	for range 2 { // without a waiting list, and with one that an earlier wait opened
		delivery, err := s.broker.Receive(t.Context(), orders, broker.ReceiveOptions{MaxMessages: 2, MaxWait: 5 * time.Minute})
		h.ok(err)
		h.same(len(delivery.Messages), 2)
		if _, err := s.broker.Receive(t.Context(), deadOrders, broker.ReceiveOptions{MaxMessages: 1, MaxWait: ms}); err != nil {
			t.Fatal(err)
		}
	}
}

func testRECV_7_CancelledWaitLeavesNothingLocked(t *testing.T, h *fixture) {
	h.create()
	s := h.newSidecar(h.Store)
	ctx, cancel := context.WithCancel(t.Context())
	done := s.waiting(ctx, orders, 10)
	cancel()
	h.wantCode(h.await(done).err, semantics.Cancelled)
	h.sendTexts(1)
	h.wantCounts(1, 0, 0)
	h.same(h.peek(orders)[0].DeliveryCount, 0)
}

func testRECV_7_CancelAgainstSend(t *testing.T, h *fixture) {
	h.create(deliversAtMost(1000))
	s := h.newSidecar(h.Store)
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		done := s.waiting(ctx, orders, 10)
		go cancel()
		h.sendTexts(1)
		switch o := h.await(done); {
		case o.err == nil:
			h.same(len(o.delivery.Messages), 1)
			h.ok(o.delivery.Undelivered(ctx)) // the caller is gone by now
		default:
			h.wantCode(o.err, semantics.Cancelled)
		}
		h.wantCounts(1, 0, 0)
		got := h.receiveOne(orders)
		h.same(got.DeliveryCount, 1)
		h.complete(orders, got)
	}
}

func testRECV_7_UndeliveredWakes(t *testing.T, h *fixture) {
	h.create()
	h.sendTexts(1)
	held := h.receiveAs(orders, 1, semantics.PeekLock)
	done := h.newSidecar(h.Store).waiting(t.Context(), orders, 1)
	h.ok(held.Undelivered(t.Context()))
	h.same(h.awaitNumbers(done, 1).Messages[0].DeliveryCount, 1)
}

func testSETTLE_4_AbandonWakes(t *testing.T, h *fixture) {
	h.create()
	h.sendTexts(2)
	got := h.receive(orders, 2)
	s := h.newSidecar(h.Store)
	one, other := s.waiting(t.Context(), orders, 1), s.waiting(t.Context(), orders, 1)
	h.abandon(orders, got...) // both at once must wake both
	h.same(h.await(one).delivery.Messages[0].DeliveryCount, 2)
	h.same(h.await(other).delivery.Messages[0].DeliveryCount, 2)
}

func testSETTLE_10_ReleaseWakes(t *testing.T, h *fixture) {
	h.create()
	h.sendTexts(1)
	got := h.receiveOne(orders)
	done := h.newSidecar(h.Store).waiting(t.Context(), orders, 1)
	h.release(orders, got)
	h.same(h.awaitNumbers(done, 1).Messages[0].DeliveryCount, 1)
}

func testENT_8_DeleteEndsWaits(t *testing.T, h *fixture) {
	h.create()
	s := h.newSidecar(h.Store)
	waits := []<-chan outcome{
		s.waiting(t.Context(), orders, 1), s.waiting(t.Context(), orders, 1), s.waiting(t.Context(), deadOrders, 1),
	}
	h.ok(h.broker.DeleteEntity(t.Context(), semantics.QueueKind, "orders"))
	for _, done := range waits {
		h.wantCode(h.await(done).err, semantics.EntityNotFound)
	}
}

func testENT_10_UpdateDoesNotEndWaits(t *testing.T, h *fixture) {
	h.create()
	s := h.newSidecar(h.Store)
	done := s.waiting(t.Context(), orders, 1)
	h.update(locksFor(5*time.Second), "lockDuration")
	s.awaitEmpty() // it looked again
	h.sendTexts(1)
	got := h.awaitNumbers(done, 1).Messages[0]
	h.same(got.LockedUntil, h.Now().Add(5*time.Second))
}

func testSTAT_5_DisablingEndsWaits(t *testing.T, h *fixture) {
	h.create()
	s := h.newSidecar(h.Store)
	for _, status := range []semantics.Status{semantics.StatusDisabled, semantics.StatusReceiveDisabled} {
		waits := []<-chan outcome{
			s.waiting(t.Context(), orders, 1), s.waiting(t.Context(), orders, 1), s.waiting(t.Context(), deadOrders, 1),
		}
		h.setStatus(status)
		for _, done := range waits {
			h.wantCode(h.await(done).err, semantics.EntityDisabled)
		}
		h.setStatus(semantics.StatusActive)
	}
	done := s.waiting(t.Context(), orders, 1)
	h.setStatus(semantics.StatusSendDisabled) // which does not concern receives
	s.awaitEmpty()
	h.setStatus(semantics.StatusActive)
	h.sendTexts(1)
	h.awaitNumbers(done, 1)
}
