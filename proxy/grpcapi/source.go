package grpcapi

import (
	"strconv"

	"google.golang.org/protobuf/proto"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics"
)

// sourceOf translates the source of a request and refuses fields of the request that are not known.
func sourceOf(request proto.Message, resource string, subQueue sidebusv1.SubQueue_Kind) (semantics.Source, error) {
	if err := refuseUnknown("request", request); err != nil {
		return semantics.Source{}, err
	}
	path, err := queueName("source", resource)
	if err != nil {
		return semantics.Source{}, err
	}
	switch subQueue {
	case sidebusv1.SubQueue_NONE:
		return semantics.Source{Path: path}, nil
	case sidebusv1.SubQueue_DEAD_LETTER:
		return semantics.Source{Path: path, SubQueue: semantics.DeadLetterQueue}, nil
	default:
		return semantics.Source{}, fieldError("subQueue", "must be NONE or DEAD_LETTER")
	}
}

// lockRequest is what all requests about locks have in common.
type lockRequest interface {
	proto.Message
	GetSource() string
	GetSubQueue() sidebusv1.SubQueue_Kind
	GetLockTokens() []string
}

// numbersRequest is what all requests about sequence numbers have in common.
type numbersRequest interface {
	proto.Message
	GetSource() string
	GetSubQueue() sidebusv1.SubQueue_Kind
	GetSequenceNumbers() []int64
}

func locksOf(request lockRequest) (semantics.Source, []semantics.LockToken, error) {
	source, err := sourceOf(request, request.GetSource(), request.GetSubQueue())
	if err != nil {
		return source, nil, err
	}
	tokens := make([]semantics.LockToken, len(request.GetLockTokens()))
	for i, text := range request.GetLockTokens() {
		if tokens[i], err = semantics.ParseLockToken(text); err != nil {
			return source, nil, semantics.AsError(err).With(semantics.DetailField, "lockTokens").
				With(semantics.DetailIndex, strconv.Itoa(i))
		}
	}
	return source, tokens, nil
}
