package proxy_test

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// A credit comes in so seldom that none does during the test.
const slowCredit = 1000 * time.Second

// startLimited runs a sidecar whose app can afford one message and nothing after it.
func startLimited(t *testing.T) (*sidecar, *memstore.Store) {
	t.Helper()
	over := memstore.New()
	s := launchBroker(t, broker.New(over, broker.WithRateLimit(1/slowCredit.Seconds())), over)
	wait(t, "start", s.proxy.Started())
	if _, _, err := over.CreateEntity(t.Context(), semantics.QueueKind, "orders", semantics.DefaultOptions()); err != nil {
		t.Fatal(err)
	}
	s.send(t, "paid")
	return s, over
}

func TestTHR_1_RetryAfterOnBothWires(t *testing.T) {
	t.Parallel()
	s, _ := startLimited(t)

	_, err := s.messages.Send(t.Context(), &sidebusv1.SendRequest{Target: orders, Messages: []*sidebusv1.Message{text("x")}})
	if info := infoOf(t, err); status.Code(err) != codes.ResourceExhausted || info.GetReason() != "THROTTLED" || info.GetMetadata()["limit"] != "0.001" {
		t.Errorf("gRPC: got %v %v", err, info)
	}
	wantSoon(t, "gRPC", retryDelayOf(err))

	a := s.call(t, http.MethodPost, verbPath+"send", `{"messages":[{}]}`)
	if reason, _ := a.reason(t); a.status != http.StatusTooManyRequests || reason != "THROTTLED" {
		t.Errorf("HTTP: got %d %s", a.status, a.body)
	}
	var body struct{ RetryAfterMs int64 }
	if err := json.Unmarshal([]byte(a.body), &body); err != nil {
		t.Fatal(err)
	}
	exact := time.Duration(body.RetryAfterMs) * time.Millisecond
	wantSoon(t, "HTTP", exact)
	if got, want := a.header.Get("Retry-After"), strconv.Itoa(int(math.Ceil(exact.Seconds()))); got != want {
		t.Errorf("Retry-After is %q, want %q", got, want)
	}
}

func wantSoon(t *testing.T, wire string, retry time.Duration) {
	t.Helper()
	if retry > slowCredit || retry < slowCredit-patience {
		t.Errorf("%s: a call says to wait %s, want a little less than %s", wire, retry, slowCredit)
	}
}

func retryDelayOf(err error) time.Duration {
	for _, detail := range status.Convert(err).Details() {
		if retry, ok := detail.(*errdetails.RetryInfo); ok {
			return retry.GetRetryDelay().AsDuration()
		}
	}
	return 0
}

// A caller that is throttled on one wire is throttled on the other; probes are not calls of the app.
func TestQUOTA_10_OneBucketForBothWires(t *testing.T) {
	t.Parallel()
	s, over := startLimited(t)
	for _, c := range []struct{ method, path, body string }{
		{http.MethodPost, verbPath + "send", `{"messages":[{}]}`},
		{http.MethodPost, verbPath + "receive", `{"maxWait":"0s"}`},
		{http.MethodPost, verbPath + "purge", `{}`},
		{http.MethodPut, "/v1/queues/new", `{}`},
		{http.MethodGet, queuePath, ""},
		{http.MethodDelete, queuePath, ""},
	} {
		if a := s.call(t, c.method, c.path, c.body); a.status != http.StatusTooManyRequests {
			t.Errorf("%s %s: got %d %s", c.method, c.path, a.status, a.body)
		}
	}
	if _, err := s.messages.Receive(t.Context(), receiveNow()); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("gRPC: got %v", err)
	}
	counts, err := over.Runtime(t.Context(), semantics.QueueKind, "orders")
	if err != nil || counts.Active != 1 {
		t.Errorf("the queue has %+v, %v; want the one message that was paid for", counts, err)
	}
	if a := s.ask(t, http.MethodGet, "/readiness"); a.status != http.StatusOK {
		t.Errorf("readiness: got %d %s", a.status, a.body)
	}
	s.eventuallyMeasured(t, `sidebus_rpc_duration_seconds_count{code="THROTTLED",method="Messages.Receive",wire="grpc"} 1`)
}
