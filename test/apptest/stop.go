package apptest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// StopAtAnyMoment stops a sidecar in a bubble during deliveries, with a drain or without. No message may then stay
// locked until its lock expires: each delivered message is released, uncounted, or settled by the app's answer. stop
// ends the sidecar and returns when all of its goroutines have ended.
func StopAtAnyMoment(t *testing.T, random *rand.Rand, broker *broker.Broker, queue string, stop func()) {
	t.Helper()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for i := range 100 {
			message := &semantics.Message{SessionID: fmt.Sprint(i % 7), Body: []byte(fmt.Sprint(i))}
			if _, err := broker.Send(t.Context(), semantics.ToQueue(queue), []*semantics.Message{message}); err != nil {
				t.Error(err)
			}
			<-time.After(time.Duration(i%3) * time.Millisecond)
		}
	}()
	<-time.After(time.Duration(1+random.IntN(120)) * time.Millisecond)
	if random.IntN(2) == 0 { // else it stops without a drain
		broker.BeginDrain()
		<-time.After(time.Duration(random.IntN(30)) * time.Millisecond)
		if err := broker.ReleaseHeld(t.Context()); err != nil {
			t.Error(err)
		}
	}
	stop()
	<-sent
	wantNothingOut(t, broker, broker, queue)
	messages, err := broker.Peek(t.Context(), semantics.Source{Path: queue}, 0, 250, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range messages {
		if m.DeliveryCount != 0 {
			t.Errorf("delivery count %d of %s", m.DeliveryCount, m.Body)
		}
	}
}

// counter is a Store or a Broker.
type counter interface {
	Runtime(ctx context.Context, kind semantics.Kind, path string) (semantics.Runtime, error)
}

// wantNothingOut checks that no message of a queue stays locked after its only sidecar has stopped.
func wantNothingOut(t *testing.T, of counter, broker *broker.Broker, queue string) {
	t.Helper()
	counts, err := of.Runtime(context.WithoutCancel(t.Context()), semantics.QueueKind, queue)
	if err != nil {
		t.Fatal(err)
	}
	if counts.Locked != 0 || counts.LockedSessions != 0 || broker.Held() != 0 {
		t.Errorf("%d messages and %d sessions are locked, %d held", counts.Locked, counts.LockedSessions, broker.Held())
	}
}
