package proxy_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/memstore"
)

func TestStartWaitsForTheStore(t *testing.T) {
	t.Parallel()
	over := newSpyStore()
	over.fail(errDown)
	s := launch(t, over)
	for _, path := range []string{"/startup", "/healthz/startup", "/readiness", "/healthz/ready"} {
		if a := s.ask(t, http.MethodGet, path); a.status != http.StatusServiceUnavailable || !strings.Contains(a.body, `"state":"starting"`) {
			t.Errorf("%s: got %d %s", path, a.status, a.body)
		}
	}
	for _, path := range []string{"/liveness", "/healthz/live"} {
		if a := s.ask(t, http.MethodGet, path); a.status != http.StatusOK {
			t.Errorf("%s: got %d %s", path, a.status, a.body)
		}
	}
	over.fail(nil)
	wait(t, "start", s.proxy.Started())
	const want = `{"state":"ready","store":"memory","warnings":["everything is lost when the process ends"]}`
	for _, path := range []string{"/startup", "/readiness"} {
		if a := s.ask(t, http.MethodGet, path); a.status != http.StatusOK || strings.TrimSpace(a.body) != want {
			t.Errorf("%s: got %d %s", path, a.status, a.body)
		}
	}
}

func TestReadinessFollowsTheStore(t *testing.T) {
	t.Parallel()
	over := newSpyStore()
	s := start(t, over)
	over.fail(errDown)
	isReady := func() bool { return s.ask(t, http.MethodGet, "/readiness").status == http.StatusOK }
	eventually(t, "readiness fails", func() bool { return !isReady() })
	a := s.ask(t, http.MethodGet, "/readiness")
	if !strings.Contains(a.body, `"state":"store unavailable"`) || !strings.Contains(a.body, "the store is down") {
		t.Errorf("got %s", a.body)
	}
	if a := s.ask(t, http.MethodGet, "/startup"); a.status != http.StatusOK {
		t.Errorf("startup: got %d, it must stay", a.status)
	}
	if a := s.ask(t, http.MethodGet, "/liveness"); a.status != http.StatusOK {
		t.Errorf("liveness: got %d, it must not depend on the store", a.status)
	}
	over.fail(nil)
	eventually(t, "readiness returns", isReady)
}

func TestUnfitStoreEndsRun(t *testing.T) {
	t.Parallel()
	over := newSpyStore()
	over.fail(semantics.Errorf(semantics.PreconditionFailed, "it evicts keys"))
	s := launch(t, over)
	wait(t, "end of Run", s.done)
	if semantics.CodeOf(s.err) != semantics.PreconditionFailed {
		t.Errorf("got %v", s.err)
	}
}

func TestDrainServesSettlementsAndSends(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New(), func(c *proxy.Config) { c.DrainTimeout = patience })
	s.send(t, "one")
	taken := s.receive(t)
	waiting := make(chan error, 1)
	go func() { // a receive that waits when the drain begins ends empty
		response, err := s.messages.Receive(t.Context(), &sidebusv1.ReceiveRequest{Source: orders})
		if err == nil && len(response.GetMessages()) > 0 {
			err = errStop
		}
		waiting <- err
	}()

	s.stop()
	eventually(t, "readiness fails", func() bool {
		a := s.ask(t, http.MethodGet, "/readiness")
		return a.status == http.StatusServiceUnavailable && strings.Contains(a.body, `"state":"draining"`)
	})
	if err := <-waiting; err != nil && infoOf(t, err).GetMetadata()["cause"] != "draining" {
		t.Errorf("the waiting receive ended with %v", err)
	}
	_, err := s.messages.Receive(t.Context(), receiveNow())
	if status.Code(err) != codes.Unavailable || infoOf(t, err).GetMetadata()["cause"] != "draining" {
		t.Errorf("a new receive: got %v", err)
	}
	s.send(t, "two")
	if a := s.call(t, http.MethodPost, "/v1/queues/orders/messages:renewLocks", `{"lockTokens":["`+taken[0].GetLockToken()+`"]}`); a.status != http.StatusOK {
		t.Errorf("renew: %d %s", a.status, a.body)
	}
	select {
	case <-s.done:
		t.Fatal("it stopped while a message was in hand")
	default:
	}
	s.post(t, "complete", `{"lockTokens":["`+taken[0].GetLockToken()+`"]}`)
	wait(t, "end of Run", s.done)
	if s.err != nil {
		t.Errorf("Run: %v", s.err)
	}
}

func TestDrainGivesBackWhatIsNotSettled(t *testing.T) {
	t.Parallel()
	over := memstore.New()
	s := start(t, over)
	s.send(t, "one")
	s.receive(t)
	s.stop()
	wait(t, "end of Run", s.done)
	if s.err != nil {
		t.Errorf("Run: %v", s.err)
	}
	other := start(t, over)
	taken := other.receive(t)
	if len(taken) != 1 || taken[0].GetDeliveryCount() != 1 {
		t.Errorf("got %v, want the message with delivery count 1", taken)
	}
}

