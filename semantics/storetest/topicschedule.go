package storetest

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

var topicScheduleTests = []ruleTest{
	testSCHED_2_HiddenFromSubscriptions,
	testSCHED_3_ActivatedAsIfSentThen,
	testSCHED_4_PastAndNowAreAtOnceInATopic,
	testSCHED_5_CancelBeforeRemovesForAll,
	testSCHED_5_CancelAfterActivation,
	testSCHED_5_CancelOfATopicIsAllOrNone,
	testSCHED_5_ExactlyOneOfCancelAndActivationWins,
	testSCHED_6_OrderOfActivationInATopic,
	testSCHED_6_NeverEarlyInATopic,
	testDUR_4_AnotherMessageHasTheNumber,
	testSCHED_6_ManyAtOnceInATopic,
	testSCHED_6_OneCopyFromManyWhoActivate,
	testSCHED_7_FiltersRunAtActivation,
	testSCHED_7_SubscriptionsOfTheTimeOfActivation,
	testSCHED_7_PeekShowsThemOnTheTopicAlone,
	testSCHED_7_ActionsAndFailures,
	testSCHED_7_WakesReceivers,
	testSCHED_8_CancelByMessageIDInATopic,
	testSCHED_9_SessionsAtActivation,
	testSCHED_10_BatchToATopic,
	testSCHED_12_StatusDoesNotStopActivationOfATopic,
	testSCHED_12_QuotaDoesNotStopActivationOfATopic,
	testSCHED_12_DeletedTopicTakesThemAlong,
	testMSG_7_NewTopicNumberAtActivation,
	testTTL_17_LifetimeOfCopiesBeginsAtActivation,
	testTTL_22_TopicsDefaultOfTheTimeOfScheduling,
	testTOPIC_3_UnmatchedAtActivationVanishes,
	testDUP_6_ScheduledInATopicTakePart,
}

// onTopic is what shows the scheduled messages of news.
var onTopic = semantics.Source{Path: news}

func testSCHED_2_HiddenFromSubscriptions(_ *testing.T, h *fixture) {
	h.createNews()
	h.same(h.publish(later("a", h.in(1000*ms)), text("b")), []semantics.Stored{stored(1), stored(2)})
	h.wantIDs(eu, "b")
	h.same(h.runtimeOf(eu), semantics.Runtime{Active: 1, Available: 1, SizeInBytes: 2, OldestEnqueuedAt: h.Now(), AvailableSince: h.Now()})
	h.Advance(1000*ms - ms)
	h.activate()
	h.wantIDs(eu, "b")
	h.Advance(ms)
	h.activate()
	h.wantIDs(eu, "b", "a")
	h.wantIDs(us, "b", "a")
	h.wantNumbers(h.peek(eu), 1, 2) // it takes no number before
	h.same(h.topicRuntime(), semantics.Runtime{SizeInBytes: 8, Subscriptions: 2})
}

func testSCHED_3_ActivatedAsIfSentThen(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscription(eu)
	at := h.in(1000 * ms)
	m := later("a", at)
	m.Properties, m.Subject, m.CorrelationID = properties{"p": semantics.Int64(1)}, "s", "c"
	h.publish(m)
	h.Advance(1010 * ms)
	h.activate()
	want := semantics.Received{Message: *m, SequenceNumber: 1, EnqueuedSequenceNumber: 2, EnqueuedAt: h.Now(), Size: m.Size()}
	h.same(h.peek(eu), []*semantics.Received{&want}) // and ScheduledAt stays as it was set
	h.activate()
	h.same(h.peek(eu), []*semantics.Received{&want})
}

