package broker

import (
	"context"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// Bounds of what takes messages out without receiving them (PURGE-1).
const (
	MaxPurgeMessages    = 4000
	MaxResubmitMessages = 10_000
	purgeStep           = 500 // removed by one step of the store, so that others get their turn
	resubmitStep        = 100
)

// PurgeOptions say what to remove.
type PurgeOptions struct {
	Before      time.Time // only messages enqueued before this instant; zero: the start of the purge (PURGE-4)
	MaxMessages int       // 1 to MaxPurgeMessages; 0: all there are
	Deferred    bool      // also deferred messages (PURGE-5)
	Scheduled   bool      // also scheduled messages
	DeadLetters bool      // also the dead letters of the source
}

// PurgeResult is what a purge did.
type PurgeResult struct {
	Deleted int64
	More    bool      // it stopped before the end, at MaxMessages or because ctx ended
	Before  time.Time // the instant that was used; give it again to go on
}

// Purge removes available messages, oldest first, and with the options others too; locked ones stay (PURGE-1 to
// PURGE-8). It works in small steps, each atomic, until nothing is left that was enqueued before it began. When ctx
// ends, or a step fails, after some were removed, it answers with what it did and More. A source that names or holds a
// session purges only that one (PURGE-7). INVALID_ARGUMENT, ARGUMENT_OUT_OF_RANGE, ENTITY_NOT_FOUND, ENTITY_DISABLED,
// SESSION_NOT_SUPPORTED, SESSION_LOCK_LOST.
func (b *Broker) Purge(ctx context.Context, source semantics.Source, options PurgeOptions) (PurgeResult, error) {
	source, err := b.checkSession(source.Parse())
	if err != nil {
		return PurgeResult{}, err
	}
	if err := semantics.CheckID("sessionId", source.Session); err != nil {
		return PurgeResult{}, err
	}
	if options.DeadLetters && (source.Session != "" || !source.SessionLock.IsZero()) {
		return PurgeResult{}, semantics.InvalidField(
			"include", "must not have DEAD_LETTER for one session: dead letters have no sessions",
		)
	}
	if n := options.MaxMessages; n < 0 || n > MaxPurgeMessages {
		return PurgeResult{}, semantics.FieldError(
			semantics.ArgumentOutOfRange, "maxMessages", "is %d, must be 1 to %d", n, MaxPurgeMessages,
		)
	}
	if err := b.admit(callCost); err != nil {
		return PurgeResult{}, err
	}
	result := PurgeResult{Before: options.Before.UTC().Truncate(time.Millisecond)}
	for _, part := range options.parts(source) {
		if err := b.purgePart(ctx, part.source, part.show, options.MaxMessages, &result); err != nil {
			if result.Deleted == 0 || semantics.CodeOf(err) == semantics.EntityNotFound {
				return PurgeResult{}, err
			}
			result.More = true
		}
		if result.More {
			break
		}
	}
	return result, nil
}

type purgePart struct {
	source semantics.Source
	show   semantics.Show
}

func (o PurgeOptions) parts(source semantics.Source) []purgePart {
	parts := []purgePart{{source, semantics.ShowAvailable}}
	if o.Deferred {
		parts = append(parts, purgePart{source, semantics.ShowDeferred})
	}
	if source.SubQueue.IsDeadLetters() {
		return parts
	}
	if o.Scheduled {
		parts = append(parts, purgePart{source, semantics.ShowScheduled})
	}
	if o.DeadLetters {
		dead := semantics.Source{Path: source.Path, SubQueue: semantics.DeadLetterQueue}
		parts = append(parts, purgePart{dead, semantics.ShowAvailable})
		if o.Deferred {
			parts = append(parts, purgePart{dead, semantics.ShowDeferred})
		}
	}
	return parts
}

func (b *Broker) purgePart(
	ctx context.Context, source semantics.Source, show semantics.Show, most int, result *PurgeResult,
) error {
	step := semantics.Purge{Show: show}
	for {
		step.Before, step.Limit = result.Before, purgeStep
		if most > 0 {
			step.Limit = min(step.Limit, most-int(result.Deleted))
		}
		if step.Limit == 0 {
			result.More = true // perhaps: the bound is reached, and what follows was not examined
			return nil
		}
		done, err := b.store.Purge(ctx, source, step)
		if err != nil {
			return err
		}
		b.charge(done.Deleted)
		result.Deleted += int64(done.Deleted)
		result.Before, step.After = done.Before, done.Last
		if !done.More {
			return nil
		}
	}
}

// DeleteBySequence removes messages by their sequence numbers that are neither locked nor scheduled (PURGE-9). It
// returns one Code per number: empty, or MESSAGE_NOT_FOUND. INVALID_ARGUMENT, ARGUMENT_OUT_OF_RANGE, ENTITY_NOT_FOUND,
// ENTITY_DISABLED.
func (b *Broker) DeleteBySequence(
	ctx context.Context, source semantics.Source, numbers []int64,
) ([]semantics.Code, error) {
	source, err := b.checkSourceNumbers(source, numbers)
	if err != nil {
		return nil, err
	}
	if err := checkNumbers(numbers, MaxDeferredNumbers); err != nil {
		return nil, err
	}
	if err := b.admit(callCost); err != nil {
		return nil, err
	}
	codes, err := b.store.DeleteByNumber(ctx, source, numbers)
	for _, code := range codes {
		if code == "" {
			b.charge(1)
		}
	}
	return codes, err
}

// ResubmitOptions say which dead letters to send again and how (DLQ-22).
type ResubmitOptions struct {
	Numbers []int64 // these; empty: all that Matches takes
	// nil: all. An error ends the call before anything was moved by its step
	Matches func(m *semantics.Received) (bool, error)
	// most to move, 1 to MaxResubmitMessages; 0 is MaxResubmitMessages
	Max int
	// a queue or a topic; empty: the queue or subscription the dead letters belong to
	Target        string
	TargetIsTopic bool // it is a topic, whose rules decide who gets them
	NewMessageIDs bool // give each a new message id
	// ExpiresAt stays instead of a new life beginning (TTL-25)
	KeepExpiry       bool
	BypassDuplicates bool // duplicate detection does not apply
}

// ResubmitResult is what became of one dead letter.
type ResubmitResult struct {
	SequenceNumber int64 // in the dead-letter queue
	semantics.Resubmitted
}

// Resubmit sends dead letters of source again, each of them moved or not, whatever happens meanwhile (DLQ-22). It is as
// if they had never been forwarded (FWD-5). To a topic the results have no numbers. Locked ones are skipped, or
// MESSAGE_NOT_FOUND when named. More reports that Max or the end of ctx stopped it. INVALID_OPERATION unless source is
// a dead-letter queue, INVALID_ARGUMENT, ARGUMENT_OUT_OF_RANGE, ENTITY_NOT_FOUND, ENTITY_DISABLED.
func (b *Broker) Resubmit(
	ctx context.Context, source semantics.Source, options ResubmitOptions,
) (results []ResubmitResult, more bool, err error) {
	path, err := source.CheckedPath()
	if err != nil {
		return nil, false, err
	}
	source.Path = path
	if !source.SubQueue.IsDeadLetters() {
		return nil, false, semantics.FieldError(
			semantics.InvalidOperation, "subQueue",
			"must be DEAD_LETTER or TRANSFER_DEAD_LETTER: only dead letters can be resubmitted",
		)
	}
	target := path
	if options.Target != "" {
		to, err := semantics.Target{Path: options.Target}.Parse()
		if err != nil {
			return nil, false, err
		}
		target = to.Path
	}
	most := options.Max
	if most == 0 {
		most = MaxResubmitMessages
	}
	if most < 1 || most > MaxResubmitMessages {
		return nil, false, semantics.FieldError(
			semantics.ArgumentOutOfRange, "max", "is %d, must be 1 to %d", most, MaxResubmitMessages,
		)
	}
	if len(options.Numbers) > 0 && options.Matches != nil {
		return nil, false, semantics.InvalidField("filter", "cannot be combined with sequenceNumbers")
	}
	if err := checkNumbersOrNone(options.Numbers, most); err != nil {
		return nil, false, err
	}
	if err := b.admit(callCost); err != nil {
		return nil, false, err
	}
	r := &resubmitter{
		broker: b, source: source, target: target, options: options, most: most, created: map[int]int64{},
	}
	if options.TargetIsTopic || semantics.Fold(target) != semantics.Fold(path) {
		if err := r.finishPending(ctx); err != nil {
			return nil, false, err
		}
	}
	if len(options.Numbers) > 0 {
		return r.named(ctx)
	}
	return r.all(ctx)
}
