package redisstore

import (
	"context"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/semantics"
)

// The record of a queue with several partitions is the hash of an entity, of a kind of its own, and the fields by which
// scripts recognize a queue have other names. So scripts that know nothing of partitions, those of older versions too,
// find neither a queue to send to nor one to receive from, but a name that is taken. Each partition is a queue as any
// other: see docs/decisions/0042.
const (
	partitionedQueue = "partitioned_queue"
	ofRecord         = "record_" // before the names of such fields
)

// recordFields returns the fields of a queue as its record has them.
func recordFields(fields []any) []any {
	fields = slices.Clone(fields)
	for i := 0; i < len(fields); i += 2 {
		if name := fields[i].(string); name == "status" || name == "lock_duration_ms" {
			fields[i] = ofRecord + name
		}
	}
	return fields
}

func isPartition(name string) bool {
	_, _, is := semantics.SplitPartition(name)
	return is
}

func withoutPartitions(names []string) []string {
	if !slices.ContainsFunc(names, isPartition) {
		return names
	}
	return slices.DeleteFunc(slices.Clone(names), isPartition)
}

// slots is how many there are in a cluster.
const slots = 1 << 14

// Slot returns the slot of an entity, below of, whether there is a cluster or not.
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

// Server returns the server that has an entity now, as far as the client of a cluster knows.
func (s *Store) Server(ctx context.Context, path string) any {
	server, err := s.servers.of(ctx, s.keys(path).tag)
	if err != nil {
		return (*redis.Client)(nil)
	}
	return server
}
