package redisstore

import (
	"context"
	"strings"

	"github.com/sidebus/sidebus/lua"
	"github.com/sidebus/sidebus/semantics"
)

// The servers of a cluster forget each for itself, so one that has a partition can forget a change that the server of
// the record remembers. What a server has done since it became the primary is its history. In each history a partition
// is compared with its record before the first script runs there: the script itself finds out. On one Redis, record and
// partitions have the same history, and nothing is compared. See docs/decisions/0054.

// ComparedBy implements partitioned.Histories. The first one stays.
func (s *Store) ComparedBy(compare func(ctx context.Context, path string) error) {
	s.compare.CompareAndSwap(nil, &compare)
}

// mostComparisons is how often a call has a partition compared. Its server changes its history seldom.
const mostComparisons = 4

// compareFor compares a partition for a call that has done nothing yet, also if the comparison fails halfway.
func (s *Store) compareFor(ctx context.Context, path string, times int) error {
	err := s.Compare(ctx, path)
	if semantics.IsOutcomeUnknown(err) || err == nil && times == mostComparisons {
		e := unavailable(err, "a partition could not be compared with its record; nothing was changed").
			With(semantics.DetailCause, causeUnreachable)
		e.RetryAfter = passing
		return e
	}
	return err
}

// Compare implements partitioned.Histories.
func (s *Store) Compare(ctx context.Context, path string) error {
	if compare := s.compare.Load(); compare != nil && s.isCluster {
		return (*compare)(comparing{ctx}, path)
	}
	return nil
}

// History implements partitioned.Histories.
func (s *Store) History(ctx context.Context, path string) (name string, isCompared bool, err error) {
	r, err := s.run(anyHistory(ctx), "comparison", s.keys(path))
	switch {
	case err != nil:
		return "", false, err
	case r.status != "OK":
		return "", false, semantics.NotFound(path)
	default:
		name, isCompared = r.text(), r.number() == 1
		return name, isCompared, r.failure()
	}
}

// NoteCompared implements partitioned.Histories.
func (s *Store) NoteCompared(ctx context.Context, path, history string) (isPresent bool, err error) {
	r, err := s.run(anyHistory(ctx), "note_compared", s.keys(path), history)
	switch {
	case err != nil:
		return false, err
	case r.status == lua.OtherHistory:
		return false, nil
	case r.status != "OK":
		return false, semantics.NotFound(path)
	default:
		return true, nil
	}
}

// uncompared is the key under which the context of a call has that its scripts run in any partition: what they do holds
// in one that was not compared too.
type uncompared struct{}

func anyHistory(ctx context.Context) context.Context {
	return context.WithValue(ctx, uncompared{}, true)
}

// comparing is the context of a comparison. It has nothing of the call that needs the comparison, neither connections,
// which are for one goroutine, nor durability to wait for.
type comparing struct{ context.Context }

// Value implements context.Context.
func (c comparing) Value(key any) any {
	switch key.(type) {
	case uncompared:
		return true
	case unwellKey:
		return c.Context.Value(key)
	default:
		return nil
	}
}

// guarded returns the partition, or definition, in which a script with this key runs only if it was compared; "" for any
// other script.
func (s *Store) guarded(ctx context.Context, key string) string {
	if !s.isCluster || s.compare.Load() == nil {
		return ""
	}
	path, isEntity := strings.CutPrefix(key, "sb:{"+s.namespace+"/")
	path, _, _ = strings.Cut(path, "}")
	if !isEntity || !semantics.IsPartition(path) || ctx.Value(uncompared{}) != nil {
		return ""
	}
	return path
}
