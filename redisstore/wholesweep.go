package redisstore

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/semantics"
)

const (
	// wholeSweep is the pause between two looks at all entities.
	wholeSweep = time.Minute
	// wholeLease is the lease of a sidecar on the look at all entities.
	wholeLease = 10 * time.Second
	// keepWhole is how often it renews the lease.
	keepWhole = wholeLease / 5
)

// errLeaseLost means that another sidecar continues the look at all entities.
var errLeaseLost = errors.New("another sidecar has the lease")

// lookAtAll looks at every entity of a registry once a minute, and after Redis was restarted or replaced, in one
// sidecar at a time. It finds alarms that were lost, because a sidecar crashed between changing an entity and setting
// its alarm or because Redis forgot, and deletions that did not end. It does a bounded slice of work on each entity and
// sets an alarm for the rest.
func (w *sweeper) lookAtAll(ctx context.Context, registry *registry) {
	ctx = w.unwell.sparing(ctx)
	var failed failures
	for ctx.Err() == nil {
		wait, err := w.lookIfDue(ctx, registry)
		switch {
		case errors.Is(err, errLeaseLost):
			wait = wholeLease
		case err != nil:
			w.noteFailureIn(ctx, &failed, "", err)
			wait = sweepPause
		default:
			failed.end("")
		}
		select {
		case <-time.After(wait):
		case <-registry.connected:
		case <-ctx.Done():
		}
	}
}

// lookIfDue looks at all entities of a registry if it is time and no other sidecar does, and returns when to ask again.
func (w *sweeper) lookIfDue(ctx context.Context, registry *registry) (time.Duration, error) {
	r, err := w.run(
		ctx, "lease_sweep", registry, w.now(), w.sidecar, wholeLease.Milliseconds(), wholeSweep.Milliseconds(),
	)
	if err != nil {
		return 0, err
	}
	if r.status == "WAIT" {
		return time.Duration(r.number()) * time.Millisecond, r.failure()
	}
	look := &wholeLook{sweeper: w, registry: registry, after: r.text(), kept: time.Now()}
	if err := r.failure(); err != nil {
		return 0, err
	}
	return wholeSweep, look.goOn(ctx)
}

// wholeLook is one look at all entities, or the rest of one that another sidecar began.
type wholeLook struct {
	*sweeper

	registry *registry
	after    string // the entity looked at last
	alarms   []alarm
	kept     time.Time
}

func (l *wholeLook) goOn(ctx context.Context) error {
	for {
		names, err := l.listNamesIn(ctx, l.registry, l.after, semantics.MaxPageSize)
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := l.named(ctx, name); err != nil {
				return err
			}
			l.after = name
		}
		if len(names) < semantics.MaxPageSize {
			return l.advance(ctx, wholeSweep)
		}
	}
}

// named looks at an entity and its subscriptions. A failure of one does not stop the others.
func (l *wholeLook) named(ctx context.Context, name string) error {
	done, err := l.whole(ctx, name)
	if err != nil {
		return err
	}
	if !done.found {
		return l.pass(ctx, name, l.forgetName(ctx, name))
	}
	if semantics.IsPartition(name) {
		if err := l.pass(ctx, name, l.lookAtPartition(ctx, name, done.isTopic)); err != nil {
			return err
		}
	}
	if !done.isTopic {
		return nil
	}
	if err := l.pass(ctx, name, l.releaseLeft(ctx, name, releasesOfLook)); err != nil {
		return err
	}
	found, err := l.presentRoster(ctx, name)
	if err != nil && semantics.CodeOf(err) != semantics.EntityNotFound {
		return l.pass(ctx, name, err)
	}
	for _, sub := range found.names {
		if _, err := l.whole(ctx, semantics.Fold(semantics.SubscriptionPath(name, sub))); err != nil {
			return err
		}
	}
	return nil
}

// whole looks at an entity and what beside looks at, and notes the alarms that it should have. An entity that fails
// counts as found.
func (l *wholeLook) whole(ctx context.Context, name string) (sweptEntity, error) {
	done, err := l.sweepSlice(ctx, name)
	if err == nil && done.found {
		l.alarms = append(l.alarms, done.alarm(name)...)
		err = l.beside(ctx, name)
	}
	if err != nil {
		done = sweptEntity{found: true}
	}
	return done, l.pass(ctx, name, err)
}

// beside looks at what few entities have: arrivals of transfers, and a transfer dead-letter queue.
func (l *wholeLook) beside(ctx context.Context, name string) error {
	keys := l.keys(name)
	found := redis.NewIntCmd(ctx, "exists", keys.key("transfers_entity"), keys.key("arrivals"))
	if err := l.redis(ctx).Process(ctx, found); err != nil {
		return storeError(err, false)
	}
	if found.Val() == 0 {
		return nil
	}
	if err := l.forgetArrivals(anyHistory(ctx), name); err != nil { // a partition may have no entity any more
		return err
	}
	letters, err := l.sweepSlice(ctx, name+transfersSuffix)
	l.alarms = append(l.alarms, letters.alarm(name+transfersSuffix)...)
	return err
}

// pass continues with the next entity, whether this one failed or not, unless the server of the registry is unreachable
// or the lease is lost.
func (l *wholeLook) pass(ctx context.Context, name string, err error) error {
	switch {
	case ctx.Err() != nil:
		return semantics.CancelledBy(ctx)
	// What failed for a partition may have been its record, on another server.
	case isOutage(err) && !semantics.IsPartition(name) && l.isAtRegistry(ctx, name):
		return err
	case err != nil:
		l.noteFailure(ctx, name, err)
	}
	if len(l.alarms) >= mostAlarms || time.Since(l.kept) >= keepWhole {
		return l.advance(ctx, 0)
	}
	return nil
}

// isAtRegistry reports whether an entity has the server of the registry, or may have it.
func (l *wholeLook) isAtRegistry(ctx context.Context, name string) bool {
	here, err := l.servers.of(ctx, l.registry.key("names"))
	there, err2 := l.servers.of(ctx, l.keys(name).key("entity"))
	return err != nil || err2 != nil || here == there
}

// advance sets the alarms that were missing and notes how far the look has come. A pause means that it has ended.
func (l *wholeLook) advance(ctx context.Context, pause time.Duration) error {
	l.setAlarms(ctx, l.alarms...)
	l.alarms = l.alarms[:0]
	r, err := l.run(
		ctx, "advance_sweep", l.registry, l.now(), l.sidecar, wholeLease.Milliseconds(), l.after, pause.Milliseconds(),
	)
	switch {
	case err != nil:
		return err
	case r.status != "OK":
		return errLeaseLost
	}
	l.kept = time.Now()
	return nil
}
