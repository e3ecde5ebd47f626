package grpcapi

import (
	"context"
	"strconv"

	"google.golang.org/protobuf/proto"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy/wire"
	"github.com/sidebus/sidebus/semantics"
)

// sourceOf translates the source of a request and rejects unknown fields of the request. It does not reject a topic;
// see sources.
func sourceOf(request proto.Message, resource string, subQueue sidebusv1.SubQueue_Kind) (semantics.Source, error) {
	if err := wire.RefuseUnknown("request", request); err != nil {
		return semantics.Source{}, err
	}
	path, err := sourceName(resource)
	if err != nil {
		return semantics.Source{}, err
	}
	own, isKnown := wire.SubQueueFrom(subQueue)
	if !isKnown {
		return semantics.Source{}, semantics.InvalidField("subQueue", "must be NONE, DEAD_LETTER or TRANSFER_DEAD_LETTER")
	}
	return semantics.Source{Path: path, SubQueue: own}, nil
}

// sourceRequest has the fields that all requests about a source and its sub-queues have in common.
type sourceRequest interface {
	proto.Message
	GetSource() string
	GetSubQueue() sidebusv1.SubQueue_Kind
}

// sourceOf is sourceOf and refuses topics.
func (s sources) sourceOf(ctx context.Context, request sourceRequest) (semantics.Source, error) {
	source, err := sourceOf(request, request.GetSource(), request.GetSubQueue())
	return source, s.receivable(ctx, request.GetSource(), err)
}

// sessionSourceOf is sessionSourceOf and refuses topics.
func (s sources) sessionSourceOf(
	ctx context.Context, request sourceRequest, lock, id *string,
) (semantics.Source, error) {
	source, err := sessionSourceOf(request, lock, id)
	return source, s.receivable(ctx, request.GetSource(), err)
}

// sessionSourceOf is sourceOf for requests that may be about one session: a locked one, by the token of its lock, or
// any one by its id. nil is absent. A text that is present and empty is rejected, because as an absent one it would
// mean all sessions.
func sessionSourceOf(request sourceRequest, lock, id *string) (semantics.Source, error) {
	source, err := sourceOf(request, request.GetSource(), request.GetSubQueue())
	if err != nil {
		return source, err
	}
	if id != nil {
		if lock != nil {
			return source, semantics.InvalidField("sessionId", "cannot be combined with sessionLockToken")
		}
		source.Session, err = sessionID(*id)
	} else if lock != nil {
		source.SessionLock, err = sessionLock("sessionLockToken", *lock)
	}
	return source, err
}

// heldRequest has the fields that all requests of the holder of a session have in common.
type heldRequest interface {
	proto.Message
	GetSource() string
	GetLockToken() string
}

// heldSource translates the locked session that a request names.
func (s sources) heldSource(ctx context.Context, request heldRequest) (semantics.Source, error) {
	source, err := sourceOf(request, request.GetSource(), sidebusv1.SubQueue_NONE)
	if err != nil {
		return source, err
	}
	source.SessionLock, err = sessionLock("lockToken", request.GetLockToken())
	return source, s.receivable(ctx, request.GetSource(), err)
}

// sessionLock translates the token of a session's lock. The zero UUID, which no lock has, means "no session" within
// Sidebus, so it is rejected as well.
func sessionLock(field, text string) (semantics.LockToken, error) {
	token, err := semantics.ParseLockToken(text)
	if err != nil || token.IsZero() {
		return token, semantics.InvalidField(
			field, "must be the token of a session's lock, a UUID in the form xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx",
		)
	}
	return token, nil
}

// sessionID returns the id of a session. It rejects the empty one, which means "none" within Sidebus.
func sessionID(id string) (string, error) {
	if id == "" {
		return "", semantics.InvalidField("sessionId", "must not be empty when present")
	}
	return id, nil
}

// lockRequest has the fields that all requests about locks have in common.
type lockRequest interface {
	sourceRequest
	GetLockTokens() []string
}

// numbersRequest has the fields that all requests about sequence numbers have in common.
type numbersRequest interface {
	sourceRequest
	GetSequenceNumbers() []int64
}

// locksOf translates the source and the tokens of a request. session is the token of a session's lock, nil for none.
func (s sources) locksOf(
	ctx context.Context, request lockRequest, session *string,
) (semantics.Source, []semantics.LockToken, error) {
	source, err := sessionSourceOf(request, session, nil)
	if err != nil {
		return source, nil, err
	}
	tokens, err := tokensOf(request.GetLockTokens())
	return source, tokens, s.receivable(ctx, request.GetSource(), err)
}

// tokensOf translates lock tokens. An error carries the position of the invalid token.
func tokensOf(texts []string) ([]semantics.LockToken, error) {
	tokens := make([]semantics.LockToken, len(texts))
	for i, text := range texts {
		var err error
		if tokens[i], err = semantics.ParseLockToken(text); err != nil {
			return nil, semantics.AsError(err).With(semantics.DetailField, "lockTokens").
				With(semantics.DetailIndex, strconv.Itoa(i))
		}
	}
	return tokens, nil
}
