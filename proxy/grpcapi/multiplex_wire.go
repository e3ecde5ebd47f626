package grpcapi

import (
	"time"

	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy/wire"
	"github.com/sidebus/sidebus/semantics"
)

// Numbers of fields, each of the message before.
const (
	fieldCalls     protowire.Number = 1 // of sidebus.v1.MultiplexRequest
	fieldCancelled protowire.Number = 2

	fieldCallID       protowire.Number = 1 // of sidebus.v1.MultiplexRequest.Call
	fieldCallMethod   protowire.Number = 2
	fieldCallRequest  protowire.Number = 3
	fieldCallTimeout  protowire.Number = 4
	fieldCallMetadata protowire.Number = 5

	fieldAnswers protowire.Number = 1 // of sidebus.v1.MultiplexResponse

	fieldAnswerID       protowire.Number = 1 // of sidebus.v1.MultiplexResponse.Answer
	fieldAnswerResponse protowire.Number = 2
	fieldAnswerMore     protowire.Number = 3
	fieldAnswerStatus   protowire.Number = 4
)

// multiplexRequest is a sidebus.v1.MultiplexRequest, decoded without the generated code. Its calls refer to the data.
type multiplexRequest struct {
	calls     []calledMethod
	cancelled []uint64
	size      int
	err       error // why the request is invalid
}

// calledMethod is one call of a request.
type calledMethod struct {
	id       uint64
	method   string
	request  []byte
	timeout  *time.Duration
	metadata metadata.MD // what of it is used; nil: the call has none
	err      error       // why the call is invalid
}

// decode reads the request. data must not change any more.
func (r *multiplexRequest) decode(data []byte) error {
	*r = multiplexRequest{size: len(data)}
	rest, err := fieldsOf(data, func(number protowire.Number, kind protowire.Type, value []byte) (bool, error) {
		switch {
		case number == fieldCalls && kind == protowire.BytesType:
			if len(r.calls) == maxMultiplexCalls {
				r.err = semantics.InvalidField("calls", "must be at most 10000")
				return true, r.err
			}
			call, err := decodeCall(value)
			r.calls = append(r.calls, call)
			return true, err
		default:
			return false, nil
		}
	})
	switch {
	case r.err != nil:
		return nil
	case err != nil || len(rest) == 0:
		return err
	case len(rest) > maxMultiplexRequest:
		r.err = semantics.InvalidField("cancelled", "must be at most 64 KiB")
		return nil
	}
	var others sidebusv1.MultiplexRequest
	if err := proto.Unmarshal(rest, &others); err != nil {
		return err
	}
	r.cancelled = others.GetCancelled()
	r.err = wire.RefuseUnknown("request", &others)
	return nil
}

// decodeCall reads one call: what nearly each has by hand, the rest with the generated code.
func decodeCall(data []byte) (c calledMethod, err error) {
	rest, err := fieldsOf(data, func(number protowire.Number, kind protowire.Type, value []byte) (bool, error) {
		switch {
		case number == fieldCallID && kind == protowire.VarintType:
			c.id, _ = protowire.ConsumeVarint(value)
		case number == fieldCallMethod && kind == protowire.BytesType:
			c.method = string(value)
		case number == fieldCallRequest && kind == protowire.BytesType:
			c.request = value
		default:
			return false, nil
		}
		return true, nil
	})
	if err != nil || len(rest) == 0 {
		return c, err
	}
	var others sidebusv1.MultiplexRequest_Call
	if err := proto.Unmarshal(rest, &others); err != nil {
		return c, err
	}
	if len(others.GetMetadata()) > 0 { // a call keeps what it uses: many small entries would take much memory
		c.metadata = metadata.MD{}
		for _, name := range usedMetadata {
			if value, has := others.GetMetadata()[name]; has {
				c.metadata.Set(name, value)
			}
		}
	}
	if others.GetTimeout() != nil {
		c.timeout, c.err = timeoutOf(others.GetTimeout())
	}
	if c.err == nil {
		c.err = wire.RefuseUnknown("call", &others)
	}
	return c, nil
}

func timeoutOf(d *durationpb.Duration) (*time.Duration, error) {
	timeout, err := wire.DurationOf("timeout", d)
	return &timeout, err
}

