package admission

import (
	"context"
	"reflect"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"

	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/semantics"
)

// connOf returns the connection of a call, or nil if it did not come through a Controller.
func connOf(ctx context.Context) *grpcConn {
	if p, ok := peer.FromContext(ctx); ok {
		if info, ok := p.AuthInfo.(authInfo); ok {
			return info.conn
		}
	}
	return nil
}

// streamOf returns the HTTP/2 stream id of a call, or 0 if it is unknown. grpc-go does not export the id: neither a
// stats.Handler nor a tap gets it, and sending headers early, from which the connection could learn it, would end the
// client's right to retry transparently. Without the id, memory could not be attributed to a response.
func streamOf(ctx context.Context) uint32 {
	stream := reflect.Indirect(reflect.ValueOf(grpc.ServerTransportStreamFromContext(ctx)))
	if stream.Kind() != reflect.Struct {
		return 0
	}
	if at := idField(stream.Type()); at != nil {
		return uint32(stream.FieldByIndex(at).Uint()) //nolint:gosec // idField has checked its kind
	}
	return 0
}

// idFields has what idField has found, because the search costs more than all else that is done for a call here.
var idFields sync.Map

// idField returns where the streams of a type have their id, or nil.
func idField(streams reflect.Type) []int {
	known, ok := idFields.Load(streams)
	if !ok {
		var at []int
		if field, has := streams.FieldByName("id"); has && field.Type.Kind() == reflect.Uint32 {
			at = field.Index
		}
		known, _ = idFields.LoadOrStore(streams, at)
	}
	return known.([]int)
}

// grpcCall is one call of a connection.
type grpcCall struct {
	conn    *grpcConn
	stream  uint32
	waiting *obs.Call
}

// WithWaits returns a context in which waits of a gRPC call can be ended early and its response is counted.
func WithWaits(ctx context.Context) context.Context {
	if call := multiplexedCall(ctx); call != nil {
		ctx, call.waiting = obs.WithCall(ctx)
		return semantics.WithMemory(semantics.WithWaits(ctx, call), call)
	}
	if c := connOf(ctx); c != nil {
		ctx, waiting := obs.WithCall(ctx)
		call := &grpcCall{c, streamOf(ctx), waiting}
		return semantics.WithMemory(semantics.WithWaits(ctx, call), call)
	}
	return ctx
}

// Begin implements semantics.Waits. It releases the memory of the request, which is decoded by now.
func (g *grpcCall) Begin() (ended <-chan struct{}, end func(), err error) {
	if ended, end, err = g.conn.beginCallWait(g.waiting); err == nil {
		g.conn.calls.requestHandled(g.stream)
	}
	return ended, end, err
}

// beginCallWait begins the wait of a call.
func (c *grpcConn) beginCallWait(waiting *obs.Call) (ended <-chan struct{}, end func(), err error) {
	wait, err := c.beginWait()
	if err != nil {
		return nil, nil, err
	}
	stopTimer := waiting.BeginWait()
	return wait.Ended, func() {
		stopTimer()
		if wait.End() {
			c.calls.closeAfterCalls()
		}
	}, nil
}

// RequestHandled frees the memory of the last request of a call. A handler calls it before its response is written, so
// that a client that has the response finds the memory free, and for requests that get no response.
func RequestHandled(ctx context.Context) {
	if call := multiplexedCall(ctx); call != nil {
		call.requestHandled()
	} else if c := connOf(ctx); c != nil {
		c.calls.requestHandled(streamOf(ctx))
	}
}

// BeginStream counts a call as a stream until end is called. It returns THROTTLED if too many calls wait.
func BeginStream(ctx context.Context) (end func(), err error) {
	if c := connOf(ctx); c != nil {
		return c.beginStream()
	}
	return func() {}, nil
}
