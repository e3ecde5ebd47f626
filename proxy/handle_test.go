package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/sidebus/sidebus/proto/client"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// handled is a call of Handle.
type handled struct {
	stop func()       // makes it end
	done <-chan error // what it returned
}

// handle runs Handle until the test ends.
func (s *sidecar) handle(
	t *testing.T, open *sidebusv1.SubscribeOpen, handler client.Handler, change ...func(*client.HandleOptions),
) handled {
	t.Helper()
	return handleOver(t, s.conn, open, handler, change...)
}

func handleOver(
	t *testing.T, conn grpc.ClientConnInterface, open *sidebusv1.SubscribeOpen, handler client.Handler,
	change ...func(*client.HandleOptions),
) handled {
	t.Helper()
	options := &client.HandleOptions{
		Concurrency: int(open.GetCredits()), StreamID: open.GetId(), Prefetch: int(open.GetPrefetch()),
		SessionInFlight: int(open.GetSessionInFlight()),
	}
	for _, c := range change {
		c(options)
	}
	mode := client.ReceiveModePeekLock
	if open.GetMode() == sidebusv1.ReceiveRequest_RECEIVE_AND_DELETE {
		mode = client.ReceiveModeReceiveAndDelete
	}
	c := client.NewFromConn(conn, nil)
	receiver, err := c.NewReceiverForQueue(strings.TrimPrefix(open.GetSource(), "queues/"), &client.ReceiverOptions{ReceiveMode: mode})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done, ended := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(ended)
		done <- receiver.Handle(ctx, handler, options)
	}()
	t.Cleanup(func() {
		stop()
		wait(t, "end of Handle", ended)
		_ = c.Close()
	})
	return handled{stop, done}
}

func onError(f func(error)) func(*client.HandleOptions) {
	return func(o *client.HandleOptions) { o.OnError = f }
}

func manual(o *client.HandleOptions) { o.ManualSettlement = true }

func sessionID(m *client.HandledMessage) string {
	if m.SessionID == nil {
		return ""
	}
	return *m.SessionID
}

// ends waits for the end of Handle and gives what it returned.
func (h handled) ends(t *testing.T) error {
	t.Helper()
	select {
	case err := <-h.done:
		return err
	case <-time.After(patience):
		t.Fatal("Handle does not return")
		return nil
	}
}

type parseError struct{ line int }

func (e *parseError) Error() string { return fmt.Sprintf("line %d cannot be read", e.line) }

// What a handler returns settles the message (RECV-14), and reason and description tell of the error (DLQ-14).
func TestRECV_14_WhatAHandlerReturns(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	for _, m := range []string{"good", "bad once", "typed", "plain", "own words", "deferred"} {
		s.send(t, m)
	}
	var mu sync.Mutex
	tries := map[string]int{}
	deferrals := make(chan error, 10)
	s.handle(t, &sidebusv1.SubscribeOpen{Source: orders, Credits: proto.Int32(3)}, func(ctx context.Context, m *client.HandledMessage) error {
		mu.Lock()
		tries[string(m.Body)]++
		mu.Unlock()
		switch string(m.Body) {
		case "bad once":
			if m.DeliveryCount == 1 {
				return errors.New("try again")
			}
		case "typed":
			return client.DeadLetter(fmt.Errorf("message: %w", &parseError{7}))
		case "plain":
			return fmt.Errorf("wrapped: %w", client.DeadLetter(errors.New(strings.Repeat("ä", 5000))))
		case "own words":
			return &client.DeadLetterError{Reason: "NotMine", Description: "it is for others"}
		case "deferred":
			deferrals <- m.Defer(ctx, nil)
			return errors.New("settles nothing any more")
		}
		return nil
	})
	eventually(t, "everything was dealt with", func() bool {
		r := s.runtime(t)
		return r.GetActiveMessageCount() == 1 && r.GetDeferredCount() == 1 && r.GetDeadLetterMessageCount() == 3
	})
	if err := <-deferrals; err != nil {
		t.Error(err)
	}
	if tries["bad once"] != 2 || tries["good"] != 1 || tries["typed"] != 1 {
		t.Errorf("tries: %v", tries)
	}
	dead, err := s.messages.Peek(t.Context(), &sidebusv1.PeekRequest{Source: orders, SubQueue: sidebusv1.SubQueue_DEAD_LETTER, MaxMessages: proto.Int32(10)})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][2]string{
		"typed":     {"proxy_test.parseError", "message: line 7 cannot be read"},
		"plain":     {"error", strings.Repeat("ä", 4096)},
		"own words": {"NotMine", "it is for others"},
	}
	for _, m := range dead.GetMessages() {
		if got := [2]string{m.GetDeadLetterReason(), m.GetDeadLetterErrorDescription()}; got != want[m.GetText()] {
			t.Errorf("%s: dead-lettered for %q, want %q", m.GetText(), got, want[m.GetText()])
		}
	}
}

