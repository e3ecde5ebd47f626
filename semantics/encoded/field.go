package encoded

import (
	"unsafe"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/sidebus/sidebus/semantics"
)

// Numbers of the fields of sidebus.v1.Message; 1 to 9 are the texts.
const (
	lastText        protowire.Number = 9
	fieldTimeToLive protowire.Number = 10
	fieldProperties protowire.Number = 11
	fieldBody       protowire.Number = 12 // as bytes; then as text, then as JSON
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

// textOf returns bytes that no longer change as a text, without a copy.
func textOf(data []byte) string {
	return unsafe.String(unsafe.SliceData(data), len(data)) //nolint:gosec // see Decode
}
