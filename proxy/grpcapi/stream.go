package grpcapi

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy/wireerror"
	"github.com/sidebus/sidebus/semantics"
)

// recv reads one request of a stream. A request that cannot be decoded is INVALID_ARGUMENT and ends the stream.
func recv(stream grpc.ServerStream, request any) error { return receiver(stream, request)() }

// receiver returns a function that reads requests of a stream, as recv does, all into the same one.
func receiver(stream grpc.ServerStream, request any) func() error {
	in := &incoming{into: request}
	return func() error {
		in.err = nil
		if err := stream.RecvMsg(in); err != nil {
			return err
		}
		return in.err
	}
}

// stopped returns the error of a stream that ends because the sidecar stops.
func stopped() error {
	return semantics.Errorf(semantics.StoreUnavailable, "this sidecar stops; open the stream again on another one").
		With(semantics.DetailCause, semantics.CauseDraining)
}

// failureFrom translates an error of one request of a stream, or of one part of a call. The result has the fields of
// the body of a failed HTTP call.
func failureFrom(err error) *sidebusv1.Failure {
	e := wireerror.Of(err)
	_, body, _ := wireerror.HTTP(e)
	failure := &sidebusv1.Failure{
		Reason: string(body.Reason), Message: strings.ToValidUTF8(body.Message, "\uFFFD"), Retryable: body.Retryable,
		Details: make(map[string]string, len(body.Details)),
	}
	for key, value := range body.Details {
		failure.Details[key] = strings.ToValidUTF8(value, "\uFFFD") // may hold a truncated text of the client
	}
	if e.RetryAfter > 0 {
		failure.RetryAfter = durationpb.New(e.RetryAfter)
	}
	return failure
}

// FailureIn returns the failure in an answer, nil if there is none: of one request of a stream, or of one part of a
// call (RECV-15).
func FailureIn(answer any) *semantics.Error {
	a, ok := answer.(interface{ GetFailure() *sidebusv1.Failure })
	if !ok || a.GetFailure() == nil {
		return nil
	}
	f := a.GetFailure()
	return &semantics.Error{Code: semantics.Code(f.GetReason()), Message: f.GetMessage(), Details: f.GetDetails()}
}

// caught is a panic in a goroutine of a stream. The stream's handler panics with it, so that it ends one call and is
// observed like a panic of the handler itself.
type caught struct {
	value any
	stack []byte
}

// Error returns the panic and its stack.
func (c *caught) Error() string { return fmt.Sprintf("%v\n%s", c.value, c.stack) }

// catch passes a panic to tell. It must be deferred.
func catch(tell func(error)) {
	if value := recover(); value != nil {
		tell(&caught{value, debug.Stack()})
	}
}

// rethrow panics if err is a panic that was caught.
func rethrow(err error) {
	var c *caught
	if errors.As(err, &c) {
		panic(c.Error())
	}
}
