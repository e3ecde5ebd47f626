package dapr

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/test/dapr/daprtest"
	"github.com/sidebus/sidebus/test/sidecartest"
)

// numbered returns subscriptions to a topic, each with a number of its own except the first, so that daprd opens a stream
// for each.
func numbered(s daprtest.Subscription, n int) []daprtest.Subscription {
	all := slices.Repeat([]daprtest.Subscription{s}, n)
	for i := 1; i < n; i++ {
		all[i].Topic = fmt.Sprintf("%s;lane=%d", s.Topic, i+1)
	}
	return all
}

// atATime checks that so many messages are with the app at a time, answers them, and returns their texts.
func atATime(t *testing.T, app *daprtest.App, n int) []string {
	t.Helper()
	var all []*daprtest.Delivery
	var texts []string
	for range n {
		d := app.Next(t)
		all, texts = append(all, d), append(texts, string(d.Data))
	}
	for _, d := range all {
		d.Answer(daprtest.Success)
	}
	return texts
}

// An app works on as many messages at a time as its subscription has streams, whether or not daprd passes on one message
// of a stream at a time.
func TestDAPR_1_StreamsOfOneSubscription(t *testing.T) {
	t.Parallel()
	perEntity(t, func(t *testing.T, kind, source string) {
		for _, app := range []string{overGRPC, overHTTP} {
			t.Run(app, func(t *testing.T) {
				t.Parallel()
				const streams, rounds = 4, 5
				p := start(t, setup{metadata: map[string]string{"entityKind": kind, "maxActiveMessages": "1"}})
				p.run(t, app, numbered(daprtest.Subscription{Topic: "orders"}, streams)...)
				var want, got []string
				for i := range streams * rounds {
					want = append(want, fmt.Sprint("m", i))
					p.publish(t, "orders", want[i])
				}
				for range rounds {
					got = append(got, atATime(t, p.app, streams)...)
				}
				slices.Sort(want)
				slices.Sort(got)
				if !slices.Equal(got, want) {
					t.Errorf("got %v, want each of %v once", got, want)
				}
				p.awaitEmpty(t, source)
			})
		}
	})
}

// A Subscription resource names a stream in the same way.
func TestDAPR_1_StreamsOfSubscriptionResources(t *testing.T) {
	t.Parallel()
	resources := []string{daprtest.Component("bus", sidebusType, map[string]string{"maxActiveMessages": "1"})}
	for i, s := range numbered(daprtest.Subscription{Topic: "orders"}, 3) {
		resources = append(resources, fmt.Sprintf(`apiVersion: dapr.io/v2alpha1
kind: Subscription
metadata: {name: orders-%d}
spec: {pubsubname: bus, topic: "%s", routes: {default: /on/0}}
`, i, s.Topic))
	}
	p := start(t, setup{resources: resources})
	// The app knows one route, and does not subscribe to "orders" itself.
	p.run(t, overHTTP, daprtest.Subscription{Topic: "other"})
	p.awaitSource(t, "orders")
	for i := range 6 {
		p.publish(t, "orders", fmt.Sprint("m", i))
	}
	for range 2 {
		atATime(t, p.app, 3)
	}
	p.awaitEmpty(t, subscription("orders"))
}

// Several Component resources with one consumerID are another way to the same.
func TestDAPR_1_StreamsOfSeveralComponents(t *testing.T) {
	t.Parallel()
	p := start(t, setup{resources: []string{
		daprtest.Component("bus", sidebusType, map[string]string{"maxActiveMessages": "1"}),
		daprtest.Component("bus-2", sidebusType, map[string]string{"maxActiveMessages": "1"}),
	}})
	p.run(t, overGRPC, daprtest.Subscription{Topic: "orders"}, daprtest.Subscription{Component: "bus-2", Topic: "orders"})
	for i := range 4 {
		p.publish(t, "orders", fmt.Sprint("m", i))
	}
	for range 2 {
		atATime(t, p.app, 2)
	}
	p.awaitEmpty(t, subscription("orders"))
}

// Each session is with one stream at a time and in order, and the streams work on different sessions at a time.
func TestDAPR_3_StreamsShareSessions(t *testing.T) {
	t.Parallel()
	perEntity(t, func(t *testing.T, kind, source string) {
		const sessions, messages, streams = 6, 8, 3
		p := start(t, setup{metadata: map[string]string{
			"entityKind": kind, "requireSessions": "true", "maxConcurrentSessions": "1", "maxDeliveryCount": "100",
			"redeliveryDelayInMs": "20", "maxRedeliveryDelayInSec": "1", "sessionIdleTimeoutInSec": "1",
		}})
		p.run(t, overGRPC, numbered(daprtest.Subscription{Topic: "orders"}, streams)...)
		for n := range messages {
			for s := range sessions {
				p.publish(t, "orders", fmt.Sprintf("s%d %d", s, n), "SessionId", fmt.Sprintf("s%d", s))
			}
		}
		a := newSessionApp(t, sessions, messages)
		for range streams {
			a.take(t, p.app.Next(t))
		}
		a.work(t, p.app)
		if a.most != streams {
			t.Errorf("the app worked on %d sessions at a time, want %d", a.most, streams)
		}
		p.awaitEmpty(t, source)
	})
}