// Handlers of one session run one after the other, in order also when one fails, and those of several side by side.
func TestSESS_10_HandlersKeepTheOrderOfSessions(t *testing.T) {
	t.Parallel()
	for _, inFlight := range []int32{1, 4} {
		t.Run(fmt.Sprint(inFlight, " in flight"), func(t *testing.T) {
			t.Parallel()
			s := start(t, memstore.New())
			s.openTales(t, "")
			const sessions, each = 6, 15
			for i := range each {
				request := &sidebusv1.SendRequest{Target: tales}
				for j := range sessions {
					request.Messages = append(request.Messages, inSession(fmt.Sprint("s", j), fmt.Sprint(i)))
				}
				if _, err := s.messages.Send(t.Context(), request); err != nil {
					t.Fatal(err)
				}
			}
			var mu sync.Mutex
			busy, got, most, left := map[string]bool{}, map[string][]string{}, 0, sessions*each
			all := make(chan struct{})
			open := &sidebusv1.SubscribeOpen{Source: tales, Credits: proto.Int32(16), SessionInFlight: &inFlight}
			s.handle(t, open, func(ctx context.Context, m *client.HandledMessage) error {
				id := sessionID(m)
				mu.Lock()
				if busy[id] {
					t.Errorf("two messages of %s at a time", id)
				}
				busy[id] = true
				most = max(most, len(busy))
				before := ""
				if n := len(got[id]); n > 0 {
					before = fmt.Sprint(n) // what its last message left
				}
				mu.Unlock()
				defer func() {
					mu.Lock()
					defer mu.Unlock()
					delete(busy, id)
				}()
				if m.DeliveryCount == 1 && *m.SessionSequence%5 == 0 {
					return errors.New("not at the first try")
				}
				if string(m.SessionState()) != before {
					t.Errorf("state of %s is %q, want %q", id, m.SessionState(), before)
				}
				if err := m.SetSessionState(ctx, fmt.Append(nil, *m.SessionSequence)); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				got[id] = append(got[id], string(m.Body))
				if left--; left == 0 {
					close(all)
				}
				return nil
			})
			wait(t, "the last message", all)
			for id, texts := range got {
				for i, text := range texts {
					if text != fmt.Sprint(i) {
						t.Errorf("order of %s: %v", id, texts)
						break
					}
				}
			}
			if most < 2 {
				t.Error("the sessions were handled one after the other")
			}
		})
	}
}

func TestSESS_31_StateFromAHandler(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	s.openTales(t, "")
	w := &wire{sidecar: s, messages: s.messages, sessions: s.sessions}
	w.tell(t, "s", "set", "empty", "clear", "too large")
	outcomes := make(chan error, 10)
	states := make(chan []byte, 10)
	s.handle(t, &sidebusv1.SubscribeOpen{Source: tales}, func(ctx context.Context, m *client.HandledMessage) error {
		states <- m.SessionState()
		outcomes <- m.SetSessionState(ctx, map[string][]byte{
			"set": []byte("note"), "empty": {}, "too large": make([]byte, 300<<10),
		}[string(m.Body)])
		return nil
	})
	for i, want := range [][]byte{nil, []byte("note"), {}, nil} {
		if got := <-states; string(got) != string(want) || (got == nil) != (want == nil) {
			t.Errorf("state before message %d is %q, want %q", i+1, got, want)
		}
		err := <-outcomes
		var failure *client.Error
		if isLast := i == 3; isLast != (errors.As(err, &failure) && string(failure.Code) == "SESSION_STATE_TOO_LARGE") {
			t.Errorf("outcome of message %d: %v", i+1, err)
		}
	}
	other := start(t, memstore.New())
	other.send(t, "of no session")
	other.handle(t, &sidebusv1.SubscribeOpen{Source: orders}, func(ctx context.Context, m *client.HandledMessage) error {
		if m.SessionState() != nil {
			t.Error("a state without a session")
		}
		outcomes <- m.SetSessionState(ctx, []byte("x"))
		return nil
	})
	if err := <-outcomes; err == nil {
		t.Error("a state was set without a session")
	}
}

