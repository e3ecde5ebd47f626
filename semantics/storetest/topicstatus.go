package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

var topicStatusTests = []ruleTest{
	testSTAT_1_StatusesOfTopics,
	testSTAT_1_DisabledTopicIsLikeSendDisabled,
	testSTAT_1_StatusesOfSubscriptions,
	testSTAT_2_TopicRefusesWhatIsASend,
	testSTAT_3_ManagementOfDisabledOnes,
	testSTAT_4_TopicAndSubscription,
	testSTAT_4_CopiesPileUp,
	testSTAT_5_SubscriptionEndsItsWaits,
	testSTAT_5_TopicEndsNoWaits,
	testCNT_1_Topic,
	testCNT_1_Subscription,
	testCNT_1_SubscriptionWithSessions,
	testCNT_5_ActivityOfATopic,
	testCNT_5_ActivityOfASubscription,
	testTOPIC_8_TopicCannotBeReceivedFrom,
	testTOPIC_8_SubscriptionCannotBeSentTo,
	testERR_5_OrderOfChecksOfAPublish,
	testERR_6_EndedCallChangesNothingInATopic,
}

func testSTAT_1_StatusesOfTopics(t *testing.T, h *fixture) {
	h.createNews()
	set := func(status semantics.Status) error {
		return second(h.broker.UpdateEntity(t.Context(), semantics.TopicKind, news, semantics.Options{Status: status}, []string{"status"}))
	}
	for _, status := range []semantics.Status{semantics.StatusDisabled, semantics.StatusSendDisabled, semantics.StatusActive} {
		h.ok(set(status))
		h.same(h.topic().Options.Status, status)
	}
	h.topicRefused(semantics.InvalidArgument, func() error { return set(semantics.StatusReceiveDisabled) })
	h.topicRefused(semantics.InvalidArgument, func() error { return set(4) })
	options := semantics.Options{Status: semantics.StatusReceiveDisabled}
	h.wantCode(second(h.broker.CreateEntity(t.Context(), semantics.TopicKind, "other", options, []string{"status"})), semantics.InvalidArgument)
}

// The two are one thing under two names.
func testSTAT_1_DisabledTopicIsLikeSendDisabled(t *testing.T, h *fixture) {
	h.createNews()
	h.publish(later("a", h.in(ms)), later("b", h.in(time.Hour)))
	h.Advance(ms)
	codes := func(status semantics.Status) map[string]semantics.Code {
		h.updateTopic(hasStatus(status), "status")
		calls := map[string]error{
			"send":          second(h.broker.Send(t.Context(), semantics.ToTopic(news), []*semantics.Message{text("c")})),
			"schedule":      second(h.broker.Send(t.Context(), semantics.ToTopic(news), []*semantics.Message{later("c", h.in(time.Hour))})),
			"cancel":        h.cancelPublished(2),
			"peek":          second(h.broker.Peek(t.Context(), semantics.Source{Path: news}, 0, 1, semantics.ShowAll)),
			"due":           second(h.Store.Due(t.Context(), news, 1)),
			"update":        second(h.broker.UpdateEntity(t.Context(), semantics.TopicKind, news, semantics.Options{}, []string{"userMetadata"})),
			"receive of eu": second(h.broker.Receive(t.Context(), eu, broker.ReceiveOptions{MaxMessages: 1})),
		}
		result := map[string]semantics.Code{}
		for verb, err := range calls {
			result[verb] = h.codeOf(err)
		}
		return result
	}
	h.same(codes(semantics.StatusDisabled), codes(semantics.StatusSendDisabled))
}

func testSTAT_1_StatusesOfSubscriptions(t *testing.T, h *fixture) {
	h.createNews()
	set := func(status semantics.Status) error {
		return second(h.broker.UpdateEntity(t.Context(), semantics.SubscriptionKind, eu.Path, semantics.Options{Status: status}, []string{"status"}))
	}
	for _, status := range []semantics.Status{semantics.StatusDisabled, semantics.StatusReceiveDisabled, semantics.StatusActive} {
		h.ok(set(status))
		h.same(h.entityOf(eu).Options.Status, status)
	}
	h.topicRefused(semantics.InvalidArgument, func() error { return set(semantics.StatusSendDisabled) })
}

