package proxy

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy/internal/readiness"
)

// healthInterval is how often a watched status is checked.
const healthInterval = time.Second

// health implements grpc.health.v1 by the current readiness, for the server ("") and all services.
type health struct {
	healthpb.UnimplementedHealthServer

	readiness *readiness.Readiness
	stopping  <-chan struct{} // closed when watches must end
}

// Check returns the status of a service. Unknown services are NOT_FOUND.
func (h *health) Check(
	ctx context.Context, request *healthpb.HealthCheckRequest,
) (*healthpb.HealthCheckResponse, error) {
	if !isServed(request.GetService()) {
		return nil, status.Error(codes.NotFound, "unknown service")
	}
	return &healthpb.HealthCheckResponse{Status: h.status(ctx)}, nil
}

// Watch sends the status now and when it changes.
func (h *health) Watch(request *healthpb.HealthCheckRequest, stream healthpb.Health_WatchServer) error {
	ctx := stream.Context()
	tick := time.NewTicker(healthInterval)
	defer tick.Stop()
	last := healthpb.HealthCheckResponse_UNKNOWN
	for {
		now := healthpb.HealthCheckResponse_SERVICE_UNKNOWN
		if isServed(request.GetService()) {
			now = h.status(ctx)
		}
		if now != last {
			if err := stream.Send(&healthpb.HealthCheckResponse{Status: now}); err != nil {
				return err
			}
			last = now
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		case <-h.stopping:
			return status.Error(codes.Unavailable, "this sidecar is stopping")
		}
	}
}

func (h *health) status(ctx context.Context) healthpb.HealthCheckResponse_ServingStatus {
	if h.readiness.Report(ctx).State == readiness.Ready {
		return healthpb.HealthCheckResponse_SERVING
	}
	return healthpb.HealthCheckResponse_NOT_SERVING
}

func isServed(service string) bool {
	switch service {
	case "",
		sidebusv1.Messages_ServiceDesc.ServiceName,
		sidebusv1.Sessions_ServiceDesc.ServiceName,
		sidebusv1.Transactions_ServiceDesc.ServiceName,
		sidebusv1.Admin_ServiceDesc.ServiceName,
		sidebusv1.Calls_ServiceDesc.ServiceName:
		return true
	default:
		return false
	}
}
