package otel

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	proto "github.com/dapr/dapr/pkg/proto/components/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/sidebus/sidebus/proto/client"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/test/sidecartest"
)

func TestMain(m *testing.M) { sidecartest.Main(m) }

// pair is two sidecars on one Redis, which export to a collector, one over gRPC and the other over HTTP.
type pair struct {
	*collector

	a, b *sidecartest.Sidecar
}

// start starts a pair. more are flags of the second sidecar.
func start(t *testing.T, more ...string) pair {
	t.Helper()
	c := startCollector(t)
	flags := []string{"--store", redistest.URL(t), "--namespace", redistest.NamespaceUntil(t, redistest.URL(t))}
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
	t.Setenv("OTEL_METRIC_EXPORT_INTERVAL", "200")
	t.Setenv("OTEL_SERVICE_NAME", "a")
	a := sidecartest.Start(t, append(flags, "--otlp-endpoint", c.grpc)...)
	t.Setenv("OTEL_SERVICE_NAME", "b")
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.http)
	b := sidecartest.Start(t, append(flags, more...)...)
	return pair{c, a, b}
}

// callers are the contexts of the calls of producers: the trace, and the span in it.
func caller(n int) (trace, parent, header string) {
	trace, parent = fmt.Sprintf("%032x", 0xabc000+n), fmt.Sprintf("%016x", 0xdef000+n)
	return trace, parent, "00-" + trace + "-" + parent + "-01"
}

func post(t *testing.T, url, header, body string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if header != "" {
		request.Header.Set("traceparent", header)
	}
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= 300 {
		t.Fatalf("POST %s: %d %s %v", url, response.StatusCode, answer, err)
	}
	return string(answer)
}

func connect(t *testing.T, target string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// traced returns a context whose calls over gRPC are those of a caller.
func traced(ctx context.Context, header string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "traceparent", header)
}

// contextIn returns the only property, which is the trace context. The REST API has its name as the client wrote the
// header.
func contextIn(properties map[string]string) string {
	for name, value := range properties {
		if len(properties) == 1 && (strings.EqualFold(name, "traceparent") || name == "Diagnostic-Id") {
			return value
		}
	}
	return fmt.Sprint("no context in ", properties)
}

