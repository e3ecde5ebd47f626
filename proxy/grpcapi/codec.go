package grpcapi

import (
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers the codec that is wrapped here
	"google.golang.org/grpc/mem"

	"github.com/sidebus/sidebus/semantics"
)

// ServerOption is the option that a server needs before the services can be registered on it.
func ServerOption() grpc.ServerOption {
	return grpc.ForceServerCodecV2(codec{encoding.GetCodecV2("proto")})
}

// codec is grpc-go's codec for protobuf, except that it keeps the error of an incoming message that cannot be decoded,
// so that the call can answer it. Otherwise grpc-go answers INTERNAL without a reason (ERR-1).
type codec struct{ encoding.CodecV2 }

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
		err = into.decode(data.Materialize())
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
