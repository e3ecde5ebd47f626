// Package engine runs connections of AMQP 1.0: their frames, sessions, windows, links and credits (OASIS part 2). What
// a link is for, its Service decides. Malformed input closes the connection that it came over and affects no other.
//
// One mutex guards all state of a connection. The goroutine that reads it never waits for a Service. Memory is bounded:
// output, messages that arrive, and deliveries that are not settled each have a limit, at which the connection is not
// read, or the caller waits.
package engine

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/sidebus/sidebus/proxy/amqp/internal/frame"
)

// Limits of a connection. Numbers of sessions and links are those that Service Bus announces.
const (
	maxFrameSize     = 64 << 10
	channelMax       = 4999
	handleMax        = 255
	incomingWindow   = 5000
	outgoingWindow   = 5000
	maxQueued        = 8 << 20   // bytes of messages that the Service has not settled; then the connection is not read
	maxPartial       = 16 << 20  // bytes of messages that have arrived in part, except the one that arrives
	maxOutput        = 256 << 10 // bytes not written yet, above which no message is added
	maxAnswers       = 1 << 20   // bytes not written yet, above which the connection is not read
	maxUnsettled     = 5000      // deliveries of a link that the client has not settled
	maxLinks         = 5000
	maxAttached      = 2 << 20 // bytes of the requests of all links, which are kept
	messageBytes     = 512     // what a message takes besides its payload and its performative, about
	minHeartbeat     = 250 * time.Millisecond
	readBuffer       = 4 << 10
	defaultHandshake = 30 * time.Second
	defaultIdle      = 2 * time.Minute
	defaultRecheck   = 10 * time.Second
	defaultStall     = 30 * time.Second
	writeTimeout     = 30 * time.Second
	linger           = 2 * time.Second // how long a client may take to close a connection that this side has closed
)

// Config configures connections.
type Config struct {
	// ContainerID is the name of the server.
	ContainerID string
	// Authenticate checks who the client is. It fails if the client is refused.
	Authenticate func(Login) error
	// IdleTimeout is announced to clients. A client that is silent for twice as long is cut off. Zero: 2 minutes.
	IdleTimeout time.Duration
	// HandshakeTimeout is how long a client may take to open the connection. Zero: 30 seconds.
	HandshakeTimeout time.Duration
	// RecheckAfter is how often a link with too many deliveries that are not settled looks for those that are over.
	// Zero: 10 seconds.
	RecheckAfter time.Duration
	// StallAfter is how long a delivery waits for the window of its session. Zero: 30 seconds.
	StallAfter time.Duration
	// Memory returns the budget of a message that begins to arrive; nil: there is none.
	Memory func() Memory
	// Dropped is called with the state, if there is one, of what the client has asked for and the Service does not get:
	// a message on a link that this side has closed, a message that is cut off, a settlement of a delivery that this
	// side does not know. It must not block. Nil: nothing is.
	Dropped func(state frame.State)
	// Panicked is called for a panic of the goroutine that reads.
	Panicked func(recovered any, stack []byte)
}

// Memory is the memory of a message that arrives. Its methods must not block.
type Memory interface {
	// Grow adds n bytes, and reports whether they were available.
	Grow(n int) bool
	// Free releases all.
	Free()
}

// noMemory is the budget of a message if there is none.
type noMemory struct{}

func (noMemory) Grow(int) bool { return true }
func (noMemory) Free()         {}

// Login is how a client has said who it is.
type Login struct {
	Mechanism      string // empty: it did not
	User, Password string // of PLAIN
}

// Service decides what the links of a connection are for.
type Service interface {
	// Attach is called for each link that the client attaches, by the goroutine that reads: it must not block. The
	// Service calls Accept or Refuse of the link, at once or later.
	Attach(link *Link)
}

// Conn is a connection.
type Conn struct {
	config  Config
	net     net.Conn
	service Service
	ctx     context.Context //nolint:containedctx // of the connection: it ends with it
	end     context.CancelFunc

	wake chan struct{} // for the writer: there is output

	mu        sync.Mutex
	sessions  map[uint16]*session // by the channel of the client
	channels  map[uint16]bool     // of this side that are in use
	maxFrame  int                 // of the client
	heartbeat time.Duration       // how often the client wants to hear something; 0: never
	out       []byte              // frames to write
	appended  int64               // bytes ever added to out
	written   int64               // bytes ever written
	flushed   signal              // written has changed
	isClosing bool                // nothing follows what is in out
	isOpen    bool
	queued    int    // bytes of messages and settlements that the Service has
	settled   signal // queued has changed
	partial   int    // bytes of messages that have arrived in part
	links     int
	attached  int // bytes of the requests of links
}

