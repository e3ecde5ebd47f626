package redisstore

import (
	"encoding/binary"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	storagev1 "github.com/sidebus/sidebus/proto/sidebus/storage/v1"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/encoded"
	"github.com/sidebus/sidebus/semantics/sealed"
)

// sealing encrypts bodies and session states on their way to Redis, and decrypts them on their way back:
// docs/decisions/0051.
type sealing struct {
	keys func() *sealed.Keys // as they are now; nil: nothing is sealed, and what is sealed cannot be opened
}

func (s sealing) now() *sealed.Keys {
	if s.keys == nil {
		return nil
	}
	return s.keys()
}

// appendSealed appends a payload whose body is sealed. All that stands before the body is authenticated with it: a body
// cannot be moved to another message, nor headers be changed. Scripts move payloads as they are, so all of that stays.
func appendSealed(b []byte, m *semantics.Message, beside *storagev1.Message, keys *sealed.Keys) ([]byte, error) {
	from := len(b)
	b = append(b, formatSealed)
	b = binary.AppendUvarint(b, uint64(proto.Size(beside))) //nolint:gosec // not negative
	b, err := proto.MarshalOptions{}.MarshalAppend(b, beside)
	if err != nil {
		return nil, err
	}
	headers, isText := encoded.AppendHeaders(nil, m)
	if !isText {
		return nil, errNotText
	}
	b = binary.AppendUvarint(b, uint64(len(headers)))
	b = append(append(b, headers...), byte(m.BodyKind))
	return keys.Seal(b, m.Body, b[from:]), nil
}

// sealedPayload is a payload whose body is sealed, in its parts.
type sealedPayload struct {
	context       []byte // all before the body
	beside        string // a storagev1.Message
	headers, body []byte
	kind          semantics.BodyKind
}

func splitSealed(payload string) (p sealedPayload, err error) {
	data, isWhole := encoded.Bytes(payload), true
	at := 1
	part := func() []byte {
		length, n := binary.Uvarint(data[at:])
		if n <= 0 || length > uint64(len(data)-at-n) {
			isWhole = false
			return nil
		}
		from := at + n
		at = from + int(length) //nolint:gosec // at most len(data)
		return data[from:at]
	}
	p.beside = encoded.Text(part())
	p.headers = part()
	if !isWhole || at == len(data) || data[at] > byte(semantics.BodyJSON) {
		return p, unreadable(fmt.Errorf("length of a part"))
	}
	p.kind, p.context, p.body = semantics.BodyKind(data[at]), data[:at+1], data[at+1:]
	return p, nil
}

// decodeSealed reads the parts into m, which is empty, and returns the message as it is encoded on the wire.
func decodeSealed(payload string, m *semantics.Message, keys *sealed.Keys) (wire string, err error) {
	p, err := splitSealed(payload)
	if err != nil {
		return "", err
	}
	_, length, err := sealed.NameOf(p.body)
	if err != nil {
		return "", unreadable(err)
	}
	opened := make([]byte, 0, len(p.headers)+binary.MaxVarintLen64+length)
	opened = encoded.AppendBodyHead(append(opened, p.headers...), p.kind, length)
	if opened, err = keys.Open(opened, p.body, p.context); err != nil {
		return "", cannotOpen(err)
	}
	p.headers = opened
	if err := p.decodeHeaders(m); err != nil {
		return "", err
	}
	return encoded.Text(opened), nil
}

func (p *sealedPayload) decodeHeaders(m *semantics.Message) error {
	if err := decodeStored(p.beside, m); err != nil {
		return err
	}
	if !encoded.Decode(p.headers, m) {
		return unreadable(errNewer)
	}
	return nil
}

// cannotOpen returns PAYLOAD_KEY_MISSING, which passes when there is the key, as it is.
func cannotOpen(err error) error {
	var e *semantics.Error
	if errors.As(err, &e) {
		return e
	}
	return unreadable(err)
}

// sealState returns a state of a session as it is stored. It can be opened only as one of the same entity.
func (s sealing) sealState(path string, state []byte) []byte {
	keys := s.now()
	if !keys.Seals() {
		return state
	}
	return keys.Seal(nil, state, stateContext(path))
}

// openState is the opposite. size is that of the state as the client set it: a stored one of that size is not sealed.
// PAYLOAD_KEY_MISSING without its key; INTERNAL if it is damaged.
func (s sealing) openState(path string, stored []byte, size int64) ([]byte, error) {
	if int64(len(stored)) == size {
		return stored, nil
	}
	opened, err := s.now().Open([]byte{}, stored, stateContext(path))
	var e *semantics.Error
	switch {
	case errors.As(err, &e):
		e = e.With(semantics.DetailEntity, path)
		e.Message = fmt.Sprintf("the state of a session of %s is %s", path, e.Message)
		return nil, e
	case err != nil:
		e = semantics.Errorf(
			semantics.Internal, "the state of a session of %s cannot be read: %v; to drop it, unblock the session", path, err,
		)
		return nil, e.With(semantics.DetailEntity, path)
	}
	return opened, nil
}

func stateContext(path string) []byte { return []byte("state of a session of " + semantics.Fold(path)) }
