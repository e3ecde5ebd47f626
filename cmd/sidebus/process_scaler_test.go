package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/sidebus/sidebus/proto/externalscaler"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/test/sidecartest"
)

// scaled is a scaler beside a sidecar, and a client of it.
type scaled struct {
	externalscaler.ExternalScalerClient

	t       *testing.T
	sidecar *sidecartest.Sidecar
	scaler  *sidecartest.Scaler
}

// startScaled starts both on one Redis, the scaler with further flags.
func startScaled(t *testing.T, flags ...string) *scaled {
	t.Helper()
	store := []string{"--store", redistest.URL(t), "--namespace", redistest.Namespace()}
	s := &scaled{t: t, sidecar: sidecartest.Start(t, store...), scaler: sidecartest.LaunchScaler(t, append(store, flags...)...)}
	s.ExternalScalerClient = externalscaler.NewExternalScalerClient(dialScaler(t, s.scaler.Addr, insecure.NewCredentials()))
	return s
}

func dialScaler(t *testing.T, addr string, how credentials.TransportCredentials) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(how))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func triggerOf(source, key, value string) *externalscaler.ScaledObjectRef {
	return &externalscaler.ScaledObjectRef{
		Name: "app", Namespace: "shop", ScalerMetadata: map[string]string{"scalerAddress": "x:1", "source": source, key: value},
	}
}

// valueOf returns a metric of a trigger.
func (s *scaled) valueOf(trigger *externalscaler.ScaledObjectRef, metric string) float64 {
	s.t.Helper()
	got, err := s.GetMetrics(s.t.Context(), &externalscaler.GetMetricsRequest{ScaledObjectRef: trigger, MetricName: metric})
	if err != nil {
		s.t.Fatal(err)
	}
	return got.GetMetricValues()[0].GetMetricValueFloat()
}

func TestCOMP_16_ScalerBesideASidecar(t *testing.T) {
	t.Parallel()
	s := startScaled(t)
	for _, partitions := range []int{1, 3} {
		queue := fmt.Sprintf("orders-%d", partitions)
		s.sidecar.Queue(t, queue, fmt.Sprintf(`{"partitions":%d}`, partitions))
		byMessages, byAge := triggerOf("queues/"+queue, "messages", "5"), triggerOf("queues/"+queue, "maxAge", "1m")
		stream, err := s.StreamIsActive(t.Context(), byMessages)
		if err != nil {
			t.Fatal(err)
		}
		wantPush(t, stream, false)
		for range 4 {
			s.sidecar.Send(t, queue, "a")
		}
		wantPush(t, stream, true)
		sidecartest.Eventually(t, "all are counted", func() bool { return s.valueOf(byMessages, "messages") == 4 })
		if age := s.valueOf(byAge, "age"); age <= 0 {
			t.Errorf("the age is %v", age)
		}
		s.sidecar.Must(t, http.MethodPost, "/v1/queues/"+queue+"/messages:purge", `{}`)
		wantPush(t, stream, false)
	}
	_, err := s.IsActive(t.Context(), triggerOf("queues/none", "messages", "5"))
	if status.Code(err) != codes.NotFound {
		t.Errorf("got %v", err)
	}
	// KEDA does without what this server does not implement.
	specs, err := s.StreamMetricSpec(t.Context(), triggerOf("queues/none", "messages", "5"))
	if err == nil {
		_, err = specs.Recv()
	}
	if status.Code(err) != codes.Unimplemented {
		t.Errorf("got %v", err)
	}
	for _, page := range []string{"/healthz/ready", "/metrics"} {
		if answer := s.scaler.Probe(t.Context(), page); answer.Status != http.StatusOK {
			t.Errorf("%s: got %d %s", page, answer.Status, answer.Text)
		}
	}
}

// wantPush waits for the next push of a stream.
func wantPush(t *testing.T, stream grpc.ServerStreamingClient[externalscaler.IsActiveResponse], want bool) {
	t.Helper()
	got, err := stream.Recv()
	if err != nil || got.GetResult() != want {
		t.Fatalf("got %v, %v; want %t", got, err, want)
	}
}

