package redisstore

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync/atomic"
	"syscall"

	"github.com/redis/go-redis/v9"
)

// The client begins a new connection with a handshake: protocol, password, name, database. If the connection fails
// before the handshake has ended, the call was not sent, so its outcome is known: nothing was changed (ERR-6). The
// client does not distinguish the two, so the connection does.

// errUnsent is found by errors.Is in every error of a connection on which no call was sent.
var errUnsent = errors.New("the call was not sent")

// causeUnreachable and causeFull are reasons why nothing was sent.
const (
	causeUnreachable = "redis_unreachable"
	causeFull        = "redis_maxclients"
)

// unsent is an error of a connection on which no call was sent. It has no Unwrap, since the client unwraps errors of
// greetings once.
type unsent struct {
	err   error
	cause string
}

func (u *unsent) Error() string { return u.err.Error() }

// Is does not find context.DeadlineExceeded, which a dial that took too long looks like though the caller waits on.
func (u *unsent) Is(target error) bool {
	return target == errUnsent || target != context.DeadlineExceeded && errors.Is(u.err, target)
}

// Timeout and Temporary make it a net.Error, which the client looks for.
func (u *unsent) Timeout() bool {
	var network net.Error
	return errors.As(u.err, &network) && network.Timeout()
}

func (u *unsent) Temporary() bool { return false }

// unsentCause returns why a call was not sent.
func unsentCause(err error) string {
	for ; err != nil; err = errors.Unwrap(err) {
		if u, ok := err.(*unsent); ok { //nolint:errorlint // the chain is walked here
			return u.cause
		}
	}
	return causeUnreachable
}

// greeter makes the connections of a client know when their handshake has ended, and whether they are used.
type greeter struct{ conns *openConns }

// DialHook implements redis.Hook.
func (g greeter) DialHook(dial redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, &unsent{err, causeUnreachable}
		}
		greeted := &greetedConn{Conn: conn, from: g.conns}
		g.conns.add(greeted)
		if socket, ok := conn.(syscall.Conn); ok {
			return &greetedSocket{greeted, socket}, nil
		}
		return greeted, nil
	}
}

// ProcessHook implements redis.Hook.
func (greeter) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

// ProcessPipelineHook implements redis.Hook.
func (greeter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// greetedConn is a connection to Redis.
type greetedConn struct {
	net.Conn

	from   *openConns
	isUsed atomic.Bool // since the last look at idle connections
	isOver atomic.Bool // the handshake; a call was sent
	isFull atomic.Bool // Redis has reached maxclients and closes the connection
}

// greetedSocket is a greetedConn whose socket the client can check before it uses the connection again.
type greetedSocket struct {
	*greetedConn
	syscall.Conn
}

// greetings are the commands that a connection begins with.
var greetings = [][]byte{[]byte("hello"), []byte("auth"), []byte("client"), []byte("select")}

// maxClients is the error that Redis sends to a connection beyond maxclients.
var maxClients = []byte("-ERR max number of clients reached")

var errFull = errors.New("maxclients: Redis has as many connections as it permits")

// Close closes the connection.
func (c *greetedConn) Close() error {
	c.from.remove(c)
	return c.Conn.Close()
}

// Write writes to the connection, except a call after Redis has reached maxclients.
func (c *greetedConn) Write(p []byte) (int, error) {
	c.isUsed.Store(true)
	if c.isOver.Load() {
		return c.Conn.Write(p)
	}
	if c.isFull.Load() {
		return 0, &unsent{errFull, causeFull}
	}
	if !isGreeting(p) {
		c.isOver.Store(true)
		return c.Conn.Write(p)
	}
	n, err := c.Conn.Write(p)
	if err != nil { // the other side has closed; what it sent before can still be read
		said := make([]byte, len(maxClients))
		if m, _ := c.Conn.Read(said); bytes.Equal(said[:m], maxClients) {
			return n, &unsent{errFull, causeFull}
		}
	}
	return n, c.early(err)
}

// Read reads from the connection.
func (c *greetedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.isUsed.Store(true)
	if c.isOver.Load() {
		return n, err
	}
	if bytes.HasPrefix(p[:n], maxClients) {
		c.isFull.Store(true)
		return 0, &unsent{errFull, causeFull}
	}
	return n, c.early(err)
}

func (c *greetedConn) early(err error) error {
	if err == nil {
		return nil
	}
	return &unsent{err, causeUnreachable}
}

// isGreeting reports whether what is written begins with a command of the greeting: "*3\r\n$5\r\nhello\r\n...".
func isGreeting(p []byte) bool {
	_, rest, _ := bytes.Cut(p, []byte("\r\n$"))
	_, rest, _ = bytes.Cut(rest, []byte("\r\n"))
	word, _, _ := bytes.Cut(rest, []byte("\r\n"))
	for _, greeting := range greetings {
		if bytes.EqualFold(word, greeting) {
			return true
		}
	}
	return false
}
