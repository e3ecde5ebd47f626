package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sidebus/sidebus/semantics"
)

// Check implements semantics.Checker: it reads from INFO whether this Redis keeps what it is given, and loads the
// scripts into one that it has not seen before. It fails with PRECONDITION_FAILED for versions before 7.0, which lack
// script flags and a frozen script clock, and for eviction, which deletes messages. It warns of every setting with
// which messages can be lost.
//
// It blocks until Redis answers or ctx ends. The client checks a context only before it sends, so a check that waits
// for an answer continues when ctx ends, and the next Check joins it: a Redis that hangs gets one at a time.
func (s *Store) Check(ctx context.Context) (semantics.Health, error) {
	c := s.joinCheck(ctx)
	select {
	case <-c.done:
		return c.health, c.err
	case <-ctx.Done():
	}
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return semantics.Health{}, storeError(ctx.Err(), false)
	}
	e := unavailable(
		ctx.Err(), "Redis does not answer; nothing was changed",
	).With(semantics.DetailCause, causeUnreachable)
	e.RetryAfter = passing
	return semantics.Health{}, e
}

// check is one reading of INFO and what follows. Its result may be read when done is closed.
type check struct {
	done   chan struct{}
	health semantics.Health
	err    error
}

// joinCheck returns the check that is under way, or begins one.
func (s *Store) joinCheck(ctx context.Context) *check {
	s.checkMutex.Lock()
	defer s.checkMutex.Unlock()
	if s.checking != nil {
		return s.checking
	}
	c := &check{done: make(chan struct{})}
	s.checking = c
	go func() {
		c.health, c.err = s.check(context.WithoutCancel(ctx)) // the client's own timeouts end it
		s.checkMutex.Lock()
		s.checking = nil
		s.checkMutex.Unlock()
		close(c.done)
	}()
	return c
}

func (s *Store) check(ctx context.Context) (semantics.Health, error) {
	primaries, err := s.servers.primaries(ctx)
	if err != nil {
		return semantics.Health{}, unlisted(err)
	}
	asked := make([]*serverCheck, len(primaries))
	for i, server := range primaries {
		asked[i] = s.joinServerCheck(ctx, server)
	}
	awaitAnswers(asked)
	var health semantics.Health
	failures, hasWaitAOF := []error{}, true
	for i, one := range asked {
		if err := one.outcome(); err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", s.nameOf(primaries[i]), err))
			continue
		}
		hasWaitAOF = hasWaitAOF && knowsWaitAOF(one.facts)
		health.Store = fmt.Sprintf("%s %s at %s", product(one.facts), version(one.facts), s.servers.named())
		found := append(warnings(one.facts, one.settings), s.durabilityWarnings(one.facts, one.settings)...)
		for _, warning := range found {
			if !slices.Contains(health.Warnings, warning) {
				health.Warnings = append(health.Warnings, warning)
			}
		}
	}
	for _, err := range failures {
		// The others of a cluster go on. A server that is unfit would lose what it is given.
		if len(failures) == len(primaries) || semantics.CodeOf(err) == semantics.PreconditionFailed {
			return semantics.Health{}, errors.Unwrap(err)
		}
		health.Warnings = append(health.Warnings, fmt.Sprintf("a server of the cluster is not usable: %v", err))
	}
	s.hasWaitAOF.Store(hasWaitAOF)
	s.isFit.Store(true)
	return health, nil
}

func (s *Store) refuse(facts map[string]string) error {
	unfit := func(format string, args ...any) error {
		return semantics.Errorf(semantics.PreconditionFailed, format, args...)
	}
	if isSentinel(facts) {
		return errSentinel()
	}
	major, _, _ := strings.Cut(facts["redis_version"], ".")
	if n, err := strconv.Atoi(major); err != nil || n < 7 {
		return unfit("Redis %q is too old; Sidebus needs 7.0 or later", facts["redis_version"])
	}
	if facts["role"] == "slave" {
		return unavailable(nil, "this Redis is a replica and accepts no writes; point --store at the primary").
			With(semantics.DetailCause, "redis_readonly")
	}
	if p := facts["maxmemory_policy"]; p != "" && p != "noeviction" && !s.options.AllowEviction {
		return unfit(
			"Redis has maxmemory-policy %s and may delete messages; set it to noeviction, or accept the loss with --redis-allow-eviction",
			p,
		)
	}
	_, isCluster := s.servers.(*cluster)
	if facts["cluster_enabled"] == "1" && !isCluster {
		return unfit("this Redis is a cluster node; name the cluster as redis+cluster://host:port,host:port")
	}
	if facts["cluster_enabled"] == "0" && isCluster {
		return unfit("this Redis is not a cluster node; name it as redis://host:port")
	}
	return nil
}

// isSentinel reports whether a server, by its INFO, is a Sentinel, which keeps nothing.
func isSentinel(facts map[string]string) bool { return facts["redis_mode"] == "sentinel" }

func errSentinel() error {
	return semantics.Errorf(
		semantics.PreconditionFailed,
		"this server is a Sentinel; name its primary as redis+sentinel://host:26379,host:26379/mymaster",
	)
}

func warnings(facts, settings map[string]string) []string {
	var found []string
	fsync := settings[appendFsync]
	warn := func(text string) { found = append(found, text) }
	if p := facts["maxmemory_policy"]; p != "" && p != "noeviction" {
		warn("maxmemory-policy is " + p + ": Redis may delete messages when memory runs out")
	}
	switch {
	case facts["aof_enabled"] != "1":
		warn("the append-only file is off: a Redis restart loses every message since the last snapshot")
	case fsync == "everysec":
		warn("appendfsync is everysec: a crash of the Redis host loses up to about a second of messages")
	case fsync == "no":
		warn("appendfsync is no: a crash of the Redis host loses what the system had not written, often 30 seconds")
	case fsync == "":
		warn("appendfsync cannot be read: the loss window of a host crash is unknown")
	}
	if facts["aof_enabled"] == "1" && facts["aof_last_write_status"] != "ok" {
		warn("the last write to the append-only file failed: messages are not safe on disk")
	}
	return found
}

func product(facts map[string]string) string {
	if facts["valkey_version"] != "" {
		return "valkey"
	}
	return "redis"
}

func version(facts map[string]string) string {
	return or(facts["valkey_version"], facts["redis_version"])
}

// parseInfo reads the "name:value" lines of INFO.
func parseInfo(text string) map[string]string {
	facts := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			facts[name] = value
		}
	}
	return facts
}
