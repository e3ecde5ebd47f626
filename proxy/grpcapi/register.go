package grpcapi

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/sidebus/sidebus/proto/externalscaler"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/proxy/internal/admission"
	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/proxy/internal/response"
	"github.com/sidebus/sidebus/proxy/wireerror"
	"github.com/sidebus/sidebus/semantics"
)

// Register registers all services on a gRPC server, which must be created with ServerOption. For every call the
// authorizer authenticates the caller before the request is read, and authorizes the call before it runs; the handlers
// of streams authorize each request themselves. Every call is observed. A panic becomes INTERNAL, and an error becomes
// a status with an ErrorInfo. Register wraps the generated handlers instead of using interceptors, because interceptors
// do not see a request that cannot be decoded. grpc-go itself answers a request over the server's MaxRecvMsgSize:
// RESOURCE_EXHAUSTED without an ErrorInfo.
//
// A method that delivers messages or a session is registered as a stream with one response, which is the same on the
// wire. So the server learns whether the response was sent (RECV-7), and no other call pays for it, as it would with a
// stats.Handler. grpc-go reports only that it put the response into the send queue of an open connection, for a call
// that was not cancelled. It writes the queue at once unless the client's flow-control window is full. So a message in
// RECEIVE_AND_DELETE mode can be lost between that queue and the client. A message in PEEK_LOCK mode that is lost there
// is available again when its lock expires.
func Register(
	server *grpc.Server, messages *Messages, sessions *Sessions, transactions *Transactions, admin *Admin,
	responses *response.Tracker, calls *obs.Calls, authorizer access.Authorizer,
) {
	r := &registrar{responses: responses, calls: calls, authorizer: authorizer, methods: map[string]method{}}
	for _, s := range []struct {
		desc    grpc.ServiceDesc
		service any
	}{
		{sidebusv1.Messages_ServiceDesc, messages},
		{sidebusv1.Sessions_ServiceDesc, sessions},
		{sidebusv1.Transactions_ServiceDesc, transactions},
		{sidebusv1.Admin_ServiceDesc, admin},
	} {
		server.RegisterService(r.observed(s.desc, s.service), s.service)
	}
	multiplexed := &multiplexer{methods: r.methods, responses: responses, stopping: messages.stopping}
	server.RegisterService(r.observed(sidebusv1.Calls_ServiceDesc, multiplexed), multiplexed)
}

// RegisterScaler registers the external scaler of KEDA on a server of its own, as Register does with the API. The
// server then answers StreamMetricSpec, which is optional, as not implemented.
func RegisterScaler(
	server *grpc.Server, scaler externalscaler.ExternalScalerServer, calls *obs.Calls, authorizer access.Authorizer,
) {
	r := &registrar{calls: calls, authorizer: authorizer, methods: map[string]method{}}
	desc := r.observed(externalscaler.ExternalScaler_ServiceDesc, scaler)
	desc.Streams = slices.DeleteFunc(desc.Streams, func(s grpc.StreamDesc) bool { return s.StreamName == "StreamMetricSpec" })
	server.RegisterService(desc, scaler)
}

type registrar struct {
	methods    map[string]method // of all services, by full name, for Multiplex
	responses  *response.Tracker
	calls      *obs.Calls
	authorizer access.Authorizer
}

// observed returns a copy of a generated description whose handlers are observed.
func (r *registrar) observed(desc grpc.ServiceDesc, service any) *grpc.ServiceDesc {
	desc.Methods, desc.Streams = slices.Clone(desc.Methods), slices.Clone(desc.Streams)
	for i, s := range desc.Streams {
		desc.Streams[i].Handler = r.stream("/"+desc.ServiceName+"/"+s.StreamName, s.Handler)
	}
	for i, m := range desc.Methods {
		full := "/" + desc.ServiceName + "/" + m.MethodName
		if full == sidebusv1.Messages_Send_FullMethodName {
			m.Handler = handleSend
		}
		call := r.call(full, m.Handler)
		r.methods[full] = method{service, call, deliversMessages[full]}
		desc.Methods[i].Handler = func(srv any, ctx context.Context, decode func(any) error,
			_ grpc.UnaryServerInterceptor,
		) (any, error) {
			return call(srv, ctx, decode)
		}
		if deliversMessages[full] {
			desc.Streams = append(desc.Streams, grpc.StreamDesc{
				StreamName: m.MethodName, Handler: r.deliveryStream(call), ServerStreams: true,
			})
		}
	}
	desc.Methods = slices.DeleteFunc(desc.Methods, func(m grpc.MethodDesc) bool {
		return slices.ContainsFunc(desc.Streams, func(s grpc.StreamDesc) bool { return s.StreamName == m.MethodName })
	})
	return &desc
}

type unaryCall func(srv any, ctx context.Context, decode func(any) error) (any, error)

