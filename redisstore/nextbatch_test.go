package redisstore_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
)

// One script completes and receives where both take their short ways. What it cannot do, the scripts of each do.
func TestRECV_15_Scripts(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var ran []string
	s := redistest.Open(t, redisstore.Options{URL: redistest.URL(t), Namespace: redistest.Namespace(), Observe: func(script, status string, _ time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		if slices.Contains([]string{"complete_and_receive", "complete", "receive"}, script) {
			ran = append(ran, script+" "+status)
		}
	}})
	create(t, s)
	for range 5 {
		if _, err := s.Send(t.Context(), "orders", message(10)); err != nil {
			t.Fatal(err)
		}
	}
	next := func(token semantics.LockToken, code semantics.Code, number int64, want ...string) semantics.LockToken {
		t.Helper()
		mu.Lock()
		ran = nil
		mu.Unlock()
		next, err := s.CompleteAndReceive(t.Context(), orders, []semantics.LockToken{token}, 1, semantics.RegisterNever)
		if err != nil || next.Failure != nil || next.Codes[0] != code || len(next.Batch.Messages) != 1 {
			t.Fatalf("got %+v, %v", next, err)
		}
		if m := next.Batch.Messages[0]; m.SequenceNumber != number {
			t.Errorf("received message %d, want %d", m.SequenceNumber, number)
		}
		mu.Lock()
		defer mu.Unlock()
		if fmt.Sprint(ran) != fmt.Sprint(want) {
			t.Errorf("ran %v, want %v", ran, want)
		}
		return next.Batch.Messages[0].LockToken
	}
	first := receiveOne(t, s).LockToken
	second := next(first, "", 2, "complete_and_receive OK")
	given := receiveOne(t, s).LockToken
	if _, err := s.Release(t.Context(), orders, []semantics.LockToken{given}); err != nil {
		t.Fatal(err)
	}
	third := next(second, "", 3, "complete_and_receive COMPLETED", "receive OK")
	next(second, semantics.MessageLockLost, 4, "complete_and_receive SEPARATE", "complete SOME", "receive OK")
	next(third, "", 5, "complete OK", "receive OK") // it is not tried again at once
}
