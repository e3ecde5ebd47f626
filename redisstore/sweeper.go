package redisstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/semantics"
)

const (
	// maxSweepPause is the longest a sweeper sleeps without looking for alarms. It bounds how late is done what another
	// sidecar set an alarm for and then died.
	maxSweepPause = 2 * time.Second
	// sweepPatience is how long after its alarm an entity is seen to at the latest: what is due in between is done together.
	sweepPatience = 50 * time.Millisecond
	// takenFor is how long other sweepers pass an entity by that one is at work on.
	takenFor = 2 * time.Second
	// wholeSweep is how often every entity is looked at, whatever its alarm says.
	wholeSweep = time.Minute

	sweepEntities = 16 // taken at a time
	sweepPause    = time.Second
	retryPause    = time.Second // until what failed is tried again
)

// wholeName is the alarm of the look at all entities. No entity has an empty name.
const wholeName = ""

// dueNow is an alarm that is over.
const dueNow = 1

// noAlarm stands for the absence of an alarm where one is expected.
const noAlarm = -1

// Sweep implements semantics.Sweeper. Any number of sidecars sweep at the same time; an entity is done by the one that takes
// its alarm. What fails is tried again: the alarm comes back by itself.
func (s *Store) Sweep(ctx context.Context, upkeep semantics.Upkeep) {
	_ = s.moveAlarm(ctx, wholeName, noAlarm, 1) // unless other sidecars see to it; a failure shows below
	s.holdRemovals()
	for ctx.Err() == nil {
		wait, err := s.sweepOnce(ctx, upkeep)
		if err != nil {
			wait = sweepPause
			if semantics.CodeOf(err) == semantics.StoreUnavailable {
				s.holdRemovals()
			}
		}
		timer := time.NewTimer(min(wait, maxSweepPause))
		select {
		case <-timer.C:
		case <-s.alarmed:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// sweepOnce does what is due now and tells how long nothing will be.
func (s *Store) sweepOnce(ctx context.Context, upkeep semantics.Upkeep) (time.Duration, error) {
	for {
		r, err := s.run(ctx, "take_alarms", []string{s.names.alarms}, s.now(), takenFor.Milliseconds(), sweepEntities)
		if err != nil {
			return 0, err
		}
		after, until := r.number(), r.number()
		var taken []string
		for r.more() {
			taken = append(taken, r.text())
		}
		if err := r.failure(); err != nil {
			return 0, err
		}
		if err := s.sweepTaken(ctx, upkeep, taken, until); err != nil {
			return 0, err
		}
		switch {
		case len(taken) > 0: // there may be more, or new alarms meanwhile
		case after < 0:
			return maxSweepPause, nil
		default:
			return time.Duration(after) * time.Millisecond, nil
		}
	}
}

// sweepTaken sees to several entities at the same time: one that forwards takes a number of round trips, and many may do so at once.
func (s *Store) sweepTaken(ctx context.Context, upkeep semantics.Upkeep, names []string, taken int64) error {
	failures := make([]error, len(names))
	var work sync.WaitGroup
	for i, name := range names {
		work.Go(func() { failures[i] = s.sweepAlarm(ctx, upkeep, name, taken) })
	}
	work.Wait()
	return cmp.Or(failures...)
}

// sweepAlarm sees to one entity, or to all, and puts the alarm off.
func (s *Store) sweepAlarm(ctx context.Context, upkeep semantics.Upkeep, name string, taken int64) error {
	if name == wholeName {
		if err := s.sweepAll(ctx, upkeep); err != nil {
			return err
		}
		return s.moveAlarm(ctx, name, taken, taken+(wholeSweep-takenFor).Milliseconds())
	}
	done, err := s.sweepEntity(ctx, upkeep, name)
	if err != nil {
		return err
	}
	next := done.next
	switch {
	case done.failed:
		next = taken + (retryPause - takenFor).Milliseconds()
		if done.after > 0 {
			next = min(next, done.next)
		}
	case done.forwards:
		next = dueNow
	case next > 0 && done.after < sweepPatience.Milliseconds():
		next += sweepPatience.Milliseconds() - done.after
	}
	return s.moveAlarm(ctx, name, taken, next)
}

// sweptEntity is how an entity was left.
type sweptEntity struct {
	found    bool
	isTopic  bool
	isUnused bool
	next     int64 // when something will be due, 0 for never
	after    int64 // how many ms that is from now
	forwards bool  // there is more to forward at once
	// failed: its messages could not be activated or forwarded now, or it may not be removed yet, which is no reason to leave the others alone
	failed bool

	toForward []semantics.SubQueue
}

// sweepEntity does what is due on one entity, slice by slice so that others get their turn, and one turn of what it forwards.
func (s *Store) sweepEntity(ctx context.Context, upkeep semantics.Upkeep, name string) (sweptEntity, error) {
	for hasForwarded := false; ; {
		done, err := s.sweepSlice(ctx, name)
		isDue := done.next > 0 && done.after == 0
		switch {
		case err != nil, !done.found:
			return done, err
		case isDue && done.isUnused:
			if done.failed = !s.mayRemove(); done.failed {
				return done, nil
			}
			next, again, err := s.removeUnused(ctx, name, done.isTopic)
			if again {
				continue
			}
			return sweptEntity{found: true, isTopic: done.isTopic, next: next, after: sweepPatience.Milliseconds()}, err // if any, it is far
		case isDue && done.isTopic:
			err = upkeep.ActivateDue(ctx, name)
		case isDue:
		case len(done.toForward) == 0, hasForwarded:
			done.forwards = len(done.toForward) > 0
			return done, nil
		default:
			hasForwarded = true
			err = forward(ctx, upkeep, name, done.toForward)
		}
		if err != nil {
			done.failed = true
			return done, nil //nolint:nilerr // it comes back
		}
		if ctx.Err() != nil {
			return sweptEntity{}, cancelled(ctx)
		}
	}
}

// forward does one turn of what an entity forwards. What keeps one side from it need not keep the other.
func forward(ctx context.Context, upkeep semantics.Upkeep, name string, sides []semantics.SubQueue) error {
	failures := make([]error, len(sides))
	for i, side := range sides {
		failures[i] = upkeep.Forward(ctx, semantics.Source{Path: name, SubQueue: side})
	}
	return cmp.Or(failures...)
}

// sweepSlice does a slice of what is due on one entity.
func (s *Store) sweepSlice(ctx context.Context, name string) (sweptEntity, error) {
	r, err := s.run(ctx, "sweep", s.keys(name).all(), s.now(), flag(s.options.LazyExpiry))
	if err != nil || r.status != "OK" {
		return sweptEntity{}, err
	}
	s.readNews(name, r) // the sweep itself puts the alarm off
	done := sweptEntity{found: true, next: r.number(), after: r.number(), isTopic: r.number() == 1, isUnused: r.number() == 1}
	letters := r.text()
	if strings.Contains(letters, "m") {
		done.toForward = append(done.toForward, semantics.MainQueue)
	}
	if strings.Contains(letters, "d") {
		done.toForward = append(done.toForward, semantics.DeadLetterQueue)
	}
	return done, r.failure()
}

// sweepAll makes up for alarms that were lost, because a sidecar died between changing an entity and setting its alarm, and for
// deletions that were left halfway.
func (s *Store) sweepAll(ctx context.Context, upkeep semantics.Upkeep) error {
	after := ""
	for {
		names, err := s.listNames(ctx, after, semantics.MaxPageSize)
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := s.sweepNamed(ctx, upkeep, name); err != nil {
				return err
			}
		}
		if len(names) < semantics.MaxPageSize {
			return nil
		}
		after = names[len(names)-1]
	}
}

// sweepNamed sweeps an entity and its subscriptions.
func (s *Store) sweepNamed(ctx context.Context, upkeep semantics.Upkeep, name string) error {
	done, err := s.sweepWhole(ctx, upkeep, name)
	switch {
	case err != nil:
		return err
	case !done.found:
		return s.deleteLeft(ctx, name)
	}
	if !done.isTopic {
		return nil
	}
	found, err := s.presentRoster(ctx, name)
	if err != nil && semantics.CodeOf(err) != semantics.EntityNotFound {
		return err
	}
	for _, sub := range found.names {
		if _, err := s.sweepWhole(ctx, upkeep, semantics.Fold(semantics.SubscriptionPath(name, sub))); err != nil {
			return err
		}
	}
	return nil
}

// sweepWhole sweeps an entity with what forwarding has brought it, and sets the alarms that it should have.
func (s *Store) sweepWhole(ctx context.Context, upkeep semantics.Upkeep, name string) (sweptEntity, error) {
	done, err := s.sweepEntity(ctx, upkeep, name)
	if err != nil || !done.found {
		return done, err
	}
	s.setAlarms(ctx, done.alarm(name)...)
	var transfers, arrivals *redis.IntCmd // most entities have neither
	_, err = s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		transfers = p.Exists(ctx, s.keys(name).transfers().entity)
		arrivals = p.Exists(ctx, s.keys(name).arrivals)
		return nil
	})
	if err != nil {
		return done, storeError(err, false)
	}
	if arrivals.Val() > 0 {
		if err := s.forgetArrivals(ctx, name); err != nil {
			return done, err
		}
	}
	if transfers.Val() > 0 {
		letters, err := s.sweepEntity(ctx, upkeep, name+transfersSuffix)
		s.setAlarms(ctx, letters.alarm(name+transfersSuffix)...)
		return done, err
	}
	return done, nil
}

