package client

import (
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Bounds of a request of the stream: the sidecar reads at most 64 KiB.
const (
	maxStreamRequest = 64 << 10
	maxCallOverhead  = 32 // of a call in a request, besides what appendCall writes
	maxCallRequest   = maxStreamRequest - maxCallOverhead

	maxCancelledTogether = 1000 // in one request, so that a call has space beside them
	maxCancelledSize     = 11   // of one in a request
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
	fieldKey          protowire.Number = 1
	fieldValue        protowire.Number = 2

	fieldAnswers protowire.Number = 1 // of sidebus.v1.MultiplexResponse
	fieldClosing protowire.Number = 2
	fieldLastID  protowire.Number = 1

	fieldAnswerID       protowire.Number = 1 // of sidebus.v1.MultiplexResponse.Answer
	fieldAnswerResponse protowire.Number = 2
	fieldAnswerMore     protowire.Number = 3
	fieldAnswerStatus   protowire.Number = 4
)

// appendCall adds the fields of a call, except its id. size is that of the request.
func appendCall(
	b []byte, method string, request proto.Message, size int, timeout time.Duration, with map[string]string,
) ([]byte, error) {
	b = protowire.AppendTag(b, fieldCallMethod, protowire.BytesType)
	b = protowire.AppendString(b, method)
	if timeout > 0 {
		encoded, err := proto.Marshal(durationpb.New(timeout))
		if err != nil {
			return b, err
		}
		b = protowire.AppendTag(b, fieldCallTimeout, protowire.BytesType)
		b = protowire.AppendBytes(b, encoded)
	}
	for key, value := range with {
		b = protowire.AppendTag(b, fieldCallMetadata, protowire.BytesType)
		b = protowire.AppendVarint(b, uint64(2*protowire.SizeTag(fieldKey)+ //nolint:gosec // not negative
			protowire.SizeBytes(len(key))+protowire.SizeBytes(len(value))))
		b = protowire.AppendTag(b, fieldKey, protowire.BytesType)
		b = protowire.AppendString(b, key)
		b = protowire.AppendTag(b, fieldValue, protowire.BytesType)
		b = protowire.AppendString(b, value)
	}
	b = protowire.AppendTag(b, fieldCallRequest, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(size)) //nolint:gosec // not negative
	return proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(b, request)
}

// appendNumbered adds a call that appendCall has encoded to a request.
func appendNumbered(b []byte, id uint64, encoded []byte) []byte {
	size := protowire.SizeTag(fieldCallID) + protowire.SizeVarint(id) + len(encoded)
	b = protowire.AppendTag(b, fieldCalls, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(size)) //nolint:gosec // not negative
	b = protowire.AppendTag(b, fieldCallID, protowire.VarintType)
	b = protowire.AppendVarint(b, id)
	return append(b, encoded...)
}

// appendCancelled adds the id of a call that is cancelled to a request.
func appendCancelled(b []byte, id uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, fieldCancelled, protowire.VarintType), id)
}

// answerPart is an answer, or a part of one. It refers to the response that it was decoded from.
type answerPart struct {
	id       uint64
	response []byte
	more     bool
	status   []byte
}

// decodeResponse passes the answers of a response to answer, and what it announces to closing.
func decodeResponse(data []byte, answer func(answerPart), closing func(last uint64)) error {
	return eachField(data, func(number protowire.Number, _ uint64, value []byte) error {
		switch number {
		case fieldAnswers:
			var a answerPart
			err := eachField(value, func(number protowire.Number, n uint64, value []byte) error {
				switch number {
				case fieldAnswerID:
					a.id = n
				case fieldAnswerResponse:
					a.response = value
				case fieldAnswerMore:
					a.more = n != 0
				case fieldAnswerStatus:
					a.status = value
				default: // a field of a later version
				}
				return nil
			})
			if err == nil {
				answer(a)
			}
			return err
		case fieldClosing:
			last := uint64(0)
			err := eachField(value, func(number protowire.Number, n uint64, _ []byte) error {
				if number == fieldLastID {
					last = n
				}
				return nil
			})
			closing(last)
			return err
		default: // a field of a later version
			return nil
		}
	})
}

// eachField passes the fields of an encoded message to take: numbers, or the bytes of texts and submessages.
func eachField(data []byte, take func(number protowire.Number, n uint64, value []byte) error) error {
	for len(data) > 0 {
		number, kind, tag := protowire.ConsumeTag(data)
		if tag < 0 {
			return protowire.ParseError(tag)
		}
		size := protowire.ConsumeFieldValue(number, kind, data[tag:])
		if size < 0 {
			return protowire.ParseError(size)
		}
		var n uint64
		var value []byte
		switch kind {
		case protowire.VarintType:
			n, _ = protowire.ConsumeVarint(data[tag:])
		case protowire.BytesType:
			value, _ = protowire.ConsumeBytes(data[tag:])
		default: // no field has another type
		}
		if err := take(number, n, value); err != nil {
			return err
		}
		data = data[tag+size:]
	}
	return nil
}

// rawCodec passes the messages of the stream as they are encoded.
type rawCodec struct{}

// Marshal returns a message, which is a []byte.
func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	encoded, ok := v.([]byte)
	if !ok {
		return nil, fmt.Errorf("cannot send a %T", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(encoded)}, nil
}

// Unmarshal copies a message into a *[]byte.
func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	to, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("cannot receive a %T", v)
	}
	*to = data.Materialize()
	return nil
}

// Name is the content subtype.
func (rawCodec) Name() string { return "proto" }

// pendingCall is a call that has not been answered.
type pendingCall struct {
	encoded  []byte // of the request, except its id
	id       uint64 // 0: not sent
	response []byte
	status   []byte
	err      error         // why there is no answer
	done     chan struct{} // gets one value when the call has ended
}

// unusedCalls has calls that have ended, whose memory is used again.
var unusedCalls = sync.Pool{New: func() any { return &pendingCall{done: make(chan struct{}, 1)} }}

func newPendingCall() *pendingCall { return unusedCalls.Get().(*pendingCall) }

// recycle lets another call have the memory. Nothing may refer to the call any more.
func (c *pendingCall) recycle() {
	c.id, c.response, c.status, c.err = 0, nil, nil, nil
	const mostKept = 8 << 10
	if cap(c.encoded) > mostKept {
		c.encoded = nil
	}
	unusedCalls.Put(c)
}
