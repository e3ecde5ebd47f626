package partitioned

import (
	"cmp"
	"errors"
	"hash/fnv"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/sidebus/sidebus/semantics"
)

// whole is a queue with several partitions.
type whole struct {
	name        string
	incarnation int64
	detects     bool     // it has duplicate detection
	paths       []string // of its partitions

	sent     atomic.Uint64    // batches without a key
	received [3]atomic.Uint64 // receives, and accepts of the next session, by sub-queue
}

func (s *Store) wholeOf(entity semantics.Entity) *whole {
	w := &whole{
		name: entity.Name, incarnation: entity.Incarnation, detects: entity.Options.RequiresDuplicateDetection,
	}
	for p := range int(entity.Options.Partitions) {
		w.paths = append(w.paths, s.place(entity, p))
	}
	return w
}

// place returns the path of a partition. They are spread evenly over the slots of the store: each has an equal share of
// them, and lies somewhere in its own. All versions must choose alike, because the path is that of what is stored.
func (s *Store) place(entity semantics.Entity, partition int) string {
	for salt := 0; ; salt++ {
		path := semantics.PartitionPath(entity.Name, entity.Incarnation, partition, salt)
		if s.placing == nil {
			return path
		}
		if slot, of := s.placing.Slot(path); slot*int(entity.Options.Partitions)/of == partition {
			return path
		}
	}
}

// ofKey returns the partition of a key, which is always the same (PART-2).
func (w *whole) ofKey(key string) int {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(key)) // never fails
	return int(hash.Sum64() % uint64(len(w.paths)))
}

// inTurn returns all partitions, beginning with another one each time.
func (w *whole) inTurn(turn *atomic.Uint64) []int {
	first := int((turn.Add(1) - 1) % uint64(len(w.paths)))
	order := make([]int, len(w.paths))
	for i := range order {
		order[i] = (first + i) % len(w.paths)
	}
	return order
}

func (w *whole) all() []int {
	order := make([]int, len(w.paths))
	for p := range order {
		order[p] = p
	}
	return order
}

// in returns a source of the queue in one partition. The token of a session of another partition becomes one that no
// store made, so that it is refused there.
func (w *whole) in(partition int, source semantics.Source) semantics.Source {
	source.Path = w.paths[partition]
	if !source.SessionLock.IsZero() {
		source.SessionLock = source.SessionLock.InPartition(partition)
	}
	return source
}

// sessionOf returns the partition of the session that a source names or holds; ok is false if it does neither.
func (w *whole) sessionOf(source semantics.Source) (partition int, ok bool) {
	switch {
	case !source.SessionLock.IsZero():
		return w.ofToken(source.SessionLock), true
	case source.Session != "":
		return w.ofKey(source.Session), true
	default:
		return 0, false
	}
}

// ofToken returns the partition that a lock token names. One that no store made goes to the first partition, which
// refuses it.
func (w *whole) ofToken(token semantics.LockToken) int {
	if _, p := token.Partition(); p < len(w.paths) {
		return p
	}
	return 0
}

// atOnce does something with several partitions at the same time and returns what failed, in their order.
func atOnce(partitions []int, do func(place, partition int) error) []error {
	if len(partitions) == 1 {
		return []error{do(0, partitions[0])}
	}
	failed := make([]error, len(partitions))
	var work sync.WaitGroup
	for place, p := range partitions {
		work.Go(func() { failed[place] = do(place, p) })
	}
	work.Wait()
	return failed
}

// withEach does something with all partitions at the same time. Any failure is that of the call.
func (w *whole) withEach(do func(partition int) error) error {
	return worst(atOnce(w.all(), func(_, p int) error { return inPartition(do(p), p) }))
}

// worst returns the failure of a call by those of its parts: the first one with an unknown outcome, because then that
// of the call is unknown too, else the first one.
func worst(failed []error) (worst error) {
	for _, err := range failed {
		if isUnknown(err) {
			return err
		}
		worst = cmp.Or(worst, err)
	}
	return worst
}

func isUnknown(err error) bool { return semantics.IsOutcomeUnknown(err) }

// inPartition adds the partition to a failure of the store there (PART-7).
func inPartition(err error, partition int) error {
	if semantics.CodeOf(err) != semantics.StoreUnavailable {
		return err
	}
	return semantics.AsError(err).With(semantics.DetailPartition, strconv.Itoa(partition))
}

// pathOfPartition is what the path of a partition has behind that of its queue.
var pathOfPartition = regexp.MustCompile(`#[0-9a-z]+\.[0-9]+\.[0-9]+`)

// named returns an error of a partition as one of its queue.
func named(err error) error {
	var e *semantics.Error
	if !errors.As(err, &e) {
		return err
	}
	said := *e
	said.Message = pathOfPartition.ReplaceAllString(e.Message, "")
	said.Details = map[string]string{}
	for key, value := range e.Details {
		said.Details[key] = pathOfPartition.ReplaceAllString(value, "")
	}
	return &said
}
