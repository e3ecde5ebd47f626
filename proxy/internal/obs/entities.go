package obs

import (
	"context"
	"encoding/json"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sidebus/sidebus/semantics"
)

// Limits of reading the entities.
const (
	entitiesInterval = 10 * time.Second // between two reads, however often metrics are scraped
	entitiesTimeout  = 5 * time.Second
)

// EntityStore is the part of the store that gauges of entities read. Reading does not count as use of an entity.
type EntityStore interface {
	ListEntities(
		ctx context.Context, kind semantics.Kind, topic, after string, limit int,
	) (entities []semantics.Entity, more bool, err error)
	Runtime(ctx context.Context, kind semantics.Kind, path string) (semantics.Runtime, error)
}

// entities collects the gauges of queues, topics and subscriptions. It reads the store when metrics are scraped.
type entities struct {
	store  EntityStore
	sharer semantics.Sharer // nil: no other sidecar reads for this one
	limit  int
	isUp   func() bool // an unavailable store is not read

	messages, oldest, available, sessions, size, truncated *prometheus.Desc

	mu   sync.Mutex // held while reading, so that concurrent scrapes share one read
	last snapshot
	at   time.Time
}

// snapshot is the result of one read. Sidecars share it as JSON, under a name that changes with its form.
type snapshot struct {
	Rows        []row
	IsTruncated bool // there are more entities than rows
}

type row struct {
	semantics.Runtime

	Path        string
	Kind        semantics.Kind
	HasSessions bool
}

// sharedName is the name under which sidecars with the same limit share a snapshot.
func (e *entities) sharedName() string { return "gauges2/" + strconv.Itoa(e.limit) }

func newEntities(store EntityStore, sharer semantics.Sharer, limit int, isUp func() bool) *entities {
	describe := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return &entities{
		store: store, sharer: sharer, limit: limit, isUp: isUp,
		messages: describe(
			"sidebus_entity_messages", "Messages of a queue, subscription or topic, by state.", "entity", "state",
		),
		oldest: describe(
			"sidebus_entity_oldest_age_seconds",
			"Time since the oldest message of a queue or subscription was enqueued, dead letters excepted; 0 without messages.",
			"entity",
		),
		available: describe(
			"sidebus_entity_available_age_seconds",
			"Time since the oldest available message of a queue or subscription was enqueued, or with sessions, since the session "+
				"that has been ready longest became ready; 0 without one.",
			"entity",
		),
		sessions: describe(
			"sidebus_entity_sessions", "Sessions of a queue or subscription that requires sessions, by state.",
			"entity", "state",
		),
		size: describe(
			"sidebus_entity_size_bytes", "Bytes that an entity counts against its maximum size.", "entity",
		),
		truncated: describe("sidebus_entities_truncated",
			"1 if there are more entities than --metrics-entities, so that some have no gauges, else 0."),
	}
}

// Describe implements prometheus.Collector.
func (e *entities) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{e.messages, e.oldest, e.available, e.sessions, e.size, e.truncated} {
		to <- d
	}
}

// Collect implements prometheus.Collector. If the store cannot be read, there are no values instead of old ones.
func (e *entities) Collect(to chan<- prometheus.Metric) {
	s, at, ok := e.current()
	if !ok {
		return
	}
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	for _, r := range s.Rows {
		name := semantics.Fold(r.Path)
		for state, n := range r.messages() {
			gauge(e.messages, float64(n), name, state)
		}
		gauge(e.size, float64(r.SizeInBytes), name)
		if r.Kind == semantics.TopicKind {
			continue
		}
		gauge(e.oldest, secondsSince(r.OldestEnqueuedAt, at), name)
		gauge(e.available, secondsSince(r.AvailableSince, at), name)
		if r.HasSessions {
			gauge(e.sessions, float64(r.ReadySessions), name, "ready")
			gauge(e.sessions, float64(r.LockedSessions), name, "locked")
			gauge(e.sessions, float64(r.BlockedSessions), name, "blocked")
			gauge(e.sessions, float64(max(r.Sessions-r.ReadySessions-r.LockedSessions-r.BlockedSessions, 0)), name, "idle")
		}
	}
	isTruncated := 0.0
	if s.IsTruncated {
		isTruncated = 1
	}
	gauge(e.truncated, isTruncated)
}

