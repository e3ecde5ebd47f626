package semantics

import (
	"maps"
	"slices"
	"time"
)

// Limits of a message (MSG-2, MSG-14, MSG-15, MSG-20, MSG-21, BATCH-2). Sizes are in bytes, ids in UTF-16 units.
const (
	MaxIDLength           = 128
	MaxPropertyNameLength = 128
	MaxPropertyValueSize  = 32 << 10
	MaxHeaderSize         = 64 << 10
	MaxMessageSize        = 100 << 20
	MaxBatchSize          = 1 << 20
	SmallBatchSize        = 256 << 10 // where the entity's own limit is not above this
	MaxBatchMessages      = 4500
	MaxHTTPMessageSize    = 1 << 20
)

// Never is the lifetime of a message that does not expire.
const Never = time.Duration(1<<63 - 1)

// BodyKind is which of the three body fields the sender used; receivers see the same one.
type BodyKind uint8

// The body kinds.
const (
	BodyBytes BodyKind = iota
	BodyText
	BodyJSON
)

// State of a stored message (MSG-9).
type State uint8

// The message states.
const (
	Active State = iota
	Deferred
	Scheduled
)

// Message is what a sender hands over (MSG table). Empty strings mean "not set" (MSG-2); a caller that can distinguish
// an empty message id from an absent one calls CheckMessageID first. The broker never looks into Body.
type Message struct {
	MessageID        string
	SessionID        string
	PartitionKey     string
	CorrelationID    string
	Subject          string
	To               string
	ReplyTo          string
	ReplyToSessionID string
	ContentType      string
	TimeToLive       *time.Duration // nil: the entity's default
	ScheduledAt      time.Time      // when the message is to be enqueued (SCHED-1); zero: at once
	Properties       map[string]Value
	Body             []byte
	BodyKind         BodyKind

	// AMQP is what an AMQP client sent that the other fields do not say, in a form that only package proxy/amqp knows:
	// it returns the message to such clients as it came. Nil for nothing.
	AMQP []byte

	// Forwarded is how it came here from other entities; nil for what a sender hands over. It is not changed, but
	// replaced.
	Forwarded *Forwarded
}

// Received is a stored message as a receiver or a peek sees it.
type Received struct {
	Message
	SequenceNumber             int64
	EnqueuedSequenceNumber     int64
	EnqueuedAt                 time.Time
	ExpiresAt                  time.Time // zero: never
	DeliveryCount              int       // MSG-10: on receive the stored count + 1, on peek the stored count
	LockToken                  LockToken // zero on peek and receive-and-delete (MSG-11)
	LockedUntil                time.Time // zero as LockToken
	State                      State
	DeadLetterReason           string
	DeadLetterErrorDescription string
	DeadLetterSource           string
	DeadLetteredAt             time.Time // zero unless in a dead-letter queue
	DeadLetterDeliveryCount    int       // failed deliveries from the dead-letter queue, which count for nothing (DC-7)
	Size                       int64     // bytes counted against the quota
	SessionSequence            int64     // 1, 2, 3 ... of its session (MSG-19); 0 where there are no sessions

	// Encoded is Message as package encoded writes it; empty if the store has no such form, or if Message was changed
	// afterwards.
	Encoded string

	// Own are the properties of a dead letter that its texts do not hide (MSG-17); not set for other messages.
	Own map[string]Value

	// Unreadable is why the stored form of the message cannot be decoded; nil except for those that are damaged or of a
	// newer version. Message is then empty. A Store returns such a message as any other, and the Broker handles it.
	Unreadable error

	// Only on peek (PEEK-7).
	Locked    bool
	Expired   bool
	VisibleAt time.Time // when a scheduled or delayed message becomes available; zero for others
}

// Names under which the dead-letter texts also appear among the application properties (DLQ-15).
const (
	PropertyDeadLetterReason      = "DeadLetterReason"
	PropertyDeadLetterDescription = "DeadLetterErrorDescription"
)

