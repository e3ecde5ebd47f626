package filter

import (
	"strings"
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

// String gives the name as canonical text has it, without "sys.".
func (s SystemProperty) String() string { return systemNames[s] }

// Properties is what a filter sees of a message. Implementations must be safe for concurrent use if the same one is
// given to evaluations that run at the same time; they must not block.
type Properties interface {
	// System gives the value of a system property, null if it is unset or not known (SQL-4).
	System(SystemProperty) semantics.Value
	// User gives an application property by its name in lower case (strings.ToLower), and whether the message has it.
	User(lower string) (semantics.Value, bool)
}

// View is Properties over a message. It is immutable and safe for concurrent use as long as nobody changes the message.
// Make one for each message, not for each filter: making it reads all property names.
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

// System implements Properties.
func (v *View) System(s SystemProperty) semantics.Value {
	m := v.message
	switch s {
	case ContentType:
		return textValue(m.ContentType)
	case CorrelationID:
		return textValue(m.CorrelationID)
	case Subject:
		return textValue(m.Subject)
	case MessageID:
		return textValue(m.MessageID)
	case PartitionKey:
		return textValue(m.PartitionKey)
	case ReplyTo:
		return textValue(m.ReplyTo)
	case ReplyToSessionID:
		return textValue(m.ReplyToSessionID)
	case SessionID:
		return textValue(m.SessionID)
	case To:
		return textValue(m.To)
	case TimeToLive:
		return durationValue(m.TimeToLive)
	case ScheduledEnqueueTimeUTC:
		return instantValue(m.ScheduledAt)
	default:
		return v.brokerSet(s)
	}
}

// brokerSet gives what the broker sets. ViaPartitionKey is not kept yet.
func (v *View) brokerSet(s SystemProperty) semantics.Value {
	r := v.received
	if r == nil {
		switch s {
		case DeliveryCount:
			return semantics.Int64(0)
		case Size:
			return semantics.Int64(v.message.Size())
		default:
			return semantics.Null()
		}
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
		return semantics.Null()
	}
}

// fold brings a name to the form in which names are compared. It is the one semantics.Message.Validate uses, so a name
// finds at most one property.
func fold(name string) string { return strings.ToLower(name) }

// foldNames gives the properties by folded name; the same map if all names are folded already.
func foldNames(properties map[string]semantics.Value) map[string]semantics.Value {
	folded := true
	for name := range properties {
		if fold(name) != name { // does not allocate when they are the same
			folded = false
			break
		}
	}
	if folded {
		return properties
	}
	user := make(map[string]semantics.Value, len(properties))
	for name, value := range properties {
		user[fold(name)] = value
	}
	return user
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
