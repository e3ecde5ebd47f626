// Package frame reads and writes the frames of AMQP 1.0 and their performatives (OASIS parts 2, 3 and 5).
package frame

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/sidebus/sidebus/proxy/amqp/internal/codec"
)

// Sizes of frames in bytes.
const (
	MinMaxSize = 512 // what every peer must accept
	headSize   = 8
)

// Type is the type of a frame.
type Type uint8

// The types.
const (
	AMQP Type = iota
	SASL
)

// Frame is one frame. Body is nil for an empty frame, which only keeps the connection open.
type Frame struct {
	Type    Type
	Channel uint16
	Body    Performative
	Size    int    // of the performative in bytes, if it was read
	Payload []byte // what follows the performative
}

// Malformed is an error of a frame that breaks the encoding, after which no further frame can be trusted.
type Malformed struct{ Err error }

// Error returns what is wrong with the frame.
func (m *Malformed) Error() string { return "malformed frame: " + m.Err.Error() }

// Unwrap returns the cause.
func (m *Malformed) Unwrap() error { return m.Err }

func malformed(format string, args ...any) error { return &Malformed{fmt.Errorf(format, args...)} }

// Reader reads frames of a limited size.
type Reader struct {
	from    io.Reader
	maxSize uint32
	head    [headSize]byte
	buffer  []byte
}

// NewReader returns a Reader that refuses frames of more than maxSize bytes.
func NewReader(from io.Reader, maxSize uint32) *Reader { return &Reader{from: from, maxSize: maxSize} }

// Next reads a frame. The frame is valid until the next call. It returns a *Malformed for a frame that is not one, and
// the error of the connection otherwise; io.EOF only between frames.
func (r *Reader) Next() (Frame, error) {
	if _, err := io.ReadFull(r.from, r.head[:]); err != nil {
		return Frame{}, err
	}
	size, offset := binary.BigEndian.Uint32(r.head[:]), uint32(r.head[4])*4
	switch {
	case size < headSize || offset < headSize || offset > size:
		return Frame{}, malformed("its size is %d and its data begins at %d", size, offset)
	case size > r.maxSize:
		return Frame{}, malformed("it has %d bytes, at most %d are allowed", size, r.maxSize)
	}
	n := int(size - headSize)
	if cap(r.buffer) < n {
		r.buffer = make([]byte, n)
	}
	body := r.buffer[:n]
	if _, err := io.ReadFull(r.from, body); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return Frame{}, err
	}
	f := Frame{Type: Type(r.head[5]), Channel: binary.BigEndian.Uint16(r.head[6:])}
	if f.Type > SASL {
		return Frame{}, malformed("it has the unknown type %d", f.Type)
	}
	err := f.decode(body[offset-headSize:])
	return f, err
}

// Shrink frees memory of a Reader that is waiting for the next frame and has had a large one.
func (r *Reader) Shrink() {
	const kept = 4 << 10
	if cap(r.buffer) > kept {
		r.buffer = nil
	}
}

func (f *Frame) decode(body []byte) error {
	if len(body) == 0 {
		return nil
	}
	value, n, err := codec.Decode(body)
	if err != nil {
		return &Malformed{err}
	}
	described, ok := value.(codec.Described)
	if !ok {
		return malformed("it has no performative")
	}
	code, ok := codeOf(described.Descriptor)
	if !ok {
		return malformed("its performative has the unknown descriptor %v", described.Descriptor)
	}
	create := performatives[code]
	if create == nil || isSASL(code) != (f.Type == SASL) {
		return malformed("0x%02x is not a performative of such a frame", code)
	}
	f.Body = create()
	if err := readInto(f.Body, described.Value); err != nil {
		return &Malformed{err}
	}
	f.Size, f.Payload = n, body[n:]
	return nil
}

// Append adds an encoded frame to b.
func Append(b []byte, f Frame) []byte {
	start := len(b)
	b = append(b, 0, 0, 0, 0, headSize/4, byte(f.Type), byte(f.Channel>>8), byte(f.Channel))
	if f.Body != nil {
		b = codec.Append(b, encoded(f.Body))
	}
	b = append(b, f.Payload...)
	binary.BigEndian.PutUint32(b[start:], uint32(len(b)-start))
	return b
}

// Header is what a connection begins with: the protocol, and its version 1.0.0.
type Header [8]byte

// The protocols.
var (
	AMQPHeader = Header{'A', 'M', 'Q', 'P', 0, 1, 0, 0}
	SASLHeader = Header{'A', 'M', 'Q', 'P', 3, 1, 0, 0}
)
