// Package wireerror converts a semantics.Error to the errors of gRPC and HTTP (ERR-1, ERR-2).
package wireerror

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/sidebus/sidebus/semantics"
)

// Domain is the domain of every ErrorInfo (ERR-2).
const Domain = "sidebus"

// statusClientClosed is the HTTP status of CANCELLED, for logs and metrics: the client has disconnected.
const statusClientClosed = 499

// wire is a row of the error table (ERR).
type wire struct {
	grpc codes.Code
	http int
}

var table = map[semantics.Code]wire{
	semantics.InvalidArgument:           {codes.InvalidArgument, http.StatusBadRequest},
	semantics.ArgumentOutOfRange:        {codes.OutOfRange, http.StatusBadRequest},
	semantics.InvalidOperation:          {codes.FailedPrecondition, http.StatusBadRequest},
	semantics.SessionRequired:           {codes.FailedPrecondition, http.StatusBadRequest},
	semantics.SessionIDMissing:          {codes.InvalidArgument, http.StatusBadRequest},
	semantics.SessionNotSupported:       {codes.FailedPrecondition, http.StatusBadRequest},
	semantics.PartitionKeyMismatch:      {codes.InvalidArgument, http.StatusBadRequest},
	semantics.FilterInvalid:             {codes.InvalidArgument, http.StatusBadRequest},
	semantics.ActionInvalid:             {codes.InvalidArgument, http.StatusBadRequest},
	semantics.ForwardDestinationInvalid: {codes.FailedPrecondition, http.StatusBadRequest},
	semantics.Unauthenticated:           {codes.Unauthenticated, http.StatusUnauthorized},
	semantics.PermissionDenied:          {codes.PermissionDenied, http.StatusForbidden},
	semantics.EntityNotFound:            {codes.NotFound, http.StatusNotFound},
	semantics.MessageNotFound:           {codes.NotFound, http.StatusNotFound},
	semantics.RuleNotFound:              {codes.NotFound, http.StatusNotFound},
	semantics.EntityAlreadyExists:       {codes.AlreadyExists, http.StatusConflict},
	semantics.RuleAlreadyExists:         {codes.AlreadyExists, http.StatusConflict},
	semantics.ConflictInProgress:        {codes.Aborted, http.StatusConflict},
	semantics.PropertyImmutable:         {codes.FailedPrecondition, http.StatusConflict},
	semantics.PreconditionFailed:        {codes.FailedPrecondition, http.StatusPreconditionFailed},
	semantics.EntityDisabled:            {codes.FailedPrecondition, http.StatusConflict},
	semantics.SessionCannotBeLocked:     {codes.Aborted, http.StatusConflict},
	semantics.MessageLockLost:           {codes.FailedPrecondition, http.StatusGone},
	semantics.SessionLockLost:           {codes.FailedPrecondition, http.StatusGone},
	semantics.MessageSizeExceeded:       {codes.InvalidArgument, http.StatusRequestEntityTooLarge},
	semantics.SessionStateTooLarge:      {codes.InvalidArgument, http.StatusRequestEntityTooLarge},
	semantics.EntityFull:                {codes.ResourceExhausted, http.StatusInsufficientStorage},
	semantics.QuotaExceeded:             {codes.ResourceExhausted, http.StatusInsufficientStorage},
	semantics.Throttled:                 {codes.ResourceExhausted, http.StatusTooManyRequests},
	semantics.RouteNotFound:             {codes.NotFound, http.StatusNotFound},
	semantics.DurabilityNotMet:          {codes.Unavailable, http.StatusServiceUnavailable},
	semantics.TransactionTooLarge:       {codes.InvalidArgument, http.StatusBadRequest},
	semantics.TransactionTimedOut:       {codes.Aborted, http.StatusConflict},
	semantics.TransactionNotFound:       {codes.NotFound, http.StatusNotFound},
	semantics.NoMatchingSubscription:    {codes.FailedPrecondition, http.StatusConflict},
	semantics.ServiceTimeout:            {codes.DeadlineExceeded, http.StatusGatewayTimeout},
	semantics.StoreUnavailable:          {codes.Unavailable, http.StatusServiceUnavailable},
	semantics.PayloadKeyMissing:         {codes.Unavailable, http.StatusServiceUnavailable},
	semantics.Cancelled:                 {codes.Canceled, statusClientClosed},
	semantics.Internal:                  {codes.Internal, http.StatusInternalServerError},
}

