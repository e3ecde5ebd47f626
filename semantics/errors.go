package semantics

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"
)

// Code is the reason of a failure: one word of the closed set of ERR-1. It is stable API, the same word in
// Lua replies, Go, gRPC ErrorInfo and HTTP bodies. The empty Code means success.
type Code string

// The closed set of reasons (spec section 1). Reasons of verbs that do not exist yet are listed all the same,
// because clients switch on them.
const (
	InvalidArgument           Code = "INVALID_ARGUMENT"
	ArgumentOutOfRange        Code = "ARGUMENT_OUT_OF_RANGE"
	InvalidOperation          Code = "INVALID_OPERATION"
	SessionRequired           Code = "SESSION_REQUIRED"
	SessionIDMissing          Code = "SESSION_ID_MISSING"
	SessionNotSupported       Code = "SESSION_NOT_SUPPORTED"
	PartitionKeyMismatch      Code = "PARTITION_KEY_MISMATCH"
	FilterInvalid             Code = "FILTER_INVALID"
	ActionInvalid             Code = "ACTION_INVALID"
	ForwardDestinationInvalid Code = "FORWARD_DESTINATION_INVALID"
	Unauthenticated           Code = "UNAUTHENTICATED"
	PermissionDenied          Code = "PERMISSION_DENIED"
	EntityNotFound            Code = "ENTITY_NOT_FOUND"
	MessageNotFound           Code = "MESSAGE_NOT_FOUND"
	RuleNotFound              Code = "RULE_NOT_FOUND"
	EntityAlreadyExists       Code = "ENTITY_ALREADY_EXISTS"
	RuleAlreadyExists         Code = "RULE_ALREADY_EXISTS"
	ConflictInProgress        Code = "CONFLICT_IN_PROGRESS"
	PropertyImmutable         Code = "PROPERTY_IMMUTABLE"
	PreconditionFailed        Code = "PRECONDITION_FAILED"
	EntityDisabled            Code = "ENTITY_DISABLED"
	SessionCannotBeLocked     Code = "SESSION_CANNOT_BE_LOCKED"
	MessageLockLost           Code = "MESSAGE_LOCK_LOST"
	SessionLockLost           Code = "SESSION_LOCK_LOST"
	MessageSizeExceeded       Code = "MESSAGE_SIZE_EXCEEDED"
	SessionStateTooLarge      Code = "SESSION_STATE_TOO_LARGE"
	EntityFull                Code = "ENTITY_FULL"
	QuotaExceeded             Code = "QUOTA_EXCEEDED"
	Throttled                 Code = "THROTTLED"
	RouteNotFound             Code = "ROUTE_NOT_FOUND"
	DurabilityNotMet          Code = "DURABILITY_NOT_MET"
	TransactionTooLarge       Code = "TRANSACTION_TOO_LARGE"
	TransactionTimedOut       Code = "TRANSACTION_TIMED_OUT"
	TransactionNotFound       Code = "TRANSACTION_NOT_FOUND"
	NoMatchingSubscription    Code = "NO_MATCHING_SUBSCRIPTION"
	ServiceTimeout            Code = "SERVICE_TIMEOUT"
	StoreUnavailable          Code = "STORE_UNAVAILABLE"
	PayloadKeyMissing         Code = "PAYLOAD_KEY_MISSING"
	Cancelled                 Code = "CANCELLED"
	Internal                  Code = "INTERNAL"
)

// Codes lists every Code of the closed set in the order of the specification.
func Codes() []Code {
	return []Code{
		InvalidArgument, ArgumentOutOfRange, InvalidOperation, SessionRequired, SessionIDMissing,
		SessionNotSupported, PartitionKeyMismatch, FilterInvalid, ActionInvalid, ForwardDestinationInvalid,
		Unauthenticated, PermissionDenied, EntityNotFound, MessageNotFound, RuleNotFound, EntityAlreadyExists,
		RuleAlreadyExists, ConflictInProgress, PropertyImmutable, PreconditionFailed, EntityDisabled,
		SessionCannotBeLocked, MessageLockLost, SessionLockLost, MessageSizeExceeded, SessionStateTooLarge,
		EntityFull, QuotaExceeded, Throttled, RouteNotFound, DurabilityNotMet, TransactionTooLarge,
		TransactionTimedOut, TransactionNotFound, NoMatchingSubscription, ServiceTimeout, StoreUnavailable,
		PayloadKeyMissing, Cancelled, Internal,
	}
}

// Retryable reports whether the same call may succeed later unchanged (ERR-3, "yes" in the table).
func (c Code) Retryable() bool {
	switch c {
	case ConflictInProgress, SessionCannotBeLocked, EntityFull, Throttled, ServiceTimeout, StoreUnavailable,
		PayloadKeyMissing, Cancelled, Internal:
		return true
	default:
		return false
	}
}

// Keys of Error.Details (ERR-2, ERR-6, ERR-7). Values are plain text.
const (
	DetailEntity   = "entity"    // path of the entity the call named
	DetailSubQueue = "sub_queue" // DEAD_LETTER and the like, absent for the main queue
	DetailField    = "field"     // the offending field, lowerCamelCase
	DetailIndex    = "index"     // position of the first bad message of a batch
	DetailLimit    = "limit"     // the bound that was passed
	DetailActual   = "actual"    // the value that passed it
	DetailOutcome  = "outcome"   // OutcomeUnknown when the call may have taken effect, OutcomeStored when it has
	DetailCause    = "cause"     // why the store is unavailable: redis_oom, draining, ...
	DetailDeadSize = "deadLetterSizeInBytes"
	DetailNumbers  = "sequenceNumbers" // those that were not found, separated by commas

	DetailPartition = "partition" // of a partitioned entity, the one that cannot be reached (PART-7)

	DetailOperation = "operation" // position of the first bad operation of a transaction

	DetailKey = "key" // name of the payload key that is missing (CRYPT-4)
)

