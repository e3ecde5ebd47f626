package storetest

import (
	"testing"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/partitioned"
)

// Forwarding and resubmission to topics with several partitions (PART-8).
var partitionTopicForwardTests = []ruleTest{
	testPART_8_ForwardsToTheTopic,
	testPART_8_ForwarderDiesAfterAnyStep,
	testPART_8_RulesChangeUnderATransfer,
	testPART_8_TopicRecreatedUnderATransfer,
	testPART_8_TransferMeetsAMissingPartition,
	testPART_8_SubscriptionIsNoDestination,
	testPART_8_SweepersForwardWhatIsUnmatched,
	testPART_8_PartitionThatForgotUnmatchedTo,
	testPART_8_ResubmittedToTheTopic,
	testPART_8_ResubmissionDiesAfterAnyStep,
}

func testPART_8_ForwardsToTheTopic(_ *testing.T, h *fixture) {
	for i, change := range []change{partitions(1), partitions(3)} {
		below := h.below()
		if i == 0 {
			h.spreadNews(4)
		} else {
			h.deleteQueue(orders)
		}
		h.create(change, forwardsTo(news))
		want := h.sendKeyed(orders, 20)
		h.sweepPartitions(below)
		h.same(h.counts(), semantics.Runtime{})
		for _, source := range []semantics.Source{eu, us} {
			rows := h.wantByKey(source, want)
			for _, m := range rows {
				h.same(m.Forwarded.Hops, 1)
			}
			h.wantHidden(rows...)
			h.complete(source, h.receive(source, 100)...)
		}
	}
}

// Whatever step of a transfer to the partitions of a topic a sidecar has done last, with or without an answer, another
// one brings each message to each subscription once.
func testPART_8_ForwarderDiesAfterAnyStep(_ *testing.T, h *fixture) {
	below := h.spreadNews(3)
	h.create(partitions(2), forwardsTo(news))
	h.forwardsWithStops(below, eu, us)
}

// What has arrived in some partitions stays as it was decided; the rest is decided by the rules of then, and nothing
// comes twice.
func testPART_8_RulesChangeUnderATransfer(t *testing.T, h *fixture) {
	below := h.spreadNews(3)
	h.create(forwardsTo(news))
	want := h.sendKeyed(orders, 15)
	mortal := h.newBroker(partitioned.New(&dyingBelow{Below: below, left: 2, after: true}))
	h.wantCode(mortal.Forward(t.Context(), orders), semantics.StoreUnavailable)
	had := messageIDs(h.peekFrom(eu, 1, 100))
	if len(had) == 0 || len(had) == 15 {
		t.Fatalf("%d of 15 messages arrived in one of three partitions", len(had))
	}
	h.ok(h.broker.DeleteRule(t.Context(), eu.Path, everything.Name))
	h.forwardBy(h.peer())
	h.wantByKey(us, want)
	h.same(messageIDs(h.peekFrom(eu, 1, 100)), had)
	h.same(h.counts(), semantics.Runtime{})
}

// What had arrived in some partitions went with the topic, and must not arrive in the next one too.
func testPART_8_TopicRecreatedUnderATransfer(t *testing.T, h *fixture) {
	below := h.spreadNews(3)
	h.create(forwardsTo(news))
	h.sendKeyed(orders, 10)
	mortal := h.newBroker(partitioned.New(&dyingBelow{Below: below, left: 2}))
	h.wantCode(mortal.Forward(t.Context(), orders), semantics.StoreUnavailable)
	h.ok(h.broker.DeleteEntity(t.Context(), semantics.TopicKind, news))
	h.createNews(partitions(2))
	h.forwardBy(h.peer())
	h.same(h.runtimeOf(eu), h.runtimeOf(us))
	h.same(h.runtimeOf(eu).Total(), int64(0))
	h.same(h.counts(), semantics.Runtime{TransferDeadLetter: 10})
	h.wantHidden(h.peek(undelivered(orders))...)
	h.send(keyed("new", "k0"))
	h.forward()
	h.wantIDs(eu, "new")
}

