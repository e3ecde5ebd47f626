package amqp

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/proxy/amqp/internal/codec"
	"github.com/sidebus/sidebus/proxy/amqp/internal/convert"
	"github.com/sidebus/sidebus/proxy/amqp/internal/engine"
	"github.com/sidebus/sidebus/proxy/amqp/internal/frame"
	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/semantics"
)

// cbs is the node to which clients put tokens.
const cbs = "$cbs"

// Bounds of what a client that has not proved who it is may send and have kept.
const (
	maxTokenRequest = 64 << 10
	maxAudience     = 2 << 10
)

// attachCBS accepts a link to or from $cbs.
func (c *connection) attachCBS(l *engine.Link) *frame.Error {
	if l.IsToClient {
		c.attachReplies(l, cbs)
		return nil
	}
	c.serve(l, cbs, maxTokenRequest, func(request convert.Request) answer {
		status, description := c.putToken(request)
		return answer{application: codec.Map{
			codec.Entry("status-code", status), codec.Entry("status-description", description),
		}}
	})
	return nil
}

// putToken takes over a token. It returns the status of the answer. For an entity that does not exist it is 404: the
// SDK for Go learns from that, and not from its link.
func (c *connection) putToken(request convert.Request) (status int32, description string) {
	operation, _ := codec.Text(request.Args.Get("operation"))
	audience, _ := codec.Text(request.Args.Get("name"))
	token, isText := codec.Text(request.Body)
	if operation != "put-token" || !isText {
		return http.StatusBadRequest, "the operation must be put-token, and the body a token"
	}
	if len(audience) > maxAudience {
		return http.StatusBadRequest, fmt.Sprintf("the name has %d bytes, may have %d", len(audience), maxAudience)
	}
	err := c.call(c.ctx, "AMQP.PutToken", "", func(ctx context.Context) error {
		return c.takeToken(ctx, audience, token)
	})
	if err == nil {
		return http.StatusAccepted, "Accepted"
	}
	e := obs.Failure(err)
	return int32(outcomeOf(e).status), e.Message
}

func (c *connection) takeToken(ctx context.Context, audience, token string) error {
	caller, err := c.server.Authorizer.Authenticate(access.Proof{
		Credentials: []string{access.CredentialsOf(token)}, Peer: c.peer(),
	})
	if err != nil {
		return describeToken(err)
	}
	if err := c.note(audience, caller); err != nil {
		return err
	}
	at := nodeOf(audience)
	if at.path == "" || !isKnownTo(caller, at) {
		return nil // what it does not permit, the links will learn
	}
	_, err = c.entity(ctx, at)
	if semantics.CodeOf(err) == semantics.EntityNotFound {
		return err
	}
	return nil // a name that is invalid, or a store that is away: the links will learn
}

// isKnownTo reports whether a caller may learn that an entity exists (ERR-5).
func isKnownTo(caller access.Caller, at node) bool {
	for _, claim := range []access.Claims{access.Listen, access.Send, access.Manage} {
		if caller.Permit(at.right(claim)) == nil {
			return true
		}
	}
	return false
}

// describeToken puts before the reason what the SDKs look for.
func describeToken(err error) error {
	e := *semantics.AsError(err)
	prefix := "InvalidSignature: "
	if strings.Contains(e.Message, "expired") {
		prefix = "ExpiredToken: "
	}
	e.Message = prefix + e.Message
	return &e
}
