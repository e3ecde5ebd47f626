package grpcapi

import (
	"testing"
	"time"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics/broker/stream"
)

// What a stream has that sets nothing: RECV-13 credits, LOCK-9 renewal, SESS-23 sessions, SESS-27 in flight.
func TestLOCK_9_DefaultsOfAStream(t *testing.T) {
	t.Parallel()
	_, got, err := subscriptionOf(&sidebusv1.SubscribeOpen{Source: "queues/orders"})
	want := stream.Options{
		Credits: 1, MaxAutoRenew: 5 * time.Minute, MaxSessions: 8, SessionInFlight: 1, SessionIdle: time.Minute,
	}
	if err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}
