package broker_test

import (
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/broker/stream"
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
	target := semantics.ToQueue("tales")
	for range 2 {
		if _, err := on.Send(ctx, target, []*semantics.Message{{SessionID: "a"}}); err != nil {
			t.Fatal(err)
		}
	}
	a, err := on.AcceptSession(ctx, "tales", broker.AcceptOptions{SessionID: "a"})
	if err != nil {
		t.Fatal(err)
	}
	one := broker.ReceiveOptions{MaxMessages: 1}
	received, err := on.Receive(ctx, a.Source(), one)
	if err != nil {
		t.Fatal(err)
	}
	held, tokens, named := a.Source(), received.Tokens(), semantics.Source{Path: "tales", Session: "a"}
	if _, err := off.CreateEntity(ctx, semantics.QueueKind, "orders", semantics.Options{}, nil); err != nil {
		t.Error(err)
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

		"receive":              func() error { _, err := off.Receive(ctx, held, one); return err },
		"receive deferred":     func() error { _, err := off.ReceiveDeferred(ctx, held, []int64{1}, semantics.PeekLock); return err },
		"receive by number":    func() error { _, err := off.ReceiveBySequence(ctx, held, []int64{2}, semantics.PeekLock); return err },
		"reactivate":           func() error { return off.Reactivate(ctx, held, []int64{1}) },
		"delete by number":     func() error { _, err := off.DeleteBySequence(ctx, held, []int64{2}); return err },
		"complete":             func() error { _, err := off.Complete(ctx, held, tokens); return err },
		"complete and receive": func() error { _, err := off.CompleteAndReceive(ctx, held, tokens, one); return err },
		"receive the next":     func() error { _, err := off.CompleteAndReceive(ctx, held, nil, one); return err },
		"abandon":              func() error { _, err := off.Abandon(ctx, held, tokens, semantics.AbandonOptions{}); return err },
		"release":              func() error { _, err := off.Release(ctx, held, tokens); return err },
		"defer":                func() error { _, err := off.Defer(ctx, held, tokens, nil); return err },
		"dead-letter":          func() error { _, err := off.DeadLetter(ctx, held, tokens, broker.DeadLetterOptions{}); return err },
		"renew locks":          func() error { _, err := off.RenewLocks(ctx, held, tokens); return err },
		"peek":                 func() error { _, err := off.Peek(ctx, held, 0, 1, semantics.ShowAll); return err },
		"peek of one":          func() error { _, err := off.Peek(ctx, named, 0, 1, semantics.ShowAll); return err },
		"purge":                func() error { _, err := off.Purge(ctx, held, broker.PurgeOptions{}); return err },
		"purge of one":         func() error { _, err := off.Purge(ctx, named, broker.PurgeOptions{}); return err },
		"request": func() error {
			_, _, err := off.Request(ctx, semantics.ToQueue("orders"), "tales", &semantics.Message{}, time.Minute)
			return err
		},
		"subscribe": func() error {
			sub, err := off.Subscribe(ctx, semantics.Source{Path: "tales"}, stream.DefaultOptions())
			if err != nil {
				return err
			}
			defer sub.Close(ctx)
			_, err = sub.Next(ctx)
			return err
		},
	}
	for name, verb := range verbs {
		wantCode(t, name, verb(), semantics.SessionNotSupported)
	}
	if _, err := off.Send(ctx, target, []*semantics.Message{{SessionID: "a"}}); err != nil {
		t.Errorf("a send needs no sessions: %v", err)
	}
	if all, err := off.Peek(ctx, semantics.Source{Path: "tales"}, 0, 9, semantics.ShowAll); err != nil || len(all) != 3 {
		t.Errorf("a peek needs no sessions: got %d messages, %v", len(all), err)
	}
	if codes, err := on.Complete(ctx, held, tokens); err != nil || codes[0] != "" {
		t.Errorf("a refused verb changed something: %v, %v", codes, err)
	}
	if err := on.CloseSession(ctx, held); err != nil {
		t.Errorf("a refused verb changed something: %v", err)
	}
}
