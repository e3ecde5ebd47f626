package redisstore

import (
	"context"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/lua"
	"github.com/sidebus/sidebus/semantics"
)

// The record of an entity with several partitions is the hash of an entity, of a kind of its own, and the fields by
// which scripts recognize a queue have other names. So scripts that know nothing of partitions, those of older versions
// too, find neither an entity to send to nor one to receive from, but a name that is taken. Each partition is a queue
// or topic as any other: see docs/decisions/0042.
const (
	ofPartitioned = "partitioned_" // before the kind
	ofRecord      = "record_"      // before the names of such fields
)

// recordKind returns the kind of the record of an entity with several partitions.
func recordKind(kind semantics.Kind) string { return ofPartitioned + kind.String() }

// recordFields returns the fields of an entity as its record has them.
func recordFields(fields []any) []any {
	fields = slices.Clone(fields)
	for i := 0; i < len(fields); i += 2 {
		if name := fields[i].(string); name == "status" || name == "lock_duration_ms" {
			fields[i] = ofRecord + name
		}
	}
	return fields
}

func withoutPartitions(names []string) []string {
	if !slices.ContainsFunc(names, semantics.IsPartition) {
		return names
	}
	return slices.DeleteFunc(slices.Clone(names), semantics.IsPartition)
}

// following returns the script that makes a change of an entity. If a change of its record or definition led to it,
// that is one which a full Redis runs.
func following(script, path string) string {
	topic, _, isSubscription := semantics.SplitSubscription(path)
	if !semantics.IsPartition(path) || isSubscription && semantics.PartitionIn(topic) < 0 {
		return script
	}
	return script + lua.InPartition
}

// lookAtPartition deletes a partition, or a definition, whose entity was deleted, and completes changes of options,
// subscriptions and rules that did not reach it.
func (l *wholeLook) lookAtPartition(ctx context.Context, name string, isTopic bool) error {
	kind := semantics.QueueKind
	if isTopic {
		kind = semantics.TopicKind
	}
	isOrphan, err := l.forgetOrphan(ctx, kind, name)
	if err != nil || isOrphan {
		return err
	}
	return l.upkeep.Level(ctx, name)
}

// slots is how many there are in a cluster.
const slots = 1 << 14

// Slot implements partitioned.Places. An entity has the same slot whether there is a cluster or not.
func (s *Store) Slot(path string) (slot, of int) {
	return slotOf(strings.Trim(strings.TrimPrefix(tagOf(s.namespace, path), "sb:"), "{}:")), slots
}

// slotOf returns the slot of a hash tag: CRC-16 in the variant XMODEM.
func slotOf(tag string) int {
	crc := uint16(0)
	for i := range len(tag) {
		crc ^= uint16(tag[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return int(crc % slots)
}

// Server implements partitioned.Places, as far as the client of a cluster knows.
func (s *Store) Server(ctx context.Context, path string) any {
	server, err := s.servers.of(ctx, s.keys(path).tag)
	if err != nil {
		return (*redis.Client)(nil)
	}
	return server
}
