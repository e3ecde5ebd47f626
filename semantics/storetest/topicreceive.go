package storetest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/broker/stream"
)

var topicReceiveTests = []ruleTest{
	testRECV_5_CopyWakesReceivers,
	testRECV_5_CopyWakesOnlyWhoGetsIt,
	testRECV_5_LetterFromTheStartWakes,
	testRECV_10_CompetingConsumersOfASubscription,
	testRECV_13_StreamOfASubscription,
	testRECV_13_StreamOfSessionsOfASubscription,
	testSESS_3_SessionsOfATopic,
	testSESS_9_SessionIsDataElsewhere,
	testSESS_12_CopyWakesAcceptNext,
	testSESS_14_HolderGetsComingCopies,
	testSESS_16_SessionOfEachSubscription,
	testSESS_25_OrderInASessionOfASubscription,
	testSESS_31_StateOfEachSubscription,
	testDLQ_2_DeadLettersOfEachSubscription,
	testDLQ_22_BackIntoTheSubscriptionOnly,
	testDLQ_22_BackWithoutRules,
	testDLQ_22_FromASubscriptionIntoAQueue,
	testDLQ_22_CountOfTheSubscription,
	testMSG_17_ResubmittedCopyIsNew,
	testPURGE_6_OneSubscription,
}

func testRECV_5_CopyWakesReceivers(t *testing.T, h *fixture) {
	h.createNews()
	s := h.newSidecar(h.Store)
	waits := []<-chan outcome{s.waiting(t.Context(), eu, 9), s.waiting(t.Context(), us, 9)}
	h.publish(text("a"), text("b"))
	for _, wait := range waits {
		h.awaitNumbers(wait, 1, 2)
	}
}

func testRECV_5_CopyWakesOnlyWhoGetsIt(t *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscriptionWith(eu, []semantics.Rule{onSubject("s", "sport")})
	h.createSubscription(us)
	s := h.newSidecar(h.Store)
	ctx, cancel := context.WithCancel(t.Context())
	here, there := s.waiting(ctx, eu, 1), s.waiting(t.Context(), us, 1)
	h.publishTexts("a")
	h.awaitNumbers(there, 1)
	cancel()
	h.wantCode(h.await(here).err, semantics.Cancelled)
}

func testRECV_5_LetterFromTheStartWakes(t *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscriptionWith(eu, []semantics.Rule{failsOnZero("f")})
	h.createSubscription(us, overflows(1, semantics.DeadLetterOverflow))
	s := h.newSidecar(h.Store)
	here, there := s.waiting(t.Context(), deadEU, 1), s.waiting(t.Context(), deadUS, 1)
	h.publish(counting(0, text("a")), text("b"))
	h.awaitNumbers(here, 1)
	h.awaitNumbers(there, 2)
}

func testRECV_10_CompetingConsumersOfASubscription(t *testing.T, h *fixture) {
	h.races()
	h.createNews()
	const messages, consumers = 60, 4
	brokers := h.sidecars()
	var mu sync.Mutex
	taken := map[semantics.Source]map[int64]int{eu: {}, us: {}}
	ctx, done := context.WithTimeout(t.Context(), time.Minute)
	defer done()
	left := 2 * messages
	var work sync.WaitGroup
	for i := range consumers {
		for source := range taken {
			work.Go(func() {
				for ctx.Err() == nil {
					delivery, err := brokers[i%len(brokers)].Receive(ctx, source, broker.ReceiveOptions{MaxMessages: 3, MaxWait: time.Minute})
					if err != nil {
						return
					}
					mu.Lock()
					for _, m := range delivery.Messages {
						taken[source][m.SequenceNumber]++
						if left--; left == 0 {
							done()
						}
					}
					mu.Unlock()
				}
			})
		}
	}
	for i := range messages {
		h.publishBy(brokers[i%len(brokers)], text(fmt.Sprint(i)))
	}
	work.Wait()
	h.same(left, 0)
	for source, counts := range taken {
		for number, n := range counts {
			if n != 1 {
				t.Errorf("%s: message %d was taken %d times", source, number, n)
			}
		}
		h.same(len(counts), messages)
	}
}

// stream opens a stream of a source and returns a function that waits for its next event.
func (h *fixture) stream(source semantics.Source) (*stream.Subscription, func() stream.Event) {
	h.t.Helper()
	options := stream.DefaultOptions()
	options.Credits = 10
	s, err := h.broker.Subscribe(h.t.Context(), source, options)
	h.ok(err)
	h.t.Cleanup(func() { s.Close(context.WithoutCancel(h.t.Context())) })
	return s, func() stream.Event {
		h.t.Helper()
		ctx, cancel := context.WithTimeout(h.t.Context(), patience)
		defer cancel()
		event, err := s.Next(ctx)
		h.ok(err)
		return event
	}
}

func testRECV_13_StreamOfASubscription(_ *testing.T, h *fixture) {
	h.createNews()
	h.publishTexts("a")
	s, next := h.stream(eu)
	h.same(s.HasSessions(), false)
	h.same(messageIDs(next().Delivery.Messages), []string{"a"})
	h.publishTexts("b")
	got := next().Delivery.Messages
	h.same(messageIDs(got), []string{"b"})
	h.complete(eu, got...)
	h.wantIDs(us, "a", "b")
}

