package admission

import (
	"sync"
	"sync/atomic"
	"time"
)

// callsInFlight is what is known of the calls of one gRPC connection. It parses the frames in both directions,
// allocates memory for a message before it arrives, and closes the connection if a message does not arrive or an answer
// is not read. It owns the mutex: the methods up to checkDeadlines lock it and write nothing to the connection; those
// behind it run while it is locked.
type callsInFlight struct {
	conn *Conn

	hasFrames atomic.Bool // a frame has arrived

	mu            sync.Mutex
	in, out       frameParser
	prefaceLeft   int // bytes of the preface that have not arrived
	streams       map[uint32]*streamState
	lastStream    uint32 // highest id of a stream that began
	reading       int    // streams whose first message has not fully arrived
	isGoingAway   bool   // GOAWAY was sent, or will be when no call is in flight
	isOver        bool   // GOAWAY is sent now, so that the client retries all that is still to arrive
	isUnparsable  bool   // the frames are malformed
	multiplex     int    // calls in flight that multiplexed streams carry
	deadlineTimer *time.Timer

	refusedStream uint32 // id of a stream to reset, as if by the client, after the current frame
	pendingFrames []byte // frames for the client, to write between frames of the server
}

// streamState is the state of one call.
type streamState struct {
	messages  messageParser
	allocated allocation
	deadline  time.Time // for the next message to arrive
	response  responseState
	ending    chan struct{} // of a multiplexed stream, which does not count as a call: it must end; else nil
	isEnding  bool          // ending is closed
}

func newCallsInFlight(conn *Conn) *callsInFlight {
	return &callsInFlight{conn: conn, streams: map[uint32]*streamState{}, prefaceLeft: len(preface)}
}

// received follows what has arrived. It returns how many bytes of it the server gets now, and what the server gets
// next, before anything that arrives later. isOver: no call is to come any more. hasRefused: a call was refused, and
// takePending has its answer.
func (c *callsInFlight) received(p []byte) (n int, next []byte, isOver, hasRefused bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isOver || c.isGoingAway && len(c.streams) == 0 {
		return 0, nil, true, false // the client retries what it has sent on another connection
	}
	n = len(p)
	skip := min(c.prefaceLeft, n)
	c.prefaceLeft -= skip
	if c.isUnparsable {
		return n, nil, false, false
	}
	pending := len(c.pendingFrames)
	rest, ok := c.in.parse(p[skip:], c.frameHeaderRead, c.dataRead, c.frameRead)
	if !ok {
		c.isUnparsable = true // the server notices too, and closes the connection
	}
	if c.refusedStream != 0 && c.in.isBetween() {
		next = append(encodeReset(c.refusedStream, cancel), rest...)
		n -= len(rest)
		c.refusedStream = 0
	}
	if c.reading > 0 {
		c.scheduleCheck()
	}
	return n, next, false, len(c.pendingFrames) > pending
}

// written follows what the server has written. mustClose: GOAWAY with the stream last must be sent now. hasPending:
// takePending has frames.
func (c *callsInFlight) written(p []byte) (last uint32, mustClose, hasPending bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out.parse(p, c.frameHeaderWritten, c.dataWritten, func() bool { return false })
	mustClose = c.isGoingAway && len(c.streams) == 0 && c.out.isBetween()
	return c.lastStream, mustClose, len(c.pendingFrames) > 0
}

// takePending returns frames to write to the client, if the server is between frames.
func (c *callsInFlight) takePending() (frames []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.out.isBetween() {
		frames, c.pendingFrames = c.pendingFrames, nil
	}
	return frames
}

// isBetweenFrames reports whether the server is between frames.
func (c *callsInFlight) isBetweenFrames() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out.isBetween()
}

// goAway lets no further call begin. isBusy: a call has arrived, whose end closes the connection. Otherwise GOAWAY must
// be sent with the stream last.
func (c *callsInFlight) goAway() (last uint32, isBusy bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.beginGoingAway()
	last = c.lastStream
	for id := range c.streams { // if not busy: their messages have not arrived
		last = min(last, id-1)
	}
	isBusy = len(c.streams) > c.reading
	c.isOver = !isBusy
	return last, isBusy
}

// closeAfterCalls closes the connection when the calls in flight have ended.
func (c *callsInFlight) closeAfterCalls() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.beginGoingAway()
}

