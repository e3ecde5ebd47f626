package broker

import (
	"fmt"

	"github.com/sidebus/sidebus/semantics"
)

// tooManyHops is the fate of a message that was forwarded as often as it may (FWD-5, DLQ-10).
func tooManyHops(source string, transfer semantics.Transfer) semantics.Fate {
	description := fmt.Sprintf(
		"the message was forwarded %d times, which is the most; the next would have been from %q to %q",
		semantics.MaxForwardHops, source, transfer.To.Path,
	)
	fate := deadLetterFate(semantics.ReasonTooManyHops, description)
	fate.KeepsQueue = keepsQueue(source, transfer)
	return fate
}

// unreadableFate is the fate of a message that cannot be decoded, and so cannot be carried either.
func unreadableFate(source string, transfer semantics.Transfer, m *semantics.Received) semantics.Fate {
	texts := unreadableTexts(m)
	return semantics.Fate{DeadLetter: &texts, KeepsQueue: keepsQueue(source, transfer)}
}

// keepsQueue reports whether a message that may not be forwarded becomes a dead letter of its own queue. A dead letter
// is in the dead-letter queue already, and that of the subscription for unmatched messages is hidden.
func keepsQueue(source string, transfer semantics.Transfer) bool {
	return !transfer.Source.SubQueue.IsDeadLetters() && !semantics.IsUnmatched(source)
}

// notTaken is the fate of a message that its destination refused (FWD-8, DLQ-13).
func notTaken(transfer semantics.Transfer, m *semantics.Received, code semantics.Code) semantics.Fate {
	reason := semantics.ReasonDestinationFull
	switch code {
	case semantics.EntityNotFound:
		reason = semantics.ReasonDestinationNotFound
	case semantics.EntityDisabled:
		reason = semantics.ReasonDestinationDisabled
	default: // it is full, or too full for this
	}
	description := fmt.Sprintf(
		"the destination %q rejected the message: %s, %s", transfer.To.Path, code, refusals[code],
	)
	if m.DeadLetterReason != "" && transfer.Source.SubQueue.IsDeadLetters() { // which would be forgotten else
		description += fmt.Sprintf(
			"; it was a dead letter because of %s: %s", m.DeadLetterReason, m.DeadLetterErrorDescription,
		)
	}
	return deadLetterFate(reason, description)
}

// refusals say in words why a destination takes a message no more.
var refusals = map[semantics.Code]string{
	semantics.EntityNotFound:         "it does not exist, or is another one than it was",
	semantics.EntityDisabled:         "its status permits no sends",
	semantics.EntityFull:             "it holds as much as it may",
	semantics.QuotaExceeded:          "it remembers as many message ids as it may",
	semantics.MessageSizeExceeded:    "its messages, or all copies of one together, may not be so large",
	semantics.NoMatchingSubscription: "no subscription of it selects the message",
}

func deadLetterFate(reason, description string) semantics.Fate {
	description = semantics.Beginning(description, semantics.MaxDeadLetterText)
	return semantics.Fate{DeadLetter: &semantics.DeadLetterTexts{Reason: &reason, Description: &description}}
}
