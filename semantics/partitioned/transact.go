package partitioned

import (
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/sidebus/sidebus/semantics"
)

// Transact implements semantics.Transactor. Of each queue a transaction uses one partition, so it is one on the store
// below, which runs it on the paths of these partitions (TX-8). If one is not found there, nothing was done. Nor was it
// if they are refused together, because of what is remembered of them or where that is.
func (s *Store) Transact(
	ctx context.Context, once *semantics.Once, operations []semantics.Operation,
) semantics.TransactionOutcome {
	for look := 1; ; look++ {
		t := &transaction{operations: operations, once: once, members: map[string]*member{}}
		own, err := t.divide(s)
		outcome := semantics.TransactionOutcome{Err: err}
		lookFor := s.lookIfOthers
		if err == nil {
			outcome = t.inWhole(s.Store.Transact(ctx, once, own))
			switch semantics.CodeOf(outcome.Err) { //nolint:exhaustive // the others do not depend on what is remembered
			case semantics.EntityNotFound:
				lookFor = s.lookFor
			case semantics.InvalidOperation:
			default:
				return outcome
			}
		}
		if look == mostLooks+len(operations) {
			return outcome
		}
		switch changed, err := lookFor(ctx, t, outcome.Err); {
		case err != nil:
			return semantics.TransactionOutcome{Err: err}
		case !changed:
			return outcome
		}
	}
}

// lookIfOthers reads what the entities of a transaction are, after it was refused by what was known of them.
func (s *Store) lookIfOthers(ctx context.Context, t *transaction, _ error) (changed bool, err error) {
	looked := map[string]bool{}
	for _, o := range t.operations {
		path := semantics.Fold(o.Source.Path)
		if looked[path] {
			continue
		}
		looked[path] = true
		_, isOther, err := s.lookIfOther(ctx, path, s.remembered(path))
		if err != nil {
			return false, err
		}
		changed = changed || isOther
	}
	return changed, nil
}

// lookFor reads what the entity is that a transaction did not find; all of them if it is not known which.
func (s *Store) lookFor(ctx context.Context, t *transaction, missed error) (changed bool, err error) {
	operations := t.operations
	if i, ok := t.refused(missed); ok {
		operations = operations[i : i+1]
	}
	for _, o := range operations {
		var had *whole
		if m := t.memberOf(o); m != nil {
			had = m.whole
		}
		_, isOther, err := s.look(ctx, o.Source.Path, had)
		if err != nil {
			return false, err
		}
		changed = changed || isOther
	}
	return changed, nil
}

// transaction is a Transact as far as it concerns queues with several partitions.
type transaction struct {
	operations []semantics.Operation
	once       *semantics.Once
	members    map[string]*member // such queues, by folded path
}

// member is a queue with several partitions in a transaction.
type member struct {
	whole     *whole
	partition int    // which one is used; any as long as it is anyPartition
	key       string // of the messages that are sent
}

const anyPartition = -1

func (t *transaction) memberOf(o semantics.Operation) *member {
	return t.members[semantics.Fold(o.Source.Path)]
}

// refused returns the place of the operation that an error is about, or that of the first one.
func (t *transaction) refused(err error) (place int, ok bool) {
	place, failed := strconv.Atoi(semantics.AsError(err).Details[semantics.DetailOperation])
	if failed != nil || place < 0 || place >= len(t.operations) {
		return 0, false
	}
	return place, true
}

// divide decides which partition of each queue is used, and returns the operations as the partitions take them.
// PARTITION_KEY_MISMATCH if one queue needs several.
func (t *transaction) divide(s *Store) ([]semantics.Operation, error) {
	first := 0 // place of the first message of the operation among all
	for i, o := range t.operations {
		m := t.memberOf(o)
		if m == nil {
			w := s.remembered(o.Source.Path)
			if w == nil {
				first += len(o.Messages)
				continue
			}
			m = &member{whole: w, partition: anyPartition}
			t.members[semantics.Fold(o.Source.Path)] = m
		}
		if err := m.take(o, t.keyOf(m.whole, o, first)); err != nil {
			return nil, semantics.RefusedOperation(err, i)
		}
		first += len(o.Messages)
	}
	for _, path := range slices.Sorted(maps.Keys(t.members)) {
		m := t.members[path]
		if m.partition == anyPartition {
			m.partition = t.ofTopic(m)
		}
		m.choose(t.once)
	}
	own := slices.Clone(t.operations)
	for i, o := range own {
		if m := t.memberOf(o); m != nil {
			own[i] = m.own(o)
		}
	}
	return own, nil
}

