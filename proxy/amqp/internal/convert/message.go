package convert

import (
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/sidebus/sidebus/proxy/amqp/internal/codec"
	"github.com/sidebus/sidebus/semantics"
)

// Names of annotations.
const (
	lockToken           codec.Symbol = "x-opt-lock-token" //nolint:gosec // the name of an annotation
	sequenceNumber      codec.Symbol = "x-opt-sequence-number"
	enqueuedTime        codec.Symbol = "x-opt-enqueued-time"
	lockedUntil         codec.Symbol = "x-opt-locked-until"
	messageState        codec.Symbol = "x-opt-message-state"
	enqueueSequence     codec.Symbol = "x-opt-enqueue-sequence-number"
	scheduledTime       codec.Symbol = "x-opt-scheduled-enqueue-time"
	partitionKey        codec.Symbol = "x-opt-partition-key"
	deadLetterSourceKey codec.Symbol = "x-opt-deadletter-source"
)

// Fields of the header and the properties.
const (
	durableField    = 0
	priorityField   = 1
	ttlField        = 2
	acquirerField   = 3
	countField      = 4
	headerFields    = 5
	idField         = 0
	userField       = 1
	toField         = 2
	subjectField    = 3
	replyToField    = 4
	correlation     = 5
	contentType     = 6
	contentEncoding = 7
	expiryField     = 8
	creationField   = 9
	groupField      = 10
	groupSequence   = 11
	replyGroup      = 12
	propertyFields  = 13
)

// maxTTL is the longest that the header can say. Longer ones are the difference of two properties.
const maxTTL = 1<<32 - 1

// Message converts a message that a client sends. Body may refer to payload. INVALID_ARGUMENT, MESSAGE_SIZE_EXCEEDED.
func Message(payload []byte) (*semantics.Message, error) {
	s, err := Parse(payload)
	if err != nil {
		return nil, err
	}
	m := &semantics.Message{}
	form := s.readBody(m)
	if err := s.readProperties(m); err != nil {
		return nil, err
	}
	if err := s.readTimes(m); err != nil {
		return nil, err
	}
	if m.Properties, err = Properties(s.Application); err != nil {
		return nil, err
	}
	m.AMQP = s.rest(m, form)
	return m, nil
}

// readProperties reads the properties and the partition key.
func (s *Sections) readProperties(m *semantics.Message) error {
	for _, id := range []struct {
		name  string
		field int
		to    *string
	}{{"messageId", idField, &m.MessageID}, {"correlationId", correlation, &m.CorrelationID}} {
		text, err := idOf(id.name, Field(s.Properties, id.field))
		if err != nil {
			return err
		}
		if id.field == idField && Field(s.Properties, idField) != nil {
			if err := semantics.CheckMessageID(&text); err != nil {
				return err
			}
		}
		*id.to = text
	}
	for _, text := range []struct {
		name  string
		value any
		to    *string
	}{
		{"to", Field(s.Properties, toField), &m.To},
		{"subject", Field(s.Properties, subjectField), &m.Subject},
		{"replyTo", Field(s.Properties, replyToField), &m.ReplyTo},
		{"contentType", Field(s.Properties, contentType), &m.ContentType},
		{"sessionId", Field(s.Properties, groupField), &m.SessionID},
		{"replyToSessionId", Field(s.Properties, replyGroup), &m.ReplyToSessionID},
		{"partitionKey", s.Annotations.Get(string(partitionKey)), &m.PartitionKey},
	} {
		if text.value == nil {
			continue
		}
		value, ok := codec.Text(text.value)
		if !ok {
			return semantics.InvalidField(text.name, "is a %T, must be a string", text.value)
		}
		*text.to = value
	}
	return nil
}

// idOf returns a message id or correlation id as text.
func idOf(name string, value any) (string, error) {
	switch v := value.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	case uint64:
		return strconv.FormatUint(v, 10), nil
	case codec.UUID:
		return semantics.UUID(v).String(), nil
	case []byte:
		return hex.EncodeToString(v), nil
	default:
		return "", semantics.InvalidField(name, "must be a string, a uuid, a ulong or a binary")
	}
}

