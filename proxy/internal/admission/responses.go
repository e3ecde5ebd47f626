package admission

import (
	"context"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/sidebus/sidebus/semantics"
)

// Responses with messages have a memory budget of their own, of the same size as that of requests: clients that do not
// read cannot keep others from sending and settling. A response of any size is accepted while the others use less than
// the budget. So the largest message can always be received, and the budget is exceeded by one response at most.

// responseRefused counts and logs a response that was refused for lack of memory.
func (ctl *Controller) responseRefused() error {
	ctl.metrics.AnswersRefused.Inc()
	ctl.responseLog.Warn("limit", ctl.memory.limit)
	return semantics.NoMemory()
}

// AcquireResponse allocates memory for the response of a Get or List call. For messages the Broker does that, which
// knows their size earlier; other responses are small.
func AcquireResponse(ctx context.Context, method string, answer any) error {
	_, name, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	if m, ok := answer.(proto.Message); ok && (strings.HasPrefix(name, "List") || strings.HasPrefix(name, "Get")) {
		if n := proto.Size(m); n > smallRequest {
			return semantics.MemoryOf(ctx).Take(int64(n), false)
		}
	}
	return nil
}

// Take implements semantics.Memory. The response is written after the handler has returned.
func (v *httpRequest) Take(n int64, must bool) error {
	if v.controller.memory.acquireResponse(&v.response, n*jsonFactor, must) {
		return nil
	}
	return v.controller.responseRefused()
}

// Give does nothing: the response is still being written.
func (v *httpRequest) Give(int64) {}

// Take implements semantics.Memory. The response stays in memory until the client has read it.
func (g *grpcCall) Take(n int64, must bool) error {
	if g.conn.calls.acquireResponse(g.stream, n*protoFactor, must) {
		return nil
	}
	return g.conn.controller.responseRefused()
}

// Give does nothing: the end of the call frees everything.
func (g *grpcCall) Give(int64) {}

// grpcStream is a streaming call. It frees the memory of messages that were sent.
type grpcStream struct{ call *grpcCall }

// Take implements semantics.Memory.
func (g grpcStream) Take(n int64, must bool) error { return g.call.Take(n, must) }

// Give frees n bytes when all messages sent so far have been written.
func (g grpcStream) Give(n int64) { g.call.conn.calls.releaseResponse(g.call.stream, n*protoFactor) }

// Answers is the memory of answers over a wire that this package does not write. It implements semantics.Memory. It is
// used by one goroutine at a time.
type Answers struct {
	controller *Controller
	held       int64
}

// NewAnswers returns the memory of answers of which there are none yet.
func (ctl *Controller) NewAnswers() *Answers { return &Answers{controller: ctl} }

// Take implements semantics.Memory.
func (a *Answers) Take(n int64, must bool) error {
	if a.controller.memory.acquireResponse(&a.held, n*protoFactor, must) {
		return nil
	}
	return a.controller.responseRefused()
}

// Give implements semantics.Memory.
func (a *Answers) Give(n int64) { a.controller.memory.releaseResponse(&a.held, n*protoFactor) }

// Free releases all memory.
func (a *Answers) Free() { a.controller.memory.releaseResponse(&a.held, a.held) }

// WithStreamMemory counts the memory of messages that a gRPC stream delivers. The caller must call sent before it sends
// each message.
func WithStreamMemory(ctx context.Context) (_ context.Context, sent func()) {
	c := connOf(ctx)
	if c == nil {
		return ctx, func() {}
	}
	call := &grpcCall{conn: c, stream: streamOf(ctx)}
	return semantics.WithMemory(ctx, grpcStream{call}), func() { c.calls.sent(call.stream) }
}

// responseState tracks what the client has not read of one HTTP/2 stream.
type responseState struct {
	held       int64 // bytes allocated
	isStream   bool
	sent       int              // messages passed to the server
	written    messageParser    // messages written to the connection
	releases   []pendingRelease // memory to free when they are written
	deadline   time.Time
	progressAt time.Time // last write, or first allocation
}

type pendingRelease struct {
	after int // number of messages written
	bytes int64
}

// isLate reports whether the client has read nothing for too long, or not everything in time. A stream is late only if
// memory is short.
func (u *responseState) isLate(ctl *Controller, now time.Time) bool {
	if u.held == 0 {
		return false
	}
	if u.isStream {
		return u.isStalled(ctl, now) && ctl.memory.refusedWithin(ctl.readTimeout)
	}
	return now.Sub(u.progressAt) > ctl.readTimeout || now.After(u.deadline)
}

// isUnread reports whether messages wait for the client of a stream.
func (u *responseState) isUnread() bool { return u.written.complete < u.sent }

// isStalled reports whether the client of a stream has read nothing for too long.
func (u *responseState) isStalled(ctl *Controller, now time.Time) bool {
	return u.isUnread() && now.Sub(u.progressAt) > ctl.readTimeout
}

// messageSent notes that a message is passed to the server.
func (u *responseState) messageSent() {
	u.isStream = true
	if u.sent == u.written.complete {
		u.progressAt = time.Now()
	}
	u.sent++
}

// pieceWritten follows what is written on the stream.
func (u *responseState) pieceWritten(piece []byte, memory *memoryBudget) {
	u.progressAt = time.Now()
	if u.isStream {
		u.written.parse(piece, func(int64) {})
		u.releaseWritten(memory)
	}
}

// releaseWritten frees the memory of messages that have been written.
func (u *responseState) releaseWritten(memory *memoryBudget) {
	for len(u.releases) > 0 && u.releases[0].after <= u.written.complete {
		memory.releaseResponse(&u.held, u.releases[0].bytes)
		u.releases = u.releases[1:]
	}
}