// keyOf returns what decides the partition of each message of an operation, the first of which has this place among all
// messages. An id that was made for this transaction decides nothing: a repeat has another one.
func (t *transaction) keyOf(w *whole, o semantics.Operation, first int) func(place int) string {
	return func(place int) string {
		m := o.Messages[place]
		isMade := t.once != nil && m.MessageID == semantics.IDFrom(t.once.Seed, first+place)
		if m.Partition() == "" && isMade {
			return ""
		}
		return w.keyOf(m)
	}
}

// take notes what an operation says of the partition.
func (m *member) take(o semantics.Operation, keyOf func(place int) string) error {
	if o.Verb == semantics.OperationSend {
		key, err := m.whole.keyOfAll(o.Messages, keyOf)
		switch {
		case err != nil:
			return err
		case key == "":
			return nil
		case m.key != "" && m.key != key:
			return semantics.PartitionsApart(m.whole.name)
		}
		m.key = key
		return m.takePartition(m.whole.ofKey(key))
	}
	if unknown := m.unknownNumbers(o); len(unknown) > 0 {
		return semantics.NumbersNotFound(m.whole.name, semantics.Scheduled, unknown)
	}
	for _, p := range m.named(o) {
		if err := m.takePartition(p); err != nil {
			return err
		}
	}
	return nil
}

// ofTopic returns the partition of the others that belong to the same topic, anyPartition if there are none. In another
// one the store may not be able to change both (TX-7).
func (t *transaction) ofTopic(m *member) int {
	for _, path := range slices.Sorted(maps.Keys(t.members)) {
		other := t.members[path]
		// If the topic was created again, one of them may be as it was, with fewer partitions.
		isThere := other.partition != anyPartition && other.partition < len(m.whole.paths)
		if isThere && other.whole.root() == m.whole.root() {
			return other.partition
		}
	}
	return anyPartition
}

func (m *member) takePartition(p int) error {
	if m.partition != anyPartition && m.partition != p {
		return semantics.PartitionsApart(m.whole.name)
	}
	m.partition = p
	return nil
}

func (m *member) unknownNumbers(o semantics.Operation) []int64 {
	_, unknown := m.whole.byPartition(o.Source, o.Numbers)
	return unknown
}

// named returns the partitions that the tokens and numbers of an operation name. A token of none is lost in any.
func (m *member) named(o semantics.Operation) (partitions []int) {
	for _, token := range append([]semantics.LockToken{o.Source.SessionLock}, o.Tokens...) {
		if _, p := token.Partition(); !token.IsZero() && p < len(m.whole.paths) {
			partitions = append(partitions, p)
		}
	}
	for _, number := range o.Numbers {
		_, p := semantics.PartitionOf(number)
		partitions = append(partitions, p)
	}
	return partitions
}

// choose chooses a partition if no operation says which: that of the request id, where a repeat finds what became of
// the transaction, else the next one in turn.
func (m *member) choose(once *semantics.Once) {
	switch {
	case m.partition != anyPartition:
	case once != nil:
		m.partition = m.whole.ofKey(once.RequestID)
	default:
		m.partition = m.whole.inTurn(&m.whole.sent)[0]
	}
}

// own returns an operation as the partition takes it.
func (m *member) own(o semantics.Operation) semantics.Operation {
	o.Source = m.whole.in(m.partition, o.Source)
	o.Tokens, o.Numbers = slices.Clone(o.Tokens), slices.Clone(o.Numbers)
	for i := range o.Tokens {
		o.Tokens[i] = o.Tokens[i].InPartition(m.partition)
	}
	for i := range o.Numbers {
		o.Numbers[i], _ = semantics.PartitionOf(o.Numbers[i])
	}
	return o
}

// inWhole returns an outcome of partitions as one of their queues.
func (t *transaction) inWhole(outcome semantics.TransactionOutcome) semantics.TransactionOutcome {
	for i := range outcome.Results {
		if m := t.memberOf(t.operations[i]); m != nil {
			outcome.Results[i].Stored = numbered(outcome.Results[i].Stored, m.partition)
		}
	}
	if outcome.Err == nil {
		return outcome
	}
	place, isOne := t.refused(outcome.Err)
	outcome.Err = named(outcome.Err)
	m := t.memberOf(t.operations[place])
	switch {
	case m == nil:
	case isOne && semantics.CodeOf(outcome.Err) == semantics.MessageNotFound:
		numbers := t.operations[place].Numbers
		err := m.whole.inNumbers(outcome.Err, m.partition, semantics.Scheduled, numbers, nil)
		outcome.Err = semantics.RefusedOperation(err, place)
	default:
		outcome.Err = inPartition(outcome.Err, m.partition)
	}
	return outcome
}
