package redisstore

import (
	"context"
	"slices"
	"time"
)

// dueNow is an alarm whose time has come.
const dueNow = 1

// alarmTimeout bounds the setting of an alarm, which continues after the caller's own call has ended.
const alarmTimeout = time.Second

// alarm is the instant (ms) by which a sweeper must process an entity.
type alarm struct {
	name string // folded path
	at   int64
}

// mostAlarms bounds the alarms that one script sets.
const mostAlarms = 500

// alarmPatience is how long an answer waits for the alarms that follow its script. Redis sets them within a fraction of
// it. One that has stopped to answer keeps no caller waiting: the effect of the script may be lost meanwhile.
const alarmPatience = 100 * time.Millisecond

// setAlarms makes a sweeper process entities when they are due. It never fails: without the alarm, the next script on
// an entity does what is due, or the next look at all entities. What takes long continues after it has returned.
func (s *Store) setAlarms(ctx context.Context, alarms ...alarm) {
	if len(alarms) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), alarmTimeout)
	if ctx.Value(pinned{s}) != nil { // its connections have one user at a time
		defer cancel()
		s.setAlarmsNow(ctx, alarms)
		return
	}
	set := make(chan struct{})
	s.alarming.Go(func() {
		defer close(set)
		defer cancel()
		s.setAlarmsNow(ctx, alarms)
	})
	late := time.NewTimer(alarmPatience)
	defer late.Stop()
	select {
	case <-set:
	case <-late.C:
	}
}

func (s *Store) setAlarmsNow(ctx context.Context, alarms []alarm) {
	args := map[*registry][]any{}
	for _, a := range alarms {
		registry := s.registryOf(a.name)
		args[registry] = append(args[registry], a.name, a.at)
	}
	for registry, all := range args {
		for some := range slices.Chunk(all, 2*mostAlarms) {
			if _, err := s.run(ctx, "set_alarm", registry, some...); err != nil {
				break
			}
			registry.wakeSweeper()
		}
	}
}

// moveAlarm moves the alarm of an entity that was processed to a later instant (ms), unless it was set again meanwhile;
// 0 removes it.
func (s *Store) moveAlarm(ctx context.Context, name string, taken, at int64) error {
	_, err := s.run(ctx, "move_alarm", s.registryOf(name), name, taken, at)
	return err
}

// takeAlarms takes up to limit entities of a registry that are due, so that no other sweeper processes them until an
// instant (ms). next is how long to wait before the next call.
func (s *Store) takeAlarms(
	ctx context.Context, from *registry, limit int,
) (names []string, until int64, next time.Duration, err error) {
	r, err := s.run(ctx, "take_alarms", from, s.now(), takenFor.Milliseconds(), limit)
	if err != nil {
		return nil, 0, 0, err
	}
	after, until := r.number(), r.number()
	for r.more() {
		names = append(names, r.text())
	}
	next = maxSweepPause
	if after >= 0 {
		next = min(next, time.Duration(after)*time.Millisecond)
	}
	return names, until, next, r.failure()
}
