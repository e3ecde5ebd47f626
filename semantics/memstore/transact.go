package memstore

import (
	"context"
	"slices"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// claims are what the operations of a transaction take of an entity while they are checked. Nothing changes until all
// are.
type claims struct {
	bytes     int64
	messages  int // to be stored, with their message ids
	states    int
	forgotten map[int64]bool // numbers of cancelled messages, whose ids are new again (DUP-6)
}

// transaction is one on its way.
type transaction struct {
	store   *Store
	now     time.Time
	ending  map[*message]bool // whose locks it ends
	cancels map[*message]bool // scheduled messages that it removes
	isNew   map[*queue]func(m *semantics.Message) bool
	perform []func() semantics.OperationResult
}

// Transact implements semantics.Transactor.
func (s *Store) Transact(
	ctx context.Context, once *semantics.Once, operations []semantics.Operation,
) semantics.TransactionOutcome {
	if err := refuseIfOver(ctx); err != nil {
		return semantics.TransactionOutcome{Err: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &transaction{
		store: s, now: s.now(), ending: map[*message]bool{}, cancels: map[*message]bool{},
		isNew: map[*queue]func(m *semantics.Message) bool{},
	}
	home := s.find(operations[0].Source.Path)
	if once == nil || home == nil {
		results, err := t.run(operations)
		return semantics.TransactionOutcome{Results: results, Err: err}
	}
	// Which results there are is in the operations; what the entity remembers are their numbers.
	outcome := home.once(*once, t.now, func() ([]semantics.Stored, error) {
		results, err := t.run(operations)
		return numbersOf(results), err
	})
	if outcome.Err != nil {
		return semantics.TransactionOutcome{Err: outcome.Err}
	}
	results := semantics.ResultsOf(operations, outcome.Stored)
	return semantics.TransactionOutcome{Results: results, Repeats: outcome.Repeats}
}

// numbersOf returns the numbers of all results in their order.
func numbersOf(results []semantics.OperationResult) []semantics.Stored {
	var numbers []semantics.Stored
	for _, r := range results {
		numbers = append(numbers, r.Numbers()...)
	}
	return numbers
}

func (t *transaction) run(operations []semantics.Operation) ([]semantics.OperationResult, error) {
	if place, err := t.checkAll(operations); err != nil {
		return nil, semantics.RefusedOperation(err, place)
	}
	if err := t.checkMoves(operations); err != nil {
		return nil, err
	}
	results := make([]semantics.OperationResult, len(operations))
	for i, perform := range t.perform {
		q := t.store.find(operations[i].Source.Path)
		q.accessedAt = t.now
		t.store.wakingFor(q, t.now, func() { results[i] = perform() })
	}
	return results, nil
}

// checkAll checks the operations, in their order, and returns the place of the first that cannot be run.
func (t *transaction) checkAll(operations []semantics.Operation) (int, error) {
	for i, o := range operations {
		if q := t.store.find(o.Source.Path); q != nil {
			of := q.bounded()
			defer func() { q.claims, of.claims = claims{}, claims{} }()
		}
		perform, err := t.check(o)
		if err != nil {
			return i, err
		}
		t.perform = append(t.perform, perform)
	}
	return 0, nil
}

// checkMoves bounds what may be copied. All tokens hold.
func (t *transaction) checkMoves(operations []semantics.Operation) error {
	messages, bytes := 0, int64(0)
	for _, o := range operations {
		if !o.Verb.MayDeadLetter() {
			continue
		}
		locks := t.store.find(o.Source.Path).box(o.Source.SubQueue).locks
		for _, token := range o.Tokens {
			messages, bytes = messages+1, bytes+locks[token].size
		}
	}
	return semantics.CheckMoves(messages, bytes)
}

// check checks an operation, with what those before it claim, and returns what it does.
func (t *transaction) check(o semantics.Operation) (func() semantics.OperationResult, error) {
	q := t.store.find(o.Source.Path)
	if q == nil {
		return nil, semantics.NotFound(o.Source.Path)
	}
	switch {
	case o.Verb == semantics.OperationSend:
		return t.checkSend(q, o)
	case o.Verb == semantics.OperationCancel:
		return t.checkCancel(q, o)
	case o.Verb == semantics.OperationSetState:
		return t.checkState(q, o)
	default:
		return t.checkSettlement(q, o)
	}
}

// checkSend checks what send does, with the messages of the operations before.
func (t *transaction) checkSend(q *queue, o semantics.Operation) (func() semantics.OperationResult, error) {
	kind := semantics.QueueKind
	if o.IsTopic {
		kind = semantics.TopicKind
	}
	if q.kind != kind {
		return nil, semantics.NotFound(o.Source.Path)
	}
	if err := q.checkSizes(o.Messages); err != nil {
		return nil, err
	}
	if !q.options.Status.CanSend() {
		return nil, disabled(q)
	}
	if err := q.checkSessions(o.Messages); err != nil {
		return nil, err
	}
	if err := q.checkPartitions(o.Messages); err != nil {
		return nil, err
	}
	if t.isNew[q] == nil {
		t.isNew[q] = q.newOnes(t.now)
	}
	var fresh []*semantics.Message
	for _, m := range o.Messages {
		if t.isNew[q](m) {
			fresh = append(fresh, m)
		}
	}
	if err := q.checkRoom(fresh, len(fresh)); err != nil {
		return nil, err
	}
	for _, m := range fresh {
		q.claims.bytes, q.claims.messages = q.claims.bytes+m.Size(), q.claims.messages+1
	}
	return func() semantics.OperationResult {
		stored := make([]semantics.Stored, len(o.Messages))
		for i, sent := range o.Messages {
			if number, is := q.duplicateOf(sent, t.now); is {
				stored[i] = semantics.Stored{SequenceNumber: number, Deduplicated: true}
				continue
			}
			if o.IsTopic {
				stored[i].SequenceNumber = q.next()
				t.store.schedule(q, sent, stored[i].SequenceNumber, t.now)
			} else {
				stored[i].SequenceNumber = q.accept(newMessage(sent, q.options.DefaultMessageTimeToLive), t.now)
			}
			q.remember(sent, stored[i].SequenceNumber, t.now)
		}
		return semantics.OperationResult{Stored: stored}
	}, nil
}

// checkCancel finds the scheduled messages. In a queue one whose time has come is none any more.
func (t *transaction) checkCancel(q *queue, o semantics.Operation) (func() semantics.OperationResult, error) {
	if q.topic != nil {
		return nil, semantics.NotFound(o.Source.Path)
	}
	if !q.options.Status.CanSend() {
		return nil, disabled(q)
	}
	chosen, missing := choose(o.Numbers, func(number int64) *message {
		m := q.scheduled.find(number)
		if m == nil || t.cancels[m] || q.kind == semantics.QueueKind && reached(m.sent.ScheduledAt, t.now) {
			return nil
		}
		return m
	})
	if len(missing) > 0 {
		return nil, semantics.NumbersNotFound(q.name, semantics.Scheduled, missing)
	}
	for _, m := range chosen {
		t.cancels[m] = true
		if q.options.ForgetOnCancel {
			if q.claims.forgotten == nil {
				q.claims.forgotten = map[int64]bool{}
			}
			q.claims.forgotten[m.sequence] = true
		}
	}
	return func() semantics.OperationResult {
		for _, m := range chosen {
			q.cancel(m)
		}
		return semantics.OperationResult{}
	}, nil
}

// checkSettlement checks that every token holds, and that the messages can take their properties.
func (t *transaction) checkSettlement(q *queue, o semantics.Operation) (func() semantics.OperationResult, error) {
	if err := forMessages(q, o.Source); err != nil {
		return nil, err
	}
	in, err := q.scopeOf(o.Source, t.now)
	if err != nil {
		return nil, err
	}
	box, held := q.box(o.Source.SubQueue), make([]*message, len(o.Tokens))
	for i, token := range o.Tokens {
		m := box.locks[token]
		if m == nil || !in.has(m) || !m.holds(t.now) || t.ending[m] {
			return nil, semantics.LockLost(q.name, i)
		}
		if code := o.Unfit(&m.sent); code != "" {
			return nil, semantics.UnfitChanges(code, q.name, i)
		}
		held[i], t.ending[m] = m, true
	}
	slices.SortFunc(held, byNumber)
	return func() semantics.OperationResult {
		for _, m := range held {
			if len(o.Properties) > 0 {
				merged, _ := m.sent.MergeProperties(o.Properties)
				box.change(m, merged)
			}
			q.settleOne(o, m, t.now)
		}
		return semantics.OperationResult{}
	}, nil
}

// settleOne does to a message what an operation does to each of its own.
func (q *queue) settleOne(o semantics.Operation, m *message, now time.Time) {
	switch o.Verb {
	case semantics.OperationComplete:
		q.box(o.Source.SubQueue).remove(m)
	case semantics.OperationAbandon:
		q.abandon(o.Source, m, o.Abandon, now)
	case semantics.OperationDeadLetter:
		q.main.remove(m)
		q.deadLetter(m, now, copyOf(o.Texts))
	default: // OperationDefer
		q.box(o.Source.SubQueue).unlock(m)
		q.setAside(m)
	}
}

// checkState checks what SetSessionState does, in its order, with the states of the operations before.
func (t *transaction) checkState(q *queue, o semantics.Operation) (func() semantics.OperationResult, error) {
	if q.kind != semantics.TopicKind && !q.options.Status.CanReceive() {
		return nil, disabled(q)
	}
	if err := q.fitsState(o.Source, o.State); err != nil {
		return nil, err
	}
	in, err := q.scopeOf(o.Source, t.now)
	if err != nil {
		return nil, err
	}
	on, of := in.held, q.bounded()
	if err := q.checkState(on, o.State, o.Version, t.store.maxSessionStates); err != nil {
		return nil, err
	}
	of.claims.bytes += max(int64(len(o.State)-len(on.state.Data)), 0)
	if o.State != nil && !on.hasState() {
		q.claims.states++
	}
	return func() semantics.OperationResult {
		return semantics.OperationResult{Version: q.replaceState(on, o.State, t.now)}
	}, nil
}
