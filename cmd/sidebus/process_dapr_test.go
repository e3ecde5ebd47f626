package main

import (
	"context"
	"encoding/base64"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	proto "github.com/dapr/dapr/pkg/proto/components/v1"
	runtimeproto "github.com/dapr/dapr/pkg/proto/runtime/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/cli"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/test/sidecartest"
)

// component is Dapr's side of a socket of a sidecar: one Component resource.
type component struct {
	proto.PubSubClient

	t   *testing.T
	ctx context.Context //nolint:containedctx // of its calls
}

// daprSocket gives the path of a socket, which must be short.
func daprSocket(t *testing.T, name string) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "sb") //nolint:usetesting // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	return filepath.Join(folder, name)
}

func connectDapr(t *testing.T, socket string) *component {
	t.Helper()
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), 3*sidecartest.Patience)
	t.Cleanup(cancel)
	return &component{PubSubClient: proto.NewPubSubClient(conn), t: t, ctx: metadata.AppendToOutgoingContext(ctx, "x-component-instance", "bus")}
}

func (c *component) init(properties map[string]string) {
	c.t.Helper()
	if _, err := c.Init(c.ctx, &proto.PubSubInitRequest{Metadata: &proto.MetadataRequest{Properties: properties}}); err != nil {
		c.t.Fatal(err)
	}
}

func (c *component) publish(topic, body string) error {
	_, err := c.Publish(c.ctx, &proto.PublishRequest{Topic: topic, Data: []byte(body), Metadata: map[string]string{"SessionId": "s"}})
	return err
}

func (c *component) subscribe(topic string) proto.PubSub_PullMessagesClient {
	c.t.Helper()
	stream, err := c.PullMessages(c.ctx)
	if err == nil {
		err = stream.Send(&proto.PullMessagesRequest{Topic: &proto.Topic{Name: topic}})
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return stream
}

// take waits for a message of a stream.
func (c *component) take(stream proto.PubSub_PullMessagesClient, body string) *proto.PullMessagesResponse {
	c.t.Helper()
	m, err := stream.Recv()
	if err != nil || string(m.GetData()) != body {
		c.t.Fatalf("got %q, %v; want %q", m.GetData(), err, body)
	}
	return m
}

func (c *component) ack(stream proto.PubSub_PullMessagesClient, m *proto.PullMessagesResponse) {
	c.t.Helper()
	if err := stream.Send(&proto.PullMessagesRequest{AckMessageId: m.GetId()}); err != nil {
		c.t.Fatal(err)
	}
}

// A stream of Dapr's runtime outlives Redis: what is answered while it is down is settled when it is back.
func TestDAPR_6_StreamOutlivesRedis(t *testing.T) {
	t.Parallel()
	for _, sessions := range []string{"false", "true"} {
		t.Run("sessions "+sessions, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t, "--appendfsync", "always")
			defer server.Stop()
			socket := daprSocket(t, "sidebus.sock")
			s := sidecartest.Start(t, "--store", server.URL, "--dapr-socket", socket)
			c := connectDapr(t, socket)
			c.init(map[string]string{"consumerID": "app", "entityKind": "queue", "requireSessions": sessions, "lockDurationInSec": "60"})
			stream := c.subscribe("orders")
			for _, body := range []string{"1", "2"} {
				if err := c.publish("orders", body); err != nil {
					t.Fatal(err)
				}
			}
			first := c.take(stream, "1")
			server.Kill()
			sidecartest.Eventually(t, "readiness fails", func() bool { return !isReady(t, s) })
			c.ack(stream, first)
			if err := c.publish("orders", "lost"); err == nil {
				t.Error("a message was taken that cannot be stored")
			}
			server.Restart(t, "--appendfsync", "always")
			second := c.take(stream, "2")
			c.ack(stream, second)
			sidecartest.Eventually(t, "sends work again", func() bool { return c.publish("orders", "3") == nil })
			c.ack(stream, c.take(stream, "3"))
			sidecartest.Eventually(t, "an empty queue", func() bool { return total(t, s, "orders") == "0" })
			for _, want := range []string{"sidebus_dapr_streams 1", `sidebus_dapr_deliveries_total{outcome="complete"} 3`} {
				sidecartest.Eventually(t, "the metrics have "+want, func() bool {
					return strings.Contains(s.Probe(t.Context(), http.MethodGet, "/metrics").Text, want)
				})
			}
			s.Signal(syscall.SIGTERM)
			if code := s.Exit(t); code != cli.Clean {
				t.Errorf("got exit code %d, want 0", code)
			}
			if _, err := os.Lstat(socket); !os.IsNotExist(err) {
				t.Errorf("the socket is still there: %v", err)
			}
		})
	}
}

// fakeDaprd is the API of Dapr's runtime.
type fakeDaprd struct {
	runtimeproto.UnimplementedDaprServer

	address          string
	isSubscribed     atomic.Bool
	asked, shutDowns atomic.Int64
}

func serveDaprd(t *testing.T) *fakeDaprd {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &fakeDaprd{address: listener.Addr().String()}
	server := grpc.NewServer()
	runtimeproto.RegisterDaprServer(server, d)
	var running sync.WaitGroup
	running.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() {
		server.Stop()
		running.Wait()
	})
	return d
}

