// Package inprocess manages a Broker in this process as a Client manages a sidecar: a real sidecar's for its own start,
// or an empty one in memory, which shows what a sidecar would refuse before one is asked.
package inprocess

import (
	"context"
	"fmt"
	"path"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/client"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy/grpcapi"
	"github.com/sidebus/sidebus/proxy/wireerror"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/filter"
	"github.com/sidebus/sidebus/semantics/memstore"
	"github.com/sidebus/sidebus/semantics/partitioned"
)

// Connect returns a connection to a broker. Calls of its AdminClient fail as those of a Client do.
func Connect(broker *broker.Broker) grpc.ClientConnInterface {
	return connection{grpcapi.NewAdmin(broker)}
}

// Empty returns the management of a sidecar with nothing in it, in memory. There is nothing to close: a Broker that
// only manages has no goroutines.
func Empty(options ...broker.Option) sidebusv1.AdminClient {
	store := partitioned.New(memstore.New())
	broker := broker.New(store, append([]broker.Option{broker.WithRules(filter.Compile)}, options...)...)
	return sidebusv1.NewAdminClient(Connect(broker))
}

type connection struct{ admin *grpcapi.Admin }

// Invoke calls the handler of a method, as a server would.
func (c connection) Invoke(ctx context.Context, method string, request, reply any, _ ...grpc.CallOption) error {
	methods := sidebusv1.Admin_ServiceDesc.Methods
	at := slices.IndexFunc(methods, func(m grpc.MethodDesc) bool { return m.MethodName == path.Base(method) })
	if at < 0 {
		return status.Errorf(codes.Unimplemented, "%s is not a management verb", method)
	}
	decode := func(into any) error {
		proto.Merge(into.(proto.Message), request.(proto.Message))
		return nil
	}
	answer, err := methods[at].Handler(c.admin, ctx, decode, nil)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		e := wireerror.Of(err)
		return &client.Failure{
			Reason: e.Code, Message: e.Message, Details: e.Details,
			Resource: client.ResourceOf(request, e.Details[semantics.DetailEntity]), RetryAfter: e.RetryAfter,
		}
	}
	proto.Merge(reply.(proto.Message), answer.(proto.Message))
	return nil
}

// NewStream is there for the interface. Management has no streams.
func (c connection) NewStream(
	context.Context, *grpc.StreamDesc, string, ...grpc.CallOption,
) (grpc.ClientStream, error) {
	return nil, fmt.Errorf("management has no streams")
}
