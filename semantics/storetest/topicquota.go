package storetest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

var topicQuotaTests = []ruleTest{
	testTOPIC_7_OneQuotaForAllSubscriptions,
	testTOPIC_7_EveryCopyCounts,
	testTOPIC_7_WhatNobodyGetsTakesNoRoom,
	testTOPIC_7_DeadLettersCount,
	testTOPIC_7_SessionStatesCount,
	testTOPIC_7_ScheduledCount,
	testTOPIC_7_CopiesOfActionsCountAsTheyAre,
	testTOPIC_7_RejectIsForTheWholeSend,
	testTOPIC_7_RejectCountsTheCopiesOfACall,
	testTOPIC_7_OverflowIntoTheDeadLetters,
	testTOPIC_7_OverflowDropsTheOldest,
	testTOPIC_7_OverflowSparesWhatIsLocked,
	testTOPIC_7_OverflowOfABatch,
	testTOPIC_7_OverflowIsChangeable,
	testTOPIC_7_OverflowInSessions,
	testTOPIC_7_DeadLettersDoNotOverflow,
	testTOPIC_2_SoManyCopiesAtOnce,
	testTOPIC_2_SoManyBytesOfCopiesAtOnce,
	testTOPIC_2_ScheduledMakeTheirCopiesLater,
	testTOPIC_2_SoManyCopiesOfOneMessage,
	testQUOTA_2_SubscriptionsOfATopic,
	testQUOTA_7_LimitsOfAMessageToATopic,
	testQUOTA_12_FullTopicGoesOn,
	testQUOTA_12_DetailsOfAFullTopic,
	testQUOTA_13_TopicNeverPassedByParallelSenders,
	testQUOTA_13_MovesWithinATopic,
	testSESS_32_StateHasTheTopicsLimit,
}

func testTOPIC_7_OneQuotaForAllSubscriptions(_ *testing.T, h *fixture) {
	h.createNews(megabytes(1))
	const half = mebibyte / 2
	h.publish(sized(half - 50))
	h.refusedPublish(semantics.EntityFull, sized(51)) // twice
	h.publish(sized(50))
	h.same(h.topicRuntime(), semantics.Runtime{SizeInBytes: mebibyte, Subscriptions: 2})
	h.refusedPublish(semantics.EntityFull, sized(6))
	// One that is slow has filled the topic for everybody.
	h.complete(eu, h.receive(eu, 9)...)
	h.same(h.topicRuntime().SizeInBytes, int64(half))
	h.refusedPublish(semantics.EntityFull, sized(half/2+1))
	h.complete(us, h.receive(us, 1)...)
	h.same(h.publish(sized(half/2+1)), []semantics.Stored{stored(3)})
	h.createTopicNamed("other", megabytes(1)) // has capacity of its own
	h.createSubscription(semantics.Source{Path: "other/Subscriptions/eu"})
	h.ok(second(h.broker.Send(h.t.Context(), semantics.ToTopic("other"), []*semantics.Message{sized(mebibyte)})))
}

func testTOPIC_7_EveryCopyCounts(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscription(eu)
	h.createSubscriptionWith(us, []semantics.Rule{onSubject("s", "sport")})
	h.publish(text("a"))
	h.same(h.topicRuntime().SizeInBytes, int64(2))
	h.publish(about("s", text("b")), about("sport", text("c")))
	h.same([]int64{h.runtimeOf(eu).SizeInBytes, h.runtimeOf(us).SizeInBytes, h.topicRuntime().SizeInBytes}, []int64{2 + 3 + 7, 7, 19})
	h.complete(us, h.receiveOne(us))
	h.same(h.topicRuntime().SizeInBytes, int64(12))
	h.deleteSubscription(eu)
	h.same(h.topicRuntime(), semantics.Runtime{Subscriptions: 1})
}

func testTOPIC_7_WhatNobodyGetsTakesNoRoom(_ *testing.T, h *fixture) {
	h.createTopic(megabytes(1))
	h.createSubscriptionWith(eu, []semantics.Rule{onSubject("s", "sport")})
	h.publish(about("sport", sized(mebibyte-5)))
	h.same(h.publish(sized(mebibyte)), []semantics.Stored{stored(2)})
	h.refusedPublish(semantics.EntityFull, about("sport", text("a")))
	h.same(h.topicRuntime().SizeInBytes, int64(mebibyte))
}

