package redisstore_test

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
)

// keysOf gives the parts of a queue's keys that exist.
func (s *sessions) keysOf() []string {
	s.t.Helper()
	keys, err := redistest.Left(s.t.Context(), s.raw, s.key("*"))
	s.fails("keys", err)
	for i, key := range keys {
		keys[i] = key[len(s.key("")):]
	}
	slices.Sort(keys)
	return keys
}

// memory is what Redis needs for all keys of the queue.
func (s *sessions) memory() (bytes int64) {
	s.t.Helper()
	for _, part := range s.keysOf() {
		used, err := s.raw.MemoryUsage(s.t.Context(), s.key(part), 0).Result()
		s.fails("memory", err)
		bytes += used
	}
	return bytes
}

// inParallel does something for each of n sessions, several at a time.
func (s *sessions) inParallel(n int, do func(id string)) {
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := worker; i < n; i += 8 {
				do(fmt.Sprintf("session-%04d", i))
			}
		})
	}
	all.Wait()
}

// A thousand sessions need no more keys than one. When each is used up, whatever it went through, nothing is left of it
// but its last number, and a queue that is deleted leaves nothing (I14).
func TestKeysOfAThousandSessions(t *testing.T) {
	t.Parallel()
	const n = 1000
	s := openSessions(t, func(o *semantics.Options) {
		o.LockDuration, o.SessionOnDeadLetter, o.SessionStateTTL = time.Minute, semantics.BlockSession, time.Hour
	})
	ctx := t.Context()
	s.inParallel(n, func(id string) {
		later, short := part(id, "later"), part(id, "short")
		later.ScheduledAt, short.TimeToLive = s.clock.Now().Add(time.Minute), ofMinutes(1)
		s.send(t, part(id, "1"), part(id, "2"), part(id, "3"), short, later)
		source := s.accept(id)
		got := s.receiveIn(source, 3)
		s.settle(s.Complete(ctx, source, tokensOf(got[:1])))
		s.settle(s.Defer(ctx, source, tokensOf(got[1:2]), nil))
		s.settle(s.Abandon(ctx, source, tokensOf(got[2:3]), semantics.AbandonOptions{Delay: ofMinutes(1)}))
		s.setState(source, []byte(id))
	})
	s.audit()
	if keys := s.keysOf(); len(keys) > len(allKeys) {
		t.Errorf("%d sessions have the keys %v", n, keys)
	}
	s.clock.Advance(time.Minute) // locks and delays end, some messages expire, others are due
	s.await(func(r semantics.Runtime) bool { return r.Scheduled+r.LockedSessions+r.Delayed == 0 })
	s.inParallel(n, func(id string) {
		source := s.accept(id)
		deferred, err := s.ReceiveByNumber(ctx, source, semantics.Deferred, numbersDeferred(s, id))
		s.fails("receive by number", err)
		got := s.receiveIn(source, 9)
		s.settle(s.DeadLetter(ctx, source, tokensOf(got[:1]), semantics.DeadLetterTexts{}, nil)) // which blocks it
		s.settle(s.Complete(ctx, source, append(tokensOf(got[1:]), tokensOf(deferred)...)))
		s.fails("unblock", s.UnblockSession(ctx, "orders", id))
		s.closes(source)
	})
	for got := s.receiveIn(deadOrders, 250); len(got) > 0; got = s.receiveIn(deadOrders, 250) {
		s.settle(s.Complete(ctx, deadOrders, tokensOf(got)))
	}
	s.audit()
	s.clock.Advance(time.Hour)
	s.await(func(r semantics.Runtime) bool { return r.SizeInBytes == 0 }) // the states are gone
	s.audit()
	want := []string{"dead_log", "entity", "idle_sessions", "log", "scheduled", "sessions"} // the logs are empty
	if keys := s.keysOf(); !slices.Equal(keys, want) {
		t.Errorf("the keys %v are left, want %v", keys, want)
	}
	if known, idle := s.raw.HLen(ctx, s.key("sessions")).Val(), s.raw.ZCard(ctx, s.key("idle_sessions")).Val(); known != n || idle != n {
		t.Errorf("%d sessions are known and %d idle, want %d", known, idle, n)
	}
	if used := s.memory(); used > n*300 {
		t.Errorf("%d bytes are left, want at most 300 a session", used)
	}
	s.fails("delete", s.DeleteEntity(ctx, semantics.QueueKind, "orders"))
	if keys := s.keysOf(); len(keys) > 0 {
		t.Errorf("the deleted queue leaves %v", keys)
	}
}

// await looks at the queue, each look carrying out a part of what is due, until it is as it should be.
func (s *sessions) await(is func(semantics.Runtime) bool) {
	s.t.Helper()
	for range 1000 {
		counts, err := s.Runtime(s.t.Context(), semantics.QueueKind, "orders")
		s.fails("counts", err)
		if is(counts) {
			return
		}
	}
	s.t.Fatal("it never is")
}

var deadOrders = semantics.Source{Path: "orders", SubQueue: semantics.DeadLetterQueue}

func numbersDeferred(s *sessions, id string) []int64 {
	s.t.Helper()
	rows, err := s.Peek(s.t.Context(), semantics.Source{Path: "orders", Session: id}, 0, 9, semantics.ShowDeferred)
	s.fails("peek", err)
	var numbers []int64
	for _, row := range rows {
		numbers = append(numbers, row.SequenceNumber)
	}
	return numbers
}

// A session that never had a message leaves nothing when it is closed, or its lock ends.
func TestSessionsWithoutMessages(t *testing.T) {
	t.Parallel()
	s := openSessions(t)
	empty := s.keysOf()
	var held []semantics.Source
	for i := range 100 {
		held = append(held, s.accept(fmt.Sprint(i)))
	}
	for _, source := range held[:50] {
		s.setState(source, []byte("note"))
		s.setState(source, nil)
		s.closes(source)
	}
	s.clock.Advance(time.Minute)
	if _, err := s.Runtime(t.Context(), semantics.QueueKind, "orders"); err != nil {
		t.Fatal(err)
	}
	s.audit()
	if keys := s.keysOf(); !slices.Equal(keys, empty) {
		t.Errorf("%v are left, want %v", keys, empty)
	}
	fields := slices.Sorted(maps.Keys(s.raw.HGetAll(t.Context(), s.key("entity")).Val()))
	if slices.Contains(fields, "alarm_ms") {
		t.Errorf("the alarm is set, though nothing is due: %v", fields)
	}
}
