package client

import (
	"cmp"
	"context"
	"crypto/tls"
	"math"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// AddrEnv is the variable that holds the target of [New] when none is given.
const AddrEnv = "SIDEBUS_GRPC_ADDR"

// DefaultTarget is where a sidecar listens for gRPC unless it is told otherwise.
const DefaultTarget = "127.0.0.1:7421"

const (
	pingInterval = 20 * time.Second // the sidecar permits one each 10 s
	pingTimeout  = 10 * time.Second

	reconnectFirst = 50 * time.Millisecond
	reconnectLast  = 2 * time.Second
)

// Options changes a [Client]. The zero value and nil are the defaults.
type Options struct {
	// RetryTimeout bounds how long one call is repeated while no sidecar answers, Redis is away or the rate limit is
	// reached. 0 is 110 s, and also the most: the sidecar remembers a request id for 120 s. Less than 0: a call is
	// tried once. A context that ends earlier ends the call.
	RetryTimeout time.Duration

	// SharedAccessKeyName and SharedAccessKey sign a token for each call, for a sidecar that runs with --sas-keys-file.
	// Both or neither must be set.
	SharedAccessKeyName, SharedAccessKey string

	// TokenFile has the token of an identity, for a sidecar that runs with --policy-file. It is read again every few
	// seconds. It excludes SharedAccessKey.
	TokenFile string

	// TLS is how to connect to a sidecar that runs with --tls-cert-file. Its Certificates are what a sidecar with
	// --tls-client-ca-file knows the client by. nil: without TLS. Only [New] looks at it.
	TLS *tls.Config

	// DialOptions are used after those of this package. Only [New] looks at them. With any,
	// each call is an RPC of its own, so that interceptors and credentials among them see it.
	DialOptions []grpc.DialOption

	// SeparateCalls makes each call as an RPC of its own. By default, small calls share a stream, which costs both
	// sides much less. Only [New] looks at it.
	SeparateCalls bool
}

// Client makes senders and receivers over one connection to a sidecar. It connects with the first call, and again
// whenever the connection breaks. All methods may be called concurrently. Use one Client for a process and close it at
// the end.
type Client struct {
	conn     grpc.ClientConnInterface
	messages sidebusv1.MessagesClient
	sessions sidebusv1.SessionsClient
	closes   func() error // nil: the connection is of the caller

	retryTimeout time.Duration

	life   context.Context //nolint:containedctx // ends when the client is closed
	cancel context.CancelCauseFunc

	mu   sync.Mutex     // so that no work begins after Close
	work sync.WaitGroup // goroutines that renew locks
}

// New makes a Client of the sidecar at target, "host:port" or "unix:///path". An empty target is the value of
// SIDEBUS_GRPC_ADDR or else [DefaultTarget]. options may be nil. It does not block and makes no connection, so it
// succeeds without a sidecar; it fails when target or options make no sense.
func New(target string, options *Options) (*Client, error) {
	target = cmp.Or(target, os.Getenv(AddrEnv), DefaultTarget)
	if options == nil {
		options = &Options{}
	}
	transport := insecure.NewCredentials()
	if options.TLS != nil {
		transport = credentials.NewTLS(options.TLS)
	}
	dial := []grpc.DialOption{
		grpc.WithTransportCredentials(transport),
		grpc.WithNoProxy(),
		grpc.WithDefaultCallOptions(
			grpc.MaxCallRecvMsgSize(math.MaxInt32), grpc.MaxCallSendMsgSize(math.MaxInt32),
			grpc.ForceCodecV2(newCodec()),
		),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: pingInterval, Timeout: pingTimeout}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{
				BaseDelay:  reconnectFirst,
				Multiplier: 1.6,
				Jitter:     0.2,
				MaxDelay:   reconnectLast,
			},
			MinConnectTimeout: 5 * time.Second,
		}),
	}
	proves, err := options.credentials()
	if err != nil {
		return nil, err
	}
	if proves != nil {
		dial = append(dial, grpc.WithPerRPCCredentials(proves))
	}
	conn, err := grpc.NewClient(target, append(dial, options.DialOptions...)...)
	if err != nil {
		return nil, invalidArgument("target", err.Error())
	}
	if options.SeparateCalls || len(options.DialOptions) > 0 {
		c := NewFromConn(conn, options)
		c.closes = conn.Close
		return c, nil
	}
	calls := newMultiplexed(conn, proves)
	c := NewFromConn(calls, options)
	c.closes = func() error {
		calls.close()
		return conn.Close()
	}
	return c, nil
}

