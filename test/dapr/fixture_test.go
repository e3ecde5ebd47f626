package dapr

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "github.com/dapr/go-sdk/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/test/dapr/daprtest"
	"github.com/sidebus/sidebus/test/sidecartest"
)

const (
	sidebusType = "pubsub.sidebus"
	appID       = "orders-app" // the name of the subscription too, unless consumerID says otherwise
)

// The apps that tests have.
const (
	overGRPC   = "grpc"
	overHTTP   = "http"
	overStream = "stream"
)

// pod is what runs in one pod: Sidebus, daprd, and an app.
type pod struct {
	bus   *sidecartest.Sidecar
	daprd *daprtest.Daprd
	app   *daprtest.App
	sdk   sdk.Client // of the daprd

	sockets   string
	resources string   // folder of daprd's Component files
	serve     []string // flags of Sidebus
}

// setup says what a pod is made of. The zero value is one Component "bus" without metadata.
type setup struct {
	metadata  map[string]string // of the Component "bus"
	resources []string          // files in place of that
	store     string            // URL; "" is the Redis that all share
	namespace string            // "": one of its own
	serve     []string          // further flags of Sidebus
}

// start starts Sidebus alone.
func start(t testing.TB, s setup) *pod {
	t.Helper()
	if s.resources == nil {
		s.resources = []string{daprtest.Component("bus", sidebusType, s.metadata)}
	}
	if s.store == "" {
		s.store = redistest.URL(t)
	}
	if s.namespace == "" {
		s.namespace = redistest.Namespace()
	}
	p := &pod{sockets: daprtest.Sockets(t), resources: daprtest.Resources(t, s.resources...)}
	p.serve = append([]string{"--store", s.store, "--namespace", s.namespace, "--dapr-socket", filepath.Join(p.sockets, "sidebus.sock")}, s.serve...)
	p.bus = sidecartest.Start(t, p.serve...)
	return p
}

// options are those of the pod's daprd.
func (p *pod) options(flags ...string) daprtest.Options {
	return daprtest.Options{AppID: appID, Resources: p.resources, Sockets: p.sockets, App: p.app, Flags: flags}
}

// run starts an app of a kind and daprd, and waits until there are subscriptions. A kind of "" is daprd alone.
func (p *pod) run(t testing.TB, kind string, subscriptions ...daprtest.Subscription) {
	t.Helper()
	switch kind {
	case overGRPC:
		p.app = daprtest.GRPC(t, subscriptions...)
	case overHTTP:
		p.app = daprtest.HTTP(t, subscriptions...)
	}
	p.startDaprd(t, p.options())
	if kind == overStream {
		if len(subscriptions) != 1 {
			t.Fatal("a stream has one subscription")
		}
		p.app = daprtest.Stream(t, p.daprd, subscriptions[0])
	}
	for _, s := range subscriptions {
		p.awaitSource(t, s.Topic)
	}
}

func (p *pod) startDaprd(t testing.TB, o daprtest.Options) {
	t.Helper()
	p.daprd = daprtest.Start(t, o)
	p.sdk = p.daprd.Client(t)
}

// awaitSource waits until what an app subscribed to is there: a message that is published before has no subscription to
// go to.
func (p *pod) awaitSource(t testing.TB, topic string) {
	t.Helper()
	topic, _, _ = strings.Cut(topic, ";")
	topic, _, _ = strings.Cut(topic, "/")
	sidecartest.Eventually(t, "there is a subscription to "+topic, func() bool {
		for _, path := range []string{queue(topic), subscription(topic)} {
			if p.bus.Call(t.Context(), http.MethodGet, "/v1/"+path, "").Status == http.StatusOK {
				return true
			}
		}
		return false
	})
}

func queue(name string) string { return "queues/" + url.PathEscape(name) }
func subscription(topic string) string {
	return "topics/" + url.PathEscape(topic) + "/subscriptions/" + appID
}

// publish publishes a text with metadata, names and values in turn.
func (p *pod) publish(t testing.TB, topic, text string, metadata ...string) {
	t.Helper()
	if err := p.tryPublish(t, topic, text, metadata...); err != nil {
		t.Fatal(err)
	}
}

func (p *pod) tryPublish(t testing.TB, topic, text string, metadata ...string) error {
	t.Helper()
	return p.sdk.PublishEvent(t.Context(), "bus", topic, text,
		sdk.PublishEventWithContentType("text/plain"), sdk.PublishEventWithMetadata(pairs(metadata)))
}

func pairs(list []string) map[string]string {
	m := map[string]string{}
	for i := 0; i+1 < len(list); i += 2 {
		m[list[i]] = list[i+1]
	}
	return m
}

// next waits for the next message, which must have a text.
func (p *pod) next(t testing.TB, text string) *daprtest.Delivery {
	t.Helper()
	d := p.app.Next(t)
	if string(d.Data) != text {
		t.Fatalf("got %q, want %q", d.Data, text)
	}
	return d
}

