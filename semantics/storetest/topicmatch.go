package storetest

import (
	"strings"
	"testing"

	"github.com/sidebus/sidebus/semantics"
)

var topicMatchTests = []ruleTest{
	testTOPIC_3_WithoutMatchItVanishes,
	testTOPIC_3_FailIfUnmatched,
	testTOPIC_3_FailIfUnmatchedIsForTheWholeCall,
	testTOPIC_3_FailIfUnmatchedIsChangeable,
	testTOPIC_3_DeadLetterIsAMatch,
	testTOPIC_5_ThreePlainAndTwoActionsAreThreeCopies,
	testTOPIC_5_CopiesPerSubscription,
	testTOPIC_6_RuleNameOnCopiesOfActions,
	testACT_2_OnlyItsOwnCopyIsChanged,
	testACT_8_ChangedSessionDecides,
	testACT_9_HeadersTooLarge,
	testCORR_6_CorrelationWithAction,
	testRULE_8_FailureIsADeadLetter,
	testRULE_8_OneDeadLetterForManyFailures,
	testRULE_8_OtherRulesGoOn,
	testRULE_8_OtherSubscriptionsGoOn,
	testRULE_8_FailingAction,
	testRULE_8_SwitchedOff,
	testRULE_8_SwitchedOver,
	testSESS_7_CopyWithoutSessionIsADeadLetter,
	testSESS_7_BlocksNothing,
	testDLQ_11_LetterIsTheMessageAsSent,
	testDLQ_16_LettersFromTheStartKeepTheirOrder,
}

func testTOPIC_3_WithoutMatchItVanishes(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscriptionWith(eu, []semantics.Rule{onSubject("s", "sport")})
	h.createSubscriptionWith(us, []semantics.Rule{never("n")})
	h.same(h.publish(text("a"), about("Sport", text("b"))), []semantics.Stored{stored(1), stored(2)})
	h.same(h.topicRuntime(), semantics.Runtime{Subscriptions: 2})
	h.wantIDs(eu)
	h.wantIDs(us)
}

func testTOPIC_3_FailIfUnmatched(_ *testing.T, h *fixture) {
	h.createTopic(failsUnmatched)
	err := h.refusedPublish(semantics.NoMatchingSubscription, text("a")) // there is none at all
	h.same(err.Details[semantics.DetailEntity], news)
	h.createSubscriptionWith(eu, []semantics.Rule{onSubject("s", "sport")})
	h.createSubscriptionWith(us, nil)
	h.refusedPublish(semantics.NoMatchingSubscription, text("a"))
	h.same(h.publish(about("sport", text("b"))), []semantics.Stored{stored(1)})
	h.wantIDs(eu, "b")
}

func testTOPIC_3_FailIfUnmatchedIsForTheWholeCall(_ *testing.T, h *fixture) {
	h.createTopic(failsUnmatched, detectsDuplicates)
	h.createSubscriptionWith(eu, []semantics.Rule{onSubject("s", "sport")})
	h.refusedPublish(semantics.NoMatchingSubscription, about("sport", text("a")), text("b"))
	h.same(h.publish(about("sport", text("a"))), []semantics.Stored{stored(1)}) // nothing was remembered either
	h.deleteRule(eu, "s")
	// A duplicate is dropped, and needs nowhere to go.
	h.same(h.publish(about("sport", text("a"))), []semantics.Stored{duplicate(1)})
	h.refusedPublish(semantics.NoMatchingSubscription, about("sport", text("a")), about("sport", text("c")))
}

func testTOPIC_3_FailIfUnmatchedIsChangeable(_ *testing.T, h *fixture) {
	h.createTopic()
	h.publishTexts("a")
	h.updateTopic(failsUnmatched, "failIfUnmatched")
	h.refusedPublish(semantics.NoMatchingSubscription, text("b"))
	h.updateTopic(func(*semantics.Options) {}, "failIfUnmatched")
	h.same(h.publish(text("b")), []semantics.Stored{stored(2)})
}

