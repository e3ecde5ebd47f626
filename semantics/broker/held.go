package broker

import (
	"context"
	"sync"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/stream"
)

// held is the account of what this process has handed out under lock: it decides how long a drain waits and what it
// releases at the end, and nothing else. The store's clock and tokens decide who owns a message.
type held struct {
	mu        sync.Mutex // guards what follows; methods whose names end in Locked run while it is locked
	locks     map[semantics.LockToken]heldLock
	bySession map[semantics.LockToken]tokenSet // those of locks that are of a session, under the token of its lock
	settled   chan struct{}                    // closed and replaced whenever locks shrink
	sweepAt   int                              // size at which ended locks are swept out
	latencies latencies
}

type tokenSet map[semantics.LockToken]struct{}

type heldLock struct {
	source semantics.Source
	until  time.Time
	owner  stream.Owner // of the subscription that delivered the message; nil: a call did

	delivered int64 // ns since 1970; 0: not measured
}

const firstHeldSweep = 1024

func (h *held) init() {
	h.locks, h.bySession = map[semantics.LockToken]heldLock{}, map[semantics.LockToken]tokenSet{}
	h.settled = make(chan struct{})
	h.sweepAt = firstHeldSweep
}

// add notes messages. owner is the subscription that delivers them, which is told when they are settled, by whatever
// call; nil: a call has received them.
func (h *held) add(source semantics.Source, messages []*semantics.Received, owner stream.Owner) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delivered := h.deliveredLocked(source, messages)
	for _, m := range messages {
		h.putLocked(m.LockToken, heldLock{source: source, until: m.LockedUntil, owner: owner, delivered: delivered})
	}
	if len(h.locks) >= h.sweepAt {
		h.sweepLocked()
		h.sweepAt = max(firstHeldSweep, 2*len(h.locks))
	}
}

func (h *held) remove(tokens []semantics.LockToken) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range tokens {
		h.deleteLocked(t)
	}
	h.signalLocked()
}

// ended removes those whose settlement ended the lock or found it lost; with any other code the lock stays.
func (h *held) ended(source semantics.Source, tokens []semantics.LockToken, codes []semantics.Code) {
	for _, o := range h.endedOf(source, tokens, codes) {
		o.owner.Forget(tokens[o.begin:o.end])
	}
}

// owned are some of the tokens of a call, of one subscription.
type owned struct {
	owner      stream.Owner
	begin, end int
}

// endedOf is ended without telling the subscriptions, whose tokens it returns.
func (h *held) endedOf(source semantics.Source, tokens []semantics.LockToken, codes []semantics.Code) (all []owned) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, t := range tokens {
		switch codes[i] {
		case "", semantics.DurabilityNotMet, semantics.MessageLockLost:
			if codes[i] != semantics.MessageLockLost {
				h.settledLocked(t)
			}
			owner := h.deleteLocked(t)
			if last := len(all) - 1; last >= 0 && all[last].owner == owner && all[last].end == i {
				all[last].end++
			} else if owner != nil {
				all = append(all, owned{owner, i, i + 1})
			}
		case semantics.SessionLockLost:
			h.deleteLocked(t)
			h.deleteLocked(source.SessionLock)
		default: // the lock holds
		}
	}
	h.signalLocked()
	return all
}

// addSession notes a session under the token of its lock, which differs from those of messages.
func (h *held) addSession(source semantics.Source, until time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.putLocked(source.SessionLock, heldLock{source: source, until: until})
}

// renewSession extends the session and all that was received from it (SESS-18).
func (h *held) renewSession(source semantics.Source, until time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for t := range h.bySession[source.SessionLock] {
		lock := h.locks[t]
		lock.until = until
		h.locks[t] = lock
	}
	h.signalLocked()
}

// removeSession removes the session and all that was received from it.
func (h *held) removeSession(source semantics.Source) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for t := range h.bySession[source.SessionLock] {
		h.deleteLocked(t)
	}
	h.signalLocked()
}

func (h *held) renew(tokens []semantics.LockToken, renewals []semantics.Renewal) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, t := range tokens {
		lock, ok := h.locks[t]
		switch {
		case renewals[i].Code != "":
			h.deleteLocked(t)
		case ok:
			lock.until = renewals[i].LockedUntil
			h.locks[t] = lock
		}
	}
	h.signalLocked()
}

func (h *held) putLocked(t semantics.LockToken, lock heldLock) {
	h.locks[t] = lock
	session := lock.source.SessionLock
	if session.IsZero() {
		return
	}
	if h.bySession[session] == nil {
		h.bySession[session] = tokenSet{}
	}
	h.bySession[session][t] = struct{}{}
}

// deleteLocked removes a lock, if it is there, and returns its owner.
func (h *held) deleteLocked(t semantics.LockToken) stream.Owner {
	lock, ok := h.locks[t]
	if !ok {
		return nil
	}
	delete(h.locks, t)
	session := lock.source.SessionLock
	if session.IsZero() {
		return lock.owner
	}
	delete(h.bySession[session], t)
	if len(h.bySession[session]) == 0 {
		delete(h.bySession, session)
	}
	return lock.owner
}

// sweepLocked drops locks that have ended. Pod clocks may be off, which costs a drain a little too much or too little
// waiting and no message.
func (h *held) sweepLocked() {
	now := time.Now()
	for t, lock := range h.locks {
		if now.After(lock.until) {
			h.deleteLocked(t)
		}
	}
}

func (h *held) signalLocked() {
	close(h.settled)
	h.settled = make(chan struct{})
}

func (h *held) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sweepLocked()
	return len(h.locks)
}

func (h *held) bySource() map[semantics.Source][]semantics.LockToken {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sweepLocked()
	tokens := map[semantics.Source][]semantics.LockToken{}
	for t, lock := range h.locks {
		tokens[lock.source] = append(tokens[lock.source], t)
	}
	return tokens
}

func (h *held) await(ctx context.Context) int {
	for {
		h.mu.Lock()
		h.sweepLocked()
		left, settled := len(h.locks), h.settled
		next := time.Time{}
		for _, lock := range h.locks {
			if next.IsZero() || lock.until.Before(next) {
				next = lock.until
			}
		}
		h.mu.Unlock()
		if left == 0 {
			return 0
		}
		ended := time.NewTimer(time.Until(next))
		select {
		case <-settled:
		case <-ended.C:
		case <-ctx.Done():
			ended.Stop()
			return left
		}
		ended.Stop()
	}
}
