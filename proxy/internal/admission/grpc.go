package admission

import (
	"context"
	"encoding/base64"
	"io"
	"net"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/proto"

	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/proxy/wireerror"
	"github.com/sidebus/sidebus/semantics"
)

// GRPC gives a listener for a server with GRPCOptions. A connection that is one too many is closed, which a client sees
// as UNAVAILABLE and tries again later.
func (d *Controller) GRPC(listener net.Listener) net.Listener { return &grpcListener{listener, d} }

type grpcListener struct {
	net.Listener
	controller *Controller
}

// Accept gives the next connection that is to be served.
func (l *grpcListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &grpcConn{
			Conn:        &Conn{Conn: conn, controller: l.controller, wire: obs.GRPC},
			streams:     map[uint32]*streamState{},
			prefaceLeft: len(preface),
		}
		c.closeIdle = c.goAway
		l.controller.metrics.Connections.WithLabelValues(c.wire).Inc()
		if l.controller.admit(c.Conn, false) {
			return c, nil
		}
		l.controller.metrics.Connections.WithLabelValues(c.wire).Dec()
		_ = conn.Close() // it was never used
	}
}

// GRPCOptions are for the server of the connections.
func GRPCOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.Creds(
			handshake{insecure.NewCredentials()},
		), grpc.MaxConcurrentStreams(maxStreams), grpc.ConnectionTimeout(handshakeTimeout),
		grpc.ChainStreamInterceptor(countStream),
	}
}

// countStream counts a stream of health and reflection, which nobody else does. What is registered for the API counts
// its own.
func countStream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	if !strings.HasPrefix(info.FullMethod, "/grpc.") {
		return handle(srv, stream)
	}
	end, err := BeginStream(stream.Context())
	if err != nil {
		return wireerror.Status(wireerror.Of(err)).Err()
	}
	defer end()
	return handle(srv, stream)
}

// handshakeTime is how long a client has for the beginning of a connection.
const handshakeTimeout = 10 * time.Second

// handshake lets calls find their connection.
type handshake struct {
	credentials.TransportCredentials
}

type authInfo struct {
	credentials.AuthInfo
	conn *grpcConn
}

// ServerHandshake puts the connection where the calls find it.
func (h handshake) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	same, info, err := h.TransportCredentials.ServerHandshake(conn)
	if c, ok := conn.(*grpcConn); ok && err == nil {
		info = authInfo{info, c}
	}
	return same, info, err
}

// connOf gives the connection of a call, nil when it did not come through a Door.
func connOf(ctx context.Context) *grpcConn {
	if p, ok := peer.FromContext(ctx); ok {
		if info, ok := p.AuthInfo.(authInfo); ok {
			return info.conn
		}
	}
	return nil
}

// WithWaits lets waits of a gRPC call be ended early, and counts its answer.
func WithWaits(ctx context.Context) context.Context {
	if c := connOf(ctx); c != nil {
		ctx, waiting := obs.WithWaitTimer(ctx)
		call := grpcCall{c, streamOf(ctx), waiting}
		return semantics.WithMemory(semantics.WithWaits(ctx, call), call)
	}
	return ctx
}

// grpcCall is one call of a connection.
type grpcCall struct {
	*grpcConn

	stream  uint32
	waiting *obs.WaitTimer
}

// streamOf gives the number of a call's stream, 0 when it is unknown. grpc-go knows it and tells nobody; the call's
// headers, from which the connection could learn it, would end the client's right to try it again. Neither a
// stats.Handler nor a tap is given it, and what counts calls without it cannot say whose answer is still to be written.
func streamOf(ctx context.Context) uint32 {
	stream := reflect.Indirect(reflect.ValueOf(grpc.ServerTransportStreamFromContext(ctx)))
	if stream.Kind() != reflect.Struct {
		return 0
	}
	if id := stream.FieldByName("id"); id.IsValid() && id.Kind() == reflect.Uint32 {
		return uint32(id.Uint()) //nolint:gosec // it is one
	}
	return 0
}

// BeginStream counts a call as a stream, which stays as long as its client likes, until end is called. THROTTLED: there
// is no place.
func BeginStream(ctx context.Context) (end func(), err error) {
	if c := connOf(ctx); c != nil {
		return c.beginStream()
	}
	return func() {}, nil
}

