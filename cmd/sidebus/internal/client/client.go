package client

import (
	"context"
	"crypto/tls"
	"math"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// workTime is how long a purge or a resubmit may work before it answers with what it did.
const workTime = 20 * time.Second

// Client is a connection to the gRPC API of one sidecar. Each call has a timeout of its own. A call fails with a
// *Failure, or with the cause of the context's end. A Client is safe for concurrent use.
type Client struct {
	sidebusv1.MessagesClient
	sidebusv1.AdminClient

	Sessions sidebusv1.SessionsClient

	conn    *grpc.ClientConn
	addr    string
	timeout time.Duration
	token   func() string // may be nil
}

// New makes a Client of the sidecar at target, which is "host:port" or "unix:///path". addr is the name that errors
// give to it. timeout is how long an answer may take beyond the time that a call is meant to wait or work. token
// returns what every call shows as Authorization; it may be nil. over is the TLS of the connection,
// nil for none. New does no network; the first call does.
func New(
	target, addr string, timeout time.Duration, token func() string, over *tls.Config,
) (*Client, error) {
	transport := insecure.NewCredentials()
	if over != nil {
		transport = credentials.NewTLS(over)
	}
	c := &Client{addr: addr, timeout: timeout, token: token}
	conn, err := grpc.NewClient(target,
		grpc.WithTransportCredentials(transport),
		grpc.WithNoProxy(),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32), grpc.MaxCallSendMsgSize(math.MaxInt32)),
		grpc.WithUnaryInterceptor(c.intercept),
	)
	if err != nil {
		return nil, err
	}
	c.conn = conn
	c.MessagesClient, c.AdminClient = sidebusv1.NewMessagesClient(conn), sidebusv1.NewAdminClient(conn)
	c.Sessions = sidebusv1.NewSessionsClient(conn)
	return c, nil
}

// Conn is the connection, for an AdminClient over Patient.
func (c *Client) Conn() grpc.ClientConnInterface { return c.conn }

// Close ends the connection.
func (c *Client) Close() { _ = c.conn.Close() } // nothing is left to lose

// intercept bounds a call and translates its failure.
func (c *Client) intercept(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn,
	invoke grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	bounded, cancel := context.WithTimeout(ctx, c.timeout+ownTime(request))
	defer cancel()
	if c.token != nil {
		bounded = metadata.AppendToOutgoingContext(bounded, "authorization", c.token())
	}
	err := invoke(bounded, method, request, reply, conn, options...)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return c.translate(request, err)
}

// ownTime is how long a call takes by its nature.
func ownTime(request any) time.Duration {
	switch r := request.(type) {
	case *sidebusv1.ReceiveRequest:
		return r.GetMaxWait().AsDuration()
	case *sidebusv1.SessionsAcceptRequest:
		return r.GetMaxWait().AsDuration()
	case *sidebusv1.PurgeRequest, *sidebusv1.ResubmitRequest:
		return workTime
	default:
		return 0
	}
}
