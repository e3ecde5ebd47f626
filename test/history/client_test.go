package history

import (
	"context"
	"errors"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/test/sidecartest"
)

const (
	queue    = "orders"
	source   = "queues/" + queue
	patience = 10 * time.Second // of one call
)

// process is one sidecar with a connection to it.
type process struct {
	*sidecartest.Sidecar
	conn     *grpc.ClientConn
	messages sidebusv1.MessagesClient
	sessions sidebusv1.SessionsClient

	// What was done to it. Zero: not yet.
	killed, drained, exited time.Time
	halts                   []span
	halted                  bool
}

// span is a piece of time.
type span struct{ began, ended time.Time }

func connect(s *sidecartest.Sidecar) (*process, error) {
	conn, err := grpc.NewClient(s.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	return &process{
		Sidecar: s, conn: conn, messages: sidebusv1.NewMessagesClient(conn), sessions: sidebusv1.NewSessionsClient(conn),
	}, nil
}

// outcomeOf returns the outcome of a call by its error. Errors that a test does not expect are in the text.
func outcomeOf(err error) (outcome, string) {
	if err == nil {
		return done, ""
	}
	s := status.Convert(err)
	for _, detail := range s.Details() {
		info, is := detail.(*errdetails.ErrorInfo)
		if !is {
			continue
		}
		switch code := semantics.Code(info.Reason); {
		case info.Metadata[semantics.DetailOutcome] == semantics.OutcomeUnknown, code == semantics.Cancelled, code == semantics.Internal:
			return unknown, info.Reason
		case code == semantics.SessionLockLost:
			return lost, ""
		case code == semantics.SessionCannotBeLocked:
			return refused, ""
		case code == semantics.StoreUnavailable, code == semantics.MessageNotFound:
			return nothing, info.Reason // draining; or a deferred message that is gone
		default:
			return nothing, "unexpected " + s.Message()
		}
	}
	if s.Code() == codes.Unavailable && strings.Contains(s.Message(), "while dialing") {
		return nothing, "unreachable"
	}
	if s.Code() == codes.Unavailable || s.Code() == codes.Canceled || s.Code() == codes.DeadlineExceeded || errors.Is(err, context.Canceled) {
		return unknown, s.Message()
	}
	return unknown, "unexpected " + s.Message()
}

func wire(d time.Duration) *durationpb.Duration { return durationpb.New(d) }