// grpcConn follows the frames of a connection, in both directions: it knows which calls are under way, takes memory for
// a message before it arrives, and ends a connection on which one does not.
type grpcConn struct {
	*Conn

	writeMu sync.Mutex // held while something is written

	mu            sync.Mutex
	in, out       frameParser
	prefaceLeft   int // bytes of it that did not come yet
	streams       map[uint32]*streamState
	lastStream    uint32 // highest stream that began
	reading       int    // streams whose first message did not come whole
	isGoingAway   bool   // the client was sent away, or is to be when nothing is under way
	isUnparsable  bool   // the frames cannot be followed
	deadlineTimer *time.Timer

	injected      []byte // is read before what comes
	refusedStream uint32 // stream that is to be reset, as if by the client, when its frame has ended
	pendingFrames []byte // frames for the client that wait until they may be written
}

// stream is one call.
type streamState struct {
	messages  messageParser
	allocated allocation
	deadline  time.Time // the first message must have come whole
	response  responseState
}

// Begin is semantics.Waits. The request is decoded by now, so a wait holds none of its memory.
func (g grpcCall) Begin() (enough <-chan struct{}, end func(), err error) {
	enough, stop, err := g.beginWait()
	if err != nil {
		return nil, nil, err
	}
	g.mu.Lock()
	g.releaseRequest(g.stream)
	g.mu.Unlock()
	measured := g.waiting.Begin()
	return enough, func() {
		measured()
		if stop() {
			g.mu.Lock()
			g.isGoingAway = true
			g.mu.Unlock()
		}
	}, nil
}

// Read reads from the connection.
func (c *grpcConn) Read(p []byte) (int, error) {
	n, err := copy(p, c.injected), error(nil) // there is one reader
	c.injected = c.injected[n:]
	if n == 0 {
		n, err = c.Conn.Conn.Read(p)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isGoingAway && len(c.streams) == 0 {
		return 0, io.EOF // what came is done elsewhere
	}
	came := p[:n]
	skip := min(c.prefaceLeft, n)
	c.prefaceLeft -= skip
	if c.isUnparsable {
		return n, err
	}
	rest, ok := c.in.parse(came[skip:], c.frameHeaderRead, c.dataRead, c.frameRead)
	if !ok {
		c.isUnparsable = true // the server finds that out too, and ends the connection
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

// lookLater sees to it that somebody looks whether something is late.
func (c *grpcConn) scheduleCheck() {
	if c.deadlineTimer == nil {
		c.deadlineTimer = time.AfterFunc(c.controller.readTimeout, c.checkDeadlines)
	}
}

func (c *grpcConn) frameHeaderRead() {
	f := &c.in
	switch {
	case f.kind == frameHeaders && f.stream > c.lastStream:
		c.lastStream = f.stream
		c.streams[f.stream] = &streamState{deadline: time.Now().Add(c.controller.readTimeout)}
		c.reading++
		c.callStarted()
	case f.kind == frameReset:
		c.endStream(f.stream)
	}
}

// frameWent reports whether something is to be put behind the frame that has ended.
func (c *grpcConn) frameRead() bool {
	c.hasFrames.Store(true)
	return c.refusedStream != 0
}

func (c *grpcConn) dataRead(piece []byte) {
	if c.in.kind != frameData {
		return
	}
	s := c.streams[c.in.stream]
	if s == nil {
		return // it has ended
	}
	before := s.messages.complete
	s.messages.parse(piece, func(length int64) {
		if !c.acquireFor(s, length) {
			c.refuseStream(c.in.stream)
		}
	})
	if before == 0 && s.messages.complete > 0 {
		c.reading--
		c.requestRead()
	}
}

// refuse answers a call for whose message there is no memory, and takes it from the server before the message is there.
func (c *grpcConn) refuseStream(id uint32) {
	c.refusedStream = id
	c.pendingFrames = append(c.pendingFrames, encodeFrame(frameHeaders, flagEndStream|flagEndHeaders, id, memoryErrorHeaders())...)
	c.pendingFrames = append(c.pendingFrames, encodeReset(id, noError)...)
	go func() {
		c.writeMu.Lock()
		defer c.writeMu.Unlock()
		c.writePending()
	}()
}

// writeAnswers writes what waits, if the server has written whole frames only; else it is called again when it has. The
// caller may write.
func (c *grpcConn) writePending() {
	c.mu.Lock()
	var answers []byte
	if c.out.isBetween() {
		answers, c.pendingFrames = c.pendingFrames, nil
	}
	c.mu.Unlock()
	if len(answers) > 0 {
		_, _ = c.Conn.Write(answers) // nothing can be done for a client that is gone
	}
}

// noMemoryAnswer is the header of an answer that fails with NoMemory.
var memoryErrorHeaders = sync.OnceValue(func() []byte {
	failure := wireerror.Status(errRequestMemory())
	details, _ := proto.Marshal(failure.Proto()) // it can always be written
	return slices.Concat(encodeField(":status", "200"), encodeField("content-type", "application/grpc"),
		encodeField("grpc-status", strconv.Itoa(int(failure.Code()))), encodeField("grpc-message", failure.Message()),
		encodeField("grpc-status-details-bin", base64.RawStdEncoding.EncodeToString(details)))
})

// takeFor takes memory for the next message of a stream. What the one before took is given back.
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

// answered gives back what the last message of a stream took, when it was answered or its call waits: a stream may be
// silent for as long as it likes, but not with that memory.
func (c *grpcConn) releaseRequest(id uint32) {
	if s := c.streams[id]; s != nil && s.messages.complete > 0 && s.messages.isBetween() {
		c.controller.memory.release(&s.allocated)
	}
}

// Handled gives back what the last request of a stream took that is not answered.
func RequestHandled(ctx context.Context) {
	if c := connOf(ctx); c != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.releaseRequest(streamOf(ctx))
	}
}

// endStream forgets a stream.
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
		c.requestRead()
	}
	c.callEnded()
}