// multiplexed stops counting a stream as a call, because its calls count. ending is closed when it must end.
func (c *callsInFlight) multiplexed(id uint32, ending chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.streams[id]
	if s == nil {
		return // it has ended
	}
	if s.messages.complete == 0 {
		c.conn.counts.RequestRead()
	}
	c.conn.counts.CallEnded()
	s.ending, s.response.isStream = ending, true
	if c.isGoingAway {
		c.beginGoingAway()
	}
}

// beginMultiplexed counts a call that a stream carries, and reports whether it may run.
func (c *callsInFlight) beginMultiplexed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.multiplex >= maxStreams {
		return false
	}
	c.multiplex++
	c.conn.counts.CallArrived()
	return true
}

// endMultiplexed stops counting such a call.
func (c *callsInFlight) endMultiplexed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.multiplex--
	c.conn.counts.CallEnded()
}

// end frees all memory of the calls, when the connection closes.
func (c *callsInFlight) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.streams {
		c.endStream(id)
	}
	if c.deadlineTimer != nil {
		c.deadlineTimer.Stop()
	}
}

// requestHandled frees the memory of the last message of a stream whose handler is done with it or waits.
func (c *callsInFlight) requestHandled(id uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.releaseRequest(id)
}

// acquireResponse allocates n bytes for the response on a stream and sets its deadline.
func (c *callsInFlight) acquireResponse(id uint32, n int64, must bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	ctl := c.conn.controller
	s := c.streams[id]
	if s == nil { // the call has ended; its response will not be sent
		return must || ctl.memory.acquireResponse(new(int64), 0, false)
	}
	u := &s.response
	if !ctl.memory.acquireResponse(&u.held, n, must) {
		return false
	}
	if n > 0 {
		u.progressAt = time.Now()
		u.deadline = u.progressAt.Add(timeoutFor(ctl.readTimeout, u.held))
		c.scheduleCheck()
	}
	return true
}

// releaseResponse frees n bytes when everything sent on the stream so far has been written.
func (c *callsInFlight) releaseResponse(id uint32, n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.streams[id]; s != nil {
		s.response.releases = append(s.response.releases, pendingRelease{s.response.sent, n})
		s.response.releaseWritten(c.conn.controller.memory)
	}
}

// sent notes that a message of a stream is passed to the server.
func (c *callsInFlight) sent(id uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.streams[id]; s != nil {
		s.response.messageSent()
	}
}

// checksPerTimeout is how often deadlines are checked within one timeout.
const checksPerTimeout = 4

// checkDeadlines closes the connection if the first message of a call is late, or the client does not read. A stream
// whose handler has started may stay silent, and one that carries calls must end when it is to.
func (c *callsInFlight) checkDeadlines() {
	silent := c.conn.counts.Streams()
	c.mu.Lock()
	defer c.mu.Unlock()
	ctl := c.conn.controller
	c.deadlineTimer = nil
	now, isDue := time.Now(), c.reading > 0
	for _, s := range c.streams {
		if s.response.isLate(ctl, now) || s.isEnding && s.response.isStalled(ctl, now) {
			ctl.metrics.AnswersLate.Inc()
			_ = c.conn.Conn.Close()
			return
		}
		isDue = isDue || s.response.held > 0 || s.isEnding || s.isInCall()
		if now.Before(s.deadline) || s.mayBeSilent() {
			continue
		}
		if s.messages.isBetween() && silent > 0 {
			silent--
			continue
		}
		ctl.metrics.RequestsLate.Inc()
		_ = c.conn.Conn.Close()
		return
	}
	if isDue {
		c.deadlineTimer = time.AfterFunc(max(ctl.readTimeout/checksPerTimeout, time.Second), c.checkDeadlines)
	}
}

// scheduleCheck schedules checkDeadlines unless it is scheduled.
func (c *callsInFlight) scheduleCheck() {
	if c.deadlineTimer == nil {
		c.deadlineTimer = time.AfterFunc(c.conn.controller.readTimeout, c.checkDeadlines)
	}
}

// frameHeaderRead notes streams that begin and end.
func (c *callsInFlight) frameHeaderRead() {
	f := &c.in
	switch {
	case f.kind == frameHeaders && f.stream > c.lastStream:
		c.lastStream = f.stream
		c.streams[f.stream] = &streamState{deadline: time.Now().Add(c.conn.controller.readTimeout)}
		c.reading++
		c.conn.counts.CallStarted()
	case f.kind == frameReset:
		c.endStream(f.stream)
	}
}