func testSTAT_2_TopicRefusesWhatIsASend(t *testing.T, h *fixture) {
	h.createNews()
	h.publish(later("a", h.in(time.Hour)))
	for _, status := range []semantics.Status{semantics.StatusDisabled, semantics.StatusSendDisabled} {
		h.updateTopic(hasStatus(status), "status")
		for _, m := range []*semantics.Message{text("b"), later("b", h.in(time.Hour))} {
			h.wantCode(second(h.broker.Send(t.Context(), semantics.ToTopic(news), []*semantics.Message{m})), semantics.EntityDisabled)
		}
		h.wantCode(h.cancelPublished(1), semantics.EntityDisabled)
		h.wantCode(h.cancelPublished(99), semantics.EntityDisabled) // whatever it would find
		h.wantCode(second(h.broker.CancelScheduled(t.Context(), semantics.ToTopic(news), nil, []string{"a"})), semantics.EntityDisabled)
		h.same(h.topicRuntime(), semantics.Runtime{Scheduled: 1, SizeInBytes: 2, Subscriptions: 2})
	}
	h.updateTopic(hasStatus(semantics.StatusActive), "status")
	h.ok(h.cancelPublished(1))
	h.same(h.publish(text("b")), []semantics.Stored{stored(2)})
}

func testSTAT_3_ManagementOfDisabledOnes(t *testing.T, h *fixture) {
	h.createNews()
	h.publishTexts("a")
	h.updateTopic(hasStatus(semantics.StatusDisabled), "status")
	h.updateSubscription(eu, hasStatus(semantics.StatusDisabled), "status")
	h.topicRuntime()
	h.same(h.runtimeOf(eu).Available, int64(1))
	h.createSubscription(subscription("asia"))
	h.createRule(eu, always("b"))
	h.same(ruleNames(h.rules(eu)), []string{"$Default", "b"})
	h.deleteRule(eu, "b")
	h.updateSubscription(eu, deliversAtMost(2), "maxDeliveryCount")
	_, err := h.broker.EnsureEntity(t.Context(), semantics.SubscriptionKind, eu.Path, semantics.Options{}, nil)
	h.ok(err)
	h.deleteSubscription(eu)
	h.deleteTopic()
}

func testSTAT_4_TopicAndSubscription(t *testing.T, h *fixture) {
	receive := func() semantics.Code {
		delivery, err := h.broker.Receive(t.Context(), eu, broker.ReceiveOptions{MaxMessages: 1})
		if err == nil {
			h.ok(delivery.Undelivered(t.Context()))
		}
		return h.codeOf(err)
	}
	h.createNews()
	h.publishTexts("a")
	const active, disabled = semantics.StatusActive, semantics.StatusDisabled
	const refused = semantics.EntityDisabled
	for _, c := range []struct {
		topic, subscription semantics.Status
		send, receive       semantics.Code
	}{
		{active, active, "", ""},
		{active, disabled, "", refused},
		{active, semantics.StatusReceiveDisabled, "", refused},
		{disabled, active, refused, ""},
		{semantics.StatusSendDisabled, active, refused, ""},
		{disabled, disabled, refused, refused},
	} {
		h.updateTopic(hasStatus(c.topic), "status")
		h.updateSubscription(eu, hasStatus(c.subscription), "status")
		_, err := h.broker.Send(t.Context(), semantics.ToTopic(news), []*semantics.Message{text("b")})
		if got := [2]semantics.Code{h.codeOf(err), receive()}; got != [2]semantics.Code{c.send, c.receive} {
			t.Errorf("topic %s, subscription %s: send and receive give %q, want %q and %q", c.topic, c.subscription, got, c.send, c.receive)
		}
	}
}

func testSTAT_4_CopiesPileUp(t *testing.T, h *fixture) {
	h.createNews()
	h.publishTexts("a", "b")
	got := h.receive(eu, 2)
	for _, status := range []semantics.Status{semantics.StatusDisabled, semantics.StatusReceiveDisabled} {
		h.updateSubscription(eu, hasStatus(status), "status")
		h.publishTexts("c")
		for _, source := range []semantics.Source{eu, deadEU} {
			h.wantCode(second(h.broker.Peek(t.Context(), source, 0, 1, semantics.ShowAll)), semantics.EntityDisabled)
			h.wantCode(second(h.broker.Receive(t.Context(), source, broker.ReceiveOptions{MaxMessages: 1})), semantics.EntityDisabled)
		}
	}
	h.complete(eu, got[0]) // a lock taken before can be used
	h.deadLetterFrom(eu, got[1])
	r := h.runtimeOf(eu)
	h.same([]int64{r.Available, r.DeadLetter}, []int64{2, 1})
	h.updateSubscription(eu, hasStatus(semantics.StatusActive), "status")
	h.wantNumbers(h.receive(eu, 9), 3, 4)
	h.wantIDs(us, "a", "b", "c", "c")
}

