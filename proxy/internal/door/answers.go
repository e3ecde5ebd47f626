package door

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
func (b *Bytes) takeAnswer(held *int64, n int64, must bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !must && b.answers >= b.limit {
		b.refusedAt = time.Now()
		return false
	}
	b.countAnswer(held, n)
	return true
}

// giveAnswer gives back as much, at most what is held.
func (b *Bytes) giveAnswer(held *int64, n int64) {
	if n = min(n, *held); n <= 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.countAnswer(held, -n)
}

// countAnswer needs the lock.
func (b *Bytes) countAnswer(held *int64, n int64) {
	*held, b.answers = *held+n, b.answers+n
	b.answerGauge.Set(float64(b.answers))
}

// wasShort reports whether an answer found no memory of late.
func (b *Bytes) wasShort(within time.Duration) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.refusedAt.IsZero() && time.Since(b.refusedAt) < within
}

// noAnswer notes an answer for which there was no memory.
func (d *Door) noAnswer() error {
	d.metrics.AnswersRefused.Inc()
	d.unread.note("limit", d.Bytes.limit)
	return semantics.NoMemory()
}

// CheckLook takes memory for the answer of a call that only looks, a list or a state. What hands out messages asks the
// Broker to do that, which knows more; other answers are small.
func CheckLook(ctx context.Context, method string, answer any) error {
	_, name, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	if m, ok := answer.(proto.Message); ok && (strings.HasPrefix(name, "List") || strings.HasPrefix(name, "Get")) {
		if n := proto.Size(m); n > smallRequest {
			return semantics.MemoryOf(ctx).Take(int64(n), false)
		}
	}
	return nil
}

// Take is semantics.Memory for a request over HTTP, whose answer is written when its handler has ended.
func (v *visit) Take(n int64, must bool) error {
	if v.door.Bytes.takeAnswer(&v.answer, n*jsonWeight, must) {
		return nil
	}
	return v.door.noAnswer()
}

// Give does nothing: what was handed to the wire is still being written.
func (v *visit) Give(int64) {}

// Take is semantics.Memory for a call over gRPC, whose answer stays in memory until the client has read it.
func (g grpcCall) Take(n int64, must bool) error {
	if g.takeAnswer(g.stream, n*protoWeight, must) {
		return nil
	}
	return g.door.noAnswer()
}

// Give does nothing: the end of the call gives everything back.
func (g grpcCall) Give(int64) {}

// grpcStream is a call that is a stream, which gives back what it has sent.
type grpcStream struct{ grpcCall }

// Give gives memory back, when what the stream has sent by now was written.
func (g grpcStream) Give(n int64) { g.giveAnswer(g.grpcCall.stream, n*protoWeight) }

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
type unread struct {
	held     int64 // memory
	isStream bool
	sent     int      // messages that were handed to the server
	out      messages // that went out
	owed     []owed   // memory that is to be given back when they have gone
	until    time.Time
	moved    time.Time // something went out, or was taken while nothing was there
}

type owed struct {
	after int // so many messages
	bytes int64
}

// isLate reports whether the client has read nothing for too long, or not all of it in time. Streams have time as long
// as there is memory.
func (u *unread) isLate(d *Door, now time.Time) bool {
	if u.held == 0 {
		return false
	}
	if u.isStream {
		return u.out.came < u.sent && now.Sub(u.moved) > d.patience && d.Bytes.wasShort(d.patience)
	}
	return now.Sub(u.moved) > d.patience || now.After(u.until)
}

func (c *grpcConn) takeAnswer(id uint32, n int64, must bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.streams[id]
	if s == nil { // it has ended, so nobody gets the answer
		return must || c.door.Bytes.takeAnswer(new(int64), 0, false)
	}
	u := &s.unread
	if !c.door.Bytes.takeAnswer(&u.held, n, must) {
		return false
	}
	if n > 0 {
		u.moved = time.Now()
		u.until = u.moved.Add(patienceFor(c.door.patience, u.held))
		c.lookLater()
	}
	return true
}

// giveAnswer gives memory back when what was sent on a stream until now has gone out.
func (c *grpcConn) giveAnswer(id uint32, n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.streams[id]; s != nil {
		s.unread.owed = append(s.unread.owed, owed{s.unread.sent, n})
		c.settleOwed(&s.unread)
	}
}

// sent notes that a message is being handed to the server.
func (c *grpcConn) sent(id uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.streams[id]; s != nil {
		s.unread.isStream = true
		if s.unread.sent == s.unread.out.came {
			s.unread.moved = time.Now()
		}
		s.unread.sent++
	}
}

// wentOut follows what is written on a stream.
func (c *grpcConn) wentOut(id uint32, piece []byte) {
	s := c.streams[id]
	if s == nil {
		return
	}
	s.unread.moved = time.Now()
	if s.unread.isStream {
		s.unread.out.follow(piece, func(int64) {})
		c.settleOwed(&s.unread)
	}
}

func (c *grpcConn) settleOwed(u *unread) {
	for len(u.owed) > 0 && u.owed[0].after <= u.out.came {
		c.door.Bytes.giveAnswer(&u.held, u.owed[0].bytes)
		u.owed = u.owed[1:]
	}
}
