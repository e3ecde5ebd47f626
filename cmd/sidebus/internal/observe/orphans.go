package observe

import (
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sidebus/sidebus/proxy/lograte"
)

// orphansLine is the message of the log line about messages whose entries are gone from the log of an entity.
const orphansLine = "messages are missing from their log"

// orphansInterval is the least time between two such lines: a stream that an operator emptied does not flood the log.
const orphansInterval = time.Minute

// Orphans registers the count of messages whose stream entries are gone, and returns a function that counts and logs
// them. The function is safe for concurrent use.
func Orphans(registry *prometheus.Registry, logger *slog.Logger) func(entity string, positions []int64) {
	counter := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "sidebus_orphans_total",
		Help: "Messages removed from their stream in Redis by other programs, whose remains this sidecar dropped; the log names the entity.",
	})
	registry.MustRegister(counter)
	log := lograte.New(logger, orphansLine, orphansInterval)
	return func(entity string, positions []int64) {
		counter.Add(float64(len(positions)))
		log.Warn("entity", entity, "messages", len(positions), "first", positions[0],
			"next", "no repair is needed: their remains were deleted; find what deletes stream entries in Redis")
	}
}
