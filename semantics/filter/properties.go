package filter

import (
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// SystemProperty is a property the broker knows, written with "sys." before it (SQL-3).
type SystemProperty uint8

// The system properties. Subject is also known as Label.
const (
	ContentType SystemProperty = iota + 1
	CorrelationID
	DeliveryCount
	EnqueuedSequenceNumber
	EnqueuedTimeUTC
	ExpiresAtUTC
	Subject
	MessageID
	PartitionKey
	ReplyTo
	ReplyToSessionID
	ScheduledEnqueueTimeUTC
	SequenceNumber
	SessionID
	Size
	TimeToLive
	To
	ViaPartitionKey
)

var systemNames = [...]string{
	ContentType: "ContentType", CorrelationID: "CorrelationId", DeliveryCount: "DeliveryCount",
	EnqueuedSequenceNumber: "EnqueuedSequenceNumber", EnqueuedTimeUTC: "EnqueuedTimeUtc", ExpiresAtUTC: "ExpiresAtUtc",
	Subject: "Label", MessageID: "MessageId", PartitionKey: "PartitionKey", ReplyTo: "ReplyTo",
	ReplyToSessionID: "ReplyToSessionId", ScheduledEnqueueTimeUTC: "ScheduledEnqueueTimeUtc",
	SequenceNumber: "SequenceNumber", SessionID: "SessionId", Size: "Size", TimeToLive: "TimeToLive", To: "To",
	ViaPartitionKey: "ViaPartitionKey",
}

// systemByName finds a system property by its name in lower case.
var systemByName = func() map[string]SystemProperty {
	byName := map[string]SystemProperty{"subject": Subject}
	for property, name := range systemNames {
		if name != "" {
			byName[fold(name)] = SystemProperty(property)
		}
	}
	return byName
}()

// String returns the name as canonical text has it, without "sys.".
func (s SystemProperty) String() string { return systemNames[s] }

// Properties is what a filter sees of a message. Implementations must be safe for concurrent use if the same one is
// given to evaluations that run at the same time; they must not block.
type Properties interface {
	// System returns the value of a system property, null if it is unset or not known (SQL-4).
	System(SystemProperty) semantics.Value
	// User returns an application property by its name in lower case (strings.ToLower), and whether the message has it.
	User(lower string) (semantics.Value, bool)
}

// View is Properties over a message. It is immutable and safe for concurrent use as long as the message does not
// change. Make one for each message, not for each filter: making it reads all property names.
type View struct {
	message  *semantics.Message
	received *semantics.Received // nil before the message is stored
	user     map[string]semantics.Value
}

// Of views a message on its way in, which must have passed Validate: no two property names differ only in case. What
// the broker has not given yet, such as SequenceNumber, is null; DeliveryCount is 0.
func Of(m *semantics.Message) *View { return &View{message: m, user: foldNames(m.Properties)} }

// OfReceived views a stored message.
func OfReceived(r *semantics.Received) *View {
	return &View{message: &r.Message, received: r, user: foldNames(r.Properties)}
}

// User implements Properties.
func (v *View) User(lower string) (semantics.Value, bool) {
	value, ok := v.user[lower]
	return value, ok
}

// System implements Properties. ViaPartitionKey is not kept yet.
func (v *View) System(s SystemProperty) semantics.Value {
	r := v.received
	if r == nil {
		return systemOf(v.message, s)
	}
	switch s {
	case DeliveryCount:
		return semantics.Int64(int64(r.DeliveryCount))
	case EnqueuedSequenceNumber:
		return semantics.Int64(r.EnqueuedSequenceNumber)
	case EnqueuedTimeUTC:
		return instantValue(r.EnqueuedAt)
	case ExpiresAtUTC:
		return instantValue(r.ExpiresAt)
	case SequenceNumber:
		return semantics.Int64(r.SequenceNumber)
	case Size:
		return semantics.Int64(r.Size)
	default:
		return systemOf(v.message, s)
	}
}

// live is Properties over a message as it is at the moment. Nothing is prepared, so that each of many rules looks at a
// message at no cost, and an action sees what its statements have done already.
type live semantics.Message

// manyProperties is where the names are worth folding even for a single filter, which may ask for hundreds.
const manyProperties = 64

// once views a message for one filter.
func once(m *semantics.Message) Properties {
	if len(m.Properties) > manyProperties {
		return Of(m)
	}
	return (*live)(m)
}

// System implements Properties.
func (l *live) System(s SystemProperty) semantics.Value { return systemOf((*semantics.Message)(l), s) }

// User implements Properties.
func (l *live) User(lower string) (semantics.Value, bool) {
	_, value, ok := lookUp(l.Properties, lower)
	return value, ok
}

// systemOf returns a system property of a message on its way in: null for what the broker has not given yet.
func systemOf(m *semantics.Message, s SystemProperty) semantics.Value {
	if text := textField(m, s); text != nil {
		return textValue(*text)
	}
	switch s {
	case TimeToLive:
		return durationValue(m.TimeToLive)
	case ScheduledEnqueueTimeUTC:
		return instantValue(m.ScheduledAt)
	case DeliveryCount:
		return semantics.Int64(0)
	case Size:
		return semantics.Int64(m.Size())
	default:
		return semantics.Null()
	}
}

// textField is where a message keeps a system property that is a text, nil for the others. An empty one is not set
// (MSG-2).
func textField(m *semantics.Message, s SystemProperty) *string {
	switch s {
	case ContentType:
		return &m.ContentType
	case CorrelationID:
		return &m.CorrelationID
	case Subject:
		return &m.Subject
	case MessageID:
		return &m.MessageID
	case PartitionKey:
		return &m.PartitionKey
	case ReplyTo:
		return &m.ReplyTo
	case ReplyToSessionID:
		return &m.ReplyToSessionID
	case SessionID:
		return &m.SessionID
	case To:
		return &m.To
	default:
		return nil
	}
}

func textValue(s string) semantics.Value {
	if s == "" {
		return semantics.Null()
	}
	return semantics.String(s)
}

func durationValue(d *time.Duration) semantics.Value {
	if d == nil {
		return semantics.Null()
	}
	v, _ := semantics.IntegerOf(semantics.TypeTimeSpan, int64(*d/tick)) // any int64 is a timespan
	return v
}

func instantValue(at time.Time) semantics.Value {
	if at.IsZero() {
		return semantics.Null()
	}
	v, _ := semantics.TextOf(semantics.TypeDateTime, at.UTC().Format(time.RFC3339Nano)) // null if beyond year 9999
	return v
}
