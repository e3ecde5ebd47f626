package observe

import (
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// orphansLine is the message of the log line about messages whose entries are gone from the log of an entity.
const orphansLine = "messages are missing from their log"

// orphansPause is how long after such a line none follows, so that a log that was emptied by hand does not fill this
// one.
const orphansPause = time.Minute

// Orphans registers the count of messages of which something was kept when they were gone, and gives what counts and
// logs them.
func Orphans(registry *prometheus.Registry, logger *slog.Logger) func(entity string, positions []int64) {
	counter := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "sidebus_orphans_total",
		Help: "Messages removed from their stream in Redis by other programs, whose remains this sidecar dropped; the log names the entity.",
	})
	registry.MustRegister(counter)
	var mu sync.Mutex
	var told time.Time
	return func(entity string, positions []int64) {
		counter.Add(float64(len(positions)))
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now(); now.Sub(told) >= orphansPause {
			told = now
			logger.Warn(orphansLine, "entity", entity, "messages", len(positions), "first", positions[0],
				"next", "no repair is needed: their remains were deleted; find what deletes stream entries in Redis")
		}
	}
}
