package grpcapi

import (
	"context"

	"google.golang.org/protobuf/proto"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy/internal/response"
	"github.com/sidebus/sidebus/proxy/wire"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// Sessions serves sidebus.v1.Sessions. It is safe for concurrent use.
type Sessions struct {
	sidebusv1.UnimplementedSessionsServer
	sources
}

// NewSessions returns a Sessions over broker.
func NewSessions(broker *broker.Broker) *Sessions { return &Sessions{sources: sources{broker}} }

// Accept locks a session and leaves the Acceptance to the wire, which ends it; see broker.Broker.AcceptSession.
func (s *Sessions) Accept(
	ctx context.Context, request *sidebusv1.SessionsAcceptRequest,
) (*sidebusv1.SessionsAcceptResponse, error) {
	if err := wire.RefuseUnknown("request", request); err != nil {
		return nil, err
	}
	path, err := sourceName(request.GetSource())
	if err = s.receivable(ctx, request.GetSource(), err); err != nil {
		return nil, err
	}
	options := broker.AcceptOptions{MaxWait: semantics.DefaultMaxWait, Strict: request.GetStrict()}
	if request.SessionId != nil {
		options.MaxWait = 0 // an accept of a named session does not wait by default (SESS-11)
		if options.SessionID, err = sessionID(request.GetSessionId()); err != nil {
			return nil, err
		}
	}
	if request.GetMaxWait() != nil {
		if options.MaxWait, err = wire.DurationOf("maxWait", request.GetMaxWait()); err != nil {
			return nil, err
		}
	}
	acceptance, err := s.broker.AcceptSession(ctx, path, options)
	if err != nil {
		return nil, err
	}
	response.SetAcceptance(ctx, acceptance)
	if err := ctx.Err(); err != nil {
		return nil, err // the client went away before the session reached it
	}
	if acceptance.Session == nil {
		return &sidebusv1.SessionsAcceptResponse{}, nil
	}
	return &sidebusv1.SessionsAcceptResponse{Session: sessionFrom(acceptance.Session)}, nil
}

func sessionFrom(session *semantics.Session) *sidebusv1.Session {
	return &sidebusv1.Session{
		SessionId: session.ID, LockToken: session.Lock.String(), LockedUntil: wire.TimestampFrom(session.LockedUntil),
		State: session.State.Data, StateVersion: session.State.Version,
	}
}

// RenewLock extends the lock of a session; see broker.Broker.RenewSessionLock.
func (s *Sessions) RenewLock(
	ctx context.Context, request *sidebusv1.SessionsRenewLockRequest,
) (*sidebusv1.SessionsRenewLockResponse, error) {
	source, err := s.heldSource(ctx, request)
	if err != nil {
		return nil, err
	}
	until, err := s.broker.RenewSessionLock(ctx, source)
	if err != nil {
		return nil, err
	}
	return &sidebusv1.SessionsRenewLockResponse{LockedUntil: wire.TimestampFrom(until)}, nil
}

// Close releases the lock of a session; see broker.Broker.CloseSession.
func (s *Sessions) Close(
	ctx context.Context, request *sidebusv1.SessionsCloseRequest,
) (*sidebusv1.SessionsCloseResponse, error) {
	source, err := s.heldSource(ctx, request)
	if err != nil {
		return nil, err
	}
	if err := s.broker.CloseSession(ctx, source); err != nil {
		return nil, err
	}
	return &sidebusv1.SessionsCloseResponse{}, nil
}

// GetState reads the state of a session; see broker.Broker.SessionState.
func (s *Sessions) GetState(
	ctx context.Context, request *sidebusv1.SessionsGetStateRequest,
) (*sidebusv1.SessionsGetStateResponse, error) {
	source, err := s.heldSource(ctx, request)
	if err != nil {
		return nil, err
	}
	state, err := s.broker.SessionState(ctx, source)
	if err != nil {
		return nil, err
	}
	return &sidebusv1.SessionsGetStateResponse{State: state.Data, Version: state.Version}, nil
}

// SetState replaces the state of a session; see broker.Broker.SetSessionState.
func (s *Sessions) SetState(
	ctx context.Context, request *sidebusv1.SessionsSetStateRequest,
) (*sidebusv1.SessionsSetStateResponse, error) {
	source, err := s.heldSource(ctx, request)
	if err != nil {
		return nil, err
	}
	version, err := s.broker.SetSessionState(
		ctx, source, request.State, request.ExpectedVersion,
	) //nolint:protogetter // nil and empty differ (SESS-33)
	if err != nil {
		return nil, err
	}
	return &sidebusv1.SessionsSetStateResponse{Version: version}, nil
}

// List returns one page of sessions; see broker.Broker.ListSessions.
func (s *Sessions) List(
	ctx context.Context, request *sidebusv1.SessionsListRequest,
) (*sidebusv1.SessionsListResponse, error) {
	if err := wire.RefuseUnknown("request", request); err != nil {
		return nil, err
	}
	path, err := sourceName(request.GetSource())
	if err = s.receivable(ctx, request.GetSource(), err); err != nil {
		return nil, err
	}
	var filter semantics.SessionFilter
	if filter.UpdatedSince, err = wire.InstantOf("updatedSince", request.GetUpdatedSince()); err != nil {
		return nil, err
	}
	if filter.ActiveSince, err = wire.InstantOf("activeSince", request.GetActiveSince()); err != nil {
		return nil, err
	}
	rows, next, err := s.broker.ListSessions(ctx, path, int(request.GetPageSize()), request.GetPageToken(), filter)
	if err != nil {
		return nil, err
	}
	response := &sidebusv1.SessionsListResponse{Sessions: make([]*sidebusv1.SessionRow, len(rows)), NextPageToken: next}
	for i, row := range rows {
		response.Sessions[i] = rowFrom(row)
	}
	return response, nil
}

func rowFrom(row semantics.SessionRow) *sidebusv1.SessionRow {
	return &sidebusv1.SessionRow{
		SessionId:      row.ID,
		AvailableCount: row.Available,
		DelayedCount:   row.Delayed,
		LockedCount:    row.Locked,
		DeferredCount:  row.Deferred,
		ScheduledCount: row.Scheduled,
		Locked:         !row.LockedUntil.IsZero(),
		LockedUntil:    wire.TimestampFrom(row.LockedUntil),
		LastActivity:   wire.TimestampFrom(row.LastActivity),
		StateSize:      row.StateSize,
		StateVersion:   row.StateVersion,
		Blocked:        row.Blocked,
	}
}

// Unblock unblocks a session; see broker.Broker.UnblockSession.
func (s *Sessions) Unblock(
	ctx context.Context, request *sidebusv1.SessionsUnblockRequest,
) (*sidebusv1.SessionsUnblockResponse, error) {
	if err := s.manage(ctx, request, s.broker.UnblockSession); err != nil {
		return nil, err
	}
	return &sidebusv1.SessionsUnblockResponse{}, nil
}

// DeadLetterRest dead-letters the messages of a session; see broker.Broker.DeadLetterRest.
func (s *Sessions) DeadLetterRest(
	ctx context.Context, request *sidebusv1.SessionsDeadLetterRestRequest,
) (*sidebusv1.SessionsDeadLetterRestResponse, error) {
	if err := s.manage(ctx, request, s.broker.DeadLetterRest); err != nil {
		return nil, err
	}
	return &sidebusv1.SessionsDeadLetterRestResponse{}, nil
}

// manage runs an operation on a session that need not be locked.
func (s *Sessions) manage(ctx context.Context, request interface {
	proto.Message
	GetSource() string
	GetSessionId() string
}, do func(ctx context.Context, path, id string) error,
) error {
	if err := wire.RefuseUnknown("request", request); err != nil {
		return err
	}
	path, err := sourceName(request.GetSource())
	if err = s.receivable(ctx, request.GetSource(), err); err != nil {
		return err
	}
	return do(ctx, path, request.GetSessionId())
}