// A creation that ended halfway, or a server that forgot a partition or the definition: the forwarder creates what is
// missing.
func testPART_8_TransferMeetsAMissingPartition(t *testing.T, h *fixture) {
	below := h.spreadNews(3)
	h.create(forwardsTo(news))
	want := h.sendKeyed(orders, 15)
	for p := range 3 {
		path := h.Store.(*partitioned.Store).Path(news, p)
		h.ok(below.DeleteEntity(t.Context(), semantics.TopicKind, path))
	}
	h.forwardBy(h.peer())
	h.same(h.counts(), semantics.Runtime{})
	h.wantByKey(eu, want)
	h.wantByKey(us, want)
}

func testPART_8_SubscriptionIsNoDestination(_ *testing.T, h *fixture) {
	h.spreadNews(2)
	h.create()
	for _, to := range []string{eu.Path, "news/subscriptions/missing"} {
		h.refused(semantics.ForwardDestinationInvalid, func() error {
			options := semantics.Options{ForwardTo: to}
			return second(h.broker.UpdateEntity(h.t.Context(), semantics.QueueKind, "orders", options, []string{"forwardTo"}))
		})
	}
}

// createPickyNews creates archive, and news with partitions, of which eu wants messages with the subject x and all
// others go to archive.
func (h *fixture) createPickyNews(n int64) partitioned.Below {
	h.t.Helper()
	h.overPartitions()
	below := h.below()
	h.createPicky(partitions(n))
	return below
}

func testPART_8_SweepersForwardWhatIsUnmatched(_ *testing.T, h *fixture) {
	below := h.createPickyNews(4)
	h.publishToAll(4, "a")
	h.publish(about("x", text("b")))
	h.sweepPartitions(below)
	h.wantOfAll(eu, 1, "b")
	rows := h.peek(archive)
	h.wantHidden(rows...)
	h.wantOfAll(archive, 4, "a")
	h.updateTopic(keepsUnmatched(""), "unmatchedTo")
	h.publishToAll(4, "c")
	h.sweepPartitions(below)
	h.wantOfAll(archive, 0)
}

// A server that went back to before unmatchedTo was set: what its partition gets is kept all the same.
func testPART_8_PartitionThatForgotUnmatchedTo(t *testing.T, h *fixture) {
	below := h.createPickyNews(2)
	h.publishToAll(2, "a")
	path := h.Store.(*partitioned.Store).Path(news, 1)
	old, err := below.GetEntity(t.Context(), semantics.TopicKind, path)
	h.ok(err)
	h.ok(below.DeleteEntity(t.Context(), semantics.TopicKind, path))
	old.Options.UnmatchedTo = ""
	h.ok(third(below.CreateEntity(t.Context(), semantics.TopicKind, path, old.Options)))
	h.publishToAll(2, "b")
	h.sweepPartitions(below)
	h.wantOfAll(archive, 1, "a", "b", "b")
}

// Each subscription gets what is sent to the topic again by its rules, as what a client sends.
func testPART_8_ResubmittedToTheTopic(t *testing.T, h *fixture) {
	h.spreadNews(4)
	ids := h.deadLetterNews(12)
	results, more, err := h.peer().Resubmit(t.Context(), deadEU, broker.ResubmitOptions{Target: news, TargetIsTopic: true})
	h.ok(err)
	h.same(more, false)
	h.took(results)
	h.same(h.runtimeOf(eu).DeadLetter, int64(0))
	h.wantHidden(h.peek(eu)...)
	h.wantOfAll(eu, 1, ids...)
	h.wantOfAll(us, 2, ids...)
}

func testPART_8_ResubmissionDiesAfterAnyStep(t *testing.T, h *fixture) {
	below := h.spreadNews(3)
	h.create(partitions(2))
	options := broker.ResubmitOptions{Target: news, TargetIsTopic: true}
	h.untilItLives(6, func(steps int, after bool) bool {
		want := h.deadLetterKeyed(15)
		mortal := h.newBroker(partitioned.New(&dyingBelow{Below: below, left: steps, after: after}))
		results, more, err := mortal.Resubmit(t.Context(), deadOrders, options)
		h.took(results)
		// the letters of a transfer that is under way are not seen until some call finishes it
		h.ok(third(h.peer().Resubmit(t.Context(), deadOrders, options)))
		h.same(h.counts(), semantics.Runtime{})
		for _, source := range []semantics.Source{eu, us} {
			h.wantCountsByKey(source, want)
			h.complete(source, h.receive(source, 100)...)
		}
		return err != nil || more
	})
}