func testSCHED_4_PastAndNowAreAtOnceInATopic(_ *testing.T, h *fixture) {
	h.createNews()
	got := h.publish(later("past", h.in(-time.Hour)), later("epoch", time.UnixMilli(0).UTC()), later("now", h.Now()), later("next", h.in(ms)))
	h.same(got, []semantics.Stored{stored(1), stored(2), stored(3), stored(4)})
	h.wantIDs(eu, "past", "epoch", "now")
	h.wantIDs(us, "past", "epoch", "now")
	rows := h.receive(eu, 9)
	h.same([]time.Time{rows[0].ScheduledAt, rows[0].EnqueuedAt}, []time.Time{h.in(-time.Hour), h.Now()})
	h.same(h.topicRuntime().Scheduled, int64(1))
	h.wantMissing(h.cancelPublished(1), "1")
	h.ok(h.cancelPublished(4))
}

func testSCHED_5_CancelBeforeRemovesForAll(_ *testing.T, h *fixture) {
	h.createNews()
	h.publish(later("a", h.in(1000*ms)), later("b", h.in(1000*ms)))
	h.ok(h.cancelPublished(1))
	h.wantIDs(onTopic, "b")
	h.same(h.topicRuntime(), semantics.Runtime{Scheduled: 1, SizeInBytes: 2, Subscriptions: 2})
	h.Advance(1000 * ms)
	h.activate()
	h.wantIDs(eu, "b")
	h.wantIDs(us, "b")
	h.wantMissing(h.cancelPublished(1), "1")
}

func testSCHED_5_CancelAfterActivation(_ *testing.T, h *fixture) {
	h.createNews()
	h.publish(later("a", h.in(1000*ms)))
	h.Advance(1000 * ms)
	h.activate()
	h.topicRefused(semantics.MessageNotFound, func() error { return h.cancelPublished(1) })
	h.wantMissing(h.cancelPublished(2), "2") // it has this number now, but is not scheduled
	h.wantIDs(eu, "a")
}

func testSCHED_5_CancelOfATopicIsAllOrNone(_ *testing.T, h *fixture) {
	h.createNews()
	h.publish(later("a", h.in(1000*ms)), text("b"), later("c", h.in(1000*ms)))
	err := h.topicRefused(semantics.MessageNotFound, func() error { return h.cancelPublished(1, 2, 99, 3) })
	h.same(err.Details[semantics.DetailNumbers], "2,99")
	h.ok(h.cancelPublished(3, 1, 3))
	h.wantIDs(onTopic)
}

func testSCHED_5_ExactlyOneOfCancelAndActivationWins(t *testing.T, h *fixture) {
	h.races()
	h.createNews()
	brokers := h.sidecars()
	const many = 40
	for i := range many {
		h.publish(later(fmt.Sprintf("%02d", i), h.in(1000*ms)))
	}
	h.Advance(1000 * ms)
	cancelled := make([]string, 0, many)
	var work sync.WaitGroup
	work.Go(func() {
		if err := brokers[len(brokers)-1].ActivateDue(t.Context(), news); err != nil {
			t.Error(err)
		}
	})
	for i := many; i > 0; i-- {
		switch err := h.cancelPublished(int64(i)); semantics.CodeOf(err) {
		case "":
			cancelled = append(cancelled, fmt.Sprintf("%02d", i-1))
		case semantics.MessageNotFound:
		default:
			t.Error(err)
		}
	}
	work.Wait()
	h.activate()
	h.wantIDs(onTopic)
	for _, source := range []semantics.Source{eu, us} {
		all := append(slices.Clone(cancelled), messageIDs(h.peek(source))...)
		slices.Sort(all)
		h.same(len(slices.Compact(all)), many)
		h.same(len(h.peek(source))+len(cancelled), many)
	}
}

func testSCHED_6_OrderOfActivationInATopic(_ *testing.T, h *fixture) {
	h.createNews()
	at := func(n time.Duration) time.Time { return h.in(n * 100 * ms) }
	h.publish(later("5", at(5)), later("3a", at(3)), later("9", at(9)), later("3b", at(3)))
	h.publish(later("1", at(1)), later("3c", at(3)))
	h.Advance(800 * ms)
	h.activate()
	for _, source := range []semantics.Source{eu, us} {
		h.wantIDs(source, "1", "3a", "3b", "3c", "5")
		for i, m := range h.peek(source) {
			h.same([]int64{m.SequenceNumber, m.EnqueuedSequenceNumber}, []int64{int64(i + 1), int64(i + 7)})
		}
	}
	h.wantIDs(onTopic, "9")
}