// What runs when Handle is told to stop is waited for and settled; what failed by that counts nothing.
func TestSESS_10_HandleStopsInOrder(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	for _, text := range []string{"finishes", "gives up", "never begins"} {
		s.send(t, text)
	}
	begun := make(chan struct{}, 3)
	h := s.handle(t, &sidebusv1.SubscribeOpen{Source: orders, Credits: proto.Int32(2)}, func(ctx context.Context, m *client.HandledMessage) error {
		begun <- struct{}{}
		<-ctx.Done()
		if string(m.Body) == "finishes" {
			return nil
		}
		return ctx.Err()
	})
	<-begun
	<-begun
	h.stop()
	if err := h.ends(t); err != nil {
		t.Errorf("got %v", err)
	}
	left := s.receive(t)
	if texts(left) != "gives up never begins" || left[0].GetDeliveryCount() != 1 || len(begun) != 0 {
		t.Errorf("left: %v", left)
	}
}

func TestSESS_10_HandleGoesOnAfterABreak(t *testing.T) {
	t.Parallel()
	over := memstore.New()
	first := start(t, over)
	first.openTales(t, "")
	w := &wire{sidecar: first, messages: first.messages, sessions: first.sessions}
	w.tell(t, "s", "1", "2", "3")
	var mu sync.Mutex
	var got []string
	begun, failures := make(chan struct{}, 10), make(chan error, 100)
	open := &sidebusv1.SubscribeOpen{Source: tales, Id: "one at a time"}
	handler := func(ctx context.Context, m *client.HandledMessage) error {
		if string(m.Body) == "2" {
			begun <- struct{}{}
			if len(failures) == 0 {
				<-ctx.Done() // the stream breaks
				return ctx.Err()
			}
		}
		mu.Lock()
		defer mu.Unlock()
		got = append(got, string(m.Body))
		return nil
	}
	h := first.handle(t, open, handler, onError(func(err error) { failures <- err }))
	<-begun
	first.stop()
	wait(t, "end of the first sidecar", first.done)
	if err := <-failures; err == nil {
		t.Error("nobody was told")
	} else {
		failures <- err
	}
	second := launch(t, over, func(c *proxy.Config) { c.GRPCAddr = first.proxy.GRPCAddr().String() })
	wait(t, "start", second.proxy.Started())
	eventually(t, "all were handled", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return slices.Equal(got, []string{"1", "2", "3"})
	})
	h.stop()
	if err := h.ends(t); err != nil {
		t.Error(err)
	}
}

