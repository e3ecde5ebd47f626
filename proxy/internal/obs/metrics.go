// Package obs is what the proxy tells about itself: metrics, and a log line for each call. All names are here.
package obs

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Values of the label "wire".
const (
	GRPC   = "grpc"
	HTTP   = "http"
	Compat = "compat"
	Dapr   = "dapr"
)

// Values of the label "outcome" of settled messages: the verbs.
const (
	Complete   = "complete"
	Abandon    = "abandon"
	Defer      = "defer"
	Release    = "release"
	DeadLetter = "dead_letter"
	Renew      = "renew"
)

// Values of the label "verb" of messages that were removed without being received.
const (
	Cancel = "cancel"
	Delete = "delete"
	Purge  = "purge"
)

// Metrics are the measures of the proxy. They are safe for concurrent use.
type Metrics struct {
	RPCDuration          *prometheus.HistogramVec // method, wire, code
	MessagesSent         prometheus.Counter
	MessagesDeduplicated prometheus.Counter
	MessagesReceived     prometheus.Counter
	MessagesSettled      *prometheus.CounterVec // outcome
	LocksLost            *prometheus.CounterVec // outcome that was asked for, or renew
	MessagesRemoved      *prometheus.CounterVec // verb
	MessagesResubmitted  prometheus.Counter
	Connections          *prometheus.GaugeVec   // wire
	ConnectionsRefused   *prometheus.CounterVec // wire
	Panics               prometheus.Counter
	Pushes               *prometheus.CounterVec   // handler, outcome
	PushDuration         *prometheus.HistogramVec // handler
	HandlerReachable     *prometheus.GaugeVec     // handler
	DaprStreams          prometheus.Gauge
	DaprStreamsStalled   prometheus.Gauge
	DaprDeliveries       *prometheus.CounterVec // outcome
	DaprBadMetadata      prometheus.Counter
	DaprHeals            *prometheus.CounterVec // outcome
}

// Account is what is counted elsewhere; see semantics.Broker.
type Account interface {
	Held() int
	OrphanReplies() int64
	PrefetchesCut() int64
	Forwarded() (forwarded, refused int64)
}

// NewMetrics makes the measures and registers them, those of the account, and those of Go and the process. It fails when the
// registry has other measures of the same names.
func NewMetrics(registry *prometheus.Registry, account Account) (*Metrics, error) {
	m := &Metrics{
		RPCDuration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "sidebus_rpc_duration_seconds",
			Help:    "Time of a call from its arrival to its answer, waiting for messages included.",
			Buckets: prometheus.ExponentialBuckets(0.0002, 3, 13),
		}, []string{"method", "wire", "code"}),
		MessagesSent:         counter("sidebus_messages_sent_total", "Messages stored."),
		MessagesDeduplicated: counter("sidebus_messages_deduplicated_total", "Messages sent and dropped by duplicate detection."),
		MessagesReceived:     counter("sidebus_messages_received_total", "Messages handed out by receive."),
		MessagesSettled:      counterVec("sidebus_messages_settled_total", "Messages settled, by verb.", "outcome"),
		LocksLost:            counterVec("sidebus_locks_lost_total", "Settlements and renewals whose lock did not hold.", "outcome"),
		MessagesRemoved:      counterVec("sidebus_messages_removed_total", "Messages removed without being received, by verb.", "verb"),
		MessagesResubmitted:  counter("sidebus_messages_resubmitted_total", "Dead letters sent again."),
		Connections: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "sidebus_connections", Help: "Open connections of clients.",
		}, []string{"wire"}),
		ConnectionsRefused: counterVec("sidebus_connections_refused_total", "Connections over the limit (QUOTA-5).", "wire"),
		Panics:             counter("sidebus_panics_total", "Calls that failed by a bug of Sidebus."),
		Pushes:             counterVec("sidebus_pushes_total", "Messages pushed to the app, by what became of them.", "handler", "outcome"),
		PushDuration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "sidebus_push_duration_seconds",
			Help:    "Time of a push from the call to its answer.",
			Buckets: prometheus.ExponentialBuckets(0.001, 3, 13),
		}, []string{"handler"}),
		HandlerReachable: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "sidebus_handler_reachable", Help: "1 when the app took the last connection of its handler, else 0.",
		}, []string{"handler"}),
		DaprStreams: gauge("sidebus_dapr_streams", "Streams of messages that Dapr's runtime has open."),
		DaprStreamsStalled: gauge("sidebus_dapr_streams_stalled",
			"Streams of Dapr's runtime whose entity cannot be received from at the moment."),
		DaprDeliveries: counterVec("sidebus_dapr_deliveries_total", "Messages handed to Dapr's runtime, by what became of them.", "outcome"),
		DaprBadMetadata: counter("sidebus_dapr_bad_metadata_total",
			"Values in the metadata of Dapr's subscriptions that make no sense and were passed over."),
		DaprHeals: counterVec("sidebus_dapr_heals_total", "Restarts of Sidebus under a running runtime of Dapr, by what was done.", "outcome"),
	}
	own := []prometheus.Collector{
		m.RPCDuration, m.MessagesSent, m.MessagesDeduplicated, m.MessagesReceived, m.MessagesSettled, m.LocksLost,
		m.MessagesRemoved, m.MessagesResubmitted, m.Connections, m.ConnectionsRefused, m.Panics,
		m.Pushes, m.PushDuration, m.HandlerReachable,
		m.DaprStreams, m.DaprStreamsStalled, m.DaprDeliveries, m.DaprBadMetadata, m.DaprHeals,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "sidebus_messages_held", Help: "Messages handed out that are neither settled nor past the end of their lock.",
		}, func() float64 { return float64(account.Held()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "sidebus_orphan_replies_total", Help: "Replies that were completed because no request waited for them (RR-6).",
		}, func() float64 { return float64(account.OrphanReplies()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "sidebus_prefetches_cut_total",
			Help: "Streams that began to fetch less ahead than asked for, because their client is too slow for it (RECV-12).",
		}, func() float64 { return float64(account.PrefetchesCut()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "sidebus_messages_forwarded_total", Help: "Messages that this sidecar forwarded, one for each hop (FWD-12).",
		}, func() float64 { forwarded, _ := account.Forwarded(); return float64(forwarded) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "sidebus_forwards_refused_total",
			Help: "Messages that this sidecar could not forward and made dead letters of (FWD-5, FWD-8).",
		}, func() float64 { _, refused := account.Forwarded(); return float64(refused) }),
	}
	for _, c := range own {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	process := []prometheus.Collector{
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	}
	for _, c := range process {
		var already prometheus.AlreadyRegisteredError
		if err := registry.Register(c); err != nil && !errors.As(err, &already) {
			return nil, err
		}
	}
	return m, nil
}

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

func gauge(name, help string) prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
}

func counterVec(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}
