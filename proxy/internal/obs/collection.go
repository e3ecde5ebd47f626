package obs

import "github.com/prometheus/client_golang/prometheus"

// collection creates metrics and registers them together, so that none is forgotten.
type collection struct{ all []prometheus.Collector }

func (c *collection) register(registry *prometheus.Registry) error {
	for _, metric := range c.all {
		if err := registry.Register(metric); err != nil {
			return err
		}
	}
	return nil
}

func add[M prometheus.Collector](to *collection, metric M) M {
	to.all = append(to.all, metric)
	return metric
}

func (c *collection) counter(name, help string) prometheus.Counter {
	return add(c, prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help}))
}

func (c *collection) counterVec(name, help string, labels ...string) *prometheus.CounterVec {
	return add(c, prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels))
}

func (c *collection) counterFunc(name, help string, value func() float64) {
	add(c, prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, value))
}

func (c *collection) gauge(name, help string) prometheus.Gauge {
	return add(c, prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help}))
}

func (c *collection) gaugeVec(name, help string, labels ...string) *prometheus.GaugeVec {
	return add(c, prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels))
}

func (c *collection) gaugeFunc(name, help string, value func() float64) {
	add(c, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
}

func (c *collection) histogramVec(
	name, help string, buckets []float64, labels ...string,
) *prometheus.HistogramVec {
	return add(c, prometheus.NewHistogramVec(
		prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels,
	))
}