// While no sidecar runs, the scaler does what theirs would: a scheduled message of a topic comes to its subscription, and
// one that is to be forwarded to its destination. Otherwise nothing would start the pods that wait for them.
func TestCOMP_8_WorkThatComesWhileNoSidecarRuns(t *testing.T) {
	t.Parallel()
	s := startScaled(t)
	for _, put := range [][2]string{
		{"topics/news", "{}"},
		{"topics/news/subscriptions/eu", "{}"},
		{"queues/orders", "{}"},
		{"queues/inbox", `{"forwardTo":"orders"}`},
	} {
		s.sidecar.Must(t, http.MethodPut, "/v1/"+put[0], put[1])
	}
	var streams []grpc.ServerStreamingClient[externalscaler.IsActiveResponse]
	for _, source := range []string{"topics/news/subscriptions/eu", "queues/orders"} {
		stream, err := s.StreamIsActive(t.Context(), triggerOf(source, "messages", "5"))
		if err != nil {
			t.Fatal(err)
		}
		wantPush(t, stream, false)
		streams = append(streams, stream)
	}
	soon := time.Now().Add(3 * time.Second).UTC().Format(time.RFC3339Nano)
	for _, target := range []string{"topics/news", "queues/inbox"} {
		s.sidecar.Must(t, http.MethodPost, "/v1/"+target+"/messages:send",
			fmt.Sprintf(`{"messages":[{"text":"a","scheduledEnqueueTime":%q}]}`, soon))
	}
	s.sidecar.Signal(syscall.SIGKILL)
	s.sidecar.Exit(t)
	for _, stream := range streams {
		wantPush(t, stream, true)
	}
}

// A scaler that stops ends its streams without an error, so that KEDA opens others at once.
func TestCOMP_8_ScalerStops(t *testing.T) {
	t.Parallel()
	s := startScaled(t)
	s.sidecar.Queue(t, "orders", `{}`)
	stream, err := s.StreamIsActive(t.Context(), triggerOf("queues/orders", "messages", "5"))
	if err != nil {
		t.Fatal(err)
	}
	wantPush(t, stream, false)
	s.scaler.Signal(syscall.SIGTERM)
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("got %v", err)
	}
	if code := s.scaler.Exit(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestAUTH_4_ScalerThatOthersReach(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--addr", ":0"}, "--addr is"},
		{[]string{"--addr", "0.0.0.0:0", "--tls-cert-file", "a", "--tls-key-file", "b"}, "--addr is"},
		{[]string{"--addr", "nowhere"}, "must be host:port"},
		{[]string{"--store", "memory"}, "no other process can read it"},
		{[]string{"--metrics-entities", "-1"}, "must be 0 to"},
	} {
		code, out := sidecartest.Run(t, append([]string{"scaler", "--store", redistest.URL(t)}, c.args...)...)
		if code == 0 || !strings.Contains(out, c.want) {
			t.Errorf("%v: exit code %d\n%s", c.args, code, out)
		}
	}
	open := sidecartest.LaunchScaler(t, "--store", redistest.URL(t), "--addr", "0.0.0.0:0", "--allow-anonymous")
	if open.HasExited() {
		t.Errorf("it ended:\n%s", open.Log())
	}
}

// KEDA proves who it is with a certificate: without a policy any that the authority has signed, with one those that the
// policy grants Listen on the source.
func TestAUTH_4_ScalerKnowsCertificates(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := func(name string) string { return filepath.Join(folder, name) }
	ca, caText, _ := signer{}.sign(t, "authority")
	replace(t, file("ca.pem"), caText)
	for _, name := range []string{"scaler", "keda", "other"} {
		_, certificate, key := ca.sign(t, name)
		replace(t, file(name+".pem"), certificate)
		replace(t, file(name+".key"), key)
	}
	replace(t, file("policy.yaml"),
		"identities:\n- {name: keda, certificates: [CN=keda], grants: [{entities: [orders], claims: [Listen]}]}\n")
	with := []string{"--tls-client-ca-file", file("ca.pem"), "--tls-cert-file", file("scaler.pem"), "--tls-key-file", file("scaler.key")}
	pool := x509.NewCertPool()
	pool.AddCert(ca.certificate)
	client := func(addr, name string) externalscaler.ExternalScalerClient {
		config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}
		if name != "" {
			config.Certificates = []tls.Certificate{must[tls.Certificate](t)(tls.LoadX509KeyPair(file(name+".pem"), file(name+".key")))}
		}
		return externalscaler.NewExternalScalerClient(dialScaler(t, addr, credentials.NewTLS(config)))
	}
	open := startScaled(t, with...)
	guarded := startScaled(t, append(with, "--policy-file", file("policy.yaml"))...)
	for _, c := range []struct {
		s           *scaled
		name, queue string
		want        codes.Code
	}{
		{open, "keda", "orders", codes.OK},
		{open, "other", "orders", codes.OK},
		{open, "", "orders", codes.Unavailable},
		{guarded, "keda", "orders", codes.OK},
		{guarded, "keda", "carts", codes.PermissionDenied},
		{guarded, "other", "orders", codes.Unauthenticated},
		{guarded, "", "orders", codes.Unauthenticated},
	} {
		c.s.sidecar.Queue(t, c.queue, `{}`)
		_, err := client(c.s.scaler.Addr, c.name).IsActive(t.Context(), triggerOf("queues/"+c.queue, "messages", "5"))
		if got := status.Code(err); got != c.want {
			t.Errorf("%q about %s: got %v, want %s", c.name, c.queue, err, c.want)
		}
	}
}