func testSCHED_6_NeverEarlyInATopic(t *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscription(eu)
	h.publish(later("a", h.in(2*ms)))
	h.Advance(ms)
	due, err := h.Store.Due(t.Context(), news, 9)
	h.ok(err)
	h.same(len(due), 0)
	publication := semantics.Publication{Message: text("a"), Copies: []semantics.Copy{{Subscription: "eu", Message: text("a")}}}
	accepted := h.in(-ms)
	activation := []semantics.Activation{
		{SequenceNumber: 1, EnqueuedAt: accepted, Publication: publication},
		{SequenceNumber: 99, EnqueuedAt: accepted, Publication: publication},
	}
	h.ok(h.Store.Activate(t.Context(), news, h.routes().Version, activation)) // whatever the caller knows
	h.wantIDs(eu)
	h.Advance(ms)
	due, err = h.Store.Due(t.Context(), news, 9)
	h.ok(err)
	h.wantNumbers(due, 1)
	h.wantIDs(onTopic, "a") // looking changes nothing
	h.ok(h.Store.Activate(t.Context(), news, h.routes().Version, activation))
	h.ok(h.Store.Activate(t.Context(), news, h.routes().Version, activation))
	h.wantIDs(eu, "a")
}

// What a sidecar knows of a scheduled message does not enqueue another one that has its number.
func testDUR_4_AnotherMessageHasTheNumber(t *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscription(eu)
	h.publish(later("a", h.in(ms)))
	accepted := h.Now()
	h.Advance(ms)
	activate := func(id string, accepted time.Time) {
		h.t.Helper()
		m := text(id)
		h.ok(h.Store.Activate(t.Context(), news, h.routes().Version, []semantics.Activation{{
			SequenceNumber: 1, EnqueuedAt: accepted,
			Publication: semantics.Publication{Message: m, Copies: []semantics.Copy{{Subscription: "eu", Message: m}}},
		}}))
	}
	activate("b", accepted)
	activate("a", accepted.Add(-ms))
	h.wantIDs(eu)
	h.wantIDs(onTopic, "a")
	activate("a", accepted)
	h.wantIDs(eu, "a")
}

func testSCHED_6_ManyAtOnceInATopic(_ *testing.T, h *fixture) {
	h.createNews()
	const many = 330
	batch := make([]*semantics.Message, many)
	for i := range batch {
		batch[i] = later(fmt.Sprintf("%03d", i), h.in(time.Second))
	}
	h.publish(batch...)
	due, err := h.Store.Due(h.t.Context(), news, 9)
	h.ok(err)
	h.same(len(due), 0)
	h.Advance(time.Second)
	due, err = h.Store.Due(h.t.Context(), news, 9)
	h.ok(err)
	h.wantNumbers(due, 1, 2, 3, 4, 5, 6, 7, 8, 9)
	h.activate()
	for _, source := range []semantics.Source{eu, us} {
		got := h.takeAll(source)
		h.same(len(got), many)
		for i, m := range got {
			h.same([]any{m.SequenceNumber, m.EnqueuedSequenceNumber, m.MessageID}, []any{int64(i + 1), int64(many + i + 1), fmt.Sprintf("%03d", i)})
		}
	}
}