func (d *fakeDaprd) GetMetadata(context.Context, *runtimeproto.GetMetadataRequest) (*runtimeproto.GetMetadataResponse, error) {
	d.asked.Add(1)
	about := &runtimeproto.GetMetadataResponse{}
	if d.isSubscribed.Load() {
		about.RegisteredComponents = []*runtimeproto.RegisteredComponents{{Name: "bus", Type: "pubsub.sidebus"}}
		about.Subscriptions = []*runtimeproto.PubsubSubscription{{PubsubName: "bus", Topic: "orders"}}
	}
	return about, nil
}

func (d *fakeDaprd) Shutdown(context.Context, *runtimeproto.ShutdownRequest) (*emptypb.Empty, error) {
	d.shutDowns.Add(1)
	return &emptypb.Empty{}, nil
}

// After a sidecar was killed under a running runtime the next one takes its socket, publishes without Init, and has the
// runtime shut down.
func TestDAPR_6_RestartHealsItself(t *testing.T) {
	t.Parallel()
	daprd := serveDaprd(t)
	socket := daprSocket(t, "sidebus.sock")
	args := []string{
		"--store", redistest.URL(t), "--namespace", redistest.Namespace(), "--dapr-socket", socket,
		"--dapr-grpc-addr", daprd.address,
	}
	s := sidecartest.Start(t, args...)
	c := connectDapr(t, socket)
	c.init(map[string]string{"consumerID": "app", "entityKind": "queue"})
	stream := c.subscribe("orders")
	if err := c.publish("orders", "1"); err != nil {
		t.Fatal(err)
	}
	c.take(stream, "1")
	daprd.isSubscribed.Store(true)
	s.Kill()
	if _, err := stream.Recv(); err == nil {
		t.Fatal("the stream goes on without its sidecar")
	}
	s = sidecartest.Start(t, args...)
	if err := c.publish("orders", "2"); err != nil {
		t.Fatal(err)
	}
	if n := total(t, s, "orders"); n != "2" {
		t.Errorf("%s messages in the queue, want both", n)
	}
	sidecartest.Eventually(t, "the runtime is shut down", func() bool { return daprd.shutDowns.Load() == 1 })

	before := daprd.asked.Load()
	quiet := sidecartest.Start(t, append(slices.Clone(args[:4]), "--dapr-socket", daprSocket(t, "sidebus.sock"), "--dapr-self-heal=false", args[6], args[7])...)
	quiet.Signal(syscall.SIGTERM)
	quiet.Exit(t)
	if n := daprd.asked.Load() - before; n != 0 {
		t.Errorf("the runtime was asked %d times by a sidecar that is to leave it alone", n)
	}
}

// A sidecar has not started before daprd can find it, which looks once. Here something holds that up: a daprd that does
// not answer.
func TestDAPR_1_StartedWhenTheSocketIsThere(t *testing.T) {
	t.Parallel()
	silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	socket := daprSocket(t, "sidebus.sock")
	sidecartest.Start(t, "--store", "memory", "--dapr-socket", socket, "--dapr-grpc-addr", silent.Addr().String())
	if _, err := os.Lstat(socket); err != nil {
		t.Error(err)
	}
}

// The sockets that stand for Dapr's own components take Components that were written for these.
func TestDAPR_4_DropInOfServe(t *testing.T) {
	t.Parallel()
	socket := daprSocket(t, "sidebus.sock")
	s := sidecartest.Start(t, "--store", "memory", "--dapr-socket", socket, "--dapr-drop-in")
	c := connectDapr(t, filepath.Join(filepath.Dir(socket), "azure.servicebus.queues.sock"))
	c.init(map[string]string{"consumerID": "app", "connectionString": "Endpoint=sb://x/;SharedAccessKey=secret", "maxDeliveryCount": "3"})
	if err := c.publish("orders", "1"); err != nil {
		t.Fatal(err)
	}
	answer := s.Must(t, http.MethodPost, "/v1/queues/orders/messages:receive", `{"maxWait":"1s"}`)
	if body := base64.StdEncoding.EncodeToString([]byte("1")); !strings.Contains(answer.Text, body) {
		t.Errorf("got %s", answer.Text)
	}
	if strings.Contains(s.Log(), "secret") {
		t.Error("the log has a password")
	}
}

func TestDAPR_1_SettingsOfServe(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, want string }{
		{"--dapr-drop-in", "--dapr-drop-in needs --dapr-socket"},
		{"--dapr-socket sidebus", "--dapr-socket"},
		{"--dapr-socket x.sock --dapr-grpc-addr nowhere", "--dapr-grpc-addr"},
		{"--dapr-socket x.sock --dapr-grpc-addr 127.0.0.1:0", "--dapr-grpc-addr"},
	} {
		code, output := sidecartest.Run(t, append([]string{"serve", "--store", "memory"}, strings.Fields(c.args)...)...)
		if code != cli.Failure || !strings.Contains(output, c.want) {
			t.Errorf("%s: got exit code %d and %q", c.args, code, output)
		}
	}
}
