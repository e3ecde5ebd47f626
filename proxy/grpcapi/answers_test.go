package grpcapi

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"pgregory.net/rapid"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy/wire"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/delivery"
	"github.com/sidebus/sidebus/semantics/broker/stream"
)

// A client decodes a response of a stream that is encoded here as one that the generated code encodes.
func TestEncodedResponsesOfStreams(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		var events []stream.Event
		want := &sidebusv1.SubscribeDeliveries{}
		for range rapid.IntRange(1, 3).Draw(rt, "deliveries") {
			one, source := &sidebusv1.SubscribeDelivery{}, semantics.Source{Path: "orders"}
			if rapid.Bool().Draw(rt, "has a session") {
				source.SessionLock = semantics.NewLockToken()
				one.SessionLockToken = source.SessionLock.String()
			}
			var messages []*semantics.Received
			for range rapid.IntRange(0, 3).Draw(rt, "messages") {
				m := &semantics.Received{SequenceNumber: 1, LockToken: semantics.NewLockToken()}
				m.Body = make([]byte, rapid.SampledFrom([]int{0, 1, 100, 1000, 20_000}).Draw(rt, "size"))
				messages = append(messages, m)
			}
			one.Messages = wire.ReceivedFrom(messages, false)
			want.Deliveries = append(want.Deliveries, one)
			d := delivery.New(t.Context(), source, semantics.PeekLock, messages, nil, delivery.NewRemovals())
			events = append(events, stream.Event{Delivery: d})
		}
		encoded, err := deliveriesFrom(events)
		if err != nil {
			rt.Fatal(err)
		}
		got := &sidebusv1.SubscribeResponse{}
		if err := proto.Unmarshal(encoded.ReadOnlyData(), got); err != nil {
			rt.Fatal(err)
		}
		if !proto.Equal(want, got.GetDeliveries()) {
			rt.Fatalf("got %v, want %v", got, want)
		}
		encoded.Free()
	})
	sent := []semantics.SendResult{{MessageID: "m"}}
	for _, id := range []string{"", "request"} {
		want, got := &sidebusv1.PublishResponse{
			RequestId: id, Outcome: &sidebusv1.PublishResponse_Sent{Sent: sentFrom(sent)},
		}, &sidebusv1.PublishResponse{}
		if err := proto.Unmarshal(publishedFrom(id, sent).ReadOnlyData(), got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
			t.Error(diff)
		}
	}
}