func testTOPIC_3_DeadLetterIsAMatch(_ *testing.T, h *fixture) {
	h.createTopic(failsUnmatched)
	h.createSubscriptionWith(eu, []semantics.Rule{failsOnZero("f")})
	h.publish(counting(0, text("a")))
	h.wantIDs(deadEU, "a")
	h.refusedPublish(semantics.NoMatchingSubscription, text("b")) // it has no n
}

func testTOPIC_5_ThreePlainAndTwoActionsAreThreeCopies(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscriptionWith(eu, []semantics.Rule{
		always("plain1"), onSubject("plain2", "sport"), doing(always("do1"), "SET x = 1"), onSQL("plain3", "sys.Subject = 'sport'"),
		doing(onSubject("do2", "sport"), "SET x = 2"), doing(onSubject("other", "weather"), "SET x = 3"), onSubject("other2", "weather"),
	})
	h.publish(about("sport", text("a")))
	h.same(h.madeBy(eu), []string{"", "do1", "do2"})
	h.wantNumbers(h.peek(eu), 1, 2, 3)
	for _, m := range h.peek(eu) {
		h.same([]any{m.MessageID, m.EnqueuedSequenceNumber}, []any{"a", int64(1)})
	}
}

func testTOPIC_5_CopiesPerSubscription(_ *testing.T, h *fixture) {
	plain, act := always, func(name string) semantics.Rule { return doing(always(name), "SET x = 1") }
	cases := map[string]struct {
		rules []semantics.Rule
		want  []string
	}{
		"none":         {nil, nil},
		"one":          {[]semantics.Rule{plain("a")}, []string{""}},
		"many":         {[]semantics.Rule{plain("a"), plain("b"), plain("c")}, []string{""}},
		"action":       {[]semantics.Rule{act("a")}, []string{"a"}},
		"actions":      {[]semantics.Rule{act("a"), act("b"), act("c")}, []string{"a", "b", "c"}},
		"both":         {[]semantics.Rule{act("a"), plain("b")}, []string{"", "a"}},
		"both-other":   {[]semantics.Rule{plain("a"), act("b")}, []string{"", "b"}},
		"unmatched":    {[]semantics.Rule{doing(never("a"), "SET x = 1"), never("b")}, nil},
		"plain-misses": {[]semantics.Rule{never("a"), act("b"), never("c")}, []string{"b"}},
	}
	h.createTopic()
	for name, c := range cases {
		h.createSubscriptionWith(subscription(name), c.rules)
	}
	h.publishTexts("a")
	for name, c := range cases {
		h.same(h.madeBy(subscription(name)), c.want)
	}
}

func testTOPIC_6_RuleNameOnCopiesOfActions(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscriptionWith(eu, []semantics.Rule{always("plain")})
	h.createSubscriptionWith(us, []semantics.Rule{doing(always("Mark-It"), "SET x = 'y'")})
	h.publish(counting(7, text("a")))
	h.same(h.receiveOne(eu).Properties, properties{"n": semantics.Int64(7)})
	h.same(h.receiveOne(us).Properties, properties{
		// in the case it was given
		"n": semantics.Int64(7), "x": semantics.String("y"), "RuleName": semantics.String("Mark-It"),
	})
}

func testACT_2_OnlyItsOwnCopyIsChanged(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscriptionWith(eu, []semantics.Rule{
		// c sees the message as it was sent
		doing(always("a"), "SET sys.Subject = 'changed'; REMOVE n"), always("b"), onSubject("c", "changed"),
	})
	h.createSubscriptionWith(us, []semantics.Rule{onSubject("a", "changed")})
	sent := counting(1, about("sport", text("a")))
	h.publish(sent)
	h.same([]any{sent.Subject, sent.Properties}, []any{"sport", properties{"n": semantics.Int64(1)}})
	got := map[string]properties{}
	for _, m := range h.peek(eu) {
		got[m.Subject] = m.Properties
	}
	h.same(got, map[string]properties{"sport": {"n": semantics.Int64(1)}, "changed": {"RuleName": semantics.String("a")}})
	h.wantIDs(us)
}

