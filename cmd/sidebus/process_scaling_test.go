package main

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sidebus/sidebus/proto/client"
	"github.com/sidebus/sidebus/proto/externalscaler"
	"github.com/sidebus/sidebus/test/sidecartest"
)

// carts is a queue with sessions, and a Deployment whose pods process at most two of them each. It is scaled as KEDA and
// the HPA do it: from none to one pod by a push, then by the metric, and to none when nothing is left.
type carts struct {
	*scaled

	trigger *externalscaler.ScaledObjectRef
	pods    []context.CancelFunc // each ends one pod and waits for it
	permits chan struct{}        // one for each session that may be finished

	mu   sync.Mutex
	done []string // the texts that were processed
}

const (
	sessionsOfPod = 2
	mostPods      = 5
)

// startPod starts a pod, which holds sessions until they may be finished, and closes them if it is ended before.
func (c *carts) startPod() {
	ctx, cancel := context.WithCancel(c.t.Context())
	bus, err := client.New(c.sidecar.GRPC, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	var workers sync.WaitGroup
	for range sessionsOfPod {
		workers.Go(func() {
			for ctx.Err() == nil {
				if session, err := bus.AcceptNextSessionForQueue(ctx, "carts", nil); err == nil {
					c.process(ctx, session)
					_ = session.Close(context.WithoutCancel(ctx))
				}
			}
		})
	}
	c.pods = append(c.pods, func() {
		cancel()
		workers.Wait()
		_ = bus.Close()
	})
}

func (c *carts) process(ctx context.Context, session *client.SessionReceiver) {
	select {
	case <-c.permits:
	case <-ctx.Done():
		return
	}
	messages, err := session.ReceiveMessages(ctx, 10, nil)
	for _, m := range messages {
		if err = session.CompleteMessage(ctx, m, nil); err != nil {
			break
		}
		c.mu.Lock()
		c.done = append(c.done, string(m.Body))
		c.mu.Unlock()
	}
	if err != nil {
		c.t.Errorf("session %s: %v", session.SessionID(), err)
	}
}

// scaleTo starts or ends pods.
func (c *carts) scaleTo(n int) {
	for len(c.pods) < n {
		c.startPod()
	}
	for len(c.pods) > n {
		last := len(c.pods) - 1
		c.pods[last]()
		c.pods = c.pods[:last]
	}
}

// round is one look of the HPA, which never goes below one pod: KEDA does, when nothing is active.
func (c *carts) round() {
	c.t.Helper()
	value := c.valueOf(c.trigger, "sessions")
	active, err := c.IsActive(c.t.Context(), c.trigger)
	if err != nil {
		c.t.Fatal(err)
	}
	desired := max(min(int(math.Ceil(value/sessionsOfPod)), mostPods), 1)
	if !active.GetResult() {
		desired = 0
	}
	c.t.Logf("%v sessions have work: %d -> %d pods", value, len(c.pods), desired)
	c.scaleTo(desired)
}

// wantRound runs a round and checks how many pods there are.
func (c *carts) wantRound(pods int) {
	c.t.Helper()
	c.round()
	if len(c.pods) != pods {
		c.t.Fatalf("there are %d pods, want %d", len(c.pods), pods)
	}
}

// send sends three messages to each of some sessions.
func (c *carts) send(sessions ...string) {
	c.t.Helper()
	var messages []string
	for i := range 3 {
		for _, session := range sessions {
			messages = append(messages, fmt.Sprintf(`{"text":"%s%d","sessionId":"%s"}`, session, i, session))
		}
	}
	c.sidecar.Must(c.t, http.MethodPost, "/v1/queues/carts/messages:send", `{"messages":[`+strings.Join(messages, ",")+`]}`)
}

// wantHeld waits until pods hold so many sessions.
func (c *carts) wantHeld(n int) {
	c.t.Helper()
	sidecartest.Eventually(c.t, fmt.Sprintf("pods hold %d sessions", n), func() bool {
		counts := c.sidecar.Must(c.t, http.MethodGet, "/v1/queues/carts/runtime", "").Body
		return fmt.Sprint(counts["lockedSessionCount"]) == fmt.Sprint(n)
	})
}

// wantWork waits until so many sessions have work.
func (c *carts) wantWork(n float64) {
	c.t.Helper()
	sidecartest.Eventually(c.t, fmt.Sprintf("%v sessions have work", n), func() bool {
		return c.valueOf(c.trigger, "sessions") == n
	})
}

// finish lets pods finish sessions.
func (c *carts) finish(n int) {
	for range n {
		c.permits <- struct{}{}
	}
}

func TestCOMP_8_PodsFollowSessionsUpAndDown(t *testing.T) {
	t.Parallel()
	c := &carts{scaled: startScaled(t), trigger: triggerOf("queues/carts", "sessions", fmt.Sprint(sessionsOfPod)), permits: make(chan struct{})}
	t.Cleanup(func() { c.scaleTo(0) })
	c.sidecar.Queue(t, "carts", `{"requiresSession":true}`)
	stream, err := c.StreamIsActive(t.Context(), c.trigger)
	if err != nil {
		t.Fatal(err)
	}
	wantPush(t, stream, false)

	c.send("a", "b", "c", "d", "e", "f")
	wantPush(t, stream, true)
	c.scaleTo(1)
	c.wantHeld(2)
	c.wantRound(3)
	c.wantHeld(6)
	c.wantRound(3) // those that hold them are needed, although no session waits

	c.finish(2)
	c.wantWork(4)
	c.wantRound(2)
	c.wantHeld(4) // what the ended pod held went to the others
	c.wantRound(2)

	c.finish(4)
	c.wantWork(0)
	wantPush(t, stream, false)
	c.wantRound(0)
	for session := range strings.SplitSeq("abcdef", "") {
		own := slices.DeleteFunc(slices.Clone(c.done), func(text string) bool { return !strings.HasPrefix(text, session) })
		if want := []string{session + "0", session + "1", session + "2"}; !slices.Equal(own, want) {
			t.Errorf("session %s: processed %q, want %q", session, own, want)
		}
	}

	c.send("g")
	wantPush(t, stream, true)
	c.scaleTo(1)
	c.finish(1)
	wantPush(t, stream, false)
	c.wantRound(0)
}
