package storetest

import (
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// Messages that no subscription gets, and that are kept.
var unmatchedTests = []ruleTest{
	testTOPIC_3_UnmatchedGoesOn,
	testTOPIC_3_UnmatchedIsHidden,
	testTOPIC_3_UnmatchedIsSetAndCleared,
	testTOPIC_3_UnmatchedByRulesOfTheInstant,
	testTOPIC_3_UnmatchedAndScheduled,
	testTOPIC_3_UnmatchedWinsOverFail,
	testTOPIC_3_UnmatchedCountsForTheTopic,
	testTOPIC_3_UnmatchedThatIsRefused,
	testTOPIC_3_UnmatchedThatHasGoneTooFar,
	testTOPIC_3_UnmatchedIsNoneOfTheLimit,
	testENT_8_UnmatchedGoesWithTheTopic,
}

func keepsUnmatched(path string) change {
	return func(o *semantics.Options) { o.UnmatchedTo = path }
}

// createPicky makes archive, and news, of which eu wants messages with the subject x and all others go to archive.
func (h *fixture) createPicky(changes ...change) {
	h.t.Helper()
	h.createNamed(archive.Path)
	h.createTopic(append(changes, keepsUnmatched(archive.Path))...)
	h.createSubscriptionWith(eu, []semantics.Rule{onSubject("r", "x")})
}

func testTOPIC_3_UnmatchedGoesOn(_ *testing.T, h *fixture) {
	h.createPicky()
	h.publish(text("a"), about("x", text("b")), text("c"))
	h.Advance(time.Second)
	h.forward()
	h.wantIDs(eu, "b")
	for i, m := range h.receive(archive, 9) {
		number := int64([]int{1, 3}[i])
		h.same([]any{m.SequenceNumber, m.EnqueuedSequenceNumber, m.EnqueuedAt, m.Forwarded.Hops}, []any{int64(i + 1), number, h.Now(), 1})
	}
	h.same(h.countsOf(archive).Locked, int64(2))
}

func testTOPIC_3_UnmatchedIsHidden(t *testing.T, h *fixture) {
	h.createPicky()
	hidden := unmatchedOf(news)
	h.same(h.listed(semantics.SubscriptionKind, news, 9), []string{eu.Path})
	h.same(h.topicRuntime().Subscriptions, int64(1))
	h.same(len(h.routes().Subscriptions), 1)
	for verb, err := range map[string]error{
		"get":     h.get(semantics.SubscriptionKind, hidden.Path),
		"delete":  h.broker.DeleteEntity(t.Context(), semantics.SubscriptionKind, hidden.Path),
		"peek":    second(h.broker.Peek(t.Context(), hidden, 0, 1, semantics.ShowAll)),
		"receive": second(h.broker.Receive(t.Context(), hidden, broker.ReceiveOptions{MaxMessages: 1})),
		"dead":    second(h.broker.Peek(t.Context(), deadOf(hidden), 0, 1, semantics.ShowAll)),
		"rules":   third(h.broker.ListRules(t.Context(), hidden.Path, 0, "")),
		"create":  h.make(semantics.SubscriptionKind, hidden.Path),
	} {
		if code := h.codeOf(err); code != semantics.InvalidArgument {
			t.Errorf("%s: got %v", verb, err)
		}
	}
}

func testTOPIC_3_UnmatchedIsSetAndCleared(_ *testing.T, h *fixture) {
	h.createNamed(archive.Path)
	h.createNamed(attic.Path)
	h.createTopic()
	h.publishTexts("lost")
	h.updateTopic(keepsUnmatched(archive.Path), "unmatchedTo")
	h.publishTexts("a")
	h.forward()
	h.wantIDs(archive, "a")
	h.updateTopic(keepsUnmatched(attic.Path), "unmatchedTo")
	h.publishTexts("b")
	h.forward()
	h.wantIDs(attic, "b")
	h.publishTexts("c")
	h.updateTopic(keepsUnmatched(""), "unmatchedTo")
	h.publishTexts("lost too")
	h.ok(h.broker.Forward(h.t.Context(), unmatchedOf(news))) // what was taken in goes where it was to go
	h.wantIDs(attic, "b", "c")
	h.updateTopic(keepsUnmatched(archive.Path), "unmatchedTo")
	h.publishTexts("d")
	h.forward()
	h.wantIDs(archive, "a", "d")
	h.same(h.topicRuntime(), semantics.Runtime{})
}

// A rule that comes or goes decides from that instant on (TOPIC-4), also for a sidecar that knew the rules of before.
func testTOPIC_3_UnmatchedByRulesOfTheInstant(_ *testing.T, h *fixture) {
	h.createPicky()
	brokers := h.sidecars()
	other := brokers[len(brokers)-1]
	h.publishBy(other, text("a"))
	h.createRule(eu, always("all"))
	h.publishBy(other, text("b"))
	h.deleteRule(eu, "all")
	h.publishBy(other, text("c"))
	h.updateTopic(keepsUnmatched(""), "unmatchedTo")
	h.publishBy(other, text("d"))
	h.updateTopic(keepsUnmatched(archive.Path), "unmatchedTo")
	h.publishBy(other, text("e"))
	h.createSubscription(us)
	h.publishBy(other, text("f"))
	h.forward()
	h.wantIDs(eu, "b")
	h.wantIDs(us, "f")
	h.wantIDs(archive, "a", "c", "e")
}

func testTOPIC_3_UnmatchedAndScheduled(_ *testing.T, h *fixture) {
	h.createPicky()
	h.publish(later("a", h.in(time.Second)), about("x", later("b", h.in(time.Second))))
	h.forward()
	h.wantIDs(archive)
	h.Advance(time.Second)
	h.activate()
	h.forward()
	h.wantIDs(eu, "b")
	h.wantIDs(archive, "a")
}

func testTOPIC_3_UnmatchedWinsOverFail(_ *testing.T, h *fixture) {
	h.createPicky(failsUnmatched)
	h.publish(text("a"))
	h.forward()
	h.wantIDs(archive, "a")
	h.updateTopic(keepsUnmatched(""), "unmatchedTo")
	h.refusedPublish(semantics.NoMatchingSubscription, text("b"))
}

// Until they are forwarded they count for the size of the topic, and are refused when it is full.
func testTOPIC_3_UnmatchedCountsForTheTopic(_ *testing.T, h *fixture) {
	h.createPicky(megabytes(1))
	for range 4 {
		h.publish(sized(250 << 10))
	}
	h.same(h.topicRuntime(), semantics.Runtime{SizeInBytes: 1000 << 10, Subscriptions: 1})
	h.refusedPublish(semantics.EntityFull, sized(250<<10))
	h.forward()
	h.same(h.topicRuntime(), semantics.Runtime{Subscriptions: 1})
	h.publish(sized(250 << 10))
}

func testTOPIC_3_UnmatchedThatIsRefused(t *testing.T, h *fixture) {
	h.createPicky()
	h.deleteQueue(archive)
	h.publish(text("a"), text("b"))
	h.forward()
	source := undelivered(unmatchedOf(news))
	h.wantIDs(source, "a", "b")
	h.wantReasons(source, semantics.ReasonDestinationNotFound, semantics.ReasonDestinationNotFound)
	h.same(h.runtimeOf(source), semantics.Runtime{TransferDeadLetter: 2, SizeInBytes: 4})
	h.complete(source, h.receiveOne(source))
	h.createNamed(archive.Path)
	h.ok(third(h.broker.Resubmit(t.Context(), source, broker.ResubmitOptions{})))
	h.forward()
	h.wantIDs(archive, "b")
	h.wantIDs(source)
}

// The dead letters of what is unmatched could not be seen, so those that have gone too far are with the others that
// were refused.
func testTOPIC_3_UnmatchedThatHasGoneTooFar(_ *testing.T, h *fixture) {
	h.createTopic()
	h.create(forwardsTo(news))
	h.updateTopic(keepsUnmatched(orders.Path), "unmatchedTo")
	h.publishTexts("a")
	h.forward()
	source := undelivered(unmatchedOf(news))
	h.wantIDs(source, "a")
	h.wantReasons(source, semantics.ReasonTooManyHops)
	h.same(h.counts(), semantics.Runtime{})
}

func testTOPIC_3_UnmatchedIsNoneOfTheLimit(_ *testing.T, h *fixture) {
	h = h.limited(1, 9, 9)
	h.createNamed(archive.Path)
	h.updateTopic(keepsUnmatched(archive.Path), "unmatchedTo")
	h.createSubscriptionWith(eu, []semantics.Rule{onSubject("r", "x")})
	h.topicRefused(semantics.QuotaExceeded, func() error { return h.make(semantics.SubscriptionKind, us.Path) })
	h.deleteTopic()
	h.createTopic()
	h.createSubscriptionWith(eu, []semantics.Rule{onSubject("r", "x")})
	h.updateTopic(keepsUnmatched(archive.Path), "unmatchedTo") // which it may have besides
	h.publish(text("a"))
	h.forward()
	h.wantIDs(archive, "a")
}

func testENT_8_UnmatchedGoesWithTheTopic(t *testing.T, h *fixture) {
	h.createPicky()
	h.publish(text("a"))
	h.deleteTopic()
	h.ok(h.broker.Forward(t.Context(), unmatchedOf(news)))
	source := undelivered(unmatchedOf(news))
	h.wantCode(second(h.broker.Peek(t.Context(), source, 0, 1, semantics.ShowAll)), semantics.EntityNotFound)
	h.createTopic()
	h.wantCode(second(h.broker.Peek(t.Context(), source, 0, 1, semantics.ShowAll)), semantics.EntityNotFound)
	h.deleteTopic()
	h.createTopic(keepsUnmatched(archive.Path))
	h.forward()
	h.wantIDs(archive)
	h.same(h.topicRuntime(), semantics.Runtime{})
	h.publishTexts("b")
	h.forward()
	h.wantIDs(archive, "b")
}
