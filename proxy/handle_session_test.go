package proxy_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/sidebus/sidebus/proto/client"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// playingSession runs Handle against a puppet and delivers two messages of a session, "token" and "behind".
func playingSession(t *testing.T, handler client.Handler, play func(t *testing.T, p *puppet), more ...func(*client.HandleOptions)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := &puppet{t: t, requests: make(chan *sidebusv1.SubscribeRequest, 10), failures: make(chan error, 10)}
		open := &sidebusv1.SubscribeOpen{Source: tales, SessionInFlight: proto.Int32(2)}
		handleOver(t, p, open, handler, append(more, onError(func(err error) { p.failures <- err }))...)
		p.opens()
		p.says(&sidebusv1.SubscribeResponse{Response: &sidebusv1.SubscribeResponse_SessionOpened{
			SessionOpened: &sidebusv1.Session{SessionId: "s", LockToken: "session"},
		}})
		messages := []*sidebusv1.ReceivedMessage{
			{LockToken: new("token"), SessionId: new("s")}, {LockToken: new("behind"), SessionId: new("s")},
		}
		p.says(&sidebusv1.SubscribeResponse{Response: &sidebusv1.SubscribeResponse_Deliveries{Deliveries: &sidebusv1.SubscribeDeliveries{
			Deliveries: []*sidebusv1.SubscribeDelivery{{SessionLockToken: "session", Messages: messages}},
		}}})
		play(t, p)
	})
}

func (p *puppet) losesSession() {
	p.says(&sidebusv1.SubscribeResponse{Response: &sidebusv1.SubscribeResponse_SessionClosed{
		SessionClosed: &sidebusv1.SubscribeSessionClosed{
			SessionId: "s", SessionLockToken: "session", Why: sidebusv1.SubscribeSessionClosed_LOST,
		},
	}})
}

// When a message of a session fails, what is behind it is not handled, and the session is closed, unless it has ended.
func TestSESS_28_HandleAfterAFailureInASession(t *testing.T) {
	t.Parallel()
	sessionLost := new("SESSION_LOCK_LOST")
	for name, c := range map[string]struct {
		outcome error
		waits   bool // the handler returns when its context has ended
		play    func(p *puppet)
		closes  bool
		tells   string
	}{
		"abandoned":                {outcome: errors.New("not now"), play: func(p *puppet) { p.settles(nil, nil) }, closes: true},
		"completed, lock lost":     {play: func(p *puppet) { p.settles(nil, new("MESSAGE_LOCK_LOST")) }, closes: true, tells: "MESSAGE_LOCK_LOST"},
		"refused for good":         {outcome: client.DeadLetter(errors.New("never")), play: func(p *puppet) { p.settles(tooLong, nil) }, tells: "ARGUMENT_OUT_OF_RANGE"},
		"completed, session lost":  {play: func(p *puppet) { p.settles(nil, sessionLost) }, tells: "SESSION_LOCK_LOST"},
		"abandoned, session lost":  {outcome: errors.New("not now"), play: func(p *puppet) { p.settles(nil, sessionLost) }, tells: "SESSION_LOCK_LOST"},
		"session lost, given back": {outcome: errors.New("not now"), waits: true, play: func(p *puppet) { synctest.Wait(); p.losesSession(); p.settles(nil, sessionLost) }, tells: "SESSION_LOCK_LOST"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			handled := 0
			playingSession(t, func(ctx context.Context, _ *client.HandledMessage) error {
				handled++
				if c.waits {
					<-ctx.Done()
				}
				return c.outcome
			}, func(t *testing.T, p *puppet) {
				c.play(p)
				if c.closes {
					if r := p.next(); r.GetCloseSession().GetSessionLockToken() != "session" {
						t.Errorf("asked for %v, want the end of the session", r)
					} else { // which has ended meanwhile
						p.says(&sidebusv1.SubscribeResponse{
							RequestId: r.GetRequestId(),
							Response:  &sidebusv1.SubscribeResponse_Failure{Failure: &sidebusv1.Failure{Reason: *sessionLost}},
						})
					}
				}
				if c.tells != "" {
					p.tells(c.tells)
				}
				p.isQuiet(time.Minute)
				p.losesSession()
				p.isQuiet(time.Minute)
				if handled != 1 {
					t.Errorf("%d messages were handled, want the one that failed", handled)
				}
			})
		})
	}
}

