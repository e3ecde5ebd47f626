package broker_test

import (
	"testing"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// With sessions switched off all session verbs are refused, also those on a queue that another sidecar made; the rest
// goes on.
func TestSESS_8_SessionsSwitchedOff(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	on, off := broker.New(store), broker.New(store, broker.WithoutSessions())
	defer on.Close()
	defer off.Close()
	ctx := t.Context()
	sessions := semantics.Options{RequiresSession: true}
	if _, err := on.CreateEntity(ctx, semantics.QueueKind, "tales", sessions, []string{"requiresSession"}); err != nil {
		t.Fatal(err)
	}
	a, err := on.AcceptSession(ctx, "tales", broker.AcceptOptions{SessionID: "a"})
	if err != nil {
		t.Fatal(err)
	}
	verbs := map[string]func() error{
		"create": func() error {
			_, err := off.CreateEntity(ctx, semantics.QueueKind, "other", sessions, []string{"requiresSession"})
			return err
		},
		"ensure": func() error {
			_, err := off.EnsureEntity(ctx, semantics.QueueKind, "other", sessions, []string{"requiresSession"})
			return err
		},
		"accept": func() error { _, err := off.AcceptSession(ctx, "tales", broker.AcceptOptions{}); return err },
		"renew":  func() error { _, err := off.RenewSessionLock(ctx, a.Source()); return err },
		"close":  func() error { return off.CloseSession(ctx, a.Source()) },
		"state":  func() error { _, err := off.SessionState(ctx, a.Source()); return err },
		"set":    func() error { _, err := off.SetSessionState(ctx, a.Source(), nil, nil); return err },
		"list": func() error {
			_, _, err := off.ListSessions(ctx, "tales", 0, "", semantics.SessionFilter{})
			return err
		},
		"unblock": func() error { return off.UnblockSession(ctx, "tales", "a") },
		"rest":    func() error { return off.DeadLetterRest(ctx, "tales", "a") },
	}
	for name, verb := range verbs {
		wantCode(t, name, verb(), semantics.SessionNotSupported)
	}
	if _, err := off.CreateEntity(ctx, semantics.QueueKind, "orders", semantics.Options{}, nil); err != nil {
		t.Error(err)
	}
	if err := on.CloseSession(ctx, a.Source()); err != nil {
		t.Errorf("a refused verb changed something: %v", err)
	}
}
