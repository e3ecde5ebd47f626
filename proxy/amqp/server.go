// Package amqp serves AMQP 1.0 as Azure Service Bus speaks it, so that its SDKs need no change (AMQP). It only
// translates: what a message, a lock or a session is, the broker decides.
//
// A connection is run by package engine, which calls Attach here for each link. A link is to a node: a queue, topic,
// subscription or dead-letter queue, the management of one, or $cbs for tokens.
package amqp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/proxy/amqp/internal/engine"
	"github.com/sidebus/sidebus/proxy/internal/admission"
	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/proxy/lograte"
	"github.com/sidebus/sidebus/semantics/broker"
)

// maxConnections is the most connections at a time.
const maxConnections = 1000

// Config is what a Server needs.
type Config struct {
	Broker     *broker.Broker
	Authorizer access.Authorizer
	Metrics    *obs.Metrics
	Calls      *obs.Calls
	Admission  *admission.Controller // the messages that arrive count for its memory
	Logger     *slog.Logger

	Patience       time.Duration // of settlements while Redis is away; zero: 30 seconds
	AnswerPatience time.Duration // of answers without credit; zero: 1 minute
}

// Server serves connections. It is safe for concurrent use.
type Server struct {
	Config

	mu          sync.Mutex
	base        context.Context //nolint:containedctx // of all connections, since Serve
	listeners   map[net.Listener]bool
	connections map[*connection]bool
	isStopping  bool
	work        sync.WaitGroup // of connections and of all that they have begun
	refusals    *lograte.Logger
	withTLS     *lograte.Logger // clients that begin with TLS where none is served
}

// New returns a Server.
func New(config Config) *Server {
	return &Server{
		Config: config, listeners: map[net.Listener]bool{}, connections: map[*connection]bool{},
		refusals: lograte.New(config.Logger, "refused an AMQP connection: there are too many", time.Minute),
		withTLS: lograte.New(config.Logger, "refused an AMQP connection: it begins with TLS, which this address does not serve; "+
			"add UseDevelopmentEmulator=true to the connection string of the SDK, or set --tls-cert-file", time.Minute),
	}
}

func (s *Server) patience() time.Duration { return cmp.Or(s.Patience, defaultPatience) }

// ErrStopped is what Serve returns after Stop.
var ErrStopped = errors.New("the AMQP server has stopped")

// Serve serves the connections of a listener until Stop, which closes it.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	s.mu.Lock()
	s.listeners[listener] = true
	s.base = context.WithoutCancel(ctx)
	isStopping := s.isStopping
	s.mu.Unlock()
	if isStopping {
		_ = listener.Close()
		return ErrStopped
	}
	for {
		conn, err := listener.Accept()
		switch {
		case s.stopping():
			if err == nil {
				_ = conn.Close()
			}
			return ErrStopped
		case err != nil:
			return fmt.Errorf("accept: %w", err)
		}
		if run := s.admit(conn, func() access.Peer { return access.PeerOf(conn) }); run != nil {
			go run()
		}
	}
}

func (s *Server) stopping() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isStopping
}

// admit returns a function that runs a connection until it ends. If there are too many, it closes the connection and
// returns nil. peer is called after the first byte was read.
func (s *Server) admit(conn net.Conn, peer func() access.Peer) (run func()) {
	s.mu.Lock()
	ctx := s.base
	isRefused := ctx == nil || s.isStopping || len(s.connections) >= maxConnections
	var c *connection
	if !isRefused {
		c = newConnection(ctx, s, conn, peer)
		s.connections[c] = true
		s.work.Add(1)
	}
	s.mu.Unlock()
	if isRefused {
		_ = conn.Close()
		s.refusals.Warn("limit", maxConnections)
		return nil
	}
	open := s.Metrics.Connections.WithLabelValues(obs.AMQP)
	open.Inc()
	return func() {
		defer s.work.Done()
		defer open.Dec()
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.connections, c)
		}()
		if err := c.conn.Serve(c); errors.Is(err, engine.ErrTLS) {
			s.withTLS.Warn("peer", conn.RemoteAddr())
		} else if err != nil {
			s.Logger.DebugContext(ctx, "an AMQP connection ended", "peer", conn.RemoteAddr(), slog.Any("error", err))
		}
	}
}

// Stop closes the listeners and the connections, with an error after which clients connect again, and waits for what
// they have begun. When ctx ends it breaks the connections that remain.
func (s *Server) Stop(ctx context.Context) {
	s.mu.Lock()
	s.isStopping = true
	for listener := range s.listeners {
		_ = listener.Close()
	}
	var open []*connection
	for c := range s.connections {
		open = append(open, c)
	}
	s.mu.Unlock()
	for _, c := range open {
		c.conn.Close("the sidecar stops; connect again")
	}
	cut := context.AfterFunc(ctx, func() {
		for _, c := range open {
			c.conn.Cut()
		}
	})
	defer cut()
	s.work.Wait()
}

// containerID is the name of the server in the answer to open.
const containerID = "sidebus"

func (c *connection) config() engine.Config {
	return engine.Config{
		ContainerID: containerID, Authenticate: c.authenticate,
		Memory:  func() engine.Memory { return c.server.Admission.NewRequest() },
		Dropped: c.dropped,
		Panicked: func(recovered any, stack []byte) {
			c.server.Logger.ErrorContext(c.ctx, "panic in an AMQP connection", "panic", fmt.Sprint(recovered), "stack", string(stack))
		},
	}
}