func TestSESS_10_LostSessionEndsItsHandlers(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	s.openTales(t, `,"lockDuration":"5s"`) // the loss is noticed when it is renewed
	w := &wire{sidecar: s, messages: s.messages, sessions: s.sessions}
	w.tell(t, "s", "1")
	begun, ended, failures := make(chan int32, 10), make(chan error, 1), make(chan error, 10)
	var first sync.Once
	s.handle(t, &sidebusv1.SubscribeOpen{Source: tales}, func(ctx context.Context, m *client.HandledMessage) error {
		begun <- m.DeliveryCount
		first.Do(func() {
			<-ctx.Done()
			ended <- context.Cause(ctx)
		})
		return nil
	}, onError(func(err error) { failures <- err }))
	<-begun
	if err := s.broker.ReleaseHeld(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !strings.Contains(err.Error(), "session") {
		t.Errorf("the handler's context ended because of %v", err)
	}
	var refused *client.Error
	if err := <-failures; !errors.As(err, &refused) || !strings.HasSuffix(string(refused.Code), "LOCK_LOST") {
		t.Errorf("the settlement: got %v", err)
	}
	if n := <-begun; n != 1 {
		t.Errorf("delivery %d, want the first: it was given back", n)
	}
	eventually(t, "the message is completed", func() bool { return len(w.seen(t, sidebusv1.SubQueue_NONE)) == 0 })
}

func TestRECV_14_ManualSettlement(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	for _, text := range []string{"kept", "complete", "abandon", "release", "dead-letter"} {
		s.send(t, text)
	}
	kept, failures := make(chan *client.HandledMessage, 1), make(chan error, 10)
	h := s.handle(t, &sidebusv1.SubscribeOpen{Source: orders, Credits: proto.Int32(5)}, func(ctx context.Context, m *client.HandledMessage) error {
		if m.DeliveryCount > 1 {
			return m.Complete(ctx)
		}
		switch string(m.Body) {
		case "kept":
			kept <- m
			return errors.New("this settles nothing")
		case "abandon":
			return m.Abandon(ctx, &client.AbandonMessageOptions{Delay: new(time.Duration)})
		case "dead-letter":
			return m.DeadLetter(ctx, &client.DeadLetterOptions{Reason: proto.String("r")})
		case "release":
			if err := m.Release(ctx); err != nil {
				return err
			}
			return m.Release(ctx) // once too often
		}
		return m.Complete(ctx)
	}, manual, onError(func(err error) {
		select {
		case failures <- err:
		default: // what is released comes again and again
		}
	}))
	m := <-kept
	seen := map[string]bool{}
	for len(seen) < 2 {
		err := <-failures
		seen[err.Error()[strings.Index(err.Error(), ": ")+2:]] = true
	}
	if !seen["this settles nothing"] || !seen["MESSAGE_LOCK_LOST: the lock has expired or the message was settled; if it is still there, it is delivered again"] {
		t.Errorf("failures: %v", seen)
	}
	if n := s.runtime(t).GetLockedCount(); n < 1 {
		t.Errorf("%d locked, want the one that is kept", n)
	}
	if err := m.Complete(t.Context()); err != nil {
		t.Error(err)
	}
	eventually(t, "the dead letter is left", func() bool {
		r := s.runtime(t)
		// and what is released again and again
		return r.GetDeadLetterMessageCount() == 1 && r.GetTotalMessageCount() == 2
	})
	h.stop()
	_ = h.ends(t)
}

func TestRECV_1_HandleReceiveAndDelete(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	s.send(t, "x")
	failures := make(chan error, 1)
	s.handle(t, &sidebusv1.SubscribeOpen{Source: orders, Mode: sidebusv1.ReceiveRequest_RECEIVE_AND_DELETE}, func(ctx context.Context, m *client.HandledMessage) error {
		return errors.New("it is gone all the same")
	}, onError(func(err error) { failures <- err }))
	eventually(t, "it is gone", func() bool { return s.runtime(t).GetTotalMessageCount() == 0 })
	if len(failures) > 0 {
		t.Error(<-failures)
	}
}

func TestSESS_10_HandleEndsWhereNoTryHelps(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	nothing := func(context.Context, *client.HandledMessage) error { return nil }
	for name, c := range map[string]struct {
		open *sidebusv1.SubscribeOpen
		code codes.Code
	}{
		"unknown queue": {&sidebusv1.SubscribeOpen{Source: absent}, codes.NotFound},
		"bad request":   {&sidebusv1.SubscribeOpen{Source: orders, Credits: proto.Int32(-1)}, codes.OutOfRange},
	} {
		if err := s.handle(t, c.open, nothing).ends(t); status.Code(err) != c.code {
			t.Errorf("%s: got %v", name, err)
		}
	}
	named := &sidebusv1.SubscribeOpen{Source: orders, Id: "a"}
	begun := make(chan struct{})
	s.send(t, "x")
	s.handle(t, named, func(context.Context, *client.HandledMessage) error { close(begun); return nil })
	wait(t, "the first", begun)
	if err := s.handle(t, named, nothing).ends(t); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("the same name twice: got %v", err)
	}
	gone := s.handle(t, &sidebusv1.SubscribeOpen{Source: tales}, nothing)
	if err := gone.ends(t); status.Code(err) != codes.NotFound {
		t.Errorf("got %v", err)
	}
}

// A Handle whose sidecar never comes ends with its context.
func TestSESS_10_HandleWithoutASidecar(t *testing.T) {
	t.Parallel()
	conn := dial(t, "unix:///nowhere")
	s := &sidecar{conn: conn}
	failures := make(chan error, 1)
	h := s.handle(t, &sidebusv1.SubscribeOpen{Source: orders}, nil, onError(func(err error) {
		select {
		case failures <- err:
		default:
		}
	}))
	if err := <-failures; status.Code(errors.Unwrap(err)) != codes.Unavailable {
		t.Errorf("got %v", err)
	}
	h.stop()
	if err := h.ends(t); err != nil {
		t.Errorf("got %v", err)
	}
}
