package broker

import (
	"strconv"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// clientShare is what one client has of the open transactions. It may have at most as many as stay free, and as many
// bytes: one client has half of all, two have a third each, and a client that comes later always finds some (TX-9).
type clientShare struct {
	open  int
	bytes int64 // of operations
}

// openLocked keeps a transaction that begins. The caller holds the mutex.
func (s *transactions) openLocked(t *transaction) error {
	var share clientShare
	if has := s.clients[t.client]; has != nil {
		share = *has
	}
	open := len(s.byID) - len(s.ended)
	if free := MaxTransactions - (open + 1); share.open+1 > free {
		return transactionsThrottled("transactions", "open transactions", int64(share.open+1), int64(free))
	}
	if s.byID == nil {
		s.byID, s.clients = map[string]*transaction{}, map[string]*clientShare{}
	}
	share.open++
	s.byID[t.id], s.clients[t.client] = t, &share
	return nil
}

// buffer counts bytes that an open transaction is to keep.
func (s *transactions) buffer(t *transaction, bytes int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	share := s.clients[t.client]
	if free := MaxBufferedBytes - (s.bytes + bytes); share.bytes+bytes > free {
		return transactionsThrottled("operations", "bytes of operations in open transactions", share.bytes+bytes, free)
	}
	s.bytes, share.bytes, t.bytes = s.bytes+bytes, share.bytes+bytes, t.bytes+bytes
	return nil
}

// closeLocked counts a transaction no more that ends. The caller holds the mutex.
func (s *transactions) closeLocked(t *transaction) {
	share := s.clients[t.client]
	s.bytes, share.bytes, share.open = s.bytes-t.bytes, share.bytes-t.bytes, share.open-1
	if share.open == 0 {
		delete(s.clients, t.client)
	}
}

// transactionsThrottled is how a call fails with which its client would have more than stays free.
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