// Reasons of dead letters that the broker sets (spec section 7).
const (
	ReasonFilterFailed = "FilterEvaluationException" // DLQ-11
	ReasonHeaderSize   = "HeaderSizeExceeded"        // DLQ-8
	ReasonNoSession    = "Session ID is null"        // DLQ-9
	ReasonOverflow     = "MaxMessageCountExceeded"   // TOPIC-7
	// the stored form cannot be decoded: it is damaged, or of a newer version (DLQ-25)
	ReasonUnreadable = "MessageUnreadable"
)

// MaxDeadLetterText is the most characters of a reason and of a description (SETTLE-6).
const MaxDeadLetterText = 4096

// DeadLetterTexts say why a message was dead-lettered. A nil text leaves the application property of its name alone and
// the typed field empty (SETTLE-7).
type DeadLetterTexts struct{ Reason, Description *string }

// SetDeadLetter fills the typed dead-letter fields and the application properties of the same names (DLQ-15).
func (r *Received) SetDeadLetter(texts DeadLetterTexts, at time.Time) {
	r.DeadLetteredAt, r.Own = at, r.Properties
	properties := make(map[string]Value, len(r.Properties)+2)
	maps.Copy(properties, r.Properties)
	if texts.Reason != nil {
		r.DeadLetterReason = *texts.Reason
		properties[PropertyDeadLetterReason] = String(*texts.Reason)
	}
	if texts.Description != nil {
		r.DeadLetterErrorDescription = *texts.Description
		properties[PropertyDeadLetterDescription] = String(*texts.Description)
	}
	r.Properties, r.Encoded = properties, ""
}

// SetForwarded fills what came with the message from other entities (FWD-4, DLQ-15). A dead letter keeps the texts that
// SetDeadLetter has set.
func (r *Received) SetForwarded() {
	from := r.Forwarded
	if from == nil {
		return
	}
	r.EnqueuedSequenceNumber, r.DeadLetterSource = from.EnqueuedSequenceNumber, from.DeadLetterSource
	if !r.DeadLetteredAt.IsZero() {
		return
	}
	if from.Reason != nil {
		r.DeadLetterReason = *from.Reason
	}
	if from.Description != nil {
		r.DeadLetterErrorDescription = *from.Description
	}
}

// ForgetForwarding makes m a message that was never forwarded, as one is that is resubmitted (MSG-17, FWD-5): without
// the texts among its properties, if they are still those. It does not change the map of properties that m has,
// but replaces it.
func (m *Message) ForgetForwarding() {
	from := m.Forwarded
	m.Forwarded = nil
	if from == nil || from.Reason == nil && from.Description == nil {
		return
	}
	m.Properties = maps.Clone(m.Properties)
	for property, told := range from.texts() {
		if told != nil && m.Properties[property] == String(*told) {
			delete(m.Properties, property)
		}
	}
}

// texts returns the two texts by the names of their properties.
func (t DeadLetterTexts) texts() map[string]*string {
	return map[string]*string{PropertyDeadLetterReason: t.Reason, PropertyDeadLetterDescription: t.Description}
}

// ForwardingSize is by how much ForgetForwarding makes a dead letter smaller. Its own texts hide what stands among its
// properties, which only a dead letter without them can have otherwise (SETTLE-7).
func (r *Received) ForwardingSize() int64 {
	if r.Forwarded == nil {
		return 0
	}
	size, own := 0, r.DeadLetterTexts().texts()
	for property, told := range r.Forwarded.texts() {
		if told != nil && (own[property] != nil || r.Properties[property] == String(*told)) {
			size += len(property) + String(*told).Size()
		}
	}
	return int64(size)
}

// HeaderSize is the bytes of all properties, broker and application ones: names and values (MSG-15).
func (m *Message) HeaderSize() int64 {
	n := m.textsSize() + len(m.AMQP)
	for name, value := range m.Properties {
		n += len(name) + value.Size()
	}
	return int64(n)
}

func (m *Message) textsSize() int {
	return len(m.MessageID) + len(m.SessionID) + len(m.PartitionKey) + len(m.CorrelationID) + len(m.Subject) +
		len(m.To) + len(m.ReplyTo) + len(m.ReplyToSessionID) + len(m.ContentType)
}

