package wire

import (
	"encoding/binary"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/encoded"
)

// Numbers of the fields of sidebus.v1.ReceivedMessage that the broker sets or changes.
const (
	fieldTimeToLive              protowire.Number = 10
	fieldScheduledEnqueueTime    protowire.Number = 15
	fieldSequenceNumber          protowire.Number = 50
	fieldEnqueuedSequenceNumber  protowire.Number = 51
	fieldEnqueuedTime            protowire.Number = 52
	fieldExpiresAt               protowire.Number = 53
	fieldDeliveryCount           protowire.Number = 54
	fieldLockToken               protowire.Number = 55
	fieldLockedUntil             protowire.Number = 56
	fieldState                   protowire.Number = 57
	fieldDeadLetterReason        protowire.Number = 58
	fieldDeadLetterDescription   protowire.Number = 59
	fieldDeadLetterSource        protowire.Number = 60
	fieldDeadLetteredTime        protowire.Number = 61
	fieldSize                    protowire.Number = 62
	fieldDeadLetterDeliveryCount protowire.Number = 66
	fieldSessionSequence         protowire.Number = 67
	fieldPartitionID             protowire.Number = 68
	fieldSeconds, fieldNanos     protowire.Number = 1, 2 // of a Timestamp and a Duration
	systemSize                                    = 160  // about what the fields that are always set take
)

// AppendReceived adds a sidebus.v1.ReceivedMessage as a field of an encoded answer. It reports false if a text is not
// UTF-8, so that no client could read the answer.
func AppendReceived(b []byte, field protowire.Number, m *semantics.Received) (_ []byte, isText bool) {
	b = AppendPart(b, field, systemSize+max(len(m.Encoded), len(m.Body)), func(b []byte) []byte {
		b, isText = appendReceived(b, m)
		return b
	})
	return b, isText
}

// appendReceived adds the fields of a sidebus.v1.ReceivedMessage. What the sender set is added as it was stored, if the
// store has it as the wire does.
func appendReceived(b []byte, m *semantics.Received) (_ []byte, isText bool) {
	b = appendSystem(b, m)
	if m.Encoded == "" {
		return encoded.Append(b, &m.Message)
	}
	return append(b, m.Encoded...), true
}

// Numbers of the fields of sidebus.v1.SendResponse, and of its results.
const (
	fieldResults      protowire.Number = 1
	fieldSequence     protowire.Number = 1
	fieldMessageID    protowire.Number = 2
	fieldDeduplicated protowire.Number = 3
	sentSize                           = 20 // about what a result takes besides the message id
)

// SentSize returns about how long AppendSent writes.
func SentSize(results []semantics.SendResult) (n int) {
	for _, r := range results {
		n += sentSize + len(r.MessageID)
	}
	return n
}

// AppendSent adds the fields of a sidebus.v1.SendResponse.
func AppendSent(b []byte, results []semantics.SendResult) []byte {
	for _, r := range results {
		b = AppendPart(b, fieldResults, sentSize+len(r.MessageID), func(b []byte) []byte {
			b = appendNumber(b, fieldSequence, r.SequenceNumber)
			b = appendText(b, fieldMessageID, r.MessageID, false)
			if r.Deduplicated {
				b = appendNumber(b, fieldDeduplicated, 1)
			}
			return b
		})
	}
	return b
}

// AppendPart adds a submessage that write appends. size is about how long it is: if its length takes as many bytes as
// size, nothing has to be moved.
func AppendPart(b []byte, field protowire.Number, size int, write func([]byte) []byte) []byte {
	b = protowire.AppendTag(b, field, protowire.BytesType)
	at := len(b)
	b = protowire.AppendVarint(b, uint64(size)) //nolint:gosec // not negative
	begin := len(b)
	b = write(b)
	length := protowire.AppendVarint(make([]byte, 0, binary.MaxVarintLen64), uint64(len(b)-begin)) //nolint:gosec // not negative
	return slices.Replace(b, at, begin, length...)
}

// appendSystem adds what the broker sets or changes, as received.fillSystem sets it.
func appendSystem(b []byte, m *semantics.Received) []byte {
	if ttl := m.TimeToLive; ttl != nil && *ttl < semantics.Never {
		b = appendTime(b, fieldTimeToLive, int64(*ttl/time.Second), int64(*ttl%time.Second))
	}
	b = appendInstant(b, fieldScheduledEnqueueTime, m.ScheduledAt)
	b = appendNumber(b, fieldSequenceNumber, m.SequenceNumber)
	b = appendNumber(b, fieldEnqueuedSequenceNumber, m.EnqueuedSequenceNumber)
	b = appendNumber(b, fieldSessionSequence, max(m.SessionSequence, 0))
	b = appendInstant(b, fieldEnqueuedTime, m.EnqueuedAt)
	b = appendInstant(b, fieldExpiresAt, m.ExpiresAt)
	b = appendNumber(b, fieldDeliveryCount, int64(m.DeliveryCount))
	if !m.LockToken.IsZero() {
		b = protowire.AppendTag(b, fieldLockToken, protowire.BytesType)
		b = protowire.AppendVarint(b, semantics.UUIDTextLength)
		b = m.LockToken.Append(b)
	}
	b = appendInstant(b, fieldLockedUntil, m.LockedUntil)
	b = appendNumber(b, fieldState, int64(states[m.State]))
	isDeadLetter := !m.DeadLetteredAt.IsZero() // there the texts may be empty and are still set
	b = appendText(b, fieldDeadLetterReason, m.DeadLetterReason, isDeadLetter)
	b = appendText(b, fieldDeadLetterDescription, m.DeadLetterErrorDescription, isDeadLetter)
	b = appendText(b, fieldDeadLetterSource, m.DeadLetterSource, false)
	if isDeadLetter {
		b = appendInstant(b, fieldDeadLetteredTime, m.DeadLetteredAt)
		b = protowire.AppendTag(b, fieldDeadLetterDeliveryCount, protowire.VarintType)
		b = protowire.AppendVarint(b, uint64(m.DeadLetterDeliveryCount)) //nolint:gosec // not negative
	}
	b = appendNumber(b, fieldSize, m.Size)
	return appendNumber(b, fieldPartitionID, int64(partitionOf(m)))
}

// appendNumber adds a number, unless it is 0, which is the same as absent.
func appendNumber(b []byte, field protowire.Number, n int64) []byte {
	if n == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), uint64(n)) //nolint:gosec // as encoded
}

// appendText adds a text, unless it is empty and need not be present.
func appendText(b []byte, field protowire.Number, text string, isPresent bool) []byte {
	if text == "" && !isPresent {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), text)
}

// appendInstant adds a Timestamp, unless it is the zero time, which means absent.
func appendInstant(b []byte, field protowire.Number, at time.Time) []byte {
	if at.IsZero() {
		return b
	}
	return appendTime(b, field, at.Unix(), int64(at.Nanosecond()))
}

// appendTime adds a Timestamp or a Duration.
func appendTime(b []byte, field protowire.Number, seconds, nanos int64) []byte {
	const size = 12 // about
	return AppendPart(b, field, size, func(b []byte) []byte {
		return appendNumber(appendNumber(b, fieldSeconds, seconds), fieldNanos, nanos)
	})
}
