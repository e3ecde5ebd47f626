package semantics

import (
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// Validate checks everything about the message that needs no entity: ids, keys, lifetime, properties and sizes
// (MSG-2, MSG-3, MSG-12, MSG-14, MSG-15, TTL-14). It changes nothing.
func (m *Message) Validate() error {
	ids := []struct{ field, value string }{
		{"messageId", m.MessageID},
		{"sessionId", m.SessionID},
		{"partitionKey", m.PartitionKey},
		{"correlationId", m.CorrelationID},
		{"replyToSessionId", m.ReplyToSessionID},
	}
	for _, id := range ids {
		if err := CheckID(id.field, id.value); err != nil {
			return err
		}
	}
	texts := []struct{ field, value string }{
		{"subject", m.Subject}, {"to", m.To}, {"replyTo", m.ReplyTo}, {"contentType", m.ContentType},
	}
	for _, text := range texts {
		if !utf8.ValidString(text.value) {
			return InvalidField(text.field, "must be valid UTF-8")
		}
	}
	if m.SessionID != "" && m.PartitionKey != "" && m.SessionID != m.PartitionKey {
		return FieldError(PartitionKeyMismatch, "partitionKey", "must equal sessionId when both are set")
	}
	if m.TimeToLive != nil && *m.TimeToLive < time.Millisecond {
		return FieldError(ArgumentOutOfRange, "timeToLive", "must be at least 1ms")
	}
	if err := m.validateProperties(); err != nil {
		return err
	}
	if n := m.HeaderSize(); n > MaxHeaderSize {
		return SizeExceeded("headers and properties", n, MaxHeaderSize)
	}
	if n := m.Size(); n > MaxMessageSize {
		return SizeExceeded("message", n, MaxMessageSize)
	}
	return nil
}

func (m *Message) validateProperties() error {
	if m.hasUsualProperties() {
		return nil
	}
	return m.checkProperties()
}

// checkProperties returns the error of the first property by name.
func (m *Message) checkProperties() error {
	folded := make(map[string]string, len(m.Properties))
	for _, name := range slices.Sorted(maps.Keys(m.Properties)) {
		value := m.Properties[name]
		field := "properties[" + Shorten(name) + "]"
		switch {
		case name == "":
			return InvalidField("properties", "must not contain an empty name")
		case !utf8.ValidString(name):
			return InvalidField("properties", "must have names in valid UTF-8")
		case UTF16Length(name) > MaxPropertyNameLength:
			return InvalidField(field, "has a name over %d characters", MaxPropertyNameLength)
		case value.Size() > MaxPropertyValueSize:
			return SizeExceeded(field, int64(value.Size()), MaxPropertyValueSize)
		case value.Type() != TypeBytes && !utf8.ValidString(value.Text()):
			return InvalidField(field, "must be valid UTF-8")
		}
		lower := strings.ToLower(name)
		if other, taken := folded[lower]; taken {
			return InvalidField(field, "differs from %q only in case", Shorten(other))
		}
		folded[lower] = name
	}
	return nil
}

// mostUsualProperties bounds the comparisons of each name with each other.
const mostUsualProperties = 16

// hasUsualProperties reports that properties are valid and have names in ASCII. It needs neither an order, as an error
// does to be the same each time, nor names in lower case.
func (m *Message) hasUsualProperties() bool {
	var known [mostUsualProperties]string
	n := 0
	if len(m.Properties) > len(known) {
		return false
	}
	for name, value := range m.Properties {
		isValid := name != "" && len(name) <= MaxPropertyNameLength && isASCII(name) &&
			value.Size() <= MaxPropertyValueSize && (value.Type() == TypeBytes || utf8.ValidString(value.Text()))
		isSame := func(other string) bool { return strings.EqualFold(name, other) }
		if !isValid || slices.ContainsFunc(known[:n], isSame) {
			return false
		}
		known[n] = name
		n++
	}
	return true
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// CheckID checks an id, which may be empty (MSG-2). INVALID_ARGUMENT.
func CheckID(field, value string) error {
	if !utf8.ValidString(value) {
		return InvalidField(field, "must be valid UTF-8")
	}
	if n := UTF16Length(value); n > MaxIDLength {
		return InvalidField(field, "is %d characters long, at most %d are allowed", n, MaxIDLength)
	}
	return nil
}

// UTF16Length is how many characters a text has, as bounds count them.
func UTF16Length(s string) int {
	if len(s) <= MaxIDLength {
		return len(s) // cannot be over any limit; UTF-16 is never longer than UTF-8
	}
	n := 0
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}
