package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// What a destination makes of what arrives, as of anything that is sent to it.
var forwardArrivalTests = []ruleTest{
	testFWD_3_SessionsAtTheDestination,
	testFWD_3_SessionsOfATopic,
	testDLQ_9_CountsAsDeadLetter,
	testDUP_9_DetectionOfTheDestination,
	testDUP_9_DetectionOfATopic,
	testSCHED_3_IsNotScheduledAgain,
	testTOPIC_5_RulesAndActionsOnTheWay,
}

func testFWD_3_SessionsAtTheDestination(_ *testing.T, h *fixture) {
	h.createNamed(archive.Path, hasSessions)
	h.create(forwardsTo(archive.Path))
	h.send(part("s", "a"), text("b"), part("t", "c"), part("s", "d"))
	h.forward()
	source := h.acceptOf(archive, "s")
	got := h.receive(source, 9)
	h.same(messageIDs(got), []string{"a", "d"})
	h.same([]int64{got[0].SessionSequence, got[1].SessionSequence}, []int64{1, 2})
	h.wantIDs(deadArchive, "b")
	dead := h.row(deadArchive, 2)
	h.same([]any{dead.DeadLetterReason, dead.EnqueuedSequenceNumber, dead.EnqueuedAt, dead.DeadLetteredAt}, []any{semantics.ReasonNoSession, int64(2), h.Now(), h.Now()})
	h.same(dead.DeadLetterErrorDescription != "", true)
	h.same(h.counts(), semantics.Runtime{})
}

func testFWD_3_SessionsOfATopic(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscription(eu, hasSessions)
	h.create(forwardsTo(news))
	h.send(text("a"), part("s", "b"))
	h.forward()
	h.wantIDs(h.acceptOf(eu, "s"), "b")
	h.wantReasons(deadEU, semantics.ReasonNoSession)
}

// A dead letter counts for the size of the queue, but not for its number of messages (TOPIC-7).
func testDLQ_9_CountsAsDeadLetter(_ *testing.T, h *fixture) {
	h.createNamed(archive.Path, hasSessions, holdsAtMost(1), detectsDuplicates)
	h.create(forwardsTo(archive.Path))
	h.send(part("s", "a"), text("b"), text("b"), part("s", "c"))
	h.forward()
	h.same(h.countsOf(archive).DeadLetter, int64(1))
	h.wantIDs(archive, "a")
	h.wantUndelivered(semantics.ReasonDestinationFull, "ENTITY_FULL", "c")
}

func testDUP_9_DetectionOfTheDestination(_ *testing.T, h *fixture) {
	h.createNamed(archive.Path, detectsDuplicates, remembersFor(time.Minute))
	h.create(forwardsTo(archive.Path))
	h.sendToQueue(archive, text("a"))
	h.send(text("a"), text("b"), text("b"), text("c"))
	h.forward()
	h.wantIDs(archive, "a", "b", "c")
	h.same(h.counts(), semantics.Runtime{}) // a duplicate counts as delivered
	h.Advance(time.Minute)
	h.send(text("b"))
	h.forward()
	h.wantIDs(archive, "a", "b", "c", "b")
	results, err := h.broker.Send(h.t.Context(), semantics.ToQueue(archive.Path), []*semantics.Message{text("b")})
	h.ok(err)
	h.same(results[0].Stored, duplicate(4)) // and it is remembered under the number it has there
}

func testDUP_9_DetectionOfATopic(_ *testing.T, h *fixture) {
	h.createNews(detectsDuplicates)
	h.create(forwardsTo(news))
	h.publishTexts("a")
	h.send(text("a"), text("b"), text("b"))
	h.forward()
	h.wantIDs(eu, "a", "b")
	h.same(h.publish(text("b")), []semantics.Stored{duplicate(2)})
	h.same(h.counts(), semantics.Runtime{})
}

// When it was scheduled for stays on it, and does not count any more, whatever the clock at the destination says.
func testSCHED_3_IsNotScheduledAgain(_ *testing.T, h *fixture) {
	h.createForwarding()
	h.createTopic()
	h.createSubscription(eu)
	for i, to := range []string{archive.Path, news} {
		h.forwardTo(to)
		h.sendTexts(1)
		transfer := h.begin(orders, to, 9)
		publications := carried(transfer)
		publications[0].Message.ScheduledAt = h.in(time.Hour)
		version := int64(0)
		if to == news {
			publications[0].Copies = []semantics.Copy{{Subscription: "eu", Message: publications[0].Message}}
			version = h.routes().Version
		}
		h.ok(second(h.Store.Arrive(h.t.Context(), transfer, version, publications, true)))
		h.end(transfer)
		m := h.receiveOne([]semantics.Source{archive, eu}[i])
		h.same([]any{m.ScheduledAt, m.EnqueuedAt, m.State}, []any{h.in(time.Hour), h.Now(), semantics.Active})
	}
	h.updateTopic(failsUnmatched, "failIfUnmatched") // which does not apply to a message that is scheduled
	h.sendTexts(1)
	transfer := h.begin(orders, news, 9)
	publications := carried(transfer)
	publications[0].Message.ScheduledAt = h.in(time.Hour)
	arrivals, err := h.Store.Arrive(h.t.Context(), transfer, h.routes().Version, publications, true)
	h.ok(err)
	h.same(arrivals, []semantics.Arrival{{Refused: semantics.NoMatchingSubscription}})
}

// A subscription forwards to a topic of its own, whose subscriptions select and change what they get (FWD-11).
func testTOPIC_5_RulesAndActionsOnTheWay(_ *testing.T, h *fixture) {
	const regional = "regional"
	north := semantics.Source{Path: semantics.SubscriptionPath(regional, "north")}
	h.createTopic()
	h.createTopicNamed(regional)
	h.createNamed(archive.Path)
	h.createSubscriptionWith(eu, []semantics.Rule{doing(onSQL("mark", "n > 1"), "SET hop = 'one'; SET n = n + 10")}, forwardsTo(regional))
	h.createSubscriptionWith(north, []semantics.Rule{
		onSQL("plain", "hop = 'one' AND RuleName = 'mark'"), doing(onSQL("again", "n = 13"), "SET hop = 'two'; REMOVE n"),
	}, forwardsTo(archive.Path))
	for n := range int64(4) {
		h.publish(counting(n, text(fmt.Sprint(n))))
	}
	h.forward()
	got := h.receive(archive, 9)
	h.same(messageIDs(got), []string{"2", "3", "3"})
	changed := got[0].Properties
	h.same(changed, properties{"n": semantics.Int64(12), "hop": semantics.String("one"), "RuleName": semantics.String("mark")})
	for i, number := range []int64{3, 4, 4} { // those of the first topic
		h.same([]any{got[i].EnqueuedSequenceNumber, got[i].Forwarded.Hops}, []any{number, 2})
	}
	h.same(h.madeBy(archive), []string{"again", "mark", "mark"})
}