func testSTAT_5_SubscriptionEndsItsWaits(t *testing.T, h *fixture) {
	h.createNews()
	s := h.newSidecar(h.Store)
	here, there := s.waiting(t.Context(), eu, 1), s.waiting(t.Context(), us, 1)
	h.updateSubscription(eu, hasStatus(semantics.StatusReceiveDisabled), "status")
	h.wantCode(h.await(here).err, semantics.EntityDisabled)
	h.publishTexts("a")
	h.awaitNumbers(there, 1)
}

func testSTAT_5_TopicEndsNoWaits(t *testing.T, h *fixture) {
	h.createNews()
	done := h.newSidecar(h.Store).waiting(t.Context(), eu, 1)
	h.updateTopic(hasStatus(semantics.StatusDisabled), "status")
	h.updateTopic(hasStatus(semantics.StatusActive), "status")
	h.publishTexts("a")
	h.awaitNumbers(done, 1)
}

func testCNT_1_Topic(_ *testing.T, h *fixture) {
	h.createTopic()
	h.same(h.topicRuntime(), semantics.Runtime{})
	h.createSubscription(eu)
	h.createSubscription(us)
	h.publish(text("a"), text("b"), later("c", h.in(1000*ms)), later("d", h.in(time.Hour)))
	// never active messages nor dead letters
	want := semantics.Runtime{Scheduled: 2, SizeInBytes: 2*2*2 + 2*2, Subscriptions: 2}
	h.same(h.topicRuntime(), want)
	h.deadLetterFrom(eu, h.receiveOne(eu))
	h.receiveOne(us)
	h.same(h.topicRuntime(), want)
	h.Advance(1000 * ms)
	h.activate()
	h.same(h.topicRuntime(), semantics.Runtime{Scheduled: 1, SizeInBytes: 3*2*2 + 2, Subscriptions: 2})
	h.ok(h.cancelPublished(4))
	h.deleteSubscription(eu)
	h.same(h.topicRuntime(), semantics.Runtime{SizeInBytes: 3 * 2, Subscriptions: 1})
	h.same([]time.Time{h.topic().CreatedAt, h.topic().UpdatedAt}, []time.Time{h.in(-1000 * ms), h.in(-1000 * ms)})
}

func testCNT_1_Subscription(_ *testing.T, h *fixture) {
	h.createNews()
	h.same(h.runtimeOf(eu), semantics.Runtime{})
	first := h.Now()
	h.publish(text("1"), text("2"), text("3"), text("4"), text("5"), text("6"), later("7", h.in(time.Hour)))
	got := h.receive(eu, 5)
	h.deadLetterFrom(eu, got[0])
	h.setAside(eu, got[1])
	h.abandonFor(time.Minute, eu, got[2])
	h.complete(eu, got[3])
	h.same(h.runtimeOf(eu), semantics.Runtime{
		Active: 4, Available: 2, Delayed: 1, Locked: 1, Deferred: 1, DeadLetter: 1, SizeInBytes: 5 * 2,
		OldestEnqueuedAt: first, AvailableSince: first,
	}) // and nothing scheduled, which is the topic's
	h.same(h.runtimeOf(eu).Total(), int64(5))
	h.same(h.runtimeOf(us), semantics.Runtime{Active: 6, Available: 6, SizeInBytes: 6 * 2, OldestEnqueuedAt: first, AvailableSince: first})
}

func testCNT_1_SubscriptionWithSessions(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscription(eu, hasSessions)
	h.publish(of("a", text("1")), of("a", text("2")), of("b", text("3")), of("c", text("4")), text("5"))
	held := h.acceptOf(eu, "a")
	h.receiveOne(held)
	h.setState(held, []byte("note"))
	h.same(h.runtimeOf(eu), semantics.Runtime{
		Active: 4, Available: 3, Locked: 1, DeadLetter: 1, SizeInBytes: 4*3 + 2 + 4,
		OldestEnqueuedAt: h.Now(), AvailableSince: h.Now(),
		Sessions: 3, ReadySessions: 2, LockedSessions: 1,
	})
}

