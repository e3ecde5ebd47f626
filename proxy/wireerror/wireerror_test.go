package wireerror_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sidebus/sidebus/proxy/wireerror"
	"github.com/sidebus/sidebus/semantics"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// want is the table of ERR, copied from the specification by hand.
var want = map[semantics.Code]struct {
	grpc codes.Code
	http int
}{
	"INVALID_ARGUMENT":            {codes.InvalidArgument, 400},
	"ARGUMENT_OUT_OF_RANGE":       {codes.OutOfRange, 400},
	"INVALID_OPERATION":           {codes.FailedPrecondition, 400},
	"SESSION_REQUIRED":            {codes.FailedPrecondition, 400},
	"SESSION_ID_MISSING":          {codes.InvalidArgument, 400},
	"SESSION_NOT_SUPPORTED":       {codes.FailedPrecondition, 400},
	"PARTITION_KEY_MISMATCH":      {codes.InvalidArgument, 400},
	"FILTER_INVALID":              {codes.InvalidArgument, 400},
	"ACTION_INVALID":              {codes.InvalidArgument, 400},
	"FORWARD_DESTINATION_INVALID": {codes.FailedPrecondition, 400},
	"UNAUTHENTICATED":             {codes.Unauthenticated, 401},
	"PERMISSION_DENIED":           {codes.PermissionDenied, 403},
	"ENTITY_NOT_FOUND":            {codes.NotFound, 404},
	"MESSAGE_NOT_FOUND":           {codes.NotFound, 404},
	"RULE_NOT_FOUND":              {codes.NotFound, 404},
	"ENTITY_ALREADY_EXISTS":       {codes.AlreadyExists, 409},
	"RULE_ALREADY_EXISTS":         {codes.AlreadyExists, 409},
	"CONFLICT_IN_PROGRESS":        {codes.Aborted, 409},
	"PROPERTY_IMMUTABLE":          {codes.FailedPrecondition, 409},
	"PRECONDITION_FAILED":         {codes.FailedPrecondition, 412},
	"ENTITY_DISABLED":             {codes.FailedPrecondition, 409},
	"SESSION_CANNOT_BE_LOCKED":    {codes.Aborted, 409},
	"MESSAGE_LOCK_LOST":           {codes.FailedPrecondition, 410},
	"SESSION_LOCK_LOST":           {codes.FailedPrecondition, 410},
	"MESSAGE_SIZE_EXCEEDED":       {codes.InvalidArgument, 413},
	"SESSION_STATE_TOO_LARGE":     {codes.InvalidArgument, 413},
	"ENTITY_FULL":                 {codes.ResourceExhausted, 507},
	"QUOTA_EXCEEDED":              {codes.ResourceExhausted, 507},
	"THROTTLED":                   {codes.ResourceExhausted, 429},
	"ROUTE_NOT_FOUND":             {codes.NotFound, 404},
	"TRANSACTION_TOO_LARGE":       {codes.InvalidArgument, 400},
	"TRANSACTION_TIMED_OUT":       {codes.Aborted, 409},
	"TRANSACTION_NOT_FOUND":       {codes.NotFound, 404},
	"NO_MATCHING_SUBSCRIPTION":    {codes.FailedPrecondition, 409},
	"SERVICE_TIMEOUT":             {codes.DeadlineExceeded, 504},
	"STORE_UNAVAILABLE":           {codes.Unavailable, 503},
	"CANCELLED":                   {codes.Canceled, 499},
	"INTERNAL":                    {codes.Internal, 500},
}

