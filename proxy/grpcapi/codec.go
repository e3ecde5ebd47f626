package grpcapi

import (
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers the codec that is wrapped here
	"google.golang.org/grpc/experimental"
	"google.golang.org/grpc/mem"

	"github.com/sidebus/sidebus/semantics"
)

// ServerOptions are the options that a server needs before the services can be registered on it.
//
// What arrives is read into memory of its own, which no pool takes back, because messages refer to it until they are
// stored.
func ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ForceServerCodecV2(codec{protoCodec}), experimental.BufferPool(mem.NopBufferPool{}),
	}
}

var protoCodec = encoding.GetCodecV2("proto")

// codec is grpc-go's codec for protobuf, with two exceptions. An answer may be encoded already. And the error of an
// incoming message that cannot be decoded is kept, so that the call can answer it. Otherwise grpc-go answers INTERNAL
// without a reason (ERR-1).
type codec struct{ encoding.CodecV2 }

// Marshal encodes an answer.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	switch encoded := v.(type) {
	case mem.Buffer:
		return mem.BufferSlice{encoded}, nil
	case mem.BufferSlice:
		return encoded, nil
	default:
		return c.CodecV2.Marshal(v)
	}
}

// incoming is a request that is being decoded.
type incoming struct {
	into any
	err  error
}

// Unmarshal decodes into a message, or into an incoming, for which it never returns an error.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	in, ok := v.(*incoming)
	if !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	var err error
	if into, ok := in.into.(interface{ decode(data []byte) error }); ok {
		err = into.decode(whole(data))
	} else {
		err = c.CodecV2.Unmarshal(data, in.into)
	}
	if err != nil {
		in.err = semantics.Errorf(
			semantics.InvalidArgument, "the request is not a protobuf message of its type, or has text that is not UTF-8",
		)
	}
	return nil
}

// whole returns the bytes of a message. Most arrive in one frame, and are not copied.
func whole(data mem.BufferSlice) []byte {
	if len(data) == 1 {
		return data[0].ReadOnlyData()
	}
	return data.Materialize()
}

// checked wraps the decoder that grpc-go passes to a handler.
func checked(decode func(any) error) func(any) error {
	return func(v any) error {
		in := &incoming{into: v}
		if err := decode(in); err != nil {
			return err
		}
		return in.err
	}
}
