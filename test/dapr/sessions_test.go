package dapr

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sidebus/sidebus/test/dapr/daprtest"
	"github.com/sidebus/sidebus/test/sidecartest"
)

// sessionApp takes messages of sessions, whose texts are "session number", holds some of them, answers in any order,
// and wants some again.
type sessionApp struct {
	random   *rand.Rand
	inHand   []*daprtest.Delivery
	next     map[string]int // the number that must come next
	messages int            // of each session
	left     int            // messages that are not done
	most     int            // in flight at a time
}

func newSessionApp(t *testing.T, sessions, messages int) *sessionApp {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return &sessionApp{
		random: rand.New(rand.NewPCG(seed, 0)), next: map[string]int{}, messages: messages, left: sessions * messages,
	}
}

// take checks that a message is the next of its session and that no other message of it is in flight.
func (a *sessionApp) take(t *testing.T, d *daprtest.Delivery) {
	t.Helper()
	session, number, _ := strings.Cut(string(d.Data), " ")
	if id, has := d.Metadata["sessionid"]; has && id != session {
		t.Fatalf("a message of session %s came as one of %q", session, id)
	}
	if number != strconv.Itoa(a.next[session]) {
		t.Fatalf("session %s: got number %s, want %d", session, number, a.next[session])
	}
	for _, other := range a.inHand {
		if strings.HasPrefix(string(other.Data), session+" ") {
			t.Fatalf("two messages of session %s are in hand: %s and %s", session, other.Data, d.Data)
		}
	}
	a.inHand = append(a.inHand, d)
	a.most = max(a.most, len(a.inHand))
}

// answer answers any of the messages in flight, one in ten with Retry.
func (a *sessionApp) answer() {
	i := a.random.IntN(len(a.inHand))
	d := a.inHand[i]
	a.inHand = append(a.inHand[:i], a.inHand[i+1:]...)
	if a.random.IntN(10) == 0 {
		d.Answer(daprtest.Retry)
		return
	}
	session, _, _ := strings.Cut(string(d.Data), " ")
	a.next[session]++
	a.left--
	d.Answer(daprtest.Success)
}

// work takes and answers until all is done, or only until that many messages are left, or a message is there that will
// come no more.
func (a *sessionApp) work(t *testing.T, app *daprtest.App) {
	t.Helper()
	patience := time.NewTimer(4 * sidecartest.Patience)
	defer patience.Stop()
	for a.left > 0 {
		var answer <-chan time.Time
		if len(a.inHand) > 0 {
			answer = time.After(time.Duration(a.random.IntN(20)) * time.Millisecond)
		}
		select {
		case d := <-app.Deliveries():
			a.take(t, d)
		case <-answer:
			a.answer()
		case <-patience.C:
			t.Fatalf("%d messages are left", a.left)
		}
	}
}

func TestDAPR_3_OneMessageOfASessionAtATimeInOrder(t *testing.T) {
	t.Parallel()
	perEntity(t, func(t *testing.T, kind, source string) {
		for _, app := range []string{overGRPC, overHTTP, overStream} {
			t.Run(app, func(t *testing.T) {
				t.Parallel()
				const sessions, messages, atATime = 6, 10, 4
				p := start(t, setup{metadata: map[string]string{
					"entityKind": kind, "maxDeliveryCount": "100", "redeliveryDelayInMs": "20", "maxRedeliveryDelayInSec": "1",
					"sessionIdleTimeoutInSec": "1",
				}})
				p.run(t, app, daprtest.Subscription{Topic: "orders", Metadata: map[string]string{
					"requireSessions": "true", "maxConcurrentSessions": strconv.Itoa(atATime),
				}})
				for n := range messages {
					for s := range sessions {
						p.publish(t, "orders", fmt.Sprintf("s%d %d", s, n), "SessionId", fmt.Sprintf("s%d", s))
					}
				}
				a := newSessionApp(t, sessions, messages)
				a.work(t, p.app)
				p.awaitEmpty(t, source)
				switch {
				case a.most > atATime:
					t.Errorf("the app worked on %d sessions at a time, at most %d are allowed", a.most, atATime)
				case daprtest.IsConcurrent() && a.most < 2:
					t.Error("sessions were handled one after the other")
				}
			})
		}
	})
}

func TestDAPR_3_ManySessionsAtATime(t *testing.T) {
	t.Parallel()
	if !daprtest.IsConcurrent() {
		t.Skip("the runtime hands over one message at a time")
	}
	const sessions = 3
	p := start(t, setup{metadata: map[string]string{"requireSessions": "true", "maxConcurrentSessions": strconv.Itoa(sessions)}})
	p.run(t, overGRPC, daprtest.Subscription{Topic: "orders"})
	for n := range 2 {
		for s := range sessions + 1 {
			p.publish(t, "orders", fmt.Sprintf("s%d %d", s, n), "SessionId", fmt.Sprintf("s%d", s))
		}
	}
	a := newSessionApp(t, sessions+1, 2)
	for range sessions {
		a.take(t, p.app.Next(t))
	}
	p.quiet(t, 300*time.Millisecond) // neither a second message of a session nor one of a fourth session
}

