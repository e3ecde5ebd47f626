package proxy

import (
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/proxy/internal/readiness"
	"github.com/sidebus/sidebus/semantics/broker"
)

// measure registers the metrics of this process, which sidecar describes except for StoreUp, and of its calls, by at
// most so many entities. A call that finds the store unavailable has it checked soon.
func measure(
	registry *prometheus.Registry, broker *broker.Broker, entities int, sidecar obs.Sidecar,
	store *readiness.Readiness, logger *slog.Logger,
) (*obs.Metrics, *obs.Calls, error) {
	measures, err := obs.NewMetrics(registry, broker, entities)
	if err != nil {
		return nil, nil, err
	}
	sidecar.StoreUp = store.StoreUp
	if err := obs.RegisterSidecar(registry, sidecar); err != nil {
		return nil, nil, err
	}
	calls := obs.NewCalls(measures, logger)
	calls.OnOutage = store.CheckSoon
	return measures, calls, nil
}
