package redisstore_test

import (
	"testing"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/semantics"
)

// A partition is compared in the present history of its server only, and once for all sidecars (DUR-4).
func historyOfAPartition(t *testing.T, s *redisstore.Store) {
	t.Helper()
	ctx := t.Context()
	if _, _, err := s.CreateEntity(ctx, semantics.QueueKind, "orders", semantics.DefaultOptions()); err != nil {
		t.Fatal(err)
	}
	want := func(step string, wantCompared bool) string {
		t.Helper()
		history, isCompared, err := s.History(ctx, "orders")
		if err != nil || history == "" || isCompared != wantCompared {
			t.Errorf("%s: the history is %q, compared %t, %v", step, history, isCompared, err)
		}
		return history
	}
	note := func(history string, wantPresent bool) {
		t.Helper()
		if isPresent, err := s.NoteCompared(ctx, "orders", history); err != nil || isPresent != wantPresent {
			t.Errorf("note %q: is present %t, %v", history, isPresent, err)
		}
	}
	history := want("new", false)
	note("another history", false)
	want("after another history", false)
	note(history, true)
	want("compared", true)
	note("another history", false)
	want("after another history again", true)

	if _, _, err := s.History(ctx, "missing"); semantics.CodeOf(err) != semantics.EntityNotFound {
		t.Errorf("the history of a missing queue: %v", err)
	}
	if _, err := s.NoteCompared(ctx, "missing", history); semantics.CodeOf(err) != semantics.EntityNotFound {
		t.Errorf("note one of a missing queue: %v", err)
	}
}
