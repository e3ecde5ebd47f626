package redisstore_test

import (
	"testing"
	"time"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/storetest"
)

// lostSessions are lostAnswers on a queue with sessions, of which a has messages.
type lostSessions struct {
	*lostAnswers
	clock *storetest.Clock
}

func openLostSessions(t *testing.T, inFlight int64, bodies ...string) *lostSessions {
	t.Helper()
	clock := storetest.NewClock()
	l := &lostSessions{clock: clock, lostAnswers: openLostAnswersAt(t, clock.Now, func(o *semantics.Options) {
		o.RequiresSession, o.LockDuration, o.SessionInFlight = true, time.Second, inFlight
	})}
	for _, body := range bodies {
		if _, err := l.sound.Send(t.Context(), "orders", []*semantics.Message{part("a", body)}); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func (l *lostSessions) accept(s *redisstore.Store) (semantics.Source, error) {
	session, err := s.AcceptSession(l.t.Context(), "orders", "a")
	if err != nil {
		return semantics.Source{}, err
	}
	return semantics.Source{Path: "orders", SessionLock: session.Lock}, nil
}

func (l *lostSessions) hold() semantics.Source {
	l.t.Helper()
	source, err := l.accept(l.sound)
	if err != nil {
		l.t.Fatal(err)
	}
	return source
}

func (l *lostSessions) complete(source semantics.Source, messages []*semantics.Received) {
	l.t.Helper()
	for _, m := range messages {
		codes, err := l.sound.Complete(l.t.Context(), source, []semantics.LockToken{m.LockToken})
		if err != nil || codes[0] != "" {
			l.t.Fatalf("complete: got %v, %v", codes, err)
		}
	}
}

// receive gives one message of a held session.
func (l *lostSessions) receive(s *redisstore.Store, source semantics.Source) ([]*semantics.Received, error) {
	batch, err := s.Receive(l.t.Context(), source, 1, semantics.RegisterNever)
	return batch.Messages, err
}

// A session whose accept was not answered is nobody's until its lock ends: the repeated accept says that somebody holds
// it, and nothing is counted when it is free again, for nothing was handed out.
func TestERR_6_AcceptAfterLostAnswer(t *testing.T) {
	t.Parallel()
	for name, accept := range map[string]func(l *lostSessions, s *redisstore.Store) error{
		"named": func(l *lostSessions, s *redisstore.Store) error { _, err := l.accept(s); return err },
		"next": func(l *lostSessions, s *redisstore.Store) error {
			session, _, err := s.AcceptNextSession(t.Context(), "orders", semantics.RegisterNever)
			if err == nil && session == nil {
				err = &semantics.Error{Code: semantics.SessionCannotBeLocked} // which is how "there is none" looks here
			}
			return err
		},
	} {
		l := openLostSessions(t, 1, "1", "2")
		again := l.lose("accept", func(s *redisstore.Store) error { return accept(l, s) })
		if semantics.CodeOf(again) != semantics.SessionCannotBeLocked {
			t.Errorf("%s, again: got %v, want SESSION_CANNOT_BE_LOCKED", name, again)
		}
		if c := l.counts(); c.LockedSessions != 1 {
			t.Errorf("%s: %d sessions are held, want 1", name, c.LockedSessions)
		}
		l.clock.Advance(time.Second)
		got, err := l.receive(l.sound, l.hold())
		if err != nil || len(got) != 1 || got[0].DeliveryCount != 1 {
			t.Errorf("%s: when the lock has ended: got %+v, %v, want the first message for the first time", name, got, err)
		}
	}
}

// A session whose close was not answered is closed, once: the repeated close finds that the lock is gone.
func TestERR_6_CloseAfterLostAnswer(t *testing.T) {
	t.Parallel()
	l := openLostSessions(t, 1, "1", "2")
	a := l.hold()
	if _, err := l.receive(l.sound, a); err != nil {
		t.Fatal(err)
	}
	again := l.lose("close", func(s *redisstore.Store) error { return s.CloseSession(t.Context(), a) })
	if semantics.CodeOf(again) != semantics.SessionLockLost {
		t.Errorf("again: got %v, want SESSION_LOCK_LOST", again)
	}
	got, err := l.receive(l.sound, l.hold())
	if err != nil || len(got) != 1 || got[0].SequenceNumber != 1 || got[0].DeliveryCount != 1 {
		t.Errorf("got %+v, %v, want message 1, uncounted", got, err)
	}
}

// A state whose setting was not answered is set. Who named the version it replaces learns that it has changed and finds
// its own; who named none sets it a second time.
func TestERR_6_SetStateAfterLostAnswer(t *testing.T) {
	t.Parallel()
	l := openLostSessions(t, 1, "1", "2")
	a, none := l.hold(), int64(0)
	set := func(expected *int64) func(s *redisstore.Store) error {
		return func(s *redisstore.Store) error {
			_, err := s.SetSessionState(t.Context(), a, []byte("mine"), expected)
			return err
		}
	}
	if again := l.lose("set state", set(&none)); semantics.CodeOf(again) != semantics.PreconditionFailed {
		t.Errorf("again with a version: got %v, want PRECONDITION_FAILED", again)
	}
	if again := l.lose("set state", set(nil)); again != nil {
		t.Errorf("again without a version: %v", again)
	}
	state, err := l.sound.SessionState(t.Context(), a)
	if err != nil || string(state.Data) != "mine" || state.Version == 0 {
		t.Errorf("got %+v, %v, want mine with a version", state, err)
	}
	if c := l.counts(); c.SizeInBytes != int64(len("mine"))+2*2 {
		t.Errorf("the queue has %d bytes", c.SizeInBytes)
	}
}

func TestERR_6_RenewSessionAfterLostAnswer(t *testing.T) {
	t.Parallel()
	l := openLostSessions(t, 1, "1", "2")
	a := l.hold()
	l.clock.Advance(900 * time.Millisecond)
	renew := func(s *redisstore.Store) error { _, err := s.RenewSessionLock(t.Context(), a); return err }
	if again := l.lose("renew", renew); again != nil {
		t.Errorf("again: %v", again)
	}
	l.clock.Advance(900 * time.Millisecond)
	if err := renew(l.sound); err != nil {
		t.Errorf("the lock that was renewed is gone: %v", err)
	}
}

// Messages whose receive was not answered stay in flight: through another sidecar the repeated receive gives nothing that
// would overtake them. They come back with the next receive through the same sidecar, or when the session is closed.
func TestERR_6_ReceiveInSessionAfterLostAnswer(t *testing.T) {
	t.Parallel()
	l := openLostSessions(t, 1, "1", "2")
	a := l.hold()
	lose := func() {
		l.loseOne("receive", func(s *redisstore.Store) error { _, err := l.receive(s, a); return err })
	}
	lose()
	if got, err := l.receive(l.sound, a); err != nil || len(got) != 0 {
		t.Errorf("elsewhere: got %d messages, %v, want none", len(got), err)
	}
	got, err := l.receive(l.there, a)
	if err != nil || len(got) != 1 || got[0].SequenceNumber != 1 || got[0].DeliveryCount != 1 {
		t.Errorf("again: got %+v, %v, want message 1, uncounted", got, err)
	}
	if codes, err := l.sound.Release(t.Context(), a, tokensOf(got)); err != nil || codes[0] != "" {
		t.Fatal(codes, err)
	}
	lose()
	if err := l.sound.CloseSession(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	got, err = l.receive(l.sound, l.hold())
	if err != nil || len(got) != 1 || got[0].SequenceNumber != 1 || got[0].DeliveryCount != 1 {
		t.Errorf("after the close: got %+v, %v, want message 1, uncounted", got, err)
	}
}

// A turn that was not answered has completed, and the message that it took stays in flight: elsewhere nothing overtakes
// it. The repeated turn finds nothing to complete and hands it out uncounted, and so does the next holder.
func TestERR_6_TurnAfterLostAnswer(t *testing.T) {
	t.Parallel()
	for _, isClosed := range []bool{false, true} {
		l := openLostSessions(t, 1, "1", "2", "3")
		a := l.hold()
		first, err := l.receive(l.sound, a)
		if err != nil || len(first) != 1 {
			t.Fatalf("got %d messages, %v", len(first), err)
		}
		turn := func(s *redisstore.Store) semantics.TurnOutcome {
			turns := []semantics.Turn{{Session: a.SessionLock, Complete: tokensOf(first), Receive: 1}}
			return s.Turn(t.Context(), a.Path, turns)[0]
		}
		l.loseOne("turn", func(s *redisstore.Store) error { return turn(s).Err })
		if got, err := l.receive(l.sound, a); err != nil || len(got) != 0 {
			t.Errorf("elsewhere: got %d messages, %v, want none", len(got), err)
		}
		var got []*semantics.Received
		if isClosed {
			if err := l.sound.CloseSession(t.Context(), a); err != nil {
				t.Fatal(err)
			}
			got, err = l.receive(l.sound, l.hold())
		} else {
			again := turn(l.there)
			if again.Err != nil || again.Codes[0] != semantics.MessageLockLost {
				t.Errorf("again: got %q, %v, want MESSAGE_LOCK_LOST", again.Codes, again.Err)
			}
			got, err = again.Batch.Messages, again.Failure
		}
		if err != nil || len(got) != 1 || got[0].SequenceNumber != 2 || got[0].DeliveryCount != 1 {
			t.Errorf("closed %t: got %+v, %v, want message 2, uncounted", isClosed, got, err)
		}
		if c := l.counts(); c.Available+c.Locked != 2 {
			t.Errorf("closed %t: %+v, want two messages", isClosed, c)
		}
	}
}

// A settlement in a session that was not answered has taken effect: repeated, it finds the lock lost, and the next
// message comes.
func TestERR_6_SettleInSessionAfterLostAnswer(t *testing.T) {
	t.Parallel()
	verbs := map[string]func(s *redisstore.Store, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error){
		"complete": func(s *redisstore.Store, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
			return s.Complete(t.Context(), source, tokens)
		},
		"defer": func(s *redisstore.Store, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
			return s.Defer(t.Context(), source, tokens, nil)
		},
		"dead-letter": func(s *redisstore.Store, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
			return s.DeadLetter(t.Context(), source, tokens, semantics.DeadLetterTexts{}, nil)
		},
	}
	for name, verb := range verbs {
		l := openLostSessions(t, 1, "1", "2")
		a := l.hold()
		got, err := l.receive(l.sound, a)
		if err != nil {
			t.Fatal(err)
		}
		again := l.lose(name, func(s *redisstore.Store) error {
			codes, err := verb(s, a, tokensOf(got))
			if err == nil && codes[0] != "" {
				err = &semantics.Error{Code: codes[0]}
			}
			return err
		})
		if semantics.CodeOf(again) != semantics.MessageLockLost {
			t.Errorf("%s again: got %v, want MESSAGE_LOCK_LOST", name, again)
		}
		got, err = l.receive(l.sound, a)
		if err != nil || len(got) != 1 || got[0].SequenceNumber != 2 {
			t.Errorf("after %s: got %+v, %v, want message 2", name, got, err)
		}
	}
}

// The next receive of a session releases what receives without an answer locked, so that nothing overtakes it, also when
// the answer of the release is lost. What the receiver knows stays locked, and no delivery is counted.
func TestSESS_25_NothingOvertakesALostAnswer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ inFlight, limit, lost int }{
		"one at a time":       {1, 1, 1},
		"two in flight":       {2, 1, 1},
		"many":                {100, 2, 1},
		"more than there are": {100, 10, 1},
		"several in a row":    {100, 2, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := openLostSessions(t, int64(c.inFlight), "1", "2", "3", "4", "5")
			a := l.hold()
			receive := func(limit int) []*semantics.Received {
				batch, err := l.there.Receive(t.Context(), a, limit, semantics.RegisterNever)
				if err != nil {
					t.Fatal(err)
				}
				return batch.Messages
			}
			known := receive(1)
			if c.inFlight == 1 {
				l.complete(a, known)
			}
			for range c.lost { // of those after the first, the answer of the release is lost
				l.loseOne("receive", func(s *redisstore.Store) error {
					_, err := s.Receive(t.Context(), a, c.limit, semantics.RegisterNever)
					return err
				})
			}
			var want int64 = 2
			for _, m := range receive(c.limit) {
				if m.SequenceNumber != want || m.DeliveryCount != 1 {
					t.Errorf("got message %d for the %d. time, want %d for the first time", m.SequenceNumber, m.DeliveryCount, want)
				}
				want++
			}
			if wanted := int64(min(c.inFlight, c.limit, 4)); want != 2+wanted {
				t.Errorf("got %d messages, want %d", want-2, wanted)
			}
			if c.inFlight > 1 {
				l.complete(a, known)
			}
		})
	}
}