// signal wakes all that wait for something. It is used under the mutex of its owner.
type signal struct{ ch chan struct{} }

// wait returns a channel that is closed by the next fire.
func (s *signal) wait() <-chan struct{} {
	if s.ch == nil {
		s.ch = make(chan struct{})
	}
	return s.ch
}

func (s *signal) fire() {
	if s.ch != nil {
		close(s.ch)
		s.ch = nil
	}
}

// New returns a connection over n, which Serve runs.
func New(ctx context.Context, n net.Conn, config Config) *Conn {
	if config.IdleTimeout == 0 {
		config.IdleTimeout = defaultIdle
	}
	if config.HandshakeTimeout == 0 {
		config.HandshakeTimeout = defaultHandshake
	}
	if config.RecheckAfter == 0 {
		config.RecheckAfter = defaultRecheck
	}
	if config.StallAfter == 0 {
		config.StallAfter = defaultStall
	}
	if config.Dropped == nil {
		config.Dropped = func(frame.State) {}
	}
	if config.Memory == nil {
		config.Memory = func() Memory { return noMemory{} }
	}
	c := &Conn{
		config: config, net: n, wake: make(chan struct{}, 1),
		sessions: map[uint16]*session{}, channels: map[uint16]bool{}, maxFrame: frame.MinMaxSize,
	}
	c.ctx, c.end = context.WithCancel(ctx)
	return c
}

// Context ends with the connection.
func (c *Conn) Context() context.Context { return c.ctx }

// protocolError is an error of the client, for which its connection is closed.
type protocolError struct{ why *frame.Error }

// Error returns what the client has done.
func (e *protocolError) Error() string { return e.why.Error() }

func violation(condition, format string, args ...any) error {
	return &protocolError{&frame.Error{Condition: condition, Description: fmt.Sprintf(format, args...)}}
}

// Error conditions of the protocol.
const (
	decodeError      = "amqp:decode-error"
	framingError     = "amqp:connection:framing-error"
	notAllowed       = "amqp:not-allowed"
	internalError    = "amqp:internal-error"
	limitExceeded    = "amqp:resource-limit-exceeded"
	windowViolation  = "amqp:session:window-violation"
	errantLink       = "amqp:session:errant-link"
	handleInUse      = "amqp:session:handle-in-use"
	unattachedHandle = "amqp:session:unattached-handle"
	transferLimit    = "amqp:link:transfer-limit-exceeded"
	invalidField     = "amqp:invalid-field"
	connectionForced = "amqp:connection:forced"
)

// Serve runs the connection until it is closed by one side or broken. All its links are over then. It returns why it
// ended, nil if the client has closed it.
func (c *Conn) Serve(service Service) (err error) {
	c.service = service
	reader := bufio.NewReaderSize(c.net, readBuffer)
	defer func() { _ = c.net.Close() }()
	defer c.end()
	openBy := time.Now().Add(c.config.HandshakeTimeout)
	_ = c.net.SetDeadline(openBy)
	if err := c.handshake(reader); err != nil {
		return err
	}
	_ = c.net.SetDeadline(time.Time{})
	var writer sync.WaitGroup
	writer.Go(c.write)
	err = c.read(frame.NewReader(reader, maxFrameSize), openBy)
	c.shut(closeErrorFor(err))
	c.drop()
	writer.Wait()
	if err != nil { // what the client has still sent must be read, or it would not get the last frame
		_, _ = io.Copy(io.Discard, c.net)
	}
	return err
}

// closeErrorFor returns what the client is told about why its connection ends.
func closeErrorFor(err error) *frame.Error {
	var wrong *protocolError
	var malformed *frame.Malformed
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong):
		return wrong.why
	case errors.As(err, &malformed):
		return &frame.Error{Condition: decodeError, Description: malformed.Error()}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &frame.Error{Condition: limitExceeded, Description: "the connection was idle for too long"}
	default:
		return &frame.Error{Condition: connectionForced, Description: "the connection is broken"}
	}
}

