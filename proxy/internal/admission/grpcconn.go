package admission

import (
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// grpcConn parses the frames of a connection in both directions. It knows which calls are in flight, allocates memory
// for a message before it arrives, and closes the connection if a message does not arrive.
type grpcConn struct {
	*Conn

	hasFrames atomic.Bool // a frame has arrived

	writeMu sync.Mutex // held during writes; locked before mu, and only in grpcwrite.go

	mu            sync.Mutex
	in, out       frameParser
	prefaceLeft   int // bytes of the preface that have not arrived
	streams       map[uint32]*streamState
	lastStream    uint32 // highest id of a stream that began
	reading       int    // streams whose first message has not fully arrived
	isGoingAway   bool   // GOAWAY was sent, or will be when no call is in flight
	isUnparsable  bool   // the frames are malformed
	deadlineTimer *time.Timer

	injected      []byte // frames for the server, read before the connection
	refusedStream uint32 // id of a stream to reset, as if by the client, after the current frame
	pendingFrames []byte // frames for the client, to write between frames of the server
}

// streamState is the state of one call.
type streamState struct {
	messages  messageParser
	allocated allocation
	deadline  time.Time // for the next message to arrive
	response  responseState
}

// Read reads from the connection.
func (c *grpcConn) Read(p []byte) (int, error) {
	n, err := copy(p, c.injected), error(nil) // only one goroutine reads
	c.injected = c.injected[n:]
	if n == 0 {
		n, err = c.Conn.Conn.Read(p)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isGoingAway && len(c.streams) == 0 {
		return 0, io.EOF // the client retries what it has sent on another connection
	}
	received := p[:n]
	skip := min(c.prefaceLeft, n)
	c.prefaceLeft -= skip
	if c.isUnparsable {
		return n, err
	}
	rest, ok := c.in.parse(received[skip:], c.frameHeaderRead, c.dataRead, c.frameRead)
	if !ok {
		c.isUnparsable = true // the server notices too, and closes the connection
	}
	if c.refusedStream != 0 && c.in.isBetween() {
		c.injected = slices.Concat(encodeReset(c.refusedStream, cancel), rest, c.injected)
		n -= len(rest)
		c.refusedStream = 0
	}
	if c.reading > 0 {
		c.scheduleCheck()
	}
	return n, err
}

// frameHeaderRead notes streams that begin and end.
func (c *grpcConn) frameHeaderRead() {
	f := &c.in
	switch {
	case f.kind == frameHeaders && f.stream > c.lastStream:
		c.lastStream = f.stream
		c.streams[f.stream] = &streamState{deadline: time.Now().Add(c.controller.readTimeout)}
		c.reading++
		c.counts.CallStarted()
	case f.kind == frameReset:
		c.endStream(f.stream)
	}
}

// dataRead follows the messages on a stream.
func (c *grpcConn) dataRead(piece []byte) {
	if c.in.kind != frameData {
		return
	}
	s := c.streams[c.in.stream]
	if s == nil {
		return // the stream has ended
	}
	before := s.messages.complete
	s.messages.parse(piece, func(length int64) {
		if !c.acquireFor(s, length) {
			c.refuseStream(c.in.stream)
		}
	})
	if before == 0 && s.messages.complete > 0 {
		c.reading--
		c.counts.RequestRead()
	}
}

// frameRead reports whether a frame must be injected after the one that has ended.
func (c *grpcConn) frameRead() bool {
	c.hasFrames.Store(true)
	return c.refusedStream != 0
}

// acquireFor frees the memory of the previous message of a stream, allocates some for the next one, and reports whether
// it was available.
func (c *grpcConn) acquireFor(s *streamState, length int64) bool {
	bytes := c.controller.memory
	bytes.release(&s.allocated)
	s.deadline = time.Now().Add(timeoutFor(c.controller.readTimeout, length))
	if !bytes.acquire(&s.allocated, length*protoFactor, length <= smallRequest) {
		c.controller.requestRefused()
		return false
	}
	return true
}

// requestHandled frees the memory of the last message of a stream whose handler is done with it or waits.
func (c *grpcConn) requestHandled(id uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.releaseRequest(id)
}

// closeAfterCalls closes the connection when the calls in flight have ended.
func (c *grpcConn) closeAfterCalls() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isGoingAway = true
}

// releaseRequest frees the memory of the last message of a stream. It is called when the message was answered or its
// call waits.
func (c *grpcConn) releaseRequest(id uint32) {
	if s := c.streams[id]; s != nil && s.messages.complete > 0 && s.messages.isBetween() {
		c.controller.memory.release(&s.allocated)
	}
}

// endStream forgets a stream. It does nothing for unknown ids.
func (c *grpcConn) endStream(id uint32) {
	s := c.streams[id]
	if s == nil {
		return
	}
	delete(c.streams, id)
	c.controller.memory.release(&s.allocated)
	c.controller.memory.releaseResponse(&s.response.held, s.response.held)
	if s.messages.complete == 0 {
		c.reading--
		c.counts.RequestRead()
	}
	c.counts.CallEnded()
}

// Close closes the connection and frees all memory of its calls.
func (c *grpcConn) Close() error {
	c.mu.Lock()
	for id := range c.streams {
		c.endStream(id)
	}
	if c.deadlineTimer != nil {
		c.deadlineTimer.Stop()
	}
	c.mu.Unlock()
	return c.Conn.Close()
}

// closeSilent closes the connection unless a frame has arrived. The server notices and forgets it.
func (c *grpcConn) closeSilent() {
	if !c.hasFrames.Load() {
		_ = c.Conn.Conn.Close()
	}
}

// checksPerTimeout is how often deadlines are checked within one timeout.
const checksPerTimeout = 4

// scheduleCheck schedules checkDeadlines unless it is scheduled.
func (c *grpcConn) scheduleCheck() {
	if c.deadlineTimer == nil {
		c.deadlineTimer = time.AfterFunc(c.controller.readTimeout, c.checkDeadlines)
	}
}

// checkDeadlines closes the connection if the first message of a call is late, or the client does not read. A stream
// whose handler has started may stay silent.
func (c *grpcConn) checkDeadlines() {
	silent := c.counts.Streams()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadlineTimer = nil
	now, hasUnread := time.Now(), false
	for _, s := range c.streams {
		if s.response.isLate(c.controller, now) {
			c.controller.metrics.AnswersLate.Inc()
			_ = c.Conn.Conn.Close()
			return
		}
		hasUnread = hasUnread || s.response.held > 0
		if s.messages.complete > 0 || now.Before(s.deadline) {
			continue
		}
		if s.messages.isBetween() && silent > 0 {
			silent--
			continue
		}
		c.controller.metrics.RequestsLate.Inc()
		_ = c.Conn.Conn.Close()
		return
	}
	if c.reading > 0 || hasUnread {
		c.deadlineTimer = time.AfterFunc(max(c.controller.readTimeout/checksPerTimeout, time.Second), c.checkDeadlines)
	}
}
