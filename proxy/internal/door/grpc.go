package door

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
func (d *Door) GRPC(listener net.Listener) net.Listener { return &grpcListener{listener, d} }

type grpcListener struct {
	net.Listener
	door *Door
}

// Accept gives the next connection that is to be served.
func (l *grpcListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &grpcConn{
			Conn:    &Conn{Conn: conn, door: l.door, wire: obs.GRPC},
			streams: map[uint32]*stream{},
			preface: len(preface),
		}
		c.dismiss = c.sendAway
		l.door.metrics.Connections.WithLabelValues(c.wire).Inc()
		if l.door.admit(c.Conn, false) {
			return c, nil
		}
		l.door.metrics.Connections.WithLabelValues(c.wire).Dec()
		_ = conn.Close() // it was never used
	}
}

// GRPCOptions are for the server of the connections.
func GRPCOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.Creds(
			handshake{insecure.NewCredentials()},
		), grpc.MaxConcurrentStreams(maxStreams), grpc.ConnectionTimeout(handshakeTime),
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
const handshakeTime = 10 * time.Second

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
		ctx, waiting := obs.WithWaiting(ctx)
		call := grpcCall{c, streamOf(ctx), waiting}
		return semantics.WithMemory(semantics.WithWaits(ctx, call), call)
	}
	return ctx
}

// grpcCall is one call of a connection.
type grpcCall struct {
	*grpcConn

	stream  uint32
	waiting *obs.Waiting
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

	writing sync.Mutex // held while something is written

	mu         sync.Mutex
	in, out    frames
	preface    int // bytes of it that did not come yet
	streams    map[uint32]*stream
	last       uint32 // highest stream that began
	unfinished int    // streams whose first message did not come whole
	isAway     bool   // the client was sent away, or is to be when nothing is under way
	isLost     bool   // the frames cannot be followed
	late       *time.Timer

	ahead   []byte // is read before what comes
	refused uint32 // stream that is to be reset, as if by the client, when its frame has ended
	answers []byte // frames for the client that wait until they may be written
}

// stream is one call.
type stream struct {
	messages messages
	held     share
	until    time.Time // the first message must have come whole
	unread   unread
}

// Begin is semantics.Waits. The request is decoded by now, so a wait holds none of its memory.
func (g grpcCall) Begin() (enough <-chan struct{}, end func(), err error) {
	enough, stop, err := g.beginWait()
	if err != nil {
		return nil, nil, err
	}
	g.mu.Lock()
	g.answered(g.stream)
	g.mu.Unlock()
	measured := g.waiting.Begin()
	return enough, func() {
		measured()
		if stop() {
			g.mu.Lock()
			g.isAway = true
			g.mu.Unlock()
		}
	}, nil
}

// Read reads from the connection.
func (c *grpcConn) Read(p []byte) (int, error) {
	n, err := copy(p, c.ahead), error(nil) // there is one reader
	c.ahead = c.ahead[n:]
	if n == 0 {
		n, err = c.Conn.Conn.Read(p)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isAway && len(c.streams) == 0 {
		return 0, io.EOF // what came is done elsewhere
	}
	came := p[:n]
	skip := min(c.preface, n)
	c.preface -= skip
	if c.isLost {
		return n, err
	}
	rest, ok := c.in.follow(came[skip:], c.frameCame, c.dataCame, c.frameWent)
	if !ok {
		c.isLost = true // the server finds that out too, and ends the connection
	}
	if c.refused != 0 && c.in.isBetween() {
		c.ahead = slices.Concat(reset(c.refused, cancel), rest, c.ahead)
		n -= len(rest)
		c.refused = 0
	}
	if c.unfinished > 0 {
		c.lookLater()
	}
	return n, err
}

// lookLater sees to it that somebody looks whether something is late.
func (c *grpcConn) lookLater() {
	if c.late == nil {
		c.late = time.AfterFunc(c.door.patience, c.endLate)
	}
}

func (c *grpcConn) frameCame() {
	f := &c.in
	switch {
	case f.kind == frameHeads && f.stream > c.last:
		c.last = f.stream
		c.streams[f.stream] = &stream{until: time.Now().Add(c.door.patience)}
		c.unfinished++
		c.begin()
	case f.kind == frameReset:
		c.endStream(f.stream)
	}
}

// frameWent reports whether something is to be put behind the frame that has ended.
func (c *grpcConn) frameWent() bool {
	c.hasBegun.Store(true)
	return c.refused != 0
}

func (c *grpcConn) dataCame(piece []byte) {
	if c.in.kind != frameData {
		return
	}
	s := c.streams[c.in.stream]
	if s == nil {
		return // it has ended
	}
	before := s.messages.came
	s.messages.follow(piece, func(length int64) {
		if !c.takeFor(s, length) {
			c.refuse(c.in.stream)
		}
	})
	if before == 0 && s.messages.came > 0 {
		c.unfinished--
		c.came()
	}
}

// refuse answers a call for whose message there is no memory, and takes it from the server before the message is there.
func (c *grpcConn) refuse(id uint32) {
	c.refused = id
	c.answers = append(c.answers, frame(frameHeads, flagEnd|flagWhole, id, noMemoryAnswer())...)
	c.answers = append(c.answers, reset(id, noError)...)
	go func() {
		c.writing.Lock()
		defer c.writing.Unlock()
		c.writeAnswers()
	}()
}

// writeAnswers writes what waits, if the server has written whole frames only; else it is called again when it has. The
// caller may write.
func (c *grpcConn) writeAnswers() {
	c.mu.Lock()
	var answers []byte
	if c.out.isBetween() {
		answers, c.answers = c.answers, nil
	}
	c.mu.Unlock()
	if len(answers) > 0 {
		_, _ = c.Conn.Write(answers) // nothing can be done for a client that is gone
	}
}

// noMemoryAnswer is the header of an answer that fails with NoMemory.
var noMemoryAnswer = sync.OnceValue(func() []byte {
	failure := wireerror.Status(NoMemory())
	details, _ := proto.Marshal(failure.Proto()) // it can always be written
	return slices.Concat(field(":status", "200"), field("content-type", "application/grpc"),
		field("grpc-status", strconv.Itoa(int(failure.Code()))), field("grpc-message", failure.Message()),
		field("grpc-status-details-bin", base64.RawStdEncoding.EncodeToString(details)))
})

// takeFor takes memory for the next message of a stream. What the one before took is given back.
func (c *grpcConn) takeFor(s *stream, length int64) bool {
	bytes := c.door.Bytes
	bytes.give(&s.held)
	s.until = time.Now().Add(patienceFor(c.door.patience, length))
	if !bytes.take(&s.held, length*protoWeight, length <= smallRequest) {
		c.door.tooMuch()
		return false
	}
	return true
}

// answered gives back what the last message of a stream took, when it was answered or its call waits: a stream may be
// silent for as long as it likes, but not with that memory.
func (c *grpcConn) answered(id uint32) {
	if s := c.streams[id]; s != nil && s.messages.came > 0 && s.messages.isBetween() {
		c.door.Bytes.give(&s.held)
	}
}

// Handled gives back what the last request of a stream took that is not answered.
func Handled(ctx context.Context) {
	if c := connOf(ctx); c != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.answered(streamOf(ctx))
	}
}

