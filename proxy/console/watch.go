package console

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// What the watch costs: it counts readsInTick entities in a tick, in one round trip and one for each topic. Those that
// change come first, so that a page about few busy entities is a second old and one about thousands some more.
const (
	tick          = time.Second
	quietTick     = 10 * time.Second // while no page is open
	readsInTick   = 50
	hotReads      = 40               // of them at most for entities that change
	hotFor        = 30 * time.Second // after the last change
	firstReads    = 500              // in a tick, while there are entities that were never counted
	countedInCall = 100              // queues and subscriptions, at most
	listInterval  = 10 * time.Second // between two lists of all entities, at least
	listShare     = 100              // and at least this many times what the last one took
	readTimeout   = 5 * time.Second
	shortestRate  = tick * 9 / 10 // between two counts from which a rate follows: a page that opens counts at once
	keepsFor      = time.Hour     // without a page, before the history is dropped
)

// entity is an entity under watch.
type entity struct {
	row
	key       string // the path in lower case
	runtime   semantics.Runtime
	readAt    time.Time // zero: never
	changedAt time.Time // when a count last differed from the one before
	leftAt    time.Time // when a message last left, or when it was first counted
	version   uint64    // of the watch, when the row last changed
	born      uint64    // of the watch, when the entity was found
	history   ring
	rated     semantics.Runtime // from which the rates are reckoned
	ratedAt   time.Time

	receivers        *receivers // of one that a page shows alone
	receiversVersion uint64     // of the watch, when they last changed
}

// watch reads the entities while pages are open, and keeps their last hour.
type watch struct {
	store  Entities
	broker Broker
	isUp   func() bool
	always bool
	woken  chan struct{} // capacity 1: there is something to look at now

	mu       sync.Mutex
	pages    int                // open now
	readers  map[string]int     // clients with open pages, and how many
	lastPage time.Time          // when one was last open
	shown    map[string]int     // entities that pages show alone
	entities map[string]*entity // by key
	removed  []removal          // since oldest
	oldest   uint64             // version that removed goes back to
	version  uint64             // grows with each tick
	changed  chan struct{}      // closed at the next tick
	totals   ring
	isListed bool // the list is complete
	failing  failing

	listed   time.Time // only for run, as what follows
	listTook time.Duration
}

// removal is an entity that is gone.
type removal struct {
	version uint64
	path    string
}

const maxRemovals = 1000 // that are remembered; a page that is further behind gets everything again

func newWatch(store Entities, broker Broker, isUp func() bool, always bool) *watch {
	return &watch{
		store: store, broker: broker, isUp: isUp, always: always, woken: make(chan struct{}, 1),
		shown: map[string]int{}, readers: map[string]int{},
		entities: map[string]*entity{}, changed: make(chan struct{}),
		version: 1, // a page that has nothing has version 0
	}
}

// open counts a page of a client, which shows one entity alone or all of them (""), until the function that it returns
// is called. A client may have at most as many pages as stay free for others; beyond that open returns THROTTLED.
func (w *watch) open(client, shows string) (leave func(), err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if free := maxPages - w.pages; w.readers[client] >= free {
		return nil, tooManyPages(w.readers[client])
	}
	w.pages++
	w.readers[client]++
	w.shown[shows]++
	w.wake()
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.pages--
		w.lastPage = time.Now()
		countDown(w.readers, client)
		countDown(w.shown, shows)
	}, nil
}

// countDown takes one from a count, which goes when it is 0.
func countDown(counts map[string]int, key string) {
	if counts[key]--; counts[key] == 0 {
		delete(counts, key)
	}
}

// wake makes run look at once.
func (w *watch) wake() {
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

// run reads until ctx ends.
func (w *watch) run(ctx context.Context) {
	for ctx.Err() == nil {
		pause, isNeeded := w.pace()
		w.measure(isNeeded)
		if !isNeeded {
			w.forget()
			select {
			case <-w.woken:
				continue
			case <-ctx.Done():
				return
			}
		}
		w.look(ctx)
		next := time.NewTimer(pause)
		select {
		case <-next.C:
		case <-w.woken:
		case <-ctx.Done():
		}
		next.Stop()
	}
}

// pace returns how long to pause between two looks, and reports whether there is a reason to look.
func (w *watch) pace() (pause time.Duration, isNeeded bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.pages > 0:
		return tick, true
	default:
		return quietTick, w.always || !w.lastPage.IsZero() && time.Since(w.lastPage) < keepsFor
	}
}

