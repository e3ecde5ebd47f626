package main

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// scriptObserver registers the measures of the store's scripts and returns what records them. Labels are names of
// scripts and status words, both closed sets.
func scriptObserver(registry *prometheus.Registry) func(script, status string, took time.Duration) {
	duration := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "sidebus_script_duration_seconds",
		Help:    "Time from calling a script in Redis to its answer.",
		Buckets: prometheus.ExponentialBuckets(0.0001, 2.5, 12),
	}, []string{"script"})
	calls := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "sidebus_script_calls_total",
		Help: "Calls of scripts in Redis by outcome.",
	}, []string{"script", "status"})
	registry.MustRegister(duration, calls)
	return func(script, status string, took time.Duration) {
		duration.WithLabelValues(script).Observe(took.Seconds())
		calls.WithLabelValues(script, status).Inc()
	}
}
