// Package oneport serves AMQP and HTTP at the same addresses, each with and without TLS: the first bytes of a
// connection are those of its protocol. Clients that say nothing take neither the place nor the memory of others: a
// connection counts as opening until its protocol is known, and if too many are opening, the oldest of them is closed.
package oneport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"
)

// Limits of the connections that are opening.
const (
	MaxOpening  = 512
	OpeningTime = 10 * time.Second // for the first bytes, and what TLS exchanges before them
)

// The first byte of a connection.
const (
	ofTLS  = 0x16 // a record of a handshake
	ofAMQP = 'A'  // of "AMQP"; no usual method of HTTP begins with it
)

// Config configures a Port.
type Config struct {
	// TLS returns the configuration of TLS of a connection that begins now. nil: there is none.
	TLS func(*tls.ClientHelloInfo) (*tls.Config, error)
	// NeedsTLS refuses connections without TLS, except over unix sockets.
	NeedsTLS bool
}

// Port is a set of listeners whose connections are served by two servers. It is safe for concurrent use.
type Port struct {
	config Config
	amqp   *queue
	http   *queue

	mu        sync.Mutex
	listeners []net.Listener
	opening   []net.Conn // the oldest first
	isClosed  bool
	work      sync.WaitGroup
}

// New returns a Port.
func New(config Config) *Port { return &Port{config: config, amqp: newQueue(), http: newQueue()} }

// AMQP returns the listener of the connections that speak AMQP.
func (p *Port) AMQP() net.Listener { return p.amqp }

// HTTP returns the listener of the connections that speak HTTP.
func (p *Port) HTTP() net.Listener { return p.http }

// Add adds a listener, which the Port closes.
func (p *Port) Add(listener net.Listener) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listeners = append(p.listeners, listener)
	p.amqp.addr, p.http.addr = p.listeners[0].Addr(), p.listeners[0].Addr()
}

// ErrClosed is what Serve returns after Close.
var ErrClosed = errors.New("the port is closed")

// Serve accepts the connections of all listeners until Close.
func (p *Port) Serve(ctx context.Context) error {
	p.mu.Lock()
	listeners := slices.Clone(p.listeners)
	p.mu.Unlock()
	failed := make(chan error, len(listeners))
	for _, listener := range listeners {
		p.work.Go(func() { failed <- p.accept(ctx, listener) })
	}
	var err error
	for range listeners {
		if err = <-failed; !p.closed() {
			break
		}
	}
	p.Close()
	p.work.Wait()
	return err
}

// Close closes the listeners and the connections that are opening. Those that are served stay open.
func (p *Port) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.isClosed = true
	for _, listener := range p.listeners {
		_ = listener.Close()
	}
	for _, conn := range p.opening {
		_ = conn.Close()
	}
	_ = p.amqp.Close()
	_ = p.http.Close()
}

func (p *Port) closed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.isClosed
}

// acceptPause is how long to wait when no connection can be accepted for now.
const acceptPause = 100 * time.Millisecond

func (p *Port) accept(ctx context.Context, listener net.Listener) error {
	for {
		conn, err := listener.Accept()
		var passing net.Error
		switch {
		case p.closed():
			if err == nil {
				_ = conn.Close()
			}
			return ErrClosed
		case errors.As(err, &passing) && !errors.Is(err, net.ErrClosed): // the process has too many open files
			select {
			case <-time.After(acceptPause):
			case <-ctx.Done():
			}
		case err != nil:
			return fmt.Errorf("accept: %w", err)
		default:
			p.begin(ctx, conn)
		}
	}
}

// begin finds out what a connection speaks, in a goroutine of its own.
func (p *Port) begin(ctx context.Context, conn net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isClosed {
		_ = conn.Close()
		return
	}
	if len(p.opening) == MaxOpening {
		_ = p.opening[0].Close() // its goroutine notices
		p.opening = slices.Delete(p.opening, 0, 1)
	}
	p.opening = append(p.opening, conn)
	p.work.Go(func() {
		served, to := p.open(ctx, conn)
		p.opened(conn)
		if to == nil || !to.put(served) {
			_ = conn.Close()
		}
	})
}

func (p *Port) opened(conn net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := slices.Index(p.opening, conn); at >= 0 {
		p.opening = slices.Delete(p.opening, at, at+1)
	}
}

// open returns the connection to serve and where it goes to, nil if it speaks nothing that is served.
func (p *Port) open(ctx context.Context, conn net.Conn) (net.Conn, *queue) {
	_ = conn.SetDeadline(time.Now().Add(OpeningTime))
	served, first, err := peek(conn)
	isSecure := conn.LocalAddr().Network() == "unix"
	if err == nil && first == ofTLS && p.config.TLS != nil {
		secure := tls.Server(served, &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: p.config.TLS})
		if err = secure.HandshakeContext(ctx); err == nil {
			isSecure = true
			served, first, err = peek(secure)
		}
	}
	_ = conn.SetDeadline(time.Time{}) // the servers have limits of their own
	switch {
	case err != nil, p.config.NeedsTLS && !isSecure:
		return nil, nil
	case first == ofAMQP, first == ofTLS && !isSecure && p.config.TLS == nil: // which logs what to do about TLS
		return served, p.amqp
	case first >= 'A' && first <= 'Z':
		return served, p.http
	default:
		return nil, nil
	}
}

// peeked is a connection whose first byte was read already.
type peeked struct {
	net.Conn

	first []byte // until it is read again
}

// peek reads the first byte of a connection. The connection returned has it too.
func peek(conn net.Conn) (*peeked, byte, error) {
	first := make([]byte, 1)
	if _, err := conn.Read(first); err != nil {
		return nil, 0, err
	}
	return &peeked{conn, first}, first[0], nil
}

// Read reads from the connection.
func (c *peeked) Read(b []byte) (int, error) {
	if len(c.first) == 0 || len(b) == 0 {
		return c.Conn.Read(b)
	}
	b[0], c.first = c.first[0], nil
	return 1, nil
}

// CloseWrite ends what is written, so that the other end reads all of it although it still writes: a connection that is
// closed while something arrives is reset, and the last frame of AMQP, which says why it ends, may be lost.
func (c *peeked) CloseWrite() error {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok {
		return errors.ErrUnsupported
	}
	return half.CloseWrite()
}

// NetConn returns the connection below.
func (c *peeked) NetConn() net.Conn { return c.Conn }

// queue is the listener of one protocol.
type queue struct {
	addr   net.Addr
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func newQueue() *queue { return &queue{conns: make(chan net.Conn), closed: make(chan struct{})} }

// put passes a connection on, and reports whether it could.
func (q *queue) put(conn net.Conn) bool {
	select {
	case q.conns <- conn:
		return true
	case <-q.closed:
		return false
	}
}

// Accept returns the next connection.
func (q *queue) Accept() (net.Conn, error) {
	select {
	case conn := <-q.conns:
		return conn, nil
	case <-q.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept. What speaks the protocol is closed from then on.
func (q *queue) Close() error {
	q.once.Do(func() { close(q.closed) })
	return nil
}

// Addr returns the address of the first listener.
func (q *queue) Addr() net.Addr { return q.addr }
