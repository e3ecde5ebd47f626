package semantics

import "fmt"

// tooManyHops is the fate of a message that was forwarded as often as it may (FWD-5, DLQ-10).
func tooManyHops(source string, transfer Transfer) Fate {
	description := fmt.Sprintf("the message was forwarded %d times, which is the most; the next would have been from %q to %q",
		MaxForwardHops, source, transfer.To.Path)
	fate := deadLetterFate(ReasonTooManyHops, description)
	// A dead letter is in the dead-letter queue already, and nobody could see that of the subscription for what is unmatched.
	fate.KeepsQueue = !transfer.Source.SubQueue.IsDeadLetters() && !isUnmatched(source)
	return fate
}

// notTaken is the fate of a message that its destination refused (FWD-8, DLQ-13).
func notTaken(transfer Transfer, m *Received, code Code) Fate {
	reason := ReasonDestinationFull
	switch code {
	case EntityNotFound:
		reason = ReasonDestinationNotFound
	case EntityDisabled:
		reason = ReasonDestinationDisabled
	default: // it has no room, or none for this
	}
	description := fmt.Sprintf("the destination %q did not take the message: %s, %s", transfer.To.Path, code, refusals[code])
	if m.DeadLetterReason != "" && transfer.Source.SubQueue.IsDeadLetters() { // which would be forgotten else
		description += fmt.Sprintf("; it was a dead letter because of %s: %s", m.DeadLetterReason, m.DeadLetterErrorDescription)
	}
	return deadLetterFate(reason, description)
}

// refusals say in words why a destination takes a message no more.
var refusals = map[Code]string{
	EntityNotFound:         "it does not exist, or is another one than it was",
	EntityDisabled:         "its status permits no sends",
	EntityFull:             "it holds as much as it may",
	QuotaExceeded:          "it remembers as many message ids as it may",
	MessageSizeExceeded:    "its messages may not be so large",
	NoMatchingSubscription: "no subscription of it selects the message",
}

func deadLetterFate(reason, description string) Fate {
	description = cutText(description, MaxDeadLetterText)
	return Fate{DeadLetter: &DeadLetterTexts{Reason: &reason, Description: &description}}
}

// cutText gives the first characters of a text.
func cutText(text string, most int) string {
	for i := range text {
		if most == 0 {
			return text[:i]
		}
		most--
	}
	return text
}

// deadLetterTexts gives what SetDeadLetter was told. A text that is empty and no property was none.
func (r *Received) deadLetterTexts() DeadLetterTexts {
	told := func(text, property string) *string {
		if r.Properties[property] != String(text) {
			return nil
		}
		return &text
	}
	return DeadLetterTexts{
		Reason:      told(r.DeadLetterReason, PropertyDeadLetterReason),
		Description: told(r.DeadLetterErrorDescription, PropertyDeadLetterDescription),
	}
}
