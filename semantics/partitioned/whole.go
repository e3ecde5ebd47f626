package partitioned

import (
	"cmp"
	"errors"
	"hash/fnv"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/sidebus/sidebus/semantics"
)

// whole is a queue, topic or subscription with several partitions.
type whole struct {
	kind        semantics.Kind
	name        string
	incarnation int64
	options     semantics.Options // when it was read
	detects     bool              // it has duplicate detection
	paths       []string          // of its partitions
	definition  string            // of a topic: the path of what has its subscriptions and rules
	topic       *whole            // of a subscription

	sent     atomic.Uint64    // batches without a key
	received [3]atomic.Uint64 // receives, and accepts of the next session, by sub-queue
}

func (s *Store) wholeOf(entity semantics.Entity) *whole {
	w := &whole{
		kind: entity.Kind, name: entity.Name, incarnation: entity.Incarnation, options: entity.Options,
		detects: entity.Options.RequiresDuplicateDetection,
	}
	for p := range int(entity.Options.Partitions) {
		w.paths = append(w.paths, s.place(entity, p))
	}
	if entity.Kind == semantics.TopicKind {
		w.definition = s.placeDefinition(entity)
	}
	return w
}

// subscription returns a subscription of a topic, as its definition has it.
func (w *whole) subscription(entity semantics.Entity) *whole {
	_, name, _ := semantics.SplitSubscription(entity.Name)
	sub := &whole{
		kind: semantics.SubscriptionKind, name: semantics.SubscriptionPath(w.name, name),
		incarnation: entity.Incarnation,
		options:     entity.Options, topic: w,
	}
	inPartition := semantics.NameInPartition(name, entity.Incarnation)
	if semantics.IsUnmatched(entity.Name) { // each partition has its own, as any topic
		inPartition = semantics.UnmatchedSubscription
	}
	for _, path := range w.paths {
		sub.paths = append(sub.paths, semantics.SubscriptionPath(path, inPartition))
	}
	return sub
}

// root returns the name of the topic of a subscription, that of another entity as it is.
func (w *whole) root() string {
	if w.topic != nil {
		return w.topic.name
	}
	return w.name
}

// defined returns the path of a subscription in the definition of its topic.
func (w *whole) defined(name string) string { return semantics.SubscriptionPath(w.definition, name) }

// place returns the path of a partition. They are spread evenly over the slots of the store: each has an equal share of
// them, and lies somewhere in its own. All versions must choose alike, because the path is that of what is stored.
func (s *Store) place(entity semantics.Entity, partition int) string {
	return s.placeAt(int(entity.Options.Partitions), partition, func(salt int) string {
		return semantics.PartitionPath(entity.Name, entity.Incarnation, partition, salt)
	})
}

// placeDefinition returns the path of the definition of a topic. It lies near the record, so that both are there or
// not.
func (s *Store) placeDefinition(entity semantics.Entity) string {
	slot, of := s.below.Slot(entity.Name)
	return s.placeAt(semantics.MaxPartitions, slot*semantics.MaxPartitions/of, func(salt int) string {
		return semantics.DefinitionPath(entity.Name, entity.Incarnation, salt)
	})
}

// placeAt returns the path with the least salt that lies in a share of the slots.
func (s *Store) placeAt(shares, share int, pathOf func(salt int) string) string {
	for salt := 0; ; salt++ {
		path := pathOf(salt)
		if slot, of := s.below.Slot(path); of == 1 || slot*shares/of == share {
			return path
		}
	}
}

// placeOf returns which partition of an entity has a path, below 0 for none. The entity may be nil.
func (w *whole) placeOf(path string) int {
	if w == nil {
		return -1
	}
	folded := semantics.Fold(path)
	return slices.IndexFunc(w.paths, func(one string) bool { return semantics.Fold(one) == folded })
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

// in returns a source of the entity in one partition. The token of a session of another partition becomes one that no
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

// named returns an error of a partition as one of its entity.
func named(err error) error {
	var e *semantics.Error
	if !errors.As(err, &e) {
		return err
	}
	said := *e
	said.Message = semantics.WholePath(e.Message)
	said.Details = map[string]string{}
	for key, value := range e.Details {
		said.Details[key] = semantics.WholePath(value)
	}
	return &said
}
