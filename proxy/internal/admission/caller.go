package admission

import (
	"cmp"
	"context"
	"net"
	"strconv"
	"sync"

	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/proxy/internal/obs"
)

// Authenticate authenticates the caller of a call by its connection and its credentials, and returns a context with it.
// It fails with UNAUTHENTICATED. The audit gets both.
func Authenticate(
	ctx context.Context, authorizer access.Authorizer, credentials []string,
) (context.Context, error) {
	peer := peerOf(ctx)
	authenticated, err := access.Authenticate(ctx, authorizer, access.Proof{Credentials: credentials, Peer: *peer})
	obs.By(ctx, access.CallerIn(authenticated), peer)
	return authenticated, err
}

// ClientOf returns which client makes a call. That is not its caller: many clients may prove the same identity. Over
// gRPC a client is a connection, on which it makes all its calls. Over HTTP, where it may open one for each call, it is
// the address or the user at the other end.
func ClientOf(ctx context.Context) string {
	if c := connOf(ctx); c != nil {
		return "grpc " + strconv.FormatUint(c.number, 10)
	}
	peer := peerOf(ctx)
	host, _, _ := net.SplitHostPort(peer.Addr) // fails for a unix socket, which has none
	return "http " + cmp.Or(host, peer.String())
}

// PeerOf returns the other end of the connection of a call.
func PeerOf(ctx context.Context) access.Peer { return *peerOf(ctx) }

// unknownPeer is the peer of a call that did not come through a Controller.
var unknownPeer access.Peer

type peerKey struct{}

// PeerContext adds the other end of a connection to the context of its requests, for a server whose connections are not
// counted. It is for http.Server.ConnContext.
func PeerContext(ctx context.Context, conn net.Conn) context.Context {
	peer := sync.OnceValue(func() *access.Peer { peer := access.PeerOf(conn); return &peer })
	return context.WithValue(ctx, peerKey{}, peer)
}

// peerOf returns the other end of the connection of a call.
func peerOf(ctx context.Context) *access.Peer {
	conn, _ := ctx.Value(connKey{}).(*Conn)
	if over := connOf(ctx); over != nil {
		conn = over.Conn
	}
	if conn != nil {
		return conn.peer()
	}
	if peer, ok := ctx.Value(peerKey{}).(func() *access.Peer); ok {
		return peer()
	}
	return &unknownPeer
}
