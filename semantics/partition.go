package semantics

import (
	"regexp"
	"strconv"
	"strings"
)

// PartitionMark stands between the path of an entity with several partitions and what names one of them. No path that a
// client passes has it (ENT-3).
const PartitionMark = "#"

// PartitionPath returns the path of a partition of an entity (PART-1): "orders#1z141z4.3.0". The incarnation is that of
// the entity, so a path never comes back when the entity is deleted and created again. salt is any number that the one
// who stores the entity chooses.
func PartitionPath(entity string, incarnation int64, partition, salt int) string {
	return hiddenPath(entity, incarnation, strconv.Itoa(partition), salt)
}

// DefinitionPath returns the path of the topic that has the subscriptions and rules of one with several partitions
// (PART-8), and no messages.
func DefinitionPath(topic string, incarnation int64, salt int) string {
	return hiddenPath(topic, incarnation, definition, salt)
}

// definition stands where the number of a partition stands.
const definition = "d"

func hiddenPath(entity string, incarnation int64, place string, salt int) string {
	return entity + PartitionMark + strconv.FormatInt(incarnation, 36) + "." + place + "." + strconv.Itoa(salt)
}

// NameInPartition returns the name that a subscription has in each partition of its topic: "eu#1z141z4.s". The
// incarnation is that of the subscription in the definition, so one that is created again has another name.
func NameInPartition(subscription string, incarnation int64) string {
	return subscription + PartitionMark + strconv.FormatInt(incarnation, 36) + ".s"
}

// SplitPartition takes the path of a partition or a definition, or of something in it, apart; ok is false for any other
// path.
func SplitPartition(path string) (entity string, incarnation int64, ok bool) {
	entity, name, found := strings.Cut(path, PartitionMark)
	number, _, _ := strings.Cut(name, ".")
	incarnation, err := strconv.ParseInt(number, 36, 64)
	return entity, incarnation, found && err == nil
}

// IsPartition reports whether a path is that of a partition of a topic or queue, or of its definition.
func IsPartition(path string) bool {
	_, _, is := SplitPartition(path)
	return is
}

// PartitionIn returns which partition of an entity a path names, -1 for another path.
func PartitionIn(path string) int {
	whole, _, ok := SplitPartition(path)
	if !ok {
		return -1
	}
	_, places, _ := strings.Cut(path[len(whole):], ".")
	place, _, _ := strings.Cut(places, ".")
	partition, err := strconv.Atoi(place)
	if err != nil {
		return -1 // a definition
	}
	return partition
}

// InWhole returns the entity that a path of a partition belongs to, and numbers of messages as the entity has them
// (PART-3). Of another path it returns what it was given.
func InWhole(path string, numbers []int64) (entity string, of []int64) {
	partition := PartitionIn(path)
	if partition < 0 {
		return WholePath(path), numbers
	}
	for _, number := range numbers {
		of = append(of, InPartition(number, partition))
	}
	return WholePath(path), of
}

// hiddenNames are what paths of partitions and of subscriptions in them have, and those of clients have not.
var hiddenNames = regexp.MustCompile(`#[0-9a-z]+\.(s|([0-9]+|` + definition + `)\.[0-9]+)`)

// WholePath returns the path of the entity that a path of a partition belongs to; another path as it is. Of a text it
// replaces all paths.
func WholePath(path string) string {
	if !strings.Contains(path, PartitionMark) {
		return path
	}
	return hiddenNames.ReplaceAllString(path, "")
}

// sequenceBits are those of a sequence number below its partition (PART-3).
const sequenceBits = 48

// EndOfPartition is above the numbers of all messages that a partition ever has.
const EndOfPartition = 1<<sequenceBits - 1

// InPartition returns the number that a client knows a message of a partition by (PART-3).
func InPartition(number int64, partition int) int64 { return number | int64(partition)<<sequenceBits }

// PartitionOf takes a sequence number apart (PART-3).
func PartitionOf(number int64) (own int64, partition int) {
	return number & EndOfPartition, int(number >> sequenceBits)
}

// A lock token is a UUID of version 8 and the variant 2. These six bits have no other use, so that of a message in a
// partition has the number of the partition there, as a difference to them.
const (
	versionShift, versionByte = 4, 6
	variantShift, variantByte = 6, 8
	variantsOf                = 1 << (8 - variantShift)
)

// InPartition returns the token with the number of a partition, 0 to MaxPartitions-1. That of partition 0 stays.
func (t LockToken) InPartition(partition int) LockToken {
	t[versionByte] ^= byte(partition/variantsOf) << versionShift //nolint:gosec // four bits
	t[variantByte] ^= byte(partition%variantsOf) << variantShift //nolint:gosec // two bits
	return t
}

// Partition is the opposite of InPartition. Of a token that no store made it returns any partition.
func (t LockToken) Partition() (own LockToken, partition int) {
	version, variant := t[versionByte]>>versionShift^tokenVersion, t[variantByte]>>variantShift^tokenVariant
	partition = int(version)*variantsOf + int(variant)
	return t.InPartition(partition), partition
}

// CheckPartitions is INVALID_OPERATION for options that a topic with several partitions, or a subscription of one,
// cannot have (PART-1). Partitions are those of the topic.
func (o Options) CheckPartitions(kind Kind, entity string) error {
	if o.Partitions <= 1 || kind == QueueKind || o.AutoDeleteOnIdle == Never {
		return nil
	}
	refused := Errorf(
		InvalidOperation, "topic %q has %d partitions, and cannot have autoDeleteOnIdle; delete it yourself, or create it "+
			"with partitions: 1", entity, o.Partitions,
	)
	if topic, name, is := SplitSubscription(entity); is {
		refused = Errorf(
			InvalidOperation, "topic %q has %d partitions, and subscription %q of it cannot have autoDeleteOnIdle; delete "+
				"it yourself, or create the topic with partitions: 1", topic, o.Partitions, name,
		)
	}
	return refused.With(DetailEntity, entity).With(DetailField, "autoDeleteOnIdle")
}

// SuspendedError is the error of the creation of a partition that a removal has suspended (IDLE-8): it is there, but no
// other call finds it.
type SuspendedError struct{ Removal int64 }

func (*SuspendedError) Error() string {
	return "the partition is suspended, because its entity seemed idle"
}