// finish takes messages with these texts and says Success.
func (p *pod) finish(t testing.TB, texts ...string) {
	t.Helper()
	for _, text := range texts {
		p.next(t, text).Answer(daprtest.Success)
	}
}

// finishAll is finish in whatever order they come: without sessions a runtime that hands over all at once keeps none.
func (p *pod) finishAll(t testing.TB, texts ...string) {
	t.Helper()
	left := map[string]bool{}
	for _, text := range texts {
		left[text] = true
	}
	for len(left) > 0 {
		d := p.app.Next(t)
		if !left[string(d.Data)] {
			t.Errorf("got %q, want one of %v", d.Data, left)
		}
		delete(left, string(d.Data))
		d.Answer(daprtest.Success)
	}
}

// quiet checks that nothing comes for a while.
func (p *pod) quiet(t testing.TB, wait time.Duration) {
	t.Helper()
	if d := p.app.Within(t, wait); d != nil {
		t.Fatalf("got %q with %v, want nothing", d.Data, d.Metadata)
	}
}

// count returns one of the counts of a source, like activeMessageCount.
func (p *pod) count(t testing.TB, source, name string) int {
	t.Helper()
	answer := p.bus.Call(t.Context(), http.MethodGet, "/v1/"+source+"/runtime", "")
	if answer.Status != http.StatusOK {
		t.Fatalf("runtime of %s: got %d %s", source, answer.Status, answer.Text)
	}
	n := 0
	if text, ok := answer.Body[name].(string); ok {
		if _, err := fmt.Sscan(text, &n); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// await waits until a count is what it should be.
func (p *pod) await(t testing.TB, source, name string, want int) {
	t.Helper()
	got := 0
	sidecartest.Eventually(t, fmt.Sprintf("%s of %s is %d", name, source, want), func() bool {
		got = p.count(t, source, name)
		return got == want
	})
}

// awaitEmpty waits until nothing is left, neither in the source nor among its dead letters.
func (p *pod) awaitEmpty(t testing.TB, source string) {
	t.Helper()
	p.await(t, source, "totalMessageCount", 0)
}

// stored is a message as the API of Sidebus shows it.
type stored struct {
	Body             []byte
	MessageID        string `json:"messageId"`
	SessionID        string `json:"sessionId"`
	CorrelationID    string `json:"correlationId"`
	Subject          string
	To               string
	ReplyTo          string
	ContentType      string
	TimeToLive       string
	DeliveryCount    int
	State            string
	DeadLetterReason string
	DeadLetterError  string `json:"deadLetterErrorDescription"`
	Properties       map[string]any
}

// peek looks at the messages of a source; subQueue is NONE or DEAD_LETTER.
func (p *pod) peek(t testing.TB, source, subQueue string) []stored {
	t.Helper()
	answer := p.bus.Must(t, http.MethodPost, "/v1/"+source+"/messages:peek", `{"maxMessages":100,"subQueue":"`+subQueue+`"}`)
	var got struct{ Messages []stored }
	if err := json.Unmarshal([]byte(answer.Text), &got); err != nil {
		t.Fatal(err)
	}
	return got.Messages
}

// onlyDeadLetter waits for the one dead letter of a source and gives it.
func (p *pod) onlyDeadLetter(t testing.TB, source string) stored {
	t.Helper()
	p.await(t, source, "deadLetterMessageCount", 1)
	return p.peek(t, source, "DEAD_LETTER")[0]
}

// send sends a message over Sidebus' own API.
func (p *pod) send(t testing.TB, target string, message map[string]any) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"messages": []any{message}})
	if err != nil {
		t.Fatal(err)
	}
	p.bus.Must(t, http.MethodPost, "/v1/"+target+"/messages:send", string(body))
}

// sendBytes sends a message that is too long for HTTP.
func (p *pod) sendBytes(t testing.TB, target string, body []byte) {
	t.Helper()
	conn, err := grpc.NewClient(p.bus.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = sidebusv1.NewMessagesClient(conn).Send(t.Context(), &sidebusv1.SendRequest{
		Target: target, Messages: []*sidebusv1.Message{{Content: &sidebusv1.Message_Body{Body: body}}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// perApp runs a test with each kind of app.
func perApp(t *testing.T, test func(t *testing.T, kind string)) {
	t.Helper()
	for _, kind := range []string{overGRPC, overHTTP, overStream} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			test(t, kind)
		})
	}
}

// perEntity runs a test with a topic and its subscription, and with a queue, and gives the source of "orders".
func perEntity(t *testing.T, test func(t *testing.T, kind, source string)) {
	t.Helper()
	for kind, source := range map[string]string{"topic": subscription("orders"), "queue": queue("orders")} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			test(t, kind, source)
		})
	}
}

// newestOnly skips a test of what older runtimes do not know.
func newestOnly(t *testing.T) {
	t.Helper()
	if !daprtest.IsNewest() {
		t.Skip("the runtime is too old for this")
	}
}
