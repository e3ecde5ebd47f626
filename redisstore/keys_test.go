package redisstore

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sidebus/sidebus/semantics"
)

// Keys are kept by others than this program: a change here is a change of the stored form.
func TestKeysOfQueue(t *testing.T) {
	t.Parallel()
	keys := keysOfQueue("prod", "Team/Orders")
	const tag = "sb:{prod/team/orders}:"
	want := []string{
		"entity", "waiting", "dead_waiting", "log", "ready", "locks", "deliveries", "expiry", "locked_expiry", "gaps",
		"dead_log", "dead_ready", "dead_locks", "dead_numbers",
	}
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

func TestKeysOfSources(t *testing.T) {
	t.Parallel()
	keys := keysOfQueue("n", "q")
	main, dead := keys.of(semantics.MainQueue), keys.of(semantics.DeadLetterQueue)
	if len(main) != len(dead) {
		t.Fatalf("%d and %d keys", len(main), len(dead))
	}
	all := keys.all()
	for _, key := range append(main, dead...) {
		found := false
		for _, known := range all {
			found = found || known == key
		}
		if !found {
			t.Errorf("%s is not deleted with its queue", key)
		}
	}
}

// Names that are different entities never share a key, and a namespace's own keys are no entity's.
func TestENT_3_KeysDoNotClash(t *testing.T) {
	t.Parallel()
	seen := map[string]string{keysOfNamespace("a").names: "namespace a", keysOfNamespace("a").registered: "namespace a"}
	for _, c := range []struct{ namespace, path string }{{"a", "b"}, {"a", "b/c"}, {"a.b", "c"}, {"b", "a"}, {"a", "names"}, {"a", "b/log"}} {
		for _, key := range keysOfQueue(c.namespace, c.path).all() {
			owner := c.namespace + " " + c.path
			if other, taken := seen[key]; taken {
				t.Errorf("%s belongs to %s and to %s", key, owner, other)
			}
			seen[key] = owner
		}
	}
}
