package storetest

import (
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

var idleTopicTests = []ruleTest{
	testIDLE_3_RemovedWithItsSubscriptions,
	testIDLE_3_VerbsOfTheTopic,
	testIDLE_3_VerbsOfASubscription,
	testIDLE_3_HeldMessageOfASubscription,
	testIDLE_3_ScheduledMessagesKeep,
	testIDLE_3_UseOfARemovedSubscriptionCounts,
	testIDLE_3_UseOfASubscriptionIsNoted,
	testIDLE_3_WhatDoesNotCount,
	testIDLE_4_SubscriptionAlone,
	testIDLE_4_CopiesDoNotKeep,
	testIDLE_4_RulesCount,
	testIDLE_8_WaitsOfASubscriptionEnd,
	testIDLE_9_DeadLettersOfASubscriptionKeepIt,
	testIDLE_9_DeadLettersKeepTheTopic,
	testENT_14_ForwardingSubscriptionIsUse,
}

func (h *fixture) newsGo(d time.Duration) {
	h.t.Helper()
	h.goes(semantics.TopicKind, news, d)
}

func (h *fixture) newsStay(d time.Duration) {
	h.t.Helper()
	h.stays(semantics.TopicKind, news, d)
}

func (h *fixture) subscriptionGoes(source semantics.Source, d time.Duration) {
	h.t.Helper()
	h.goes(semantics.SubscriptionKind, source.Path, d)
}

func testIDLE_3_RemovedWithItsSubscriptions(_ *testing.T, h *fixture) {
	h.createNews(temporary)
	h.publishTexts("a", "b")
	h.deadLetterFrom(eu, h.receiveOne(eu))
	h.newsGo(span)
	for _, source := range []semantics.Source{eu, us} {
		h.wantCode(h.get(semantics.SubscriptionKind, source.Path), semantics.EntityNotFound)
	}
	h.createNews() // new and empty
	h.wantIDs(eu)
	h.same(h.topicRuntime(), semantics.Runtime{Subscriptions: 2})
	h.newsStay(10 * span)
}

func testIDLE_3_VerbsOfTheTopic(_ *testing.T, h *fixture) {
	for name, verb := range map[string]func(){
		"send":                   func() { h.publishTexts("a") },
		"peek":                   func() { h.peek(onTopic) },
		"update":                 func() { h.updateTopic(livesFor(time.Hour), "defaultMessageTimeToLive") },
		"a new subscription":     func() { h.createSubscription(subscription("asia")) },
		"a subscription deleted": func() { h.deleteSubscription(us) },
		"cancel": func() {
			scheduled := h.publish(later("s", h.in(time.Hour)))[0].SequenceNumber
			h.aSecondLater()
			h.ok(h.cancelPublished(scheduled))
		},
	} {
		h.t.Log(name)
		h.createNews(temporary)
		h.newsStay(span - 10*time.Second)
		verb()
		h.same(h.topic().AccessedAt, h.Now())
		h.newsGo(span)
	}
}

func testIDLE_3_VerbsOfASubscription(t *testing.T, h *fixture) {
	for name, verb := range map[string]func(){
		"receive":         func() { h.ok(h.receiveAs(eu, 1, semantics.PeekLock).Undelivered(t.Context())) },
		"receive nothing": func() { h.receiveNone(deadEU) },
		"peek":            func() { h.peek(eu) },
		"settle": func() {
			got := h.receiveOne(eu)
			h.aSecondLater()
			h.complete(eu, got)
		},
		"purge":       func() { h.purge(eu, broker.PurgeOptions{}) },
		"update":      func() { h.updateSubscription(eu, deliversAtMost(9), "maxDeliveryCount") },
		"a new rule":  func() { h.createRule(eu, onSubject("r", "s")) },
		"rule delete": func() { h.deleteRule(eu, semantics.DefaultRule) },
		"accept":      func() { h.closeSession(h.acceptOf(subscription("tales"), "a")) },
	} {
		t.Log(name)
		h.createNews(temporary)
		h.createSubscription(subscription("tales"), hasSessions)
		h.publishTexts("a")
		h.newsStay(span - 10*time.Second)
		verb()
		h.newsGo(span)
	}
}

func testIDLE_3_HeldMessageOfASubscription(_ *testing.T, h *fixture) {
	tales := subscription("tales")
	for what, hold := range map[string]func(){
		"message":     func() { h.receiveOne(eu) },
		"dead letter": func() { h.receiveOne(deadEU) },
		"session":     func() { h.acceptOf(tales, "a") },
	} {
		h.t.Log(what)
		h.createTopic(temporary)
		h.createSubscription(eu, locksFor(3*span))
		h.createSubscription(tales, hasSessions, locksFor(3*span))
		h.publish(of("a", text("a")), of("a", text("b")))
		h.deadLetterFrom(eu, h.receiveOne(eu))
		hold()
		h.newsStay(3 * span)
		h.newsGo(span)
	}
}

func testIDLE_3_ScheduledMessagesKeep(_ *testing.T, h *fixture) {
	h.createNews(temporary)
	h.publish(later("a", h.in(5*span+time.Second)))
	h.newsStay(5 * span)
	h.Advance(time.Second)
	h.sweep()
	h.newsGo(span)
}

// The last use of a subscription counts even after the subscription was deleted when idle.
func testIDLE_3_UseOfARemovedSubscriptionCounts(_ *testing.T, h *fixture) {
	h.createTopic(removedAfter(5 * span))
	h.createSubscription(eu, removedAfter(3*span))
	h.newsStay(2 * span)
	h.publishTexts("a") // so that no sweep looks at the topic before the subscription is gone
	h.newsStay(span)
	h.peek(eu)
	h.subscriptionGoes(eu, 3*span)
	h.newsGo(2*span - time.Minute)
}

func testIDLE_3_UseOfASubscriptionIsNoted(t *testing.T, h *fixture) {
	h.createNews(temporary) // of which only the topic is temporary
	for range 4 {
		h.newsStay(span - time.Second)
		h.ok(h.Store.NoteUse(t.Context(), []semantics.Use{{Path: eu.Path}}))
	}
	h.newsGo(span)
}

func testIDLE_3_WhatDoesNotCount(t *testing.T, h *fixture) {
	for name, call := range map[string]func(){
		"nothing": func() {},
		"counts":  func() { h.topicRuntime(); h.runtimeOf(eu) },
		"lists": func() {
			h.listed(semantics.TopicKind, "", 9)
			h.listed(semantics.SubscriptionKind, news, 9)
			h.rules(eu)
		},
		"routes": func() { h.routes() },
		"refused send": func() {
			h.wantCode(second(h.broker.Send(t.Context(), semantics.ToTopic(news), []*semantics.Message{sized(1 << 20)})), semantics.MessageSizeExceeded)
		},
		"refused rule": func() {
			h.wantCode(second(h.Store.CreateRule(t.Context(), eu.Path, everything)), semantics.RuleAlreadyExists)
		},
		"refused subscription": func() { h.wantCode(h.make(semantics.SubscriptionKind, eu.Path), semantics.EntityAlreadyExists) },
	} {
		t.Log(name)
		h.createNews(temporary)
		h.newsStay(span - 10*time.Second)
		call()
		h.newsGo(10 * time.Second)
	}
}

func testIDLE_4_SubscriptionAlone(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscription(eu, temporary)
	h.createSubscription(us)
	h.createRule(eu, onSQL("sql", "a = 1"))
	h.publishTexts("a")
	version := h.routes().Version
	h.newsStay(span / 2)
	h.peek(eu)
	h.subscriptionGoes(eu, span)
	if h.routes().Version == version {
		h.t.Fatal("the routes have changed and their version has not")
	}
	h.publishTexts("b") // whose routes were known before
	h.wantIDs(us, "a", "b")
	h.createSubscription(eu)
	h.same(ruleNames(h.rules(eu)), []string{semantics.DefaultRule})
	h.wantIDs(eu)
	h.same(h.topicRuntime(), semantics.Runtime{SizeInBytes: 4, Subscriptions: 2})
}

func testIDLE_4_CopiesDoNotKeep(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscription(eu, temporary)
	h.createSubscription(subscription("tales"), temporary, hasSessions)
	h.publish(later("s", h.in(span/2)))
	for i := range 10 {
		h.newsStay(span/10 - time.Second)
		h.publish(of("a", text(string(rune('a'+i)))))
		h.activate()
	}
	h.subscriptionGoes(eu, 10*time.Second)
	h.wantCode(h.get(semantics.SubscriptionKind, subscription("tales").Path), semantics.EntityNotFound)
}

func testIDLE_4_RulesCount(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscription(eu, temporary)
	h.stays(semantics.SubscriptionKind, eu.Path, span-time.Second)
	h.createRule(eu, onSubject("r", "s"))
	h.stays(semantics.SubscriptionKind, eu.Path, span-time.Second)
	h.deleteRule(eu, "r")
	h.subscriptionGoes(eu, span)
}

func testIDLE_8_WaitsOfASubscriptionEnd(t *testing.T, h *fixture) {
	h.createTopic(temporary)
	h.createSubscription(eu)
	h.createSubscription(us, temporary)
	at := h.newSidecar(h.Store)
	waits := []<-chan outcome{at.waiting(t.Context(), us, 1), at.waiting(t.Context(), deadEU, 1)}
	h.Advance(span)
	h.sweep()
	h.Advance(time.Minute)
	h.sweep()
	for _, done := range waits {
		h.wantCode(h.await(done).err, semantics.EntityNotFound)
	}
}

func testIDLE_9_DeadLettersOfASubscriptionKeepIt(_ *testing.T, h *fixture) {
	h.createTopic(temporary)
	h.createSubscription(eu, temporary, keepsDeadLetters)
	h.publishTexts("a")
	h.deadLetterFrom(eu, h.receiveOne(eu))
	h.newsStay(5 * span) // which would take them along
	h.ok(h.get(semantics.SubscriptionKind, eu.Path))
	h.complete(deadEU, h.receiveOne(deadEU))
	h.subscriptionGoes(eu, span)
	h.wantCode(h.get(semantics.TopicKind, news), semantics.EntityNotFound)
}

func testIDLE_9_DeadLettersKeepTheTopic(_ *testing.T, h *fixture) {
	h.createTopic(temporary, keepsDeadLetters)
	h.createSubscription(eu, keepsDeadFor(3*span+time.Second))
	h.createSubscription(us)
	h.publishTexts("a")
	h.deadLetterFrom(eu, h.receiveOne(eu))
	h.newsStay(3 * span)
	h.newsGo(time.Second) // it was not used for longer than span already
}

func testENT_14_ForwardingSubscriptionIsUse(_ *testing.T, h *fixture) {
	h.createNamed("elsewhere")
	h.createTopic(temporary)
	h.createSubscription(eu, temporary, forwardsTo("elsewhere"))
	h.newsStay(10 * span)
	h.ok(h.get(semantics.SubscriptionKind, eu.Path))
	h.updateSubscription(eu, forwardsTo(""), "forwardTo")
	h.newsGo(span)
}
