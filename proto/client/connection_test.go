package client_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sidebus/sidebus/proto/client"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// Who mistakes the ports learns it from the first call, and not after all tries.
func TestAddressOfHTTP(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	err := newSender(t, connect(t, other.Listener.Addr().String(), nil), "q").SendMessage(t.Context(), text("x"), nil)
	failure := client.ErrorOf(err)
	if !errors.Is(err, client.CodeConnectionLost) || failure.Retryable || failure.OutcomeUnknown ||
		!strings.Contains(failure.Message, "the address is one of HTTP, not of gRPC") {
		t.Errorf("got %+v", failure)
	}
}

func TestNoSidecarAnswers(t *testing.T) {
	t.Parallel()
	lost := connect(t, "127.0.0.1:1", &client.Options{RetryTimeout: time.Nanosecond})
	err := newSender(t, lost, "q").SendMessage(t.Context(), text("x"), nil)
	failure := client.ErrorOf(err)
	if !errors.Is(err, client.CodeConnectionLost) || !failure.Retryable ||
		!strings.HasPrefix(failure.Message, "no sidecar answers: dial tcp 127.0.0.1:1: ") ||
		!strings.HasSuffix(failure.Message, "; start one, or pass its gRPC address to New") {
		t.Errorf("got %+v", failure)
	}
}

