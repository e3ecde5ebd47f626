package memstore_test

import (
	"slices"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/memstore"
	"github.com/sidebus/sidebus/semantics/storetest"
)

// sessionQueue makes the queue q, with sessions, in a Store whose bounds are low.
func sessionQueue(t *testing.T, clock func() time.Time) *memstore.Store {
	t.Helper()
	store := memstore.New(memstore.WithClock(clock), memstore.WithMaxIdleSessions(2), memstore.WithMaxSessionStates(2))
	options := semantics.DefaultOptions()
	options.RequiresSession = true
	if _, _, err := store.CreateEntity(t.Context(), semantics.QueueKind, "q", options); err != nil {
		t.Fatal(err)
	}
	return store
}

// sendAndDelete sends a message to each of the sessions and makes all of them idle at one instant. It gives the numbers
// that the messages had in their sessions.
func sendAndDelete(t *testing.T, store *memstore.Store, ids ...string) []int64 {
	t.Helper()
	source := semantics.Source{Path: "q"}
	var messages []*semantics.Message
	for _, id := range ids {
		messages = append(messages, &semantics.Message{SessionID: id})
	}
	if _, err := store.Send(t.Context(), "q", messages); err != nil {
		t.Fatal(err)
	}
	rows, err := store.Peek(t.Context(), source, 0, 100, semantics.ShowAll)
	if err != nil {
		t.Fatal(err)
	}
	var numbers, inSession []int64
	for _, row := range rows {
		numbers, inSession = append(numbers, row.SequenceNumber), append(inSession, row.SessionSequence)
	}
	if _, err := store.DeleteByNumber(t.Context(), source, numbers); err != nil {
		t.Fatal(err)
	}
	return inSession
}

// Those idle longest are forgotten first, of one instant the lowest ids.
func TestMSG_19_IdleSessionsAreForgotten(t *testing.T) {
	t.Parallel()
	clock := storetest.NewClock()
	store := sessionQueue(t, clock.Now)
	for i, step := range []struct {
		ids  []string
		want []int64
	}{
		{[]string{"a", "b"}, []int64{1, 1}},         // remembers a, b
		{[]string{"b", "a"}, []int64{2, 2}},         // a, b
		{[]string{"a"}, []int64{3}},                 // b, a
		{[]string{"c"}, []int64{1}},                 // a, c: b was idle longer
		{[]string{"b"}, []int64{1}},                 // c, b
		{[]string{"f", "d", "e"}, []int64{1, 1, 1}}, // e, f
		{[]string{"c", "f", "e", "d"}, []int64{1, 2, 2, 1}},
	} {
		clock.Advance(time.Millisecond)
		if got := sendAndDelete(t, store, step.ids...); !slices.Equal(got, step.want) {
			t.Errorf("step %d: messages to %v have the numbers %v in their sessions, want %v", i, step.ids, got, step.want)
		}
	}
}

func TestQUOTA_8_SessionStates(t *testing.T) {
	t.Parallel()
	clock := storetest.NewClock()
	store := sessionQueue(t, clock.Now)
	set := func(id string, state []byte) semantics.Code {
		session, err := store.AcceptSession(t.Context(), "q", id)
		if err != nil {
			t.Fatal(err)
		}
		source := semantics.Source{Path: "q", SessionLock: session.Lock}
		_, failed := store.SetSessionState(t.Context(), source, state, nil)
		if err := store.CloseSession(t.Context(), source); err != nil {
			t.Fatal(err)
		}
		return semantics.CodeOf(failed)
	}
	for i, step := range []struct {
		id    string
		state []byte
		want  semantics.Code
	}{
		{"a", []byte("1"), ""},
		{"b", []byte{}, ""}, // empty is a state too
		{"c", []byte("1"), semantics.QuotaExceeded},
		{"c", nil, ""},
		{"b", []byte("2"), ""}, // not one more
		{"a", nil, ""},
		{"c", []byte("1"), ""},
		{"a", []byte("1"), semantics.QuotaExceeded},
	} {
		if got := set(step.id, step.state); got != step.want {
			t.Errorf("step %d: setting the state of %s to %q gives %q, want %q", i, step.id, step.state, got, step.want)
		}
	}
}
