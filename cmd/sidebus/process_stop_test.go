package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/cli"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/test/filetest"
	"github.com/sidebus/sidebus/test/sidecartest"
)

// stopCeiling only bounds a hang: the process ends itself with another exit code when its budget is over.
const stopCeiling = 20 * time.Second

// Clients that read nothing, on every wire, and a lock that nobody settles: a stop takes its budget and not one for
// each phase, and what is held is given back before it ends.
func TestSETTLE_10_AStopKeepsItsBudget(t *testing.T) {
	t.Parallel()
	store, namespace := redistest.URL(t), redistest.Namespace()
	second := sidecartest.Start(t, "--store", store, "--namespace", namespace)
	for _, queue := range []string{"orders", "large", "pushed"} {
		second.Queue(t, queue, `{"lockDuration":"5m"}`)
	}
	app, working := stalledApp(t)
	config := filetest.Write(t, "handlers: [{source: queues/pushed, url: \"http://"+app+"\"}]\n")
	first := sidecartest.Start(t, "--store", store, "--namespace", namespace, "--config", config, "--drain-timeout", "6s")
	second.Send(t, "pushed", "pushed")
	within(t, working)

	body := `{"messages":[{"text":"` + strings.Repeat("x", 200<<10) + `"}]}`
	for range 15 {
		second.Must(t, http.MethodPost, "/v1/queues/large/messages:send", body)
	}
	for range 5 {
		stalledReceive(t, first.HTTP)
	}
	stalledSubscribe(t, first.GRPC)
	second.Send(t, "orders", "locked")
	wantMessage(t, first, "orders", "locked")
	began := time.Now()
	first.Signal(syscall.SIGTERM)
	if code := first.Exit(t); code != cli.Clean {
		t.Errorf("got exit code %d, want 0", code)
	}
	took := time.Since(began)
	t.Logf("the stop took %s", took)
	if took > stopCeiling {
		t.Errorf("the stop took %s with a budget of 6s", took)
	}
	after := 0
	for _, line := range []string{`"draining"`, `"released messages`, `"stopping servers"`, `"servers stopped"`} {
		at := strings.Index(first.Log(), line)
		if at < after {
			t.Errorf("the log has %s at %d, want it behind %d:\n%s", line, at, after, first.Log())
		}
		after = max(at, after)
	}
	if again := wantMessage(t, second, "orders", "locked"); again.DeliveryCount != 1 {
		t.Errorf("delivery count after the stop: got %d, want 1", again.DeliveryCount)
	}
}

// stalledReceive receives a message, asks for more than the buffers of a connection hold, and reads nothing of the
// answers.
func stalledReceive(t *testing.T, addr string) {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	ask := func(verb, body string) {
		if _, err := fmt.Fprintf(conn, "POST /v1/queues/large/messages:%s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n%s", verb, len(body), body); err != nil {
			t.Fatal(err)
		}
	}
	ask("receive", `{"maxWait":"0s"}`)
	for range 12 {
		ask("peek", `{"maxMessages":20}`)
	}
	if _, err := conn.Read(make([]byte, 1)); err != nil { // the first answer has begun
		t.Fatal(err)
	}
}

// stalledSubscribe opens a stream and reads nothing after the first response.
func stalledSubscribe(t *testing.T, addr string) {
	t.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithInitialWindowSize(64<<10))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	t.Cleanup(cancel)
	stream, err := sidebusv1.NewMessagesClient(conn).Subscribe(ctx)
	if err != nil {
		t.Fatal(err)
	}
	open := &sidebusv1.SubscribeRequest{RequestId: "1", Request: &sidebusv1.SubscribeRequest_Open{Open: &sidebusv1.SubscribeOpen{Source: "queues/large"}}}
	if err := stream.Send(open); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
}

// stalledApp is an app that takes a call and never answers.
func stalledApp(t *testing.T) (addr string, working chan struct{}) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	working = make(chan struct{})
	served := make(chan struct{})
	go func() {
		defer close(served)
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close() //nolint:errcheck // nothing can be lost
		close(working)
		for in := bufio.NewReader(conn); err == nil; {
			_, err = in.ReadByte() // until the sidecar hangs up
		}
	}()
	t.Cleanup(func() { _ = listener.Close(); <-served })
	return listener.Addr().String(), working
}
