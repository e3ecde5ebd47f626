package verbs

import (
	"context"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// subQueueFlags say which of the queues of a source is meant.
type subQueueFlags struct {
	DLQ         bool `name:"dlq" aliases:"dead-letter" xor:"sub-queue" help:"Use the dead-letter queue."`
	TransferDLQ bool `name:"transfer-dlq" aliases:"transfer" xor:"sub-queue" help:"Use the transfer dead-letter queue: messages that could not be forwarded."`
}

// kind is the sub-queue as the API has it.
func (f subQueueFlags) kind() sidebusv1.SubQueue_Kind {
	switch {
	case f.DLQ:
		return sidebusv1.SubQueue_DEAD_LETTER
	case f.TransferDLQ:
		return sidebusv1.SubQueue_TRANSFER_DEAD_LETTER
	default:
		return sidebusv1.SubQueue_NONE
	}
}

func (f subQueueFlags) isSet() bool { return f.DLQ || f.TransferDLQ }

// place names a queue or one of its dead-letter queues for people.
func place(source string, subQueue sidebusv1.SubQueue_Kind) string {
	switch subQueue {
	case sidebusv1.SubQueue_DEAD_LETTER:
		return "the dead-letter queue of " + source
	case sidebusv1.SubQueue_TRANSFER_DEAD_LETTER:
		return "the transfer dead-letter queue of " + source
	default:
		return source
	}
}

// deadLetters counts one of the dead-letter queues of a source.
func (o *operator) deadLetters(ctx context.Context, resource string, subQueue sidebusv1.SubQueue_Kind) (int64, error) {
	counts, err := o.count(ctx, resource)
	if subQueue == sidebusv1.SubQueue_TRANSFER_DEAD_LETTER {
		return counts.GetTransferDeadLetterMessageCount(), err
	}
	return counts.GetDeadLetterMessageCount(), err
}
