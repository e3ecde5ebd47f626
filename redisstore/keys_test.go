package redisstore

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sidebus/sidebus/lua"
)

// Keys are kept by others than this program: a change here is a change of the stored form.
func TestKeysOfQueue(t *testing.T) {
	t.Parallel()
	keys := keysOfEntity("prod", "Team/Orders")
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
		"session_states", "states_due", "runs", "run_locks", "chunks", "bodies", "body_uses")
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

// declaredKeys are the names of the keys that scripts declare, one by one or as groups, with a script for each.
func declaredKeys(t *testing.T) map[string]string {
	t.Helper()
	scripts, err := lua.Scripts()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	for script, s := range scripts {
		for _, p := range s.Keys {
			if !p.Repeats {
				names[p.Name] = script
			}
		}
		for _, group := range s.Groups {
			for _, name := range group {
				names[name] = script
			}
		}
	}
	return names
}

// The store has every key that a header names, and has it once.
func TestKeysOfScripts(t *testing.T) {
	t.Parallel()
	queue := keysOfEntity("n", "q")
	sub := keysOfEntity("n", "t/subscriptions/s")
	known := []keyNames{
		keysOfNamespace("n"), queue, sub,
		resubmitKeys{source: queue, target: keysOfEntity("n", "p")},
		notedDeletion{"n", 1},
	}
	declared, seen := declaredKeys(t), map[string]string{}
	for name, script := range declared {
		key := ""
		for _, keys := range known {
			if key == "" {
				prefix, rest := keys.parts(name)
				key = prefix + rest
			}
		}
		if key == "" {
			t.Errorf("%s declares a key %s, which the store does not know", script, name)
		}
		if other, taken := seen[key]; taken && !strings.HasSuffix(key, "entity") { // which has several names
			t.Errorf("%s and %s are the same key %s", name, other, key)
		}
		seen[key] = name
	}
	for name := range keyPlaces {
		if _, used := declared[name]; !used {
			t.Errorf("no script declares the key %s", name)
		}
	}
	if queue.key("nothing") != "" || queue.key("transfers_nothing") != "" || keysOfNamespace("n").key("entity") != "" {
		t.Error("a key is known that there is not")
	}
}

// A call without a key that the script declares is refused before Redis gets it.
func TestMissingKeyIsRefused(t *testing.T) {
	t.Parallel()
	scripts, err := prepared()
	if err != nil {
		t.Fatal(err)
	}
	if keys, err := scripts["receive"].list(keysOfNamespace("n")); err == nil {
		t.Errorf("receive takes %q", keys)
	}
	if keys, err := scripts["complete"].list(keysOfEntity("n", "q").of(2)); err != nil || !slices.Contains(keys, "sb:{n/q}:entity") {
		t.Errorf("complete gets %q: %v", keys, err)
	}
}

// outlive are the keys that stay when an entity is deleted, or that are not its own.
var outlive = []string{
	"topic", "owner", "parent", "unmatched", "subscriptions", "rules", "barred", "entity", "bodies", "body_uses",
	"left_copies", "left_chunks",
}

// The keys that scripts declare one by one are all among those that are deleted with the queue.
func TestKeysAreDeletedWithTheirQueue(t *testing.T) {
	t.Parallel()
	keys := keysOfEntity("n", "q")
	for name := range declaredKeys(t) {
		key := keys.key(name)
		if key != "" && !slices.Contains(outlive, name) && !slices.Contains(keys.deleted(), key) {
			t.Errorf("%s is not deleted with its queue", key)
		}
	}
}

// All keys that a script on a topic or a subscription may get lie in one slot, that of the topic.
func TestKeysOfATopicShareATag(t *testing.T) {
	t.Parallel()
	const tag = "sb:{n/team/news}:"
	topic, sub := keysOfEntity("n", "Team/News"), keysOfEntity("n", "team/news/subscriptions/EU")
	for name := range declaredKeys(t) {
		for _, key := range []string{topic.key(name), sub.key(name), sub.transfers().key(name)} {
			if key != "" && !strings.HasPrefix(key, tag) {
				t.Errorf("%s lacks the tag %s", key, tag)
			}
		}
	}
	if sub.key("owner") != topic.key("entity") || sub.key("rules") != tag+"rules" || sub.key("entity") != tag+"subscriptions/eu:entity" {
		t.Errorf("the subscription is %s of %s", sub.key("entity"), sub.key("owner"))
	}
	if got, want := topic.key("unmatched"), keysOfEntity("n", "team/news/subscriptions/$unmatched").key("entity"); got != want {
		t.Errorf("what no subscription gets is at %s, want %s", got, want)
	}
	if queue := keysOfEntity("n", "q"); queue.key("owner") != queue.key("entity") {
		t.Errorf("a queue counts as %s", queue.key("owner"))
	}
	if transfers := sub.transfers(); transfers.key("parent") != sub.key("entity") || transfers.key("owner") != transfers.key("entity") {
		t.Errorf("transfer dead letters are of %s and count as %s", transfers.key("parent"), transfers.key("owner"))
	}
	for level, want := range map[keyLevel]int{levelPlain: 7, levelSessions: 11, levelWhole: 41} {
		if got := len(sub.copies(level)); got != want {
			t.Errorf("level %c has %d keys, lua/lib/topic/open_copies.lua has %d", level, got, want)
		}
	}
}

// Whatever a topic has of its own goes with it, but for the list that says that it is half deleted.
func TestKeysOfATopicAreDeleted(t *testing.T) {
	t.Parallel()
	scripts, err := prepared()
	if err != nil {
		t.Fatal(err)
	}
	keys := keysOfEntity("n", "news")
	all, err := scripts["delete_topic"].list(with(keys, keys.deletedTopic()...))
	if err != nil {
		t.Fatal(err)
	}
	for _, script := range []string{"publish", "activate", "arrive_in_topic", "create_rule", "due"} {
		list, err := scripts[script].list(keys)
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range append(list, keys.group("answers")...) {
			if !slices.Contains(all, key) {
				t.Errorf("%s is not deleted with its topic", key)
			}
		}
	}
	if slices.Contains(all, keys.key("subscriptions")) {
		t.Error("the mark is deleted first")
	}
}

// Names that are different entities never share a key, and a namespace's own keys are no entity's.
func TestENT_3_KeysDoNotClash(t *testing.T) {
	t.Parallel()
	seen := map[string]string{keysOfNamespace("a").key("names"): "namespace a", keysOfNamespace("a").key("registered"): "namespace a"}
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
		keys := keysOfEntity(c.namespace, c.path)
		for _, key := range keys.deleted() {
			owner := c.namespace + " " + c.path
			if other, taken := seen[key]; taken {
				t.Errorf("%s belongs to %s and to %s", key, owner, other)
			}
			seen[key] = owner
		}
	}
}
