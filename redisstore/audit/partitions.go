package audit

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/sidebus/sidebus/semantics"
)

// recordPrefix is before the names of those fields of a record by which scripts recognize a queue.
const recordPrefix = "record_"

// recordKindPrefix is before the kind of a record.
const recordKindPrefix = "partitioned_"

// ownFields are those that a record and its partitions have each for themselves. Bounds are divided among partitions.
var ownFields = map[string]bool{
	"kind": true, "name": true, "about": true, "incarnation": true, "ticket": true, "created_ms": true, "updated_ms": true,
	"accessed_ms": true, "partitioned": true, "partitions": true, "keyed": true, "user_metadata": true, "max_bytes": true,
	"max_message_count": true, "duplicate_max_entries": true, "alarm_ms": true, "forwarder_called": true,
	"version": true, "compared_in": true, "idle_ms": true, "idle_keeps_dead": true, "removal": true, "removal_in": true,
}

// AuditPartitions checks that no partition is without its queue. A sidecar that crashes while it deletes one leaves
// some, until the next look at all entities.
func (a *Auditor) AuditPartitions(ctx context.Context) error {
	names, err := a.Listed(ctx)
	if err != nil {
		return err
	}
	_, left, err := a.partitions(ctx, names)
	return errors.Join(err, left)
}

// partitions checks that each queue with several partitions has all of them once and with its options, and returns
// apart which partitions are left without their queue.
func (a *Auditor) partitions(ctx context.Context, names []string) (wrong, left, err error) {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	partitions := map[string][]string{} // paths, by queue and incarnation
	of := func(queue string, incarnation int64) string {
		return fmt.Sprint(semantics.Fold(queue), " ", incarnation)
	}
	for _, name := range names {
		if queue, incarnation, is := semantics.SplitPartition(name); is {
			partitions[of(queue, incarnation)] = append(partitions[of(queue, incarnation)], name)
		}
	}
	for _, name := range names {
		record, err := a.client.HGetAll(ctx, a.tagOf(name)+"entity").Result()
		if err != nil {
			return nil, nil, err
		}
		if !strings.HasPrefix(record["kind"], recordKindPrefix) {
			continue
		}
		incarnation, _ := strconv.ParseInt(record["incarnation"], 10, 64)
		wanted, _ := strconv.Atoi(record["partitions"])
		paths, definitions := map[int]string{}, 0
		for _, path := range partitions[of(name, incarnation)] {
			p := semantics.PartitionIn(path)
			if p < 0 {
				definitions++
				continue
			}
			if paths[p] != "" || p >= wanted {
				fault("%s: partition %d is there twice, or too much: %s", name, p, path)
			}
			paths[p] = path
		}
		if isTopic := record["kind"] == "partitioned_topic"; isTopic != (definitions == 1) || definitions > 1 {
			fault("%s: a %s with %d definitions", name, record["kind"], definitions)
		}
		delete(partitions, of(name, incarnation))
		for p := range wanted {
			switch differs, err := a.differing(ctx, record, paths[p]); {
			case err != nil:
				return nil, nil, err
			case paths[p] == "":
				fault("%s: partition %d is missing", name, p)
			case differs != "":
				fault("%s: partition %d has another %s", name, p, differs)
			}
		}
	}
	for _, paths := range partitions {
		left = errors.Join(left, fmt.Errorf("%s is left without its queue", paths))
	}
	return errors.Join(faults...), left, nil
}

// differing returns the name of an option that a partition has otherwise than the record.
func (a *Auditor) differing(ctx context.Context, record map[string]string, path string) (string, error) {
	if path == "" {
		return "", nil
	}
	partition, err := a.client.HGetAll(ctx, a.tagOf(path)+"entity").Result()
	if err != nil {
		return "", err
	}
	if partition["idle_ms"] != "-1" {
		return "idle_ms than -1", nil // it would go without the others
	}
	for field, value := range record {
		name := strings.TrimPrefix(field, recordPrefix)
		if !ownFields[name] && partition[name] != value {
			return fmt.Sprintf("%s, %q instead of %q", name, partition[name], value), nil
		}
	}
	return "", nil
}