// dataRead follows the messages on a stream. A message that does not fit into memory is answered here and hidden from
// the server.
func (c *callsInFlight) dataRead(piece []byte) {
	if c.in.kind != frameData {
		return
	}
	id := c.in.stream
	s := c.streams[id]
	if s == nil {
		return // the stream has ended
	}
	before := s.messages.complete
	s.messages.parse(piece, func(length int64) {
		if !c.acquireFor(s, length) {
			c.refusedStream = id
			c.pendingFrames = append(c.pendingFrames, memoryErrorResponse(id)...)
		}
	})
	if s.isInCall() {
		c.scheduleCheck()
	}
	if before == 0 && s.messages.complete > 0 {
		c.reading--
		if s.ending == nil {
			c.conn.counts.RequestRead()
		}
	}
}

// frameRead reports whether a frame must be injected after the one that has ended.
func (c *callsInFlight) frameRead() bool {
	c.hasFrames.Store(true)
	return c.refusedStream != 0
}

// frameHeaderWritten notes streams that end, and requests that are answered.
func (c *callsInFlight) frameHeaderWritten() {
	switch f := &c.out; {
	case f.kind == frameReset, f.kind == frameHeaders && f.flags&flagEndStream != 0:
		c.endStream(f.stream)
	case f.kind == frameData:
		c.releaseRequest(f.stream)
	}
}

// dataWritten follows what is written on a stream.
func (c *callsInFlight) dataWritten(piece []byte) {
	if c.out.kind != frameData {
		return
	}
	if s := c.streams[c.out.stream]; s != nil {
		s.response.pieceWritten(piece, c.conn.controller.memory)
	}
}

// isInCall reports whether calls of a multiplexed stream have begun to arrive, and not ended.
func (s *streamState) isInCall() bool { return s.ending != nil && s.messages.left > 0 }

// mayBeSilent reports whether the client need not send the rest of the first message, or of calls that have begun to
// arrive. While answers wait for the client, a multiplexed stream is not read.
func (s *streamState) mayBeSilent() bool {
	if s.ending == nil {
		return s.messages.complete > 0
	}
	return s.messages.left == 0 && (s.messages.complete > 0 || s.messages.read == 0) || s.response.isUnread()
}

// acquireFor frees the memory of the previous message of a stream, allocates some for the next one, and reports whether
// it was available. Calls of a multiplexed stream are small and admitted one by one: they must not end the stream.
func (c *callsInFlight) acquireFor(s *streamState, length int64) bool {
	ctl := c.conn.controller
	ctl.memory.release(&s.allocated)
	s.deadline = time.Now().Add(timeoutFor(ctl.readTimeout, length))
	isSmall := length <= smallRequest
	if !ctl.memory.acquire(&s.allocated, length*protoFactor, isSmall) && !(isSmall && s.ending != nil) {
		ctl.requestRefused()
		return false
	}
	return true
}

// releaseRequest frees the memory of the last message of a stream. It is called when the message was answered or its
// call waits.
func (c *callsInFlight) releaseRequest(id uint32) {
	if s := c.streams[id]; s != nil && s.messages.complete > 0 && s.messages.isBetween() {
		c.conn.controller.memory.release(&s.allocated)
	}
}

// endStream forgets a stream. It does nothing for unknown ids.
func (c *callsInFlight) endStream(id uint32) {
	s := c.streams[id]
	if s == nil {
		return
	}
	delete(c.streams, id)
	memory := c.conn.controller.memory
	memory.release(&s.allocated)
	memory.releaseResponse(&s.response.held, s.response.held)
	if s.messages.complete == 0 {
		c.reading--
	}
	if s.ending != nil {
		return
	}
	if s.messages.complete == 0 {
		c.conn.counts.RequestRead()
	}
	c.conn.counts.CallEnded()
}

// beginGoingAway lets the connection close after its calls, and multiplexed streams end.
func (c *callsInFlight) beginGoingAway() {
	c.isGoingAway = true
	for _, s := range c.streams {
		if s.ending != nil && !s.isEnding {
			s.isEnding = true
			close(s.ending)
			c.scheduleCheck()
		}
	}
}
