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

// setAlarms makes a sweeper process entities when they are due. It never fails: without the alarm, the next script on
// an entity does what is due, or the next look at all entities.
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
		if _, err := s.run(ctx, "set_alarm", s.names, args...); err != nil {
			return
		}
	}
	s.wakeSweeper()
}

// wakeSweeper makes Sweep look for alarms: one may be earlier than the one it waits for.
func (s *Store) wakeSweeper() {
	select {
	case s.alarmed <- struct{}{}:
	default:
	}
}

// moveAlarm moves the alarm of an entity that was processed to a later instant (ms), unless it was set again meanwhile;
// 0 removes it.
func (s *Store) moveAlarm(ctx context.Context, name string, taken, at int64) error {
	_, err := s.run(ctx, "move_alarm", s.names, name, taken, at)
	return err
}

// takeAlarms takes up to limit entities that are due, so that no other sweeper processes them until an instant (ms).
// next is how long to wait before the next call.
func (s *Store) takeAlarms(
	ctx context.Context, limit int,
) (names []string, until int64, next time.Duration, err error) {
	r, err := s.run(ctx, "take_alarms", s.names, s.now(), takenFor.Milliseconds(), limit)
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