// What is kept of lost answers does not outlive their session, and is bounded.
func TestSESS_25_LostAnswersAreForgotten(t *testing.T) {
	t.Parallel()
	l := openLostSessions(t, 100, "1", "2")
	a := l.hold()
	lose := func(source semantics.Source) {
		t.Helper()
		l.loseOne("receive", func(s *redisstore.Store) error { _, err := l.receive(s, source); return err })
	}
	lose(a)
	wantNoted := func(want int) {
		t.Helper()
		if got := l.there.Unanswered(); got != want {
			t.Errorf("%d sessions are noted, want %d", got, want)
		}
	}
	wantNoted(1)
	if err := l.there.CloseSession(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	wantNoted(0)
	a = l.hold()
	lose(a)
	l.clock.Advance(time.Hour)
	if _, err := l.receive(l.there, a); semantics.CodeOf(err) != semantics.SessionLockLost {
		t.Errorf("got %v, want SESSION_LOCK_LOST", err)
	}
	wantNoted(0)
	for i := range redisstore.MaxUnanswered + 10 {
		token := semantics.LockToken{byte(i >> 8), byte(i)}
		l.there.NoteUnanswered(semantics.Source{SessionLock: token}, token)
	}
	wantNoted(redisstore.MaxUnanswered)
}

// If the store knows which messages no client has, the next receive releases only these, even if the same script locked
// others.
func TestSESS_25_OnlyWhatNobodyHasIsReleased(t *testing.T) {
	t.Parallel()
	l := openLostSessions(t, 100, "1", "2", "3")
	a := l.hold()
	receive := func(limit int) []*semantics.Received {
		t.Helper()
		batch, err := l.there.Receive(t.Context(), a, limit, semantics.RegisterNever)
		if err != nil {
			t.Fatal(err)
		}
		return batch.Messages
	}
	both := receive(2)
	l.there.NoteLock(a, both[0].LockToken)
	again := receive(10)
	if len(again) != 2 || again[0].SequenceNumber != 1 || again[0].DeliveryCount != 1 || again[1].SequenceNumber != 3 {
		t.Errorf("got %+v, want messages 1 and 3", again)
	}
	l.complete(a, append(again, both[1]))
}
