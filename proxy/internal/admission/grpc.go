package admission

import (
	"net"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/sidebus/sidebus/proxy/internal/admission/internal/counts"
	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/proxy/wireerror"
)

// GRPC returns a listener for a server with GRPCOptions. A connection over the limit is closed; clients see UNAVAILABLE
// and retry.
func (ctl *Controller) GRPC(listener net.Listener) net.Listener { return &grpcListener{listener, ctl} }

type grpcListener struct {
	net.Listener
	controller *Controller
}

// Accept returns the next connection that is admitted.
func (l *grpcListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &grpcConn{Conn: l.controller.newConn(conn), number: l.controller.grpcAccepted.Add(1)}
		c.calls = newCallsInFlight(c.Conn)
		c.counts = counts.NewConnection(l.controller.connections, obs.GRPC, c.goAway, c.closeSilent)
		if l.controller.admit(c.counts, false) {
			return c, nil
		}
		_ = conn.Close() // no call has used it
	}
}

// GRPCOptions returns the options that a server of these connections needs.
func GRPCOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.Creds(handshake{insecure.NewCredentials()}), grpc.MaxConcurrentStreams(maxStreams),
		grpc.ConnectionTimeout(handshakeTimeout), grpc.ChainStreamInterceptor(countStream),
	}
}

// countStream counts streams of the health and reflection services. Streams of the API are counted where they are
// registered.
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

// handshakeTimeout bounds the HTTP/2 handshake.
const handshakeTimeout = 10 * time.Second

// handshake passes the connection to its calls, as auth info.
type handshake struct {
	credentials.TransportCredentials
}

type authInfo struct {
	credentials.AuthInfo
	conn *grpcConn
}

// ServerHandshake adds the connection to the auth info.
func (h handshake) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	same, info, err := h.TransportCredentials.ServerHandshake(conn)
	if c, ok := conn.(*grpcConn); ok && err == nil {
		info = authInfo{info, c}
	}
	return same, info, err
}
