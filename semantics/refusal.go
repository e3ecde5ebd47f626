package semantics

import (
	"strconv"
	"strings"
	"time"
)

// What stores refuse with, in one place, so that all of them refuse with the same text.

// NotFound is ENTITY_NOT_FOUND for an entity path.
func NotFound(entity string) *Error {
	return Errorf(EntityNotFound, "entity %q does not exist; check the name or create it", entity).With(DetailEntity, entity)
}

// NotASource is the error of a topic where a queue or subscription is wanted (TOPIC-8).
func NotASource(topic string) *Error {
	return Errorf(
		InvalidOperation, "topic %q cannot be received from; use one of its subscriptions", topic,
	).With(DetailEntity, topic)
}

// ForwardsAll is the error of a queue or subscription that is to be received from, but forwards all it gets (FWD-2).
func ForwardsAll(entity, destination string) *Error {
	return Errorf(
		InvalidOperation, "entity %q forwards all its messages; receive from %q", entity, destination,
	).With(DetailEntity, entity)
}

// Disabled is ENTITY_DISABLED for an entity whose status does not permit the call (STAT-1).
func Disabled(entity string, status string) *Error {
	return Errorf(
		EntityDisabled, "entity %q has status %s, which does not permit this; set its status to ACTIVE", entity, status,
	).With(DetailEntity, entity)
}

// Bound is what an entity may hold only so much of (QUOTA-6, QUOTA-13).
type Bound string

// The values of Bound.
const (
	BoundBytes       Bound = "bytes"
	BoundMessages    Bound = "messages"
	BoundUndelivered Bound = "bytes of undelivered messages" // in the transfer dead-letter queue
)

// Full is ENTITY_FULL for an entity that would hold more than it may. dead is what its dead letters take.
func Full(entity string, bound Bound, actual, limit, dead int64) *Error {
	option := "maxSizeInMegabytes"
	if bound == BoundMessages {
		option = "maxMessageCount"
	}
	return Errorf(
		EntityFull,
		"entity %q would hold %d %s, at most %d are allowed (%d bytes are dead letters); receive some or raise %s",
		entity, actual, bound, limit, dead, option,
	).
		With(DetailEntity, entity).
		With(DetailActual, strconv.FormatInt(actual, 10)).
		With(DetailLimit, strconv.FormatInt(limit, 10)).
		With(DetailDeadSize, strconv.FormatInt(dead, 10))
}

// RuleExists is RULE_ALREADY_EXISTS for a name that a rule of the subscription has (RULE-3).
func RuleExists(subscription, rule string) *Error {
	return Errorf(
		RuleAlreadyExists, "subscription %q already has a rule %q; delete it first or choose another name",
		subscription, rule,
	).With(DetailEntity, subscription)
}

// RuleUnknown is RULE_NOT_FOUND for a name that no rule of the subscription has.
func RuleUnknown(subscription, rule string) *Error {
	return Errorf(RuleNotFound, "subscription %q has no rule %q; list its rules to see their names", subscription, rule).
		With(DetailEntity, subscription)
}

// TooManyInTopic is QUOTA_EXCEEDED for a topic that would have more than limit of something (RULE-4).
func TooManyInTopic(topic, what string, limit int64) *Error {
	return Errorf(QuotaExceeded, "topic %q may have at most %d %s; delete some or use another topic", topic, limit, what).
		With(DetailEntity, topic).
		With(DetailLimit, strconv.FormatInt(limit, 10))
}

// Unmatched is NO_MATCHING_SUBSCRIPTION for a message that no subscription selects (TOPIC-3).
func Unmatched(topic string, index int) *Error {
	return Errorf(
		NoMatchingSubscription, "no subscription of topic %q selects message %d; add a rule, or set failIfUnmatched to false",
		topic, index,
	).
		With(DetailEntity, topic).
		With(DetailIndex, strconv.Itoa(index))
}

// NumbersNotFound is MESSAGE_NOT_FOUND for sequence numbers of messages that are not in a state (SCHED-5, DEFER-4).
func NumbersNotFound(entity string, state State, missing []int64) *Error {
	words := [...]string{Active: "available", Deferred: "deferred", Scheduled: "scheduled"}
	numbers := make([]string, len(missing))
	for i, n := range missing {
		numbers[i] = strconv.FormatInt(n, 10)
	}
	list := strings.Join(numbers, ",")
	return Errorf(
		MessageNotFound, "entity %q has no %s message with sequence number %s; nothing was changed; peek to see its messages",
		entity, words[state], Shorten(list),
	).
		With(DetailEntity, entity).
		With(DetailNumbers, list)
}

// NumbersOf returns the numbers that a NumbersNotFound or a TooLargeAnswer names; ok is false for another error.
func NumbersOf(err error) (numbers []int64, ok bool) {
	if err == nil {
		return nil, false
	}
	list := AsError(err).Details[DetailNumbers]
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, false
		}
		numbers = append(numbers, n)
	}
	return numbers, true
}

// PartitionsMixed is PARTITION_KEY_MISMATCH for a batch to a partitioned entity (BATCH-4). The index is that of the
// first message of another partition than that of the first one. If the partition of a message without a key is that of
// its id (PART-2), byID is true.
func PartitionsMixed(entity string, byID bool, index int) *Error {
	e := Errorf(
		PartitionKeyMismatch,
		"entity %q is partitioned: all messages of a batch must have the same partitionKey or sessionId", entity,
	).
		With(DetailEntity, entity).
		With(DetailIndex, strconv.Itoa(index))
	if byID {
		e.Message += "; with duplicate detection each message without one has its messageId as key, so send it alone"
	}
	return e
}

// PartitionsApart is PARTITION_KEY_MISMATCH for a transaction that needs several partitions of a queue (TX-8).
func PartitionsApart(entity string) *Error {
	return Errorf(
		PartitionKeyMismatch,
		"queue %q has several partitions, and a transaction uses one; send with one partitionKey or sessionId, and settle, "+
			"cancel and set states in its partition only", entity,
	).
		With(DetailEntity, entity)
}

// HistoryFull is QUOTA_EXCEEDED for an entity whose duplicate history holds all it may (DUP-11).
func HistoryFull(entity string, limit int64) *Error {
	return Errorf(
		QuotaExceeded,
		"entity %q remembers %d message ids, the most it may; raise duplicateHistoryMaxEntries or shorten its window",
		entity, limit,
	).
		With(DetailEntity, entity).
		With(DetailLimit, strconv.FormatInt(limit, 10))
}

// TooManyEntities is QUOTA_EXCEEDED for a namespace that has all the entities it may have (QUOTA-1).
func TooManyEntities(limit int64) *Error {
	return Errorf(
		QuotaExceeded, "the namespace has %d entities, the most it may; delete some or raise --max-entities", limit,
	).
		With(DetailLimit, strconv.FormatInt(limit, 10))
}

// keyPause is how long a client should wait until it asks again for a message whose key is missing: an operator must
// act, or another sidecar take it.
const keyPause = 5 * time.Second

// NoPayloadKey is PAYLOAD_KEY_MISSING for a body or a state that was sealed with a key of this name (CRYPT-4). why
// says what to do too, without full stop.
func NoPayloadKey(key, why string) *Error {
	e := Errorf(PayloadKeyMissing, "sealed with the payload key %q; %s", key, why).With(DetailKey, key)
	e.RetryAfter = keyPause
	return e
}
