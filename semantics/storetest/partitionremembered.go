package storetest

import (
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// What another sidecar remembers of an entity that was deleted and created again otherwise: it refuses nothing that the
// present one takes.
var partitionRememberedTests = []ruleTest{
	testPART_1_SendsToWhatWasRecreated,
	testPART_1_PublicationsToWhatWasRecreated,
	testPART_1_SubscriptionsOfWhatWasRecreated,
	testPART_1_NumbersOfWhatWasRecreated,
	testPART_1_LettersOfWhatWasRecreated,
	testTX_8_KeysOfWhatWasRecreated,
	testTX_8_ATopicThatWasRecreated,
	testTX_8_ATopicThatWasRecreatedWithMorePartitions,
	testTX_8_ASidecarThatKnowsNoTopic,
}

// remembering returns another sidecar, which has used orders.
func (h *fixture) remembering(use func(peer *broker.Broker)) *broker.Broker {
	h.t.Helper()
	peer := h.peer()
	use(peer)
	return peer
}

func (h *fixture) sendsOne(peer *broker.Broker) {
	h.t.Helper()
	_, err := peer.Send(h.t.Context(), semantics.ToQueue(orders.Path), []*semantics.Message{keyed("first", "k")})
	h.ok(err)
}

func (h *fixture) deletes(kind semantics.Kind, path string) {
	h.t.Helper()
	h.ok(h.broker.DeleteEntity(h.t.Context(), kind, path))
}

func testPART_1_SendsToWhatWasRecreated(t *testing.T, h *fixture) {
	h.spread(3)
	peers := []*broker.Broker{h.remembering(h.sendsOne), h.remembering(h.sendsOne), h.remembering(h.sendsOne)}
	h.deletes(semantics.QueueKind, orders.Path)
	h.createNamed(orders.Path)
	two := func(id string) []*semantics.Message {
		return []*semantics.Message{keyed(id+"1", "k"), keyed(id+"2", "other")}
	}
	_, err := peers[0].Send(t.Context(), semantics.ToQueue(orders.Path), two("a"))
	h.ok(err)
	_, failed := peers[1].SendEach(t.Context(), semantics.ToQueue(orders.Path), [][]*semantics.Message{two("b"), two("c")})
	h.same(failed, []error{nil, nil})
	_, _, err = peers[2].SendOnce(t.Context(), semantics.ToQueue(orders.Path), "r", two("d"))
	h.ok(err)
	h.wantIDs(orders, "a1", "a2", "b1", "b2", "c1", "c2", "d1", "d2")
}

func testPART_1_PublicationsToWhatWasRecreated(t *testing.T, h *fixture) {
	h.spreadNews(3, func(o *semantics.Options) { o.RequiresDuplicateDetection = true })
	peers := []*broker.Broker{h.peer(), h.peer()}
	for _, peer := range peers {
		h.publishBy(peer, text("first"))
	}
	h.deletes(semantics.TopicKind, news)
	h.spreadNews(3)
	_, err := peers[0].Send(t.Context(), semantics.ToTopic(news), []*semantics.Message{text("a"), text("b")})
	h.ok(err)
	_, _, err = peers[1].SendOnce(t.Context(), semantics.ToTopic(news), "r", []*semantics.Message{text("c"), text("d")})
	h.ok(err)
	h.wantOfAll(eu, 1, "a", "b", "c", "d")
}

func testPART_1_SubscriptionsOfWhatWasRecreated(t *testing.T, h *fixture) {
	h.spread(3)
	peer := h.remembering(h.sendsOne)
	h.deletes(semantics.QueueKind, orders.Path)
	options := semantics.DefaultOptions()
	options.Partitions = 2
	_, err := h.broker.CreateEntity(t.Context(), semantics.TopicKind, orders.Path, options, semantics.OptionNames(semantics.TopicKind))
	h.ok(err)
	_, err = peer.CreateEntity(t.Context(), semantics.SubscriptionKind, semantics.SubscriptionPath(orders.Path, "eu"), semantics.Options{}, nil)
	h.ok(err)
	_, err = h.broker.GetEntity(t.Context(), semantics.SubscriptionKind, semantics.SubscriptionPath(orders.Path, "eu"))
	h.ok(err)
}

// A sidecar that knows fewer partitions than there are now answers by those that there are.
func testPART_1_NumbersOfWhatWasRecreated(t *testing.T, h *fixture) {
	below, spread := h.spreadOver(2)
	peeks, purges := h.stale(below), h.stale(below)
	h.deletes(semantics.QueueKind, orders.Path)
	h.spread(5)
	last := h.ofPartition(4)
	number := h.send(keyed("a", last))
	got, err := peeks.Peek(t.Context(), orders, number, 10, semantics.ShowAll)
	h.ok(err)
	h.same(messageIDs(got), []string{"a"})
	h.Advance(time.Second) // a purge removes what is older
	purged, err := purges.Purge(t.Context(), orders, semantics.Purge{Show: semantics.ShowAvailable, After: number - 1, Limit: 10})
	h.ok(err)
	h.same([]any{purged.Deleted, purged.Last, purged.More}, []any{1, number, false})
	h.ok(spread.DeleteEntity(t.Context(), semantics.QueueKind, orders.Path))
	h.wantCode(second(peeks.Peek(t.Context(), orders, semantics.InPartition(1, 6), 10, semantics.ShowAll)), semantics.EntityNotFound)
	beyond := semantics.Purge{Show: semantics.ShowAvailable, After: semantics.InPartition(1, 6), Limit: 10}
	h.wantCode(second(purges.Purge(t.Context(), orders, beyond)), semantics.EntityNotFound)
}

func testPART_1_LettersOfWhatWasRecreated(t *testing.T, h *fixture) {
	below, _ := h.spreadOver(2)
	within, elsewhere := h.stale(below), h.stale(below)
	h.deletes(semantics.QueueKind, orders.Path)
	h.spread(5)
	last := h.ofPartition(4)
	h.send(keyed("a", last))
	h.deadLetterAll()
	letter := func() int64 { return h.peek(deadOrders)[0].SequenceNumber }
	moved, err := within.Resubmit(t.Context(), deadOrders, orders.Path, []semantics.Resubmission{{
		SequenceNumber: letter(), MessageID: "a", PartitionKey: last,
	}}, false)
	h.ok(err)
	h.same(moved[0].Code, semantics.Code(""))
	h.deadLetterAll()
	h.createNamed(archive.Path)
	to, err := elsewhere.Destination(t.Context(), archive.Path)
	h.ok(err)
	begun, err := elsewhere.BeginResubmission(t.Context(), deadOrders, to, []int64{letter()}, semantics.Resubmitting{})
	h.ok(err)
	h.same([]any{begun.IsNew, begun.Looked, len(begun.Messages)}, []any{true, 1, 1})
	h.ok(elsewhere.EndTransfer(t.Context(), begun.Transfer, []semantics.Fate{{Stays: true}}))
}

func testTX_8_KeysOfWhatWasRecreated(t *testing.T, h *fixture) {
	h.spread(3)
	peer := h.remembering(h.sendsOne)
	h.deletes(semantics.QueueKind, orders.Path)
	h.createNamed(orders.Path)
	_, err := peer.Transact(t.Context(), nil, []semantics.Operation{
		sends(orders.Path, keyed("a", "k")), sends(orders.Path, keyed("b", "other")),
	})
	h.ok(err)
	h.wantIDs(orders, "a", "b")
}

// completesAndPublishes returns a transaction that completes a message of eu and publishes another one.
func (h *fixture) completesAndPublishes(id string) []semantics.Operation {
	h.t.Helper()
	h.publish(keyed("of "+id, "k"))
	got := h.receiveOne(eu)
	return []semantics.Operation{
		{Verb: semantics.OperationComplete, Source: eu, Tokens: tokensOf(got)},
		{Source: semantics.Source{Path: news}, IsTopic: true, Messages: []*semantics.Message{keyed(id, "k")}},
	}
}

// A sidecar that has used only the subscription since its topic was created again knows the topic as it was.
func testTX_8_ATopicThatWasRecreated(t *testing.T, h *fixture) {
	h.spreadNews(3)
	peer := h.peer()
	h.publishBy(peer, keyed("first", "k"))
	h.deletes(semantics.TopicKind, news)
	h.spreadNews(3)
	operations := h.completesAndPublishes("a")
	_, err := peer.Peek(t.Context(), eu, 1, 1, semantics.ShowAll)
	h.ok(err)
	_, err = peer.Transact(t.Context(), nil, operations)
	h.ok(err)
	h.wantOfAll(eu, 1, "a")
}

func testTX_8_ATopicThatWasRecreatedWithMorePartitions(t *testing.T, h *fixture) {
	h.spreadNews(2)
	peers := make([]*broker.Broker, 5)
	for i := range peers {
		peers[i] = h.peer()
		h.publishBy(peers[i], keyed("first", "k"))
	}
	h.deletes(semantics.TopicKind, news)
	h.spreadNews(5)
	h.publishToAll(5, "a")
	for i, got := range h.receive(eu, 5) {
		_, err := peers[i].Transact(t.Context(), nil, []semantics.Operation{
			{Verb: semantics.OperationComplete, Source: eu, Tokens: tokensOf(got)},
			{Source: semantics.Source{Path: news}, IsTopic: true, Messages: []*semantics.Message{text("b")}},
		})
		h.ok(err)
	}
	h.wantOfAll(eu, 5, "b")
}

// A sidecar that was just started knows neither.
func testTX_8_ASidecarThatKnowsNoTopic(t *testing.T, h *fixture) {
	h.spreadNews(3)
	_, err := h.peer().Transact(t.Context(), nil, h.completesAndPublishes("a"))
	h.ok(err)
	h.wantOfAll(eu, 1, "a")
}