// A producer sends over each wire to one sidecar, and a consumer receives over each from the other.
func TestCOMP_20_OneTraceOverEveryWire(t *testing.T) {
	p := start(t)
	p.a.Queue(t, "orders", `{}`)
	overGRPC := connect(t, p.a.GRPC)
	sidebus, err := client.New(p.a.GRPC, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer sidebus.Close()
	sends := map[string]func(header, text string){
		"http": func(header, text string) {
			post(t, "http://"+p.a.HTTP+"/v1/queues/orders/messages:send", header, `{"messages":[{"text":"`+text+`"}]}`)
		},
		"grpc": func(header, text string) {
			_, err := sidebusv1.NewMessagesClient(overGRPC).Send(traced(t.Context(), header), &sidebusv1.SendRequest{
				Target: "queues/orders", Messages: []*sidebusv1.Message{{Content: &sidebusv1.Message_Text{Text: text}}},
			})
			if err != nil {
				t.Fatal(err)
			}
		},
		"client": func(header, text string) { // its calls share a stream
			sender, err := sidebus.NewSender("orders", nil)
			if err == nil {
				err = sender.SendMessage(traced(t.Context(), header), &client.Message{Body: []byte(text)}, nil)
			}
			if err != nil {
				t.Fatal(err)
			}
		},
		"publish": func(header, text string) { // the stream has no context, so the message brings its own
			stream, err := sidebusv1.NewMessagesClient(overGRPC).Publish(t.Context())
			if err == nil {
				err = stream.Send(&sidebusv1.PublishRequest{Target: "queues/orders", Messages: []*sidebusv1.Message{{
					Content:    &sidebusv1.Message_Text{Text: text},
					Properties: map[string]*sidebusv1.Value{"Diagnostic-Id": {Kind: &sidebusv1.Value_StringValue{StringValue: header}}},
				}}})
			}
			if err == nil {
				_, err = stream.Recv()
			}
			if err == nil {
				err = stream.CloseSend()
			}
			if err != nil {
				t.Fatal(err)
			}
		},
		"compat": func(header, text string) { post(t, "http://"+p.a.HTTP+"/orders/messages", header, text) },
	}
	receives := map[string]func() (token, parent string){
		"http": func() (string, string) {
			var got struct {
				Messages []struct {
					LockToken  string
					Properties map[string]string
				}
			}
			answer := post(t, "http://"+p.b.HTTP+"/v1/queues/orders/messages:receive", "", `{}`)
			if err := json.Unmarshal([]byte(answer), &got); err != nil || len(got.Messages) != 1 {
				t.Fatalf("got %s", answer)
			}
			m := got.Messages[0]
			return m.LockToken, contextIn(m.Properties)
		},
		"stream": func() (string, string) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			stream, err := sidebusv1.NewMessagesClient(connect(t, p.b.GRPC)).Subscribe(ctx)
			one := int32(1)
			if err == nil {
				err = stream.Send(&sidebusv1.SubscribeRequest{Request: &sidebusv1.SubscribeRequest_Open{
					Open: &sidebusv1.SubscribeOpen{Source: "queues/orders", Credits: &one},
				}})
			}
			for err == nil {
				var response *sidebusv1.SubscribeResponse
				if response, err = stream.Recv(); err != nil || response.GetDeliveries() == nil {
					continue
				}
				m := response.GetDeliveries().GetDeliveries()[0].GetMessages()[0]
				if err = stream.Send(&sidebusv1.SubscribeRequest{RequestId: "done", Request: &sidebusv1.SubscribeRequest_Settle{
					Settle: &sidebusv1.SubscribeSettle{
						LockTokens: []string{m.GetLockToken()},
						Verb:       &sidebusv1.SubscribeSettle_Complete{Complete: &sidebusv1.CompleteRequest{}},
					},
				}}); err == nil {
					_, err = stream.Recv()
				}
				if err != nil {
					break
				}
				properties := map[string]string{}
				for name, value := range m.GetProperties() {
					properties[name] = value.GetStringValue()
				}
				return "", contextIn(properties)
			}
			t.Fatal(err)
			return "", ""
		},
	}
	n := 0
	for wire, send := range sends {
		for other, receive := range receives {
			n++
			trace, parent, header := caller(n)
			send(header, "secret body")
			sent := p.await("send orders", of(trace))
			if got := sent.ParentSpanID().String(); got != parent || sent.service != "a" {
				t.Errorf("%s: the send is of %s and a child of %s, want %s", wire, sent.service, got, parent)
			}
			token, carried := receive()
			want := "00-" + trace + "-" + sent.SpanID().String() + "-01"
			if own := wire == "publish" || wire == "compat"; own {
				want = header // the producer's own is not replaced
			}
			if carried != want {
				t.Fatalf("%s: the message carries %s, want %s", wire, carried, want)
			}
			received := p.await("receive orders", of(trace))
			creation := strings.Split(carried, "-")[2]
			if link := received.Links().At(0); received.service != "b" || link.SpanID().String() != creation || received.ParentSpanID().String() != creation {
				t.Errorf("%s, %s: the receive is not linked to what created the message", wire, other)
			}
			if token != "" {
				post(t, "http://"+p.b.HTTP+"/v1/queues/orders/messages:complete", "", `{"lockTokens":["`+token+`"]}`)
			}
			settled := p.await("complete orders", of(trace))
			if settled.Links().Len() != 1 || text(settled.Attributes(), "messaging.operation.type") != "settle" {
				t.Errorf("%s, %s: the settlement is not linked", wire, other)
			}
		}
	}
	for _, s := range p.spans() {
		if text(s.Attributes(), "messaging.system") != "sidebus" || text(s.Attributes(), "messaging.destination.name") != "orders" {
			t.Errorf("%s has %v", s.Name(), s.Attributes().AsRaw())
		}
	}
	sidecartest.Eventually(t, "metrics", func() bool {
		return strings.Contains(strings.Join(p.metricNames(), " "), "sidebus_messages_sent_total")
	})
	if strings.Contains(p.texts(t), "secret body") {
		t.Error("a body was exported")
	}
}