// measure begins or ends to measure how long messages take in this process.
func (w *watch) measure(on bool) {
	if w.broker != nil {
		w.broker.MeasureLatency(on)
	}
}

// latencyOf returns how long the messages of an entity took; nil for a topic, of which no messages are received.
func (w *watch) latencyOf(e *entity) measured {
	if w.broker == nil || kinds[e.Kind] == semantics.TopicKind {
		return nil
	}
	return func() (waits, takes broker.Latency) { return w.broker.TakeLatency(e.key) }
}

// forget drops everything.
func (w *watch) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.entities, w.removed, w.oldest, w.totals = map[string]*entity{}, nil, w.version, ring{}
	w.isListed, w.listed = false, time.Time{}
}

// look lists the entities if it is time, counts some, and reports what has changed to the pages. If the store cannot be
// read, the pages learn that it is down from its state.
func (w *watch) look(ctx context.Context) {
	defer w.publish()
	if !w.isUp() {
		return
	}
	if time.Since(w.listed) >= max(listInterval, listShare*w.listTook) {
		began := time.Now()
		if err := w.list(ctx); err != nil {
			w.failed(ctx, err)
			return
		}
		w.listed, w.listTook = time.Now(), time.Since(began)
	}
	for {
		due, isFirst := w.due(time.Now())
		if err := w.read(ctx, due); err != nil {
			w.failed(ctx, err)
			return
		}
		w.recovered()
		if !isFirst {
			w.readReceivers(ctx)
			return
		}
		w.publish() // the page fills while the rest is counted
	}
}

// list reads which entities there are.
func (w *watch) list(ctx context.Context) error {
	found := map[string]bool{}
	w.mu.Lock()
	began := w.version
	w.mu.Unlock()
	var topics []string
	for _, kind := range []semantics.Kind{semantics.QueueKind, semantics.TopicKind} {
		err := w.listKind(ctx, kind, "", func(e semantics.Entity) {
			w.place(e, found)
			if kind == semantics.TopicKind {
				topics = append(topics, e.Name)
			}
		})
		if err != nil {
			return err
		}
	}
	for _, topic := range topics {
		err := w.listKind(ctx, semantics.SubscriptionKind, topic, func(e semantics.Entity) { w.place(e, found) })
		if err != nil && semantics.CodeOf(err) != semantics.EntityNotFound { // deleted since it was listed
			return err
		}
	}
	w.remove(found, began)
	return nil
}

func (w *watch) listKind(ctx context.Context, kind semantics.Kind, topic string, each func(semantics.Entity)) error {
	for after := ""; ; {
		one, cancel := context.WithTimeout(ctx, readTimeout)
		page, more, err := w.store.ListEntities(one, kind, topic, after, semantics.MaxPageSize)
		cancel()
		if err != nil {
			return err
		}
		for _, e := range page {
			each(e)
			after = semantics.Fold(e.OwnName())
		}
		if !more {
			return nil
		}
	}
}

// place adds an entity, or takes over its options.
func (w *watch) place(listed semantics.Entity, found map[string]bool) {
	key, fresh := semantics.Fold(listed.Name), newRow(listed)
	found[key] = true
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.entities[key]
	if e != nil && e.Path != fresh.Path { // created again in other letters: the pages know it by its path
		w.removed = append(w.removed, removal{w.version + 1, e.Path})
	}
	if e == nil || e.Kind != fresh.Kind {
		w.entities[key] = &entity{row: fresh, key: key, version: w.version + 1, born: w.version + 1}
		return
	}
	if e.Status != fresh.Status || e.ForwardTo != fresh.ForwardTo || e.DeadTo != fresh.DeadTo ||
		e.MaxSize != fresh.MaxSize || e.Sessions != fresh.Sessions || e.Path != fresh.Path {
		e.Status, e.ForwardTo, e.DeadTo, e.MaxSize = fresh.Status, fresh.ForwardTo, fresh.DeadTo, fresh.MaxSize
		e.Sessions, e.Path, e.version = fresh.Sessions, fresh.Path, w.version+1
	}
}