// fieldsOf passes each field of an encoded message to take: the bytes of a text or submessage, else the encoded value.
// It returns the encoded fields that take has left.
func fieldsOf(
	data []byte, take func(number protowire.Number, kind protowire.Type, value []byte) (taken bool, err error),
) (rest []byte, err error) {
	for len(data) > 0 {
		number, kind, tag := protowire.ConsumeTag(data)
		if tag < 0 {
			return nil, protowire.ParseError(tag)
		}
		n := protowire.ConsumeFieldValue(number, kind, data[tag:])
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		value := data[tag : tag+n]
		if kind == protowire.BytesType {
			value, _ = protowire.ConsumeBytes(value)
		}
		taken, err := take(number, kind, value)
		if err != nil {
			return nil, err
		}
		if !taken {
			rest = append(rest, data[:tag+n]...)
		}
		data = data[tag+n:]
	}
	return rest, nil
}

// maxPart is the largest part of a response in one answer, so that a large response does not hold up others.
const maxPart = 64 << 10

// multiplexAnswer is the answer to a call, encoded as a field of a sidebus.v1.MultiplexResponse. A large response is in
// parts.
type multiplexAnswer struct {
	id       uint64
	call     *multiplexedCall
	whole    mem.Buffer // the only part; nil: rest has more than one
	rest     []byte     // of the encoded response, not sent yet
	finished func(written bool)
}

// callAnswers has the memory of answers in one part. Those for deliveries of streams are longer.
var callAnswers buffers

// minPooled is the size below which package mem returns no buffer to its pool.
const minPooled = 1 << 10

// encodeAnswer encodes a response.
func encodeAnswer(id uint64, response proto.Message) (multiplexAnswer, error) {
	size := proto.Size(response)
	options := proto.MarshalOptions{UseCachedSize: true}
	if size > maxPart {
		encoded, err := options.MarshalAppend(make([]byte, 0, size), response)
		return multiplexAnswer{id: id, rest: encoded}, err
	}
	if size+answerOverhead < minPooled {
		b := make([]byte, 0, size+answerOverhead)
		b, err := options.MarshalAppend(appendAnswer(b, id, fieldAnswerResponse, size, false), response)
		return multiplexAnswer{id: id, whole: mem.SliceBuffer(b)}, err
	}
	buffer := callAnswers.Get(size + answerOverhead)
	encoded, err := options.MarshalAppend(appendAnswer((*buffer)[:0], id, fieldAnswerResponse, size, false), response)
	*buffer = encoded
	return multiplexAnswer{id: id, whole: mem.NewBuffer(buffer, &callAnswers)}, err
}

// encodeFailure encodes a failure, which is an encoded google.rpc.Status.
func encodeFailure(id uint64, failure []byte) multiplexAnswer {
	b := make([]byte, 0, len(failure)+answerOverhead)
	b = append(appendAnswer(b, id, fieldAnswerStatus, len(failure), false), failure...)
	return multiplexAnswer{id: id, whole: mem.SliceBuffer(b)}
}

// nextPart cuts the next part off a large response.
func (a *multiplexAnswer) nextPart() mem.BufferSlice {
	n := min(len(a.rest), maxPart)
	part, more := a.rest[:n], n < len(a.rest)
	a.rest = a.rest[n:]
	head := appendAnswer(make([]byte, 0, answerOverhead), a.id, fieldAnswerResponse, n, more)
	return mem.BufferSlice{mem.SliceBuffer(head), mem.SliceBuffer(part)}
}

// answerOverhead is the most that an answer takes besides its response or status.
const answerOverhead = 40

// appendAnswer adds an answer up to the value of its last field, which has size bytes.
func appendAnswer(b []byte, id uint64, field protowire.Number, size int, more bool) []byte {
	whole := protowire.SizeTag(fieldAnswerID) + protowire.SizeVarint(id) +
		protowire.SizeTag(field) + protowire.SizeBytes(size)
	if more {
		whole += protowire.SizeTag(fieldAnswerMore) + 1
	}
	b = protowire.AppendTag(b, fieldAnswers, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(whole)) //nolint:gosec // not negative
	b = protowire.AppendTag(b, fieldAnswerID, protowire.VarintType)
	b = protowire.AppendVarint(b, id)
	if more {
		b = protowire.AppendTag(b, fieldAnswerMore, protowire.VarintType)
		b = protowire.AppendVarint(b, 1)
	}
	b = protowire.AppendTag(b, field, protowire.BytesType)
	return protowire.AppendVarint(b, uint64(size)) //nolint:gosec // not negative
}
