package semantics

import (
	"strconv"
	"strings"
)

// MaxAnswerBytes bounds the messages of one answer, so that a client with default limits, which are 4 MiB in gRPC, can
// read it. One message always fits. What does not fit is not taken. A store counts what it keeps of a message, or
// AnswerSize; docs/limits.md.
const MaxAnswerBytes = 2 << 20

// What an answer has of every message, and of every property, besides texts and values, at most.
const (
	messageOverhead  = 256
	propertyOverhead = 8
)

// AnswerSize is how many bytes the message takes in an answer, or a little more. It is not Size, in which names and
// types count nothing.
func (r *Received) AnswerSize() int64 {
	texts := r.textsSize() + len(r.DeadLetterReason) + len(r.DeadLetterErrorDescription) + len(r.DeadLetterSource)
	return int64(len(r.Body) + propertiesSize(r.Properties) + texts + messageOverhead)
}

// Fitting is how many of the first items fit into one answer of so many bytes; at least one, if there is any.
func Fitting[T any](items []T, most int64, size func(T) int64) int {
	for i, item := range items {
		if most -= size(item); most < 0 {
			return max(i, 1)
		}
	}
	return len(items)
}

// TooLargeAnswer is ARGUMENT_OUT_OF_RANGE for messages that were asked for by their numbers and are too large together.
// Those with the first numbers, which it names, fit.
func TooLargeAnswer(fitting []int64) *Error {
	numbers := make([]string, len(fitting))
	for i, n := range fitting {
		numbers[i] = strconv.FormatInt(n, 10)
	}
	list := strings.Join(numbers, ",")
	return FieldError(
		ArgumentOutOfRange, "sequenceNumbers",
		"name messages of more than %d bytes together, which is more than one answer may have; the first %d fit: %s; nothing was locked",
		MaxAnswerBytes, len(fitting), Shorten(list),
	).
		With(DetailNumbers, list).With(DetailLimit, strconv.Itoa(MaxAnswerBytes))
}

// AnswerSize is how many bytes the rule takes in an answer, or a little more.
func (r Rule) AnswerSize() int64 {
	n := messageOverhead + len(r.Name)
	for _, text := range []*SQLText{r.Filter.SQL, r.Action} {
		if text != nil {
			n += len(text.Expression) + propertiesSize(text.Parameters)
		}
	}
	if c := r.Filter.Correlation; c != nil {
		n += propertiesSize(c.Properties)
		for _, field := range []*string{
			c.ContentType, c.CorrelationID, c.MessageID, c.ReplyTo, c.ReplyToSessionID,
			c.SessionID, c.Subject, c.To,
		} {
			if field != nil {
				n += len(*field)
			}
		}
	}
	return int64(n)
}

// propertiesSize is what properties take in an answer. A time is written out.
func propertiesSize(properties map[string]Value) int {
	n := propertyOverhead * len(properties)
	for name, v := range properties {
		n += len(name) + max(len(v.Text()), v.Size())
	}
	return n
}

// AnswerSize is how many bytes messages take in an answer together.
func AnswerSize(messages []*Received) (n int64) {
	for _, m := range messages {
		n += m.AnswerSize()
	}
	return n
}
