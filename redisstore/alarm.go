package redisstore

import (
	"context"
	"slices"
	"time"
)

// dueNow is an alarm that has come.
const dueNow = 1

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
		if _, err := s.run(ctx, "set_alarm", s.names, args...); err != nil {
			return
		}
	}
	s.wakeSweeper()
}

// wakeSweeper makes Sweep look for alarms: there may be one that is earlier than it knows.
func (s *Store) wakeSweeper() {
	select {
	case s.alarmed <- struct{}{}:
	default:
	}
}

// moveAlarm puts an alarm off that was seen to, unless it was set once more meanwhile; 0 takes it away.
func (s *Store) moveAlarm(ctx context.Context, name string, taken, at int64) error {
	_, err := s.run(ctx, "move_alarm", s.names, name, taken, at)
	return err
}

// takeAlarms takes up to limit entities that a sweeper is to come to now, so that no other one comes to them until an
// instant (ms). next is in how long it is time again.
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
