package dapr

import (
	"fmt"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/test/dapr/daprtest"
	"github.com/sidebus/sidebus/test/sidecartest"
)

// Dapr never opens a stream again that has ended.
func TestDAPR_1_StreamsSurviveRedis(t *testing.T) {
	t.Parallel()
	for name, metadata := range map[string]map[string]string{"plain": {}, "sessions": {"requireSessions": "true"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t, "--appendfsync", "always")
			t.Cleanup(server.Stop)
			p := start(t, setup{store: server.URL, metadata: metadata})
			p.run(t, overGRPC, daprtest.Subscription{Topic: "orders"})
			p.publish(t, "orders", "before", "SessionId", "s")
			inHand := p.next(t, "before")

			server.Kill()
			sidecartest.Eventually(t, "publishing fails", func() bool { return p.tryPublish(t, "orders", "lost", "SessionId", "s") != nil })
			inHand.Answer(daprtest.Success)
			server.Restart(t, "--appendfsync", "always")

			sidecartest.Eventually(t, "publishing works", func() bool { return p.tryPublish(t, "orders", "after", "SessionId", "s") == nil })
			for { // what was answered in between may come again, and an attempt to publish may have gone through
				d := p.app.Next(t)
				d.Answer(daprtest.Success)
				if string(d.Data) == "after" {
					break
				}
			}
			for isMore := true; isMore; {
				d := p.app.Within(t, 300*time.Millisecond)
				if isMore = d != nil; isMore {
					d.Answer(daprtest.Success)
				}
			}
			p.awaitEmpty(t, subscription("orders"))
		})
	}
}

// What a dead daprd had comes to the next one at once and not when its locks end.
func TestDAPR_6_LocksEndWithTheStream(t *testing.T) {
	t.Parallel()
	for name, metadata := range map[string]map[string]string{
		"plain": {"lockDurationInSec": "300"}, "sessions": {"lockDurationInSec": "300", "requireSessions": "true"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, setup{metadata: metadata})
			p.run(t, overGRPC, daprtest.Subscription{Topic: "orders"})
			for i := range 3 {
				p.publish(t, "orders", fmt.Sprint(i), "SessionId", "s")
			}
			p.app.Next(t)
			p.daprd.Kill()
			p.await(t, subscription("orders"), "lockedCount", 0)
			p.startDaprd(t, p.options())
			for seen := map[string]bool{}; len(seen) < 3; { // the call that the dead one made may still be on its way
				d := p.app.Next(t)
				seen[string(d.Data)] = true
				d.Answer(daprtest.Success)
			}
			p.awaitEmpty(t, subscription("orders"))
		})
	}
}

// What a subscription has when it ends is free at once. It counts as delivered if daprd died, perhaps of it.
func TestDAPR_2_WhatAnEndCounts(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{"unsubscribed": 0, "killed": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, setup{metadata: map[string]string{"entityKind": "queue"}})
			p.run(t, overStream, daprtest.Subscription{Topic: "orders"})
			p.publish(t, "orders", "0")
			p.publish(t, "orders", "1")
			p.app.Next(t)
			p.await(t, queue("orders"), "lockedCount", 2)
			if name == "killed" {
				p.daprd.Kill()
			} else {
				p.app.Unsubscribe()
			}
			p.await(t, queue("orders"), "lockedCount", 0)
			for _, m := range p.peek(t, queue("orders"), "NONE") {
				if m.DeliveryCount != want {
					t.Errorf("it was delivered %d times, want %d", m.DeliveryCount, want)
				}
			}
		})
	}
}

func TestDAPR_1_PauseDrains(t *testing.T) {
	t.Parallel()
	newestOnly(t)
	p := start(t, setup{metadata: map[string]string{"maxActiveMessages": "2"}})
	p.app = daprtest.GRPC(t, daprtest.Subscription{Topic: "orders"})
	p.startDaprd(t, p.options("--dapr-block-shutdown-duration", "5s"))
	p.awaitSource(t, "orders")
	const messages = 5
	for i := range messages {
		p.publish(t, "orders", fmt.Sprint(i))
	}
	d := p.next(t, "0")
	p.await(t, subscription("orders"), "lockedCount", 2)
	p.daprd.Signal(syscall.SIGTERM)
	sidecartest.Eventually(t, "the component is paused", func() bool { return p.paused(t) })
	d.Answer(daprtest.Success)
	p.finish(t, "1")
	p.quiet(t, time.Second)
	p.daprd.Exit(t)
	p.await(t, subscription("orders"), "lockedCount", 0)
	if n := p.count(t, subscription("orders"), "activeMessageCount"); n != messages-2 {
		t.Errorf("%d messages are left, want %d: those that were answered are gone and nothing else", n, messages-2)
	}
}

// paused asks whether Sidebus has had the call: it counts calls.
func (p *pod) paused(t testing.TB) bool {
	t.Helper()
	return metric(p.bus.Probe(t.Context(), http.MethodGet, "/metrics").Text, `Pause`)
}

// Dapr comes back to a Sidebus that was restarted with calls alone, not with Init.
func TestDAPR_1_PublishingGoesOnAfterARestart(t *testing.T) {
	t.Parallel()
	p := start(t, setup{metadata: map[string]string{"entityKind": "queue", "maxDeliveryCount": "7"}})
	p.run(t, "")
	p.publish(t, "orders", "before")
	p.restart(t)
	sidecartest.Eventually(t, "publishing works", func() bool { return p.tryPublish(t, "invoices", "after") == nil })
	answer := p.bus.Must(t, http.MethodGet, "/v1/queues/invoices", "")
	if answer.Body["maxDeliveryCount"] != 7.0 {
		t.Errorf("the queue that was made then has other options: %s", answer.Text)
	}
}

// restart kills Sidebus and starts it again as it was.
func (p *pod) restart(t testing.TB, flags ...string) {
	t.Helper()
	p.bus.Kill()
	p.bus = sidecartest.Start(t, append(p.serve, flags...)...)
}

// Three streams of one subscription: none has it all while others wait.
func TestDAPR_1_StreamsShareFairly(t *testing.T) {
	t.Parallel()
	newestOnly(t)
	p := start(t, setup{metadata: map[string]string{"entityKind": "queue"}})
	p.run(t, "")
	sub := daprtest.Subscription{Topic: "orders"}
	var apps []*daprtest.App
	for range 3 {
		apps = append(apps, daprtest.Stream(t, p.daprd, sub))
	}
	p.awaitSource(t, "orders")
	const messages, work = 30, 50 * time.Millisecond // of an app that is quick a stream would take more at a time
	for i := range messages {
		p.publish(t, "orders", fmt.Sprint(i))
	}
	counts := make([]int, len(apps))
	for range messages {
		var d *daprtest.Delivery
		i := 0
		select {
		case d = <-apps[0].Deliveries():
		case d = <-apps[1].Deliveries():
			i = 1
		case d = <-apps[2].Deliveries():
			i = 2
		case <-time.After(sidecartest.Patience):
			t.Fatal("nothing comes")
		}
		counts[i]++
		time.AfterFunc(work, func() { d.Answer(daprtest.Success) })
	}
	for i, n := range counts {
		if n < messages/6 {
			t.Errorf("stream %d had %d of %d messages; all: %v", i, n, messages, counts)
		}
	}
	p.awaitEmpty(t, queue("orders"))
}
