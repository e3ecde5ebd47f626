// Package memstore is a semantics.Store in memory: the executable specification of Sidebus. It says what the rules of
// spec/semantics.md mean in the plainest code that is right; the Redis store must answer the same. It keeps nothing
// beyond the life of the process.
//
// One mutex makes every method atomic and there are no goroutines. What becomes due (locks that end, messages that
// expire or are scheduled) is processed by the next call on the queue: see Store.look. Only a topic's scheduled
// messages are not, nor is anything forwarded, because what becomes of them is decided outside: see Store.Sweep.
package memstore

import (
	"context"
	"sync"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// Store keeps everything in memory. It implements semantics.Store and semantics.Checker and is safe for concurrent
// use. Make one with New; there is nothing to close.
type Store struct {
	clock                             func() time.Time
	maxIdleSessions, maxSessionStates int
	ofTopic                           topicLimits

	mu      sync.Mutex
	queues  map[string]*queue // entities of all kinds, by folded path
	watches map[semantics.Source]map[*watch]struct{}
	waiting map[semantics.Source]bool // registered by a receive and not woken since
	upkeep  chan struct{}             // there may be something for Sweep to do, or earlier than it knows
	removed func(kind semantics.Kind, path string)
	barred  map[string]time.Time // folded paths of partitions that were deleted for good, by when

	suspended map[string]*suspended // by folded path

	lastIncarnation int64 // of all entities there ever were
	lastVersion     int64 // of all states of sessions
	lastTransfer    int64 // of all sources
	lastRemoval     int64 // of all entities with several partitions
}

// topicLimits is how much the subscriptions of one topic may be and have together (RULE-4).
type topicLimits struct{ subscriptions, sqlFilters, correlationFilters int }

var (
	_ semantics.Store   = (*Store)(nil)
	_ semantics.Checker = (*Store)(nil)
	_ semantics.Sweeper = (*Store)(nil)
)

// Option changes how New makes a Store.
type Option func(*Store)

// WithClock sets another clock than the machine's, for tests. The Store cuts what it reads to milliseconds
// and calls clock while it holds its mutex.
func WithClock(clock func() time.Time) Option { return func(s *Store) { s.clock = clock } }

// WithTopicLimits lets the subscriptions of a topic be and have fewer than RULE-4 permits.
func WithTopicLimits(subscriptions, sqlFilters, correlationFilters int) Option {
	return func(s *Store) { s.ofTopic = topicLimits{subscriptions, sqlFilters, correlationFilters} }
}

// New makes an empty Store.
func New(opts ...Option) *Store {
	s := &Store{
		clock:            time.Now, //nolint:forbidigo // this store has no other clock to ask
		maxIdleSessions:  semantics.MaxIdleSessions,
		maxSessionStates: semantics.MaxSessionStates,
		ofTopic: topicLimits{
			subscriptions:      semantics.MaxSubscriptionsPerTopic,
			sqlFilters:         semantics.MaxSQLFiltersPerTopic,
			correlationFilters: semantics.MaxCorrelationFiltersPerTopic,
		},
		queues:  map[string]*queue{},
		watches: map[semantics.Source]map[*watch]struct{}{},
		waiting: map[semantics.Source]bool{},
		upkeep:  make(chan struct{}, 1),
		barred:  map[string]time.Time{},

		suspended: map[string]*suspended{},
	}
	for _, opt := range opts {
		opt(s)
	}
	return s
}

// Check always finds the Store fit to serve and warns that it forgets.
func (s *Store) Check(ctx context.Context) (semantics.Health, error) {
	if err := refuseIfOver(ctx); err != nil {
		return semantics.Health{}, err
	}
	return semantics.Health{Store: "memory", Warnings: []string{"everything is lost when the process ends"}}, nil
}

// now reads the clock in milliseconds, never rounded up (spec section 0).
func (s *Store) now() time.Time { return s.clock().UTC().Truncate(time.Millisecond) }

// open takes the mutex, reads the clock and finds the entity, of whatever kind, except the record of a queue with
// several partitions, which has no messages. The caller must call unlock whatever it gets back.
func (s *Store) open(ctx context.Context, path string) (q *queue, now time.Time, unlock func(), err error) {
	q, now, unlock, err = s.openAny(ctx, path)
	if err == nil && q.options.Partitions > 1 {
		return nil, now, unlock, semantics.NotFound(path)
	}
	return q, now, unlock, err
}

// find returns an entity as open does, nil for none. The mutex must be held.
func (s *Store) find(path string) *queue {
	q := s.queues[semantics.Fold(path)]
	if q != nil && q.options.Partitions > 1 {
		return nil
	}
	return q
}

// openAny is open for the record of a queue with several partitions too.
func (s *Store) openAny(ctx context.Context, path string) (q *queue, now time.Time, unlock func(), err error) {
	if err := refuseIfOver(ctx); err != nil {
		return nil, time.Time{}, func() {}, err
	}
	s.mu.Lock()
	q = s.queues[semantics.Fold(path)]
	if q == nil {
		return nil, time.Time{}, s.mu.Unlock, semantics.NotFound(path)
	}
	due := q.due
	return q, s.now(), func() {
		if q.forwards() && !q.due.Equal(due) { // something will be available sooner than Sweep knows
			s.noteUpkeep()
		}
		s.mu.Unlock()
	}, nil
}

// openKind is open for an entity of one kind. Another one is not found.
func (s *Store) openKind(ctx context.Context, kind semantics.Kind, path string) (*queue, time.Time, func(), error) {
	q, now, unlock, err := s.open(ctx, path)
	if err == nil && q.kind != kind {
		return nil, now, unlock, semantics.NotFound(path)
	}
	return q, now, unlock, err
}

func refuseIfOver(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return semantics.CancelledBy(ctx)
}

func disabled(q *queue) error { return semantics.Disabled(q.name, q.options.Status.String()) }

func full(q *queue, bound semantics.Bound, actual, limit int64) error {
	return semantics.Full(q.name, bound, actual, limit, q.deadBytes())
}
