package brokerproperties

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// stateNames are the states in the order of semantics.State.
var stateNames = []string{semantics.Active: "Active", semantics.Deferred: "Deferred", semantics.Scheduled: "Scheduled"}

// Write writes a message, without its body, into the headers of a response or request: its broker properties, its
// content type, and its application properties, except those whose names are in left, in any case. Application
// properties never replace standard headers.
func Write(header http.Header, m *semantics.Received, left ...string) {
	isTyped := writeContentType(header, m)
	set(header, Header, string(brokerPropertiesOf(m, !isTyped)))
	var rest object
	for _, name := range slices.Sorted(maps.Keys(m.Properties)) {
		switch {
		case slices.ContainsFunc(left, func(other string) bool { return strings.EqualFold(name, other) }):
		case fitsHeader(name):
			set(header, name, string(appendValue(nil, m.Properties[name])))
		default:
			rest.key(name)
			rest.text = appendValue(rest.text, m.Properties[name])
		}
	}
	if rest.text != nil {
		set(header, PropertiesHeader, string(rest.end()))
	}
}

// set sets a header under the name as given, which need not be canonical.
func set(header http.Header, name, value string) { header[name] = []string{value} }

// contentTypes are the content types of bodies without one, by kind of body.
var contentTypes = map[semantics.BodyKind]string{
	semantics.BodyText: "text/plain; charset=utf-8", semantics.BodyJSON: "application/json",
}

// writeContentType sets Content-Type. It returns false if the message has one that a header cannot carry.
func writeContentType(header http.Header, m *semantics.Received) bool {
	header["Content-Type"] = nil // no header, so that net/http does not guess
	switch {
	case m.ContentType == "":
		if kind, ok := contentTypes[m.BodyKind]; ok {
			header.Set("Content-Type", kind)
		}
		return true
	case !isHeaderValue(m.ContentType):
		return false
	default:
		header.Set("Content-Type", m.ContentType)
		return true
	}
}

// isHeaderValue reports whether a header carries a text unchanged.
func isHeaderValue(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return strings.TrimSpace(s) == s
}

// brokerPropertiesOf returns the broker properties that Service Bus sends to a receiver (REST-4), in its order.
func brokerPropertiesOf(m *semantics.Received, withContentType bool) []byte {
	var o object
	if withContentType {
		o.string("ContentType", m.ContentType)
	}
	o.string("CorrelationId", m.CorrelationID)
	o.string("DeadLetterSource", m.DeadLetterSource)
	o.number("DeliveryCount", strconv.Itoa(m.DeliveryCount))
	o.number("EnqueuedSequenceNumber", strconv.FormatInt(m.EnqueuedSequenceNumber, 10))
	o.instant("EnqueuedTimeUtc", m.EnqueuedAt)
	o.instant("ExpiresAtUtc", m.ExpiresAt)
	o.string("Label", m.Subject)
	if !m.LockToken.IsZero() {
		o.string("LockToken", m.LockToken.String())
	}
	o.instant("LockedUntilUtc", m.LockedUntil)
	o.string("MessageId", m.MessageID)
	o.string("PartitionKey", m.PartitionKey)
	o.string("ReplyTo", m.ReplyTo)
	o.string("ReplyToSessionId", m.ReplyToSessionID)
	o.instant("ScheduledEnqueueTimeUtc", m.ScheduledAt)
	o.number("SequenceNumber", strconv.FormatInt(m.SequenceNumber, 10))
	o.string("SessionId", m.SessionID)
	o.string("State", stateNames[m.State])
	o.number("TimeToLive", formatSeconds(m.TimeToLive))
	o.string("To", m.To)
	return o.end()
}

// Sent returns the broker properties of a message for its sender.
func Sent(header http.Header, result semantics.SendResult) {
	var o object
	o.string("MessageId", result.MessageID)
	o.number("SequenceNumber", strconv.FormatInt(result.SequenceNumber, 10))
	set(header, Header, string(o.end()))
}

// Renewed returns the broker properties of a renewed lock for its holder.
func Renewed(header http.Header, until time.Time) {
	var o object
	o.instant("LockedUntilUtc", until)
	set(header, Header, string(o.end()))
}

// object writes a JSON object member by member. It leaves out texts and instants that are not set.
type object struct{ text []byte }

func (o *object) key(name string) {
	mark := byte(',')
	if o.text == nil {
		mark = '{'
	}
	o.text = append(appendString(append(o.text, mark), name), ':')
}

func (o *object) string(name, value string) {
	if value != "" {
		o.key(name)
		o.text = appendString(o.text, value)
	}
}

func (o *object) number(name, value string) {
	o.key(name)
	o.text = append(o.text, value...)
}

func (o *object) instant(name string, at time.Time) {
	if !at.IsZero() {
		o.string(name, formatInstant(at))
	}
}

func (o *object) end() []byte { return append(o.text, '}') }
