package semantics

import (
	"fmt"
	"time"
)

// Kind is what an entity is (ENT-1).
type Kind uint8

// The kinds of entities.
const (
	QueueKind Kind = iota
	TopicKind
	SubscriptionKind
)

// String returns the kind in lower case.
func (k Kind) String() string {
	switch k {
	case QueueKind:
		return "queue"
	case TopicKind:
		return "topic"
	case SubscriptionKind:
		return "subscription"
	default:
		return fmt.Sprint(uint8(k))
	}
}

// Entity is a queue, topic or subscription with its name as given at creation, its options and its times by the store's
// clock (CNT-1, CNT-5). The name of a subscription is its path, see SubscriptionPath. Options that its kind does not
// have are those of DefaultOptions.
type Entity struct {
	Kind       Kind
	Name       string
	Options    Options
	CreatedAt  time.Time
	UpdatedAt  time.Time
	AccessedAt time.Time

	// Incarnation distinguishes an entity with several partitions, or a subscription of one, from others of its name;
	// of one that has just been read. 0: it has one partition.
	Incarnation int64
}

// OwnName returns the name of an entity, of a subscription the one within its topic. Folded, it is the place of the
// entity in ListEntities.
func (e Entity) OwnName() string {
	if _, name, ok := SplitSubscription(e.Name); ok {
		return name
	}
	return e.Name
}

// Runtime are the counts of an entity (CNT-1, CNT-2). Active = Available + Locked + Deferred + ExpiredPending (CNT-4).
// A topic has Scheduled, SizeInBytes, Subscriptions and LastSequence, and nothing else.
type Runtime struct {
	Active             int64
	Available          int64 // Delayed included
	Delayed            int64 // abandoned with a delay that is not over (SETTLE-11)
	Locked             int64
	Deferred           int64
	ExpiredPending     int64
	Scheduled          int64
	DeadLetter         int64
	Transfer           int64
	TransferDeadLetter int64
	// messages in every state, dead letters and session states; of a topic those of all its subscriptions too
	SizeInBytes      int64
	OldestEnqueuedAt time.Time // of the main queue; zero when it is empty
	// AvailableSince is since when what a receiver gets next has been there: since the oldest available message was
	// enqueued, or with sessions, since the session that has been ready longest became so. Zero: there is nothing.
	AvailableSince time.Time

	Sessions       int64 // that have messages, state or a holder (CNT-2)
	ReadySessions  int64 // that AcceptNextSession could give
	LockedSessions int64 // that are locked
	// BlockedSessions are those that wait for an operator because one of their messages became a dead letter (SESS-29).
	// One that was locked then stays locked, and counts as both.
	BlockedSessions int64

	Subscriptions int64 // of a topic

	// LastSequence is how many sequence numbers were assigned: it grows with each message that is accepted, and by one
	// more when a scheduled one is activated. Rates follow from it.
	LastSequence int64

	CreatedAt, UpdatedAt, AccessedAt time.Time // as those of Entity (CNT-1, CNT-5)

	Partitions []Runtime // of each partition, in their order; none if there is one only (PART-5)
}

// Total is the sum of all message counts (CNT-1).
func (r Runtime) Total() int64 {
	return r.Active + r.Scheduled + r.DeadLetter + r.Transfer + r.TransferDeadLetter
}

// SumOf adds up the counts of the partitions of an entity, and keeps them (PART-5). It was used when one of them was
// last.
func SumOf(counts []Runtime) (sum Runtime) {
	sum.Partitions = counts
	for _, one := range counts {
		for _, field := range []struct{ to, from *int64 }{
			{&sum.Active, &one.Active},
			{&sum.Available, &one.Available},
			{&sum.Delayed, &one.Delayed},
			{&sum.Locked, &one.Locked},
			{&sum.Deferred, &one.Deferred},
			{&sum.ExpiredPending, &one.ExpiredPending},
			{&sum.Scheduled, &one.Scheduled},
			{&sum.DeadLetter, &one.DeadLetter},
			{&sum.Transfer, &one.Transfer},
			{&sum.TransferDeadLetter, &one.TransferDeadLetter},
			{&sum.SizeInBytes, &one.SizeInBytes},
			{&sum.Sessions, &one.Sessions},
			{&sum.ReadySessions, &one.ReadySessions},
			{&sum.LockedSessions, &one.LockedSessions},
			{&sum.BlockedSessions, &one.BlockedSessions},
			{&sum.LastSequence, &one.LastSequence},
		} {
			*field.to += *field.from
		}
		sum.OldestEnqueuedAt = earlier(sum.OldestEnqueuedAt, one.OldestEnqueuedAt)
		sum.AvailableSince = earlier(sum.AvailableSince, one.AvailableSince)
		if one.AccessedAt.After(sum.AccessedAt) {
			sum.AccessedAt = one.AccessedAt
		}
	}
	return sum
}

// earlier returns the earlier of two instants. Zero is none.
func earlier(one, other time.Time) time.Time {
	if one.IsZero() || !other.IsZero() && other.Before(one) {
		return other
	}
	return one
}
