package redisstore

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// taken is an entity whose alarm a sweeper has taken.
type taken struct {
	name    string
	until   int64 // the instant to which taking set the alarm (ms)
	renewed time.Time
}

// after returns the instant (ms) that is the given time after the alarm was taken.
func (t *taken) after(d time.Duration) int64 { return t.until + (d - takenFor).Milliseconds() }

// keep extends the lease on an entity until ctx ends.
func (s *Store) keep(ctx context.Context, t *taken) {
	elapsed := time.Since(t.renewed)
	if elapsed < takenFor/2 {
		return
	}
	until := t.until + elapsed.Milliseconds()
	if s.moveAlarm(ctx, t.name, t.until, until) == nil {
		t.until, t.renewed = until, time.Now()
	}
}

// nextAlarm returns when something will be due on an entity by the clock of its registry, which may be that of another
// server of a cluster. An entity whose registry is ahead would else be due again and again, one whose registry is
// behind would be late.
func (t *taken) nextAlarm(done sweptEntity) int64 {
	registryNow, elapsed := t.after(0), time.Since(t.renewed).Milliseconds()
	offset := done.now - registryNow
	if done.after == 0 || done.now == 0 || 0 <= offset && offset <= elapsed+mostClockOffset.Milliseconds() {
		return done.next // the clocks may be the same
	}
	return registryNow + done.after
}

// sweptEntity is how an entity was left.
type sweptEntity struct {
	found    bool
	isTopic  bool
	isUnused bool
	isRecord bool          // of an entity with several partitions
	now      int64         // by the clock of its server, 0 if it is not known
	next     int64         // when something will be due, by the same clock, 0 for never
	after    int64         // how many ms that is from now
	forwards bool          // there is more to forward at once
	rest     time.Duration // it may not be processed for so long: it failed, or may not be removed yet

	toForward []semantics.SubQueue
}

// sweepEntity does what is due on one entity, slice by slice so that others get their turn, and one turn of what it
// forwards. An error of the latter, or of an activation, leaves the result filled.
func (w *sweeper) sweepEntity(ctx context.Context, t *taken) (sweptEntity, error) {
	for hasForwarded := false; ; w.keep(ctx, t) {
		done, err := w.sweepSlice(ctx, t.name)
		isDue := done.next > 0 && done.after == 0
		switch {
		case err != nil, !done.found:
			return done, err
		case isDue && done.isRecord:
			return w.removeUnusedWhole(ctx, t.name)
		case isDue && done.isUnused:
			if !w.mayRemove() {
				done.rest = sweepPause
				return done, nil
			}
			next, again, err := w.removeUnused(ctx, t.name, done.isTopic)
			if again {
				continue
			}
			return sweptEntity{
				found:   true,
				isTopic: done.isTopic,
				next:    next,
				after:   sweepPatience.Milliseconds(),
			}, err // if any, it is far
		case isDue && !done.isTopic:
		case !isDue && (len(done.toForward) == 0 || hasForwarded):
			done.forwards = len(done.toForward) > 0
			return done, nil
		default:
			if done.rest = w.failures.pause(t.name); done.rest > 0 {
				return done, nil
			}
			if isDue {
				err = w.upkeep.ActivateDue(ctx, t.name)
			} else {
				hasForwarded = true
				err = forward(ctx, w.upkeep, t.name, done.toForward)
			}
		}
		if err != nil {
			return done, err
		}
		if ctx.Err() != nil {
			return sweptEntity{}, semantics.CancelledBy(ctx)
		}
	}
}

// forward does one turn of what an entity forwards. A failure of one side does not stop the other.
func forward(ctx context.Context, upkeep semantics.Upkeep, name string, sides []semantics.SubQueue) error {
	failures := make([]error, len(sides))
	for i, side := range sides {
		source := semantics.Source{Path: name, SubQueue: side}
		if path, is := strings.CutSuffix(name, transfersSuffix); is {
			source = semantics.Source{Path: path, SubQueue: semantics.TransferDeadLetterQueue}
		}
		failures[i] = upkeep.Forward(ctx, source)
	}
	return cmp.Or(failures...)
}

// sweepSlice does a slice of what is due on one entity. Of a partition, options decide what that is: whether expired
// messages become dead letters. One without a record is processed as it is, until it is deleted or has one again.
func (s *Store) sweepSlice(ctx context.Context, name string) (sweptEntity, error) {
	sweep := func(ctx context.Context) (*reply, error) {
		return s.run(ctx, "sweep", s.keys(name), s.now(), flag(s.options.LazyExpiry))
	}
	r, err := sweep(ctx)
	if semantics.CodeOf(err) == semantics.EntityNotFound {
		r, err = sweep(anyHistory(ctx))
	}
	if err != nil {
		return sweptEntity{}, err
	}
	switch r.status {
	case "OK":
	case "RECORD":
		done := sweptEntity{found: true, isRecord: true, next: r.number(), after: r.number()}
		done.now = done.next - done.after
		return done, r.failure()
	case "SUSPENDED": // a removal of its entity will end
		return sweptEntity{found: true, rest: sweepPause}, nil
	default:
		return sweptEntity{}, nil
	}
	s.readNotifications(name, r) // the sweep itself moves the alarm
	done := sweptEntity{
		found:    true,
		next:     r.number(),
		after:    r.number(),
		isTopic:  r.number() == 1,
		isUnused: r.number() == 1,
	}
	if done.after > 0 {
		done.now = done.next - done.after
	}
	letters := r.text()
	if strings.Contains(letters, "m") {
		done.toForward = append(done.toForward, semantics.MainQueue)
	}
	if strings.Contains(letters, "d") {
		done.toForward = append(done.toForward, semantics.DeadLetterQueue)
	}
	return done, r.failure()
}

// alarm returns the alarm that an entity should have. What is due is so by any clock.
func (e sweptEntity) alarm(name string) []alarm {
	switch {
	case len(e.toForward) > 0, e.next > 0 && e.after == 0:
		return []alarm{{name: name, at: dueNow}}
	case e.next > 0:
		return []alarm{{name: name, at: e.next}}
	default:
		return nil
	}
}
