package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/semantics"
)

// Check implements semantics.Checker: it loads the scripts and reads from INFO whether this Redis keeps what it is given.
// It refuses (PRECONDITION_FAILED) versions before 7.0, which lack script flags and a frozen script clock, and
// eviction, which deletes messages. It warns of everything that opens a loss window.
func (s *Store) Check(ctx context.Context) (semantics.Health, error) {
	var info, fsync *redis.Cmd
	_, pipelineErr := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		info = p.Do(ctx, "INFO")
		fsync = p.Do(ctx, "CONFIG", "GET", "appendfsync") // often forbidden; then we do without
		return nil
	})
	if info.Err() == nil && info.Val() == nil { // not even sent: the connection could not be set up
		return semantics.Health{}, storeError(pipelineErr, false)
	}
	text, err := info.Text()
	if err != nil {
		return semantics.Health{}, storeError(err, false)
	}
	facts := parseInfo(text)
	if err := s.refuse(facts); err != nil {
		return semantics.Health{}, err
	}
	if err := s.load(ctx); err != nil {
		return semantics.Health{}, storeError(err, false)
	}
	policy := ""
	if values, err := fsync.StringSlice(); err == nil && len(values) == 2 {
		policy = values[1]
	}
	return semantics.Health{
		Store:    fmt.Sprintf("%s %s at %s", product(facts), version(facts), s.client.Options().Addr),
		Warnings: warnings(facts, policy),
	}, nil
}

func (s *Store) refuse(facts map[string]string) error {
	unfit := func(format string, args ...any) error {
		return semantics.Errorf(semantics.PreconditionFailed, format, args...)
	}
	major, _, _ := strings.Cut(facts["redis_version"], ".")
	if n, err := strconv.Atoi(major); err != nil || n < 7 {
		return unfit("Redis %q is too old; Sidebus needs 7.0 or later", facts["redis_version"])
	}
	if facts["role"] == "slave" {
		return unavailable(nil, "this Redis is a replica and takes no writes; point --store at the primary").
			With(semantics.DetailCause, "redis_readonly")
	}
	if p := facts["maxmemory_policy"]; p != "" && p != "noeviction" && !s.options.AllowEviction {
		return unfit("Redis has maxmemory-policy %s and may delete messages; set it to noeviction, or accept the loss with --redis-allow-eviction", p)
	}
	if facts["cluster_enabled"] == "1" {
		return unfit("this Redis is a cluster node; this version of Sidebus serves standalone Redis only")
	}
	return nil
}

func warnings(facts map[string]string, fsync string) []string {
	var found []string
	warn := func(text string) { found = append(found, text) }
	if p := facts["maxmemory_policy"]; p != "" && p != "noeviction" {
		warn("maxmemory-policy is " + p + ": Redis may delete messages when memory runs out")
	}
	switch {
	case facts["aof_enabled"] != "1":
		warn("the append-only file is off: a Redis restart loses every message since the last snapshot")
	case fsync == "everysec":
		warn("appendfsync is everysec: a crash of Redis' host loses up to about a second of messages")
	case fsync == "no":
		warn("appendfsync is no: a crash of Redis' host loses what the system had not written, often 30 seconds")
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
