package admission

import (
	"context"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/sidebus/sidebus/semantics"
)

// Answers with messages have memory of their own, as much as requests: so clients that do not read cannot keep others
// from sending and settling. An answer is let in as long as the others hold less than all, however large it is: so the
// largest message can be received although others are under way, and one answer is the most that is held beyond the
// limit.

// takeAnswer takes memory for an answer and reports whether there was some. One that must be given gets it in any case;
// of 0 bytes it only asks.
func (b *memoryBudget) acquireResponse(held *int64, n int64, must bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !must && b.responses >= b.limit {
		b.refusedAt = time.Now()
		return false
	}
	b.addResponse(held, n)
	return true
}

// giveAnswer gives back as much, at most what is held.
func (b *memoryBudget) releaseResponse(held *int64, n int64) {
	if n = min(n, *held); n <= 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.addResponse(held, -n)
}

// countAnswer needs the lock.
func (b *memoryBudget) addResponse(held *int64, n int64) {
	*held, b.responses = *held+n, b.responses+n
	b.responseGauge.Set(float64(b.responses))
}

// wasShort reports whether an answer found no memory of late.
func (b *memoryBudget) refusedWithin(within time.Duration) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.refusedAt.IsZero() && time.Since(b.refusedAt) < within
}

// noAnswer notes an answer for which there was no memory.
func (d *Controller) responseRefused() error {
	d.metrics.AnswersRefused.Inc()
	d.unread.note("limit", d.memory.limit)
	return semantics.NoMemory()
}

// CheckLook takes memory for the answer of a call that only looks, a list or a state. What hands out messages asks the
// Broker to do that, which knows more; other answers are small.
func AcquireResponse(ctx context.Context, method string, answer any) error {
	_, name, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	if m, ok := answer.(proto.Message); ok && (strings.HasPrefix(name, "List") || strings.HasPrefix(name, "Get")) {
		if n := proto.Size(m); n > smallRequest {
			return semantics.MemoryOf(ctx).Take(int64(n), false)
		}
	}
	return nil
}

// Take is semantics.Memory for a request over HTTP, whose answer is written when its handler has ended.
func (v *httpRequest) Take(n int64, must bool) error {
	if v.controller.memory.acquireResponse(&v.response, n*jsonFactor, must) {
		return nil
	}
	return v.controller.responseRefused()
}

// Give does nothing: what was handed to the wire is still being written.
func (v *httpRequest) Give(int64) {}

// Take is semantics.Memory for a call over gRPC, whose answer stays in memory until the client has read it.
func (g grpcCall) Take(n int64, must bool) error {
	if g.acquireResponse(g.stream, n*protoFactor, must) {
		return nil
	}
	return g.controller.responseRefused()
}

// Give does nothing: the end of the call gives everything back.
func (g grpcCall) Give(int64) {}

// grpcStream is a call that is a stream, which gives back what it has sent.
type grpcStream struct{ grpcCall }

// Give gives memory back, when what the stream has sent by now was written.
func (g grpcStream) Give(n int64) { g.releaseResponse(g.grpcCall.stream, n*protoFactor) }

// WithStreamMemory counts what a stream over gRPC hands out. sent must be called before each message that it sends.
func WithStreamMemory(ctx context.Context) (_ context.Context, sent func()) {
	c := connOf(ctx)
	if c == nil {
		return ctx, func() {}
	}
	g := grpcStream{grpcCall{grpcConn: c, stream: streamOf(ctx)}}
	return semantics.WithMemory(ctx, g), func() { c.sent(g.grpcCall.stream) }
}

// unread are the answers on a stream of HTTP/2 that the client has not read.
type responseState struct {
	held       int64 // memory
	isStream   bool
	sent       int              // messages that were handed to the server
	written    messageParser    // that went out
	releases   []pendingRelease // memory that is to be given back when they have gone
	deadline   time.Time
	progressAt time.Time // something went out, or was taken while nothing was there
}

type pendingRelease struct {
	after int // so many messages
	bytes int64
}

// isLate reports whether the client has read nothing for too long, or not all of it in time. Streams have time as long
// as there is memory.
func (u *responseState) isLate(d *Controller, now time.Time) bool {
	if u.held == 0 {
		return false
	}
	if u.isStream {
		return u.written.complete < u.sent && now.Sub(u.progressAt) > d.readTimeout && d.memory.refusedWithin(d.readTimeout)
	}
	return now.Sub(u.progressAt) > d.readTimeout || now.After(u.deadline)
}

func (c *grpcConn) acquireResponse(id uint32, n int64, must bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.streams[id]
	if s == nil { // it has ended, so nobody gets the answer
		return must || c.controller.memory.acquireResponse(new(int64), 0, false)
	}
	u := &s.response
	if !c.controller.memory.acquireResponse(&u.held, n, must) {
		return false
	}
	if n > 0 {
		u.progressAt = time.Now()
		u.deadline = u.progressAt.Add(timeoutFor(c.controller.readTimeout, u.held))
		c.scheduleCheck()
	}
	return true
}

// giveAnswer gives memory back when what was sent on a stream until now has gone out.
func (c *grpcConn) releaseResponse(id uint32, n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.streams[id]; s != nil {
		s.response.releases = append(s.response.releases, pendingRelease{s.response.sent, n})
		c.releaseWritten(&s.response)
	}
}

// sent notes that a message is being handed to the server.
func (c *grpcConn) sent(id uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.streams[id]; s != nil {
		s.response.isStream = true
		if s.response.sent == s.response.written.complete {
			s.response.progressAt = time.Now()
		}
		s.response.sent++
	}
}

// wentOut follows what is written on a stream.
func (c *grpcConn) dataWritten(id uint32, piece []byte) {
	s := c.streams[id]
	if s == nil {
		return
	}
	s.response.progressAt = time.Now()
	if s.response.isStream {
		s.response.written.parse(piece, func(int64) {})
		c.releaseWritten(&s.response)
	}
}

func (c *grpcConn) releaseWritten(u *responseState) {
	for len(u.releases) > 0 && u.releases[0].after <= u.written.complete {
		c.controller.memory.releaseResponse(&u.held, u.releases[0].bytes)
		u.releases = u.releases[1:]
	}
}