// Causes of a semantics.Error that have an HTTP status of their own.
var (
	ErrMisdirected = errors.New("the host is not served")          // 421
	ErrBodyLate    = errors.New("the request body did not arrive") // 408
)

// StatusOf returns the HTTP status of the cause of e, or usual if it has none.
func StatusOf(e *semantics.Error, usual int) int {
	switch {
	case errors.Is(e.Err, ErrMisdirected):
		return http.StatusMisdirectedRequest
	case errors.Is(e.Err, ErrBodyLate):
		return http.StatusRequestTimeout
	default:
		return usual
	}
}

// usualPause is the suggested retry delay if no better one is known.
const usualPause = time.Second

// RetryAfter returns the retry delay, or zero if none is known. THROTTLED, STORE_UNAVAILABLE and PAYLOAD_KEY_MISSING
// always have one.
func RetryAfter(e *semantics.Error) time.Duration {
	switch {
	case e.RetryAfter != 0:
		return e.RetryAfter
	case e.Code == semantics.Throttled, e.Code == semantics.StoreUnavailable, e.Code == semantics.PayloadKeyMissing:
		return usualPause
	default:
		return 0
	}
}

// Of returns the semantics.Error in err. The end of a context is CANCELLED; other errors are INTERNAL. err must not be
// nil.
func Of(err error) *semantics.Error {
	var e *semantics.Error
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return &semantics.Error{Code: semantics.Cancelled, Message: "the client disconnected", Err: err}
	default:
		return semantics.AsError(err)
	}
}

// Status returns e as a gRPC status with an ErrorInfo, and a RetryInfo if the reason is retryable. The cause of e is
// not included.
func Status(e *semantics.Error) *status.Status {
	bare := status.New(row(e.Code).grpc, strings.ToValidUTF8(e.Message, "\uFFFD"))
	metadata := make(map[string]string, len(e.Details))
	for key, value := range e.Details {
		metadata[key] = strings.ToValidUTF8(value, "\uFFFD") // may contain truncated client input
	}
	details := []protoadapt.MessageV1{
		&errdetails.ErrorInfo{Reason: string(e.Code), Domain: Domain, Metadata: metadata},
	}
	if e.Code.Retryable() {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(RetryAfter(e))})
	}
	full, err := bare.WithDetails(details...)
	if err != nil {
		return bare
	}
	return full
}

// Body is the JSON body of a failure over HTTP.
type Body struct {
	Reason       semantics.Code    `json:"reason"`
	Message      string            `json:"message"`
	Retryable    bool              `json:"retryable"`
	RetryAfterMs int64             `json:"retryAfterMs"` // 0 when nothing is known
	Details      map[string]string `json:"details"`
}

// HTTP returns e as an HTTP status, an error body, and the value of Retry-After in whole seconds, "" if none is known.
// The cause of e is not included.
func HTTP(e *semantics.Error) (statusCode int, body Body, retryAfter string) {
	pause := RetryAfter(e)
	body = Body{
		Reason: e.Code, Message: e.Message, Retryable: e.Code.Retryable(),
		RetryAfterMs: int64(math.Ceil(float64(pause) / float64(time.Millisecond))), Details: e.Details,
	}
	if body.Details == nil {
		body.Details = map[string]string{}
	}
	if pause > 0 {
		retryAfter = strconv.FormatInt(int64(math.Ceil(pause.Seconds())), 10)
	}
	return StatusOf(e, row(e.Code).http), body, retryAfter
}

func row(code semantics.Code) wire {
	if w, ok := table[code]; ok {
		return w
	}
	return table[semantics.Internal]
}
