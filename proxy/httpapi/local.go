package httpapi

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/proxy/grpcapi"
	"github.com/sidebus/sidebus/proxy/internal/admission"
	"github.com/sidebus/sidebus/proxy/internal/obs"
)

// local is a client connection to services in this process, for the gateway. It authorizes each call between decoding
// and handling.
type local map[string]localMethod

type localMethod struct {
	service any
	handle  grpc.MethodHandler
}

func (l local) add(desc grpc.ServiceDesc, service any) {
	for _, m := range desc.Methods {
		l["/"+desc.ServiceName+"/"+m.MethodName] = localMethod{service, m.Handler}
	}
}

// Invoke calls a method if its caller is authorized. It passes request without copying; reply gets the fields of the
// response.
func (l local) Invoke(ctx context.Context, method string, request, reply any, _ ...grpc.CallOption) error {
	m, known := l[method]
	if !known {
		return status.Errorf(codes.Unimplemented, "%s is not served over HTTP", method)
	}
	decoded := func(any) error { return nil }
	answer, err := m.handle(
		m.service,
		ctx,
		decoded,
		func(ctx context.Context, _ any, _ *grpc.UnaryServerInfo, call grpc.UnaryHandler) (any, error) {
			obs.About(ctx, obs.EntityIn(request.(proto.Message)))
			if err := access.Check(ctx, method, request.(proto.Message)); err != nil {
				return nil, err
			}
			if err := takeKey(ctx, request); err != nil {
				return nil, err
			}
			return call(access.WhileWaiting(ctx, method, request.(proto.Message)), request)
		},
	)
	if err == nil {
		err = admission.AcquireResponse(ctx, method, answer)
	}
	if err != nil {
		return err
	}
	exchangeOf(ctx).inAnswer = grpcapi.FailureIn(answer)
	to := reply.(proto.Message).ProtoReflect()
	answer.(proto.Message).ProtoReflect().
		Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
			to.Set(field, value)
			return true
		})
	return nil
}

// NewStream always fails: streams have no HTTP routes.
func (l local) NewStream(
	_ context.Context, _ *grpc.StreamDesc, method string, _ ...grpc.CallOption,
) (grpc.ClientStream, error) {
	return nil, status.Errorf(codes.Unimplemented, "%s is not served over HTTP", method)
}
