package redisstore_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// As TestOrphansOfATopic, whose copies share no bodies.
func TestOrphansOfSharedBodies(t *testing.T) {
	t.Parallel()
	s := openTopics(t)
	names := []string{"eu", "us"}
	for _, name := range append(names, "gone") {
		s.subscribe(name, rich)
	}
	ctx := t.Context()
	to := func(names ...string) func(int) []string { return func(int) []string { return names } }
	s.publishShared(ofAllSizes(16), to("eu", "us", "gone"))
	s.publishShared(ofAllSizes(1), to("eu", "us"))
	batch, err := s.Receive(ctx, of("eu"), 9, semantics.RegisterNever)
	must(t, err)
	tokens := tokensOf(batch.Messages)
	must(t, second(s.Complete(ctx, of("eu"), tokens[:2])))
	must(t, second(s.Abandon(ctx, of("eu"), tokens[2:4], semantics.AbandonOptions{})))
	must(t, second(s.Defer(ctx, of("eu"), tokens[4:6], nil)))
	must(t, second(s.DeadLetter(ctx, of("eu"), tokens[6:7], semantics.DeadLetterTexts{}, nil)))
	s.publishShared([]*semantics.Message{{Body: []byte(strings.Repeat("x", 600))}}, to("eu", "us"))
	dying, dead := killedAfter(t, s.namespace, "delete_subscription", 1)
	_ = dying.DeleteEntity(dead, semantics.SubscriptionKind, of("gone").Path)
	var numbers []int64
	for n := range int64(18) {
		numbers = append(numbers, n+1)
	}
	breakAll(t, s.swept, s.clock, func(u *user) {
		ctx := u.t.Context()
		must(u.t, makeQueue(u.t, u.swept, "archive"))
		u.look(of("eu"), numbers)
		u.ok("look at all", second(u.LookOnce(ctx, u.broker, nil)))
		u.ok("forward", second(u.UpdateEntity(ctx, semantics.SubscriptionKind, of("us").Path,
			semantics.Options{ForwardTo: "archive"}, []string{"forwardTo"})))
		for range 3 {
			u.clock.Advance(3 * time.Minute)
			u.sweep()
		}
		if found, err := u.Peek(ctx, of("us"), 1, 100, semantics.ShowAll); u.ok("peek", err) && len(found) > 0 {
			u.t.Errorf("without %s: %d copies are not forwarded", u.after, len(found))
		}
		u.subscribes("gone")
		m := &semantics.Message{MessageID: "new", Body: make([]byte, 600)}
		u.ok("publish", publish(u.t, u.Store, semantics.Publication{Message: m, Copies: copiesOf(m, "eu", "us", "gone")}).Err)
		for _, name := range []string{"eu", "gone"} {
			if got := u.drain(of(name)); !slices.Contains(got, "new") {
				u.t.Errorf("without %s: what is sent does not arrive at %s: %v", u.after, name, got)
			}
		}
		u.drain(deadOf("eu"))
		u.purge(of("eu"))
		u.ok("delete", u.DeleteEntity(ctx, semantics.SubscriptionKind, of("eu").Path))
		u.ok("delete", u.DeleteEntity(ctx, semantics.TopicKind, "news"))
		if left := keysLeft(u.t, u.raw, u.namespace); len(left) > 1 {
			u.t.Errorf("without %s: %v is left", u.after, left)
		}
	})
}

func (u *user) subscribes(name string) {
	u.t.Helper()
	u.ok("subscribe", subscribe(u.t, u.Store, name))
}

// A topic that an older version made may have no mark of its own. Its deleted subscriptions release their bodies all the
// same.
func TestENT_8_TopicWithoutIncarnationReleasesBodies(t *testing.T) {
	t.Parallel()
	s := openTopics(t)
	s.fails("break", s.raw.HDel(t.Context(), s.newsKey("entity"), "incarnation").Err())
	for _, name := range []string{"a", "b"} {
		s.subscribe(name)
	}
	s.publishShared(ofAllSizes(40), func(int) []string { return []string{"a", "b"} })
	before := s.bodies()
	for _, name := range []string{"a", "b"} {
		s.fails("delete", s.DeleteEntity(t.Context(), semantics.SubscriptionKind, of(name).Path))
	}
	if n := s.bodies(); before == 0 || n != 0 {
		t.Errorf("%d of %d bodies are left", n, before)
	}
}

// What is left of a deleted subscription and cannot be released does not keep the look at all entities from the topic's
// other subscriptions.
func TestTTL_20_LookPassesWhatCannotBeReleased(t *testing.T) {
	t.Parallel()
	s := openTopics(t)
	s.subscribe("a", func(o *semantics.Options) { o.DefaultMessageTimeToLive = time.Minute })
	m := &semantics.Message{MessageID: "m"}
	s.fails("publish", s.publish(m, copiesOf(m, "a")...).Err)
	s.fails("break", s.raw.Set(t.Context(), s.newsKey("left_copies"), "by hand", 0).Err())
	s.clock.Advance(2 * time.Minute)
	failed := 0
	s.fails("look", second(s.LookOnce(t.Context(), brokerOver(s.Store), func(string, error) { failed++ })))
	if found := s.raw.XLen(t.Context(), s.newsKey("subscriptions/a:log")).Val(); found != 0 || failed != 1 {
		t.Errorf("%d messages, %d failures, want none and 1", found, failed)
	}
}
