package redisstore_test

import (
	"testing"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
)

// A full Redis takes no state and no message, as something that may pass; sessions go on and can be drained to the last
// message.
func TestERR_7_FullRedisRefusesStatesAndDrainsSessions(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	defer server.Stop()
	s := redistest.Open(t, redisstore.Options{URL: server.URL})
	ctx := t.Context()
	options := semantics.DefaultOptions()
	options.RequiresSession = true
	if _, _, err := s.CreateEntity(ctx, semantics.QueueKind, "orders", options); err != nil {
		t.Fatal(err)
	}
	for _, session := range []string{"a", "a", "a", "a", "a", "b"} {
		if _, err := s.Send(ctx, "orders", []*semantics.Message{part(session, "m")}); err != nil {
			t.Fatal(err)
		}
	}
	var a semantics.Source
	accept := func(id string) {
		t.Helper()
		session, err := s.AcceptSession(ctx, "orders", id)
		if err != nil {
			t.Fatal(err)
		}
		a.Path, a.SessionLock = "orders", session.Lock
	}
	accept("a")
	version, err := s.SetSessionState(ctx, a, []byte("before"), nil)
	if err != nil {
		t.Fatal(err)
	}
	command(t, server.URL, "CONFIG", "SET", "maxmemory", "1")

	_, err = s.SetSessionState(ctx, a, []byte("after"), nil)
	e := semantics.AsError(err)
	if err == nil || e.Code != semantics.StoreUnavailable || e.Details[semantics.DetailCause] != "redis_oom" || e.Details[semantics.DetailOutcome] != "" {
		t.Fatalf("set state in a full Redis: %v %v", err, e)
	}
	if _, err := s.Send(ctx, "orders", []*semantics.Message{part("a", "m")}); semantics.CodeOf(err) != semantics.StoreUnavailable {
		t.Errorf("send to a full Redis: %v", err)
	}
	state, err := s.SessionState(ctx, a)
	if err != nil || string(state.Data) != "before" || state.Version != version {
		t.Errorf("the state is %+v, %v, want that of before", state, err)
	}
	if _, err := s.RenewSessionLock(ctx, a); err != nil {
		t.Error(err)
	}
	receive := func() []semantics.LockToken {
		t.Helper()
		batch, err := s.Receive(ctx, a, 1, semantics.RegisterNever)
		if err != nil || len(batch.Messages) != 1 {
			t.Fatalf("receive: %+v, %v", batch, err)
		}
		return tokensOf(batch.Messages)
	}
	for name, verb := range map[string]func(tokens []semantics.LockToken) ([]semantics.Code, error){
		"complete": func(tokens []semantics.LockToken) ([]semantics.Code, error) { return s.Complete(ctx, a, tokens) },
		"release":  func(tokens []semantics.LockToken) ([]semantics.Code, error) { return s.Release(ctx, a, tokens) },
		"defer":    func(tokens []semantics.LockToken) ([]semantics.Code, error) { return s.Defer(ctx, a, tokens, nil) },
		"abandon": func(tokens []semantics.LockToken) ([]semantics.Code, error) {
			return s.Abandon(ctx, a, tokens, semantics.AbandonOptions{})
		},
		"dead-letter": func(tokens []semantics.LockToken) ([]semantics.Code, error) {
			return s.DeadLetter(ctx, a, tokens, semantics.DeadLetterTexts{}, nil)
		},
	} {
		if codes, err := verb(receive()); err != nil || codes[0] != "" {
			t.Errorf("%s in a full Redis: %v %v", name, codes, err)
		}
	}
	if rows, _, err := s.ListSessions(ctx, "orders", "", 9, semantics.SessionFilter{}); err != nil || len(rows) != 2 {
		t.Errorf("list: %+v, %v", rows, err)
	}
	if err := s.CloseSession(ctx, a); err != nil {
		t.Error(err)
	}
	for range 2 {
		session, _, err := s.AcceptNextSession(ctx, "orders", semantics.RegisterNever)
		if err != nil || session == nil {
			t.Fatalf("accept next: %+v, %v", session, err)
		}
		a.SessionLock = session.Lock
		batch, err := s.Receive(ctx, a, 9, semantics.RegisterNever)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Complete(ctx, a, tokensOf(batch.Messages)); err != nil {
			t.Fatal(err)
		}
		if err := s.CloseSession(ctx, a); err != nil {
			t.Fatal(err)
		}
	}
	if counts, err := s.Runtime(ctx, semantics.QueueKind, "orders"); err != nil || counts.Available != 0 || counts.Deferred != 1 || counts.DeadLetter != 1 {
		t.Errorf("counts %+v, %v", counts, err)
	}
	if err := s.DeleteEntity(ctx, semantics.QueueKind, "orders"); err != nil {
		t.Error(err)
	}
}

// A full Redis takes no state in, but lets one be cleared, which is how room is made (SESS-33c).
func TestSESS_33c_FullRedisClearsStates(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	defer server.Stop()
	s := redistest.Open(t, redisstore.Options{URL: server.URL})
	options := semantics.DefaultOptions()
	options.RequiresSession = true
	if _, _, err := s.CreateEntity(t.Context(), semantics.QueueKind, "orders", options); err != nil {
		t.Fatal(err)
	}
	session, err := s.AcceptSession(t.Context(), "orders", "a")
	if err != nil {
		t.Fatal(err)
	}
	source := semantics.Source{Path: "orders", SessionLock: session.Lock}
	version, err := s.SetSessionState(t.Context(), source, []byte("note"), nil)
	if err != nil {
		t.Fatal(err)
	}
	command(t, server.URL, "CONFIG", "SET", "maxmemory", "1")
	if _, err := s.SetSessionState(t.Context(), source, []byte("more"), nil); semantics.CodeOf(err) != semantics.StoreUnavailable {
		t.Errorf("set: %v", err)
	}
	other := version + 1
	if _, err := s.SetSessionState(t.Context(), source, nil, &other); semantics.CodeOf(err) != semantics.PreconditionFailed {
		t.Errorf("clear of another version: %v", err)
	}
	if _, err := s.SetSessionState(t.Context(), source, nil, &version); err != nil {
		t.Errorf("clear: %v", err)
	}
	if state, err := s.SessionState(t.Context(), source); err != nil || state.Data != nil {
		t.Errorf("state %q, %v", state.Data, err)
	}
}
