package grpcapi

import (
	"log/slog"
	"testing"

	"google.golang.org/grpc"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/semantics"
)

// deafStream is a stream whose client reads nothing.
type deafStream struct{ grpc.ServerStream }

func (deafStream) SendMsg(any) error { return nil }

// A request of a stream that fails because the store is unavailable reports the outage as a call does.
func TestStreamsReportOutages(t *testing.T) {
	t.Parallel()
	down := semantics.Errorf(semantics.StoreUnavailable, "no answer")
	for name, c := range map[string]struct {
		answer   any
		isOutage bool
	}{
		"a publication": {&sidebusv1.PublishResponse{Outcome: &sidebusv1.PublishResponse_Failure{Failure: failureFrom(down)}}, true},
		"a settlement":  {&sidebusv1.SubscribeResponse{Response: &sidebusv1.SubscribeResponse_Failure{Failure: failureFrom(down)}}, true},
		"draining":      {&sidebusv1.SubscribeResponse{Response: &sidebusv1.SubscribeResponse_Failure{Failure: failureFrom(stopped())}}, false},
		"another": {&sidebusv1.PublishResponse{Outcome: &sidebusv1.PublishResponse_Failure{
			Failure: failureFrom(semantics.Errorf(semantics.EntityFull, "full")),
		}}, false},
		"success":       {&sidebusv1.PublishResponse{Outcome: &sidebusv1.PublishResponse_Sent{}}, false},
		"no such field": {&sidebusv1.SendResponse{}, false},
	} {
		outages := 0
		calls := obs.NewCalls(nil, slog.New(slog.DiscardHandler))
		calls.OnOutage = func() { outages++ }
		stream := &authenticatedStream{ServerStream: deafStream{}, ctx: t.Context(), sent: func() {}, calls: calls}
		if err := stream.SendMsg(c.answer); err != nil || outages > 1 || (outages == 1) != c.isOutage {
			t.Errorf("%s: %d outages, %v", name, outages, err)
		}
	}
}
