package dapr

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	proto "github.com/dapr/dapr/pkg/proto/components/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/semantics/broker"
)

// Limits of the servers.
const (
	maxHeaderBytes  = 64 << 10
	maxConnections  = 1000 // on all sockets
	maxStreams      = 1000 // concurrent calls and streams of one connection
	callWorkers     = 64   // goroutines that run calls; a new one would have to grow its stack
	minPingInterval = 10 * time.Second
	pingInterval    = time.Minute // to detect a lost runtime
	pingTimeout     = 20 * time.Second
	closeTimeout    = 5 * time.Second
)

// Server serves the component. Use New, Open, Serve and Stop in this order.
type Server struct {
	config  Config
	broker  *broker.Broker
	metrics *obs.Metrics
	calls   *obs.Calls
	logger  *slog.Logger

	endpoints   []*endpoint
	connections atomic.Int64
	published   chan struct{} // closed when all sockets are published
	stopping    chan struct{} // closed when streams must end
	stop        sync.Once
}

// endpoint is a socket with its server.
type endpoint struct {
	socketSpec

	component *component
	grpc      *grpc.Server
	socket    *socket
}

// New returns a Server. It opens nothing and does not block. It fails if a socket path is invalid.
func New(
	config Config, broker *broker.Broker, metrics *obs.Metrics, calls *obs.Calls, logger *slog.Logger,
) (*Server, error) {
	places, err := config.sockets()
	if err != nil {
		return nil, err
	}
	if config.Authorizer == nil {
		config.Authorizer = access.AllowAll{}
	}
	s := &Server{
		config:    config,
		broker:    broker,
		metrics:   metrics,
		calls:     calls,
		logger:    logger,
		published: make(chan struct{}),
		stopping:  make(chan struct{}),
	}
	for _, p := range places {
		s.endpoints = append(s.endpoints, &endpoint{socketSpec: p, component: newComponent(s, p)})
	}
	return s, nil
}

// server returns the server of a component, which has goroutines until it is stopped.
func (s *Server) server(c *component) *grpc.Server {
	server := grpc.NewServer(
		grpc.Creds(trackedCredentials{metrics: s.metrics, open: &s.connections, closed: c.registry.forget}),
		grpc.ForceServerCodecV2(codec{encoding.GetCodecV2("proto")}),
		grpc.MaxRecvMsgSize(s.config.MaxMessage),
		grpc.MaxHeaderListSize(maxHeaderBytes),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.KeepaliveEnforcementPolicy(
			keepalive.EnforcementPolicy{MinTime: minPingInterval, PermitWithoutStream: true},
		),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: pingInterval, Timeout: pingTimeout}),
		grpc.WaitForHandlers(true),
		grpc.NumStreamWorkers(callWorkers),
		grpc.InTapHandle(trackOpening),
		grpc.UnaryInterceptor(s.observeCall),
		grpc.StreamInterceptor(s.observeStream),
	)
	proto.RegisterPubSubServer(server, c)
	reflection.Register(server)
	return server
}

// Open opens the sockets, under hidden names until Serve. It may block for a second to detect a stale socket.
func (s *Server) Open(ctx context.Context) error {
	for _, one := range s.endpoints {
		var err error
		if one.socket, err = listen(ctx, one.path); err != nil {
			return errors.Join(fmt.Errorf("open Dapr socket: %w", err), s.close())
		}
	}
	for _, one := range s.endpoints {
		one.grpc = s.server(one.component)
	}
	return nil
}

// close closes the open sockets and ends the servers.
func (s *Server) close() error {
	var failed []error
	for _, one := range s.endpoints {
		if one.socket != nil {
			failed = append(failed, one.socket.Close())
		}
		if one.grpc != nil {
			one.grpc.Stop()
		}
	}
	return errors.Join(failed...)
}

// Published returns a channel that is closed when the Dapr runtime can find all sockets.
func (s *Server) Published() <-chan struct{} { return s.published }

// Serve serves until Stop. It must be called once, after Open.
func (s *Server) Serve(ctx context.Context) error {
	waitForHealer, err := s.healRunning(ctx) // before the runtime can find the sockets
	if err != nil {
		return fmt.Errorf("connect to daprd: %w", err)
	}
	defer waitForHealer()
	var work sync.WaitGroup
	failed := make([]error, len(s.endpoints))
	for i, one := range s.endpoints {
		work.Go(func() {
			s.logger.InfoContext(
				ctx, "Dapr component is listening", "socket", one.path, "type", one.component.typeName(),
			)
			failed[i] = one.grpc.Serve(one.socket)
		})
		if err := one.socket.publish(); err != nil {
			one.grpc.Stop()
			work.Wait()
			return fmt.Errorf("publish Dapr socket %s: %w", one.path, err)
		}
	}
	close(s.published)
	work.Wait()
	for _, err := range failed {
		if err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			return err
		}
	}
	return nil
}

// Stop removes the sockets, ends the streams, settles what is unacknowledged, and waits for running calls until ctx
// ends, at most closeTimeout.
func (s *Server) Stop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	s.stop.Do(func() { close(s.stopping) })
	var work sync.WaitGroup
	for _, one := range s.endpoints {
		if one.socket == nil {
			continue
		}
		if err := one.socket.withdraw(); err != nil {
			s.logger.WarnContext(ctx, "cannot remove the Dapr socket", "socket", one.path, "error", err)
		}
		work.Go(func() {
			cut := context.AfterFunc(ctx, one.grpc.Stop)
			defer cut()
			one.grpc.GracefulStop()
		})
	}
	work.Wait()
}

// typeOf returns the component type of a socket.
func typeOf(path string) string {
	name := path[strings.LastIndexByte(path, '/')+1:]
	if at := strings.LastIndexByte(name, '.'); at > 0 {
		name = name[:at]
	}
	return "pubsub." + name
}
