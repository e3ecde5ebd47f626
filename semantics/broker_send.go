package semantics

import (
	"context"
	"strconv"
	"time"
)

// SendResult is what a sender learns about one stored message.
type SendResult struct {
	SequenceNumber int64
	MessageID      string // as given, else the one Sidebus made (MSG-1)
}

// Send stores the messages, all or none, and answers when they are stored (SEND-1, BATCH-1). It fills in missing
// message ids. A message that breaks a rule fails the call with its index in the details.
// INVALID_ARGUMENT, ARGUMENT_OUT_OF_RANGE, PARTITION_KEY_MISMATCH, MESSAGE_SIZE_EXCEEDED, ENTITY_NOT_FOUND,
// ENTITY_DISABLED, ENTITY_FULL; INVALID_OPERATION for the address of a dead-letter queue (DLQ-3).
// When the store cannot be reached it is tried again for some seconds (SEND-2).
func (b *Broker) Send(ctx context.Context, target string, messages []*Message) ([]SendResult, error) {
	if isDeadLetterAddress(target) {
		return nil, Errorf(InvalidOperation, "a dead-letter queue takes no sends; send to its queue").
			With(DetailEntity, target).With(DetailSubQueue, DeadLetterQueue.String())
	}
	path, err := ParsePath(target)
	if err != nil {
		return nil, err
	}
	if err := checkBatch(messages); err != nil {
		return nil, err
	}
	results := make([]SendResult, len(messages))
	for i, m := range messages {
		if m.MessageID == "" {
			m.MessageID = NewRandomUUID().String()
		}
		results[i].MessageID = m.MessageID
	}
	first, err := b.sendPatiently(ctx, path, messages)
	if err != nil {
		return nil, err
	}
	for i := range results {
		results[i].SequenceNumber = first + int64(i)
	}
	return results, nil
}

// Retries of a send (SEND-2): how often, and the first pause, which doubles.
const (
	sendRetries    = 3
	sendFirstPause = 800 * time.Millisecond
)

// sendPatiently repeats a send that certainly stored nothing and failed for a cause that passes, for which the store
// sets RetryAfter. A send whose outcome is unknown is never repeated: that could double the messages (ERR-6).
func (b *Broker) sendPatiently(ctx context.Context, path string, messages []*Message) (int64, error) {
	pause := sendFirstPause
	for try := 0; ; try++ {
		first, err := b.store.Send(ctx, path, messages)
		if err == nil {
			return first, nil
		}
		e := AsError(err)
		if try == sendRetries || e.RetryAfter == 0 || e.Details[DetailOutcome] == OutcomeUnknown {
			return 0, err
		}
		select {
		case <-time.After(pause):
			pause *= 2
		case <-ctx.Done():
			return 0, err
		}
	}
}

func checkBatch(messages []*Message) error {
	if len(messages) == 0 {
		return fieldError(InvalidArgument, "messages", "must contain at least one message")
	}
	if len(messages) > MaxBatchMessages {
		return fieldError(ArgumentOutOfRange, "messages", "contains %d messages, at most %d are allowed", len(messages), MaxBatchMessages)
	}
	total := int64(0)
	for i, m := range messages {
		if err := m.Validate(); err != nil {
			return AsError(err).With(DetailIndex, strconv.Itoa(i))
		}
		total += m.Size()
	}
	if len(messages) > 1 && total > MaxBatchSize {
		return SizeExceeded("batch", total, MaxBatchSize)
	}
	return nil
}
