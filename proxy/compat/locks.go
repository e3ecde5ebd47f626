package compat

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// locks remembers which message a lock that was handed out here is for, since an address of a lock names both (REST-6).
type locks struct {
	mu      sync.Mutex
	issued  map[semantics.LockToken]issuedLock
	pruneAt int // size at which ended locks are swept out
}

type issuedLock struct {
	number int64
	id     string
	until  time.Time
}

const firstLockPrune = 1024

func (l *locks) add(m *semantics.Received) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.issued[m.LockToken] = issuedLock{number: m.SequenceNumber, id: m.MessageID, until: m.LockedUntil}
	if len(l.issued) < l.pruneAt {
		return
	}
	now := time.Now()
	for token, lock := range l.issued {
		if now.After(lock.until) {
			delete(l.issued, token)
		}
	}
	l.pruneAt = max(firstLockPrune, 2*len(l.issued))
}

func (l *locks) get(token semantics.LockToken) (issuedLock, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lock, ok := l.issued[token]
	return lock, ok
}

func (l *locks) remove(token semantics.LockToken) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.issued, token)
}

func (l *locks) renew(token semantics.LockToken, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if lock, ok := l.issued[token]; ok {
		lock.until = until
		l.issued[token] = lock
	}
}

// checkID checks that a lock is that of the message with an id or sequence number, as far as this can be known. Of a
// lock that was handed out here it is; of another one, by another sidecar or another call, only whether any locked
// message has the id. The token decides in the end: it settles its own message and no other. MESSAGE_NOT_FOUND, and
// what Peek fails with.
func (h *Handler) checkID(ctx context.Context, source semantics.Source, id string, token semantics.LockToken) error {
	missing := semantics.Errorf(semantics.MessageNotFound, "the lock is not that of a message %q", cut(id)).
		With(semantics.DetailEntity, source.String())
	if lock, ok := h.locks.get(token); ok {
		if id == lock.id || id == strconv.FormatInt(lock.number, 10) {
			return nil
		}
		return missing
	}
	number, err := strconv.ParseInt(id, 10, 64)
	if err == nil && number > 0 {
		found, err := h.Broker.Peek(ctx, source, number, 1, semantics.ShowLocked)
		if err != nil || len(found) > 0 && found[0].SequenceNumber == number {
			return ignoreDisabled(err)
		}
	}
	next, looked := int64(0), 0
	for range maxPeekPages {
		locked, err := h.Broker.Peek(ctx, source, next, broker.MaxPeekMessages-looked, semantics.ShowLocked)
		if err != nil {
			return ignoreDisabled(err)
		}
		if len(locked) == 0 {
			return missing
		}
		for _, m := range locked {
			if m.MessageID == id {
				return nil
			}
			next = m.SequenceNumber + 1
		}
		if looked += len(locked); looked == broker.MaxPeekMessages {
			break
		}
	}
	return nil // there are more than can be looked through
}

// mostPages bounds how often the locked messages are peeked at for an id: large ones fill a page each.
const maxPeekPages = 4

// passable gives a failure of a look that is one of the settlement too. A source that is disabled can still be settled
// (STAT-2).
func ignoreDisabled(err error) error {
	if semantics.CodeOf(err) == semantics.EntityDisabled {
		return nil
	}
	return err
}
