package client

import (
	"fmt"
	"strconv"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

const (
	batchBytes    = 256 << 10 // what every queue and topic takes (MSG-21)
	batchMessages = 4500      // BATCH-2
	generatedID   = 36        // what a message without id gets (MSG-1)
)

// MessageBatch collects messages for one send and knows in advance what fits. [Sender.NewMessageBatch] makes one. It
// must not be used concurrently.
type MessageBatch struct {
	maxBytes int64
	messages []*sidebusv1.Message
	size     int64
}

// MessageBatchOptions changes a [MessageBatch].
type MessageBatchOptions struct {
	// MaxBytes is the most bytes that the messages may count for together. 0 is 256 KiB, which every queue and topic
	// takes. One whose maxMessageSizeInKilobytes is above 256 takes 1 MiB.
	MaxBytes int64
}

// AddMessageOptions is for options to come.
type AddMessageOptions struct{}

// AddMessage puts a message into the batch. options may be nil. If the message does not fit it returns an [Error] with
// [CodeMessageSizeExceeded], the same as [ErrMessageTooLarge], and leaves the batch as it was; Details has the "limit",
// the "actual" number, and "field", "bytes" or "messages": at most 4500 fit. A message that does not fit into an empty
// batch fits into none. A property of a type that Sidebus does not know is [CodeInvalidArgument]. Changes that you make
// to message afterwards do not count, except to the bytes of its body.
func (b *MessageBatch) AddMessage(message *Message, _ *AddMessageOptions) error {
	w, err := message.wire()
	if err != nil {
		return err
	}
	size := countedSize(w)
	switch {
	case len(b.messages) == batchMessages:
		return tooLarge("messages", batchMessages, batchMessages+1)
	case b.size+size > b.maxBytes:
		return tooLarge("bytes", b.maxBytes, b.size+size)
	}
	b.messages, b.size = append(b.messages, w), b.size+size
	return nil
}

// NumBytes returns how many bytes the messages count for.
func (b *MessageBatch) NumBytes() int64 { return b.size }

// NumMessages returns how many messages the batch has.
func (b *MessageBatch) NumMessages() int { return len(b.messages) }

func tooLarge(field string, limit, actual int64) *Error {
	return &Error{
		Code: CodeMessageSizeExceeded,
		Message: fmt.Sprintf(
			"with the message the batch would have %d %s, must be at most %d; send the batch and begin another", actual,
			field, limit,
		),
		Details: map[string]string{
			"field": field, "limit": strconv.FormatInt(limit, 10), "actual": strconv.FormatInt(actual, 10),
		},
	}
}

// countedSize returns how many bytes a message counts for against all limits: body, ids and properties, and the id that
// it will get if it has none (MSG-20, BATCH-5).
func countedSize(m *sidebusv1.Message) int64 {
	n := len(m.GetBody()) + len(m.GetText()) + len(m.GetJson()) + len(m.GetSessionId()) + len(m.GetPartitionKey()) +
		len(m.GetCorrelationId()) + len(m.GetSubject()) + len(m.GetTo()) + len(m.GetReplyTo()) +
		len(m.GetReplyToSessionId()) + len(m.GetContentType())
	if m.MessageId != nil {
		n += len(m.GetMessageId())
	} else {
		n += generatedID
	}
	for name, value := range m.GetProperties() {
		n += len(name) + countedValue(value)
	}
	return int64(n)
}

// countedValue returns the length of a text or of octets, and the width of any other type.
func countedValue(v *sidebusv1.Value) int {
	switch kind := v.GetKind().(type) {
	case *sidebusv1.Value_StringValue:
		return len(kind.StringValue)
	case *sidebusv1.Value_UriValue:
		return len(kind.UriValue)
	case *sidebusv1.Value_BytesValue:
		return len(kind.BytesValue)
	case *sidebusv1.Value_BoolValue, *sidebusv1.Value_ByteValue, *sidebusv1.Value_SbyteValue:
		return 1
	case *sidebusv1.Value_Int16Value, *sidebusv1.Value_Uint16Value:
		return 2
	case *sidebusv1.Value_CharValue, *sidebusv1.Value_Int32Value, *sidebusv1.Value_Uint32Value,
		*sidebusv1.Value_FloatValue:
		return 4
	case *sidebusv1.Value_UuidValue, *sidebusv1.Value_DecimalValue:
		return 16
	case *sidebusv1.Value_NullValue, nil:
		return 0
	default: // 64-bit numbers, instants, spans of time
		return 8
	}
}