// endStream forgets a stream.
func (c *grpcConn) endStream(id uint32) {
	s := c.streams[id]
	if s == nil {
		return
	}
	delete(c.streams, id)
	c.door.Bytes.give(&s.held)
	c.door.Bytes.giveAnswer(&s.unread.held, s.unread.held)
	if s.messages.came == 0 {
		c.unfinished--
		c.came()
	}
	c.end()
}

// Write writes to the connection.
func (c *grpcConn) Write(p []byte) (int, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	n, err := c.Conn.Write(p)
	c.mu.Lock()
	goes := err == nil && c.followOut(p[:n])
	last, hasAnswers := c.last, len(c.answers) > 0
	c.mu.Unlock()
	if hasAnswers {
		c.writeAnswers()
	}
	if goes {
		c.closeAway(last)
	}
	return n, err
}

// followOut reports whether the client is to be sent away now.
func (c *grpcConn) followOut(p []byte) bool {
	c.out.follow(p, func() {
		switch f := &c.out; {
		case f.kind == frameReset, f.kind == frameHeads && f.flags&flagEnd != 0:
			c.endStream(f.stream)
		case f.kind == frameData:
			c.answered(f.stream)
		}
	}, func(piece []byte) {
		if c.out.kind == frameData {
			c.wentOut(c.out.stream, piece)
		}
	}, func() bool { return false })
	return c.isAway && len(c.streams) == 0 && c.out.isBetween()
}

// sendAway ends the connection once no call is under way whose message is there. The client learns which of its calls
// were not looked at.
func (c *grpcConn) sendAway() {
	c.mu.Lock()
	c.isAway = true
	isBusy, last := len(c.streams) > c.unfinished, c.last
	for id := range c.streams { // their messages do not come
		last = min(last, id-1)
	}
	c.mu.Unlock()
	if isBusy {
		return // a call came just now; its end is the end
	}
	if !c.writing.TryLock() {
		_ = c.Conn.Conn.Close() // a client that does not read
		return
	}
	defer c.writing.Unlock()
	c.mu.Lock()
	isBetween := c.out.isBetween()
	c.mu.Unlock()
	if isBetween {
		c.closeAway(last)
	} else {
		_ = c.Conn.Conn.Close()
	}
}

// closeAway says which stream was the last one, and closes. The caller may write.
func (c *grpcConn) closeAway(last uint32) {
	_ = c.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = c.Conn.Conn.Write(goAway(last)) // a client that does not learn of it sees the end
	_ = c.Conn.Conn.Close()
}

// endLate ends a connection on which a call's first message does not come, or whose client does not read. Streams may
// be silent for as long as they like.
func (c *grpcConn) endLate() {
	c.door.mu.Lock()
	silent := c.Conn.streams
	c.door.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.late = nil
	now, unread := time.Now(), false
	for _, s := range c.streams {
		if s.unread.isLate(c.door, now) {
			c.door.metrics.AnswersLate.Inc()
			_ = c.Conn.Conn.Close()
			return
		}
		unread = unread || s.unread.held > 0
		if s.messages.came > 0 || now.Before(s.until) {
			continue
		}
		if s.messages.isBetween() && silent > 0 {
			silent--
			continue
		}
		c.door.metrics.RequestsLate.Inc()
		_ = c.Conn.Conn.Close()
		return
	}
	if c.unfinished > 0 || unread {
		c.late = time.AfterFunc(max(c.door.patience/lateLooks, time.Second), c.endLate)
	}
}

// lateLooks is how often the time of a message is looked at within that time.
const lateLooks = 4

// Close closes the connection and gives everything back.
func (c *grpcConn) Close() error {
	c.mu.Lock()
	for id := range c.streams {
		c.endStream(id)
	}
	if c.late != nil {
		c.late.Stop()
	}
	c.mu.Unlock()
	return c.Conn.Close()
}
