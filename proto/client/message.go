package client

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// BodyType says how a body is stored and how receivers over HTTP see it. Sidebus never looks into a body.
type BodyType int

const (
	// BodyBytes is the default: octets, over HTTP "body" in base64.
	BodyBytes BodyType = iota
	// BodyText is text in UTF-8, over HTTP "text".
	BodyText
	// BodyJSON is a JSON value, over HTTP "json", the value itself.
	BodyJSON
)

// Message is what a [Sender] sends. Optional fields are pointers and nil when not set. Body, ids and properties
// together may count for as many bytes as the queue or topic permits (256 KiB unless it was created otherwise); ids and
// properties for 64 KiB.
type Message struct {
	// ApplicationProperties are yours, and filters of subscriptions see them. A name has 1 to 128 UTF-16 units; two
	// names must not differ only in case. Values may be nil, string, bool, any integer or float, []byte, time.Time,
	// time.Duration (in steps of 100 ns), [Char], [Decimal], [UUID], [URI] and [DateTimeOffset], each at most 32 KiB.
	// An int is received as int64, a uint as uint64.
	ApplicationProperties map[string]any
	// Body is the content, which Sidebus does not look into.
	Body []byte
	// BodyType says what Body holds.
	BodyType BodyType
	// ContentType is the media type of Body. It is not interpreted.
	ContentType *string
	// CorrelationID has at most 128 UTF-16 units.
	CorrelationID *string
	// MessageID has 1 to 128 UTF-16 units. Nil: Sidebus makes a random UUID.
	MessageID *string
	// PartitionKey has at most 128 UTF-16 units and must equal SessionID when both are set.
	PartitionKey *string
	// ReplyTo is the queue or topic that a reply should go to.
	ReplyTo *string
	// ReplyToSessionID is the session that a reply should go to, at most 128 UTF-16 units.
	ReplyToSessionID *string
	// ScheduledEnqueueTime is when the message becomes available. Nil or in the past: at once.
	ScheduledEnqueueTime *time.Time
	// SessionID is the session the message belongs to, at most 128 UTF-16 units. Queues with sessions need it.
	SessionID *string
	// Subject is also called label.
	Subject *string
	// TimeToLive is how long the message lives once it is enqueued, at least 1 ms. Nil: as long as the queue says,
	// which also bounds it.
	TimeToLive *time.Duration
	// To is kept and not interpreted.
	To *string
}

// wire converts m. It fails if a property has a type that Sidebus does not know.
func (m *Message) wire() (*sidebusv1.Message, error) {
	if m == nil {
		return nil, invalidArgument("message", "the message is nil")
	}
	properties, err := toProperties(m.ApplicationProperties)
	if err != nil {
		return nil, err
	}
	w := &sidebusv1.Message{
		MessageId: m.MessageID, SessionId: m.SessionID, PartitionKey: m.PartitionKey, CorrelationId: m.CorrelationID,
		Subject: m.Subject, To: m.To, ReplyTo: m.ReplyTo, ReplyToSessionId: m.ReplyToSessionID,
		ContentType: m.ContentType,
		Properties:  properties,
	}
	if m.TimeToLive != nil {
		w.TimeToLive = durationpb.New(*m.TimeToLive)
	}
	if m.ScheduledEnqueueTime != nil {
		w.ScheduledEnqueueTime = timestamppb.New(*m.ScheduledEnqueueTime)
	}
	switch {
	case m.BodyType == BodyText:
		w.Content = &sidebusv1.Message_Text{Text: string(m.Body)}
	case m.BodyType == BodyJSON:
		w.Content = &sidebusv1.Message_Json{Json: string(m.Body)}
	case m.Body != nil:
		w.Content = &sidebusv1.Message_Body{Body: m.Body}
	}
	return w, nil
}

// MessageState says what becomes of a stored message.
type MessageState int

const (
	// MessageStateActive is available or locked.
	MessageStateActive MessageState = iota
	// MessageStateDeferred is set aside until it is received by its sequence number.
	MessageStateDeferred
	// MessageStateScheduled waits for its ScheduledEnqueueTime.
	MessageStateScheduled
)