// read handles frames until the connection ends. Until openBy the client must have opened it.
func (c *Conn) read(reader *frame.Reader, openBy time.Time) (err error) {
	defer func() {
		if recovered := recover(); recovered != nil {
			if c.config.Panicked != nil {
				c.config.Panicked(recovered, debug.Stack())
			}
			err = violation(internalError, "the server has a bug; its log has the details")
		}
	}()
	for {
		deadline := openBy
		if c.isOpen { // only this goroutine changes it
			deadline = time.Now().Add(2 * c.config.IdleTimeout)
		}
		_ = c.net.SetReadDeadline(deadline)
		f, err := reader.Next()
		switch {
		case c.ctx.Err() != nil, errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		isOver, err := c.handle(f)
		if isOver || err != nil {
			return err
		}
		reader.Shrink()
		if err := c.awaitRoom(); err != nil {
			return err
		}
	}
}

// awaitRoom waits until there is memory for what the next frames bring. A client for which there is none for long, such
// as one that makes requests and takes no answers, is cut off: its connection is not read, so it could be gone.
func (c *Conn) awaitRoom() error {
	var tooLong <-chan time.Time
	for {
		c.mu.Lock()
		var changed <-chan struct{}
		switch {
		case c.queued > maxQueued:
			changed = c.settled.wait()
		case len(c.out) > maxAnswers:
			changed = c.flushed.wait()
		}
		c.mu.Unlock()
		if changed == nil {
			return nil
		}
		if tooLong == nil {
			timer := time.NewTimer(c.config.IdleTimeout)
			defer timer.Stop()
			tooLong = timer.C
		}
		select {
		case <-changed:
		case <-tooLong:
			return violation(limitExceeded, "messages and requests of this connection take too much memory for too long")
		case <-c.ctx.Done():
			return nil
		}
	}
}

// handle handles a frame. isOver: the client has closed the connection.
func (c *Conn) handle(f frame.Frame) (isOver bool, err error) {
	if f.Body == nil {
		return false, nil // only to be heard
	}
	if f.Type != frame.AMQP {
		return false, violation(framingError, "SASL is over")
	}
	if open, ok := f.Body.(*frame.Open); ok {
		return false, c.opened(open)
	}
	after, isOver, err := c.dispatch(f)
	if after != nil {
		after()
	}
	return isOver, err
}

// dispatch handles a frame of an open connection, under the mutex, which a panic releases too. after is to be called
// without it.
func (c *Conn) dispatch(f frame.Frame) (after func(), isOver bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.isOpen {
		return nil, false, violation(notAllowed, "the first frame must be an open")
	}
	switch body := f.Body.(type) {
	case *frame.Close:
		return nil, true, nil
	case *frame.Begin:
		return nil, false, c.begin(f.Channel, body)
	}
	s := c.sessions[f.Channel]
	if s == nil {
		return nil, false, violation(framingError, "channel %d has no session", f.Channel)
	}
	switch body := f.Body.(type) {
	case *frame.End:
		s.ended()
		c.send(frame.Frame{Channel: s.channel, Body: &frame.End{}})
	case *frame.Attach:
		after, err = s.attach(body, f.Size)
	case *frame.Flow:
		err = s.flow(body)
	case *frame.Transfer:
		after, err = s.transfer(body, f)
	case *frame.Disposition:
		after = s.disposition(body, f.Size)
	case *frame.Detach:
		err = s.detach(body)
	default:
		err = violation(framingError, "unexpected frame")
	}
	return after, false, err
}

// opened answers an open.
func (c *Conn) opened(open *frame.Open) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isOpen {
		return violation(notAllowed, "the connection is open already")
	}
	c.isOpen, c.maxFrame = true, maxFrameSize
	if open.MaxFrameSize != nil {
		c.maxFrame = min(maxFrameSize, int(*open.MaxFrameSize))
	}
	idle, channels, size := uint32(c.config.IdleTimeout.Milliseconds()), uint32(channelMax), uint32(maxFrameSize)
	c.send(frame.Frame{Body: &frame.Open{
		ContainerID: c.config.ContainerID, MaxFrameSize: &size, ChannelMax: &channels, IdleTimeout: idle,
	}})
	if c.maxFrame < frame.MinMaxSize {
		return violation(invalidField, "max-frame-size is %d, must be at least %d", c.maxFrame, frame.MinMaxSize)
	}
	if open.IdleTimeout > 0 {
		c.heartbeat = max(time.Duration(open.IdleTimeout)*time.Millisecond/2, minHeartbeat)
	}
	return nil
}

// drop ends all sessions and links when the connection is over.
func (c *Conn) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.sessions {
		s.ended()
	}
}

// Cut breaks the connection.
func (c *Conn) Cut() { _ = c.net.Close() }

// Close closes the connection with an error after which the client connects again. It does not wait.
func (c *Conn) Close(why string) {
	c.shut(&frame.Error{Condition: connectionForced, Description: why})
}

// shut lets the connection end when all that is to be written was.
func (c *Conn) shut(why *frame.Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isClosing {
		return
	}
	if c.isOpen {
		c.send(frame.Frame{Body: &frame.Close{Error: why}})
	}
	c.isClosing = true
	c.poke()
}
