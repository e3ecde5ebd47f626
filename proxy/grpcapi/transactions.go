package grpcapi

import (
	"context"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/proxy/internal/admission"
	"github.com/sidebus/sidebus/proxy/wire"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// Transactions serves sidebus.v1.Transactions. It is safe for concurrent use.
type Transactions struct {
	sidebusv1.UnimplementedTransactionsServer

	messages *Messages // which translates and counts the operations
}

// NewTransactions returns a Transactions whose messages arrive as those of messages.
func NewTransactions(messages *Messages) *Transactions { return &Transactions{messages: messages} }

// Transact runs operations, all or none; see broker.Broker.Transact.
func (s *Transactions) Transact(
	ctx context.Context, request *sidebusv1.TransactRequest,
) (*sidebusv1.TransactResponse, error) {
	if err := wire.RefuseUnknown("request", request); err != nil {
		return nil, err
	}
	operations, err := s.operationsOf(ctx, request.GetOperations())
	if err != nil {
		return nil, err
	}
	ctx, traced := s.messages.metrics.Traces.Transact(ctx, "transact")
	result, err := s.messages.broker.Transact(
		ctx, request.RequestId, operations,
	) //nolint:protogetter // nil and empty differ (IDEM-1)
	if err != nil {
		traced.End(nil, err)
		return nil, err
	}
	traced.End(result.Operations, nil)
	s.messages.metrics.Transacted(result)
	return &sidebusv1.TransactResponse{Results: resultsFrom(result.Results), Repeated: result.Repeated}, nil
}

// Begin starts a transaction; see broker.Broker.Begin.
func (s *Transactions) Begin(
	ctx context.Context, request *sidebusv1.BeginRequest,
) (*sidebusv1.BeginResponse, error) {
	if err := wire.RefuseUnknown("request", request); err != nil {
		return nil, err
	}
	id, err := s.messages.broker.Begin(admission.ClientOf(ctx))
	if err != nil {
		return nil, err
	}
	return &sidebusv1.BeginResponse{TransactionId: id}, nil
}

// Add adds operations to a transaction; see broker.Broker.Add.
func (s *Transactions) Add(ctx context.Context, request *sidebusv1.AddRequest) (*sidebusv1.AddResponse, error) {
	if err := wire.RefuseUnknown("request", request); err != nil {
		return nil, err
	}
	operations, err := s.operationsOf(ctx, request.GetOperations())
	if err != nil {
		return nil, err
	}
	count, err := s.messages.broker.Add(ctx, request.GetTransactionId(), operations)
	if err != nil {
		return nil, err
	}
	return &sidebusv1.AddResponse{Operations: int64(count)}, nil
}

// Commit runs the operations of a transaction; see broker.Broker.Commit.
func (s *Transactions) Commit(
	ctx context.Context, request *sidebusv1.CommitRequest,
) (*sidebusv1.CommitResponse, error) {
	if err := wire.RefuseUnknown("request", request); err != nil {
		return nil, err
	}
	ctx, traced := s.messages.metrics.Traces.Transact(ctx, "commit")
	result, err := s.messages.broker.Commit(
		ctx, request.GetTransactionId(),
		func(operations []semantics.Operation) error { return permitOperations(ctx, operations) },
	)
	if err != nil {
		traced.End(nil, err)
		return nil, err
	}
	traced.End(result.Operations, nil)
	s.messages.metrics.Transacted(result)
	return &sidebusv1.CommitResponse{Results: resultsFrom(result.Results), Repeated: result.Repeated}, nil
}

// permitOperations checks that the caller may run what others may have added (AUTH-3).
func permitOperations(ctx context.Context, operations []semantics.Operation) error {
	for i, o := range operations {
		if err := access.Permit(ctx, access.RightOf(o)); err != nil {
			return semantics.RefusedOperation(err, i)
		}
	}
	return nil
}

// Rollback ends a transaction; see broker.Broker.Rollback.
func (s *Transactions) Rollback(
	ctx context.Context, request *sidebusv1.RollbackRequest,
) (*sidebusv1.RollbackResponse, error) {
	if err := wire.RefuseUnknown("request", request); err != nil {
		return nil, err
	}
	if err := s.messages.broker.Rollback(ctx, request.GetTransactionId()); err != nil {
		return nil, err
	}
	return &sidebusv1.RollbackResponse{}, nil
}

func resultsFrom(results []broker.OperationResult) []*sidebusv1.OperationResult {
	all := make([]*sidebusv1.OperationResult, len(results))
	for i, r := range results {
		all[i] = &sidebusv1.OperationResult{Sent: sentFrom(r.Sent).GetResults(), StateVersion: r.Version}
	}
	return all
}

// operationsOf translates operations. An error carries the position of the invalid one.
func (s *Transactions) operationsOf(
	ctx context.Context, sent []*sidebusv1.Operation,
) ([]semantics.Operation, error) {
	if n := len(sent); n > semantics.MaxOperations {
		return nil, semantics.TransactionLarge("operations", int64(n), semantics.MaxOperations)
	}
	operations := make([]semantics.Operation, len(sent))
	for i, o := range sent {
		err := wire.RefuseUnknown("operation", o)
		if err == nil {
			operations[i], err = s.operationOf(ctx, o)
		}
		if err != nil {
			return nil, semantics.RefusedOperation(err, i)
		}
	}
	return operations, nil
}

func (s *Transactions) operationOf(ctx context.Context, o *sidebusv1.Operation) (semantics.Operation, error) {
	switch request := o.GetOperation().(type) {
	case *sidebusv1.Operation_Send:
		return s.send(request.Send)
	case *sidebusv1.Operation_CancelScheduled:
		return s.cancel(ctx, request.CancelScheduled)
	case *sidebusv1.Operation_Complete:
		return s.settlement(ctx, semantics.OperationComplete, request.Complete, request.Complete.SessionLockToken)
	case *sidebusv1.Operation_Abandon:
		operation, err := s.settlement(
			ctx, semantics.OperationAbandon, request.Abandon, request.Abandon.SessionLockToken,
		)
		if err != nil {
			return operation, err
		}
		operation.Abandon, err = abandonOptions(request.Abandon)
		operation.Properties, operation.Abandon.Properties = operation.Abandon.Properties, nil
		return operation, err
	case *sidebusv1.Operation_Defer:
		operation, err := s.settlement(ctx, semantics.OperationDefer, request.Defer, request.Defer.SessionLockToken)
		if err == nil {
			operation.Properties, err = wire.PropertiesOf(request.Defer.GetProperties())
		}
		return operation, err
	case *sidebusv1.Operation_DeadLetter:
		operation, err := s.settlement(
			ctx, semantics.OperationDeadLetter, request.DeadLetter, request.DeadLetter.SessionLockToken,
		)
		if err == nil {
			operation.Texts = semantics.DeadLetterTexts{
				Reason: request.DeadLetter.Reason, Description: request.DeadLetter.Description, //nolint:protogetter // nil and empty differ (SETTLE-6)
			}
			operation.Properties, err = wire.PropertiesOf(request.DeadLetter.GetProperties())
		}
		return operation, err
	case *sidebusv1.Operation_SetSessionState:
		source, err := s.messages.heldSource(ctx, request.SetSessionState)
		return semantics.Operation{
			Verb: semantics.OperationSetState, Source: source, State: request.SetSessionState.State,
			Version: request.SetSessionState.ExpectedVersion, //nolint:protogetter // nil and empty differ (SESS-33)
		}, err
	default:
		return semantics.Operation{}, semantics.InvalidField(
			"operation",
			"must be one of send, cancelScheduled, complete, abandon, defer, deadLetter and setSessionState",
		)
	}
}

func (s *Transactions) send(request *sidebusv1.SendRequest) (semantics.Operation, error) {
	operation := semantics.Operation{Verb: semantics.OperationSend}
	if err := wire.RefuseUnknown("request", request); err != nil {
		return operation, err
	}
	if request.RequestId != nil {
		return operation, semantics.InvalidField("requestId", "is that of a transaction, not of its operations")
	}
	target, err := targetOf("target", request.GetTarget())
	if err != nil {
		return operation, err
	}
	operation.Source, operation.IsTopic = semantics.Source{Path: target.Path}, target.IsTopic
	if n := len(request.GetMessages()); n > semantics.MaxBatchMessages {
		return operation, semantics.TooManyMessages(n)
	}
	operation.Messages, err = s.messages.messagesOf(request.GetMessages())
	return operation, err
}

func (s *Transactions) cancel(
	ctx context.Context, request *sidebusv1.CancelScheduledRequest,
) (semantics.Operation, error) {
	operation := semantics.Operation{Verb: semantics.OperationCancel, Numbers: request.GetSequenceNumbers()}
	if err := wire.RefuseUnknown("request", request); err != nil {
		return operation, err
	}
	if len(request.GetMessageIds()) > 0 {
		return operation, semantics.InvalidField("messageIds", "cannot be cancelled in a transaction; use sequenceNumbers")
	}
	target, err := targetOf("target", request.GetTarget())
	if err != nil {
		return operation, err
	}
	operation.Source, operation.IsTopic = semantics.Source{Path: target.Path}, target.IsTopic
	_, _, err = s.messages.topicOf(ctx, request.GetTarget(), nil)
	return operation, err
}

// settlement translates what all settlements have. session is the token of a session's lock, nil for none.
func (s *Transactions) settlement(
	ctx context.Context, verb semantics.OperationVerb, request lockRequest, session *string,
) (semantics.Operation, error) {
	source, tokens, err := s.messages.locksOf(ctx, request, session)
	return semantics.Operation{Verb: verb, Source: source, Tokens: tokens}, err
}
