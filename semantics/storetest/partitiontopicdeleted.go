package storetest

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/partitioned"
)

// What other sidecars do while a topic with partitions is deleted, and what they know of it then.
var partitionTopicDeletedTests = []ruleTest{
	testPART_8_ADeletionSparesWhatWasRecreated,
	testPART_8_NothingIsTakenAfterADeletion,
	testPART_8_ADeletionThatRedisForgot,
	testPART_8_AnotherDeletionCompletesTheFirst,
	testPART_8_ARecreationCompletesTheDeletion,
	testPART_8_AQueueCompletesTheDeletion,
	testPART_8_ADeletionSparesARecreatedSubscription,
}

// staleNews returns another sidecar, which knows the partitions of news and eu, and its routes.
func (h *fixture) staleNews(below partitioned.Below) *broker.Broker {
	h.t.Helper()
	stale := h.newBroker(partitioned.New(below))
	h.publishBy(stale, text("known"))
	for _, source := range []semantics.Source{eu, us} {
		got, err := stale.Receive(h.t.Context(), source, broker.ReceiveOptions{MaxMessages: 1})
		h.ok(err)
		h.same(messageIDs(got.Messages), []string{"known"})
		codes, err := stale.Complete(h.t.Context(), source, tokensOf(got.Messages...))
		h.settled(codes, err)
	}
	return stale
}

// takesNothing checks that a sidecar neither publishes to a partition of news nor receives from one.
func (h *fixture) takesNothing(stale *broker.Broker) {
	h.t.Helper()
	for i := range 20 {
		_, err := stale.Send(h.t.Context(), semantics.ToTopic(news), []*semantics.Message{keyed("late", fmt.Sprint(i))})
		h.wantCode(err, semantics.EntityNotFound)
	}
	_, err := stale.Receive(h.t.Context(), eu, broker.ReceiveOptions{MaxMessages: 1})
	h.wantCode(err, semantics.EntityNotFound)
}

// hiddenOfNews returns the paths of what the store below has of news: the definition first, then n partitions.
func (h *fixture) hiddenOfNews(n int) []string {
	h.t.Helper()
	spread := h.Store.(*partitioned.Store)
	_, err := spread.Routes(h.t.Context(), news) // so that it knows them
	h.ok(err)
	paths := []string{spread.Definition(news)}
	for p := range n {
		paths = append(paths, spread.Path(news, p))
	}
	return paths
}

// wantGone checks that the store below has none of these topics.
func (h *fixture) wantGone(below partitioned.Below, paths ...string) {
	h.t.Helper()
	for _, path := range paths {
		_, err := below.GetEntity(h.t.Context(), semantics.TopicKind, path)
		h.same(semantics.CodeOf(err), semantics.EntityNotFound) // its text names a path of this store
	}
}

// A deletion deletes the topic that it saw. What was created meanwhile under its name stays, whole.
func testPART_8_ADeletionSparesWhatWasRecreated(t *testing.T, h *fixture) {
	h.overPartitions()
	below := h.below()
	for _, is := range []struct{ seen, present int64 }{{3, 3}, {3, 2}, {3, 1}, {1, 3}} {
		h.createNews(partitions(is.seen))
		late := &around{Below: below}
		late.remove.set(func() {
			h.deleteTopic()
			h.createNews(partitions(is.present))
			h.publish(text("new"))
		})
		h.wantCode(partitioned.New(late).DeleteEntity(t.Context(), semantics.TopicKind, news), semantics.EntityNotFound)
		h.publishBy(h.peer(), text("other"))
		h.wantOfAll(eu, 1, "new", "other")
		h.wantOfAll(us, 1, "new", "other")
		h.deleteTopic()
	}
	h.createNews(partitions(3))
	late := &around{Below: below}
	late.remove.set(func() {
		h.deleteTopic()
		h.createNamed(news, partitions(3))
	})
	h.wantCode(partitioned.New(late).DeleteEntity(t.Context(), semantics.TopicKind, news), semantics.EntityNotFound)
	h.sendToQueue(semantics.Source{Path: news}, text("a"))
	h.wantOfAll(semantics.Source{Path: news}, 1, "a")
}

// A sidecar that was completing a creation when the topic was deleted brings neither the definition back nor a
// partition, in which another one that does not know of the deletion could store a message.
func testPART_8_NothingIsTakenAfterADeletion(t *testing.T, h *fixture) {
	h.overPartitions()
	below := h.below()
	for _, isDefinition := range []bool{true, false} {
		h.createNews(partitions(3))
		stale, paths := h.staleNews(below), h.hiddenOfNews(3)
		missing := paths[2] // partition 1
		if isDefinition {
			missing = paths[0]
		}
		h.ok(below.DeleteEntity(t.Context(), semantics.TopicKind, missing)) // as if it was never created
		completes, isTried := &around{Below: below}, atomic.Bool{}
		completes.create.set(func() { // the definition
			if isDefinition {
				h.deleteTopic()
			} else {
				completes.create.set(h.deleteTopic)
			}
		})
		completes.created.set(func() {
			isTried.Store(true)
			h.takesNothing(stale)
		})
		store := partitioned.New(completes)
		_, err := store.Routes(t.Context(), news) // misses the definition
		if !isDefinition {
			h.ok(err)
			_, err = store.Due(t.Context(), news, 1) // misses the partition
		}
		h.wantCode(err, semantics.EntityNotFound)
		h.same(isTried.Load(), !isDefinition)
		h.wantGone(below, paths...)
		h.takesNothing(stale)
	}
}