// alarm gives the alarm that an entity should have.
func (e sweptEntity) alarm(name string) []alarm {
	switch {
	case e.forwards, e.failed:
		return []alarm{{name: name, at: dueNow}}
	case e.next > 0:
		return []alarm{{name: name, at: e.next}}
	default:
		return nil
	}
}

// causes are why a message becomes a dead letter, by the letter the scripts use. An application's own reason stands in the
// message.
var causes = map[byte]string{
	'a': "Application", 'm': "MaxDeliveryCountExceeded", 't': "TTLExpiredException",
	'f': semantics.ReasonFilterFailed, 'h': semantics.ReasonHeaderSize, 's': semantics.ReasonNoSession, 'o': semantics.ReasonOverflow,
	'x': semantics.ReasonTooManyHops, 'n': semantics.ReasonDestinationNotFound, 'd': semantics.ReasonDestinationDisabled,
	'q': semantics.ReasonDestinationFull,
}

// heed reads the news of a reply (lua/lib/close_queue.lua) and does what they ask for.
func (s *Store) heed(ctx context.Context, path string, r *reply) {
	if at := s.readNews(path, r); at > 0 {
		s.setAlarms(ctx, alarm{name: semantics.Fold(path), at: at})
	}
}

// readNews gives the alarm that the script changed, 0 for none, and tells of the dead letters.
func (s *Store) readNews(path string, r *reply) int64 {
	alarm, letters, _ := strings.Cut(r.text(), " ")
	at, err := strconv.ParseInt(alarm, 10, 64)
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("script %s: news begin with %q: %w", r.script, alarm, err)
	}
	if letters == "" || s.options.DeadLettered == nil {
		return at
	}
	numbers := map[string][]int64{}
	for letter := range strings.SplitSeq(letters, " ") {
		last := len(letter) - 1
		if n, err := strconv.ParseInt(letter[:last], 10, 64); err == nil {
			numbers[causes[letter[last]]] = append(numbers[causes[letter[last]]], n)
		}
	}
	for cause, some := range numbers {
		s.options.DeadLettered(path, cause, some)
	}
	return at
}

// alarmTimeout bounds the setting of an alarm, which goes on when the caller's own call is over.
const alarmTimeout = time.Second

// alarm says by when a sweeper is to come to an entity.
type alarm struct {
	name string // folded path
	at   int64
}

// mostAlarms bounds the alarms that one script sets.
const mostAlarms = 500

// setAlarms sees to it that a sweeper comes to entities. A failure costs promptness only: whoever looks at an entity
// does what is due, and so does the next look at all entities.
func (s *Store) setAlarms(ctx context.Context, alarms ...alarm) {
	if len(alarms) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), alarmTimeout)
	defer cancel()
	for some := range slices.Chunk(alarms, mostAlarms) {
		var args []any
		for _, a := range some {
			args = append(args, a.name, a.at)
		}
		if _, err := s.run(ctx, "set_alarm", []string{s.names.alarms}, args...); err != nil {
			return
		}
	}
	select {
	case s.alarmed <- struct{}{}:
	default:
	}
}

func (s *Store) moveAlarm(ctx context.Context, name string, taken, at int64) error {
	_, err := s.run(ctx, "move_alarm", []string{s.names.alarms}, name, taken, at)
	return err
}