// secondsSince returns how long an instant is past at another one; 0 for none.
func secondsSince(then, at time.Time) float64 {
	if then.IsZero() {
		return 0
	}
	return max(at.Sub(then).Seconds(), 0)
}

// messages returns the number of messages by state. Each message is in one state.
func (r row) messages() map[string]int64 {
	if r.Kind == semantics.TopicKind {
		return map[string]int64{"scheduled": r.Scheduled}
	}
	return map[string]int64{
		"available": r.Available - r.Delayed, "delayed": r.Delayed, "locked": r.Locked, "deferred": r.Deferred,
		"expired":   r.ExpiredPending,
		"scheduled": r.Scheduled, "dead_letter": r.DeadLetter, "transfer": r.Transfer,
		"transfer_dead_letter": r.TransferDeadLetter,
	}
}

// current returns a snapshot that is at most entitiesInterval old, or little more while another sidecar reads the next
// one, and when it was read.
func (e *entities) current() (snapshot, time.Time, bool) {
	if !e.isUp() {
		return snapshot{}, time.Time{}, false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.at.IsZero() && time.Since(e.at) < entitiesInterval {
		return e.last, e.at, true
	}
	//nolint:forbidigo // a Collector gets no context
	ctx, cancel := context.WithTimeout(context.Background(), entitiesTimeout)
	defer cancel()
	s, age, err := e.readForAll(ctx)
	if err != nil {
		e.at = time.Time{}
		return snapshot{}, time.Time{}, false
	}
	e.last, e.at = s, time.Now().Add(-age)
	return s, e.at, true
}

// readForAll reads the entities unless another sidecar has, or does so now.
func (e *entities) readForAll(ctx context.Context) (s snapshot, age time.Duration, err error) {
	if e.sharer == nil {
		s, err = e.read(ctx)
		return s, 0, err
	}
	text, age, err := e.sharer.Shared(ctx, e.sharedName(), entitiesInterval, func(ctx context.Context) ([]byte, error) {
		s, err := e.read(ctx)
		if err != nil {
			return nil, err
		}
		return json.Marshal(s)
	})
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	return s, age, err
}

// read reads queues, then topics, then their subscriptions, each by name.
func (e *entities) read(ctx context.Context) (snapshot, error) {
	var s snapshot
	if err := e.list(ctx, &s, semantics.QueueKind, ""); err != nil {
		return s, err
	}
	topics := len(s.Rows)
	if err := e.list(ctx, &s, semantics.TopicKind, ""); err != nil {
		return s, err
	}
	for _, topic := range s.Rows[topics:] {
		if err := e.list(ctx, &s, semantics.SubscriptionKind, topic.Path); err != nil {
			return s, err
		}
	}
	kept := s.Rows[:0]
	for _, r := range s.Rows {
		var err error
		r.Runtime, err = e.store.Runtime(ctx, r.Kind, r.Path)
		r.Partitions = nil // no gauge has them, and sidecars share what is kept
		switch {
		case semantics.CodeOf(err) == semantics.EntityNotFound: // deleted since it was listed
		case err != nil:
			return s, err
		default:
			kept = append(kept, r)
		}
	}
	s.Rows = kept
	return s, nil
}

func (e *entities) list(ctx context.Context, s *snapshot, kind semantics.Kind, topic string) error {
	for after := ""; ; {
		size := min(e.limit-len(s.Rows), semantics.MaxPageSize)
		found, more, err := e.store.ListEntities(
			ctx, kind, topic, after, max(size, 1),
		) // with one it still reports whether there are more
		if semantics.CodeOf(err) == semantics.EntityNotFound {
			return nil // the topic was deleted since it was listed
		}
		if err != nil {
			return err
		}
		if size <= 0 {
			s.IsTruncated = s.IsTruncated || len(found) > 0
			return nil
		}
		for _, entity := range found {
			s.Rows = append(s.Rows, row{Path: entity.Name, Kind: kind, HasSessions: entity.Options.RequiresSession})
			after = semantics.Fold(entity.OwnName())
		}
		if !more {
			return nil
		}
	}
}
