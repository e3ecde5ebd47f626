package redisstore_test

import (
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// renew renews the locks of messages and returns what became of them.
func (r *runs) renew(tokens ...semantics.LockToken) []semantics.Renewal {
	r.t.Helper()
	renewals, err := r.RenewLocks(r.t.Context(), orders, tokens)
	if err != nil || len(renewals) != len(tokens) {
		r.t.Fatalf("renew: %v, %v", renewals, err)
	}
	return renewals
}

// All messages of a run that are renewed together keep their common lock, and what is left of another run stays as it is.
// The results have the order of the tokens, also if a token comes twice or is of no lock.
func TestLOCK_3_WholeRunIsRenewed(t *testing.T) {
	t.Parallel()
	r := newRuns(t, 8)
	r.receive(5)
	r.settle(r.complete, 2)
	r.receive(3)
	done := r.held[2]
	r.clock.Advance(40 * time.Second)
	until := r.clock.Now().Add(time.Minute)

	got := r.renew(r.held[7], r.held[5], done, r.held[3], r.held[4], semantics.LockToken{1}, r.held[1], r.held[3])
	for i, renewal := range got {
		if isLost := i == 2 || i == 5; isLost != (renewal.Code == semantics.MessageLockLost) {
			t.Errorf("token %d: got %+v", i, renewal)
		} else if !isLost && !renewal.LockedUntil.Equal(until) {
			t.Errorf("token %d: locked until %s, want %s", i, renewal.LockedUntil, until)
		}
	}
	r.want("one that is gone among them", "locks 1", "locks 3", "locks 4", "locks 5", "locks 7", "run_locks run", "runs run=6-6,8-8", "entity run_messages=2")

	got = r.renew(r.held[8], r.held[6], r.held[8])
	for i, renewal := range got {
		if renewal.Code != "" || !renewal.LockedUntil.Equal(until) {
			t.Errorf("token %d of the whole run: got %+v", i, renewal)
		}
	}
	r.want("the whole run", "locks 1", "locks 3", "locks 4", "locks 5", "locks 7", "run_locks run", "runs run=6-6,8-8", "entity run_messages=2")

	r.clock.Advance(50 * time.Second) // past the first end
	r.settle(r.complete, 6, 8, 7)
	r.clock.Advance(20 * time.Second)
	if got := r.renew(r.held[1], r.held[8]); got[0].Code != semantics.MessageLockLost || got[1].Code != semantics.MessageLockLost {
		t.Errorf("after the end: got %+v", got)
	}
	r.audit()
}

// A run whose lock has ended is not renewed, although nothing has freed it yet.
func TestLOCK_3_EndedRunIsNotRenewed(t *testing.T) {
	t.Parallel()
	r := newRuns(t, 3)
	r.receive(3)
	r.clock.Advance(time.Minute)
	for _, renewal := range r.renew(r.held[1], r.held[2], r.held[3]) {
		if renewal.Code != semantics.MessageLockLost {
			t.Errorf("got %+v, want MESSAGE_LOCK_LOST", renewal)
		}
	}
	r.audit()
}