// Write writes to the connection.
func (c *grpcConn) Write(p []byte) (int, error) {
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	n, err := c.Conn.Write(p)
	c.mu.Lock()
	goes := err == nil && c.parseWritten(p[:n])
	last, hasAnswers := c.lastStream, len(c.pendingFrames) > 0
	c.mu.Unlock()
	if hasAnswers {
		c.writePending()
	}
	if goes {
		c.closeWithGoAway(last)
	}
	return n, err
}

// followOut reports whether the client is to be sent away now.
func (c *grpcConn) parseWritten(p []byte) bool {
	c.out.parse(p, func() {
		switch f := &c.out; {
		case f.kind == frameReset, f.kind == frameHeaders && f.flags&flagEndStream != 0:
			c.endStream(f.stream)
		case f.kind == frameData:
			c.releaseRequest(f.stream)
		}
	}, func(piece []byte) {
		if c.out.kind == frameData {
			c.dataWritten(c.out.stream, piece)
		}
	}, func() bool { return false })
	return c.isGoingAway && len(c.streams) == 0 && c.out.isBetween()
}

// sendAway ends the connection once no call is under way whose message is there. The client learns which of its calls
// were not looked at.
func (c *grpcConn) goAway() {
	c.mu.Lock()
	c.isGoingAway = true
	isBusy, last := len(c.streams) > c.reading, c.lastStream
	for id := range c.streams { // their messages do not come
		last = min(last, id-1)
	}
	c.mu.Unlock()
	if isBusy {
		return // a call came just now; its end is the end
	}
	if !c.writeMu.TryLock() {
		_ = c.Conn.Conn.Close() // a client that does not read
		return
	}
	defer c.writeMu.Unlock()
	c.mu.Lock()
	isBetween := c.out.isBetween()
	c.mu.Unlock()
	if isBetween {
		c.closeWithGoAway(last)
	} else {
		_ = c.Conn.Conn.Close()
	}
}

// closeAway says which stream was the last one, and closes. The caller may write.
func (c *grpcConn) closeWithGoAway(last uint32) {
	_ = c.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = c.Conn.Conn.Write(encodeGoAway(last)) // a client that does not learn of it sees the end
	_ = c.Conn.Conn.Close()
}

// endLate ends a connection on which a call's first message does not come, or whose client does not read. Streams may
// be silent for as long as they like.
func (c *grpcConn) checkDeadlines() {
	c.controller.mu.Lock()
	silent := c.Conn.streams
	c.controller.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadlineTimer = nil
	now, unread := time.Now(), false
	for _, s := range c.streams {
		if s.response.isLate(c.controller, now) {
			c.controller.metrics.AnswersLate.Inc()
			_ = c.Conn.Conn.Close()
			return
		}
		unread = unread || s.response.held > 0
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
	if c.reading > 0 || unread {
		c.deadlineTimer = time.AfterFunc(max(c.controller.readTimeout/checksPerTimeout, time.Second), c.checkDeadlines)
	}
}

// lateLooks is how often the time of a message is looked at within that time.
const checksPerTimeout = 4

// Close closes the connection and gives everything back.
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