func testCNT_5_ActivityOfATopic(_ *testing.T, h *fixture) {
	h.createNews()
	h.publish(later("x", h.in(time.Hour)))
	for name, active := range map[string]func(){
		"send":      func() { h.publishTexts("a") },
		"schedule":  func() { h.publish(later("b", h.in(time.Hour))) },
		"cancel":    func() { h.ok(h.cancelPublished(h.publish(later("c", h.in(time.Hour)))[0].SequenceNumber)) },
		"peek":      func() { h.peek(semantics.Source{Path: news}) },
		"update":    func() { h.updateTopic(livesFor(time.Hour), "defaultMessageTimeToLive") },
		"unmatched": func() { h.deleteSubscription(us); h.publishTexts("d"); h.createSubscription(us) },
	} {
		h.Advance(ms)
		active()
		if at := h.topic().AccessedAt; !at.Equal(h.Now()) {
			h.t.Errorf("%s: AccessedAt = %s, want now", name, at)
		}
	}
	last := h.Now()
	h.Advance(ms)
	h.topicRuntime()
	h.routes()
	h.listed(semantics.TopicKind, "", 9)
	h.wantCode(h.make(semantics.TopicKind, news), semantics.EntityAlreadyExists)
	h.wantCode(second(h.broker.Send(h.t.Context(), semantics.ToTopic(news), []*semantics.Message{sized(256<<10 + 1)})), semantics.MessageSizeExceeded)
	h.same(h.topic().AccessedAt, last)
}

func testCNT_5_ActivityOfASubscription(_ *testing.T, h *fixture) {
	h.createNews(livesFor(time.Hour))
	h.publishTexts("a", "b", "c", "d")
	got := h.receive(eu, 2)
	for name, active := range map[string]func(){
		"receive":         func() { h.release(eu, h.receiveOne(eu)) },
		"receive nothing": func() { h.receiveNone(deadEU) },
		"peek":            func() { h.peek(eu) },
		"peek dead":       func() { h.peek(deadEU) },
		"renew":           func() { h.renew(eu, got[0]) },
		"complete":        func() { h.complete(eu, got[1]) },
		"purge":           func() { h.purge(eu, broker.PurgeOptions{Before: time.UnixMilli(1)}) },
		"update":          func() { h.updateSubscription(eu, deliversAtMost(9), "maxDeliveryCount") },
		"a new rule":      func() { h.createRule(eu, onSubject("r", "s")) },
	} {
		h.Advance(ms)
		active()
		if at := h.entityOf(eu).AccessedAt; !at.Equal(h.Now()) {
			h.t.Errorf("%s: AccessedAt = %s, want now", name, at)
		}
	}
	last := h.Now()
	h.Advance(ms)
	h.publish(text("e"), later("f", h.in(ms))) // the arrival of copies alone keeps nothing alive (IDLE-4)
	h.Advance(ms)
	h.activate()
	h.runtimeOf(eu)
	h.rules(eu)
	h.routes()
	h.listed(semantics.SubscriptionKind, news, 9)
	h.receive(us, 1)
	h.wantCode(h.make(semantics.SubscriptionKind, eu.Path), semantics.EntityAlreadyExists)
	h.same(h.entityOf(eu).AccessedAt, last)
}

func testTOPIC_8_TopicCannotBeReceivedFrom(t *testing.T, h *fixture) {
	h.create()
	h.createNews()
	h.createSubscription(subscription("tales"), hasSessions)
	h.publish(text("a"), later("b", h.in(time.Hour)))
	before := h.topicSnapshot()
	h.wantAll(h.sourceVerbs(semantics.Source{Path: news}), semantics.InvalidOperation)
	h.wantAll(h.sourceVerbs(semantics.Source{Path: "NEWS"}), semantics.InvalidOperation)
	h.wantCode(h.resubmitInStore(deadOf(onTopic), orders.Path, 1), semantics.InvalidOperation)
	h.same(h.topicSnapshot(), before)
	err := second(h.broker.Receive(t.Context(), semantics.Source{Path: news}, broker.ReceiveOptions{MaxMessages: 1}))
	h.same(semantics.AsError(err).Details[semantics.DetailEntity], news)
}