// A session that has nothing more gives its place to one that waits, and is given up after a while.
func TestDAPR_3_IdleSessionsMakeRoom(t *testing.T) {
	t.Parallel()
	perEntity(t, func(t *testing.T, kind, source string) {
		p := start(t, setup{metadata: map[string]string{
			"entityKind": kind, "requireSessions": "true", "maxConcurrentSessions": "1", "sessionIdleTimeoutInSec": "3",
		}})
		p.run(t, overGRPC, daprtest.Subscription{Topic: "orders"})
		p.publish(t, "orders", "a 0", "SessionId", "a")
		p.finish(t, "a 0")
		p.publish(t, "orders", "b 0", "SessionId", "b")
		d := p.next(t, "b 0")
		p.publish(t, "orders", "a 1", "SessionId", "a")
		if d := p.app.Within(t, 300*time.Millisecond); d != nil {
			t.Errorf("got %q while another session is in hand", d.Data)
		}
		d.Answer(daprtest.Success)
		p.finish(t, "a 1")
		accept := func() bool {
			answer := p.bus.Call(t.Context(), http.MethodPost, "/v1/"+source+"/sessions:accept", `{"sessionId":"a","maxWait":"0s"}`)
			return answer.Status == http.StatusOK
		}
		if accept() {
			t.Error("the session is free at once")
		}
		sidecartest.Eventually(t, "the session is free", accept)
		p.awaitEmpty(t, source)
	})
}

// Two pods share the sessions, and never one of them.
func TestDAPR_3_TwoPods(t *testing.T) {
	t.Parallel()
	const sessions, messages = 8, 5
	metadata := map[string]string{"requireSessions": "true", "maxConcurrentSessions": "2", "sessionIdleTimeoutInSec": "1", "maxDeliveryCount": "100"}
	first := start(t, setup{metadata: metadata, namespace: t.Name()})
	second := start(t, setup{metadata: metadata, namespace: t.Name()})
	for _, p := range []*pod{first, second} {
		p.run(t, overHTTP, daprtest.Subscription{Topic: "orders"})
	}
	for n := range messages {
		for s := range sessions {
			first.publish(t, "orders", fmt.Sprintf("s%d %d", s, n), "SessionId", fmt.Sprintf("s%d", s))
		}
	}
	a := newSessionApp(t, sessions, messages)
	merged := daprtest.Merge(t, first.app, second.app)
	a.work(t, merged)
	first.awaitEmpty(t, subscription("orders"))
}

// A stream does not end because what it is to deliver is not as it should be: Dapr would not open it again.
func TestDAPR_3_SessionsAskedOfWhatHasNone(t *testing.T) {
	t.Parallel()
	p := start(t, setup{metadata: map[string]string{"entityKind": "queue", "requireSessions": "true"}})
	p.bus.Must(t, http.MethodPut, "/v1/queues/orders", `{"requiresSession":false}`)
	p.run(t, overGRPC, daprtest.Subscription{Topic: "orders"})
	sidecartest.Eventually(t, "the log says why nothing comes", func() bool { return strings.Contains(p.bus.Log(), "requireSessions") })
	p.bus.Must(t, http.MethodDelete, "/v1/queues/orders", "")
	sidecartest.Eventually(t, "the queue is made anew", func() bool {
		return p.bus.Call(t.Context(), http.MethodGet, "/v1/queues/orders", "").Body["requiresSession"] == true
	})
	p.publish(t, "orders", "a 0", "SessionId", "a")
	p.finish(t, "a 0")
	p.awaitEmpty(t, queue("orders"))
}

// What has sessions is delivered session by session, whether the app asked for it or not.
func TestDAPR_3_SessionsThatNobodyAskedFor(t *testing.T) {
	t.Parallel()
	p := start(t, setup{metadata: map[string]string{"entityKind": "queue"}})
	p.bus.Must(t, http.MethodPut, "/v1/queues/orders", `{"requiresSession":true}`)
	p.run(t, overHTTP, daprtest.Subscription{Topic: "orders"})
	for n := range 3 {
		p.publish(t, "orders", fmt.Sprintf("a %d", n), "SessionId", "a")
	}
	d := p.next(t, "a 0")
	p.quiet(t, 300*time.Millisecond)
	d.Answer(daprtest.Success)
	p.finish(t, "a 1", "a 2")
	p.awaitEmpty(t, queue("orders"))
}

// Who comes first makes the queue, and a publisher does not know what subscribers ask for, unless the Component says
// it.
func TestDAPR_3_APublisherMakesTheQueueWithSessions(t *testing.T) {
	t.Parallel()
	p := start(t, setup{metadata: map[string]string{"entityKind": "queue", "requireSessions": "true"}})
	p.run(t, "")
	p.publish(t, "orders", "a 0", "SessionId", "a")
	p.publish(t, "orders", "a 1", "SessionId", "a")
	p.app = daprtest.Stream(t, p.daprd, daprtest.Subscription{Topic: "orders"})
	d := p.next(t, "a 0")
	p.quiet(t, 300*time.Millisecond)
	d.Answer(daprtest.Success)
	p.finish(t, "a 1")
	p.awaitEmpty(t, queue("orders"))
}
