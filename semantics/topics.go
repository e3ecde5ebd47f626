package semantics

import (
	"context"
	"errors"
	"strconv"
	"time"
)

// Topics keeps the rules of subscriptions and stores what they select.
type Topics interface {
	// CreateRule adds a rule to a subscription (RULE-2) and returns it with its time. ENTITY_NOT_FOUND,
	// RULE_ALREADY_EXISTS, QUOTA_EXCEEDED (RULE-4).
	CreateRule(ctx context.Context, subscription string, rule Rule) (Rule, error)

	// ReplaceRule replaces filter and action of a rule, which keeps its time, in one step, and returns it (RULE-10).
	// ENTITY_NOT_FOUND, RULE_NOT_FOUND, QUOTA_EXCEEDED (RULE-4).
	ReplaceRule(ctx context.Context, subscription string, rule Rule) (Rule, error)

	// GetRule reads a rule. ENTITY_NOT_FOUND, RULE_NOT_FOUND.
	GetRule(ctx context.Context, subscription, name string) (Rule, error)

	// ListRules returns up to limit rules in order of their folded names, beginning after the given folded name
	// (RULE-9). more reports whether others follow. ENTITY_NOT_FOUND.
	ListRules(ctx context.Context, subscription, after string, limit int) (rules []Rule, more bool, err error)

	// DeleteRule removes a rule. ENTITY_NOT_FOUND, RULE_NOT_FOUND.
	DeleteRule(ctx context.Context, subscription, name string) error

	// Routes returns all that decides which copies a topic makes. ENTITY_NOT_FOUND.
	Routes(ctx context.Context, topic string) (Routes, error)

	// Roster is Routes without rules.
	Roster(ctx context.Context, topic string) (Routes, error)

	// SetVersion assigns the routes of a topic the version of those by which its copies are decided from then on: of a
	// partition, which has no rules (PART-8). ENTITY_NOT_FOUND, and ErrRoutesChanged when the present version is not
	// from.
	SetVersion(ctx context.Context, topic string, from, to int64) error

	// Level is that of Upkeep. A Store that keeps partitions as entities of their own has nothing to do: the one above
	// it knows what they belong to.
	Level(ctx context.Context, partition string) error

	// RemoveUnused is that of Upkeep, as Level is.
	RemoveUnused(ctx context.Context, path string) (time.Duration, error)

	// Publish stores messages with the copies that subscriptions get, each call whole or not at all, in their order,
	// and returns the outcome of each as Send does (TOPIC-2, SEND-3). The sequence numbers are the topic's; those of
	// the copies are their subscriptions' own (TOPIC-1). A message whose ScheduledAt is in the future is stored without
	// its copies, for Activate. A copy lives as long as the shortest of message, topic and subscription allows (TTL-6).
	// The outcome is ErrRoutesChanged when the copies were decided by other routes than the present ones: then nothing
	// was done. Other errors: as those of Send, with QUOTA-13 over all subscriptions (TOPIC-7), and
	// NO_MATCHING_SUBSCRIPTION (TOPIC-3).
	Publish(ctx context.Context, topic string, version int64, calls [][]Publication) []SendOutcome

	// PublishOnce is Publish of one call as SendOnce is Send (IDEM-1).
	PublishOnce(ctx context.Context, topic string, version int64, once Once, call []Publication) SendOutcome

	// Due returns up to limit scheduled messages of a topic whose time has come, in the order in which they are to be
	// enqueued, and changes nothing. ENTITY_NOT_FOUND.
	Due(ctx context.Context, topic string, limit int) ([]*Received, error)

	// Activate enqueues scheduled messages of a topic with the copies that subscriptions get, as if they were sent now
	// (SCHED-3, SCHED-7). One that is not scheduled any more, or not due, is skipped, and so is another message that
	// has its number by now, because the store has forgotten it (DUR-4). Limits and status of the topic do not apply
	// (SCHED-12). ErrRoutesChanged as in Publish, ENTITY_NOT_FOUND.
	Activate(ctx context.Context, topic string, version int64, activations []Activation) error
}