func TestERR_1_EveryReasonHasItsStatus(t *testing.T) {
	t.Parallel()
	if len(semantics.Codes()) != len(want) {
		t.Errorf("%d reasons, the table has %d", len(semantics.Codes()), len(want))
	}
	for _, code := range semantics.Codes() {
		t.Run(string(code), func(t *testing.T) {
			t.Parallel()
			e := semantics.Errorf(code, "text").With("entity", "orders")
			s := wireerror.Status(e)
			if s.Code() != want[code].grpc || s.Message() != "text" {
				t.Errorf("gRPC: got %s %q, want %s", s.Code(), s.Message(), want[code].grpc)
			}
			info, retry := detailsOf(s)
			if info.GetReason() != string(code) || info.GetDomain() != "sidebus" || info.GetMetadata()["entity"] != "orders" {
				t.Errorf("got %v", info)
			}
			if (retry != nil) != code.Retryable() {
				t.Errorf("got RetryInfo %v, retryable is %t", retry, code.Retryable())
			}
			statusCode, body, retryAfter := wireerror.HTTP(e)
			wantBody := wireerror.Body{
				Reason: code, Message: "text", Retryable: code.Retryable(), Details: map[string]string{"entity": "orders"},
			}
			wantHeader := ""
			if want[code].http == 429 || want[code].http == 503 { // a client that is told to come back is told when
				wantHeader, wantBody.RetryAfterMs = "1", 1000
				if retry.GetRetryDelay().AsDuration() != time.Second {
					t.Errorf("got RetryInfo %v, want 1 s", retry)
				}
			}
			if statusCode != want[code].http || retryAfter != wantHeader || !cmp.Equal(body, wantBody) {
				t.Errorf("HTTP: got %d %+v Retry-After %q, want %d %+v", statusCode, body, retryAfter, want[code].http, wantBody)
			}
		})
	}
}

func detailsOf(s *status.Status) (info *errdetails.ErrorInfo, retry *errdetails.RetryInfo) {
	for _, detail := range s.Details() {
		switch d := detail.(type) {
		case *errdetails.ErrorInfo:
			info = d
		case *errdetails.RetryInfo:
			retry = d
		}
	}
	return info, retry
}

func TestERR_2_RetryAfterOnBothWires(t *testing.T) {
	t.Parallel()
	e := &semantics.Error{Code: semantics.Throttled, Message: "slow down", RetryAfter: 1500 * time.Millisecond}
	if _, retry := detailsOf(wireerror.Status(e)); retry.GetRetryDelay().AsDuration() != e.RetryAfter {
		t.Errorf("got %v", retry)
	}
	_, body, header := wireerror.HTTP(e)
	if body.RetryAfterMs != 1500 || header != "2" {
		t.Errorf("got %d ms, Retry-After %s; want 1500, 2", body.RetryAfterMs, header)
	}
}

func TestERR_2_HTTPBodyHasAllFields(t *testing.T) {
	t.Parallel()
	_, body, _ := wireerror.HTTP(semantics.Errorf(semantics.InvalidArgument, "x"))
	text, err := json.Marshal(body)
	const want = `{"reason":"INVALID_ARGUMENT","message":"x","retryable":false,"retryAfterMs":0,"details":{}}`
	if err != nil || string(text) != want {
		t.Errorf("got %s, %v", text, err)
	}
}

func TestErrorsOfOtherKinds(t *testing.T) {
	t.Parallel()
	cases := []struct {
		err  error
		want semantics.Code
	}{
		{fmt.Errorf("wrapped: %w", semantics.NotFound("orders")), semantics.EntityNotFound},
		{context.Canceled, semantics.Cancelled},
		{fmt.Errorf("wrapped: %w", context.DeadlineExceeded), semantics.Cancelled},
		{errors.New("secret at 10.0.0.1"), semantics.Internal},
	}
	for _, c := range cases {
		got := wireerror.Of(c.err)
		if got.Code != c.want {
			t.Errorf("%v: got %s, want %s", c.err, got.Code, c.want)
		}
		if c.want == semantics.Internal && wireerror.Status(got).Message() == c.err.Error() {
			t.Errorf("the cause of a bug is shown to the caller: %s", wireerror.Status(got).Message())
		}
	}
}

func TestDetailsOfBadTextStillArrive(t *testing.T) {
	t.Parallel()
	e := semantics.Errorf(semantics.InvalidArgument, "cut \xc3").With("field", "cut \xc3")
	if info, _ := detailsOf(wireerror.Status(e)); info.GetReason() != "INVALID_ARGUMENT" {
		t.Errorf("got %v", info)
	}
}
