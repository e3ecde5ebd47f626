package redisstore_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
)

// lostAnswers are two stores over the same data: one whose answers can be made to get lost after the script ran, and
// one that sees what became of it.
type lostAnswers struct {
	t            *testing.T
	cut          *redistest.Cutter
	there, sound *redisstore.Store
}

func openLostAnswers(t *testing.T, change func(*semantics.Options)) *lostAnswers {
	t.Helper()
	return openLostAnswersAt(t, nil, change)
}

// openLostAnswersAt is openLostAnswers by another clock than Redis'.
func openLostAnswersAt(t *testing.T, now func() time.Time, change func(*semantics.Options)) *lostAnswers {
	t.Helper()
	url := redistest.URL(t)
	if !strings.HasPrefix(url, "unix://") {
		url = redistest.Start(t).URL
	}
	l := &lostAnswers{t: t, cut: redistest.OpenCutter(t, url)}
	namespace := redistest.Namespace()
	l.sound = redistest.Open(t, redisstore.Options{URL: url, Namespace: namespace, Now: now})
	l.there = redistest.Open(t, redisstore.Options{URL: l.cut.URL, Namespace: namespace, Now: now})
	if _, err := l.sound.Check(t.Context()); err != nil { // loads the scripts, so that no first try is lost
		t.Fatal(err)
	}
	options := semantics.DefaultOptions()
	change(&options)
	if _, _, err := l.sound.CreateEntity(t.Context(), semantics.QueueKind, "orders", options); err != nil {
		t.Fatal(err)
	}
	return l
}

// lose makes a call whose answer gets lost, and then the same call again.
func (l *lostAnswers) lose(what string, call func(s *redisstore.Store) error) (again error) {
	l.t.Helper()
	l.loseOne(what, call)
	return call(l.there)
}

// loseOne makes a call whose answer gets lost.
func (l *lostAnswers) loseOne(what string, call func(s *redisstore.Store) error) {
	l.t.Helper()
	if _, err := l.there.Peek(l.t.Context(), orders, 1, 1, semantics.ShowAll); err != nil { // a connection that stands
		l.t.Fatal(err)
	}
	l.cut.Deaf.Store(true)
	wantUnknown(l.t, what, call(l.there))
	l.cut.Deaf.Store(false)
}

func (l *lostAnswers) counts() semantics.Runtime {
	l.t.Helper()
	counts, err := l.sound.Runtime(l.t.Context(), semantics.QueueKind, "orders")
	if err != nil {
		l.t.Fatal(err)
	}
	return counts
}