func testACT_8_ChangedSessionDecides(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscriptionWith(eu, []semantics.Rule{doing(always("a"), "SET sys.SessionId = 'changed'")}, hasSessions)
	h.createSubscription(us, hasSessions)
	h.publish(of("s", text("a")), text("b"))
	h.wantNumbers(h.receive(h.acceptOf(eu, "changed"), 9), 1, 2)
	h.wantNumbers(h.receive(h.acceptOf(eu, "s"), 9))
	h.wantNumbers(h.receive(h.acceptOf(us, "s"), 9), 1)
	h.wantIDs(deadUS, "b")
}

func testACT_9_HeadersTooLarge(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscriptionWith(eu, []semantics.Rule{doing(always("a"), "SET more = '"+strings.Repeat("x", 900)+"'")})
	h.createSubscription(us)
	large := text("large")
	large.Properties = filler(semantics.MaxHeaderSize - 500 - len("large"))
	h.publish(large, text("small"))
	h.wantIDs(eu, "small")
	h.wantIDs(deadEU, "large")
	h.same(h.peek(deadEU)[0].DeadLetterReason, "HeaderSizeExceeded")
	h.wantIDs(us, "large", "small")
	h.wantIDs(deadUS)
}

func testCORR_6_CorrelationWithAction(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscriptionWith(eu, []semantics.Rule{doing(onSubject("r", "sport"), "SET kind = 'match'")})
	h.publish(about("sport", text("a")), about("weather", text("b")))
	h.wantIDs(eu, "a")
	h.same(h.peek(eu)[0].Properties["kind"], semantics.String("match"))
}

func testRULE_8_FailureIsADeadLetter(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscriptionWith(eu, []semantics.Rule{failsOnZero("f")})
	h.Advance(ms)
	h.publish(counting(0, text("a")), counting(1, text("b")), text("c"))
	h.wantIDs(eu, "b")
	h.wantIDs(deadEU, "a")
	dead := h.peek(deadEU)[0]
	h.same([]any{dead.DeadLetterReason, dead.DeadLetteredAt, dead.DeliveryCount}, []any{"FilterEvaluationException", h.Now(), 0})
	h.same(dead.Properties["DeadLetterReason"], semantics.String("FilterEvaluationException")) // DLQ-15
	h.same(dead.Properties["DeadLetterErrorDescription"], semantics.String(dead.DeadLetterErrorDescription))
	if dead.DeadLetterErrorDescription == "" {
		h.t.Error("the dead letter does not say what failed")
	}
	r := h.runtimeOf(eu)
	h.same([]int64{r.Active, r.DeadLetter}, []int64{1, 1})
}

func testRULE_8_OneDeadLetterForManyFailures(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscriptionWith(eu, []semantics.Rule{
		failsOnZero("a"), failsOnZero("b"), doing(failsOnZero("c"), "SET x = 1"), doing(always("d"), "SET x = 1 / n"), never("e"),
	})
	h.publish(counting(0, text("a")))
	h.wantIDs(eu)
	h.wantIDs(deadEU, "a")
}

func testRULE_8_OtherRulesGoOn(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscriptionWith(eu, []semantics.Rule{
		doing(always("before"), "SET x = 1"), failsOnZero("fails"), always("later"), doing(always("next"), "SET x = 1"),
	})
	h.createSubscriptionWith(us, []semantics.Rule{always("a"), failsOnZero("b")}) // whatever order the rules are in
	h.publish(counting(0, text("a")))
	h.same(h.madeBy(eu), []string{"", "before", "next"})
	h.wantIDs(deadEU, "a")
	h.wantIDs(us, "a")
	h.wantIDs(deadUS, "a")
}

func testRULE_8_OtherSubscriptionsGoOn(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscriptionWith(eu, []semantics.Rule{failsOnZero("f")})
	h.createSubscription(us)
	h.publish(counting(0, text("a")))
	h.wantIDs(eu)
	h.wantIDs(us, "a")
	h.wantIDs(deadUS)
}

func testRULE_8_FailingAction(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscriptionWith(eu, []semantics.Rule{doing(always("f"), "SET kind = 'changed'; SET x = 1 / n")})
	h.publish(counting(0, text("a")), counting(1, text("b")))
	h.wantIDs(eu, "b")
	h.wantIDs(deadEU, "a")
	h.same(h.peek(deadEU)[0].DeadLetterReason, "FilterEvaluationException")
}

