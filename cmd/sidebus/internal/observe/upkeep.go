package observe

import (
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
)

// upkeepLine is the message of the log line about an entity that the sweeper cannot see to.
const upkeepLine = "upkeep failed"

// UpkeepFaults registers the count of faults that keep the sweeper from an entity until an operator repairs them, and
// returns what counts and logs them. Entities are not a label: their names have no bound.
func UpkeepFaults(registry *prometheus.Registry, logger *slog.Logger) func(entity string, err error) {
	counter := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "sidebus_upkeep_faults_total",
		Help: "Faults that stop expiry, activation and forwarding of an entity, once for each entity and cause; the log names them.",
	})
	registry.MustRegister(counter)
	return func(entity string, err error) {
		counter.Inc()
		logger.Error(
			upkeepLine, "entity", entity, "error", err, "next",
			"repair or delete what the error names; other entities are not affected, and this entity is tried again every minute",
		)
	}
}