// credentials returns what each call proves who the client is with, nil for nothing.
func (o *Options) credentials() (credentials.PerRPCCredentials, error) {
	isSigned := o.SharedAccessKeyName != "" || o.SharedAccessKey != ""
	switch {
	case isSigned && (o.SharedAccessKeyName == "" || o.SharedAccessKey == ""):
		return nil, invalidArgument("SharedAccessKey", "SharedAccessKeyName and SharedAccessKey must both be set")
	case isSigned && o.TokenFile != "":
		return nil, invalidArgument("TokenFile", "TokenFile and SharedAccessKey must not both be set")
	case isSigned:
		return sharedAccess{o.SharedAccessKeyName, o.SharedAccessKey}, nil
	case o.TokenFile == "":
		return nil, nil
	}
	token, err := newBearer(o.TokenFile)
	if err != nil {
		return nil, invalidArgument("TokenFile", err.Error())
	}
	return token, nil
}

// NewFromConn makes a Client over a connection of yours, which Close leaves open. Of options, which may be nil, only
// RetryTimeout counts.
func NewFromConn(conn grpc.ClientConnInterface, options *Options) *Client {
	c := &Client{
		conn: conn, messages: sidebusv1.NewMessagesClient(conn), sessions: sidebusv1.NewSessionsClient(conn),
		retryTimeout: retryTimeout,
	}
	if options != nil && options.RetryTimeout != 0 {
		c.retryTimeout = min(options.RetryTimeout, retryTimeout)
	}
	life := context.Background() //nolint:forbidigo // belongs to the client, not to a call
	c.life, c.cancel = context.WithCancelCause(life)
	return c
}

// Close ends the client and all that was made of it: calls in progress fail with [CodeClosed], and so do later ones;
// locks are renewed no longer. Messages and sessions that are still locked become available when their locks expire. It
// waits for the client's goroutines, but not for calls of [Receiver.Handle]: end their contexts first. A second Close
// does nothing.
func (c *Client) Close() error {
	c.mu.Lock()
	wasClosed := c.life.Err() != nil
	c.cancel(errClosed)
	c.mu.Unlock()
	c.work.Wait()
	if wasClosed {
		return nil
	}
	if c.closes == nil {
		return nil
	}
	return c.closes()
}

// Admin returns the generated client that creates, reads, updates, lists and deletes queues, topics, subscriptions and
// rules. It makes each call once, and its errors are gRPC statuses: see [ErrorOf].
func (c *Client) Admin() sidebusv1.AdminClient { return sidebusv1.NewAdminClient(c.conn) }

// Conn returns the connection, for the other generated clients: sidebusv1.NewMessagesClient has what this package does
// not wrap, such as Purge and Resubmit.
func (c *Client) Conn() grpc.ClientConnInterface { return c.conn }

var errClosed = &Error{Code: CodeClosed, Message: "it was closed"}

// begin counts a goroutine, which must call work.Done; false: the client is closed.
func (c *Client) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.life.Err() != nil {
		return false
	}
	c.work.Add(1)
	return true
}

// lifetime is that of a client, or of a part of it.
type lifetime struct {
	client *Client
	ctx    context.Context //nolint:containedctx // ends with Close
	cancel context.CancelCauseFunc
}

func (c *Client) newLifetime() (*lifetime, error) {
	if c.life.Err() != nil {
		return nil, errClosed
	}
	l := &lifetime{client: c}
	l.ctx, l.cancel = context.WithCancelCause(c.life)
	return l, nil
}

func (l *lifetime) close() { l.cancel(errClosed) }

// with returns ctx, ended by the lifetime too. The function that is returned must be called.
func (l *lifetime) with(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(l.ctx, func() { cancel(errClosed) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}