// A handler that learns from another request that its session is lost does not go on.
func TestSESS_22_LostSessionEndsItsHandlerAtOnce(t *testing.T) {
	t.Parallel()
	ended := false
	playingSession(t, func(ctx context.Context, m *client.HandledMessage) error {
		_ = m.SetSessionState(context.WithoutCancel(ctx), nil)
		ended = ctx.Err() != nil
		return nil
	}, func(_ *testing.T, p *puppet) {
		p.says(&sidebusv1.SubscribeResponse{
			RequestId: p.next().GetRequestId(),
			Response:  &sidebusv1.SubscribeResponse_Failure{Failure: &sidebusv1.Failure{Reason: "SESSION_LOCK_LOST"}},
		})
		p.settles(nil, new("SESSION_LOCK_LOST"))
		p.tells("SESSION_LOCK_LOST")
		p.isQuiet(time.Minute)
		synctest.Wait()
		if !ended {
			p.t.Error("the context of the handler has not ended")
		}
	})
}

// A message that is abandoned by hand after its handler has returned comes again before those behind it, also if they
// are handled already.
func TestSESS_28_ManualSettlementKeepsTheOrder(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	s.openTales(t, "")
	w := &wire{sidecar: s, messages: s.messages, sessions: s.sessions}
	w.tell(t, "s", "1", "2", "3", "4")
	var mu sync.Mutex
	var completed []string
	first, second, all := make(chan *client.HandledMessage, 1), make(chan struct{}), make(chan struct{})
	var once sync.Once
	open := &sidebusv1.SubscribeOpen{Source: tales, Credits: proto.Int32(8), SessionInFlight: proto.Int32(3)}
	s.handle(t, open, func(ctx context.Context, m *client.HandledMessage) error {
		if string(m.Body) == "1" && m.DeliveryCount == 1 {
			first <- m
			return nil
		}
		hasLost := false
		if string(m.Body) == "2" {
			once.Do(func() {
				close(second)
				<-ctx.Done() // the session is closed
				hasLost = true
			})
		}
		if hasLost {
			return ctx.Err()
		}
		mu.Lock()
		defer mu.Unlock()
		if completed = append(completed, string(m.Body)); len(completed) == 4 {
			close(all)
		}
		return m.Complete(ctx)
	}, manual)
	m := <-first
	wait(t, "the message behind it", second)
	if err := m.Abandon(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	wait(t, "all messages", all)
	if want := []string{"1", "2", "3", "4"}; !slices.Equal(completed, want) {
		t.Errorf("completed %v, want %v", completed, want)
	}
}

// Whether a message was given back by hand is not known: the session is closed, so that it comes before those behind it.
func TestSESS_28_GivenBackWithUnknownOutcome(t *testing.T) {
	t.Parallel()
	release := func(ctx context.Context, m *client.HandledMessage) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if err := m.Release(ctx); err == nil || !client.ErrorOf(err).OutcomeUnknown {
			t.Errorf("got %v, want an unknown outcome", err)
		}
	}
	playingSession(t, func(ctx context.Context, m *client.HandledMessage) error {
		if m.LockToken == "token" {
			go release(ctx, m)
		}
		return nil
	}, func(t *testing.T, p *puppet) {
		for r := p.next(); r.GetCloseSession().GetSessionLockToken() != "session"; r = p.next() {
			p.answers(r, unclear, nil)
		}
	}, manual)
}

// A message that was given back before its handler could begin is handled before those behind it.
func TestSESS_28_HandleRemovesInOrderAfterALostLock(t *testing.T) {
	t.Parallel()
	store := &completionStore{Store: memstore.New(), first: func(complete, release func() ([]semantics.Code, error)) ([]semantics.Code, error) {
		if _, err := release(); err != nil {
			return nil, err
		}
		return complete()
	}}
	s := start(t, store)
	s.openTales(t, "")
	w := &wire{sidecar: s, messages: s.messages, sessions: s.sessions}
	w.tell(t, "s", "1", "2", "3")
	handled := make(chan string, 10)
	open := removing(tales, 4)
	open.SessionInFlight = proto.Int32(3)
	s.handle(t, open, func(_ context.Context, m *client.HandledMessage) error {
		handled <- string(m.Body)
		return nil
	})
	for _, want := range []string{"1", "2", "3"} {
		select {
		case got := <-handled:
			if got != want {
				t.Errorf("handled %s, want %s", got, want)
			}
		case <-time.After(patience):
			t.Fatalf("%s is not handled", want)
		}
	}
}