// readTimes reads how long a message lives and when it is to be enqueued.
func (s *Sections) readTimes(m *semantics.Message) error {
	if value := Field(s.Header, ttlField); value != nil {
		ms, ok := codec.Integer(value)
		if !ok || ms < 0 || ms > maxTTL {
			return semantics.InvalidField("timeToLive", "must be a uint of milliseconds")
		}
		ttl := time.Duration(ms) * time.Millisecond
		expiry, hasExpiry := Field(s.Properties, expiryField).(codec.Timestamp)
		creation, hasCreation := Field(s.Properties, creationField).(codec.Timestamp)
		if ms == maxTTL && hasExpiry && hasCreation && expiry > creation {
			ttl = semantics.Never
			longest := codec.Timestamp(semantics.Never / time.Millisecond)
			if length := expiry - creation; length > 0 && length < longest { // the difference may overflow
				ttl = time.Duration(length) * time.Millisecond
			}
		}
		m.TimeToLive = &ttl
	}
	if value := s.Annotations.Get(string(scheduledTime)); value != nil {
		at, ok := value.(codec.Timestamp)
		if !ok {
			return semantics.InvalidField("scheduledEnqueueTime", "is a %T, must be a timestamp", value)
		}
		m.ScheduledAt = Time(at)
	}
	return nil
}

// Properties converts application properties. INVALID_ARGUMENT.
func Properties(from codec.Map) (map[string]semantics.Value, error) {
	if len(from) == 0 {
		return nil, nil
	}
	properties := make(map[string]semantics.Value, len(from))
	for _, p := range from {
		name, ok := codec.Text(p.Key)
		if !ok {
			return nil, semantics.InvalidField("properties", "has a key that is a %T, must be a string", p.Key)
		}
		value, err := Value(name, p.Value)
		if err != nil {
			return nil, err
		}
		properties[name] = value
	}
	return properties, nil
}

// Batch returns the encoded messages of a transfer with the format of batches. INVALID_ARGUMENT, MESSAGE_SIZE_EXCEEDED,
// ARGUMENT_OUT_OF_RANGE.
func Batch(payload []byte) ([][]byte, error) {
	s, err := Parse(payload)
	switch {
	case err != nil:
		return nil, err
	case s.HasValue || s.HasSequence || len(s.Data) == 0:
		return nil, malformed("a batch must have a data section for each message, and no other body")
	case len(s.Data) > semantics.MaxBatchMessages:
		return nil, semantics.TooManyMessages(len(s.Data))
	}
	return s.Data, nil
}

// View is how a message reaches a client.
type View struct {
	// IsPeek: the message is only shown, so its delivery count is the stored one.
	IsPeek bool
	// HasOrigin: the message came from another entity, whose sequence number the client gets too.
	HasOrigin bool
}

// Encode writes a message for a client.
func Encode(m *semantics.Received, view View) []byte {
	kept := keptOf(m.AMQP)
	b := make([]byte, 0, 512+len(m.Body)+len(m.AMQP))
	b = appendSection(b, headerSection, header(m, view, kept))
	delivery := kept.DeliveryAnnotations
	if !m.LockToken.IsZero() {
		delivery = joined(codec.Map{codec.Named(lockToken, codec.UUID(m.LockToken))}, delivery)
	}
	if len(delivery) > 0 {
		b = appendSection(b, deliveryAnnotationsSection, delivery)
	}
	b = appendSection(b, messageAnnotationsSection, joined(annotations(m, view), kept.Annotations))
	b = appendSection(b, propertiesSection, properties(m, kept))
	if len(m.Properties) > 0 {
		b = appendSection(b, applicationSection, application(m.Properties, kept))
	}
	b = kept.appendBody(b, m)
	if len(kept.Footer) > 0 {
		b = appendSection(b, footerSection, kept.Footer)
	}
	return b
}

