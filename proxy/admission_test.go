package proxy_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// Idle connections lock out no other client, on any wire.
func TestQUOTA_5_IdleConnectionsMakeRoom(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New(), connections(20))
	for range 60 {
		c := rawDial(t, s.proxy.HTTPAddr())
		c.ask(t, http.MethodGet, "/v1/queues", 0, "")
		if a, ok := c.answer(t); !ok || a.status != http.StatusOK {
			t.Fatalf("a call on a new connection: got %d %s", a.status, a.body)
		}
	}
	for range 60 {
		conn := dial(t, s.proxy.GRPCAddr().String())
		if _, err := sidebusv1.NewAdminClient(conn).ListQueues(t.Context(), &sidebusv1.ListQueuesRequest{}); err != nil {
			t.Fatalf("a call on a new gRPC connection: %v", err)
		}
	}
	s.send(t, "on the connection that was there first")
	s.post(t, "peek", `{}`)
}

// Receives that wait leave places for calls that do not: the oldest wait ends early, with the empty answer that it may
// give at any time.
func TestQUOTA_5_WaitsLeaveRoomForSettlements(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New(), connections(200))
	mustPut(t, s, "/v1/queues/work", `{}`)
	var polls []<-chan answer
	waiting := func() int {
		n := 0
		for _, p := range polls {
			if len(p) == 0 {
				n++
			}
		}
		return n
	}
	for range 600 { // three times as many as there are places
		polls = append(polls, poll(t, s))
		if a := s.fresh(t, http.MethodPost, "/v1/queues/work/messages:send", `{"messages":[{"text":"x"}]}`); a.status != http.StatusOK {
			t.Fatalf("a send beside %d polls: got %d %s", waiting(), a.status, a.body)
		}
	}
	eventually(t, "the polls that are too many have an answer", func() bool { return waiting() <= 180 })
	answers := map[int]int{}
	for _, p := range polls {
		select {
		case a := <-p:
			answers[a.status]++
			if a.status == http.StatusTooManyRequests && a.header.Get("Retry-After") == "" || a.status == http.StatusOK && strings.TrimSpace(a.body) != `{"messages":[]}` {
				t.Errorf("got %d %v %s", a.status, a.header, a.body)
			}
		default:
			answers[0]++
		}
	}
	if answers[http.StatusOK]+answers[http.StatusTooManyRequests]+answers[0] != len(polls) || answers[0] < 100 {
		t.Errorf("the polls were answered %v, want empty answers, 429, and most of 180 waiting (0)", answers)
	}
}

// A wait that has lasted makes way for a new one, with the empty answer that it may give at any time.
func TestQUOTA_5_TheOldestWaitMakesWay(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New(), connections(10))
	s.closeHTTP(t)
	oldest := poll(t, s)
	eventually(t, "it waits", func() bool {
		return strings.Contains(s.ask(t, http.MethodGet, "/metrics").body, `sidebus_connections{wire="http"} 1`)
	})
	eventually(t, "the oldest ends", func() bool {
		poll(t, s)
		return len(oldest) == 1
	})
	if a := <-oldest; a.status != http.StatusOK || strings.TrimSpace(a.body) != `{"messages":[]}` {
		t.Errorf("the oldest: got %d %s, want the empty answer", a.status, a.body)
	}
	if a := s.ask(t, http.MethodGet, "/metrics"); strings.Contains(a.body, "sidebus_waits_ended_total 0\n") {
		t.Error("no wait was counted as ended")
	}
}

// Connections over gRPC whose calls bring no message are closed for new ones, but not those of a silent stream.
func TestQUOTA_5_CallsWhoseMessageDoesNotComeMakeWay(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New(), connections(10))
	s.closeHTTP(t)
	silent := s.publish(t)
	for range 9 {
		conn := rawDial(t, s.proxy.GRPCAddr())
		if _, err := conn.Write(halfCall("\x00\x00\x01\x00\x00abc")); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "all places are taken or asked for", func() bool {
		body := s.ask(t, http.MethodGet, "/metrics").body
		return strings.Contains(body, `sidebus_connections{wire="grpc"} 9`) || strings.Contains(body, `sidebus_connections{wire="grpc"} 10`)
	})
	eventually(t, "a call finds a place", func() bool {
		c := rawDial(t, s.proxy.HTTPAddr())
		defer c.Close() //nolint:errcheck // nothing can be lost
		c.ask(t, http.MethodGet, "/v1/queues", 0, "")
		a, ok := c.answer(t)
		return ok && a.status == http.StatusOK
	})
	s.eventuallyMeasured(t, "sidebus_requests_late_total 0")
	silent.send(publication(orders, "it goes on"))
	if got := silent.answers(1); got != "it goes on" {
		t.Errorf("the silent stream: got %s", got)
	}
}