func testTOPIC_7_DeadLettersCount(_ *testing.T, h *fixture) {
	h.createTopic(megabytes(1))
	h.createSubscriptionWith(eu, []semantics.Rule{failsOnZero("f")})
	h.createSubscription(us)
	m := sized(mebibyte/2 - 9)
	h.publish(counting(0, m)) // is a dead letter from the start
	h.deadLetterFrom(us, h.receiveOne(us))
	h.same(h.topicRuntime().SizeInBytes, int64(mebibyte))
	h.refusedPublish(semantics.EntityFull, text("a"))
	h.Advance(ms)
	h.purge(deadEU, broker.PurgeOptions{})
	h.publishTexts("a")
}

func testTOPIC_7_SessionStatesCount(_ *testing.T, h *fixture) {
	h.createTopic(megabytes(1))
	h.createSubscription(eu, hasSessions)
	h.createSubscriptionWith(us, nil)
	held := h.acceptOf(eu, "s")
	h.setState(held, make([]byte, mebibyte-1000))
	h.refusedPublish(semantics.EntityFull, of("s", sized(1000)))
	h.publish(of("s", sized(999)))
	h.same(h.topicRuntime().SizeInBytes, int64(mebibyte))
	h.topicRefused(semantics.EntityFull, func() error { return second(h.trySetState(held, make([]byte, mebibyte-999))) })
	h.setState(held, make([]byte, mebibyte-1000)) // as much as before
	h.setState(held, nil)
	h.same(h.topicRuntime().SizeInBytes, int64(1000))
	later := of("s", sized(mebibyte/2))
	later.ScheduledAt = h.in(time.Hour)
	h.publish(later) // counts once beside a state
	h.topicRefused(semantics.EntityFull, func() error { return second(h.trySetState(held, make([]byte, mebibyte/2-1000))) })
	h.setState(held, make([]byte, mebibyte/2-1001))
}

func testTOPIC_7_ScheduledCount(_ *testing.T, h *fixture) {
	h.createNews(megabytes(1))
	m := sized(mebibyte - 100)
	m.ScheduledAt = h.in(time.Hour)
	h.publish(m) // counts once while it is scheduled
	h.same(h.topicRuntime(), semantics.Runtime{Scheduled: 1, SizeInBytes: mebibyte - 100, Subscriptions: 2})
	h.refusedPublish(semantics.EntityFull, sized(51))
	tooLarge := sized(101)
	tooLarge.ScheduledAt = m.ScheduledAt
	h.refusedPublish(semantics.EntityFull, tooLarge)
	h.publish(sized(50))
	h.ok(h.cancelPublished(1))
	h.same(h.topicRuntime(), semantics.Runtime{SizeInBytes: 100, Subscriptions: 2})
}

func testTOPIC_7_CopiesOfActionsCountAsTheyAre(_ *testing.T, h *fixture) {
	h.createTopic(megabytes(1))
	h.createSubscriptionWith(eu, []semantics.Rule{doing(always("do"), "SET more = '0123456789'")})
	const grows = int64(len("more") + 10 + len("RuleName") + len("do"))
	h.refusedPublish(semantics.EntityFull, sized(mebibyte-grows+1))
	h.publish(sized(mebibyte - grows))
	h.same([]int64{h.topicRuntime().SizeInBytes, h.peek(eu)[0].Size}, []int64{mebibyte, mebibyte})
}

func testTOPIC_7_RejectIsForTheWholeSend(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscription(eu, overflows(2, semantics.RejectOverflow))
	h.createSubscriptionWith(us, []semantics.Rule{onSubject("s", "sport")}, overflows(1, semantics.RejectOverflow))
	h.publishTexts("a", "b")
	err := h.refusedPublish(semantics.EntityFull, text("c"))
	h.same([]string{err.Details[semantics.DetailLimit], err.Details[semantics.DetailActual]}, []string{"2", "3"})
	h.refusedPublish(semantics.EntityFull, about("sport", text("c"))) // for us as well, which has capacity
	got := h.receive(eu, 2)
	h.refusedPublish(semantics.EntityFull, text("c")) // locked ones are there too
	h.deadLetterFrom(eu, got[0])
	h.publish(about("sport", text("c"))) // dead letters are not
	h.wantIDs(eu, "b", "c")
	h.wantIDs(us, "c")
	h.complete(eu, got[1])
	h.refusedPublish(semantics.EntityFull, about("sport", text("d"))) // now it is us that is full
	h.publishTexts("d")
	h.wantIDs(eu, "c", "d")
}