// A failed message of any stream goes to the dead letters of the entity.
func TestDAPR_2_DeadLettersOfAStream(t *testing.T) {
	t.Parallel()
	perEntity(t, func(t *testing.T, kind, source string) {
		p := start(t, setup{metadata: map[string]string{"entityKind": kind}})
		s := daprtest.Subscription{Topic: "orders;lane=2", DeadLetterTopic: "orders/$deadletterqueue"}
		p.app = daprtest.HTTP(t, s)
		p.startDaprd(t, p.options())
		p.awaitSource(t, "orders")
		p.publish(t, "orders", "tea", "MessageId", "m-1")
		p.next(t, "tea").Answer(daprtest.Drop)
		if dead := p.onlyDeadLetter(t, source); dead.DeadLetterReason != "DaprDeadLetterTopic" || dead.MessageID != "m-1" {
			t.Errorf("got the dead letter %+v", dead)
		}
		p.await(t, source, "totalMessageCount", 1)
	})
}

func TestDAPR_1_WrongNumbersOfStreams(t *testing.T) {
	t.Parallel()
	p := start(t, setup{metadata: map[string]string{"entityKind": "queue"}})
	p.app = daprtest.HTTP(t, daprtest.Subscription{Topic: "orders"}, daprtest.Subscription{Topic: "orders;lane=0"},
		daprtest.Subscription{Topic: "orders;foo=1"})
	p.startDaprd(t, p.options())
	for _, topic := range []string{"orders;lane=0", "orders;foo=1"} {
		sidecartest.Eventually(t, "the log refuses "+topic, func() bool {
			return strings.Contains(p.bus.Log(), `topic \"`+topic+`\" has a semicolon, so it must end with ;lane=N`)
		})
	}
	if err := p.tryPublish(t, "orders;lane=2", "tea"); err == nil || !strings.Contains(err.Error(), `publish to "orders"`) {
		t.Errorf("got %v", err)
	}
	p.publish(t, "orders", "tea")
	p.finish(t, "tea")
	p.awaitEmpty(t, queue("orders"))
	if queues := p.bus.Must(t, http.MethodGet, "/v1/queues", "").Text; strings.Contains(queues, ";") {
		t.Errorf("there are %s", queues)
	}
}

// Streaming subscriptions run side by side: those of one app share the messages, and each app gets all of them. Runtimes
// before 1.16 permit one for each topic name, so there they need numbers.
func TestDAPR_1_StreamingSubscriptionsSideBySide(t *testing.T) {
	t.Parallel()
	const streams, rounds = 3, 4
	first := start(t, setup{metadata: map[string]string{"maxActiveMessages": "1"}, namespace: redistest.Namespace()})
	second := &pod{bus: first.bus, sockets: first.sockets, resources: first.resources}
	first.startDaprd(t, first.options())
	o := second.options()
	o.AppID = "billing-app"
	second.startDaprd(t, o)
	for _, p := range []*pod{first, second} {
		subscriptions := slices.Repeat([]daprtest.Subscription{{Topic: "orders"}}, streams)
		if !daprtest.IsNewest() {
			subscriptions = numbered(subscriptions[0], streams)
		}
		var apps []*daprtest.App
		for _, s := range subscriptions {
			apps = append(apps, daprtest.Stream(t, p.daprd, s))
		}
		p.app = daprtest.Merge(t, apps...)
	}
	sources := []string{subscription("orders"), "topics/orders/subscriptions/billing-app"}
	for _, source := range sources {
		sidecartest.Eventually(t, source+" is there", func() bool {
			return first.bus.Call(t.Context(), http.MethodGet, "/v1/"+source, "").Status == http.StatusOK
		})
	}
	for i := range streams * rounds {
		first.publish(t, "orders", fmt.Sprint("m", i))
	}
	for i, p := range []*pod{first, second} {
		seen := map[string]bool{}
		for range rounds {
			for _, text := range atATime(t, p.app, streams) {
				seen[text] = true
			}
		}
		if len(seen) != streams*rounds {
			t.Errorf("app %d got %v", i, seen)
		}
		p.quiet(t, 100*time.Millisecond)
		p.awaitEmpty(t, sources[i])
	}
}
