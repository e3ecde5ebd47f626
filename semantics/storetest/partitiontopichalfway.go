package storetest

import (
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/partitioned"
)

var partitionTopicHalfwayTests = []ruleTest{
	testPART_8_CreationThatEndsHalfway,
	testPART_8_SubscriptionThatIsCreatedHalfway,
	testPART_8_SubscriptionThatIsDeletedHalfway,
	testPART_8_UpdateThatEndsHalfway,
	testPART_8_RuleThatIsCreatedHalfway,
	testPART_8_RuleThatIsDeletedHalfway,
	testPART_8_RuleThatIsReplacedHalfway,
	testPART_8_DeletionThatEndsHalfway,
}

// endsHalfway runs a change through a sidecar whose way to the store breaks after 0, 1, 2, ... changes there, until one
// comes to its end. Before each, prepare makes what is to be changed; behind each, check looks what is there, done
// being whether the change was made as far as clients may see.
func (h *fixture) endsHalfway(
	below partitioned.Below, prepare func(), change func(*broker.Broker) error, check func(steps int64, whole bool),
) {
	h.t.Helper()
	for steps := int64(0); ; steps++ {
		prepare()
		f := &failing{Below: below}
		f.left.Store(steps)
		killed := partitioned.New(f)
		_, _ = killed.Routes(h.t.Context(), news) // so that it knows the topic, if there is one
		err := change(h.newBroker(killed))
		if err != nil && !semantics.IsOutcomeUnknown(err) {
			h.t.Fatalf("after %d steps: got %v, want an unknown outcome", steps, err)
		}
		check(steps, err == nil)
		if err == nil {
			if steps < 3 {
				h.t.Fatalf("only %d steps were broken off", steps)
			}
			return
		}
	}
}

func testPART_8_CreationThatEndsHalfway(t *testing.T, h *fixture) {
	h.overPartitions()
	below := h.below()
	create := func(b *broker.Broker) error {
		_, err := b.EnsureEntity(t.Context(), semantics.TopicKind, news, semantics.Options{Partitions: 2}, []string{"partitions"})
		return err
	}
	h.endsHalfway(below, func() {}, create, func(steps int64, _ bool) {
		if steps == 0 || steps%2 == 1 { // its repeat completes it, or the next look
			h.ok(create(h.broker))
		}
		h.createSubscription(eu)
		h.publishToAll(2, "a")
		h.wantOfAll(eu, 2, "a")
		h.deleteTopic()
	})
}

func testPART_8_SubscriptionThatIsCreatedHalfway(t *testing.T, h *fixture) {
	below := h.spreadNews(3)
	asia := subscription("asia")
	create := func(b *broker.Broker) error {
		_, err := b.EnsureEntity(t.Context(), semantics.SubscriptionKind, asia.Path, semantics.Options{}, nil)
		return err
	}
	for _, repeats := range []bool{true, false} {
		h.endsHalfway(below, func() {}, create, func(steps int64, whole bool) {
			sender := h.peer() // that reads the subscriptions now; others may have old ones until all partitions follow
			if repeats {
				h.ok(create(h.peer()))
				sender = h.broker
			}
			h.publishToAllBy(sender, 3, "a")
			h.wantOfAll(eu, 3, "a")
			if whole || repeats || steps > 0 { // from the first step on it is there
				h.wantOfAll(asia, 3, "a")
				h.deleteSubscription(asia)
			} else {
				h.wantCode(h.get(semantics.SubscriptionKind, asia.Path), semantics.EntityNotFound)
			}
		})
	}
}

func testPART_8_SubscriptionThatIsDeletedHalfway(t *testing.T, h *fixture) {
	below := h.spreadNews(3)
	asia := subscription("asia")
	prepare := func() {
		_, err := h.broker.EnsureEntity(t.Context(), semantics.SubscriptionKind, asia.Path, semantics.Options{}, nil)
		h.ok(err)
		h.publishToAll(3, "old")
	}
	remove := func(b *broker.Broker) error {
		return b.DeleteEntity(t.Context(), semantics.SubscriptionKind, asia.Path)
	}
	h.endsHalfway(below, prepare, remove, func(steps int64, whole bool) {
		other := h.peer()
		if !whole && steps == 0 {
			h.ok(remove(other))
		} else { // it is gone for others; the repeat deletes the rest
			_, err := other.Peek(t.Context(), asia, 0, 1, semantics.ShowAll)
			h.wantCode(err, semantics.EntityNotFound)
			h.wantCode(remove(other), semantics.EntityNotFound)
		}
		for p := range 3 {
			roster, err := below.Roster(t.Context(), h.Store.(*partitioned.Store).Path(news, p))
			h.ok(err)
			h.same(len(roster.Subscriptions), 2)
		}
		h.publishToAll(3, "new")
		h.createSubscription(asia)
		h.wantOfAll(asia, 0)
		h.wantOfAll(eu, 3, "old", "new")
	})
}

