package wire

import (
	"encoding/json"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics"
)

// MessageOf translates one message of any size into to.
func MessageOf(from *sidebusv1.Message, to *semantics.Message) error {
	if err := RefuseUnknown("messages", from); err != nil {
		return err
	}
	if err := semantics.CheckMessageID(from.MessageId); err != nil { //nolint:protogetter // nil and empty differ (MSG-2)
		return err
	}
	*to = semantics.Message{
		MessageID: from.GetMessageId(), SessionID: from.GetSessionId(), PartitionKey: from.GetPartitionKey(),
		CorrelationID: from.GetCorrelationId(), Subject: from.GetSubject(), To: from.GetTo(),
		ReplyTo: from.GetReplyTo(), ReplyToSessionID: from.GetReplyToSessionId(), ContentType: from.GetContentType(),
	}
	if ttl := from.GetTimeToLive(); ttl != nil {
		d, err := DurationOf("timeToLive", ttl)
		if err != nil {
			return err
		}
		to.TimeToLive = &d
	}
	var err error
	if to.ScheduledAt, err = InstantOf("scheduledEnqueueTime", from.GetScheduledEnqueueTime()); err != nil {
		return err
	}
	if to.Properties, err = PropertiesOf(from.GetProperties()); err != nil {
		return err
	}
	switch content := from.GetContent().(type) {
	case *sidebusv1.Message_Body:
		to.Body, to.BodyKind = content.Body, semantics.BodyBytes
	case *sidebusv1.Message_Text:
		to.Body, to.BodyKind = []byte(content.Text), semantics.BodyText
	case *sidebusv1.Message_Json:
		// An HTTP response has it unchanged, so an invalid one would break the response.
		to.Body, to.BodyKind = []byte(content.Json), semantics.BodyJSON
		if !json.Valid(to.Body) {
			return semantics.InvalidField("json", "must be a JSON value")
		}
	case nil:
	}
	return nil
}

// MessageFrom is the opposite of MessageOf.
func MessageFrom(m *semantics.Message) (*sidebusv1.Message, error) {
	var r received
	r.fill(&semantics.Received{Message: *m})
	message := &sidebusv1.Message{}
	data, err := proto.Marshal(&r.message)
	if err == nil { // its fields are those of Message under the same numbers
		err = proto.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(data, message)
	}
	return message, err
}

// PropertiesOf translates properties with their exact types, none to nil.
func PropertiesOf(from map[string]*sidebusv1.Value) (map[string]semantics.Value, error) {
	return valuesOf("properties", from)
}

// valuesOf is PropertiesOf for values in another field.
func valuesOf(field string, from map[string]*sidebusv1.Value) (map[string]semantics.Value, error) {
	if len(from) == 0 {
		return nil, nil
	}
	values := make(map[string]semantics.Value, len(from))
	for name, value := range from {
		v, err := valueOf(value)
		if err != nil {
			return nil, semantics.InvalidField(
				field+"["+semantics.Shorten(name)+"]", "is refused: %s", semantics.AsError(err).Message,
			)
		}
		values[name] = v
	}
	return values, nil
}

// valuesFrom is the opposite of valuesOf.
func valuesFrom(from map[string]semantics.Value) map[string]*sidebusv1.Value {
	if len(from) == 0 {
		return nil
	}
	values := make(map[string]*sidebusv1.Value, len(from))
	for name, value := range from {
		values[name] = valueFrom(value)
	}
	return values
}

// received is a ReceivedMessage and everything it points to, so that a response needs one allocation. Optional texts
// point into the semantics.Received, which must not change any more.
type received struct {
	message                               sidebusv1.ReceivedMessage
	enqueued, expires, locked, deadLetter timestamppb.Timestamp
	timeToLive                            durationpb.Duration
	lockToken                             string
}

// ReceivedFrom translates messages for a receiver, or for a peek.
func ReceivedFrom(messages []*semantics.Received, isPeek bool) []*sidebusv1.ReceivedMessage {
	all := make([]received, len(messages))
	answer := make([]*sidebusv1.ReceivedMessage, len(messages))
	for i, m := range messages {
		all[i].fill(m)
		answer[i] = &all[i].message
		if isPeek {
			answer[i].Locked, answer[i].Expired, answer[i].VisibleAt = &m.Locked, &m.Expired, TimestampFrom(m.VisibleAt)
		}
	}
	return answer
}

