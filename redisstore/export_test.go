package redisstore

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/semantics"
)

// SweepOnce does once what Sweep does all the time.
func (s *Store) SweepOnce(ctx context.Context, upkeep semantics.Upkeep) error {
	failed := make(chan error, 1)
	w := s.newSweeper(upkeep, func(_ string, err error) {
		select {
		case failed <- err:
		default:
		}
	})
	for {
		started := 0
		var err error
		for _, registry := range s.registries {
			some, _, failure := w.startDue(ctx, registry, sweepEntities)
			started, err = started+some, errors.Join(err, failure)
		}
		w.work.Wait()
		select {
		case err = <-failed:
		default:
		}
		if err != nil || started == 0 {
			return err
		}
	}
}

// MaxUnanswered is how many sessions with lost answers a Store keeps.
const MaxUnanswered = maxUnanswered

// Unanswered returns of how many sessions answers were lost.
func (s *Store) Unanswered() int {
	s.unanswered.mu.Lock()
	defer s.unanswered.mu.Unlock()
	return len(s.unanswered.locks)
}

// NoteUnanswered notes that answers with locks were lost in a session.
func (s *Store) NoteUnanswered(source semantics.Source, locks ...semantics.LockToken) {
	for _, token := range locks {
		l, _ := lockOf(token)
		s.noteReceive(turnCalls{{source: source, answer: answer{limit: 1}}}, l.nonce)
	}
}

// NoteLock notes that the release of a lock of a session got no answer.
func (s *Store) NoteLock(source semantics.Source, token semantics.LockToken) {
	s.unanswered.note(sessionToken(source), lockText(token))
}

// RemovesFrom is since when the sweeper may remove what is unused. It must not run.
func (s *Store) RemovesFrom() time.Time { return time.Unix(0, s.removesFrom.Load()) }

// LookOnce looks at all entities if it is time and no other sidecar does, and gives when to ask again. report is as
// Options.UpkeepFailed.
func (s *Store) LookOnce(ctx context.Context, upkeep semantics.Upkeep, report func(entity string, err error)) (time.Duration, error) {
	w, wait := s.newSweeper(upkeep, report), time.Duration(0)
	for _, registry := range s.registries {
		next, err := w.lookIfDue(ctx, registry)
		if err != nil {
			return next, err
		}
		wait = max(wait, next)
	}
	return wait, nil
}

// LearnAtMost bounds what the Store keeps of what it learns about queues, and about subscriptions.
func (s *Store) LearnAtMost(n int) { s.keyed.most, s.levels.most = n, n }

// Learnt tells how many queues and subscriptions the Store knows something about.
func (s *Store) Learnt() (queues, subscriptions int) { return s.keyed.count(), s.levels.count() }

// TokenOfSize gives the token of the same lock and another size, which only somebody who knows how tokens are made can
// make.
func TokenOfSize(token semantics.LockToken, size int64) semantics.LockToken {
	l, _ := lockOf(token)
	l.size = size
	return l.token()
}

// CountReads counts in n the commands that the Store sends beside scripts and its subscription.
func (s *Store) CountReads(n *atomic.Int64) { s.servers.(oneServer).AddHook(readCounter{n}) }

type readCounter struct{ n *atomic.Int64 }

func (readCounter) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c readCounter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if !strings.HasPrefix(cmd.Name(), "eval") {
			c.n.Add(1)
		}
		return next(ctx, cmd)
	}
}

func (c readCounter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.n.Add(int64(len(cmds)))
		return next(ctx, cmds)
	}
}

// SetRegistryClock makes the clock of the servers that have alarms differ from that of the entities. The Store must have
// a clock of the test, and one server.
func (s *Store) SetRegistryClock(ahead time.Duration) {
	s.servers.(oneServer).AddHook(registryClock{ahead})
}

type registryClock struct{ ahead time.Duration }

func (registryClock) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook changes the instant that a script with the key of a registry gets.
func (c registryClock) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		args := cmd.Args()
		if len(args) < 5 || !strings.HasPrefix(cmd.Name(), "eval") {
			return next(ctx, cmd)
		}
		key, _ := args[3].(string)
		text, _ := args[4].(string)
		now, err := strconv.ParseInt(text, 10, 64)
		isOfRegistry := strings.HasSuffix(key, "}:alarms") || strings.HasSuffix(key, "}:whole_sweep")
		if isOfRegistry && err == nil {
			args[4] = strconv.FormatInt(now+c.ahead.Milliseconds(), 10)
			defer func() { args[4] = text }() // a script that Redis does not know is sent again
		}
		return next(ctx, cmd)
	}
}

func (registryClock) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// CountRoundTrips counts in n how often the Store sends something and waits for the answer.
func (s *Store) CountRoundTrips(n *atomic.Int64) { s.servers.(oneServer).AddHook(tripCounter{n}) }

type tripCounter struct{ n *atomic.Int64 }

func (tripCounter) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c tripCounter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.n.Add(1)
		return next(ctx, cmd)
	}
}

func (c tripCounter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.n.Add(1)
		return next(ctx, cmds)
	}
}