func testSCHED_6_OneCopyFromManyWhoActivate(t *testing.T, h *fixture) {
	h.races()
	h.createNews()
	const many = 60
	for i := range many {
		h.publish(later(fmt.Sprintf("%02d", i), h.in(time.Second)))
	}
	h.Advance(time.Second)
	var work sync.WaitGroup
	for _, broker := range append(h.sidecars(), h.sidecars()...) {
		work.Go(func() {
			if err := broker.ActivateDue(t.Context(), news); err != nil {
				t.Error(err)
			}
		})
	}
	work.Wait()
	h.wantIDs(onTopic)
	for _, source := range []semantics.Source{eu, us} {
		rows := h.peek(source)
		h.same(len(rows), many)
		for i, m := range rows {
			h.same(m.MessageID, fmt.Sprintf("%02d", i))
		}
	}
}

func testSCHED_7_FiltersRunAtActivation(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscriptionWith(eu, []semantics.Rule{onSubject("old", "sport")})
	h.createSubscriptionWith(us, nil)
	h.publish(about("sport", later("a", h.in(1000*ms))), about("weather", later("b", h.in(1000*ms))))
	h.deleteRule(eu, "old")
	h.createRule(eu, onSubject("new", "weather"))
	h.createRule(us, onSubject("new", "sport"))
	h.Advance(1000 * ms)
	h.activate()
	h.wantIDs(eu, "b")
	h.wantIDs(us, "a")
}

func testSCHED_7_SubscriptionsOfTheTimeOfActivation(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscription(eu)
	h.publish(later("a", h.in(1000*ms)))
	h.deleteSubscription(eu)
	h.createSubscription(us)
	h.Advance(1000 * ms)
	h.activate()
	h.createSubscription(eu)
	h.wantIDs(eu)
	h.wantIDs(us, "a")
}

func testSCHED_7_PeekShowsThemOnTheTopicAlone(t *testing.T, h *fixture) {
	h.createNews()
	accepted, at := h.Now(), h.in(5000*ms)
	m := later("a", at)
	m.TimeToLive = ptr(time.Minute)
	h.publish(m, text("b"), later("c", at.Add(ms)))
	h.Advance(ms)
	want := semantics.Received{
		Message: *m, SequenceNumber: 1, EnqueuedSequenceNumber: 1, EnqueuedAt: accepted, ExpiresAt: at.Add(time.Minute), State: semantics.Scheduled,
		Size: m.Size(), VisibleAt: at,
	}
	h.same(h.peekFrom(onTopic, 0, 1), []*semantics.Received{&want})
	h.wantNumbers(h.peek(onTopic), 1, 3)
	h.wantNumbers(h.peekFrom(onTopic, 2, 9), 3)
	h.same(h.showing(onTopic, semantics.ShowScheduled), []int64{1, 3})
	h.same(h.showing(onTopic, semantics.ShowAll&^semantics.ShowScheduled), []int64(nil))
	h.same(h.showing(eu, semantics.ShowScheduled), []int64(nil))
	h.wantIDs(eu, "b")
	// a topic has none
	h.wantCode(second(h.broker.Peek(t.Context(), deadOf(onTopic), 0, 1, semantics.ShowAll)), semantics.InvalidOperation)
	h.Advance(5000 * ms)
	h.activate()
	h.wantNumbers(h.peek(onTopic))
}

func testSCHED_7_ActionsAndFailures(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscriptionWith(eu, []semantics.Rule{always("plain"), doing(always("do"), "SET x = 1"), failsOnZero("f")})
	h.createSubscription(us, hasSessions)
	h.publish(counting(0, later("a", h.in(1000*ms))))
	h.Advance(1000 * ms)
	h.activate()
	h.same(h.madeBy(eu), []string{"", "do"})
	h.wantIDs(deadEU, "a")
	h.wantIDs(deadUS, "a")
	h.same(h.peek(deadUS)[0].DeadLetterReason, "Session ID is null")
}

func testSCHED_7_WakesReceivers(t *testing.T, h *fixture) {
	h.createNews()
	h.publish(later("a", h.in(1000*ms)))
	s := h.newSidecar(h.Store)
	waits := []<-chan outcome{s.waiting(t.Context(), eu, 1), s.waiting(t.Context(), us, 1)}
	h.Advance(1000 * ms)
	h.activate()
	for _, wait := range waits {
		h.awaitNumbers(wait, 1)
	}
}

