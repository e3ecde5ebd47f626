// Package wireerror turns a semantics.Error into what goes over the wire, once for every wire (ERR-1, ERR-2).
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

// statusClientClosed is the HTTP status of CANCELLED. Nobody is left to read it, it shows in logs and metrics.
const statusClientClosed = 499

// wire is a row of the table of ERR.
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
	semantics.TransactionTooLarge:       {codes.InvalidArgument, http.StatusBadRequest},
	semantics.TransactionTimedOut:       {codes.Aborted, http.StatusConflict},
	semantics.TransactionNotFound:       {codes.NotFound, http.StatusNotFound},
	semantics.NoMatchingSubscription:    {codes.FailedPrecondition, http.StatusConflict},
	semantics.ServiceTimeout:            {codes.DeadlineExceeded, http.StatusGatewayTimeout},
	semantics.StoreUnavailable:          {codes.Unavailable, http.StatusServiceUnavailable},
	semantics.Cancelled:                 {codes.Canceled, statusClientClosed},
	semantics.Internal:                  {codes.Internal, http.StatusInternalServerError},
}

// Causes of a semantics.Error that have a status of their own over HTTP, whatever the reason.
var (
	ErrMisdirected = errors.New("the host is not served here")       // 421
	ErrBodyLate    = errors.New("the request's body did not arrive") // 408
)

// StatusOf gives the HTTP status of the cause of e, or usual when it has none of its own.
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

// usualPause is the pause suggested where nothing better is known.
const usualPause = time.Second

// RetryAfter gives the pause after which to try again, zero when nothing is known. The answers that tell a client to
// come back, THROTTLED and STORE_UNAVAILABLE, always have one.
func RetryAfter(e *semantics.Error) time.Duration {
	if e.RetryAfter == 0 && (e.Code == semantics.Throttled || e.Code == semantics.StoreUnavailable) {
		return usualPause
	}
	return e.RetryAfter
}

// Of finds the semantics.Error in err. The end of a context, by the caller or by the caller's deadline, is CANCELLED;
// any other foreign error is INTERNAL. err must not be nil.
func Of(err error) *semantics.Error {
	var e *semantics.Error
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return &semantics.Error{Code: semantics.Cancelled, Message: "the caller went away", Err: err}
	default:
		return semantics.AsError(err)
	}
}

// Status gives the gRPC form of e: status, ErrorInfo, and for a retryable reason a RetryInfo whose delay is zero when
// nothing is known. The cause of e stays inside.
func Status(e *semantics.Error) *status.Status {
	bare := status.New(row(e.Code).grpc, strings.ToValidUTF8(e.Message, "\uFFFD"))
	metadata := make(map[string]string, len(e.Details))
	for key, value := range e.Details {
		metadata[key] = strings.ToValidUTF8(value, "\uFFFD") // may hold a cut piece of what the caller sent
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

// HTTP gives the HTTP form of e: the status of the table or of the cause, the body, and the value of Retry-After in
// whole seconds, "" when nothing is known. The cause of e stays inside.
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