// CauseDraining is the value of DetailCause while a sidecar stops, when nothing is wrong with the store.
const CauseDraining = "draining"

// OutcomeUnknown is the value of DetailOutcome when the answer to a change was lost (ERR-6).
const OutcomeUnknown = "unknown"

// OutcomeStored is the value of DetailOutcome when a change was made without the durability that was asked for (DUR-2).
const OutcomeStored = "stored, not confirmed"

// Error is the one failure type of Sidebus. Message is for people and names field and bound; programs switch on
// Code. An Error is immutable once returned and safe for concurrent use.
type Error struct {
	Code       Code
	Message    string
	Details    map[string]string
	RetryAfter time.Duration // zero when nothing is known
	Err        error         // the cause, may be nil
}

// Error returns "CODE: message", and the cause when there is one.
func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %s: %v", e.Code, e.Message, e.Err)
	}
	return fmt.Sprintf("%s: %s", e.Code, e.Message)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// With returns a copy of e that carries one more detail.
func (e *Error) With(key, value string) *Error {
	c := *e
	c.Details = maps.Clone(e.Details)
	if c.Details == nil {
		c.Details = map[string]string{}
	}
	c.Details[key] = value
	return &c
}

// Errorf makes an Error. The text is a sentence without capital or full stop that names field and bound.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// AsError finds the Error in a chain. An error of another kind becomes INTERNAL, so that callers always have a
// Code; nil stays nil.
func AsError(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Code: Internal, Message: "unexpected failure", Err: err}
}

// CodeOf returns the Code of err, the empty Code for nil and INTERNAL for a foreign error.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	return AsError(err).Code
}

// IsOutcomeUnknown reports whether the failed call may have taken effect (ERR-6).
func IsOutcomeUnknown(err error) bool {
	return err != nil && AsError(err).Details[DetailOutcome] == OutcomeUnknown
}

// FieldError makes an Error about a field of a call: its text begins with the name, which is in the details too.
func FieldError(code Code, field, format string, args ...any) *Error {
	return Errorf(code, "%s %s", field, fmt.Sprintf(format, args...)).With(DetailField, field)
}

// InvalidField is INVALID_ARGUMENT about a field, see FieldError.
func InvalidField(field, format string, args ...any) *Error {
	return FieldError(InvalidArgument, field, format, args...)
}

// SizeExceeded is MESSAGE_SIZE_EXCEEDED for the named thing, with both numbers in bytes.
func SizeExceeded(what string, actual, limit int64) *Error {
	return Errorf(MessageSizeExceeded, "%s is %d bytes, at most %d are allowed", what, actual, limit).
		With(DetailField, what).
		With(DetailActual, strconv.FormatInt(actual, 10)).With(DetailLimit, strconv.FormatInt(limit, 10))
}

// TooManyMessages is ARGUMENT_OUT_OF_RANGE for a batch of more than MaxBatchMessages.
func TooManyMessages(actual int) *Error {
	return FieldError(
		ArgumentOutOfRange, "messages", "contains %d messages, at most %d are allowed; send them in several calls", actual,
		MaxBatchMessages,
	)
}

// MessageTooLarge is MESSAGE_SIZE_EXCEEDED for a message that its queue or topic does not take (MSG-20).
func MessageTooLarge(actual, limit int64) *Error {
	return SizeExceeded("message", actual, limit).
		next("raise maxMessageSizeInKilobytes of the queue or topic, or send a reference to the body")
}

// HTTPMessageTooLarge is MESSAGE_SIZE_EXCEEDED for a message that only gRPC takes (MSG-21).
func HTTPMessageTooLarge(actual int64) *Error {
	return SizeExceeded("message", actual, MaxHTTPMessageSize).next("this is the bound of HTTP, so send it over gRPC")
}

// BatchTooLarge is MESSAGE_SIZE_EXCEEDED for messages that are too large together (MSG-21).
func BatchTooLarge(actual, limit int64) *Error {
	return SizeExceeded("batch", actual, limit).next("send fewer messages at a time")
}

// HTTPBodyTooLarge is MESSAGE_SIZE_EXCEEDED for the body of a request over HTTP.
func HTTPBodyTooLarge(what string, actual, limit int64) *Error {
	return SizeExceeded(what, actual, limit).next("this is the bound of HTTP, so send less at a time, or over gRPC")
}

// next adds to the text what to do.
func (e *Error) next(step string) *Error {
	e.Message += "; " + step
	return e
}

// Draining is STORE_UNAVAILABLE for a call that a sidecar does not take any more because it stops.
func Draining() *Error {
	return Errorf(StoreUnavailable, "this sidecar is draining and accepts no new receives; use another one").
		With(DetailCause, CauseDraining)
}

// CancelledBy is CANCELLED for a call whose ctx has ended.
func CancelledBy(ctx context.Context) *Error {
	return &Error{Code: Cancelled, Message: "the caller went away", Err: context.Cause(ctx)}
}
