package compat

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// locks remembers the message of each lock that was issued here, because the path of a lock names both (REST-6).
type locks struct {
	mu      sync.Mutex
	issued  map[semantics.LockToken]issuedLock
	pruneAt int // size at which expired locks are removed
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
	l.issued[m.LockToken] = issuedLock{number: m.SequenceNumber, id: strings.Clone(m.MessageID), until: m.LockedUntil}
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

// checkID checks, as far as possible, that a lock belongs to the message with an id or sequence number. For a lock that
// was issued here the answer is exact; otherwise checkID only checks that a locked message has the id. The token
// decides in the end: it settles only its own message. Errors: MESSAGE_NOT_FOUND, and those of Peek.
func (h *Handler) checkID(ctx context.Context, source semantics.Source, id string, token semantics.LockToken) error {
	missing := semantics.Errorf(
		semantics.MessageNotFound,
		"the lock does not belong to a message %q; use the Location header of the receive",
		semantics.Shorten(id),
	).
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
	next, looked := int64(1), 0
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
	return nil // too many locked messages to check all
}

// maxPeekPages limits how many pages of locked messages are searched for an id: large messages fill a page each.
const maxPeekPages = 4

// ignoreDisabled returns nil for ENTITY_DISABLED, because messages of a disabled source can still be settled (STAT-2).
func ignoreDisabled(err error) error {
	if semantics.CodeOf(err) == semantics.EntityDisabled {
		return nil
	}
	return err
}