// Size is the bytes the message counts for: body and all properties (MSG-20).
func (m *Message) Size() int64 { return int64(len(m.Body)) + m.HeaderSize() }

// CheckHeaders is MESSAGE_SIZE_EXCEEDED when the headers are over their limits (MSG-15), as the action of a rule can
// make them (ACT-9).
func (m *Message) CheckHeaders() error {
	for _, name := range slices.Sorted(maps.Keys(m.Properties)) {
		if n := m.Properties[name].Size(); n > MaxPropertyValueSize {
			return SizeExceeded("properties["+Shorten(name)+"]", int64(n), MaxPropertyValueSize)
		}
	}
	if n := m.HeaderSize(); n > MaxHeaderSize {
		return SizeExceeded("headers and properties", n, MaxHeaderSize)
	}
	return nil
}

// brokerProperties are the names that a settlement cannot change (SETTLE-5): those of the MSG table.
var brokerProperties = map[string]bool{
	"MessageId": true, "SessionId": true, "PartitionKey": true, "TransactionPartitionKey": true, "CorrelationId": true,
	"Subject": true, "Label": true, "To": true, "ReplyTo": true, "ReplyToSessionId": true, "ContentType": true,
	"TimeToLive": true, "ScheduledEnqueueTime": true, "SequenceNumber": true, "EnqueuedSequenceNumber": true,
	"EnqueuedTime": true, "ExpiresAt": true, "DeliveryCount": true, "LockToken": true, "LockedUntil": true,
	"State":                  true,
	PropertyDeadLetterReason: true, PropertyDeadLetterDescription: true, "DeadLetterSource": true,
	"DeadLetteredTime": true, "Size": true,
}

// CheckChanges checks properties that a settlement merges into a message's: their form, and that none has the name of a
// broker property (SETTLE-5).
func CheckChanges(properties map[string]Value) error {
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if brokerProperties[name] {
			return InvalidField("properties["+Shorten(name)+"]", "is a broker property and cannot be changed")
		}
	}
	return (&Message{Properties: properties}).Validate()
}

// MergeProperties sets changes over the application properties of m, which it leaves alone, and returns the whole new
// set (SETTLE-5). The Code is MESSAGE_SIZE_EXCEEDED when the headers would outgrow their limit (MSG-15),
// INVALID_ARGUMENT when two names would differ only in case (MSG-14), else empty.
func (m *Message) MergeProperties(changes map[string]Value) (map[string]Value, Code) {
	merged := *m
	merged.Properties = make(map[string]Value, len(m.Properties)+len(changes))
	maps.Copy(merged.Properties, m.Properties)
	maps.Copy(merged.Properties, changes)
	if err := merged.validateProperties(); err != nil {
		return nil, CodeOf(err)
	}
	if merged.HeaderSize() > MaxHeaderSize {
		return nil, MessageSizeExceeded
	}
	return merged.Properties, ""
}

// CheckMessageID refuses a message id that is present but empty (MSG-2); nil means absent.
func CheckMessageID(id *string) error {
	if id != nil && *id == "" {
		return InvalidField("messageId", "must not be empty when present; leave it out to have one made")
	}
	return nil
}

// DeadLetterTexts returns what SetDeadLetter was told. A text that is empty and no property was none.
func (r *Received) DeadLetterTexts() DeadLetterTexts {
	told := func(text, property string) *string {
		if r.Properties[property] != String(text) {
			return nil
		}
		return &text
	}
	return DeadLetterTexts{
		Reason:      told(r.DeadLetterReason, PropertyDeadLetterReason),
		Description: told(r.DeadLetterErrorDescription, PropertyDeadLetterDescription),
	}
}

// Partition is what BATCH-4 and DUP-2 go by on a partitioned entity: the partition key, or else the session id.
func (m *Message) Partition() string {
	if m.PartitionKey != "" {
		return m.PartitionKey
	}
	return m.SessionID
}
