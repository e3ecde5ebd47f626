package observe

import (
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sidebus/sidebus/semantics"
)

// removedLine is the message of the log line about an entity that AutoDeleteOnIdle removed.
const removedLine = "deleted because idle"

// Removals registers the count of entities that this sidecar deleted when idle (IDLE-1), and returns what counts and
// logs them. Their names are not a label: temporary ones have a new name each time.
func Removals(registry *prometheus.Registry, logger *slog.Logger) func(kind semantics.Kind, entity string) {
	counter := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "sidebus_removed_entities_total",
		Help: "Entities that this sidecar deleted because they were idle for autoDeleteOnIdle, by kind.",
	}, []string{"kind"})
	registry.MustRegister(counter)
	return func(kind semantics.Kind, entity string) {
		counter.WithLabelValues(kind.String()).Inc()
		logger.Info(removedLine, "kind", kind.String(), "entity", entity)
	}
}