// A connection too many is told so, with a time to come back, and the log does not repeat it.
func TestQUOTA_5_OneTooManyIsToldQuietly(t *testing.T) {
	t.Parallel()
	busy := &busyStore{store: memstore.New(), until: make(chan struct{})}
	s := start(t, busy, connections(10))
	defer close(busy.until)
	s.closeHTTP(t)
	for range 10 {
		rawDial(t, s.proxy.HTTPAddr()).ask(t, http.MethodGet, "/v1/queues/busy", 0, "")
	}
	eventually(t, "all places are taken", func() bool {
		c := rawDial(t, s.proxy.HTTPAddr())
		defer c.Close() //nolint:errcheck // nothing can be lost
		c.ask(t, http.MethodGet, "/v1/queues", 0, "")
		a, ok := c.answer(t)
		return ok && a.status == http.StatusTooManyRequests
	})
	for _, path := range []string{"/v1/queues", "/orders/messages/head"} {
		c := rawDial(t, s.proxy.HTTPAddr())
		c.ask(t, http.MethodDelete, path, 0, "")
		a, ok := c.answer(t)
		want := http.StatusTooManyRequests
		if strings.HasPrefix(path, "/orders") {
			want = http.StatusServiceUnavailable
		}
		if !ok || a.status != want || a.header.Get("Retry-After") == "" || a.header.Get("Connection") != "close" {
			t.Errorf("%s: got %d %v", path, a.status, a.header)
		}
	}
	for range 50 {
		conn := dial(t, s.proxy.GRPCAddr().String())
		if _, err := sidebusv1.NewAdminClient(conn).ListQueues(t.Context(), &sidebusv1.ListQueuesRequest{}); status.Code(err) != codes.Unavailable {
			t.Errorf("gRPC: got %v, want UNAVAILABLE", err)
		}
	}
	if n := strings.Count(s.log.String(), "connections or waits refused"); n != 1 {
		t.Errorf("the log says it %d times", n)
	}
	if a := s.ask(t, http.MethodGet, "/readiness"); a.status != http.StatusOK {
		t.Errorf("the probe: got %d", a.status)
	}
}

// Connections over the limit that say nothing shut out no others.
func TestQUOTA_5_SilentOnesTooManyMakeRoom(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New(), connections(20))
	s.closeHTTP(t)
	for range 60 {
		c := rawDial(t, s.proxy.HTTPAddr())
		if _, err := c.Write([]byte("GET /v1/queues HTTP/1.1\r\n")); err != nil {
			t.Fatal(err)
		}
	}
	s.eventuallyAccepted(t, 60)
	s.hasRoomSoon(t, 3)
}

// Requests whose bodies do not come keep no place of those that are for others.
func TestQUOTA_5_BodiesThatDoNotComeMakeRoom(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New(), connections(20))
	s.closeHTTP(t)
	for range 60 {
		isBusy(t, s)
	}
	s.eventuallyAccepted(t, 60) // two thirds of them over the limit
	s.hasRoomSoon(t, 5)
}

// A client that watches the health over gRPC stays as a stream does, and does not keep out calls.
func TestQUOTA_5_WatchesLeaveRoomForCalls(t *testing.T) {
	t.Parallel()
	// three places are kept: one for the watch that is refused, until it has ended, and one for the call
	s := start(t, memstore.New(), connections(30))
	watches := 0
	eventually(t, "a watch finds no place", func() bool {
		watch, err := healthpb.NewHealthClient(dial(t, s.proxy.GRPCAddr().String())).Watch(t.Context(), &healthpb.HealthCheckRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err = watch.Recv(); err == nil {
			watches++
			return false
		}
		if status.Code(err) != codes.ResourceExhausted || infoOf(t, err).GetReason() != "THROTTLED" {
			t.Errorf("the watch after %d: got %v, want THROTTLED", watches, err)
		}
		return true
	})
	if a := s.fresh(t, http.MethodGet, "/v1/queues", ""); a.status != http.StatusOK {
		t.Errorf("a call beside %d watches: got %d %s", watches, a.status, a.body)
	}
}

// A stop does not wait for connections over gRPC on which nothing has begun, and leaves nothing behind for them.
func TestQUOTA_5_StopIsNotHeldUpBySilentConnections(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New(), connections(1000))
	rawDial(t, s.proxy.GRPCAddr())
	if _, err := rawDial(t, s.proxy.GRPCAddr()).Write([]byte(http2.ClientPreface)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "both are there", func() bool {
		body := s.ask(t, http.MethodGet, "/metrics").body
		return strings.Contains(body, `sidebus_connections{wire="grpc"} 2`) || strings.Contains(body, `sidebus_connections{wire="grpc"} 3`)
	})
	s.stop()
	wait(t, "end", s.done)
	if text := s.log.String(); strings.Contains(text, "did not end in time") {
		t.Errorf("the log says %s", text)
	}
}

