package partitioned

import (
	"context"

	"github.com/sidebus/sidebus/semantics"
)

// keyOf returns what decides the partition of a message, "" if any will do (PART-2).
func (w *whole) keyOf(m *semantics.Message) string {
	if key := m.Partition(); key != "" || !w.detects {
		return key
	}
	return m.MessageID
}

// keyOfAll returns the key of a batch. PARTITION_KEY_MISMATCH if its messages have several (BATCH-4).
func (w *whole) keyOfAll(messages []*semantics.Message, keyOf func(place int) string) (string, error) {
	key := keyOf(0)
	for i, m := range messages {
		if m.Partition() != messages[0].Partition() || keyOf(i) != key {
			return "", supposed{semantics.PartitionsMixed(w.name, w.detects, i)}
		}
	}
	return key, nil
}

// fitsElsewhere reports whether a batch that a partition refused may be taken by another one. It was stored nowhere.
func fitsElsewhere(err error) bool {
	switch semantics.CodeOf(err) {
	case semantics.EntityFull:
		return true
	case semantics.StoreUnavailable:
		return !semantics.IsOutcomeUnknown(err)
	default:
		return false
	}
}

func numbered(stored []semantics.Stored, partition int) []semantics.Stored {
	for i := range stored {
		stored[i].SequenceNumber = semantics.InPartition(stored[i].SequenceNumber, partition)
	}
	return stored
}

// Send implements semantics.Sender.
func (s *Store) Send(
	ctx context.Context, path string, messages []*semantics.Message,
) (stored []semantics.Stored, err error) {
	err = s.on(ctx, path, func() error {
		stored, err = s.Store.Send(ctx, path, messages)
		return err
	}, func(w *whole) error {
		outcome := s.spread(ctx, w, [][]*semantics.Message{messages}, func(p int, _ []int) []semantics.SendOutcome {
			stored, err := s.Store.Send(ctx, w.paths[p], messages)
			return []semantics.SendOutcome{{Stored: stored, Err: err}}
		})[0]
		stored = outcome.Stored
		return outcome.Err
	})
	return stored, err
}

// SendEach implements semantics.Sender. Calls to one partition keep their order, and those without a key go to one
// partition together.
func (s *Store) SendEach(
	ctx context.Context, path string, calls [][]*semantics.Message,
) (outcomes []semantics.SendOutcome) {
	outcomes = make([]semantics.SendOutcome, len(calls))
	s.onEach(ctx, path, len(calls), func(w *whole, places []int) {
		var some []semantics.SendOutcome
		if w == nil {
			some = s.Store.SendEach(ctx, path, pick(calls, places))
		} else {
			of := pick(calls, places)
			some = s.spread(ctx, w, of, func(p int, places []int) []semantics.SendOutcome {
				return s.Store.SendEach(ctx, w.paths[p], pick(of, places))
			})
		}
		for i, o := range some {
			outcomes[places[i]] = o
		}
	}, func(place int) *error { return &outcomes[place].Err })
	return outcomes
}

func pick[T any](from []T, places []int) []T {
	picked := make([]T, len(places))
	for i, at := range places {
		picked[i] = from[at]
	}
	return picked
}

