package encoded

import (
	"math"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/sidebus/sidebus/semantics"
)

// Decode reads an encoded message into m, which must be empty except for what is never encoded. Decode reports false
// for everything that is unusual or invalid: an unknown field, a part of a field that comes twice, a text that is not
// UTF-8. The generated code then decides what it is. Texts and Body refer to data, which must not change any more.
//
// Decode does not look at the body, which may be invalid as text or as JSON.
func Decode(data []byte, m *semantics.Message) bool {
	texts, hasBody := textsOf(m), false
	for len(data) > 0 {
		number, value, n := consumeBytes(data)
		if n < 0 {
			if number, _, n = consumeVarint(data); n < 0 || number != fieldPriority {
				return false
			}
			data = data[n:] // accepted and ignored
			continue
		}
		ok := false
		switch {
		case number <= lastText:
			ok = decodeText(number, value, texts[number-1]) //nolint:gosec // a number is at least 1
		case number == fieldTimeToLive:
			ok = m.TimeToLive == nil && decodeTimeToLive(value, m)
		case number == fieldProperties:
			ok = decodeProperty(value, m)
		case number <= lastBody:
			ok, hasBody = !hasBody, true
			m.Body, m.BodyKind = value[:len(value):len(value)], semantics.BodyKind(number-fieldBody)
		case number == fieldScheduled:
			ok = m.ScheduledAt.IsZero() && decodeScheduled(value, m)
		}
		if !ok {
			return false
		}
		data = data[n:]
	}
	return true
}

func decodeText(number protowire.Number, value []byte, to *string) bool {
	isMissingID := number == fieldMessageID && len(value) == 0 // which is an error (MSG-2)
	if *to != "" || isMissingID || !utf8.Valid(value) {
		return false
	}
	*to = Text(value)
	return true
}

func decodeProperty(data []byte, m *semantics.Message) bool {
	var name, value []byte
	for len(data) > 0 {
		number, part, n := consumeBytes(data)
		switch {
		case n < 0:
			return false
		case number == fieldKey && name == nil:
			name = part
		case number == fieldValue && value == nil:
			value = part
		default:
			return false
		}
		data = data[n:]
	}
	v, ok := decodeValue(value)
	if !ok || !utf8.Valid(name) {
		return false
	}
	if m.Properties == nil {
		m.Properties = map[string]semantics.Value{}
	}
	m.Properties[Text(name)] = v
	return true
}

// decodeTimeToLive reads a google.protobuf.Duration that is less than semantics.Never.
func decodeTimeToLive(data []byte, m *semantics.Message) bool {
	seconds, nanos, ok := decodeTime(data)
	if !ok || seconds >= math.MaxInt64/int64(time.Second) {
		return false
	}
	ttl := time.Duration(seconds)*time.Second + time.Duration(nanos)
	m.TimeToLive = &ttl
	return true
}

// lastSecond is the last second of the year 9999.
const lastSecond = 253402300799

// decodeScheduled reads a google.protobuf.Timestamp.
func decodeScheduled(data []byte, m *semantics.Message) bool {
	seconds, nanos, ok := decodeTime(data)
	if !ok || seconds > lastSecond {
		return false
	}
	m.ScheduledAt = time.Unix(seconds, nanos).UTC()
	return true
}

// decodeTime reads a Duration that is not negative, or a Timestamp from 1970 on.
func decodeTime(data []byte) (seconds, nanos int64, ok bool) {
	for len(data) > 0 {
		number, value, n := consumeVarint(data)
		switch {
		case n < 0 || value > math.MaxInt64:
			return 0, 0, false
		case number == fieldSeconds:
			seconds = int64(value)
		case number == fieldNanos:
			nanos = int64(value)
		default:
			return 0, 0, false
		}
		data = data[n:]
	}
	return seconds, nanos, nanos < int64(time.Second)
}
