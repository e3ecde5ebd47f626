package encoded

import (
	"unsafe"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/sidebus/sidebus/semantics"
)

// Numbers of the fields of sidebus.v1.Message. Those to lastText are the texts, those from fieldBody to lastBody the
// body in the order of semantics.BodyKind.
const (
	fieldMessageID  protowire.Number = 1
	lastText        protowire.Number = 9
	fieldTimeToLive protowire.Number = 10
	fieldProperties protowire.Number = 11
	fieldBody       protowire.Number = 12
	lastBody        protowire.Number = 14
	fieldScheduled  protowire.Number = 15
	fieldPriority   protowire.Number = 16
)

// Numbers of the fields of an entry of a map, and of google.protobuf.Duration and Timestamp.
const (
	fieldKey     protowire.Number = 1
	fieldValue   protowire.Number = 2
	fieldSeconds protowire.Number = 1
	fieldNanos   protowire.Number = 2
)

// consumeBytes reads a field of bytes from the beginning of data. n is its length, negative if another kind of field is
// there.
func consumeBytes(data []byte) (number protowire.Number, value []byte, n int) {
	number, kind, tag := protowire.ConsumeTag(data)
	if tag < 0 || kind != protowire.BytesType {
		return 0, nil, -1
	}
	value, n = protowire.ConsumeBytes(data[tag:])
	if n < 0 {
		return 0, nil, -1
	}
	return number, value, tag + n
}

// consumeVarint is consumeBytes for a varint.
func consumeVarint(data []byte) (number protowire.Number, value uint64, n int) {
	number, kind, tag := protowire.ConsumeTag(data)
	if tag < 0 || kind != protowire.VarintType {
		return 0, 0, -1
	}
	value, n = protowire.ConsumeVarint(data[tag:])
	if n < 0 {
		return 0, 0, -1
	}
	return number, value, tag + n
}

// textsOf returns the texts of a message in the order of their fields.
func textsOf(m *semantics.Message) [lastText]*string {
	return [lastText]*string{
		&m.MessageID, &m.SessionID, &m.PartitionKey, &m.CorrelationID, &m.Subject, &m.To, &m.ReplyTo,
		&m.ReplyToSessionID, &m.ContentType,
	}
}

// fieldOf returns the field of sidebus.v1.Value for a type. They are in the same order.
func fieldOf(t semantics.ValueType) protowire.Number { return protowire.Number(t) + 1 }

// Bytes returns the bytes of a text without a copy. They must not be changed.
func Bytes(text string) []byte {
	return unsafe.Slice(unsafe.StringData(text), len(text)) //nolint:gosec // read only, as every caller promises
}

// Text returns bytes as a text, without a copy. They must not be changed any more.
func Text(data []byte) string {
	return unsafe.String(unsafe.SliceData(data), len(data)) //nolint:gosec // see Decode
}