// ReceivedMessage is a message as it was received or peeked. It is yours: nothing changes it afterwards, except
// [Receiver.RenewMessageLock].
type ReceivedMessage struct {
	// As the sender set them; see [Message].

	ApplicationProperties map[string]any
	Body                  []byte
	BodyType              BodyType
	ContentType           *string
	CorrelationID         *string
	MessageID             string // as sent, or as made by Sidebus
	PartitionKey          *string
	ReplyTo               *string
	ReplyToSessionID      *string
	ScheduledEnqueueTime  *time.Time
	SessionID             *string
	Subject               *string
	TimeToLive            *time.Duration // cut to what the queue permits; nil: the message never expires
	To                    *string

	// SequenceNumber is from 1 on, in the order in which the queue or subscription accepted its messages.
	SequenceNumber int64
	// EnqueuedSequenceNumber is the number in the topic, or in the first entity of a forwarded message; else
	// SequenceNumber.
	EnqueuedSequenceNumber int64
	// SessionSequence is from 1 on without gaps in each session; nil without sessions and while scheduled.
	SessionSequence *int64
	// EnqueuedTime is when the message was accepted, by the clock of Redis.
	EnqueuedTime time.Time
	// ExpiresAt is when the message expires; nil: never.
	ExpiresAt *time.Time
	// DeliveryCount is 1 with the first delivery. Of a peeked message it counts the deliveries so far.
	DeliveryCount int32
	// LockToken proves to the sidecar that the message is yours. Empty when peeked or received in
	// [ReceiveModeReceiveAndDelete].
	LockToken string
	// LockedUntil is when the lock expires, by the clock of Redis; in a session it is that of the session. Nil without
	// a lock. Automatic renewal does not change it.
	LockedUntil *time.Time
	// State says what becomes of the message.
	State MessageState
	// DeadLetterReason and DeadLetterErrorDescription say why it is in a dead-letter queue; nil elsewhere.
	DeadLetterReason, DeadLetterErrorDescription *string
	// DeadLetterSource is the queue or subscription whose dead letter it was, of one that was forwarded since.
	DeadLetterSource *string
	// DeadLetteredTime is when it became a dead letter; nil outside of dead-letter queues.
	DeadLetteredTime *time.Time
	// Size is how many bytes the message counts for against the size of the queue.
	Size int64
	// IsLocked and IsExpired are set for peeked messages only.
	IsLocked, IsExpired bool
}

// Message returns what has to be sent to send the same message again: all that its sender set.
func (m *ReceivedMessage) Message() *Message {
	id := m.MessageID
	return &Message{
		ApplicationProperties: m.ApplicationProperties, Body: m.Body, BodyType: m.BodyType, ContentType: m.ContentType,
		CorrelationID: m.CorrelationID, MessageID: &id, PartitionKey: m.PartitionKey, ReplyTo: m.ReplyTo,
		ReplyToSessionID: m.ReplyToSessionID, ScheduledEnqueueTime: m.ScheduledEnqueueTime, SessionID: m.SessionID,
		Subject: m.Subject, TimeToLive: m.TimeToLive, To: m.To,
	}
}

func received(messages []*sidebusv1.ReceivedMessage) []*ReceivedMessage {
	converted := make([]*ReceivedMessage, len(messages))
	for i, m := range messages {
		converted[i] = receivedMessage(m)
	}
	return converted
}

//nolint:protogetter // fields that were not set stay nil
func receivedMessage(w *sidebusv1.ReceivedMessage) *ReceivedMessage {
	m := &ReceivedMessage{
		ApplicationProperties: fromProperties(w.Properties), ContentType: w.ContentType, CorrelationID: w.CorrelationId,
		MessageID: w.GetMessageId(), PartitionKey: w.PartitionKey, ReplyTo: w.ReplyTo,
		ReplyToSessionID: w.ReplyToSessionId,
		SessionID:        w.SessionId, Subject: w.Subject, To: w.To,
		ScheduledEnqueueTime: instant(w.ScheduledEnqueueTime), SequenceNumber: w.SequenceNumber,
		EnqueuedSequenceNumber: w.EnqueuedSequenceNumber, SessionSequence: w.SessionSequence,
		EnqueuedTime: w.EnqueuedTime.AsTime(),
		ExpiresAt:    instant(w.ExpiresAt), DeliveryCount: w.DeliveryCount,
		LockToken: w.GetLockToken(), LockedUntil: instant(w.LockedUntil),
		DeadLetterReason: w.DeadLetterReason, DeadLetterErrorDescription: w.DeadLetterErrorDescription,
		DeadLetterSource: w.DeadLetterSource, DeadLetteredTime: instant(w.DeadLetteredTime), Size: w.Size,
		IsLocked: w.GetLocked(), IsExpired: w.GetExpired(),
	}
	if w.TimeToLive != nil {
		m.TimeToLive = new(w.TimeToLive.AsDuration())
	}
	switch content := w.GetContent().(type) {
	case *sidebusv1.ReceivedMessage_Body:
		if len(content.Body) > 0 { // one without a body comes back as it was sent
			m.Body = content.Body
		}
	case *sidebusv1.ReceivedMessage_Text:
		m.Body, m.BodyType = []byte(content.Text), BodyText
	case *sidebusv1.ReceivedMessage_Json:
		m.Body, m.BodyType = []byte(content.Json), BodyJSON
	}
	switch w.GetState() {
	case sidebusv1.ReceivedMessage_DEFERRED:
		m.State = MessageStateDeferred
	case sidebusv1.ReceivedMessage_SCHEDULED:
		m.State = MessageStateScheduled
	default:
		m.State = MessageStateActive
	}
	return m
}

func instant(at *timestamppb.Timestamp) *time.Time {
	if at == nil {
		return nil
	}
	return new(at.AsTime())
}
