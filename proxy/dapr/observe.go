package dapr

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/proxy/wireerror"
	"github.com/sidebus/sidebus/semantics"
)

// observeCall authenticates and records a call, converts a panic to INTERNAL, and converts its error to a status.
func (s *Server) observeCall(
	ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler,
) (reply any, err error) {
	start, method := time.Now(), obs.Method(info.FullMethod)
	defer func() {
		var failure *semantics.Error
		if recovered := recover(); recovered != nil {
			failure = s.calls.Recovered(ctx, method, recovered)
		} else if err != nil {
			failure = wireerror.Of(err)
		}
		s.calls.Done(ctx, obs.Dapr, method, start, failure)
		if failure != nil {
			reply, err = nil, wireerror.Status(failure).Err()
		}
	}()
	ctx = s.calls.Traces().FromGRPC(ctx)
	if ctx, err = info.Server.(*component).authenticate(ctx); err != nil {
		return nil, err
	}
	return handle(ctx, request)
}

// observeStream is observeCall for streams, which authenticate their caller themselves. Reflection streams are not
// observed.
func (s *Server) observeStream(
	srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler,
) (err error) {
	if _, isOurs := srv.(*component); !isOurs {
		return handle(srv, stream)
	}
	start, method, ctx := time.Now(), obs.Method(info.FullMethod), stream.Context()
	defer func() {
		var failure *semantics.Error
		if recovered := recover(); recovered != nil {
			failure = s.calls.Recovered(ctx, method, recovered)
		} else if err != nil {
			failure = streamFailure(err)
		}
		s.calls.StreamDone(ctx, obs.Dapr, method, start, failure)
		if failure != nil {
			err = wireerror.Status(failure).Err()
		}
	}()
	return handle(srv, stream)
}

// streamFailure returns the reason for the end of a stream, which may be an error of grpc-go.
func streamFailure(err error) *semantics.Error {
	var own *semantics.Error
	if !errors.As(err, &own) && status.Code(err) == codes.Canceled {
		return wireerror.Of(context.Canceled)
	}
	return wireerror.Of(err)
}

// trackedCredentials are insecure credentials that count connections and pass the connection to its calls.
type trackedCredentials struct {
	metrics *obs.Metrics
	open    *atomic.Int64
	closed  func(*trackedConn)
}

// trackedConn is a connection that knows whether it is closed.
type trackedConn struct {
	net.Conn

	by       trackedCredentials
	peer     func() access.Peer
	isClosed atomic.Bool
	openings openings
}

// Close closes the connection. grpc-go calls it before it ends the calls on it.
func (c *trackedConn) Close() error {
	if !c.isClosed.Swap(true) {
		c.by.open.Add(-1)
		c.by.metrics.Connections.WithLabelValues(obs.Dapr).Dec()
		c.by.closed(c)
	}
	return c.Conn.Close()
}

// connInfo passes the connection to its calls.
type connInfo struct {
	credentials.CommonAuthInfo

	conn *trackedConn
}

// AuthType returns the protocol name of insecure credentials.
func (connInfo) AuthType() string { return insecure.NewCredentials().Info().SecurityProtocol }

// ServerHandshake counts the connection, or refuses it if too many are open.
func (t trackedCredentials) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if t.open.Add(1) > maxConnections {
		t.open.Add(-1)
		t.metrics.ConnectionsRefused.WithLabelValues(obs.Dapr).Inc()
		return nil, nil, errors.New("too many connections")
	}
	t.metrics.Connections.WithLabelValues(obs.Dapr).Inc()
	tracked := &trackedConn{Conn: conn, by: t, peer: sync.OnceValue(func() access.Peer { return access.PeerOf(conn) })}
	return tracked, connInfo{credentials.CommonAuthInfo{SecurityLevel: credentials.NoSecurity}, tracked}, nil
}

// ClientHandshake always fails: the credentials are for servers.
func (trackedCredentials) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("not a client")
}

// Info returns the protocol info of insecure credentials.
func (trackedCredentials) Info() credentials.ProtocolInfo { return insecure.NewCredentials().Info() }

// Clone returns t.
func (t trackedCredentials) Clone() credentials.TransportCredentials { return t }

// OverrideServerName does nothing: the credentials are for servers.
func (trackedCredentials) OverrideServerName(string) error { return nil }

// connOf returns the connection of a call, or nil if it is not a trackedConn.
func connOf(ctx context.Context) *trackedConn {
	if p, ok := peer.FromContext(ctx); ok {
		if info, ok := p.AuthInfo.(connInfo); ok {
			return info.conn
		}
	}
	return nil
}

// lostConnection reports whether the connection of a call is closed, and not only the call.
func lostConnection(ctx context.Context) bool {
	conn := connOf(ctx)
	return conn != nil && conn.isClosed.Load()
}
