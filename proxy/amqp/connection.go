package amqp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/proxy/amqp/internal/engine"
	"github.com/sidebus/sidebus/proxy/amqp/internal/frame"
	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/proxy/sas"
	"github.com/sidebus/sidebus/semantics"
)

// connection is the Service of one connection.
type connection struct {
	server *Server
	peer   func() access.Peer
	conn   *engine.Conn
	ctx    context.Context //nolint:containedctx // of what is begun: it outlives the connection

	mu       sync.Mutex
	callers  map[string]access.Caller // by what their tokens are for; "" is who has opened the connection
	replies  []*replyLink
	sessions map[sessionKey]*held // that links of this connection hold
	renewed  map[semantics.LockToken]time.Time

	transactions map[string]*transaction // that are declared over this connection, by their ids
}

type sessionKey struct{ path, id string }

func newConnection(ctx context.Context, s *Server, conn net.Conn, peer func() access.Peer) *connection {
	c := &connection{
		server: s, peer: peer, ctx: ctx, callers: map[string]access.Caller{},
		sessions: map[sessionKey]*held{}, renewed: map[semantics.LockToken]time.Time{},
		transactions: map[string]*transaction{},
	}
	c.conn = engine.New(ctx, conn, c.config())
	return c
}

// begin runs f in a goroutine that a stop waits for.
func (c *connection) begin(f func()) {
	c.server.work.Add(1)
	go func() {
		defer c.server.work.Done()
		defer func() {
			if recovered := recover(); recovered != nil {
				_ = c.server.Calls.Recovered(c.ctx, "AMQP", recovered)
				c.conn.Close("a bug in Sidebus ended the connection; its log has the details")
			}
		}()
		f()
	}()
}

// loginTime is how long the token is valid that stands for a password. The caller is asked each time whether its rule
// has changed.
const loginTime = 100 * 365 * 24 * time.Hour

// authenticate finds out who has opened the connection. Name and password of PLAIN are those of a shared access rule.
// Without them the connection may prove who it is, or tokens in $cbs do later.
func (c *connection) authenticate(login engine.Login) error {
	proof := access.Proof{Peer: c.peer()}
	isPlain := login.Mechanism == "PLAIN"
	if isPlain {
		proof.Credentials = []string{sas.Sign(login.User, login.Password, time.Now().Add(loginTime))}
	}
	caller, err := c.server.Authorizer.Authenticate(proof)
	switch {
	case err == nil:
		c.mu.Lock()
		defer c.mu.Unlock()
		c.callers[""] = caller
	case isPlain:
		return fmt.Errorf("PLAIN: %w", err)
	}
	return nil
}

// maxTokens is how many tokens of a connection are kept, one for each audience.
const maxTokens = 1000

// note keeps a caller that a token in $cbs stands for.
func (c *connection) note(audience string, caller access.Caller) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.callers[audience] == nil && len(c.callers) > maxTokens {
		return semantics.Errorf(semantics.QuotaExceeded, "the connection has %d tokens, which is the most", maxTokens)
	}
	c.callers[audience] = caller
	return nil
}

// permit returns an error unless one of the callers of the connection has a right.
func (c *connection) permit(right access.Right) error {
	c.mu.Lock()
	callers := make([]access.Caller, 0, len(c.callers))
	for _, caller := range c.callers {
		callers = append(callers, caller)
	}
	c.mu.Unlock()
	denied := error(semantics.Errorf(semantics.Unauthenticated, "no token was put to $cbs"))
	for _, caller := range callers {
		err := caller.Permit(right)
		if err == nil {
			return nil
		}
		if semantics.CodeOf(denied) == semantics.Unauthenticated {
			denied = err
		}
	}
	e := *semantics.AsError(denied)
	e.Message = fmt.Sprintf(
		"Unauthorized access. '%s' claim(s) are required to perform this operation. Resource: '%s'. %s",
		right.Claims, semantics.Shorten(right.Path), e.Message,
	)
	return &e
}

// Attach decides about a link, in a goroutine of its own.
func (c *connection) Attach(l *engine.Link) {
	c.begin(func() {
		if err := c.attach(l); err != nil {
			l.Close(err)
		}
	})
}

// attach accepts a link, or returns why it is refused.
func (c *connection) attach(l *engine.Link) *frame.Error {
	address := ""
	switch request := l.Request; {
	case request.Target != nil && request.Target.IsCoordinator:
		if l.IsToClient {
			return &frame.Error{Condition: notImplemented, Description: "a coordinator sends nothing"}
		}
		return c.attachCoordinator(l)
	case l.IsToClient && request.Source != nil:
		address = request.Source.Address
	case !l.IsToClient && request.Target != nil:
		address = request.Target.Address
	}
	at := nodeOf(address)
	switch {
	case at.isCBS:
		return c.attachCBS(l)
	case at.path == "":
		return &frame.Error{Condition: invalidField, Description: "the link needs the address of a queue, topic or subscription"}
	case at.isManagement:
		return c.attachManagement(l, at)
	case l.IsToClient:
		return c.attachReceiver(l, at)
	default:
		return c.attachSender(l, at)
	}
}

// entity reads the queue, topic or subscription of a node.
func (c *connection) entity(ctx context.Context, at node) (semantics.Entity, error) {
	b := c.server.Broker
	if _, _, ok := semantics.SplitSubscription(at.path); ok {
		return b.GetEntity(ctx, semantics.SubscriptionKind, at.path)
	}
	found, err := b.GetEntity(ctx, semantics.QueueKind, at.path)
	if semantics.CodeOf(err) == semantics.EntityNotFound {
		found, err = b.GetEntity(ctx, semantics.TopicKind, at.path)
	}
	if semantics.CodeOf(err) == semantics.EntityNotFound {
		err = semantics.Errorf(
			semantics.EntityNotFound, "The messaging entity '%s' could not be found. Create it first.", semantics.Shorten(at.path),
		).With(semantics.DetailEntity, at.path)
	}
	return found, err
}

// while closes a link when the rights that it needs are lost. It returns the context of what the link does.
func (c *connection) while(l *engine.Link, right access.Right) (ctx context.Context, stop func()) {
	if _, always := c.server.Authorizer.(access.AllowAll); always {
		return l.Context(), func() {}
	}
	ctx, stop = access.While(l.Context(), func() error { return c.permit(right) })
	context.AfterFunc(ctx, func() {
		var lost *semantics.Error
		if errors.As(context.Cause(ctx), &lost) {
			l.Close(linkError(lost))
		}
	})
	return ctx, stop
}

// call runs something that a client asks for, and records it under the name of the RPC that does the same.
func (c *connection) call(ctx context.Context, method, entity string, do func(ctx context.Context) error) (err error) {
	start := time.Now()
	ctx, _ = obs.WithCall(ctx)
	obs.About(ctx, entity)
	defer func() {
		if recovered := recover(); recovered != nil {
			err = c.server.Calls.Recovered(ctx, method, recovered)
		}
		c.server.Calls.Done(ctx, obs.AMQP, method, start, obs.Failure(err))
	}()
	return do(ctx)
}
