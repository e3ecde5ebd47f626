package redisstore_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
)

// More messages than one script dead-letters become dead letters in the order of their numbers, and each gets its own
// answer.
func TestDLQ_16_OrderOverScripts(t *testing.T) {
	t.Parallel()
	s := openTransfers(t)
	s.make("orders")
	const many = 600
	s.send(t, messagesOf(many, semantics.Message{})...)
	var tokens []semantics.LockToken
	for len(tokens) < many {
		batch, err := s.Receive(t.Context(), orders, many, semantics.RegisterNever)
		s.ok("receive", err)
		tokens = append(tokens, tokensOf(batch.Messages)...)
	}
	lost := tokens[0]
	if _, err := s.Complete(t.Context(), orders, []semantics.LockToken{lost}); err != nil {
		t.Fatal(err)
	}
	slices.Reverse(tokens)
	codes, err := s.DeadLetter(t.Context(), orders, tokens, semantics.DeadLetterTexts{}, nil)
	s.ok("dead-letter", err)
	for i, code := range codes {
		if is := code == semantics.MessageLockLost; is != (tokens[i] == lost) || (!is && code != "") {
			t.Fatalf("answer %d is %q", i, code)
		}
	}
	dead := semantics.Source{Path: "orders", SubQueue: semantics.DeadLetterQueue}
	next := int64(2)
	for next <= many {
		batch, err := s.Receive(t.Context(), dead, 250, semantics.RegisterNever)
		s.ok("receive", err)
		for _, m := range batch.Messages {
			if m.SequenceNumber != next {
				t.Fatalf("dead letter %d stands where %d belongs", m.SequenceNumber, next)
			}
			next++
		}
	}
	s.audit("orders")
}

// What fails between two scripts of one settlement has settled a part, so its outcome is unknown.
func TestERR_6_SettlementCutOffBetweenItsScripts(t *testing.T) {
	t.Parallel()
	verbs := map[string]func(context.Context, semantics.Store, []semantics.LockToken) ([]semantics.Code, error){
		"dead_letter": func(ctx context.Context, s semantics.Store, tokens []semantics.LockToken) ([]semantics.Code, error) {
			return s.DeadLetter(ctx, orders, tokens, semantics.DeadLetterTexts{}, nil)
		},
		"abandon": func(ctx context.Context, s semantics.Store, tokens []semantics.LockToken) ([]semantics.Code, error) {
			return s.Abandon(ctx, orders, tokens, semantics.AbandonOptions{})
		},
	}
	for script, settle := range verbs {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			s := openSwept(t, redisstore.Options{})
			s.create(t, func(*semantics.Options) {})
			const many = 300
			s.send(t, messagesOf(many, semantics.Message{})...)
			batch, err := s.Receive(t.Context(), orders, many, semantics.RegisterNever)
			if err != nil || len(batch.Messages) != many {
				t.Fatalf("received %d messages, %v", len(batch.Messages), err)
			}
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			leaving := redistest.Open(t, redisstore.Options{Namespace: s.namespace, Observe: func(name, _ string, _ time.Duration) {
				if name == script {
					leave()
				}
			}})
			_, err = settle(ctx, leaving, tokensOf(batch.Messages))
			if got := semantics.AsError(err).Details[semantics.DetailOutcome]; err == nil || got != semantics.OutcomeUnknown {
				t.Errorf("got %v with outcome %q, want unknown", err, got)
			}
			_, err = settle(ctx, leaving, tokensOf(batch.Messages))
			if got := semantics.AsError(err).Details[semantics.DetailOutcome]; err == nil || got != "" {
				t.Errorf("a call that did nothing: got %v with outcome %q, want none", err, got)
			}
		})
	}
}

// However many give large messages back at once, one script makes dead letters of no more bytes than one call's may
// have.
func TestDLQ_16_BytesOfManyCallers(t *testing.T) {
	t.Parallel()
	const callers, size = 32, 1 << 20
	var scripts atomic.Int64
	s := openSwept(t, redisstore.Options{Observe: func(name, _ string, _ time.Duration) {
		if name == "abandon" {
			scripts.Add(1)
		}
	}})
	s.create(t, func(o *semantics.Options) { o.MaxDeliveryCount, o.MaxMessageSizeInKilobytes = 1, 2048 })
	var tokens []semantics.LockToken
	for range callers {
		s.send(t, &semantics.Message{Body: make([]byte, size)})
		batch, err := s.Receive(t.Context(), orders, 1, semantics.RegisterNever)
		if err != nil || len(batch.Messages) != 1 {
			t.Fatalf("received %d messages, %v", len(batch.Messages), err)
		}
		tokens = append(tokens, tokensOf(batch.Messages)...)
	}
	var work sync.WaitGroup
	for _, token := range tokens {
		work.Go(func() {
			codes, err := s.Abandon(t.Context(), orders, []semantics.LockToken{token}, semantics.AbandonOptions{})
			if err != nil || codes[0] != "" {
				t.Errorf("got %q, %v", codes, err)
			}
		})
	}
	work.Wait()
	if n := scripts.Load(); n*(4<<20) < callers*size {
		t.Errorf("%d scripts made dead letters of %d MiB, want at most 4 MiB each", n, callers*size>>20)
	}
}