// states are the states on the wire in the order of semantics.State.
var states = []sidebusv1.ReceivedMessage_State{
	semantics.Active:    sidebusv1.ReceivedMessage_ACTIVE,
	semantics.Deferred:  sidebusv1.ReceivedMessage_DEFERRED,
	semantics.Scheduled: sidebusv1.ReceivedMessage_SCHEDULED,
}

func (r *received) fill(from *semantics.Received) {
	r.fillSent(&from.Message)
	r.fillSystem(from)
}

// fillSent fills in what is only the sender's, which is what package encoded writes.
func (r *received) fillSent(from *semantics.Message) {
	to := &r.message
	to.MessageId = Present(&from.MessageID)
	to.SessionId = Present(&from.SessionID)
	to.PartitionKey = Present(&from.PartitionKey)
	to.CorrelationId = Present(&from.CorrelationID)
	to.Subject = Present(&from.Subject)
	to.To = Present(&from.To)
	to.ReplyTo = Present(&from.ReplyTo)
	to.ReplyToSessionId = Present(&from.ReplyToSessionID)
	to.ContentType = Present(&from.ContentType)
	to.Properties = valuesFrom(from.Properties)
	switch from.BodyKind {
	case semantics.BodyText:
		to.Content = &sidebusv1.ReceivedMessage_Text{Text: string(from.Body)}
	case semantics.BodyJSON:
		to.Content = &sidebusv1.ReceivedMessage_Json{Json: string(from.Body)}
	case semantics.BodyBytes:
		to.Content = &sidebusv1.ReceivedMessage_Body{Body: from.Body}
	}
}

// fillSystem fills in what the broker sets or changes.
func (r *received) fillSystem(from *semantics.Received) {
	to := &r.message
	if ttl := from.TimeToLive; ttl != nil && *ttl < semantics.Never {
		setDuration(&r.timeToLive, *ttl)
		to.TimeToLive = &r.timeToLive
	}
	to.ScheduledEnqueueTime = TimestampFrom(from.ScheduledAt)
	to.SequenceNumber, to.EnqueuedSequenceNumber = from.SequenceNumber, from.EnqueuedSequenceNumber
	if from.SessionSequence > 0 {
		to.SessionSequence = &from.SessionSequence
	}
	to.EnqueuedTime = setTime(&r.enqueued, from.EnqueuedAt)
	to.ExpiresAt = setTime(&r.expires, from.ExpiresAt)
	to.DeliveryCount = int32(from.DeliveryCount) //nolint:gosec // at most MaxDeliveryCount, an int32
	if !from.LockToken.IsZero() {
		r.lockToken = from.LockToken.String()
		to.LockToken = &r.lockToken
	}
	to.LockedUntil = setTime(&r.locked, from.LockedUntil)
	to.State = states[from.State]
	to.DeadLetterReason = Present(&from.DeadLetterReason)
	to.DeadLetterErrorDescription = Present(&from.DeadLetterErrorDescription)
	if !from.DeadLetteredAt.IsZero() { // there the texts may be empty and are still set
		to.DeadLetterReason, to.DeadLetterErrorDescription = &from.DeadLetterReason, &from.DeadLetterErrorDescription
		deliveries := int32(from.DeadLetterDeliveryCount) //nolint:gosec // far below the bound of an int32
		to.DeadLetterDeliveryCount = &deliveries
	}
	to.DeadLetterSource = Present(&from.DeadLetterSource)
	to.DeadLetteredTime = setTime(&r.deadLetter, from.DeadLetteredAt)
	to.Size = from.Size
	to.PartitionId = partitionOf(from)
}

// partitionOf returns the partition that has a message (PART-3).
func partitionOf(m *semantics.Received) int32 {
	_, partition := semantics.PartitionOf(m.SequenceNumber)
	return int32(partition) //nolint:gosec // below MaxPartitions
}

// Present returns a pointer to s, or nil if s is empty, which means "not set" (MSG-2).
func Present(s *string) *string {
	if *s == "" {
		return nil
	}
	return s
}
