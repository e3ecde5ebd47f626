package client

import (
	"sync"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers the codec that is wrapped here
	"google.golang.org/grpc/mem"
)

// codec is grpc-go's codec for protobuf, except for how it joins the frames of a long answer, such as one with many
// deliveries: the pool of grpc-go clears a MiB for each of them, which takes longer than to decode it.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2("proto")} }

// maxJoined is the capacity of the largest buffer that is kept for another answer.
const maxJoined = 512 << 10

// joined has buffers for answers that came in several frames. What is decoded does not refer to them.
var joined = sync.Pool{New: func() any { return new([]byte) }}

// Unmarshal decodes an answer.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	if len(data) < 2 {
		return c.CodecV2.Unmarshal(data, v)
	}
	buffer := joined.Get().(*[]byte)
	if n := data.Len(); cap(*buffer) < n {
		*buffer = make([]byte, n)
	} else {
		*buffer = (*buffer)[:n]
	}
	data.CopyTo(*buffer)
	err := c.CodecV2.Unmarshal(mem.BufferSlice{mem.SliceBuffer(*buffer)}, v)
	if cap(*buffer) <= maxJoined {
		joined.Put(buffer)
	}
	return err
}