func testRECV_13_StreamOfSessionsOfASubscription(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscription(eu, hasSessions)
	h.publish(of("s", text("a")))
	s, next := h.stream(eu)
	h.same(s.HasSessions(), true)
	h.same(next().SessionOpened.ID, "s")
	h.same(messageIDs(next().Delivery.Messages), []string{"a"})
}

func testSESS_3_SessionsOfATopic(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscription(eu, hasSessions)
	h.publish(of("b", text("1")), of("a", text("2")), of("b", text("3")))
	a := h.acceptOf(eu, "a")
	h.pass(a, 2)
	next, err := h.broker.AcceptSession(h.t.Context(), eu.Path, broker.AcceptOptions{})
	h.ok(err)
	h.same(next.Session.ID, "b")
	h.pass(next.Source(), 1, 3)
	h.closeSession(a, next.Source())
	h.same(h.runtimeOf(eu), semantics.Runtime{})
}

func testSESS_9_SessionIsDataElsewhere(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscription(eu, hasSessions)
	h.createSubscription(us)
	h.publish(of("s", text("a")), of("t", text("b")))
	h.acceptOf(eu, "s")
	got := h.receive(us, 9)
	h.same([]string{got[0].SessionID, got[1].SessionID}, []string{"s", "t"})
	h.wantCode(second(h.broker.AcceptSession(h.t.Context(), us.Path, broker.AcceptOptions{SessionID: "s"})), semantics.SessionNotSupported)
}

func testSESS_12_CopyWakesAcceptNext(t *testing.T, h *fixture) {
	h.races()
	h.createTopic()
	h.createSubscription(eu, hasSessions)
	s := h.newSidecar(h.Store)
	accepted := make(chan *broker.Acceptance, 1)
	go func() {
		a, _ := s.broker.AcceptSession(t.Context(), eu.Path, broker.AcceptOptions{MaxWait: time.Minute})
		accepted <- a
	}()
	s.awaitEmpty()
	h.publish(text("no session"), of("s", text("a")))
	select {
	case a := <-accepted:
		if a == nil || a.Session == nil {
			t.Fatal("the accept has failed")
		}
		h.same(a.Session.ID, "s")
	case <-time.After(patience):
		t.Fatal("the accept still waits")
	}
}

func testSESS_14_HolderGetsComingCopies(t *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscription(eu, hasSessions)
	held := h.acceptOf(eu, "s")
	done := h.newSidecar(h.Store).waiting(t.Context(), held, 9)
	h.publish(of("other", text("a")), of("s", text("b")))
	h.awaitNumbers(done, 2)
}

func testSESS_16_SessionOfEachSubscription(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscription(eu, hasSessions)
	h.createSubscription(us, hasSessions)
	h.publish(of("s", text("a")), of("s", text("b")))
	here, there := h.acceptOf(eu, "s"), h.acceptOf(us, "s") // each by another
	h.pass(here, 1, 2)
	h.wantNumbers(h.receive(there, 9), 1, 2)
	wrong := us
	wrong.SessionLock = here.SessionLock
	h.wantCode(second(h.broker.Receive(h.t.Context(), wrong, broker.ReceiveOptions{MaxMessages: 1})), semantics.SessionLockLost)
}

func testSESS_25_OrderInASessionOfASubscription(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscription(eu, hasSessions)
	for i := range 12 {
		h.publish(of(fmt.Sprint(i%3), text(fmt.Sprint(i))))
	}
	for s := range 3 {
		source := h.acceptOf(eu, fmt.Sprint(s))
		for i := range 4 {
			got := h.receiveOne(source)
			h.same([]any{got.MessageID, got.SessionSequence}, []any{fmt.Sprint(3*i + s), int64(i + 1)})
			h.abandon(source, got)
			got = h.receiveOne(source) // the same again
			h.same([]any{got.MessageID, got.DeliveryCount}, []any{fmt.Sprint(3*i + s), 2})
			h.complete(source, got)
		}
	}
}

func testSESS_31_StateOfEachSubscription(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscription(eu, hasSessions)
	h.createSubscription(us, hasSessions)
	here, there := h.acceptOf(eu, "s"), h.acceptOf(us, "s")
	h.setState(here, []byte("of eu"))
	h.same(h.state(there).Data == nil, true)
	h.setState(there, []byte("of us"))
	h.closeSession(here)
	h.same(string(h.state(h.acceptOf(eu, "s")).Data), "of eu")
}

