package storetest

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/partitioned"
)

// runOverPartitions runs the tests of sessions, of duplicate detection and of idle deletion against queues with several
// partitions, where a session and a message id have one. The store in memory takes each with every number of partitions,
// or with -short with one; another store takes each with one of them in turn, since which partition a call goes to does
// not depend on the store.
func runOverPartitions(t *testing.T, open func(t *testing.T) Harness) {
	t.Helper()
	counts := []int64{2, 3, 16}
	if testing.Short() {
		counts = counts[1:2]
	}
	of := slices.Concat(
		sessionKindTests, sessionEntityTests, sessionStatusTests, sessionAcceptTests, sessionReadyTests, sessionLockTests,
		sessionCloseTests, sessionLockEndTests, sessionCountTests, sessionOrderTests, sessionDelayTests, sessionStateTests,
		sessionStateTTLTests, sessionListTests, sessionBlockTests, sessionExpiryTests, sessionMessageTests, sessionSequenceTests,
		sessionWaitTests, sessionWaitEndTests, sessionReceiveWaitTests, sessionUseTests, sessionDrainTests, sessionManyTests,
		receiversTests, duplicateTests, idleTests, idleActivityTests,
	)
	store, turn := open(t), 0
	if store.IsApart {
		turn = 1 // so that a rule has another number there than on one server
	}
	for i, n := range counts {
		for j, test := range of {
			isInTurn := store.Reference == nil || (turn+i+j)%len(counts) == 0
			if _, isInOne := inOnePartition[ruleName(test)]; isInOne || !isInTurn {
				continue
			}
			t.Run(fmt.Sprintf("PART_1_Over%d/%s", n, ruleName(test)), func(t *testing.T) {
				t.Parallel()
				try(t, test, open(t).overPartitions(n))
			})
		}
	}
}

// overPartitions is the same harness with an asOne for each Store.
func (h Harness) overPartitions(n int64) Harness {
	below, sweep, numbers := h.Store, h.Sweep, &numbersAsOne{}
	h.Store = asOne{partitioned.New(withoutPartitions(below)), n, numbers}
	if peer := h.Peer; peer != nil {
		h.Peer = func() semantics.Store { return asOne{partitioned.New(withoutPartitions(peer())), n, numbers} }
	}
	h.Sweep = func(ctx context.Context, _ semantics.Store, upkeep semantics.Upkeep) error {
		return sweep(ctx, below, upkeep)
	}
	h.Audit = nil // of one entity: what the test has left is audited as a whole
	if reference := h.Reference; reference != nil {
		h.Reference = func(t *testing.T) Harness {
			t.Helper()
			return reference(t).overPartitions(n)
		}
	}
	return h
}

// asOne is a Store whose queues all have several partitions, which look like one: a batch is divided by its keys, and
// messages have the numbers that they would have in one partition. So the tests of queues with one can run on it.
type asOne struct {
	semantics.Store
	partitions int64
	*numbersAsOne
}

func (s asOne) CreateEntity(ctx context.Context, kind semantics.Kind, path string, options semantics.Options) (semantics.Entity, bool, error) {
	if kind == semantics.QueueKind {
		options.Partitions = s.partitions
	}
	entity, created, err := s.Store.CreateEntity(ctx, kind, path, options)
	if created {
		s.begin(path)
	}
	return withOne(entity), created, err
}

func withOne(entity semantics.Entity) semantics.Entity {
	entity.Options.Partitions, entity.Incarnation = min(entity.Options.Partitions, 1), 0
	return entity
}

func (s asOne) GetEntity(ctx context.Context, kind semantics.Kind, path string) (semantics.Entity, error) {
	entity, err := s.Store.GetEntity(ctx, kind, path)
	if err == nil && entity.Options.Partitions > 1 { // the description has only the use of the record (CNT-5)
		var counts semantics.Runtime
		counts, err = s.Store.Runtime(ctx, kind, path)
		entity.AccessedAt = counts.AccessedAt
	}
	return withOne(entity), err
}

func (s asOne) UpdateEntity(ctx context.Context, kind semantics.Kind, path string, options semantics.Options, names []string) (semantics.Entity, error) {
	entity, err := s.Store.UpdateEntity(ctx, kind, path, options, names)
	return withOne(entity), err
}

func (s asOne) ListEntities(ctx context.Context, kind semantics.Kind, topic, after string, limit int) ([]semantics.Entity, bool, error) {
	entities, more, err := s.Store.ListEntities(ctx, kind, topic, after, limit)
	for i := range entities {
		entities[i] = withOne(entities[i])
	}
	return entities, more, err
}

func (s asOne) Send(ctx context.Context, path string, messages []*semantics.Message) ([]semantics.Stored, error) {
	var stored []semantics.Stored
	for first, end := 0, 0; first < len(messages); first = end {
		for end = first + 1; end < len(messages) && goTogether(messages[end], messages[first]); end++ {
		}
		some, err := s.Store.Send(ctx, path, messages[first:end])
		if err != nil {
			return nil, err
		}
		for i := range some {
			some[i].SequenceNumber = s.asOne(path, some[i].SequenceNumber)
		}
		stored = append(stored, some...)
	}
	return stored, nil
}