func testTOPIC_7_RejectCountsTheCopiesOfACall(_ *testing.T, h *fixture) {
	h.createTopic(detectsDuplicates)
	h.createSubscriptionWith(eu, []semantics.Rule{always("a"), doing(always("b"), "SET x = 1"), failsOnZero("f")}, overflows(4, semantics.RejectOverflow))
	h.refusedPublish(semantics.EntityFull, text("a"), text("b"), text("c")) // six copies
	// four and a dead letter; the last one is a duplicate
	h.publish(counting(0, text("a")), text("b"), text("a"))
	r := h.runtimeOf(eu)
	h.same([]int64{r.Active, r.DeadLetter}, []int64{4, 1})
	h.same(h.publish(text("b")), []semantics.Stored{duplicate(2)}) // which needs no capacity
	h.refusedPublish(semantics.EntityFull, text("c"))
}

func testTOPIC_7_OverflowIntoTheDeadLetters(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscription(eu, overflows(2, semantics.DeadLetterOverflow))
	h.createSubscription(us)
	h.Advance(ms)
	h.publishTexts("a", "b", "c")
	h.wantIDs(eu, "a", "b")
	h.wantIDs(deadEU, "c")
	dead := h.peek(deadEU)[0]
	h.same([]any{dead.DeadLetterReason, dead.DeadLetteredAt, dead.SequenceNumber, dead.EnqueuedSequenceNumber},
		[]any{"MaxMessageCountExceeded", h.Now(), int64(3), int64(3)})
	h.wantIDs(us, "a", "b", "c")
	h.complete(eu, h.receiveOne(eu))
	h.publishTexts("d")
	h.wantIDs(eu, "b", "d")
	h.wantIDs(deadEU, "c")
}

func testTOPIC_7_OverflowDropsTheOldest(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscription(eu, overflows(2, semantics.DropOldestOverflow))
	h.createSubscription(us)
	h.publishTexts("a", "b")
	h.abandon(eu, h.receiveOne(eu)) // a is still the oldest
	h.publishTexts("c")
	h.wantIDs(eu, "b", "c")
	h.publishTexts("d", "e")
	h.wantIDs(eu, "d", "e")
	h.wantIDs(deadEU) // they leave no trace
	h.same(h.topicRuntime().SizeInBytes, int64(2*2+5*2))
	h.wantNumbers(h.receive(eu, 9), 4, 5)
	h.wantIDs(us, "a", "b", "c", "d", "e")
}

func testTOPIC_7_OverflowSparesWhatIsLocked(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscription(eu, overflows(3, semantics.DropOldestOverflow))
	h.publishTexts("a", "b", "c")
	got := h.receive(eu, 2)
	h.setAside(eu, got[1])
	h.publishTexts("d") // for which c goes: a is locked, b is deferred
	h.wantIDs(eu, "a", "b", "d")
	h.receiveOne(eu)
	h.publishTexts("e")
	h.wantIDs(eu, "a", "b", "d")
	h.wantIDs(deadEU, "e")
	h.same(h.peek(deadEU)[0].DeadLetterReason, "MaxMessageCountExceeded")
	h.abandon(eu, got[0])
	h.publishTexts("f")
	h.wantIDs(eu, "b", "d", "f")
	h.wantIDs(deadEU, "e")
}

func testTOPIC_7_OverflowOfABatch(_ *testing.T, h *fixture) {
	for overflow, want := range map[semantics.Overflow][2][]string{
		semantics.DeadLetterOverflow: {{"a", "b"}, {"c", "d"}},
		semantics.DropOldestOverflow: {{"c", "d"}, nil},
	} {
		h.createTopic()
		h.createSubscription(eu, overflows(2, overflow))
		h.publish(text("a"), text("b"), text("c"), text("d"))
		h.wantIDs(eu, want[0]...)
		h.wantIDs(deadEU, want[1]...)
		r := h.runtimeOf(eu)
		h.same([]int64{r.Available, r.DeadLetter, r.SizeInBytes}, []int64{2, int64(len(want[1])), int64(4 + 2*len(want[1]))})
		h.deleteTopic()
	}
}

