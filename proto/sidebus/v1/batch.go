// Package sidebusv1 is the Go client of Sidebus: what the .proto files generate, Batch and Handle.
package sidebusv1

// Batch gathers messages for one send and knows what they count for before they are sent (BATCH-5). The zero value takes
// what every queue takes: 256 KiB and 4500 messages (MSG-21, BATCH-2). Not safe for concurrent use.
type Batch struct {
	// MaxBytes is the most bytes the messages may count for together; 0 is 256 KiB. A queue whose
	// maxMessageSizeInKilobytes is above 256 takes 1 MiB.
	MaxBytes int64

	messages []*Message
	size     int64
}

const (
	batchBytes    = 256 << 10
	batchMessages = 4500
	generatedID   = 36 // what a message without id gets (MSG-1)
)

// TryAdd puts a message into the batch, which keeps it, and reports false when it no longer fits: then the batch is as it
// was, to be sent and begun anew. A message that does not fit into an empty batch fits into none.
func (b *Batch) TryAdd(m *Message) bool {
	limit := b.MaxBytes
	if limit == 0 {
		limit = batchBytes
	}
	size := m.CountedSize()
	if len(b.messages) == batchMessages || b.size+size > limit {
		return false
	}
	b.messages, b.size = append(b.messages, m), b.size+size
	return true
}

// Size is the bytes that the messages in the batch count for.
func (b *Batch) Size() int64 { return b.size }

// Len is the number of messages in the batch.
func (b *Batch) Len() int { return len(b.messages) }

// Request makes the call that sends the batch to a target, "queues/{queue}" or "topics/{topic}".
func (b *Batch) Request(target string) *SendRequest {
	return &SendRequest{Target: target, Messages: b.messages}
}

// CountedSize is the bytes a message counts for against all limits: its body, ids and properties (MSG-20). It includes the
// id that a message without one is given.
func (m *Message) CountedSize() int64 {
	n := len(m.GetBody()) + len(m.GetText()) + len(m.GetJson()) + len(m.GetSessionId()) + len(m.GetPartitionKey()) +
		len(m.GetCorrelationId()) + len(m.GetSubject()) + len(m.GetTo()) + len(m.GetReplyTo()) +
		len(m.GetReplyToSessionId()) + len(m.GetContentType())
	if m.MessageId != nil {
		n += len(m.GetMessageId())
	} else {
		n += generatedID
	}
	for name, value := range m.GetProperties() {
		n += len(name) + value.countedSize()
	}
	return int64(n)
}

// countedSize is the length of a text or of octets, and the width of any other type.
func (v *Value) countedSize() int {
	switch kind := v.GetKind().(type) {
	case *Value_StringValue:
		return len(kind.StringValue)
	case *Value_UriValue:
		return len(kind.UriValue)
	case *Value_BytesValue:
		return len(kind.BytesValue)
	case *Value_BoolValue, *Value_ByteValue, *Value_SbyteValue:
		return 1
	case *Value_Int16Value, *Value_Uint16Value:
		return 2
	case *Value_CharValue, *Value_Int32Value, *Value_Uint32Value, *Value_FloatValue:
		return 4
	case *Value_UuidValue, *Value_DecimalValue:
		return 16
	case *Value_NullValue, nil:
		return 0
	default: // 64-bit numbers, instants, spans of time
		return 8
	}
}
