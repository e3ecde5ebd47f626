package redisstore

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	storagev1 "github.com/sidebus/sidebus/proto/sidebus/storage/v1"
	"github.com/sidebus/sidebus/semantics"
)

// formatProto is the first byte of a payload: what follows is a storagev1.Message. Other bytes are reserved for
// messages stored as another protocol delivered them.
const formatProto = 1

// encodePayload returns the stored form of a message, which the scripts do not parse.
func encodePayload(m *semantics.Message) ([]byte, error) {
	stored := storagev1.Message{
		MessageId: m.MessageID, SessionId: m.SessionID, PartitionKey: m.PartitionKey, CorrelationId: m.CorrelationID,
		Subject: m.Subject, To: m.To, ReplyTo: m.ReplyTo, ReplyToSessionId: m.ReplyToSessionID,
		ContentType: m.ContentType, Body: m.Body, BodyKind: storagev1.Message_BodyKind(m.BodyKind),
	}
	stored.Properties = encodeProperties(m.Properties)
	if !m.ScheduledAt.IsZero() {
		stored.ScheduledMs = m.ScheduledAt.UnixMilli()
	}
	if f := m.Forwarded; f != nil {
		stored.Forwarded = &storagev1.Forwarded{
			Hops: int32(f.Hops), EnqueuedSequenceNumber: f.EnqueuedSequenceNumber, //nolint:gosec // few hops
			DeadLetterSource: f.DeadLetterSource, DeadLetterReason: f.Reason, DeadLetterDescription: f.Description,
		}
	}
	payload := make([]byte, 1, 1+proto.Size(&stored))
	payload[0] = formatProto
	payload, err := proto.MarshalOptions{}.MarshalAppend(payload, &stored)
	if err != nil {
		return nil, &semantics.Error{Code: semantics.Internal, Message: "message cannot be encoded", Err: err}
	}
	return payload, nil
}

func encodeProperties(properties map[string]semantics.Value) []*storagev1.Property {
	var encoded []*storagev1.Property
	for name, v := range properties {
		encoded = append(encoded, encodeProperty(name, v))
	}
	return encoded
}

func decodeProperties(encoded []*storagev1.Property) (map[string]semantics.Value, error) {
	if len(encoded) == 0 {
		return nil, nil
	}
	properties := make(map[string]semantics.Value, len(encoded))
	for _, p := range encoded {
		v, err := decodeProperty(p)
		if err != nil {
			return nil, unreadable(err)
		}
		properties[p.Name] = v
	}
	return properties, nil
}

func encodeProperty(name string, v semantics.Value) *storagev1.Property {
	p := &storagev1.Property{Name: name, Type: storagev1.Property_Type(v.Type())}
	switch v.Type() {
	case semantics.TypeNull:
	case semantics.TypeUint64:
		p.Uint = v.Uint()
	case semantics.TypeFloat, semantics.TypeDouble:
		p.Float = v.Float()
	case semantics.TypeBytes:
		p.Bytes = []byte(v.Text())
	case semantics.TypeString, semantics.TypeURI, semantics.TypeUUID, semantics.TypeDecimal, semantics.TypeDateTime,
		semantics.TypeDateTimeOffset:
		p.Text = v.Text()
	default:
		p.Int = v.Int()
	}
	return p
}

func decodePayload(payload string) (semantics.Message, error) {
	if payload == "" || payload[0] != formatProto {
		return semantics.Message{}, unreadable(fmt.Errorf("unknown format, written by a newer version?"))
	}
	var stored storagev1.Message
	if err := proto.Unmarshal([]byte(payload[1:]), &stored); err != nil {
		return semantics.Message{}, unreadable(err)
	}
	m := semantics.Message{
		MessageID: stored.MessageId, SessionID: stored.SessionId, PartitionKey: stored.PartitionKey,
		CorrelationID: stored.CorrelationId, Subject: stored.Subject, To: stored.To, ReplyTo: stored.ReplyTo,
		ReplyToSessionID: stored.ReplyToSessionId, ContentType: stored.ContentType, Body: stored.Body,
		BodyKind: semantics.BodyKind(stored.BodyKind), //nolint:gosec // three values, written by this package
	}
	if stored.ScheduledMs != 0 {
		m.ScheduledAt = instantOf(stored.ScheduledMs)
	}
	if f := stored.Forwarded; f != nil {
		m.Forwarded = &semantics.Forwarded{
			Hops: int(f.Hops), EnqueuedSequenceNumber: f.EnqueuedSequenceNumber, DeadLetterSource: f.DeadLetterSource,
			DeadLetterTexts: semantics.DeadLetterTexts{
				Reason:      f.DeadLetterReason,
				Description: f.DeadLetterDescription,
			},
		}
	}
	var err error
	m.Properties, err = decodeProperties(stored.Properties)
	return m, err
}

func decodeProperty(p *storagev1.Property) (semantics.Value, error) {
	switch t := semantics.ValueType(p.Type); t { //nolint:gosec // the numbers are the same
	case semantics.TypeNull:
		return semantics.Null(), nil
	case semantics.TypeBool:
		return semantics.Bool(p.Int != 0), nil
	case semantics.TypeUint64:
		return semantics.Uint64(p.Uint), nil
	case semantics.TypeFloat:
		return semantics.Float(p.Float), nil
	case semantics.TypeDouble:
		return semantics.Double(p.Float), nil
	case semantics.TypeBytes:
		return semantics.Bytes(p.Bytes), nil
	case semantics.TypeString, semantics.TypeURI, semantics.TypeUUID, semantics.TypeDecimal, semantics.TypeDateTime,
		semantics.TypeDateTimeOffset:
		return semantics.TextOf(t, p.Text)
	default:
		return semantics.IntegerOf(t, p.Int)
	}
}

func unreadable(err error) error {
	return &semantics.Error{Code: semantics.Internal, Message: "a stored message cannot be read", Err: err}
}