func TestDrainRouteTellsWhatIsHeld(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New(), func(c *proxy.Config) { c.DrainTimeout = patience })
	s.send(t, "one")
	taken := s.receive(t)
	if a := s.ask(t, http.MethodPost, "/drain?timeout=1ms"); a.status != http.StatusOK || strings.TrimSpace(a.body) != `{"held":1}` {
		t.Errorf("got %d %s", a.status, a.body)
	}
	if a := s.ask(t, http.MethodPost, "/drain?timeout=soon"); a.status != http.StatusBadRequest {
		t.Errorf("got %d %s", a.status, a.body)
	}
	if a := s.ask(t, http.MethodGet, "/drain"); a.status != http.StatusMethodNotAllowed {
		t.Errorf("GET: got %d", a.status)
	}
	s.post(t, "complete", `{"lockTokens":["`+taken[0].GetLockToken()+`"]}`)
	if a := s.ask(t, http.MethodPost, "/drain"); strings.TrimSpace(a.body) != `{"held":0}` {
		t.Errorf("got %s", a.body)
	}
	if got := strings.Count(s.log.String(), "msg=audit method=Drain wire=admin code=OK peer=127.0.0.1:"); got != 2 {
		t.Errorf("the audit has %d drains, want 2: %s", got, s.log)
	}
}

// The duration of a receive is what Sidebus needs, not what it waits for messages.
func TestDurationsAreWithoutWaits(t *testing.T) {
	t.Parallel()
	const waits = 2 * time.Second
	s := start(t, memstore.New())
	s.post(t, "receive", `{"maxWait":"2s"}`)
	for _, wire := range []string{"http", "grpc"} {
		if wire == "grpc" {
			if _, err := s.messages.Receive(t.Context(), &sidebusv1.ReceiveRequest{Source: orders, MaxWait: durationpb.New(waits)}); err != nil {
				t.Fatal(err)
			}
		}
		labels := []string{`method="Messages.Receive"`, `wire="` + wire + `"`}
		s.eventuallyCounts(t, 1, "sidebus_rpc_duration_seconds_count", labels...)
		if took := s.sum(t, "sidebus_rpc_duration_seconds_sum", labels...); took >= waits.Seconds() {
			t.Errorf("%s: took %v s, with a wait of %s", wire, took, waits)
		}
	}
}

// The address for other machines shows probes and metrics, and neither settings nor profiles. The sidecar cannot be
// drained through it.
func TestProbeAddressHasProbesAndMetricsOnly(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New(), func(c *proxy.Config) { c.ProbeAddr, c.Pprof = "127.0.0.1:0", true })
	at := "http://" + s.proxy.ProbeAddr().String()
	for path, want := range map[string]int{
		"GET /startup": 200, "GET /readiness": 200, "GET /liveness": 200, "GET /healthz/ready": 200, "GET /metrics": 200, "HEAD /metrics": 200,
		"POST /drain": 404, "GET /drain": 404, "GET /config": 404, "GET /debug/pprof/": 404, "GET /debug/pprof/heap": 404, "POST /metrics": 405,
		"GET /v1/queues": 404,
	} {
		method, path, _ := strings.Cut(path, " ")
		if a := s.exchange(t, newRequest(t, method, at+path, "")); a.status != want {
			t.Errorf("%s %s: got %d %s, want %d", method, path, a.status, a.body, want)
		}
	}
	if s.broker.Draining() {
		t.Error("the sidecar was drained")
	}
}

// A client that has mistaken the port gets an answer it can read, which says where the API is.
func TestAdminAddressAnswersInJSON(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	for path, want := range map[string]string{
		"POST /v1/queues/orders/messages:send": `"reason":"ROUTE_NOT_FOUND","message":"there is no route /v1/queues/orders/messages:send; the API is at --http-addr`,
		"GET /v1/queues":                       "ROUTE_NOT_FOUND",
		"GET /":                                "ROUTE_NOT_FOUND",
		"GET /drain":                           `"reason":"ROUTE_NOT_FOUND","message":"the route does not accept GET; use POST"`,
		"POST /metrics":                        "GET, HEAD",
		"POST /drain?timeout=soon":             `"reason":"INVALID_ARGUMENT"`,
	} {
		method, path, _ := strings.Cut(path, " ")
		if a := s.ask(t, method, path); !json.Valid([]byte(a.body)) || !strings.Contains(a.body, want) {
			t.Errorf("%s %s: got %d %s, want %s", method, path, a.status, a.body, want)
		}
	}
}