// A batch is linked to each message; what was delivered before and what becomes a dead letter is an event.
func TestCOMP_21_BatchesRedeliveriesAndDeadLetters(t *testing.T) {
	p := start(t)
	p.a.Queue(t, "orders", `{"maxDeliveryCount":2}`)
	url := "http://" + p.b.HTTP + "/v1/queues/orders/messages:"
	var sent []span
	for n := range 2 {
		trace, _, header := caller(n)
		post(t, "http://"+p.a.HTTP+"/v1/queues/orders/messages:send", header, `{"messages":[{"text":"x"}]}`)
		sent = append(sent, p.await("send orders", of(trace)))
	}
	tokens := func(messages []sidecartest.Message) string {
		var all []string
		for _, m := range messages {
			all = append(all, m.LockToken)
		}
		encoded, _ := json.Marshal(all) // texts
		return string(encoded)
	}
	first := p.b.Receive(t, "orders", time.Minute)
	if len(first) != 2 {
		t.Fatalf("received %d messages", len(first))
	}
	received := p.await("receive orders", linkedTo(sent[0]))
	if !linkedTo(sent[1])(received) || received.TraceID() == sent[0].TraceID() || text(received.Attributes(), "messaging.batch.message_count") != "2" {
		t.Errorf("the receive of a batch: trace %s, links %d, %v", received.TraceID(), received.Links().Len(), received.Attributes().AsRaw())
	}
	if received.Events().Len() != 0 {
		t.Error("a first delivery is called a redelivery")
	}
	post(t, url+"abandon", "", `{"lockTokens":`+tokens(first)+`}`)
	p.await("abandon orders", linkedTo(sent[1]))
	second := p.b.Receive(t, "orders", time.Minute)
	again := p.await("receive orders", func(s span) bool { return s.Events().Len() > 0 })
	if e := again.Events().At(0); again.Events().Len() != 2 || e.Name() != "sidebus.redelivered" || text(e.Attributes(), "sidebus.message.delivery_count") != "2" {
		t.Errorf("events of the second delivery: %d, %s %v", again.Events().Len(), e.Name(), e.Attributes().AsRaw())
	}
	post(t, url+"deadLetter", "", `{"lockTokens":`+tokens(second[:1])+`,"reason":"BadOrder","description":"secret card number"}`)
	asked := p.await("dead_letter orders", linkedTo(sent[0]))
	if e := asked.Events().At(0); e.Name() != "sidebus.dead_lettered" || text(e.Attributes(), "sidebus.dead_letter.reason") != "BadOrder" {
		t.Errorf("event of the dead letter: %s %v", e.Name(), e.Attributes().AsRaw())
	}
	post(t, url+"abandon", "", `{"lockTokens":`+tokens(second[1:])+`}`)
	found := p.await("dead_letter orders", linkedTo(sent[1]))
	if e := found.Events().At(0); text(e.Attributes(), "sidebus.dead_letter.reason") != "MaxDeliveryCountExceeded" {
		t.Errorf("event of the dead letter: %v", e.Attributes().AsRaw())
	}
	if strings.Contains(p.texts(t), "secret card number") {
		t.Error("a description was exported")
	}
}

// The sidecar calls the app in a span of its own, whose context the app gets.
func TestCOMP_21_PushAndDapr(t *testing.T) {
	headers := make(chan string, 1)
	app := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { headers <- r.Header.Get("traceparent") }))
	defer app.Close()
	folder, err := os.MkdirTemp("", "otel") //nolint:usetesting // the name of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	config, socket := filepath.Join(folder, "sidebus.yaml"), filepath.Join(folder, "sidebus.sock")
	if err := os.WriteFile(config, []byte("handlers:\n- source: queues/orders\n  url: "+app.URL+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, "--config", config, "--dapr-socket", socket)
	p.a.Queue(t, "orders", `{}`)
	trace, _, header := caller(1)
	post(t, "http://"+p.a.HTTP+"/v1/queues/orders/messages:send", header, `{"messages":[{"text":"x"}]}`)
	sent := p.await("send orders", of(trace))
	process := p.await("process orders", of(trace))
	if process.ParentSpanID() != sent.SpanID() || process.Kind().String() != "Consumer" || text(process.Attributes(), "sidebus.outcome") != "complete" {
		t.Errorf("the span of the app: %s, %v", process.Kind(), process.Attributes().AsRaw())
	}
	if got, want := <-headers, "00-"+trace+"-"+process.SpanID().String()+"-01"; got != want {
		t.Errorf("the app got %s, want %s", got, want)
	}
	if settled := p.await("complete orders", of(trace)); settled.ParentSpanID() != process.SpanID() {
		t.Error("the settlement is not a child of the processing")
	}

	dapr := proto.NewPubSubClient(connect(t, "unix://"+socket))
	if _, err := dapr.Init(t.Context(), &proto.PubSubInitRequest{Metadata: &proto.MetadataRequest{}}); err != nil {
		t.Fatal(err)
	}
	trace, parent, header := caller(2)
	event := `{"specversion":"1.0","data":1,"traceparent":"` + header + `"}`
	if _, err := dapr.Publish(t.Context(), &proto.PublishRequest{Topic: "steps", Data: []byte(event)}); err != nil {
		t.Fatal(err)
	}
	published := p.await("send steps", of(trace))
	if published.ParentSpanID().String() != parent {
		t.Error("the publish is not a child of what the app did")
	}
}

// A sidecar works as before without its collector, and stops in time.
func TestCOMP_22_ACollectorThatIsAway(t *testing.T) {
	silent := "http://" + freeAddress(t)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "10")
	t.Setenv("OTEL_BSP_EXPORT_TIMEOUT", "100")
	s := sidecartest.Start(t, "--store", "memory", "--otlp-endpoint", silent)
	s.Queue(t, "orders", `{}`)
	sidecartest.Eventually(t, "spans are lost, and counted", func() bool {
		s.Send(t, "orders", "x")
		return strings.Contains(s.Probe(t.Context(), http.MethodGet, "/metrics").Text, `sidebus_spans_total{outcome="failed"}`)
	})
	if !strings.Contains(s.Log(), "telemetry cannot be exported") {
		t.Error("the log does not say that nothing is exported")
	}
	began := time.Now()
	s.Signal(syscall.SIGTERM)
	s.Exit(t)
	if took := time.Since(began); took > 25*time.Second {
		t.Errorf("the stop took %s", took)
	}
}
