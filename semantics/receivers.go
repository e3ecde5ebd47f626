package semantics

import (
	"cmp"
	"context"
	"encoding/hex"
	"slices"
	"time"
)

// MaxReceivers is the most sidecars, and the most sessions of each kind, that Receivers has.
const MaxReceivers = 100

// Receivers is who receives from a queue or subscription (CNT-6).
type Receivers struct {
	Waiting             []WaitingSidecar // those that have waited longest first
	FirstLock, LastLock time.Time        // ends of the locks of messages; zero: none, or they are those of sessions
	Held                []HeldSession    // those whose lock ends first, first
	Ready               []ReadySession   // those that have been ready longest first
}

// WaitingSidecar is a sidecar in which receives wait. It is in the list of the store until it is woken.
type WaitingSidecar struct {
	Sidecar string
	Since   time.Time
}

// HeldSession is a session that a receiver holds.
type HeldSession struct {
	ID          string
	Holder      string // the sidecar that accepted it for its client
	LockedUntil time.Time
	Available   int64 // messages, delayed ones included
}

// ReadySession is a session that the next AcceptNextSession may give.
type ReadySession struct {
	ID        string
	Since     time.Time
	Available int64
}

// Observed is a Store that knows who receives. Sidecar is the name of this Store in the answers of all. Receivers has
// up to limit of each list, at most MaxReceivers. ENTITY_NOT_FOUND.
type Observed interface {
	Sidecar() string
	Receivers(ctx context.Context, path string, limit int) (Receivers, error)
}

// First returns the first of each list, which need not be in order. Those of one instant are in the order of their ids.
func (r Receivers) First(limit int) Receivers {
	slices.SortFunc(r.Waiting, func(a, b WaitingSidecar) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Sidecar, b.Sidecar))
	})
	slices.SortFunc(r.Held, func(a, b HeldSession) int {
		return cmp.Or(a.LockedUntil.Compare(b.LockedUntil), cmp.Compare(a.ID, b.ID))
	})
	slices.SortFunc(r.Ready, func(a, b ReadySession) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID))
	})
	r.Waiting = r.Waiting[:min(len(r.Waiting), limit)]
	r.Held, r.Ready = r.Held[:min(len(r.Held), limit)], r.Ready[:min(len(r.Ready), limit)]
	return r
}

// SidecarTag is a random name of a Store that is in the tokens of the sessions it accepts.
type SidecarTag [4]byte

// String returns the name as Receivers has it.
func (s SidecarTag) String() string { return hex.EncodeToString(s[:]) }

// NewSessionToken makes a token of the lock of a session. Enough of it is random that it cannot be guessed.
func NewSessionToken(by SidecarTag) LockToken {
	token := NewLockToken()
	copy(token[:], by[:])
	return token
}

// Sidecar returns the sidecar that made the token of a session's lock.
func (t LockToken) Sidecar() SidecarTag { return SidecarTag(t[:len(SidecarTag{})]) }