// Every method of what was closed fails with CLOSED, and so does what was waiting.
func TestClosed(t *testing.T) {
	t.Parallel()
	ctx, whole := t.Context(), connect(t, target, nil)
	queue := queueOf(t, whole, nil)
	sessions := unique(t)
	mustQueue(ctx, whole, sessions, &sidebusv1.Queue{RequiresSession: new(true)})
	sidebus, err := client.New(target, nil)
	if err != nil {
		t.Fatal(err)
	}
	sender, receiver := newSender(t, sidebus, queue), newReceiver(t, sidebus, queue, &client.ReceiverOptions{MaxAutoRenew: time.Hour})
	session, err := sidebus.AcceptSessionForQueue(ctx, sessions, "s", &client.SessionReceiverOptions{MaxAutoRenew: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	send(t, sidebus, queue, "x")
	m := receiveOne(t, receiver)
	waits := map[string]func() error{
		"ReceiveMessages": func() error { _, err := receiver.ReceiveMessages(ctx, 1, nil); return err },
		"Handle":          func() error { return receiver.Handle(ctx, nil, nil) },
		"AcceptNext":      func() error { _, err := sidebus.AcceptNextSessionForQueue(ctx, sessions, nil); return err },
		"of a session":    func() error { _, err := session.ReceiveMessages(ctx, 1, nil); return err },
	}
	var outcomes sync.WaitGroup
	for name, wait := range waits {
		outcomes.Go(func() {
			if err := wait(); !errors.Is(err, client.CodeClosed) {
				t.Errorf("%s, which waits: got %v", name, err)
			}
		})
	}
	for range 2 {
		if err := sidebus.Close(); err != nil {
			t.Error(err)
		}
	}
	outcomes.Wait()
	calls := map[string]func() error{
		"NewSender":             func() error { _, err := sidebus.NewSender("q", nil); return err },
		"NewReceiverForQueue":   func() error { _, err := sidebus.NewReceiverForQueue("q", nil); return err },
		"AcceptSessionForQueue": func() error { _, err := sidebus.AcceptSessionForQueue(ctx, sessions, "s", nil); return err },
		"SendMessage":           func() error { return sender.SendMessage(ctx, text("x"), nil) },
		"CancelScheduled":       func() error { return sender.CancelScheduledMessages(ctx, []int64{1}, nil) },
		"Request":               func() error { _, err := sender.Request(ctx, text("x"), "q", nil); return err },
		"CompleteMessage":       func() error { return receiver.CompleteMessage(ctx, m, nil) },
		"PeekMessages":          func() error { _, err := receiver.PeekMessages(ctx, 1, nil); return err },
		"RenewMessageLock":      func() error { return receiver.RenewMessageLock(ctx, m, nil) },
		"RenewSessionLock":      func() error { return session.RenewSessionLock(ctx, nil) },
	}
	maps.Copy(calls, waits)
	for name, call := range calls {
		if err := call(); !errors.Is(err, client.CodeClosed) || client.ErrorOf(err).OutcomeUnknown {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// Senders, receivers, renewals and Handle outlive a sidecar that is killed and started again.
func TestReconnects(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), startSidecar(t)
	sidebus := connect(t, s.target(), nil)
	mustQueue(ctx, sidebus, "q", nil)
	mustQueue(ctx, sidebus, "handled", nil)
	receiver, handled, broken := newReceiver(t, sidebus, "q", nil), make(chan string, 100), make(chan error, 1000)
	ctx, stop := context.WithCancel(ctx)
	var work sync.WaitGroup
	work.Go(func() {
		err := newReceiver(t, sidebus, "handled", nil).Handle(ctx, func(_ context.Context, m *client.HandledMessage) error {
			handled <- string(m.Body)
			return nil
		}, &client.HandleOptions{OnError: func(err error) {
			broken <- err
		}})
		// The queue is not there until the test has made it again.
		if err != nil && !errors.Is(err, client.CodeEntityNotFound) {
			t.Error(err)
		}
	})
	send(t, sidebus, "handled", "before")
	if got := <-handled; got != "before" {
		t.Errorf("handled %q", got)
	}
	s.kill()
	if err := <-broken; !errors.Is(err, client.CodeConnectionLost) {
		t.Errorf("told of %v", err)
	}
	sent := make(chan error, 1)
	// nothing answers: it is repeated
	go func() { sent <- newSender(t, sidebus, "made-later").SendMessage(ctx, text("x"), nil) }()
	if err := s.start(ctx); err != nil {
		t.Fatal(err)
	}
	// the answer of the second sidecar, whose memory is empty
	if err := <-sent; !errors.Is(err, client.CodeEntityNotFound) {
		t.Errorf("got %v", err)
	}
	mustQueue(ctx, sidebus, "q", nil)
	send(t, sidebus, "q", "after")
	if m := receiveOne(t, receiver); string(m.Body) != "after" {
		t.Errorf("received %q", m.Body)
	}
	stop()
	work.Wait()
}

// A sidecar with keys is called with a token.
func TestAUTH_1_SharedAccessKey(t *testing.T) {
	t.Parallel()
	keys := filepath.Join(t.TempDir(), "keys.yaml")
	if err := os.WriteFile(keys, []byte("root:\n  primaryKey: a-key-that-is-long-enough-for-anyone\n  claims: [Send, Listen, Manage]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startSidecar(t, "--sas-keys-file", keys)
	allowed := connect(t, s.target(), &client.Options{
		SharedAccessKeyName: "root", SharedAccessKey: "a-key-that-is-long-enough-for-anyone",
	})
	mustQueue(t.Context(), allowed, "q", nil)
	send(t, allowed, "q", "x")
	for _, options := range []*client.Options{nil, {SharedAccessKeyName: "root", SharedAccessKey: "another"}} {
		err := newSender(t, connect(t, s.target(), options), "q").SendMessage(t.Context(), text("x"), nil)
		if !errors.Is(err, client.CodeUnauthenticated) {
			t.Errorf("got %v", err)
		}
	}
	if _, err := client.New(s.target(), &client.Options{SharedAccessKey: "k"}); !errors.Is(err, client.CodeInvalidArgument) {
		t.Errorf("a key without a name: got %v", err)
	}
}

// The environment names the sidecar when the call does not.
func TestTargetOfTheEnvironment(t *testing.T) {
	t.Setenv(client.AddrEnv, target)
	sidebus := connect(t, "", nil)
	queue := queueOf(t, sidebus, nil)
	send(t, sidebus, queue, "x")
	if _, err := sidebus.NewSender("", nil); !errors.Is(err, client.CodeInvalidArgument) {
		t.Errorf("an empty name: got %v", err)
	}
}

// There is a constant for every reason that the pages list.
func TestERR_1_EveryReasonHasACode(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("error.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "api", "errors.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| (`[A-Z_]+`(?:, `[A-Z_]+`)*) \\|").FindAllStringSubmatch(string(page), -1)
	if len(rows) < 25 {
		t.Fatalf("only %d rows in the list of errors", len(rows))
	}
	for _, row := range rows {
		for _, reason := range regexp.MustCompile(`[A-Z_]+`).FindAllString(row[1], -1) {
			// gRPC has no routes
			if reason != "ROUTE_NOT_FOUND" && !strings.Contains(string(source), `Code = "`+reason+`"`) {
				t.Errorf("no code for %s", reason)
			}
		}
	}
}