// If Redis forgets that the record is gone, and something below is, the next call completes the deletion, and the topic
// can be created.
func testPART_8_ADeletionThatRedisForgot(_ *testing.T, h *fixture) {
	h.overPartitions()
	below := h.below()
	h.createNews(partitions(3))
	for i := range 4 {
		stale, paths := h.staleNews(below), h.hiddenOfNews(3)
		h.publishToAll(3, "old")
		h.deleteHidden(below, semantics.TopicKind, paths[i])
		other := h.peer()
		for range 4 { // until a call misses what is not there
			_, _ = other.Send(h.t.Context(), semantics.ToTopic(news), []*semantics.Message{text("late")})
		}
		h.wantGone(below, append(paths, news)...)
		h.takesNothing(stale)
		h.createNews(partitions(3))
		h.publishToAll(3, "new")
		h.wantOfAll(eu, 3, "new")
		h.wantOfAll(us, 3, "new")
	}
}

// After a deletion that found no topic, nothing of an earlier one is left.
func testPART_8_AnotherDeletionCompletesTheFirst(t *testing.T, h *fixture) {
	h.overPartitions()
	below := h.below()
	for calls := range int64(4) {
		h.createNews(partitions(3))
		stale, paths := h.staleNews(below), h.hiddenOfNews(3)
		h.publishToAll(3, "old")
		h.halfway(below, semantics.TopicKind, news, calls+1)
		h.wantCode(h.Store.DeleteEntity(t.Context(), semantics.TopicKind, news), semantics.EntityNotFound)
		h.takesNothing(stale)
		h.wantGone(below, paths...)
	}
}

// What a sidecar sends that knows the partitions of the deleted topic arrives in the one that was created, and so does
// what it receives come from there.
func testPART_8_ARecreationCompletesTheDeletion(t *testing.T, h *fixture) {
	h.overPartitions()
	below := h.below()
	for _, n := range []int64{3, 2, 1} {
		h.createNews(partitions(3))
		stale := h.staleNews(below)
		h.publishToAll(3, "old")
		h.halfway(below, semantics.TopicKind, news, 1)
		h.createNews(partitions(n))
		for i := range 20 {
			h.publishBy(stale, keyed("new", fmt.Sprint(i)))
		}
		h.wantOfAll(eu, 20, "new")
		var got []string
		for len(got) < 20 {
			some, err := stale.Receive(t.Context(), us, broker.ReceiveOptions{MaxMessages: 20})
			h.ok(err)
			if len(some.Messages) == 0 {
				break
			}
			got = append(got, messageIDs(some.Messages)...)
		}
		h.same(strings.Join(got, ""), strings.Join(slices.Repeat([]string{"new"}, 20), ""))
		h.deleteTopic()
	}
}

// What is created under the name of the topic may be a queue.
func testPART_8_AQueueCompletesTheDeletion(_ *testing.T, h *fixture) {
	h.overPartitions()
	below := h.below()
	for _, n := range []int64{3, 1} {
		h.createNews(partitions(3))
		stale, paths := h.staleNews(below), h.hiddenOfNews(3)
		h.publishToAll(3, "old")
		h.halfway(below, semantics.TopicKind, news, 1)
		h.createNamed(news, partitions(n))
		h.takesNothing(stale)
		h.wantGone(below, paths...)
		h.deleteQueue(semantics.Source{Path: news})
	}
}

// A deletion deletes the subscription that it saw. One that was created meanwhile stays, in all partitions, and another
// deletion removes it from all of them.
func testPART_8_ADeletionSparesARecreatedSubscription(t *testing.T, h *fixture) {
	below := h.spreadNews(3)
	late := &around{Below: below}
	store := partitioned.New(late)
	h.ok(second(store.Routes(t.Context(), news))) // so that it knows the topic
	late.remove.set(func() {
		h.ok(h.broker.DeleteEntity(t.Context(), semantics.SubscriptionKind, eu.Path))
		h.createSubscription(eu)
		h.publishToAll(3, "new")
	})
	h.wantCode(store.DeleteEntity(t.Context(), semantics.SubscriptionKind, eu.Path), semantics.EntityNotFound)
	h.same(len(h.receive(eu, 3)), 3)
	h.ok(h.broker.DeleteEntity(t.Context(), semantics.SubscriptionKind, eu.Path))
	for _, partition := range h.hiddenOfNews(3)[1:] {
		left, _, err := below.ListEntities(t.Context(), semantics.SubscriptionKind, partition, "", 10)
		h.ok(err)
		for _, one := range left {
			h.same(semantics.WholePath(one.OwnName()), "us")
		}
	}
}
