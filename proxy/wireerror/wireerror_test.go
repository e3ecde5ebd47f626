package wireerror_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
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

// row is a row of the table of ERR: reason, gRPC, HTTP, compat REST, retryable.
var row = regexp.MustCompile(`(?m)^\| ([A-Z_]+) \| ([A-Z_]+) \| (\d+) \| [^|]+ \| ([^|]+) \|`)

func TestERR_1_EveryReasonHasItsStatus(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/spec/semantics.md")
	if err != nil {
		t.Fatal(err)
	}
	var listed []semantics.Code
	for _, m := range row.FindAllStringSubmatch(string(page), -1) {
		code, wantHTTP, isRetryable := semantics.Code(m[1]), m[3], m[4] == "yes"
		listed = append(listed, code)
		t.Run(m[1], func(t *testing.T) {
			t.Parallel()
			var wantGRPC codes.Code
			if err := json.Unmarshal([]byte(`"`+m[2]+`"`), &wantGRPC); err != nil {
				t.Fatal(err)
			}
			e := semantics.Errorf(code, "text").With("entity", "orders")
			s := wireerror.Status(e)
			if s.Code() != wantGRPC || s.Message() != "text" {
				t.Errorf("gRPC: got %s %q, want %s", s.Code(), s.Message(), wantGRPC)
			}
			info, retry := detailsOf(s)
			if info.GetReason() != string(code) || info.GetDomain() != "sidebus" || info.GetMetadata()["entity"] != "orders" {
				t.Errorf("got %v", info)
			}
			if code.Retryable() != isRetryable || (retry != nil) != isRetryable {
				t.Errorf("got Retryable() %t and RetryInfo %v, retryable is %t", code.Retryable(), retry, isRetryable)
			}
			statusCode, body, retryAfter := wireerror.HTTP(e)
			wantBody := wireerror.Body{
				Reason: code, Message: "text", Retryable: isRetryable, Details: map[string]string{"entity": "orders"},
			}
			wantHeader := ""
			if isRetryable && (wantHTTP == "429" || wantHTTP == "503") { // a client that is told to come back is told when
				wantHeader, wantBody.RetryAfterMs = "1", 1000
				if retry.GetRetryDelay().AsDuration() != time.Second {
					t.Errorf("got RetryInfo %v, want 1 s", retry)
				}
			}
			if strconv.Itoa(statusCode) != wantHTTP || retryAfter != wantHeader || !cmp.Equal(body, wantBody) {
				t.Errorf("HTTP: got %d %+v Retry-After %q, want %s %+v", statusCode, body, retryAfter, wantHTTP, wantBody)
			}
		})
	}
	if want := semantics.Codes(); !slices.Equal(listed, want) {
		t.Errorf("the page lists %v, the code %v", listed, want)
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