func testSCHED_8_CancelByMessageIDInATopic(t *testing.T, h *fixture) {
	h.createNews()
	h.publish(later("a", h.in(1000*ms)), later("b", h.in(1000*ms)), later("a", h.in(2000*ms)), text("a"))
	n, err := h.broker.CancelScheduled(t.Context(), semantics.ToTopic("NEWS"), nil, []string{"a", "none"})
	h.ok(err)
	h.same(n, 2)
	h.wantIDs(onTopic, "b")
	h.wantIDs(eu, "a")
	h.topicRefused(semantics.MessageNotFound, func() error {
		return second(h.broker.CancelScheduled(t.Context(), semantics.ToTopic(news), nil, []string{"a"}))
	})
}

func testSCHED_9_SessionsAtActivation(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscription(eu, hasSessions)
	h.publish(of("s", later("a", h.in(1000*ms))))
	h.same(h.runtimeOf(eu), semantics.Runtime{}) // there is no session yet
	h.publish(of("s", text("b")))
	h.Advance(1000 * ms)
	h.activate()
	got := h.receive(h.acceptOf(eu, "s"), 9)
	h.same(messageIDs(got), []string{"b", "a"})
	h.same([]int64{got[0].SessionSequence, got[1].SessionSequence}, []int64{1, 2})
}

func testSCHED_10_BatchToATopic(_ *testing.T, h *fixture) {
	h.createTopic(func(o *semantics.Options) { o.MaxMessageSizeInKilobytes = 1 })
	h.createSubscription(eu, holdsAtMost(1))
	at := h.in(1000 * ms)
	h.refusedPublish(semantics.MessageSizeExceeded, later("a", at), sized(1025))
	h.refusedPublish(semantics.EntityFull, later("a", at), text("b"), text("c"))
	h.same(h.publish(later("a", at), text("b")), []semantics.Stored{stored(1), stored(2)})
}

func testSCHED_12_StatusDoesNotStopActivationOfATopic(_ *testing.T, h *fixture) {
	for _, status := range []semantics.Status{semantics.StatusDisabled, semantics.StatusSendDisabled} {
		h.createNews()
		h.publish(later("a", h.in(1000*ms)))
		h.updateTopic(hasStatus(status), "status")
		h.updateSubscription(us, hasStatus(semantics.StatusDisabled), "status")
		h.Advance(1000 * ms)
		h.activate()
		h.wantIDs(eu, "a")
		h.same(h.runtimeOf(us).Available, int64(1))
		h.deleteTopic()
	}
}

func testSCHED_12_QuotaDoesNotStopActivationOfATopic(_ *testing.T, h *fixture) {
	h.createNews(megabytes(1), detectsDuplicates, remembersAtMost(2))
	m := sized(mebibyte / 2)
	m.ScheduledAt = h.in(1000 * ms)
	h.publish(m)
	full := sized(mebibyte / 4)
	full.MessageID = "fulls"
	h.publish(full)
	h.refusedPublish(semantics.EntityFull, text("a"))
	h.Advance(1000 * ms)
	h.activate()
	h.wantIDs(eu, "fulls", "sized")
	h.wantIDs(us, "fulls", "sized")
	h.same(h.topicRuntime(), semantics.Runtime{SizeInBytes: mebibyte + mebibyte/2, Subscriptions: 2})
}

func testSCHED_12_DeletedTopicTakesThemAlong(_ *testing.T, h *fixture) {
	h.createNews()
	h.publish(text("a"), later("b", h.in(1000*ms)))
	h.deleteTopic()
	h.createNews()
	h.wantMissing(h.cancelPublished(2), "2")
	h.Advance(1000 * ms)
	h.activate()
	h.same(h.topicRuntime(), semantics.Runtime{Subscriptions: 2})
	h.same(h.publish(text("c")), []semantics.Stored{stored(1)})
	h.wantIDs(eu, "c")
}