// closeHTTP closes the connection that start has used, and waits until the sidecar does not count it any more.
func (s *sidecar) closeHTTP(t *testing.T) {
	t.Helper()
	s.http.CloseIdleConnections()
	s.eventuallyMeasured(t, `sidebus_connections{wire="http"} 0`)
}

// eventuallyAccepted waits until n connections over HTTP were accepted. If that takes more than a second, some have made
// way for others by then.
func (s *sidecar) eventuallyAccepted(t *testing.T, n int) {
	t.Helper()
	eventually(t, "all connections are accepted", func() bool {
		const isHTTP = `wire="http"`
		open, ended := s.sum(t, "sidebus_connections", isHTTP), s.sum(t, "sidebus_connections_idle_ended_total", isHTTP)
		return open+ended == float64(n)
	})
}

// hasRoomSoon checks that connections without a request are closed for so many new ones after their second.
func (s *sidecar) hasRoomSoon(t *testing.T, calls int) {
	t.Helper()
	came := time.Now()
	eventually(t, "they had their second", func() bool { return time.Since(came) > 1100*time.Millisecond })
	for range calls {
		if a := s.fresh(t, http.MethodGet, "/v1/queues", ""); a.status != http.StatusOK {
			t.Errorf("a call on a new connection: got %d %s", a.status, a.body)
		}
	}
}

// fresh makes one request on a connection of its own. A busy sidecar has perhaps not noticed yet that connections before
// it were closed, or wait: then it answers THROTTLED for a moment, which is much shorter than what takes the places.
func (s *sidecar) fresh(t *testing.T, method, path, body string) answer {
	t.Helper()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for end := time.Now().Add(10 * time.Second); ; <-again.C {
		a := s.freshOnce(t, method, path, body)
		if a.status != http.StatusTooManyRequests || time.Now().After(end) {
			return a
		}
	}
}

func (s *sidecar) freshOnce(t *testing.T, method, path, body string) answer {
	t.Helper()
	c := rawDial(t, s.proxy.HTTPAddr())
	defer c.Close() //nolint:errcheck // nothing can be lost
	c.ask(t, method, path, len(body), body)
	a, ok := c.answer(t)
	if !ok {
		t.Fatal("no answer")
	}
	return a
}

// A stream that waits is not idle, and waits of gRPC calls make way like those over HTTP.
func TestQUOTA_5_StreamsStay(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New(), connections(50))
	var streams []sidebusv1.Messages_SubscribeClient
	for i := range 48 {
		stream, err := sidebusv1.NewMessagesClient(dial(t, s.proxy.GRPCAddr().String())).Subscribe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		open := &sidebusv1.SubscribeRequest{RequestId: "1", Request: &sidebusv1.SubscribeRequest_Open{
			Open: &sidebusv1.SubscribeOpen{Source: orders, Credits: proto.Int32(1)},
		}}
		// it was refused before: Recv has the reason
		if err := stream.Send(open); err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		_, err = stream.Recv()
		switch {
		case i < 45 && err != nil:
			t.Fatalf("stream %d: %v", i, err)
		case i >= 45 && (status.Code(err) != codes.ResourceExhausted || infoOf(t, err).GetReason() != "THROTTLED"):
			t.Errorf("stream %d, for which there is no place: %v", i, err)
		case err == nil:
			streams = append(streams, stream)
		}
	}
	for range 20 { // calls that do not wait find a place all the same, and no stream makes way for them
		if a := s.fresh(t, http.MethodGet, "/v1/queues", ""); a.status != http.StatusOK {
			t.Fatalf("got %d %s", a.status, a.body)
		}
	}
	for range streams {
		s.fresh(t, http.MethodPost, verbPath+"send", `{"messages":[{"text":"x"}]}`)
	}
	for i, stream := range streams {
		if _, err := stream.Recv(); err != nil {
			t.Errorf("stream %d: %v", i, err)
		}
	}
}