func testTOPIC_7_OverflowIsChangeable(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscription(eu, overflows(1, semantics.RejectOverflow))
	h.publishTexts("a")
	h.refusedPublish(semantics.EntityFull, text("b"))
	h.updateSubscription(eu, overflows(0, semantics.DropOldestOverflow), "overflow")
	h.publishTexts("c")
	h.wantIDs(eu, "c")
	h.updateSubscription(eu, overflows(2, semantics.RejectOverflow), "maxMessageCount")
	h.publishTexts("d", "e")
	h.wantIDs(eu, "d", "e")
	h.updateSubscription(eu, overflows(0, semantics.RejectOverflow), "maxMessageCount")
	h.publishTexts("f")
	h.wantIDs(eu, "d", "e", "f")
}

func testTOPIC_7_OverflowInSessions(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscription(eu, hasSessions, overflows(2, semantics.DropOldestOverflow))
	h.publish(of("a", text("a1")), of("b", text("b1")), of("b", text("b2")))
	rows, _, err := h.broker.ListSessions(h.t.Context(), eu.Path, 0, "", semantics.SessionFilter{})
	h.ok(err)
	h.same(idsOf(rows), []string{"b"}) // of the other one nothing is left
	b := h.acceptOf(eu, "b")
	h.wantNumbers(h.receive(b, 9), 2, 3)
	h.publish(of("a", text("a2")))
	h.wantIDs(deadEU, "a2")
	h.wantNumbers(h.peek(eu), 2, 3)
}

func testTOPIC_7_DeadLettersDoNotOverflow(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscriptionWith(eu, []semantics.Rule{failsOnZero("f")}, overflows(1, semantics.RejectOverflow))
	h.createSubscriptionWith(us, []semantics.Rule{failsOnZero("f")}, overflows(1, semantics.DropOldestOverflow))
	h.publish(counting(1, text("a")))
	h.publish(counting(0, text("b")), counting(0, text("c"))) // for which nothing has to go
	for _, source := range []semantics.Source{eu, us} {
		h.wantIDs(source, "a")
		h.wantIDs(deadOf(source), "b", "c")
	}
}

