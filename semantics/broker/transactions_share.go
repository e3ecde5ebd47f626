package broker

import (
	"strconv"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// callerShare is what one caller has of the open transactions. It may have at most as many as stay free, and as many
// bytes: one caller has half of all, two have a third each, and a caller that comes later always finds some (TX-9).
type callerShare struct {
	open  int
	bytes int64 // of operations
}

// openLocked keeps a transaction that begins. The caller holds the mutex.
func (s *transactions) openLocked(t *transaction) error {
	var share callerShare
	if has := s.callers[t.caller]; has != nil {
		share = *has
	}
	open := len(s.byID) - len(s.ended)
	if free := MaxTransactions - (open + 1); share.open+1 > free {
		return transactionsThrottled("transactions", "open transactions", int64(share.open+1), int64(free))
	}
	if s.byID == nil {
		s.byID, s.callers = map[string]*transaction{}, map[string]*callerShare{}
	}
	share.open++
	s.byID[t.id], s.callers[t.caller] = t, &share
	return nil
}

// buffer counts bytes that an open transaction is to keep.
func (s *transactions) buffer(t *transaction, bytes int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	share := s.callers[t.caller]
	if free := MaxBufferedBytes - (s.bytes + bytes); share.bytes+bytes > free {
		return transactionsThrottled("operations", "bytes of operations in open transactions", share.bytes+bytes, free)
	}
	s.bytes, share.bytes, t.bytes = s.bytes+bytes, share.bytes+bytes, t.bytes+bytes
	return nil
}

// closeLocked counts a transaction no more that ends. The caller holds the mutex.
func (s *transactions) closeLocked(t *transaction) {
	share := s.callers[t.caller]
	s.bytes, share.bytes, share.open = s.bytes-t.bytes, share.bytes-t.bytes, share.open-1
	if share.open == 0 {
		delete(s.callers, t.caller)
	}
}

// transactionsThrottled is how a call fails with which its caller would have more than stays free.
func transactionsThrottled(field, what string, actual, free int64) error {
	free = max(free, 0)
	e := semantics.Errorf(
		semantics.Throttled,
		"this client would have %d %s, and may have at most as many as stay free in this sidecar, %d; commit some",
		actual, what, free,
	).
		With(semantics.DetailField, field).
		With(semantics.DetailActual, strconv.FormatInt(actual, 10)).
		With(semantics.DetailLimit, strconv.FormatInt(free, 10))
	e.RetryAfter = time.Second
	return e
}
