package redisstore_test

import (
	"fmt"
	"time"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/semantics"
)

// transactions are the largest transactions: as many operations, items and bytes as semantics.TransactionLarge permits,
// on as many entities.
func (l *limits) transactions() {
	ctx := l.b.Context()
	const entities = semantics.MaxOperations
	const each = semantics.MaxTransactionItems / entities
	s := l.open()
	path := func(i int) string { return fmt.Sprintf("queue-%03d", i) }
	source := func(i int) semantics.Source { return semantics.Source{Path: path(i)} }
	makeAll := func(changes ...func(*semantics.Options)) {
		for i := range entities {
			must(l.b, makeQueue(l.b, s, path(i), append(changes, func(o *semantics.Options) {
				o.MaxSizeInMegabytes, o.LockDuration, o.MaxDeliveryCount = semantics.MaxSizeMegabytes, semantics.MaxLockDuration, 1000
			})...))
		}
	}
	deleteAll := func() {
		for i := range entities {
			must(l.b, s.DeleteEntity(ctx, semantics.QueueKind, path(i)))
		}
	}
	var operations []semantics.Operation
	run := func() { must(l.b, s.Transact(ctx, onceAs(fmt.Sprint(l.clock.Now().UnixNano())), operations).Err) }
	sends := func(n int, like semantics.Message) func() {
		return func() {
			operations = nil
			for i := range entities {
				messages := l.some(n, like)
				for j, m := range messages {
					m.SessionID = fmt.Sprint(j)
				}
				operations = append(operations, sendTo(path(i), messages...))
			}
		}
	}
	body := semantics.Message{Body: make([]byte, semantics.MaxTransactionBytes/semantics.MaxTransactionItems-200)}
	later := body
	later.ScheduledAt = l.clock.Now().Add(24 * time.Hour)
	settle := func(verb semantics.OperationVerb, n int, changes map[string]semantics.Value) func() {
		return func() {
			operations = nil
			for i := range entities {
				_, err := s.Send(ctx, path(i), l.some(n, body))
				must(l.b, err)
				tokens, _ := l.held(s, source(i), n)
				o := end(verb, source(i), tokens...)
				o.Properties = changes
				operations = append(operations, o)
			}
		}
	}
	makeAll(func(o *semantics.Options) { o.RequiresDuplicateDetection = true })
	l.at("transaction: 100 sends of 10 of 4 KiB to 100 queues, duplicate detection", limitTimes, sends(each, body), run)
	l.at("transaction: 100 sends of 10 of 4 KiB, scheduled, duplicate detection", limitTimes, sends(each, later), run)
	deleteAll()
	makeAll()
	l.at("transaction: complete 10 in each of 100 queues", limitTimes, settle(semantics.OperationComplete, each, nil), run)
	l.at("transaction: defer 10 in each of 100 queues", limitTimes,
		settle(semantics.OperationDefer, each, map[string]semantics.Value{"p": semantics.Int64(1)}), run)
	const moved = semantics.MaxDeadLetterTokens / entities
	l.at("transaction: dead-letter 2 in each of 100 queues", limitTimes, settle(semantics.OperationDeadLetter, moved, nil), run)
	l.at("transaction: abandon 2 in each of 100 queues", limitTimes,
		settle(semantics.OperationAbandon, moved, map[string]semantics.Value{"p": semantics.Int64(1)}), run)
	deleteAll()
	l.largeQueueTransactions(s)
	l.sessionTransactions(s)
}

// largeQueueTransactions are those on one queue.
func (l *limits) largeQueueTransactions(s *redisstore.Store) {
	ctx := l.b.Context()
	must(l.b, makeQueue(l.b, s, "orders", func(o *semantics.Options) {
		o.MaxSizeInMegabytes, o.LockDuration, o.MaxDeliveryCount = semantics.MaxSizeMegabytes, semantics.MaxLockDuration, 1000
	}))
	var operations []semantics.Operation
	run := func() { must(l.b, s.Transact(ctx, onceAs(fmt.Sprint(l.clock.Now().UnixNano())), operations).Err) }
	settle := func(verb semantics.OperationVerb, n, calls, body int) func() {
		return func() {
			for sent := 0; sent < n; {
				step := min(n-sent, max(1, 250<<10/(body+1000)))
				_, err := s.Send(ctx, "orders", l.some(step, semantics.Message{Body: make([]byte, body)}))
				must(l.b, err)
				sent += step
			}
			tokens, _ := l.held(s, orders, n)
			operations = nil
			for i := range calls {
				operations = append(operations, end(verb, orders, tokens[i*n/calls:(i+1)*n/calls]...))
			}
		}
	}
	for _, calls := range []int{1, semantics.MaxOperations} {
		l.at(fmt.Sprintf("transaction: complete 1,000 by %d operations", calls), limitTimes,
			settle(semantics.OperationComplete, semantics.MaxTransactionItems, calls, 1024), run)
	}
	l.at("transaction: complete 1,000 of 100 KiB", 2, settle(semantics.OperationComplete, semantics.MaxTransactionItems, 10, 100<<10), run)
	l.at("transaction: dead-letter 250 of 15 KiB", limitTimes, settle(semantics.OperationDeadLetter, semantics.MaxDeadLetterTokens, 100, 15<<10), run)
	must(l.b, s.DeleteEntity(ctx, semantics.QueueKind, "orders"))
}

// sessionTransactions abandon messages that have expired, so that their sessions expire too, in 100 queues, and set
// states.
func (l *limits) sessionTransactions(s *redisstore.Store) {
	ctx := l.b.Context()
	life := time.Minute
	path := func(i int) string { return fmt.Sprintf("sessions-%03d", i) }
	for i := range semantics.MaxOperations {
		must(l.b, makeQueue(l.b, s, path(i), func(o *semantics.Options) {
			o.MaxSizeInMegabytes, o.LockDuration, o.RequiresSession = semantics.MaxSizeMegabytes, semantics.MaxLockDuration, true
			o.SessionExpiryMode, o.DeadLetteringOnMessageExpiration = semantics.ExpireSession, true
		}))
	}
	var operations []semantics.Operation
	run := func() { must(l.b, s.Transact(ctx, nil, operations).Err) }
	held := make([]semantics.Source, semantics.MaxOperations)
	ready := func() {
		operations = nil
		for i := range held {
			_, err := s.Send(ctx, path(i), l.some(1, semantics.Message{SessionID: "s", TimeToLive: &life}))
			must(l.b, err)
			for range 2 {
				_, err = s.Send(ctx, path(i), l.some(150, semantics.Message{SessionID: "s", Body: make([]byte, 1024)}))
				must(l.b, err)
			}
			session, err := s.AcceptSession(ctx, path(i), "s")
			must(l.b, err)
			held[i] = semantics.Source{Path: path(i), SessionLock: session.Lock}
			tokens, _ := l.held(s, held[i], 1)
			operations = append(operations, end(semantics.OperationAbandon, held[i], tokens...))
		}
		l.clock.Advance(2 * life)
	}
	l.at("transaction: abandon what expires with its session in 100 queues", 1, ready, run)
	l.at("transaction: set 100 states of 40 KiB", limitTimes, func() {
		operations = nil
		for _, source := range held {
			operations = append(operations, semantics.Operation{Verb: semantics.OperationSetState, Source: source, State: make([]byte, 40<<10)})
		}
	}, run)
	for i := range held {
		must(l.b, s.DeleteEntity(ctx, semantics.QueueKind, path(i)))
	}
}
