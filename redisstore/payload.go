package redisstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	storagev1 "github.com/sidebus/sidebus/proto/sidebus/storage/v1"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/encoded"
)

// Formats of a payload, by its first byte. Other bytes are reserved for messages stored as another protocol delivered
// them.
const (
	// formatStored: a storagev1.Message follows. It is only read; versions before decision 0027 wrote it.
	formatStored = 1
	// formatWire: the length of a storagev1.Message follows, then this message with what is not on the wire, mostly
	// empty, and then the message as package encoded writes it.
	formatWire = 2
	// formatSealed: the length of a storagev1.Message, this message, the length of the message without its body as
	// package encoded writes it, this message, the kind of the body, and the body, sealed. 3 and 4 are those of chunks.
	formatSealed = 5
)

var (
	errNotText = errors.New("text that is not UTF-8")
	errNewer   = errors.New("fields of a newer version?")
)

// encode returns the stored form of a message, which the scripts do not parse.
func (s sealing) encode(m *semantics.Message) ([]byte, error) { return s.append(nil, m) }

// append appends the stored form of a message to b.
func (s sealing) append(b []byte, m *semantics.Message) ([]byte, error) {
	keys, err := s.now(), error(nil)
	if keys.Seals() {
		b = slices.Grow(b, binary.MaxVarintLen64+encoded.Size(m)+keys.Overhead())
		b, err = appendSealed(b, m, besideOf(m), keys)
	} else {
		b, err = appendPlain(b, m, besideOf(m))
	}
	if err != nil {
		return nil, &semantics.Error{Code: semantics.Internal, Message: "message cannot be encoded", Err: err}
	}
	return b, nil
}

func appendPlain(b []byte, m *semantics.Message, beside *storagev1.Message) ([]byte, error) {
	length := proto.Size(beside)
	b = append(slices.Grow(b, 1+binary.MaxVarintLen32+length+encoded.Size(m)), formatWire)
	b = binary.AppendUvarint(b, uint64(length)) //nolint:gosec // not negative
	b, err := proto.MarshalOptions{}.MarshalAppend(b, beside)
	b, isText := encoded.Append(b, m)
	if err == nil && !isText {
		err = errNotText
	}
	return b, err
}

// besideOf returns what is not on the wire, nil for nothing.
func besideOf(m *semantics.Message) *storagev1.Message {
	if m.ScheduledAt.IsZero() && m.Forwarded == nil && len(m.AMQP) == 0 {
		return nil
	}
	beside := &storagev1.Message{Amqp: m.AMQP}
	if !m.ScheduledAt.IsZero() {
		beside.ScheduledMs = m.ScheduledAt.UnixMilli()
	}
	if f := m.Forwarded; f != nil {
		beside.Forwarded = &storagev1.Forwarded{
			Hops: int32(f.Hops), EnqueuedSequenceNumber: f.EnqueuedSequenceNumber, //nolint:gosec // few hops
			DeadLetterSource: f.DeadLetterSource, DeadLetterReason: f.Reason, DeadLetterDescription: f.Description,
		}
	}
	return beside
}

// decode reads the stored form into m, which then refers to payload. It returns the part that is encoded as on the
// wire, "" if no part is. PAYLOAD_KEY_MISSING for a body that is sealed with another key than those of s.
func (s sealing) decode(payload string, m *semantics.Message) (wire string, err error) {
	if payload != "" && payload[0] == formatSealed {
		wire, err = decodeSealed(payload, m, s.now())
	} else {
		wire, err = decodeParts(payload, m)
	}
	if err != nil {
		return "", err
	}
	if m.BodyKind != semantics.BodyBytes && !utf8.Valid(m.Body) { // no client could read it, no forwarder pass it on
		return "", unreadable(errNotText)
	}
	return wire, nil
}

// decodeHeaders is decode for what needs no body, which it leaves empty if it is sealed.
func (s sealing) decodeHeaders(payload string, m *semantics.Message) error {
	if payload == "" || payload[0] != formatSealed {
		_, err := s.decode(payload, m)
		return err
	}
	p, err := splitSealed(payload)
	if err != nil {
		return err
	}
	return p.decodeHeaders(m)
}

func decodeParts(payload string, m *semantics.Message) (wire string, err error) {
	switch {
	case payload != "" && payload[0] == formatStored:
		return "", decodeStored(payload[1:], m)
	case payload != "" && payload[0] == formatWire:
		data := encoded.Bytes(payload[1:])
		length, n := binary.Uvarint(data)
		if n <= 0 || length > uint64(len(data)-n) {
			return "", unreadable(fmt.Errorf("length of a part"))
		}
		end := n + int(length) //nolint:gosec // at most len(data)
		if err := decodeStored(payload[1+n:1+end], m); err != nil {
			return "", err
		}
		if !encoded.Decode(data[end:], m) {
			return "", unreadable(errNewer)
		}
		return payload[1+end:], nil
	default:
		return "", unreadable(fmt.Errorf("unknown format, written by a newer version?"))
	}
}

// decodeStored reads a storagev1.Message into m, which is empty.
func decodeStored(blob string, m *semantics.Message) error {
	if blob == "" {
		return nil
	}
	var stored storagev1.Message
	if err := proto.Unmarshal(encoded.Bytes(blob), &stored); err != nil {
		return unreadable(err)
	}
	*m = semantics.Message{
		MessageID: stored.MessageId, SessionID: stored.SessionId, PartitionKey: stored.PartitionKey,
		CorrelationID: stored.CorrelationId, Subject: stored.Subject, To: stored.To, ReplyTo: stored.ReplyTo,
		ReplyToSessionID: stored.ReplyToSessionId, ContentType: stored.ContentType, Body: stored.Body,
		BodyKind: semantics.BodyKind(stored.BodyKind), //nolint:gosec // three values, written by this package
		AMQP:     stored.Amqp,
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
	return err
}

func unreadable(err error) error {
	return &semantics.Error{Code: semantics.Internal, Message: "a stored message cannot be read", Err: err}
}