// remove drops the entities that a list has not found, except those that were created while it was read.
func (w *watch) remove(found map[string]bool, began uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.isListed = true
	for key, e := range w.entities {
		if !found[key] && e.born <= began {
			delete(w.entities, key)
			w.removed = append(w.removed, removal{w.version + 1, e.Path})
		}
	}
	if n := len(w.removed) - maxRemovals; n > 0 {
		w.oldest = w.removed[n-1].version
		w.removed = slices.Delete(w.removed, 0, n)
	}
}

// due returns the entities to count now. isFirst reports whether there are some that were never counted.
func (w *watch) due(now time.Time) (chosen []*entity, isFirst bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var first, hot, rest []*entity
	for _, e := range w.entities {
		switch {
		case e.readAt.IsZero():
			first = append(first, e)
		case w.shown[e.key] > 0:
			chosen = append(chosen, e)
		case now.Sub(e.changedAt) < hotFor:
			hot = append(hot, e)
		default:
			rest = append(rest, e)
		}
	}
	if len(first) > 0 {
		slices.SortFunc(first, func(a, b *entity) int { return cmp.Compare(a.key, b.key) })
		return first[:min(len(first), firstReads)], true
	}
	byAge := func(a, b *entity) int { return cmp.Or(a.readAt.Compare(b.readAt), cmp.Compare(a.key, b.key)) }
	slices.SortFunc(hot, byAge)
	slices.SortFunc(rest, byAge)
	chosen = append(chosen, hot[:min(len(hot), hotReads)]...)
	chosen = append(chosen, rest[:min(len(rest), max(readsInTick-len(chosen), 0))]...)
	return chosen, false
}

var kinds = map[string]semantics.Kind{
	semantics.QueueKind.String():        semantics.QueueKind,
	semantics.TopicKind.String():        semantics.TopicKind,
	semantics.SubscriptionKind.String(): semantics.SubscriptionKind,
}

// take takes over the counts of an entity; nil: it is gone, as the next list shows. The caller holds mu.
func (w *watch) take(e *entity, n *semantics.Runtime, now time.Time) {
	if n == nil {
		e.readAt = now
		return
	}
	w.note(e, n, now)
}

// note takes over the counts of an entity. The caller holds mu.
func (w *watch) note(e *entity, n *semantics.Runtime, now time.Time) {
	n.Partitions = nil
	before := e.row
	switch span := now.Sub(e.ratedAt); {
	case e.readAt.IsZero():
		e.leftAt, e.rated, e.ratedAt = now, *n, now
	case span >= shortestRate:
		e.rates = ratesBetween(&e.rated, n, span.Seconds())
		e.rated, e.ratedAt = *n, now
	}
	if e.Out > 0 {
		e.leftAt = now
	}
	e.runtime, e.readAt = *n, now
	e.count(n)
	e.history.note(n, now, w.latencyOf(e))
	e.Warnings = warningsOf(&e.row, n, &e.history, e.leftAt, now)
	if reflect.DeepEqual(before, e.row) {
		return
	}
	e.version = w.version + 1
	if before.IsRead {
		e.changedAt = now
	}
}

// publish ends a tick: it samples the totals, and wakes the pages.
func (w *watch) publish() {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if w.isListed && now.Sub(w.totals.readAt) >= sampleSpacing/2 {
		w.totals.readAt = now
		w.totals.add(w.total(now))
	}
	w.version++
	close(w.changed)
	w.changed = make(chan struct{})
}

// total sums up the entities. The caller holds mu. What a topic gets is not added, because its subscriptions get it.
func (w *watch) total(now time.Time) sample {
	s := sample{at: now.Unix(), waits: noTimes, takes: noTimes}
	for _, e := range w.entities {
		one := sampleOf(&e.runtime, e.rates, now)
		s.available, s.locked, s.deferred = s.available+one.available, s.locked+one.locked, s.deferred+one.deferred
		s.scheduled, s.dead = s.scheduled+one.scheduled, s.dead+one.dead
		s.age = max(s.age, one.age)
		if e.Kind != semantics.TopicKind.String() {
			s.in, s.out, s.rise = s.in+one.in, s.out+one.out, s.rise+one.rise
		}
	}
	return s
}
