package broker

import (
	"context"
	"slices"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// take returns a transaction, which the caller unlocks. One that is over has ended.
func (s *transactions) take(ctx context.Context, id string) (*transaction, error) {
	s.mu.Lock()
	t := s.byID[id]
	s.mu.Unlock()
	if t == nil {
		return nil, transactionNotFound(id)
	}
	if err := t.lock(ctx); err != nil {
		return nil, err
	}
	if !t.hasEnded && !time.Now().Before(t.over()) {
		s.timeOut(t)
	}
	return t, nil
}

// lapse is called by the timer of a transaction: it is over, or it ended long enough ago.
func (s *transactions) lapse(t *transaction) {
	t.running <- struct{}{}
	defer t.unlock()
	switch left := time.Until(t.over()); {
	case left > 0: // a commit was under way, or had an unknown outcome
		t.timer.Reset(left)
	case t.hasEnded:
		s.mu.Lock()
		defer s.mu.Unlock()
		if i := slices.Index(s.ended, t); i >= 0 {
			s.forgetLocked(i)
		}
	default:
		s.timeOut(t)
	}
}

// timeOut ends a transaction that is over, which the caller has locked.
func (s *transactions) timeOut(t *transaction) {
	if t.stored != nil {
		s.end(t, nil, t.stored)
		return
	}
	if !t.unsure.IsZero() {
		s.end(t, nil, t.unknownOutcome("look at its entities to learn what became of it"))
		return
	}
	s.end(t, nil, semantics.Errorf(
		semantics.TransactionTimedOut, "transaction %q was begun more than %s ago and was rolled back; begin another one",
		t.id, semantics.TransactionLifetime,
	))
}

// end notes what a repeated commit returns, and releases what the operations carry. The caller has locked the
// transaction.
func (s *transactions) end(t *transaction, result *TransactionResult, failure error) {
	t.hasEnded, t.ended, t.result, t.failure = true, time.Now(), result, failure
	t.operations = withoutContents(t.operations)
	t.timer.Reset(semantics.RequestsKeptFor)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closeLocked(t)
	t.bytes = sizeOfAnswer(result, failure) + sizeOf(t.operations)
	s.answers += t.bytes
	s.ended = append(s.ended, t)
	for len(s.ended) > MaxTransactions || s.answers > MaxEndedBytes {
		s.forgetLocked(0)
	}
}

// withoutContents returns what operations do and where, which the permission for a repeated commit depends on.
func withoutContents(operations []semantics.Operation) []semantics.Operation {
	bare := make([]semantics.Operation, len(operations))
	for i, o := range operations {
		bare[i] = semantics.Operation{Verb: o.Verb, Source: o.Source, IsTopic: o.IsTopic}
	}
	return bare
}

// forgetLocked forgets one of those that have ended. The caller holds the mutex.
func (s *transactions) forgetLocked(i int) {
	t := s.ended[i]
	s.answers -= t.bytes
	t.timer.Stop()
	delete(s.byID, t.id)
	s.ended = slices.Delete(s.ended, i, i+1)
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
		o := &operations[i]
		load.add(o)
		load.bytes += int64(len(o.Source.Path) + itemBytes*len(o.Properties))
	}
	return load.bytes + operationBytes*int64(len(operations)) + itemBytes*int64(load.items)
}

// sizeOfAnswer returns about how many bytes an answer needs, which is a result or a failure.
func sizeOfAnswer(result *TransactionResult, failure error) int64 {
	size := int64(answerBytes)
	if failure != nil {
		size += int64(len(failure.Error()))
		for key, value := range semantics.AsError(failure).Details {
			size += int64(answerBytes + len(key) + len(value))
		}
	}
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
