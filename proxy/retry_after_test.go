package proxy_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// Every response that asks the client to try again later has the pause: while draining, without a store, and with an
// unknown outcome.
func TestERR_2_EveryRetryable503SaysWhen(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(s *sidecar, over *spyStore){
		"draining": func(s *sidecar, _ *spyStore) { s.broker.BeginDrain() },
		"no store": func(_ *sidecar, over *spyStore) { over.failReceives(errDown) },
		"unknown outcome": func(_ *sidecar, over *spyStore) {
			over.failReceives(errDown.With(semantics.DetailOutcome, semantics.OutcomeUnknown))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			over := newSpyStore()
			s := start(t, over)
			fail(s, over)
			for _, path := range []string{verbPath + "receive", "/orders/messages/head?timeout=0"} {
				a := s.call(t, http.MethodPost, path, "")
				if a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" {
					t.Errorf("%s: got %d %v, want 503 with Retry-After", path, a.status, a.header)
				}
			}
			_, err := s.messages.Receive(t.Context(), receiveNow())
			if pauseOf(err) != time.Second {
				t.Errorf("gRPC: got %v, want RetryInfo of 1s", err)
			}
		})
	}
}

// pauseOf returns the pause of a gRPC failure's RetryInfo, 0 without one.
func pauseOf(err error) time.Duration {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			return info.GetRetryDelay().AsDuration()
		}
	}
	return 0
}

func TestERR_1_HEADAnswersAsGETDoes(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	for path, want := range map[string]int{
		"/v1/queues/orders": http.StatusOK, "/v1/queues": http.StatusOK, "/openapi.json": http.StatusOK,
		"/v1/queues/none": http.StatusNotFound, "/v1/nothing": http.StatusNotFound, verbPath + "send": http.StatusMethodNotAllowed,
	} {
		head, get := s.call(t, http.MethodHead, path, ""), s.call(t, http.MethodGet, path, "")
		if head.status != want || get.status != want || head.body != "" {
			t.Errorf("%s: HEAD answers %d %q, GET %d; want %d", path, head.status, head.body, get.status, want)
		}
		if h, g := head.header.Get("Content-Type"), get.header.Get("Content-Type"); h != g {
			t.Errorf("%s: HEAD answers %q, GET %q", path, h, g)
		}
	}
	a := s.call(t, http.MethodPost, "/v1/queues/orders/messages:receives", `{}`)
	if reason, _ := a.reason(t); a.status != http.StatusNotFound || reason != "ROUTE_NOT_FOUND" || !strings.Contains(a.body, "/v1/queues/{queue}/messages:receive") {
		t.Errorf("got %d %s, want the nearest route", a.status, a.body)
	}
}