// spread makes calls with messages, in the partitions that these belong to, by send: it makes those at the given places
// in one partition. Calls without a key go to one partition together, and to others as far as that one takes them not.
// If none does the failure is that of the first.
func (s *Store) spread(
	ctx context.Context, w *whole, calls [][]*semantics.Message, send func(p int, places []int) []semantics.SendOutcome,
) []semantics.SendOutcome {
	outcomes := make([]semantics.SendOutcome, len(calls))
	places := make([][]int, len(w.paths)) // of the calls, by partition
	anywhere := s.present(ctx, w, w.inTurn(&w.sent))
	var keyless []int
	for i, messages := range calls {
		key, err := w.keyOfAll(messages, func(i int) string { return w.keyOf(messages[i]) })
		if outcomes[i].Err = err; err != nil {
			continue
		}
		p := anywhere[0]
		if key != "" {
			p = w.ofKey(key)
		} else {
			keyless = append(keyless, i)
		}
		places[p] = append(places[p], i)
	}
	sendTo := func(p int, places []int) {
		for i, o := range send(p, places) {
			s.note(ctx, w.paths[p], o.Err)
			outcomes[places[i]] = semantics.SendOutcome{
				Stored: numbered(o.Stored, p), Repeats: o.Repeats, Err: named(inPartition(o.Err, p)),
			}
		}
	}
	atOnce(withWork(places), func(_, p int) error {
		sendTo(p, places[p])
		return nil
	})
	for _, i := range keyless {
		first := outcomes[i]
		for _, p := range anywhere[1:] {
			if !fitsElsewhere(outcomes[i].Err) {
				break
			}
			sendTo(p, []int{i})
		}
		if fitsElsewhere(outcomes[i].Err) {
			outcomes[i] = first
		}
	}
	return outcomes
}

// withWork returns the partitions that have calls. places are those of the calls, by partition.
func withWork(places [][]int) (partitions []int) {
	for p := range places {
		if len(places[p]) > 0 {
			partitions = append(partitions, p)
		}
	}
	return partitions
}

// SendOnce implements semantics.Sender. What has no key goes to the partition of its request id, where a repeat finds
// it. So does a message whose id was made for this call: the repeat has another one.
func (s *Store) SendOnce(
	ctx context.Context, path string, once semantics.Once, messages []*semantics.Message,
) (outcome semantics.SendOutcome) {
	outcome.Err = s.on(ctx, path, func() error {
		outcome = s.Store.SendOnce(ctx, path, once, messages)
		return outcome.Err
	}, func(w *whole) error {
		p, err := w.ofRequest(once, messages)
		if err != nil {
			return err
		}
		outcome = s.Store.SendOnce(ctx, w.paths[p], once, messages)
		s.note(ctx, w.paths[p], outcome.Err)
		outcome.Stored = numbered(outcome.Stored, p)
		return inPartition(outcome.Err, p)
	})
	return outcome
}

// ofRequest returns the partition of a batch under a request id.
func (w *whole) ofRequest(once semantics.Once, messages []*semantics.Message) (int, error) {
	key, err := w.keyOfAll(messages, func(i int) string {
		m := messages[i]
		if m.Partition() == "" && (!w.detects || m.MessageID == semantics.IDFrom(once.Seed, i)) {
			return once.RequestID
		}
		return w.keyOf(m)
	})
	return w.ofKey(key), err
}

// CancelScheduled implements semantics.Sender. All or none of the numbers is a promise of one partition.
func (s *Store) CancelScheduled(ctx context.Context, path string, numbers []int64) error {
	return s.on(ctx, path, func() error { return s.Store.CancelScheduled(ctx, path, numbers) }, func(w *whole) error {
		source := semantics.Source{Path: path}
		return w.withNumbers(source, numbers, semantics.Scheduled, func(p int, own []int64) error {
			return s.Store.CancelScheduled(ctx, w.paths[p], own)
		})
	})
}

// CancelScheduledByID implements semantics.Sender.
func (s *Store) CancelScheduledByID(ctx context.Context, path string, ids []string) (cancelled int, err error) {
	err = s.on(ctx, path, func() error {
		cancelled, err = s.Store.CancelScheduledByID(ctx, path, ids)
		return err
	}, func(w *whole) error {
		counts := make([]int, len(w.paths))
		err := w.withEach(func(p int) error {
			return s.inOne(ctx, w, func() (err error) {
				counts[p], err = s.Store.CancelScheduledByID(ctx, w.paths[p], ids)
				return err
			})
		})
		cancelled = sum(counts)
		return err
	})
	return cancelled, err
}

func sum(counts []int) (n int) {
	for _, count := range counts {
		n += count
	}
	return n
}