// ErrRoutesChanged says that copies were decided by routes that hold no more. Read the routes again and decide again.
var ErrRoutesChanged = errors.New("the rules of the topic have changed")

// Routes are the subscriptions of a topic with their rules. Whatever changes them assigns them another Version; a topic
// that was deleted and made again has other versions than before.
type Routes struct {
	Version       int64
	Subscriptions []Route
	// KeepsUnmatched: a message that no subscription gets is one copy for UnmatchedSubscription (TOPIC-3).
	KeepsUnmatched bool
}

// UnmatchedSubscription is the name of a subscription that a topic with UnmatchedTo has besides its own, and that
// forwards there what no other one gets. It is neither listed nor counted, and has no rules. When UnmatchedTo is
// cleared it stays and forwards what it has.
const UnmatchedSubscription = "$unmatched"

// Route is what decides about the copies of one subscription.
type Route struct {
	Subscription        string // its name, folded
	Incarnation         int64  // as that of Entity, of a subscription
	RequiresSession     bool
	DeadLettersFailures bool // DeadLetteringOnFilterEvaluationExceptions
	Rules               []Rule
}

// Publication is a message on its way into a topic, or forwarded into a queue, which has no Copies.
type Publication struct {
	Message *Message
	Copies  []Copy

	// ExpiresAt is when a forwarded message ends at the latest, since a hop does not extend its life (TTL-24); zero for
	// others.
	ExpiresAt time.Time
}

// Copy is what one subscription gets of a publication.
type Copy struct {
	Subscription string   // its name, folded
	Message      *Message // that of the publication, or what an action made of it
	// DeadLetter is why the copy is a dead letter from the start (RULE-8, SESS-7, ACT-9); nil: it is not.
	DeadLetter *DeadLetterTexts
}

// Bounds of the copies that one call makes at once, so that the script that stores them, all or none (TOPIC-2), stays
// short.
const (
	MaxCopies    = 5000
	MaxCopyBytes = 64 << 20 // or the largest message the topic takes, if that is more
)

// CopyLoad is how much the copies of a call, or of a message, are together. Of a call that makes more than MaxCopies
// not all are counted.
type CopyLoad struct{ Copies, Bytes int64 }

// Add counts the copies of one publication more.
func (l *CopyLoad) Add(copies []Copy) {
	l.Copies += int64(len(copies))
	for _, c := range copies {
		l.Bytes += c.Message.Size()
	}
}

// Check returns the Refusal of a load that is too much for a topic whose messages have at most so many bytes. index is
// that of a message that is too much alone, -1 for a whole call.
func (l CopyLoad) Check(topic string, maxMessageBytes int64, index int) error {
	if limit := max(MaxCopyBytes, maxMessageBytes); l.Copies > MaxCopies || l.Bytes > limit {
		return l.Refusal(topic, limit, index)
	}
	return nil
}

// Refusal is MESSAGE_SIZE_EXCEEDED for a load that is too much, limit being the bytes that would do.
func (l CopyLoad) Refusal(topic string, limit int64, index int) error {
	field, actual, most := "copies", l.Copies, int64(MaxCopies)
	if l.Copies <= MaxCopies {
		field, actual, most = "bytes of copies", l.Bytes, limit
	}
	what, hint := "the send makes", "send fewer messages at a time"
	if index >= 0 {
		what, hint = "message "+strconv.Itoa(index)+" makes", "let fewer subscriptions and rules select it"
	}
	err := Errorf(
		MessageSizeExceeded, "%s %d %s in topic %q, at most %d are stored in one step; %s", what, actual, field,
		Shorten(topic), most, hint,
	).
		With(DetailEntity, topic).
		With(DetailField, field).
		With(DetailActual, strconv.FormatInt(actual, 10)).
		With(DetailLimit, strconv.FormatInt(most, 10))
	if index >= 0 {
		err = err.With(DetailIndex, strconv.Itoa(index))
	}
	return err
}

// Activation is a scheduled message of a topic whose time has come.
type Activation struct {
	SequenceNumber int64     // the one it is scheduled under
	EnqueuedAt     time.Time // when it was accepted
	Publication
}