func testDLQ_2_DeadLettersOfEachSubscription(_ *testing.T, h *fixture) {
	h.createNews()
	h.publishTexts("a", "b")
	h.deadLetterFrom(eu, h.receiveOne(eu))
	got := h.receive(us, 2)
	h.deadLetterFrom(us, got[1])
	h.wantIDs(deadEU, "a")
	h.wantIDs(deadUS, "b")
	h.same([]string{deadEU.String(), deadUS.String()}, []string{"news/Subscriptions/eu/$deadletterqueue", "news/Subscriptions/us/$deadletterqueue"})
	h.complete(deadUS, h.receiveOne(deadUS))
	h.wantIDs(deadEU, "a")
	codes, err := h.broker.DeadLetter(h.t.Context(), deadEU, tokensOf(h.receiveOne(deadEU)), why("", ""))
	h.wantCode(err, semantics.InvalidOperation)
	h.same(len(codes), 0)
}

func testDLQ_22_BackIntoTheSubscriptionOnly(t *testing.T, h *fixture) {
	h.createNews()
	h.publishTexts("a", "b", "c")
	h.deadLetterFrom(eu, h.receive(eu, 2)...)
	before := []any{h.peek(us), h.runtimeOf(us)}
	results, more, err := h.broker.Resubmit(t.Context(), deadEU, broker.ResubmitOptions{})
	h.ok(err)
	h.same([]any{results, more}, []any{moved([2]int64{1, 4}, [2]int64{2, 5}), false})
	h.wantIDs(eu, "c", "a", "b")
	h.wantIDs(deadEU)
	h.same([]any{h.peek(us), h.runtimeOf(us)}, before)
	h.same(h.publish(text("d")), []semantics.Stored{stored(4)}) // no number of the topic was used up
	h.wantNumbers(h.receive(eu, 9), 3, 4, 5, 6)
}

func testDLQ_22_BackWithoutRules(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscriptionWith(eu, []semantics.Rule{failsOnZero("f")})
	h.createSubscriptionWith(us, []semantics.Rule{doing(always("do"), "SET x = 1")})
	h.publish(counting(0, text("a")))
	h.deadLetterFrom(us, h.receiveOne(us))
	for _, source := range []semantics.Source{eu, us} {
		results, _, err := h.broker.Resubmit(h.t.Context(), deadOf(source), broker.ResubmitOptions{})
		h.ok(err)
		h.same(results, moved([2]int64{1, 2}))
		h.wantIDs(source, "a")
		h.wantIDs(deadOf(source))
	}
	h.same(h.madeBy(us), []string{"do"}) // as it was, and no second copy
}

func testDLQ_22_FromASubscriptionIntoAQueue(_ *testing.T, h *fixture) {
	h.create()
	h.createNews()
	h.publishTexts("a")
	h.deadLetterFrom(eu, h.receiveOne(eu))
	results, _, err := h.broker.Resubmit(h.t.Context(), deadEU, broker.ResubmitOptions{Target: "Orders"})
	h.ok(err)
	h.same(results, moved([2]int64{1, 1}))
	h.wantIDs(orders, "a")
	h.same(h.runtimeOf(eu), semantics.Runtime{})
	h.same([]int64{h.topicRuntime().SizeInBytes, h.runtime().SizeInBytes}, []int64{2, 2})
}

func testDLQ_22_CountOfTheSubscription(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscription(eu, overflows(2, semantics.RejectOverflow))
	h.publishTexts("a", "b")
	h.deadLetterFrom(eu, h.receive(eu, 2)...)
	h.publishTexts("c")
	results, _, err := h.broker.Resubmit(h.t.Context(), deadEU, broker.ResubmitOptions{})
	h.ok(err)
	h.same(results, []broker.ResubmitResult{moved([2]int64{1, 4})[0], notMoved(2, semantics.EntityFull)})
	h.wantIDs(eu, "c", "a")
	h.wantIDs(deadEU, "b")
}

func testMSG_17_ResubmittedCopyIsNew(_ *testing.T, h *fixture) {
	h.createTopic()
	h.publishTexts("a", "b")
	h.createSubscription(eu)
	h.publishTexts("c")
	h.abandon(eu, h.receiveOne(eu))
	h.deadLetterFrom(eu, h.receiveOne(eu))
	h.Advance(ms)
	h.ok(func() error {
		_, _, err := h.broker.Resubmit(h.t.Context(), deadEU, broker.ResubmitOptions{})
		return err
	}())
	want := semantics.Received{Message: *text("c"), SequenceNumber: 2, EnqueuedSequenceNumber: 2, EnqueuedAt: h.Now(), Size: 2}
	h.same(h.peek(eu), []*semantics.Received{&want}) // of the topic's number nothing is left either
}

func testPURGE_6_OneSubscription(_ *testing.T, h *fixture) {
	h.createNews()
	h.publishTexts("a", "b", "c", "d")
	got := h.receive(eu, 3)
	h.setAside(eu, got[0])
	h.deadLetterFrom(eu, got[1])
	h.Advance(ms)
	h.same(h.purge(eu, broker.PurgeOptions{}), int64(1))
	h.same(h.purge(eu, broker.PurgeOptions{Deferred: true, Scheduled: true, DeadLetters: true}), int64(2))
	h.wantIDs(eu, "c") // which is locked
	h.wantIDs(deadEU)
	h.wantIDs(us, "a", "b", "c", "d")
	h.same(h.topicRuntime().SizeInBytes, int64(2+8))
}
