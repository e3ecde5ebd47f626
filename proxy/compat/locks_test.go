package compat

import (
	"slices"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/encoded"
)

// What is remembered of a lock is not a part of its message, which may be large.
func TestREST_6_LocksKeepNoMessages(t *testing.T) {
	t.Parallel()
	stored, _ := encoded.Append(nil, &semantics.Message{MessageID: "id"})
	m := &semantics.Received{LockToken: semantics.NewLockToken(), LockedUntil: time.Now().Add(time.Hour)}
	if !encoded.Decode(stored, &m.Message) {
		t.Fatal("cannot be decoded")
	}
	l := &locks{issued: map[semantics.LockToken]issuedLock{}, pruneAt: firstLockPrune}
	l.add(m)
	copy(stored, slices.Repeat([]byte{'x'}, len(stored)))
	if got := l.issued[m.LockToken].id; got != "id" {
		t.Errorf("the id is %q now", got)
	}
}