func testQUOTA_2_SubscriptionsOfATopic(t *testing.T, h *fixture) {
	h.races()
	h.createTopic()
	brokers := h.sidecars()
	var work sync.WaitGroup
	const makers = 8
	for maker := range makers {
		work.Go(func() {
			for i := maker; i < semantics.MaxSubscriptionsPerTopic; i += makers {
				path := subscription(fmt.Sprint("s", i)).Path
				if _, err := brokers[maker%len(brokers)].CreateEntity(t.Context(), semantics.SubscriptionKind, path, semantics.Options{}, nil); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	work.Wait()
	_, err := h.broker.CreateEntity(t.Context(), semantics.SubscriptionKind, eu.Path, semantics.Options{}, nil)
	e := h.wantCode(err, semantics.QuotaExceeded)
	h.same(e.Details[semantics.DetailLimit], "2000")
	h.publishTexts("a") // and every one of them gets it
	h.same(h.topicRuntime(), semantics.Runtime{SizeInBytes: 2 * semantics.MaxSubscriptionsPerTopic, Subscriptions: semantics.MaxSubscriptionsPerTopic})
}

func testQUOTA_7_LimitsOfAMessageToATopic(_ *testing.T, h *fixture) {
	h.createNews()
	h.publish(sized(256 << 10))
	h.refusedPublish(semantics.MessageSizeExceeded, sized(256<<10+1))
	h.refusedPublish(semantics.MessageSizeExceeded, sized(256<<10), text("a")) // as large a batch
	h.updateTopic(func(o *semantics.Options) { o.MaxMessageSizeInKilobytes = 257 }, "maxMessageSizeInKilobytes")
	h.publish(sized(256<<10 + 1))
	err := h.refusedPublish(semantics.MessageSizeExceeded, text("a"), sized(257<<10+1))
	h.same(err.Details[semantics.DetailIndex], "1")
}

func testQUOTA_12_FullTopicGoesOn(_ *testing.T, h *fixture) {
	h.createTopic(megabytes(1))
	h.createSubscription(eu, deliversAtMost(1), buriesExpired)
	h.publish(lasting("expires", 1000*ms), text("a"), text("b"), text("c"), text("d"))
	h.publish(sized(mebibyte - 22))
	h.refusedPublish(semantics.EntityFull, sized(20))
	got := h.receive(eu, 5)
	h.abandon(eu, got[1]) // which dead-letters it
	h.deadLetterFrom(eu, got[2])
	h.setAside(eu, got[3])
	h.complete(eu, got[4])
	h.release(eu, got[0])
	h.Advance(1000 * ms)
	h.wantIDs(eu, "c", "sized")
	h.wantIDs(deadEU, "expires", "a", "b")
}

func testQUOTA_12_DetailsOfAFullTopic(_ *testing.T, h *fixture) {
	h.createNews(megabytes(1))
	h.publish(sized(1000))
	h.publish(sized(mebibyte/2 - 1000))
	h.deadLetterFrom(eu, h.receiveOne(eu))
	h.deadLetterFrom(us, h.receiveOne(us))
	err := h.refusedPublish(semantics.EntityFull, sized(6))
	details := []string{semantics.DetailEntity, semantics.DetailLimit, semantics.DetailActual, semantics.DetailDeadSize}
	for i, detail := range details {
		details[i] = err.Details[detail]
	}
	h.same(details, []string{news, fmt.Sprint(mebibyte), fmt.Sprint(mebibyte + 12), "2000"})
}

func testQUOTA_13_TopicNeverPassedByParallelSenders(t *testing.T, h *fixture) {
	h.races()
	h.createNews(megabytes(1))
	h.createSubscription(subscription("few"), overflows(5, semantics.RejectOverflow))
	const size, senders = 50 << 10, 6 // six times three fit; the sixth is refused by count
	var work sync.WaitGroup
	brokers := h.sidecars()
	var mu sync.Mutex
	accepted := 0
	for s := range senders {
		work.Go(func() {
			for range 3 {
				_, err := brokers[s%len(brokers)].Send(t.Context(), semantics.ToTopic(news), []*semantics.Message{sized(size)})
				if err != nil {
					if semantics.CodeOf(err) != semantics.EntityFull {
						t.Error(err)
					}
					continue
				}
				mu.Lock()
				accepted++
				mu.Unlock()
			}
		})
	}
	work.Wait()
	h.same(accepted, 5)
	h.updateSubscription(subscription("few"), overflows(0, semantics.RejectOverflow), "maxMessageCount")
	h.publish(sized(size))
	h.refusedPublish(semantics.EntityFull, sized(size)) // by size
	h.same(h.topicRuntime().SizeInBytes, int64(6*3*size))
	for _, source := range []semantics.Source{eu, us, subscription("few")} {
		h.wantNumbers(h.peek(source), 1, 2, 3, 4, 5, 6)
	}
}

func testQUOTA_13_MovesWithinATopic(_ *testing.T, h *fixture) {
	h.createTopic(megabytes(1))
	h.createSubscription(eu)
	h.publish(sized(mebibyte))
	h.deadLetterFrom(eu, h.receiveOne(eu))
	results, _, err := h.broker.Resubmit(h.t.Context(), deadEU, broker.ResubmitOptions{})
	h.ok(err)
	h.same(results, moved([2]int64{1, 2}))
	h.same(h.topicRuntime().SizeInBytes, int64(mebibyte))
}

func testSESS_32_StateHasTheTopicsLimit(_ *testing.T, h *fixture) {
	h.createTopic(func(o *semantics.Options) { o.MaxMessageSizeInKilobytes = 1 })
	h.createSubscription(eu, hasSessions)
	held := h.acceptOf(eu, "s")
	h.setState(held, make([]byte, 1024))
	h.topicRefused(semantics.SessionStateTooLarge, func() error { return second(h.trySetState(held, make([]byte, 1025))) })
	h.updateTopic(func(o *semantics.Options) { o.MaxMessageSizeInKilobytes = 2 }, "maxMessageSizeInKilobytes")
	h.setState(held, make([]byte, 1025))
}
