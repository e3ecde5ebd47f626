package redisstore

import (
	"context"
	"sync"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

const (
	// maxSweepPause is the longest time between two looks for alarms. It bounds how late an alarm is processed that
	// another sidecar set just before it crashed.
	maxSweepPause = 5 * time.Second
	// sweepPatience is how long after its alarm an entity is processed at the latest, so that what becomes due in
	// between is done together.
	sweepPatience = 50 * time.Millisecond
	// takenFor is the lease of a sweeper on the entity that it processes. The sweeper renews it.
	takenFor = 2 * time.Second

	sweepEntities = 16 // at the same time: one that forwards takes a number of round trips
	sweepPause    = time.Second
)

// oldWholeSweep is the name under which sidecars of earlier versions set an alarm for the look at all entities. No
// entity has an empty name.
const oldWholeSweep = ""

// Sweep implements semantics.Sweeper. Any number of sidecars sweep at the same time; the one that takes the alarm of an
// entity processes it. What fails is tried again when the lease on the alarm ends. Sweep also looks at all entities
// once a minute.
func (s *Store) Sweep(ctx context.Context, upkeep semantics.Upkeep) {
	s.holdRemovals()
	w := s.newSweeper(upkeep, s.options.UpkeepFailed)
	var loops sync.WaitGroup
	for _, registry := range s.registries {
		loops.Go(func() { w.lookAtAll(ctx, registry) })
		loops.Go(func() { w.sweep(ctx, registry) })
	}
	loops.Wait()
	w.work.Wait()
}

// sweeper is the work of one Sweep. It processes a bounded number of entities at the same time, so a slow one does not
// delay the others.
type sweeper struct {
	*Store
	upkeep   semantics.Upkeep
	report   func(entity string, err error) // may be nil
	failures failures                       // of entities
	slots    chan struct{}                  // has an element for each entity at work
	unwell   *unwell                        // servers that did not answer
	work     sync.WaitGroup

	mu   sync.Mutex
	busy map[string]int64 // entities at work, by until when one was taken again meanwhile, 0 = it was not
}

func (s *Store) newSweeper(upkeep semantics.Upkeep, report func(entity string, err error)) *sweeper {
	return &sweeper{
		Store:  s,
		upkeep: upkeep,
		report: report,
		slots:  make(chan struct{}, sweepEntities),
		unwell: newUnwell(),
		busy:   map[string]int64{},
	}
}

// sweep processes the entities of a registry when they are due.
func (w *sweeper) sweep(ctx context.Context, registry *registry) {
	ctx = w.unwell.sparing(ctx)
	var failed failures // of this registry, which another one that works does not end
	most := sweepEntities
	for ctx.Err() == nil {
		_, wait, err := w.startDue(ctx, registry, most)
		if err != nil {
			w.noteFailureIn(ctx, &failed, "", err)
			wait, most = sweepPause, 1 // while it hangs it holds as many places
		} else {
			failed.end("")
			most = sweepEntities
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-registry.alarmed:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// startDue begins work on the entities of a registry that are due now, taking up to most at a time. It blocks only
// until all of them are at work, and returns how many they are and how long none will be due.
func (w *sweeper) startDue(
	ctx context.Context, registry *registry, most int,
) (started int, next time.Duration, err error) {
	for {
		free := w.claim(ctx, most)
		if free == 0 {
			return started, 0, semantics.CancelledBy(ctx)
		}
		names, until, next, err := w.takeAlarms(ctx, registry, free)
		for range free - len(names) {
			<-w.slots
		}
		for _, name := range names {
			w.start(ctx, name, until)
		}
		started += len(names)
		if err != nil || len(names) < free {
			return started, next, err
		}
	}
}

// claim takes all free slots up to most, at least one, for which it blocks; none when ctx ends.
func (w *sweeper) claim(ctx context.Context, most int) int {
	select {
	case w.slots <- struct{}{}:
	case <-ctx.Done():
		return 0
	}
	for n := 1; n < most; n++ {
		select {
		case w.slots <- struct{}{}:
		default:
			return n
		}
	}
	return most
}

// start processes an entity in a slot of its own. If it is at work already, it is processed again afterwards.
func (w *sweeper) start(ctx context.Context, name string, until int64) {
	w.mu.Lock()
	_, isBusy := w.busy[name]
	if isBusy {
		w.busy[name] = until
	} else {
		w.busy[name] = 0
	}
	w.mu.Unlock()
	if isBusy {
		<-w.slots
		return
	}
	w.work.Go(func() {
		defer func() { <-w.slots }()
		for until != 0 {
			w.process(ctx, name, until)
			until = w.takenAgain(name)
		}
	})
}

// takenAgain returns until when an entity was taken again while it was at work; 0 ends the work.
func (w *sweeper) takenAgain(name string) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	until := w.busy[name]
	if until == 0 {
		delete(w.busy, name)
	} else {
		w.busy[name] = 0
	}
	return until
}

// process does what is due on one entity and moves its alarm. After an outage, which it reports, and at the end of ctx
// the alarm stays, and is due again when the lease ends.
func (w *sweeper) process(ctx context.Context, name string, until int64) {
	if name == oldWholeSweep {
		_ = w.moveAlarm(ctx, name, until, 0)
		return
	}
	t := &taken{name: name, until: until, renewed: time.Now()}
	done, err := w.sweepEntity(ctx, t)
	due := t.nextAlarm(done)
	next := due
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		pause := w.noteFailure(ctx, name, err)
		if isOutage(err) {
			return
		}
		next = t.after(pause)
		if done.after > 0 { // its messages could not be activated or forwarded, but there is more to do
			next = min(next, due)
		}
	case done.rest > 0:
		next = t.after(done.rest)
		if done.after > 0 {
			next = min(next, due)
		}
	case done.forwards:
		next = dueNow
	case next > 0 && done.after < sweepPatience.Milliseconds():
		next += sweepPatience.Milliseconds() - done.after
	}
	if err == nil && done.rest == 0 {
		w.failures.end(name)
	}
	if w.moveAlarm(ctx, name, t.until, next) == nil && next > 0 {
		w.registryOf(name).wakeSweeper()
	}
}

// noteFailure reports what failed, each cause once, and returns how long not to process the entity. It does not report
// an outage, or messages that wait for their destination, which are not faults of the entity.
func (w *sweeper) noteFailure(ctx context.Context, name string, err error) time.Duration {
	return w.noteFailureIn(ctx, &w.failures, name, err)
}

func (w *sweeper) noteFailureIn(ctx context.Context, failed *failures, name string, err error) time.Duration {
	if ctx.Err() != nil {
		return 0
	}
	if isOutage(err) {
		w.holdRemovals()
		return 0
	}
	pause, isNew := failed.add(name, err)
	if isNew && isFault(err) && w.report != nil {
		w.report(name, err)
	}
	return pause
}

func isOutage(err error) bool { return semantics.CodeOf(err) == semantics.StoreUnavailable }

// isFault reports whether an operator must repair something, such as a key of the wrong type or a missing payload key.
func isFault(err error) bool {
	code := semantics.CodeOf(err)
	return code == semantics.Internal || code == semantics.PayloadKeyMissing
}
