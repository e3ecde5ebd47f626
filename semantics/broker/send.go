package broker

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// Send stores the messages, all or none, and answers when they are stored (SEND-1, BATCH-1). It fills in missing
// message ids. A message that breaks a rule fails the call with its index in the details. A message with a ScheduledAt
// in the future is stored as scheduled, and its number is the one to cancel it by (SCHED-1). INVALID_ARGUMENT,
// ARGUMENT_OUT_OF_RANGE, PARTITION_KEY_MISMATCH, MESSAGE_SIZE_EXCEEDED, ENTITY_NOT_FOUND, ENTITY_DISABLED, ENTITY_FULL,
// QUOTA_EXCEEDED; INVALID_OPERATION for the address of a dead-letter queue (DLQ-3). When the store cannot be reached it
// is tried again for some seconds (SEND-2). To a topic it may also be NO_MATCHING_SUBSCRIPTION (TOPIC-3).
func (b *Broker) Send(
	ctx context.Context, target semantics.Target, messages []*semantics.Message,
) ([]semantics.SendResult, error) {
	target, err := target.Parse()
	if err != nil {
		return nil, err
	}
	results := make([]semantics.SendResult, len(messages))
	if err := b.prepare(messages, results); err != nil {
		return nil, err
	}
	results, err = b.sendPrepared(ctx, target, messages, results)
	return results, withNextStep(err, "peek at the queue before you send again, or send with a requestId, which makes a repeat safe")
}

// sendPrepared sends messages that prepare has seen.
func (b *Broker) sendPrepared(
	ctx context.Context, target semantics.Target, messages []*semantics.Message, results []semantics.SendResult,
) ([]semantics.SendResult, error) {
	outcome, err := b.sendPatiently(ctx, target, messages, nil)
	if err != nil {
		return nil, err
	}
	for i := range results {
		results[i].Stored = outcome.Stored[i]
	}
	return results, nil
}

// sendPatiently runs one send, under a request id unless once is nil.
func (b *Broker) sendPatiently(
	ctx context.Context, target semantics.Target, messages []*semantics.Message, once *semantics.Once,
) (semantics.SendOutcome, error) {
	var outcome semantics.SendOutcome
	stamped := b.stamps.add(ctx, target, messages)
	err := b.patiently(ctx, func() error {
		switch {
		case target.IsTopic && once != nil:
			outcome = b.publishOnce(ctx, target.Path, *once, messages)
		case target.IsTopic:
			outcome = b.publishEach(ctx, target.Path, [][]*semantics.Message{messages})[0]
		case once != nil:
			outcome = b.store.SendOnce(ctx, target.Path, *once, messages)
		default:
			outcome.Stored, outcome.Err = b.store.Send(ctx, target.Path, messages)
		}
		return outcome.Err
	})
	if err != nil {
		stamped.undo()
	}
	return outcome, err
}

// withNextStep adds to an error with an unknown outcome what the sender can do (IDEM-1).
func withNextStep(err error, next string) error {
	if !semantics.IsOutcomeUnknown(err) {
		return err
	}
	e := *semantics.AsError(err)
	e.Message += "; " + next
	return &e
}

// prepare checks the messages of one call and fills in what is missing, also the ids in their results.
func (b *Broker) prepare(messages []*semantics.Message, results []semantics.SendResult) error {
	if err := checkBatch(messages); err != nil {
		return err
	}
	if err := b.admit(len(messages)); err != nil {
		return err
	}
	for i, m := range messages {
		if m.MessageID == "" {
			m.MessageID = semantics.NewRandomUUID().String()
		}
		results[i].MessageID = m.MessageID
		m.ScheduledAt = m.ScheduledAt.UTC().Truncate(time.Millisecond) // instants have milliseconds, never rounded up
	}
	return nil
}

// SendEach runs several Sends to one entity, in their order, and returns for each what Send returns (SEND-3). A refused
// one does not affect the others. When the store cannot be reached, those that it did not store are tried again
// together for some seconds, so that their order stays (SEND-2).
func (b *Broker) SendEach(
	ctx context.Context, target semantics.Target, calls [][]*semantics.Message,
) ([][]semantics.SendResult, []error) {
	results, errs := resultsFor(calls), make([]error, len(calls))
	target, failed := target.Parse()
	var ready [][]*semantics.Message
	var places []int
	for i, messages := range calls {
		if errs[i] = failed; failed == nil {
			errs[i] = b.prepare(messages, results[i])
		}
		if errs[i] != nil {
			results[i] = nil
			continue
		}
		b.stamps.add(ctx, target, messages)
		ready, places = append(ready, messages), append(places, i)
	}
	if len(ready) == 0 {
		return results, errs
	}
	_ = b.patiently(ctx, func() error {
		var again [][]*semantics.Message // what was certainly not stored; of one partition, all from there on
		var at []int
		for i, o := range b.sendEach(ctx, target, ready) {
			errs[places[i]] = o.Err
			for j := range o.Stored {
				results[places[i]][j].Stored = o.Stored[j]
			}
			if passes(o.Err) {
				again, at = append(again, ready[i]), append(at, places[i])
			}
		}
		if ready, places = again, at; len(ready) == 0 {
			return nil
		}
		return errs[places[0]]
	})
	return results, errs
}

