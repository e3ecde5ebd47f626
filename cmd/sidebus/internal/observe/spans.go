package observe

import "github.com/prometheus/client_golang/prometheus"

// Spans registers the count of spans and returns a function that counts them by outcome.
func Spans(registry *prometheus.Registry) func(outcome string, n int) {
	counter := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "sidebus_spans_total",
		Help: "Spans that ended, by outcome.",
	}, []string{"outcome"})
	registry.MustRegister(counter)
	return func(outcome string, n int) { counter.WithLabelValues(outcome).Add(float64(n)) }
}
