package redisstore_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/audit"
	"github.com/sidebus/sidebus/semantics"
)

// The size in a token is believed by no script: with another one a lock is lost and stays, and those beside it end.
func TestLOCK_2_SizeInATokenIsNotBelieved(t *testing.T) {
	t.Parallel()
	for name, hasSessions := range map[string]bool{"queue": false, "session": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, source := openSwept(t, redisstore.Options{}), orders
			s.create(t, func(o *semantics.Options) { o.RequiresSession, o.SessionInFlight = hasSessions, 10 })
			messages := messagesOf(3, semantics.Message{Body: make([]byte, 100)})
			if hasSessions {
				for _, m := range messages {
					m.SessionID = "s"
				}
			}
			for _, m := range messages { // each has an entry of its own in the log
				s.send(t, m)
			}
			if hasSessions {
				session, err := s.AcceptSession(t.Context(), "orders", "s")
				if err != nil {
					t.Fatal(err)
				}
				source.SessionLock = session.Lock
			}
			batch, err := s.Receive(t.Context(), source, 3, semantics.RegisterNever)
			if err != nil {
				t.Fatal(err)
			}
			tokens := tokensOf(batch.Messages)
			altered := slices.Clone(tokens)
			altered[1] = redisstore.TokenOfSize(tokens[1], 5000)
			complete := func(tokens []semantics.LockToken, want ...semantics.Code) {
				t.Helper()
				if codes, err := s.Complete(t.Context(), source, tokens); err != nil || !slices.Equal(codes, want) {
					t.Errorf("got %q, %v, want %q", codes, err, want)
				}
				if err := audit.New(s.raw, s.namespace).Audit(t.Context(), "orders"); err != nil {
					t.Error(err)
				}
			}
			complete(altered[1:2], semantics.MessageLockLost)
			complete(altered, "", semantics.MessageLockLost, "")
			complete(slices.Repeat(tokens[1:2], 2), "", semantics.MessageLockLost)
			r, err := s.Runtime(t.Context(), semantics.QueueKind, "orders")
			if err != nil || r.SizeInBytes != 0 {
				t.Errorf("%d bytes are left, %v", r.SizeInBytes, err)
			}
		})
	}
}

// Abandons that ride in one script have one delay: those without share none with those that take the queue's own.
func TestSETTLE_11_QueuesDelayAndNoneAtTheSameTime(t *testing.T) {
	t.Parallel()
	const each = 100
	s := openSwept(t, redisstore.Options{})
	s.create(t, func(o *semantics.Options) { o.RedeliveryDelay = time.Hour })
	s.send(t, messagesOf(2*each, semantics.Message{})...)
	batch, err := s.Receive(t.Context(), orders, 2*each, semantics.RegisterNever)
	if err != nil || len(batch.Messages) != 2*each {
		t.Fatalf("received %d messages, %v", len(batch.Messages), err)
	}
	var work sync.WaitGroup
	var want []int64
	for i, m := range batch.Messages {
		options := semantics.AbandonOptions{}
		if i%2 == 0 {
			options.Delay = new(time.Duration)
			want = append(want, m.SequenceNumber)
		}
		work.Go(func() {
			codes, err := s.Abandon(t.Context(), orders, []semantics.LockToken{m.LockToken}, options)
			if err != nil || codes[0] != "" {
				t.Errorf("got %q, %v", codes, err)
			}
		})
	}
	work.Wait()
	if batch, err = s.Receive(t.Context(), orders, 2*each, semantics.RegisterNever); err != nil {
		t.Fatal(err)
	}
	var got []int64
	for _, m := range batch.Messages {
		got = append(got, m.SequenceNumber)
	}
	if !slices.Equal(got, want) {
		t.Errorf("available are %d messages %v, want those %d that were abandoned without delay", len(got), got, len(want))
	}
}