// resultsFor returns empty results for each message of each call. They are parts of one piece of memory.
func resultsFor(calls [][]*semantics.Message) [][]semantics.SendResult {
	count := 0
	for _, messages := range calls {
		count += len(messages)
	}
	results, all := make([][]semantics.SendResult, len(calls)), make([]semantics.SendResult, count)
	for i, messages := range calls {
		results[i], all = all[:len(messages):len(messages)], all[len(messages):]
	}
	return results
}

func (b *Broker) sendEach(
	ctx context.Context, target semantics.Target, calls [][]*semantics.Message,
) []semantics.SendOutcome {
	if target.IsTopic {
		return b.publishEach(ctx, target.Path, calls)
	}
	return b.store.SendEach(ctx, target.Path, calls)
}

// MaxCancelNumbers is the most numbers or message ids of one cancel call.
const MaxCancelNumbers = 1000

// CancelScheduled removes scheduled messages: by sequence number, all or none (SCHED-5), or all that have one of the
// message ids, id by id (SCHED-8). Numbers and ids together are INVALID_ARGUMENT. It returns how many messages it
// removed. ARGUMENT_OUT_OF_RANGE, ENTITY_NOT_FOUND, ENTITY_DISABLED, and MESSAGE_NOT_FOUND when a number is not that of
// a scheduled message, or when no scheduled message has one of the ids.
func (b *Broker) CancelScheduled(
	ctx context.Context, target semantics.Target, numbers []int64, ids []string,
) (int, error) {
	target, err := target.Parse()
	if err != nil {
		return 0, err
	}
	path := target.Path
	if len(ids) == 0 {
		if err := checkNumbers(numbers, MaxCancelNumbers); err != nil {
			return 0, err
		}
		return b.cancelNumbers(ctx, path, numbers)
	}
	if len(numbers) > 0 {
		return 0, semantics.InvalidField("messageIds", "cannot be combined with sequenceNumbers")
	}
	if len(ids) > MaxCancelNumbers {
		return 0, semantics.FieldError(
			semantics.ArgumentOutOfRange, "messageIds", "contains %d ids, at most %d are allowed", len(ids),
			MaxCancelNumbers,
		)
	}
	for _, id := range ids {
		if id == "" {
			return 0, semantics.InvalidField("messageIds", "must not contain an empty id")
		}
		if err := semantics.CheckID("messageIds", id); err != nil {
			return 0, err
		}
	}
	if err := b.admit(callCost); err != nil {
		return 0, err
	}
	cancelled, err := b.store.CancelScheduledByID(ctx, path, ids)
	b.charge(cancelled)
	if err == nil && cancelled == 0 {
		err = semantics.Errorf(semantics.MessageNotFound, "entity %q has no scheduled message with these message ids; peek to see what is scheduled",
			path).
			With(semantics.DetailEntity, path)
	}
	return cancelled, err
}

func (b *Broker) cancelNumbers(ctx context.Context, path string, numbers []int64) (int, error) {
	if err := b.admit(callCost); err != nil {
		return 0, err
	}
	if err := b.store.CancelScheduled(ctx, path, numbers); err != nil {
		return 0, err
	}
	cancelled := len(unique(numbers))
	b.charge(cancelled)
	return cancelled, nil
}

func unique(numbers []int64) []int64 {
	return slices.Compact(slices.Sorted(slices.Values(numbers)))
}

// checkNumbers checks a list of sequence numbers that must not be empty.
func checkNumbers(numbers []int64, most int) error {
	if len(numbers) == 0 {
		return semantics.InvalidField("sequenceNumbers", "must contain at least one number")
	}
	return checkNumbersOrNone(numbers, most)
}

func checkNumbersOrNone(numbers []int64, most int) error {
	if len(numbers) > most {
		return semantics.FieldError(
			semantics.ArgumentOutOfRange, "sequenceNumbers", "contains %d numbers, at most %d are allowed",
			len(numbers), most,
		)
	}
	for _, n := range numbers {
		if n < 1 {
			return semantics.FieldError(
				semantics.ArgumentOutOfRange, "sequenceNumbers", "contains %d, must be at least 1", n,
			)
		}
	}
	return nil
}

// Retries of a send (SEND-2): how often, and the first pause, which doubles.
const (
	sendRetries    = 3
	sendFirstPause = 800 * time.Millisecond
)

// patiently repeats a send that certainly stored nothing and failed for a cause that passes, for which the store
// sets RetryAfter. A send whose outcome is unknown is never repeated: that could double the messages (ERR-6).
func (b *Broker) patiently(ctx context.Context, send func() error) error {
	pause := sendFirstPause
	for try := 0; ; try++ {
		err := send()
		if err == nil {
			return nil
		}
		if try == sendRetries || !passes(err) {
			return err
		}
		select {
		case <-time.After(pause):
			pause *= 2
		case <-ctx.Done():
			return err
		}
	}
}

func passes(err error) bool {
	return err != nil && semantics.AsError(err).RetryAfter > 0 &&
		!semantics.IsOutcomeUnknown(err)
}

func checkBatch(messages []*semantics.Message) error {
	if len(messages) == 0 {
		return semantics.InvalidField("messages", "must contain at least one message")
	}
	if len(messages) > semantics.MaxBatchMessages {
		return semantics.TooManyMessages(len(messages))
	}
	total := int64(0)
	for i, m := range messages {
		if err := m.Validate(); err != nil {
			return semantics.AsError(err).With(semantics.DetailIndex, strconv.Itoa(i))
		}
		total += m.Size()
	}
	if len(messages) > 1 && total > semantics.MaxBatchSize {
		return semantics.BatchTooLarge(total, semantics.MaxBatchSize)
	}
	return nil
}