// header always has a delivery count: the SDK for .NET needs one.
func header(m *semantics.Received, view View, kept *kept) codec.List {
	count := m.DeliveryCount
	if !view.IsPeek {
		count--
	}
	all := make(codec.List, headerFields)
	copy(all, kept.Header)
	if isFinite(m) {
		all[ttlField] = uint32(min(m.TimeToLive.Milliseconds(), maxTTL))
	}
	all[countField] = uint32(max(count, 0))
	return all
}

// isFinite reports whether a message expires at all.
func isFinite(m *semantics.Received) bool {
	return m.TimeToLive != nil && *m.TimeToLive < semantics.Never
}

func annotations(m *semantics.Received, view View) codec.Map {
	all := codec.Map{
		codec.Named(sequenceNumber, m.SequenceNumber), codec.Named(enqueuedTime, Timestamp(m.EnqueuedAt)),
	}
	add := func(name codec.Symbol, value any, isSet bool) {
		if isSet {
			all = append(all, codec.Named(name, value))
		}
	}
	add(lockedUntil, Timestamp(m.LockedUntil), !m.LockedUntil.IsZero())
	add(messageState, int32(m.State), view.IsPeek || m.State != semantics.Active)
	isElsewhere := view.HasOrigin || m.EnqueuedSequenceNumber != m.SequenceNumber
	add(enqueueSequence, m.EnqueuedSequenceNumber, isElsewhere && m.EnqueuedSequenceNumber > 0)
	add(scheduledTime, Timestamp(m.ScheduledAt), !m.ScheduledAt.IsZero())
	add(partitionKey, m.PartitionKey, m.PartitionKey != "")
	add(deadLetterSourceKey, m.DeadLetterSource, m.DeadLetterSource != "")
	return all
}

// contentTypes are the content types of bodies without one, by kind of body.
var contentTypes = map[semantics.BodyKind]string{
	semantics.BodyText: "text/plain; charset=utf-8", semantics.BodyJSON: "application/json",
}

func properties(m *semantics.Received, kept *kept) codec.List {
	all := make(codec.List, propertyFields)
	copy(all, kept.Properties)
	set := func(at int, text string) {
		if was, err := idOf("", all[at]); all[at] == nil || err != nil || was != text { // an id of another type, unchanged
			all[at] = unlessEmpty(text)
		}
	}
	set(idField, m.MessageID)
	set(toField, m.To)
	set(subjectField, m.Subject)
	set(replyToField, m.ReplyTo)
	set(correlation, m.CorrelationID)
	set(groupField, m.SessionID)
	set(replyGroup, m.ReplyToSessionID)
	kind := m.ContentType
	if kind == "" && len(m.AMQP) == 0 {
		kind = contentTypes[m.BodyKind]
	}
	if kind != "" && isASCII(kind) {
		all[contentType] = codec.Symbol(kind)
	}
	setExpiry(all, m)
	for len(all) > 0 && all[len(all)-1] == nil {
		all = all[:len(all)-1]
	}
	return all
}

func unlessEmpty(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// setExpiry makes absolute-expiry-time and creation-time say what the lifetime is: clients take their difference for
// it. Without a lifetime in the header, or without one of the two, they stay as they came.
func setExpiry(all codec.List, m *semantics.Received) {
	if !isFinite(m) {
		return
	}
	creation, isSent := all[creationField].(codec.Timestamp)
	if _, hasExpiry := all[expiryField].(codec.Timestamp); !isSent || !hasExpiry {
		if m.TimeToLive.Milliseconds() <= maxTTL {
			return
		}
		creation = Timestamp(m.EnqueuedAt)
	}
	all[creationField], all[expiryField] = creation, creation+codec.Timestamp(m.TimeToLive.Milliseconds())
}

// isASCII reports whether a symbol can hold a text.
func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= 0x80 {
			return false
		}
	}
	return true
}

func application(from map[string]semantics.Value, kept *kept) codec.Map {
	all := make(codec.Map, 0, len(from))
	for _, name := range slices.Sorted(maps.Keys(from)) {
		all = append(all, codec.Entry(name, kept.property(name, from[name])))
	}
	return all
}