func testPART_8_UpdateThatEndsHalfway(t *testing.T, h *fixture) {
	below := h.spreadNews(3)
	d := 10 * time.Second
	prepare := func() { d += time.Second }
	update := func(b *broker.Broker) error {
		_, err := b.UpdateEntity(t.Context(), semantics.SubscriptionKind, eu.Path, semantics.Options{LockDuration: d}, []string{"lockDuration", "deadLetteringOnFilterEvaluationExceptions"})
		return err
	}
	h.endsHalfway(below, prepare, update, func(int64, bool) {
		h.ok(update(h.peer()))
		h.same(h.entityOf(eu).Options.LockDuration, d)
		h.publishToAll(3, "a")
		for _, m := range h.receive(eu, 3) {
			h.same(m.LockedUntil, h.Now().Add(d))
			h.complete(eu, m)
		}
	})
	ofTopic := func(b *broker.Broker) error {
		_, err := b.UpdateEntity(t.Context(), semantics.TopicKind, news, semantics.Options{Status: semantics.StatusDisabled}, []string{"status"})
		return err
	}
	h.endsHalfway(below, func() { h.updateTopic(hasStatus(semantics.StatusActive), "status") }, ofTopic, func(int64, bool) {
		h.ok(ofTopic(h.peer()))
		for range 3 {
			h.wantCode(second(h.broker.Send(t.Context(), semantics.ToTopic(news), []*semantics.Message{text("a")})), semantics.EntityDisabled)
		}
	})
}

func testPART_8_RuleThatIsCreatedHalfway(t *testing.T, h *fixture) {
	below := h.spreadNews(3)
	create := func(b *broker.Broker) error {
		_, _, err := b.CreateRule(t.Context(), eu.Path, doing(always("more"), "SET x = 1"))
		return err
	}
	for _, repeats := range []bool{true, false} {
		h.endsHalfway(below, func() {}, create, func(steps int64, whole bool) {
			isThere, sender := steps > 0 || whole, h.peer() // as with subscriptions
			if repeats {
				sender = h.broker
				err := create(h.peer())
				if isThere {
					h.wantCode(err, semantics.RuleAlreadyExists)
				} else {
					h.ok(err)
				}
			}
			h.publishToAllBy(sender, 3, "a")
			if isThere || repeats {
				h.wantOfAll(eu, 6, "a") // by both rules, in every partition
				h.deleteRule(eu, "more")
			} else {
				h.wantOfAll(eu, 3, "a")
			}
			h.publishToAll(3, "b")
			h.wantOfAll(eu, 3, "b")
		})
	}
}

func testPART_8_RuleThatIsDeletedHalfway(t *testing.T, h *fixture) {
	below := h.spreadNews(3)
	prepare := func() {
		if _, err := h.broker.GetRule(t.Context(), eu.Path, "more"); err != nil {
			h.createRule(eu, doing(always("more"), "SET x = 1"))
		}
	}
	remove := func(b *broker.Broker) error { return b.DeleteRule(t.Context(), eu.Path, "more") }
	h.endsHalfway(below, prepare, remove, func(steps int64, whole bool) {
		isGone := steps > 0 || whole
		if isGone {
			h.wantCode(remove(h.peer()), semantics.RuleNotFound) // and all partitions follow
		}
		h.publishToAll(3, "a")
		if isGone {
			h.wantOfAll(eu, 3, "a")
		} else {
			h.wantOfAll(eu, 6, "a")
		}
	})
}

func testPART_8_RuleThatIsReplacedHalfway(t *testing.T, h *fixture) {
	below := h.spreadNews(3)
	prepare := func() {
		if _, err := h.broker.GetRule(t.Context(), eu.Path, "more"); err != nil {
			h.createRule(eu, doing(always("more"), "SET x = 1"))
		}
		h.ok(h.replaceRule(eu, doing(always("more"), "SET x = 1")))
	}
	replace := func(b *broker.Broker) error {
		_, _, err := b.ReplaceRule(t.Context(), eu.Path, never("more"))
		return err
	}
	h.endsHalfway(below, prepare, replace, func(steps int64, whole bool) {
		isReplaced := steps > 0 || whole
		if isReplaced {
			h.ok(replace(h.peer())) // and all partitions follow
		}
		h.publishToAll(3, "a")
		if isReplaced {
			h.wantOfAll(eu, 3, "a")
		} else {
			h.wantOfAll(eu, 6, "a")
		}
	})
}

func testPART_8_DeletionThatEndsHalfway(t *testing.T, h *fixture) {
	h.overPartitions()
	below := h.below()
	prepare := func() {
		h.createNews(partitions(3))
		h.publishToAll(3, "old")
	}
	remove := func(b *broker.Broker) error { return b.DeleteEntity(t.Context(), semantics.TopicKind, news) }
	h.endsHalfway(below, prepare, remove, func(steps int64, whole bool) {
		other := h.peer()
		if !whole && steps == 0 {
			h.ok(remove(other))
		}
		_, err := other.Peek(t.Context(), eu, 0, 1, semantics.ShowAll)
		h.wantCode(err, semantics.EntityNotFound)
		h.wantCode(remove(other), semantics.EntityNotFound)
		h.createNews(partitions(3))
		h.wantOfAll(eu, 0)
		h.publishToAll(3, "new")
		h.wantOfAll(eu, 3, "new")
		h.deleteTopic()
	})
}
