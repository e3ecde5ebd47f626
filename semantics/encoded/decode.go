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
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return false
		}
		data = data[n:]
		if number == fieldPriority && kind == protowire.VarintType {
			if _, n = protowire.ConsumeVarint(data); n < 0 {
				return false
			}
			data = data[n:] // accepted and ignored
			continue
		}
		value, n := protowire.ConsumeBytes(data)
		if n < 0 || kind != protowire.BytesType {
			return false
		}
		data = data[n:]
		isValid := false
		switch {
		case number >= 1 && number <= lastText && *texts[number-1] == "": //nolint:gosec // 1 to 9
			*texts[number-1] = textOf(value)                              //nolint:gosec // 1 to 9
			isValid = utf8.Valid(value) && (number > 1 || len(value) > 0) // an empty message id is an error (MSG-2)
		case number == fieldProperties:
			isValid = decodeProperty(value, m)
		case number >= fieldBody && number < fieldBody+3 && !hasBody:
			hasBody = true
			m.Body, m.BodyKind = value[:len(value):len(value)], semantics.BodyKind(number-fieldBody)
			isValid = true
		case number == fieldTimeToLive && m.TimeToLive == nil:
			isValid = decodeTimeToLive(value, m)
		case number == fieldScheduled && m.ScheduledAt.IsZero():
			isValid = decodeScheduled(value, m)
		}
		if !isValid {
			return false
		}
	}
	return true
}

func decodeProperty(data []byte, m *semantics.Message) bool {
	var name, value []byte
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 || kind != protowire.BytesType {
			return false
		}
		part, size := protowire.ConsumeBytes(data[n:])
		if size < 0 {
			return false
		}
		data = data[n+size:]
		switch {
		case number == fieldKey && name == nil:
			name = part
		case number == fieldValue && value == nil:
			value = part
		default:
			return false
		}
	}
	v, ok := decodeValue(value)
	if !ok || !utf8.Valid(name) {
		return false
	}
	if m.Properties == nil {
		m.Properties = map[string]semantics.Value{}
	}
	m.Properties[textOf(name)] = v
	return true
}

// decodeTimeToLive reads a google.protobuf.Duration that is not negative and less than semantics.Never.
func decodeTimeToLive(data []byte, m *semantics.Message) bool {
	seconds, nanos, ok := decodeTime(data)
	if !ok || seconds < 0 || seconds >= math.MaxInt64/int64(time.Second) {
		return false
	}
	ttl := time.Duration(seconds)*time.Second + time.Duration(nanos)
	m.TimeToLive = &ttl
	return true
}

// The first and last seconds of the years 1970 and 9999.
const (
	firstSecond = 0
	lastSecond  = 253402300799
)

// decodeScheduled reads a google.protobuf.Timestamp from 1970 on.
func decodeScheduled(data []byte, m *semantics.Message) bool {
	seconds, nanos, ok := decodeTime(data)
	if !ok || seconds < firstSecond || seconds > lastSecond {
		return false
	}
	m.ScheduledAt = time.Unix(seconds, nanos).UTC()
	return true
}

// decodeTime reads a Duration or a Timestamp.
func decodeTime(data []byte) (seconds, nanos int64, ok bool) {
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 || kind != protowire.VarintType {
			return 0, 0, false
		}
		v, size := protowire.ConsumeVarint(data[n:])
		if size < 0 || v > math.MaxInt64 {
			return 0, 0, false
		}
		data = data[n+size:]
		switch number {
		case fieldSeconds:
			seconds = int64(v)
		case fieldNanos:
			nanos = int64(v)
		default:
			return 0, 0, false
		}
	}
	return seconds, nanos, nanos < int64(time.Second)
}
