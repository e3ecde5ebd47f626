package redisstore

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Keys are kept by others than this program: a change here is a change of the stored form.
func TestKeysOfQueue(t *testing.T) {
	t.Parallel()
	keys := keysOfQueue("prod", "Team/Orders")
	const tag = "sb:{prod/team/orders}:"
	side := []string{
		"log", "ready", "locks", "waiting", "deliveries", "expiry", "gaps", "delayed", "deferred", "modified",
	}
	want := append([]string{"entity"}, side...)
	for _, part := range side {
		want = append(want, "dead_"+part)
	}
	want = append(want, "dead_numbers", "scheduled", "due", "scheduled_ids", "history", "history_times",
		"by_session", "sessions", "session_locks", "session_tokens", "session_waiting", "ready_sessions", "idle_sessions",
		"session_states", "states_due")
	var got []string
	for _, key := range keys.all() {
		part, ok := strings.CutPrefix(key, tag)
		if !ok {
			t.Errorf("%s lacks the tag %s", key, tag)
		}
		got = append(got, part)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The keys that a script declares one by one are all among those that are deleted with the queue.
func TestKeysOfScripts(t *testing.T) {
	t.Parallel()
	keys := keysOfQueue("n", "q")
	all := keys.all()
	if len(all) != 36 {
		t.Errorf("a queue has %d keys, the scripts declare 36", len(all))
	}
	for _, key := range slices.Concat(keys.all(), keys.main.all(), keys.dead.all(), keys.send(), keys.target(), keys.transfers().all(), []string{keys.arrivals}) {
		if !slices.Contains(keys.deleted(), key) {
			t.Errorf("%s is not deleted with its queue", key)
		}
	}
}

// All keys that a script on a topic or a subscription may get lie in one slot, that of the topic.
func TestKeysOfATopicShareATag(t *testing.T) {
	t.Parallel()
	const tag = "sb:{n/team/news}:"
	topic, sub := keysOfTopic("n", "Team/News"), keysOfQueue("n", "team/news/subscriptions/EU")
	all := slices.Concat(topic.own(), topic.publish(), topic.activate(), topic.arrive(), []string{topic.subscriptions},
		sub.owned(), sub.deleted(), sub.keepers(), sub.transfers().owned(), sub.send(), sub.target(),
		sub.copies(levelPlain), sub.copies(levelSessions), sub.copies(levelWhole))
	for _, key := range all {
		if !strings.HasPrefix(key, tag) {
			t.Errorf("%s lacks the tag %s", key, tag)
		}
	}
	if sub.owner != topic.entity || sub.entity != tag+"subscriptions/eu:entity" {
		t.Errorf("the subscription is %s of %s", sub.entity, sub.owner)
	}
	if queue := keysOfQueue("n", "q"); queue.owner != queue.entity {
		t.Errorf("a queue counts as %s", queue.owner)
	}
	for level, want := range map[keyLevel]int{levelPlain: 4, levelSessions: 11, levelWhole: 36} {
		if got := len(sub.copies(level)); got != want {
			t.Errorf("level %c has %d keys, lua/lib/open_copies.lua has %d", level, got, want)
		}
	}
}

// Whatever a topic has of its own goes with it, but for the list that says that it is half deleted.
func TestKeysOfATopicAreDeleted(t *testing.T) {
	t.Parallel()
	keys := keysOfTopic("n", "news")
	all := append(keys.own(), keys.subscriptions)
	for _, key := range slices.Concat(keys.publish(), keys.activate(), keys.arrive(), []string{keys.rules}) {
		if !slices.Contains(all, key) {
			t.Errorf("%s is not deleted with its topic", key)
		}
	}
	if slices.Contains(keys.own(), keys.subscriptions) {
		t.Error("the mark is deleted first")
	}
}

// Names that are different entities never share a key, and a namespace's own keys are no entity's.
func TestENT_3_KeysDoNotClash(t *testing.T) {
	t.Parallel()
	seen := map[string]string{keysOfNamespace("a").names: "namespace a", keysOfNamespace("a").registered: "namespace a"}
	entities := []struct{ namespace, path string }{
		{"a", "b"},
		{"a", "b/c"},
		{"a.b", "c"},
		{"b", "a"},
		{"a", "names"},
		{"a", "b/log"},
		{"a", "b/Subscriptions/c"},
		{"a", "b/Subscriptions/log"},
		{"a", "b/c/Subscriptions/d"},
		{"a", "b.c/Subscriptions/d"},
		{"a", "b/Subscriptions/transfer"},
		{"a", "b/transfer"},
	}
	for _, c := range entities {
		keys := keysOfQueue(c.namespace, c.path)
		for _, key := range append(keys.both(), keys.arrivals) {
			owner := c.namespace + " " + c.path
			if other, taken := seen[key]; taken {
				t.Errorf("%s belongs to %s and to %s", key, owner, other)
			}
			seen[key] = owner
		}
	}
}
