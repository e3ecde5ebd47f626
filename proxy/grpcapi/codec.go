package grpcapi

import (
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers the codec that is wrapped here
	"google.golang.org/grpc/mem"

	"github.com/sidebus/sidebus/semantics"
)

// ServerOption is what a server needs to have the services registered on it.
func ServerOption() grpc.ServerOption {
	return grpc.ForceServerCodecV2(codec{encoding.GetCodecV2("proto")})
}

// codec is grpc-go's codec for protobuf, except that it keeps the failure to decode an incoming message for the call to
// answer. Otherwise grpc-go answers it, as INTERNAL and without a reason (ERR-1).
type codec struct{ encoding.CodecV2 }

// incoming is a request that is being decoded.
type incoming struct {
	into any
	err  error
}

// Unmarshal decodes into a message, or into an incoming, which never fails.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	in, ok := v.(*incoming)
	if !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	if c.CodecV2.Unmarshal(data, in.into) != nil {
		in.err = semantics.Errorf(
			semantics.InvalidArgument, "the request is no protobuf message of its type, or has text that is not UTF-8",
		)
	}
	return nil
}

// checked wraps the decoder that grpc-go gives a handler.
func checked(decode func(any) error) func(any) error {
	return func(v any) error {
		in := &incoming{into: v}
		if err := decode(in); err != nil {
			return err
		}
		return in.err
	}
}