func TestAdminPages(t *testing.T) {
	t.Parallel()
	over := memstore.New()
	s := start(t, over, func(c *proxy.Config) {
		c.Version, c.Commit, c.Entities = "v1.2.3", "abc", over
		c.Settings = map[string]string{"store": "memory", "password": "***"}
	})
	s.send(t, "one")
	var settings map[string]string
	if a := s.ask(t, http.MethodGet, "/config"); json.Unmarshal([]byte(a.body), &settings) != nil || settings["password"] != "***" {
		t.Errorf("config: got %s", a.body)
	}
	for _, want := range []string{
		`sidebus_rpc_duration_seconds_count{code="OK",method="Messages.Send",wire="grpc"} 1`,
		`sidebus_rpc_duration_seconds_count{code="OK",method="Admin.EnsureQueue",wire="http"} 1`,
		`sidebus_messages_sent_total{entity="orders"} 1`, "sidebus_messages_held 0", "go_goroutines", "sidebus_store_up 1",
		`sidebus_build_info{commit="abc",go="go1.`, `sidebus_entity_messages{entity="orders",state="available"} 1`,
	} {
		eventually(t, want, func() bool { // a call is recorded after its answer
			return strings.Contains(s.ask(t, http.MethodGet, "/metrics").body, want)
		})
	}
}

// Profiles must be enabled, and the command line is never shown: it may have a password.
func TestAUTH_3_ProfilesAreOffByDefault(t *testing.T) {
	t.Parallel()
	for isOn, want := range map[bool]int{false: http.StatusNotFound, true: http.StatusOK} {
		s := start(t, memstore.New(), func(c *proxy.Config) { c.Pprof = isOn })
		if a := s.ask(t, http.MethodGet, "/debug/pprof/goroutine?debug=1"); a.status != want {
			t.Errorf("pprof %t: got %d, want %d", isOn, a.status, want)
		}
		if a := s.ask(t, http.MethodGet, "/debug/pprof/cmdline"); a.status != http.StatusNotFound {
			t.Errorf("cmdline, pprof %t: got %d, want 404", isOn, a.status)
		}
	}
}

func TestHealthFollowsReadiness(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New(), func(c *proxy.Config) { c.DrainTimeout = patience })
	client := healthpb.NewHealthClient(s.conn)
	check := func(service string) (healthpb.HealthCheckResponse_ServingStatus, error) {
		response, err := client.Check(t.Context(), &healthpb.HealthCheckRequest{Service: service})
		return response.GetStatus(), err
	}
	for _, service := range []string{"", "sidebus.v1.Messages", "sidebus.v1.Sessions", "sidebus.v1.Admin"} {
		if got, err := check(service); err != nil || got != healthpb.HealthCheckResponse_SERVING {
			t.Errorf("%q: got %s, %v", service, got, err)
		}
	}
	if _, err := check("nobody"); status.Code(err) != codes.NotFound {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	watch, err := client.Watch(ctx, &healthpb.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []healthpb.HealthCheckResponse_ServingStatus{
		healthpb.HealthCheckResponse_SERVING, healthpb.HealthCheckResponse_NOT_SERVING,
	} {
		if got, err := watch.Recv(); err != nil || got.GetStatus() != want {
			t.Errorf("got %v, %v; want %s", got, err, want)
		}
		s.broker.BeginDrain()
	}
}

func TestPanicBecomesInternal(t *testing.T) {
	t.Parallel()
	over := newSpyStore()
	over.onPeek = func() { panic("boom") }
	s := start(t, over)
	_, err := s.messages.Peek(t.Context(), &sidebusv1.PeekRequest{Source: orders})
	if status.Code(err) != codes.Internal || infoOf(t, err).GetReason() != "INTERNAL" {
		t.Errorf("gRPC: got %v", err)
	}
	a := s.call(t, http.MethodPost, "/v1/queues/orders/messages:peek", `{}`)
	if reason, _ := a.reason(t); a.status != http.StatusInternalServerError || reason != "INTERNAL" {
		t.Errorf("HTTP: got %d %s", a.status, a.body)
	}
	if strings.Contains(a.body, "boom") || strings.Contains(a.body, "goroutine") {
		t.Errorf("the answer shows the inside: %s", a.body)
	}
	if log := s.log.String(); strings.Count(log, "panic=boom") != 2 || !strings.Contains(log, "lifecycle_test.go") {
		t.Errorf("the log lacks panic or stack:\n%s", log)
	}
	s.send(t, "it goes on")
}

func TestLogHasNeitherPayloadNorToken(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	s.send(t, "the payload")
	token := s.receive(t)[0].GetLockToken()
	s.post(t, "complete", `{"lockTokens":["`+token+`"]}`)
	eventually(t, "the last call is logged", func() bool { return strings.Contains(s.log.String(), "Messages.Complete") })
	if log := s.log.String(); strings.Contains(log, token) || strings.Contains(log, "payload") {
		t.Errorf("got\n%s", log)
	}
}
