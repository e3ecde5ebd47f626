package admission

import (
	"context"
	"sync/atomic"

	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/semantics"
)

// Multiplex is a gRPC stream that carries calls. Each of them counts as a call of the connection and has memory of its
// own. The stream does not count: without calls, its connection is idle, and may make way for another one.
type Multiplex struct {
	conn   *grpcConn // nil: the stream did not come through a Controller
	stream uint32
	ending chan struct{}
}

// BeginMultiplex counts the calls of a stream instead of the stream.
func BeginMultiplex(ctx context.Context) *Multiplex {
	m := &Multiplex{conn: connOf(ctx), stream: streamOf(ctx), ending: make(chan struct{})}
	if m.conn != nil {
		m.conn.calls.multiplexed(m.stream, m.ending)
	}
	return m
}

// Ending is closed when the connection is to close: the stream must accept no more calls, and end.
func (m *Multiplex) Ending() <-chan struct{} { return m.ending }

// RequestHandled frees the memory of the last request of the stream, whose calls have memory of their own by now.
func (m *Multiplex) RequestHandled() {
	if m.conn != nil {
		m.conn.calls.requestHandled(m.stream)
	}
}

// Sent notes that answers are passed to the server. It must be called before each.
func (m *Multiplex) Sent() {
	if m.conn != nil {
		m.conn.calls.sent(m.stream)
	}
}

// Call is one call of a Multiplex. It belongs to the goroutine that runs it.
type Call struct {
	of        *Multiplex
	allocated allocation   // of its request
	response  atomic.Int64 // bytes taken for its answer
	waiting   *obs.Call
}

type callKey struct{}

// BeginCall counts a call with a request of length bytes, and returns its context. End must follow unless it fails with
// THROTTLED.
func (m *Multiplex) BeginCall(ctx context.Context, length int) (context.Context, *Call, error) {
	c := &Call{of: m}
	if m.conn == nil {
		return ctx, c, nil
	}
	ctl := m.conn.controller
	if !m.conn.calls.beginMultiplexed() {
		return ctx, nil, ctl.waitRefused()
	}
	size := int64(length)
	if !ctl.memory.acquire(&c.allocated, size*protoFactor, size <= smallRequest) {
		m.conn.calls.endMultiplexed()
		ctl.requestRefused()
		return ctx, nil, RequestMemoryUsed()
	}
	return context.WithValue(ctx, callKey{}, c), c, nil
}

// End stops counting the call. The memory of its answer is freed when everything sent so far has been written.
func (c *Call) End() {
	m := c.of
	if m.conn == nil {
		return
	}
	c.requestHandled()
	if n := c.response.Load(); n > 0 {
		m.conn.calls.releaseResponse(m.stream, n)
	}
	m.conn.calls.endMultiplexed()
}

// multiplexedCall returns the call of a Multiplex that ctx belongs to, or nil.
func multiplexedCall(ctx context.Context) *Call {
	c, _ := ctx.Value(callKey{}).(*Call)
	return c
}

func (c *Call) requestHandled() { c.of.conn.controller.memory.release(&c.allocated) }

// Begin implements semantics.Waits. It releases the memory of the request, which is decoded by now.
func (c *Call) Begin() (ended <-chan struct{}, end func(), err error) {
	c.requestHandled()
	return c.of.conn.beginCallWait(c.waiting)
}

// Take implements semantics.Memory.
func (c *Call) Take(n int64, must bool) error {
	call := grpcCall{conn: c.of.conn, stream: c.of.stream}
	if err := call.Take(n, must); err != nil {
		return err
	}
	c.response.Add(n * protoFactor)
	return nil
}

// Give does nothing: End frees everything.
func (c *Call) Give(int64) {}

var (
	_ semantics.Waits  = (*Call)(nil)
	_ semantics.Memory = (*Call)(nil)
)
