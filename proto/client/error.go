package client

import (
	"context"
	"errors"
	"maps"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// Code says why a call failed. It is part of the API; the text of an [Error] is not. A Code is itself an error, so that
// errors.Is(err, client.CodeMessageLockLost) works.
type Code string

// Error returns the code.
func (c Code) Error() string { return string(c) }

// Codes of this package. No sidecar returns them.
const (
	// CodeClosed: the Client, Sender, Receiver or SessionReceiver was closed.
	CodeClosed Code = "CLOSED"
	// CodeConnectionLost: no sidecar could be reached, or the connection broke before the answer. OutcomeUnknown is
	// set.
	CodeConnectionLost Code = "CONNECTION_LOST"
	// CodeCancelled: the context ended first. The Error wraps context.Canceled or context.DeadlineExceeded.
	CodeCancelled Code = "CANCELLED"
)

// Codes of the sidecar. docs/api/errors.md says for each when it occurs and what to do.
const (
	CodeInvalidArgument           Code = "INVALID_ARGUMENT"
	CodeArgumentOutOfRange        Code = "ARGUMENT_OUT_OF_RANGE"
	CodeInvalidOperation          Code = "INVALID_OPERATION"
	CodeSessionRequired           Code = "SESSION_REQUIRED"
	CodeSessionIDMissing          Code = "SESSION_ID_MISSING"
	CodeSessionNotSupported       Code = "SESSION_NOT_SUPPORTED"
	CodePartitionKeyMismatch      Code = "PARTITION_KEY_MISMATCH"
	CodeFilterInvalid             Code = "FILTER_INVALID"
	CodeActionInvalid             Code = "ACTION_INVALID"
	CodeForwardDestinationInvalid Code = "FORWARD_DESTINATION_INVALID"
	CodeUnauthenticated           Code = "UNAUTHENTICATED"
	CodePermissionDenied          Code = "PERMISSION_DENIED"
	CodeEntityNotFound            Code = "ENTITY_NOT_FOUND"
	CodeMessageNotFound           Code = "MESSAGE_NOT_FOUND"
	CodeRuleNotFound              Code = "RULE_NOT_FOUND"
	CodeEntityAlreadyExists       Code = "ENTITY_ALREADY_EXISTS"
	CodeRuleAlreadyExists         Code = "RULE_ALREADY_EXISTS"
	CodeConflictInProgress        Code = "CONFLICT_IN_PROGRESS"
	CodePropertyImmutable         Code = "PROPERTY_IMMUTABLE"
	CodePreconditionFailed        Code = "PRECONDITION_FAILED"
	CodeEntityDisabled            Code = "ENTITY_DISABLED"
	CodeSessionCannotBeLocked     Code = "SESSION_CANNOT_BE_LOCKED"
	CodeMessageLockLost           Code = "MESSAGE_LOCK_LOST"
	CodeSessionLockLost           Code = "SESSION_LOCK_LOST"
	CodeMessageSizeExceeded       Code = "MESSAGE_SIZE_EXCEEDED"
	CodeSessionStateTooLarge      Code = "SESSION_STATE_TOO_LARGE"
	CodeEntityFull                Code = "ENTITY_FULL"
	CodeQuotaExceeded             Code = "QUOTA_EXCEEDED"
	CodeThrottled                 Code = "THROTTLED"
	CodeDurabilityNotMet          Code = "DURABILITY_NOT_MET"
	CodeNoMatchingSubscription    Code = "NO_MATCHING_SUBSCRIPTION"
	CodeServiceTimeout            Code = "SERVICE_TIMEOUT"
	CodeStoreUnavailable          Code = "STORE_UNAVAILABLE"
	CodePayloadKeyMissing         Code = "PAYLOAD_KEY_MISSING"
	CodeInternal                  Code = "INTERNAL"
)

// ErrMessageTooLarge is the same as [CodeMessageSizeExceeded], under the name that azservicebus uses.
const ErrMessageTooLarge = CodeMessageSizeExceeded

// Error is the failure of a call. Every error of this package is one or wraps one: find it with errors.As, or compare
// its code with errors.Is. It wraps the gRPC status, if there was one, and the error of the context, if that ended the
// call.
type Error struct {
	// Code is the reason; switch on it.
	Code Code
	// Message is for people, and may change.
	Message string
	// Retryable reports whether the same call may succeed later unchanged.
	Retryable bool
	// RetryAfter is how long to wait before that; 0 when the sidecar does not know.
	RetryAfter time.Duration
	// OutcomeUnknown reports whether the call may have taken effect all the same.
	OutcomeUnknown bool
	// RequestID is that of a failed send. The same messages sent again under it (see [SendMessageOptions]) within two
	// minutes are stored once.
	RequestID string
	// Details has entity, field, index, limit, actual and the like; nil when there are none.
	Details map[string]string

	cause error
}

// Error returns code and message.
func (e *Error) Error() string {
	if e.Message == "" {
		return string(e.Code)
	}
	return string(e.Code) + ": " + e.Message
}

// Is reports whether target is the code of e.
func (e *Error) Is(target error) bool {
	code, isCode := target.(Code) //nolint:errorlint // Is compares one link of the chain
	return isCode && code == e.Code
}

// Unwrap returns the gRPC status and the error of the context, nil when there is neither.
func (e *Error) Unwrap() error { return e.cause }

// ErrorOf converts an error of the generated clients, such as [Client.Admin], into an [Error], and finds the Error in
// one of this package. It returns nil for nil.
func ErrorOf(err error) *Error {
	if err == nil {
		return nil
	}
	var found *Error
	if errors.As(err, &found) {
		return found
	}
	s := status.Convert(err)
	e := &Error{Message: s.Message(), cause: err}
	for _, detail := range s.Details() {
		switch d := detail.(type) {
		case *errdetails.ErrorInfo:
			e.Code, e.Details = Code(d.GetReason()), maps.Clone(d.GetMetadata())
		case *errdetails.RetryInfo:
			e.Retryable, e.RetryAfter = true, d.GetRetryDelay().AsDuration()
		}
	}
	e.OutcomeUnknown = e.Details[detailOutcome] == outcomeUnknown
	if e.Code == "" {
		e.fromStatus(s.Code())
	}
	return e
}

const (
	detailOutcome  = "outcome"
	outcomeUnknown = "unknown"
)

// fromStatus fills in what a status without ErrorInfo means: it is from gRPC, not from the sidecar.
func (e *Error) fromStatus(code codes.Code) {
	switch code {
	case codes.Unavailable:
		e.Code, e.Retryable, e.OutcomeUnknown = CodeConnectionLost, true, true
		e.explainConnection()
	case codes.Canceled, codes.DeadlineExceeded:
		e.Code, e.OutcomeUnknown = CodeCancelled, true
	case codes.ResourceExhausted: // over the largest request the sidecar reads; the text has both numbers
		e.Code = CodeMessageSizeExceeded
	case codes.Unimplemented:
		e.Code = CodeInvalidOperation
	default:
		e.Code, e.OutcomeUnknown = CodeInternal, true
	}
}

// explainConnection replaces what gRPC says about a connection that could not be opened by what to do about it.
func (e *Error) explainConnection() {
	if strings.Contains(e.Message, "looked like an HTTP/1.1 header") {
		e.Retryable, e.OutcomeUnknown = false, false
		e.Message = "the address is one of HTTP, not of gRPC; the gRPC address of a sidecar is 127.0.0.1:7421 by default"
		return
	}
	if _, cause, ok := strings.Cut(e.Message, "Error while dialing: "); ok {
		e.Message = "no sidecar answers: " + strings.TrimSuffix(cause, `"`) + "; start one, or pass its gRPC address to New"
	}
}

// errorOfFailure converts what a stream says about a request.
func errorOfFailure(f *sidebusv1.Failure) *Error {
	return &Error{
		Code: Code(f.GetReason()), Message: f.GetMessage(), Retryable: f.GetRetryable(),
		RetryAfter:     f.GetRetryAfter().AsDuration(),
		OutcomeUnknown: f.GetDetails()[detailOutcome] == outcomeUnknown, Details: f.GetDetails(),
	}
}

// cancelled is the failure of a call whose context ended; last is what it failed with before, or nil.
func cancelled(ctx context.Context, last *Error) *Error {
	if last == nil {
		return &Error{Code: CodeCancelled, Message: ctx.Err().Error(), cause: ctx.Err()}
	}
	ended := *last
	ended.cause = errors.Join(last.cause, ctx.Err())
	return &ended
}

func invalidArgument(field, message string) *Error {
	return &Error{Code: CodeInvalidArgument, Message: message, Details: map[string]string{"field": field}}
}