func goTogether(a, b *semantics.Message) bool {
	return a.Partition() == b.Partition() && (a.Partition() != "" || a.MessageID == b.MessageID)
}

func (s asOne) SendEach(ctx context.Context, path string, calls [][]*semantics.Message) []semantics.SendOutcome {
	outcomes := make([]semantics.SendOutcome, len(calls))
	for i, messages := range calls {
		outcomes[i].Stored, outcomes[i].Err = s.Send(ctx, path, messages)
	}
	return outcomes
}

func (s asOne) SendOnce(ctx context.Context, path string, once semantics.Once, messages []*semantics.Message) semantics.SendOutcome {
	outcome := s.Store.SendOnce(ctx, path, once, messages)
	for i := range outcome.Stored {
		outcome.Stored[i].SequenceNumber = s.asOne(path, outcome.Stored[i].SequenceNumber)
	}
	return outcome
}

func (s asOne) CancelScheduled(ctx context.Context, path string, numbers []int64) error {
	return s.failure(path, s.Store.CancelScheduled(ctx, path, s.ofPartitions(path, numbers)), semantics.Scheduled)
}

func (s asOne) Receive(ctx context.Context, source semantics.Source, limit int, register semantics.Register) (semantics.Batch, error) {
	batch, err := s.Store.Receive(ctx, source, limit, register)
	s.received(source.Path, batch.Messages)
	return batch, err
}

func (s asOne) CompleteAndReceive(ctx context.Context, source semantics.Source, tokens []semantics.LockToken, limit int, register semantics.Register) (semantics.NextBatch, error) {
	next, err := s.Store.CompleteAndReceive(ctx, source, tokens, limit, register)
	s.received(source.Path, next.Batch.Messages)
	return next, err
}

func (s asOne) ReceiveByNumber(ctx context.Context, source semantics.Source, state semantics.State, numbers []int64) ([]*semantics.Received, error) {
	messages, err := s.Store.ReceiveByNumber(ctx, source, state, s.ofPartitions(source.Path, numbers))
	s.received(source.Path, messages)
	return messages, s.failure(source.Path, err, state)
}

func (s asOne) Reactivate(ctx context.Context, source semantics.Source, numbers []int64) error {
	return s.failure(source.Path, s.Store.Reactivate(ctx, source, s.ofPartitions(source.Path, numbers)), semantics.Deferred)
}

// Peek looks at all, because the order of the numbers is another one here.
func (s asOne) Peek(ctx context.Context, source semantics.Source, from int64, limit int, show semantics.Show) ([]*semantics.Received, error) {
	var all []*semantics.Received
	for next := int64(1); ; {
		some, err := s.Store.Peek(ctx, source, next, 1000, show)
		if err != nil {
			return nil, err
		}
		if len(some) == 0 {
			break
		}
		next = some[len(some)-1].SequenceNumber + 1
		all = append(all, some...)
	}
	s.received(source.Path, all)
	slices.SortFunc(all, func(a, b *semantics.Received) int { return int(a.SequenceNumber - b.SequenceNumber) })
	all = slices.DeleteFunc(all, func(m *semantics.Received) bool { return m.SequenceNumber < from })
	all = all[:min(limit, len(all))]
	return all[:semantics.Fitting(all, semantics.MaxAnswerBytes, (*semantics.Received).AnswerSize)], nil
}

func (s asOne) DeleteByNumber(ctx context.Context, source semantics.Source, numbers []int64) ([]semantics.Code, error) {
	return s.Store.DeleteByNumber(ctx, source, s.ofPartitions(source.Path, numbers))
}

func (s asOne) Turn(ctx context.Context, path string, turns []semantics.Turn) []semantics.TurnOutcome {
	outcomes := s.Store.Turn(ctx, path, turns)
	for _, o := range outcomes {
		s.received(path, o.Batch.Messages)
	}
	return outcomes
}

func (s asOne) Resubmit(ctx context.Context, source semantics.Source, target string, letters []semantics.Resubmission,
	bypassDuplicates bool,
) ([]semantics.Resubmitted, error) {
	own := slices.Clone(letters)
	for i := range own {
		own[i].SequenceNumber = s.ofPartitions(source.Path, []int64{own[i].SequenceNumber})[0]
	}
	moved, err := s.Store.Resubmit(ctx, source, target, own, bypassDuplicates)
	for i := range moved {
		if n := moved[i].SequenceNumber; n != 0 {
			moved[i].SequenceNumber = s.asOne(target, n)
		}
	}
	return moved, err
}

// OverPartitions is the same pair with queues of several partitions, for runs with sessions and without transfers. It
// has no Restart, because whose turn it is among the partitions is not kept.
func (p Pair) OverPartitions(n int64) Pair {
	p.Reference = asOne{partitioned.New(withoutPartitions(p.Reference)), n, &numbersAsOne{}}
	p.Subject = asOne{partitioned.New(withoutPartitions(p.Subject)), n, &numbersAsOne{}}
	p.Restart, p.Audit, p.overPartitions = nil, nil, true
	return p
}
