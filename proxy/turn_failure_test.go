package proxy_test

import (
	"context"
	"testing"

	"google.golang.org/protobuf/proto"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/test/apptest"
)

// A sidecar or its Redis fails in the turn that completes a message of a session and takes the next one.
func TestSESS_25_FailuresInTurnsOfStreams(t *testing.T) {
	t.Parallel()
	apptest.FailInTurns(t, func(t *testing.T, on semantics.Store, queue string, take func(string, int) bool) (stop func()) {
		t.Helper()
		p, end := serveBroker(t, broker.New(on), on.(store))
		conn := dial(t, p.GRPCAddr().String())
		ctx, cancel := context.WithCancel(t.Context())
		subscription, err := sidebusv1.NewMessagesClient(conn).Subscribe(ctx)
		must(t, err)
		must(t, subscription.Send(&sidebusv1.SubscribeRequest{Request: &sidebusv1.SubscribeRequest_Open{
			Open: &sidebusv1.SubscribeOpen{Source: "queues/" + queue, Credits: proto.Int32(10)},
		}}))
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for {
				event, err := subscription.Recv()
				if err != nil {
					return
				}
				var done []string
				for _, d := range event.GetDeliveries().GetDeliveries() {
					for _, m := range d.GetMessages() {
						if take(string(m.GetBody()), int(m.GetDeliveryCount())) {
							done = append(done, m.GetLockToken())
						}
					}
				}
				if len(done) == 0 {
					continue
				}
				err = subscription.Send(&sidebusv1.SubscribeRequest{Request: &sidebusv1.SubscribeRequest_Settle{Settle: &sidebusv1.SubscribeSettle{
					LockTokens: done, Verb: &sidebusv1.SubscribeSettle_Complete{Complete: &sidebusv1.CompleteRequest{}},
				}}})
				if err != nil {
					return
				}
			}
		}()
		return func() {
			cancel()
			<-ended
			end()
		}
	})
}
