package observe

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Scripts registers the measures of the store's scripts and returns what records them. Labels are names of
// scripts and status words, both closed sets.
func Scripts(registry *prometheus.Registry) func(script, status string, took time.Duration) {
	duration := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "sidebus_script_duration_seconds",
		Help:    "Time from the call of a Redis script to its answer.",
		Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1, 5},
	}, []string{"script"})
	calls := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "sidebus_script_calls_total",
		Help: "Calls of Redis scripts, by status.",
	}, []string{"script", "status"})
	registry.MustRegister(duration, calls)
	return func(script, status string, took time.Duration) {
		duration.WithLabelValues(script).Observe(took.Seconds())
		calls.WithLabelValues(script, status).Inc()
	}
}