func testRULE_8_SwitchedOff(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscriptionWith(eu, []semantics.Rule{failsOnZero("f"), onSubject("s", "sport"), doing(always("g"), "SET x = 1 / n")}, dropsFailures)
	h.publish(counting(0, text("a")), counting(0, about("sport", text("b"))))
	h.wantIDs(eu, "b")
	h.same(h.madeBy(eu), []string{""})
	h.wantIDs(deadEU)
}

func testRULE_8_SwitchedOver(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscriptionWith(eu, []semantics.Rule{failsOnZero("f")})
	option := "deadLetteringOnFilterEvaluationExceptions"
	h.publish(counting(0, text("a")))
	h.updateSubscription(eu, dropsFailures, option)
	h.publish(counting(0, text("b"))) // by a Broker that knew the option as it was
	h.updateSubscription(eu, func(o *semantics.Options) { o.DeadLetteringOnFilterEvaluationExceptions = true }, option)
	h.publish(counting(0, text("c")))
	h.wantIDs(deadEU, "a", "c")
}

func testSESS_7_CopyWithoutSessionIsADeadLetter(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscription(eu, hasSessions)
	h.createSubscription(us)
	h.same(h.publish(of("s", text("a")), text("b"), of("s", text("c"))), []semantics.Stored{stored(1), stored(2), stored(3)})
	h.wantIDs(eu, "a", "c")
	h.wantIDs(deadEU, "b")
	dead := h.peek(deadEU)[0]
	h.same([]string{dead.DeadLetterReason, dead.SessionID}, []string{"Session ID is null", ""})
	if dead.DeadLetterErrorDescription == "" {
		h.t.Error("the dead letter does not say why")
	}
	h.wantIDs(us, "a", "b", "c")
	h.wantIDs(deadUS)
}

func testSESS_7_BlocksNothing(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscription(eu, hasSessions, blocksOnDeadLetter)
	h.publish(text("a"), of("s", text("b")))
	h.wantIDs(deadEU, "a")
	rows, _, err := h.broker.ListSessions(h.t.Context(), eu.Path, 0, "", semantics.SessionFilter{})
	h.ok(err)
	h.same(idsOf(rows), []string{"s"}) // there is no session without an id
	h.same(h.runtimeOf(eu).Sessions, int64(1))
	h.wantNumbers(h.receive(h.acceptOf(eu, "s"), 9), 2)
}

func testDLQ_11_LetterIsTheMessageAsSent(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscriptionWith(eu, []semantics.Rule{doing(always("f"), "SET sys.Subject = 'changed'; SET x = 1 / n")})
	sent := counting(0, about("sport", text("a")))
	sent.CorrelationID, sent.SessionID = "c", "s"
	h.publish(sent)
	dead := h.receiveOne(deadEU)
	want := sent.Properties
	want["DeadLetterReason"] = semantics.String(dead.DeadLetterReason)
	want["DeadLetterErrorDescription"] = semantics.String(dead.DeadLetterErrorDescription)
	h.same(dead.Properties, want)
	h.same([]any{dead.Subject, dead.CorrelationID, dead.SessionID, string(dead.Body), dead.EnqueuedAt}, []any{"sport", "c", "s", "a", h.Now()})
	h.complete(deadEU, dead)
	h.same(h.runtimeOf(eu), semantics.Runtime{})
}

func testDLQ_16_LettersFromTheStartKeepTheirOrder(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscriptionWith(eu, []semantics.Rule{failsOnZero("f")})
	h.publish(counting(1, text("a")), counting(0, text("b")), counting(0, text("c")), counting(1, text("d")))
	h.Advance(ms)
	h.deadLetterFrom(eu, h.receiveOne(eu))
	h.Advance(ms)
	h.publish(counting(0, text("e")))
	h.same(messageIDs(h.receive(deadEU, 9)), []string{"b", "c", "a", "e"}) // by time, then by number
	h.wantNumbers(h.peek(deadEU), 1, 2, 3, 5)
	h.wantNumbers(h.peek(eu), 4)
}