// With duplicate detection a send that is repeated after its answer was lost stores nothing twice.
func TestDUP_1_RepeatedSendAfterLostAnswer(t *testing.T) {
	t.Parallel()
	l := openLostAnswers(t, func(o *semantics.Options) { o.RequiresDuplicateDetection = true })
	batch := messagesOf(3, semantics.Message{})
	batch[2].ScheduledAt = time.Now().Add(time.Hour)
	var stored []semantics.Stored
	err := l.lose("send", func(s *redisstore.Store) (err error) {
		stored, err = s.Send(t.Context(), "orders", batch)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range stored {
		if want := (semantics.Stored{SequenceNumber: int64(i + 1), Deduplicated: true}); s != want {
			t.Errorf("message %d: got %+v, want %+v", i, s, want)
		}
	}
	if c := l.counts(); c.Active != 2 || c.Scheduled != 1 {
		t.Errorf("got %+v, want 2 active and 1 scheduled", c)
	}
}

// Every other change whose answer was lost has taken effect once, and its repetition finds that it is done.
func TestERR_6_RepeatedChangesAfterLostAnswer(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	codes := func(got []semantics.Code, err error) error {
		for _, code := range got {
			if code != "" && err == nil {
				err = &semantics.Error{Code: code}
			}
		}
		return err
	}
	settles := map[string]func(s *redisstore.Store, tokens []semantics.LockToken) ([]semantics.Code, error){
		"complete": func(s *redisstore.Store, tokens []semantics.LockToken) ([]semantics.Code, error) {
			return s.Complete(ctx, orders, tokens)
		},
		"release": func(s *redisstore.Store, tokens []semantics.LockToken) ([]semantics.Code, error) {
			return s.Release(ctx, orders, tokens)
		},
		"abandon with delay": func(s *redisstore.Store, tokens []semantics.LockToken) ([]semantics.Code, error) {
			delay := time.Hour
			return s.Abandon(ctx, orders, tokens, semantics.AbandonOptions{Delay: &delay})
		},
		"defer": func(s *redisstore.Store, tokens []semantics.LockToken) ([]semantics.Code, error) {
			return s.Defer(ctx, orders, tokens, nil)
		},
		"dead-letter": func(s *redisstore.Store, tokens []semantics.LockToken) ([]semantics.Code, error) {
			return s.DeadLetter(ctx, orders, tokens, semantics.DeadLetterTexts{}, nil)
		},
	}
	for name, settle := range settles {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := openLostAnswers(t, func(*semantics.Options) {})
			if _, err := l.sound.Send(t.Context(), "orders", message(10)); err != nil {
				t.Fatal(err)
			}
			token := receiveOne(t, l.sound).LockToken
			again := l.lose(name, func(s *redisstore.Store) error { return codes(settle(s, []semantics.LockToken{token})) })
			if semantics.CodeOf(again) != semantics.MessageLockLost {
				t.Errorf("again: got %v, want MESSAGE_LOCK_LOST", again)
			}
			if c := l.counts(); c.Locked != 0 {
				t.Errorf("got %+v, want no lock", c)
			}
		})
	}
}

func TestERR_6_RepeatedMovesAfterLostAnswer(t *testing.T) {
	t.Parallel()
	l := openLostAnswers(t, func(*semantics.Options) {})
	ctx := t.Context()
	if _, err := l.sound.Send(ctx, "orders", messagesOf(1, semantics.Message{ScheduledAt: time.Now().Add(time.Hour)})); err != nil {
		t.Fatal(err)
	}
	err := l.lose("cancel", func(s *redisstore.Store) error { return s.CancelScheduled(ctx, "orders", []int64{1}) })
	if semantics.CodeOf(err) != semantics.MessageNotFound {
		t.Errorf("cancel again: got %v, want MESSAGE_NOT_FOUND", err)
	}

	if _, err := l.sound.Send(ctx, "orders", message(10)); err != nil {
		t.Fatal(err)
	}
	token := receiveOne(t, l.sound).LockToken
	if _, err := l.sound.DeadLetter(ctx, orders, []semantics.LockToken{token}, semantics.DeadLetterTexts{}, nil); err != nil {
		t.Fatal(err)
	}
	dead := semantics.Source{Path: "orders", SubQueue: semantics.DeadLetterQueue}
	err = l.lose("resubmit", func(s *redisstore.Store) error {
		moved, err := s.Resubmit(ctx, dead, "orders", []semantics.Resubmission{{SequenceNumber: 2, MessageID: "m"}}, false)
		if err == nil && moved[0].Code != "" {
			err = &semantics.Error{Code: moved[0].Code}
		}
		return err
	})
	if semantics.CodeOf(err) != semantics.MessageNotFound {
		t.Errorf("resubmit again: got %v, want MESSAGE_NOT_FOUND", err)
	}
	if c := l.counts(); c.Active != 1 || c.DeadLetter != 0 {
		t.Errorf("got %+v, want the message active, once", c)
	}

	err = l.lose("purge", func(s *redisstore.Store) error {
		_, err := s.Purge(ctx, orders, semantics.Purge{Show: semantics.ShowAvailable, Limit: 10, Before: time.Now().Add(time.Hour)})
		return err
	})
	if c := l.counts(); err != nil || c.Active != 0 {
		t.Errorf("purge again: %v, %+v", err, c)
	}
}