func testMSG_7_NewTopicNumberAtActivation(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscription(eu)
	h.publish(later("a", h.in(ms)), text("b"), text("c"))
	h.Advance(ms)
	h.activate()
	h.same(h.publish(text("d")), []semantics.Stored{stored(5)})
	var numbers []int64
	for _, m := range h.peek(eu) {
		numbers = append(numbers, m.EnqueuedSequenceNumber)
	}
	h.same(numbers, []int64{2, 3, 4, 5})
	h.wantIDs(eu, "b", "c", "a", "d")
}

func testTTL_17_LifetimeOfCopiesBeginsAtActivation(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscription(eu, buriesExpired)
	h.createSubscription(us, livesFor(500*ms))
	m := lasting("a", 1000*ms)
	m.ScheduledAt = h.in(1000 * ms)
	h.publish(m)
	h.same(h.peek(onTopic)[0].ExpiresAt, h.in(2000*ms))
	h.Advance(time.Hour) // long past its end, had it begun to live
	h.activate()
	h.same([]time.Time{h.peek(eu)[0].ExpiresAt, h.peek(us)[0].ExpiresAt}, []time.Time{h.in(1000 * ms), h.in(500 * ms)})
	h.Advance(1000*ms - ms)
	h.release(eu, h.receiveOne(eu))
	h.receiveNone(us)
	h.Advance(ms)
	h.receiveNone(eu)
	h.wantIDs(deadEU, "a")
}

func testTTL_22_TopicsDefaultOfTheTimeOfScheduling(_ *testing.T, h *fixture) {
	h.createTopic(livesFor(2000 * ms))
	h.createSubscription(eu)
	h.publish(later("none", h.in(1000*ms)), lasting("longer", time.Hour), func() *semantics.Message {
		m := lasting("both", time.Hour)
		m.ScheduledAt = h.in(1000 * ms)
		return m
	}())
	for _, now := range []time.Duration{9000 * ms, 100 * ms} { // changes nothing that was sent
		h.updateTopic(livesFor(now), "defaultMessageTimeToLive")
	}
	h.Advance(1000 * ms)
	h.activate()
	for _, m := range h.peek(eu)[1:] {
		h.same([]any{*m.TimeToLive, m.ExpiresAt}, []any{2000 * ms, h.in(2000 * ms)})
	}
}

func testTOPIC_3_UnmatchedAtActivationVanishes(_ *testing.T, h *fixture) {
	h.createTopic(failsUnmatched)
	h.same(h.publish(later("a", h.in(1000*ms))), []semantics.Stored{stored(1)}) // it is not known yet who will get it
	h.Advance(1000 * ms)
	h.activate()
	h.same(h.topicRuntime(), semantics.Runtime{})
	h.wantMissing(h.cancelPublished(1), "1")
}

func testDUP_6_ScheduledInATopicTakePart(_ *testing.T, h *fixture) {
	h.createNews(detectsDuplicates)
	h.publish(later("a", h.in(1000*ms)))
	h.same(h.publish(text("a")), []semantics.Stored{duplicate(1)})
	h.publish(text("b"))
	h.same(h.publish(later("b", h.in(1000*ms))), []semantics.Stored{duplicate(2)})
	h.Advance(1000 * ms)
	h.activate() // which does not send it again
	h.wantIDs(eu, "b", "a")
	h.same(h.publish(text("a")), []semantics.Stored{duplicate(1)})
	h.publish(later("c", h.in(1000*ms)))
	h.ok(h.cancelPublished(4))
	h.same(h.publish(text("c")), []semantics.Stored{duplicate(4)})
	h.updateTopic(func(o *semantics.Options) { o.ForgetOnCancel = true }, "forgetOnCancel")
	h.publish(later("d", h.in(1000*ms)))
	h.ok(h.cancelPublished(5))
	h.same(h.publish(text("d")), []semantics.Stored{stored(6)})
}