// call wraps a generated handler.
func (r *registrar) call(full string, handle grpc.MethodHandler) unaryCall {
	method := obs.Method(full)
	return func(srv any, ctx context.Context, decode func(any) error) (reply any, err error) {
		start := time.Now()
		defer func() {
			var failure *semantics.Error
			if recovered := recover(); recovered != nil {
				failure = r.calls.Recovered(ctx, method, recovered)
			} else if err != nil {
				failure = failureOf(err)
			}
			r.calls.Done(ctx, obs.GRPC, method, start, cmp.Or(failure, FailureIn(reply)))
			if failure != nil {
				reply, err = nil, wireerror.Status(failure).Err()
			}
		}()
		ctx = r.calls.Traces().FromGRPC(admission.WithWaits(ctx))
		if ctx, err = r.authenticate(ctx); err != nil {
			return nil, err
		}
		return handle(
			srv,
			ctx,
			checked(decode),
			func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
				obs.About(ctx, obs.EntityIn(request.(proto.Message)))
				if err := access.Check(ctx, full, request.(proto.Message)); err != nil {
					return nil, err
				}
				if deliversMessages[full] {
					ctx = access.WhileWaiting(ctx, full, request.(proto.Message))
				}
				reply, err := next(ctx, request)
				admission.RequestHandled(ctx)
				if err == nil {
					err = admission.AcquireResponse(ctx, full, reply)
				}
				return reply, err
			},
		)
	}
}

// stream wraps a generated handler of a stream. The handler answers errors of single requests; the error that it
// returns ends the stream.
func (r *registrar) stream(full string, handle grpc.StreamHandler) grpc.StreamHandler {
	method := obs.Method(full)
	return func(srv any, stream grpc.ServerStream) (err error) {
		start, ctx := time.Now(), stream.Context()
		defer func() {
			var failure *semantics.Error
			if recovered := recover(); recovered != nil {
				failure = r.calls.Recovered(ctx, method, recovered)
			} else if err != nil {
				failure = failureOf(err)
				if ctx.Err() != nil {
					failure = wireerror.Of(ctx.Err())
				}
			}
			r.calls.StreamDone(ctx, obs.GRPC, method, start, failure)
			if failure != nil {
				err = wireerror.Status(failure).Err()
			}
		}()
		ctx, _ = obs.WithCall(ctx)
		if ctx, err = r.authenticate(ctx); err != nil {
			return err
		}
		if full == sidebusv1.Calls_Multiplex_FullMethodName {
			ctx = r.calls.Traces().Detach(ctx)
			return handle(srv, &authenticatedStream{stream, ctx, method, func() {}, r.calls}) // its calls are admitted
		}
		end, err := admission.BeginStream(ctx)
		if err != nil {
			return err
		}
		defer end()
		ctx, sent := admission.WithStreamMemory(ctx)
		return handle(srv, &authenticatedStream{stream, ctx, method, sent, r.calls})
	}
}

// authenticate authenticates the caller of a call.
func (r *registrar) authenticate(ctx context.Context) (context.Context, error) {
	return admission.Authenticate(ctx, r.authorizer, metadata.ValueFromIncomingContext(ctx, authorizationKey))
}

// authorizationKey is the metadata with the credentials of a call.
const authorizationKey = "authorization"

// usedMetadata is all metadata of a call that is used: the credentials and the trace context.
var usedMetadata = []string{authorizationKey, "traceparent", "tracestate"}

// authenticatedStream is a stream whose context has the caller.
type authenticatedStream struct {
	grpc.ServerStream

	ctx    context.Context //nolint:containedctx // of the stream
	method string
	sent   func()
	calls  *obs.Calls
}

// Context returns the context of the stream.
func (s *authenticatedStream) Context() context.Context { return s.ctx }

// SendMsg counts the bytes that are on their way to the client, and records a failure that m reports.
func (s *authenticatedStream) SendMsg(m any) error {
	s.sent()
	s.calls.StreamFailed(s.ctx, obs.GRPC, s.method, FailureIn(m))
	return s.ServerStream.SendMsg(m)
}

// deliveryStream returns the handler of a call that delivers messages or a session.
func (r *registrar) deliveryStream(call unaryCall) grpc.StreamHandler {
	return func(srv any, stream grpc.ServerStream) error {
		ctx, resp := r.responses.Begin(stream.Context())
		reply, err := call(srv, ctx, stream.RecvMsg)
		if err == nil {
			err = stream.SendMsg(reply)
		}
		resp.Finish(ctx, err == nil)
		return err
	}
}

// failureOf returns the reason of an error, for metrics and logs. The services return no gRPC status. If there is one,
// it is grpc-go's own: grpc-go has rejected and answered the request, or has not received all of it.
func failureOf(err error) *semantics.Error {
	var own *semantics.Error
	if errors.As(err, &own) {
		return own
	}
	switch status.Code(err) { //nolint:exhaustive // the others are as foreign as any error
	case codes.ResourceExhausted:
		return semantics.Errorf(
			semantics.MessageSizeExceeded, "the request is too large: %s", status.Convert(err).Message(),
		)
	case codes.Canceled, codes.DeadlineExceeded:
		return wireerror.Of(context.Canceled)
	default:
		return wireerror.Of(err)
	}
}