func testTOPIC_8_SubscriptionCannotBeSentTo(t *testing.T, h *fixture) {
	h.createNews()
	for _, path := range []string{eu.Path, "NEWS/subscriptions/EU", `news\Subscriptions\eu`, eu.Path + "/$deadletterqueue", "news/Subscriptions/missing"} {
		for _, target := range []semantics.Target{semantics.ToQueue(path), semantics.ToTopic(path)} {
			h.topicRefused(semantics.InvalidOperation, func() error {
				return second(h.broker.Send(t.Context(), target, []*semantics.Message{text("a")}))
			})
			h.wantCode(second(h.broker.CancelScheduled(t.Context(), target, []int64{1}, nil)), semantics.InvalidOperation)
			_, errs := h.broker.SendEach(t.Context(), target, [][]*semantics.Message{{text("a")}})
			h.wantCode(errs[0], semantics.InvalidOperation)
		}
	}
	h.create()
	h.deadLetterTexts("a")
	_, _, err := h.broker.Resubmit(t.Context(), deadOrders, broker.ResubmitOptions{Target: eu.Path})
	h.wantCode(err, semantics.InvalidOperation)
	h.wantIDs(deadOrders, "a")
}

func testERR_5_OrderOfChecksOfAPublish(t *testing.T, h *fixture) {
	send := func(messages ...*semantics.Message) error {
		return second(h.broker.Send(t.Context(), semantics.ToTopic(news), messages))
	}
	h.wantCode(send(lasting("a", 0)), semantics.ArgumentOutOfRange) // before existence
	h.wantCode(send(text("a")), semantics.EntityNotFound)
	h.createTopic(hasStatus(semantics.StatusSendDisabled), sharesKeys, func(o *semantics.Options) { o.MaxMessageSizeInKilobytes = 1 })
	h.createSubscription(eu, overflows(1, semantics.RejectOverflow))
	h.wantCode(send(sized(1025)), semantics.MessageSizeExceeded) // before status
	mixed := []*semantics.Message{of("a", text("a")), of("b", text("b"))}
	h.wantCode(send(mixed...), semantics.EntityDisabled) // before partitions
	h.updateTopic(hasStatus(semantics.StatusActive), "status")
	h.wantCode(send(mixed...), semantics.PartitionKeyMismatch) // before quotas
	h.wantCode(send(text("a"), text("b")), semantics.EntityFull)
	h.same(h.topicRuntime(), semantics.Runtime{Subscriptions: 1})
}

func testERR_6_EndedCallChangesNothingInATopic(_ *testing.T, h *fixture) {
	h.createNews()
	h.publish(later("a", h.in(ms)))
	h.Advance(ms)
	ended, cancel := context.WithCancel(h.t.Context())
	cancel()
	version := h.routes().Version
	before := h.topicSnapshot()
	publication := semantics.Publication{Message: text("b"), Copies: []semantics.Copy{{Subscription: "eu", Message: text("b")}}}
	_, _, createSubscription := h.Store.CreateSubscription(ended, subscription("asia").Path, semantics.DefaultOptions(), nil)
	_, createRule := h.Store.CreateRule(ended, eu.Path, always("x"))
	_, getRule := h.Store.GetRule(ended, eu.Path, semantics.DefaultRule)
	_, _, listRules := h.Store.ListRules(ended, eu.Path, "", 9)
	_, routes := h.Store.Routes(ended, news)
	_, due := h.Store.Due(ended, news, 9)
	h.wantAll(map[string]error{
		"create subscription": createSubscription, "create rule": createRule, "get rule": getRule, "list rules": listRules,
		"delete rule": h.Store.DeleteRule(ended, eu.Path, semantics.DefaultRule), "routes": routes, "due": due,
		"publish":      h.Store.Publish(ended, news, version, [][]semantics.Publication{{publication}})[0].Err,
		"activate":     h.Store.Activate(ended, news, version, []semantics.Activation{{SequenceNumber: 1, Publication: publication}}),
		"delete topic": h.Store.DeleteEntity(ended, semantics.TopicKind, news),
	}, semantics.Cancelled)
	h.same(h.topicSnapshot(), before)
}
