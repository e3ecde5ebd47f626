package broker

import (
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// take returns a transaction with its running locked. One that is over has ended.
func (s *transactions) take(id string) (*transaction, error) {
	s.mu.Lock()
	t := s.byID[id]
	s.mu.Unlock()
	if t == nil {
		return nil, transactionNotFound(id)
	}
	t.running.Lock()
	if !t.hasEnded && !time.Now().Before(t.over()) {
		s.timeOut(t)
	}
	return t, nil
}

// lapse is called by the timer of a transaction: it is over, or it ended long enough ago.
func (s *transactions) lapse(t *transaction) {
	t.running.Lock()
	defer t.running.Unlock()
	switch left := time.Until(t.over()); {
	case t.hasEnded:
		s.mu.Lock()
		defer s.mu.Unlock()
		for i, ended := range s.ended {
			if ended == t {
				s.forgetLocked(i)
				return
			}
		}
	case left > 0: // a commit had an unknown outcome
		t.timer.Reset(left)
	default:
		s.timeOut(t)
	}
}

// timeOut ends a transaction that is over. Its running is locked.
func (s *transactions) timeOut(t *transaction) {
	if !t.unsure.IsZero() {
		s.end(t, nil, t.unknownOutcome("look at its entities to learn what became of it"))
		return
	}
	s.end(t, nil, semantics.Errorf(
		semantics.TransactionTimedOut, "transaction %q was begun more than %s ago and was rolled back; begin another one",
		t.id, semantics.TransactionLifetime,
	))
}

// end notes what a repeated commit returns, and releases the operations. Its running is locked.
func (s *transactions) end(t *transaction, result *TransactionResult, failure error) {
	t.hasEnded, t.result, t.failure, t.operations = true, result, failure, nil
	t.timer.Reset(semantics.RequestsKeptFor)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytes -= t.bytes
	t.bytes = sizeOfAnswer(result)
	s.answers += t.bytes
	s.ended = append(s.ended, t)
	for len(s.ended) > MaxTransactions || s.answers > MaxEndedBytes {
		s.forgetLocked(0)
	}
}

// forgetLocked forgets one of those that have ended. The caller holds the mutex.
func (s *transactions) forgetLocked(i int) {
	t := s.ended[i]
	s.answers -= t.bytes
	t.timer.Stop()
	delete(s.byID, t.id)
	s.ended = append(s.ended[:i], s.ended[i+1:]...)
}

// buffer counts bytes that a transaction is to keep.
func (s *transactions) buffer(t *transaction, bytes int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bytes+bytes > MaxBufferedBytes {
		return throttledTransactions(
			"the transactions of this sidecar keep %d bytes, at most %d are allowed; commit some",
			s.bytes+bytes, int64(MaxBufferedBytes),
		)
	}
	s.bytes, t.bytes = s.bytes+bytes, t.bytes+bytes
	return nil
}

// What operations need in memory besides their contents, about.
const (
	operationBytes = 512
	itemBytes      = 256 // of a message, a token or a number
	answerBytes    = 128 // of an ended transaction, and of a message in its answer
)

// sizeOf returns about how many bytes operations need while they are kept.
func sizeOf(operations []semantics.Operation) int64 {
	var load transactionLoad
	for i := range operations {
		load.add(&operations[i])
		for name, value := range operations[i].Properties {
			load.bytes += int64(itemBytes + len(name) + value.Size())
		}
	}
	return load.bytes + operationBytes*int64(len(operations)) + itemBytes*int64(load.items)
}

// sizeOfAnswer returns about how many bytes an answer needs. It may be nil.
func sizeOfAnswer(result *TransactionResult) int64 {
	size := int64(answerBytes)
	if result == nil {
		return size
	}
	for _, r := range result.Results {
		size += answerBytes
		for _, sent := range r.Sent {
			size += answerBytes + int64(len(sent.MessageID))
		}
	}
	return size
}
