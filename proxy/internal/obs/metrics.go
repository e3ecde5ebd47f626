// Package obs has the metrics of the proxy and logs calls. docs/metrics.md lists all metrics.
package obs

import (
	"errors"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/sidebus/sidebus/proxy/internal/traces"
	"github.com/sidebus/sidebus/semantics"
)

// Values of the label "wire".
const (
	GRPC   = "grpc"
	HTTP   = "http"
	Compat = "compat"
	Dapr   = "dapr"
	AMQP   = "amqp"
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

// Metrics are the metrics of the proxy. They are safe for concurrent use. Metrics with an entity label are updated by
// methods.
type Metrics struct {
	Connections          *prometheus.GaugeVec   // wire
	ConnectionsRefused   *prometheus.CounterVec // wire
	ConnectionsIdleEnded *prometheus.CounterVec // wire
	WaitsEnded           prometheus.Counter
	RequestsRefused      prometheus.Counter
	RequestsLate         prometheus.Counter
	RequestMemory        prometheus.Gauge
	AnswersRefused       prometheus.Counter
	AnswersLate          prometheus.Counter
	AnswerMemory         prometheus.Gauge
	Panics               prometheus.Counter
	Pushes               *prometheus.CounterVec   // handler, outcome
	PushDuration         *prometheus.HistogramVec // handler
	HandlerReachable     *prometheus.GaugeVec     // handler
	DaprStreams          prometheus.Gauge
	DaprStreamsStalled   prometheus.Gauge
	DaprDeliveries       *prometheus.CounterVec // outcome
	DaprBadMetadata      prometheus.Counter
	DaprHeals            *prometheus.CounterVec // outcome

	// Traces records spans of what is counted here. nil: none. It must be set before the first call.
	Traces *traces.Traces

	labels       *Labels
	rpcs         *prometheus.CounterVec   // method, wire, code
	rpcDuration  *prometheus.HistogramVec // method, wire, code
	sent         *prometheus.CounterVec   // entity
	shortLived   *prometheus.CounterVec   // entity
	deduplicated *prometheus.CounterVec   // entity
	received     *prometheus.CounterVec   // entity
	settled      *prometheus.CounterVec   // entity, outcome
	locksLost    *prometheus.CounterVec   // entity, requested outcome or renew
	removed      *prometheus.CounterVec   // entity, verb
	resubmitted  *prometheus.CounterVec   // entity
}

// BrokerStats has the counts of broker.Broker.
type BrokerStats interface {
	Held() int
	OrphanReplies() int64
	PrefetchesCut() int64
	Forwarded() (forwarded, refused int64)
}

// Histogram buckets in seconds.
var (
	rpcBuckets  = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
	pushBuckets = []float64{.001, .005, .01, .05, .1, .5, 1, 5, 10, 30, 60, 300}
)

// NewMetrics registers the metrics of the proxy, of the Broker, of Go and of the process. At most maxEntities entities
// get a value of their own for the label "entity". It fails if the registry has metrics of the same names.
func NewMetrics(registry *prometheus.Registry, stats BrokerStats, maxEntities int) (*Metrics, error) {
	m, all := &Metrics{labels: NewLabels(maxEntities)}, &collection{}
	m.addCalls(all)
	m.addMessages(all)
	m.addAdmission(all)
	m.addHandlers(all)
	m.addDapr(all)
	addBroker(all, stats)
	if err := all.register(registry); err != nil {
		return nil, err
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

func (m *Metrics) addCalls(to *collection) {
	m.rpcs = to.counterVec(
		"sidebus_rpcs_total", "Calls and streams that have ended, by method, wire and code. "+
			"The code of Messages.CompleteAndReceive is also that of a failure in its answer.",
		"method", "wire", "code",
	)
	m.rpcDuration = to.histogramVec("sidebus_rpc_duration_seconds",
		"Time from the arrival of a call to its answer, without the time it waits for messages or a session. "+
			"Streams and Messages.Request are not in it.",
		rpcBuckets, "method", "wire", "code")
	m.Panics = to.counter("sidebus_panics_total", "Calls, pushes and streams that failed because of a bug in Sidebus.")
}

func (m *Metrics) addMessages(to *collection) {
	m.sent = to.counterVec("sidebus_messages_sent_total", "Messages stored by sends.", "entity")
	m.shortLived = to.counterVec("sidebus_messages_short_lived_total",
		"Messages stored by sends with a time to live below 1 s. They may expire before they are received.", "entity")
	m.deduplicated = to.counterVec(
		"sidebus_messages_deduplicated_total", "Messages that duplicate detection dropped.", "entity",
	)
	m.received = to.counterVec("sidebus_messages_received_total", "Messages delivered to receivers.", "entity")
	m.settled = to.counterVec("sidebus_messages_settled_total", "Messages settled, by outcome.", "entity", "outcome")
	m.locksLost = to.counterVec("sidebus_locks_lost_total",
		"Settlements and renewals that failed because the lock had expired or was lost, by the outcome asked for.",
		"entity", "outcome")
	m.removed = to.counterVec(
		"sidebus_messages_removed_total", "Messages removed without being received, by verb.", "entity", "verb",
	)
	m.resubmitted = to.counterVec(
		"sidebus_messages_resubmitted_total", "Dead letters sent again, by the entity they came from.", "entity",
	)
}

func (m *Metrics) addAdmission(to *collection) {
	m.Connections = to.gaugeVec("sidebus_connections", "Open connections of clients.", "wire")
	m.ConnectionsRefused = to.counterVec(
		"sidebus_connections_refused_total", "Connections refused because --max-connections were open.", "wire",
	)
	m.ConnectionsIdleEnded = to.counterVec(
		"sidebus_connections_idle_ended_total", "Idle connections closed to make place for others.", "wire",
	)
	m.WaitsEnded = to.counter(
		"sidebus_waits_ended_total", "Waiting receives answered early to make place for other calls.",
	)
	m.RequestsRefused = to.counter("sidebus_requests_refused_total",
		"Requests refused because requests in flight used all of --request-memory.")
	m.RequestsLate = to.counter(
		"sidebus_requests_late_total", "Requests whose body or first message did not arrive in time.",
	)
	m.RequestMemory = to.gauge("sidebus_request_memory_bytes", "Memory reserved for requests in flight.")
	m.AnswersRefused = to.counter("sidebus_answers_refused_total",
		"Receives and peeks refused because unread answers used all memory for answers.")
	m.AnswersLate = to.counter(
		"sidebus_answers_late_total", "Connections closed because the client did not read its answers.",
	)
	m.AnswerMemory = to.gauge("sidebus_answer_memory_bytes", "Memory reserved for answers that clients have not read.")
}

func (m *Metrics) addHandlers(to *collection) {
	m.Pushes = to.counterVec("sidebus_pushes_total", "Messages pushed to the app, by outcome.", "handler", "outcome")
	m.PushDuration = to.histogramVec(
		"sidebus_push_duration_seconds", "Time from a push to the answer of the app.", pushBuckets, "handler",
	)
	m.HandlerReachable = to.gaugeVec("sidebus_handler_reachable",
		"1 if the app accepted the last connection of the handler, else 0.", "handler")
}

func (m *Metrics) addDapr(to *collection) {
	m.DaprStreams = to.gauge("sidebus_dapr_streams", "Open message streams of the Dapr runtime.")
	m.DaprStreamsStalled = to.gauge("sidebus_dapr_streams_stalled",
		"Open message streams of the Dapr runtime whose entity cannot be received from.")
	m.DaprDeliveries = to.counterVec(
		"sidebus_dapr_deliveries_total", "Messages delivered to the Dapr runtime, by outcome.", "outcome",
	)
	m.DaprBadMetadata = to.counter("sidebus_dapr_bad_metadata_total",
		"Invalid values in the metadata of Dapr subscriptions, which were ignored.")
	m.DaprHeals = to.counterVec(
		"sidebus_dapr_heals_total", "Restarts of Sidebus under a running Dapr runtime, by outcome.", "outcome",
	)
}

func addBroker(to *collection, stats BrokerStats) {
	to.gaugeFunc("sidebus_messages_held",
		"Messages and sessions that clients of this sidecar hold: not settled or closed, and their locks may hold.",
		func() float64 { return float64(stats.Held()) })
	to.counterFunc("sidebus_orphan_replies_total", "Replies completed because no request waited for them.",
		func() float64 { return float64(stats.OrphanReplies()) })
	to.counterFunc("sidebus_prefetches_cut_total",
		"Streams whose prefetch was reduced because the client is too slow for it.",
		func() float64 { return float64(stats.PrefetchesCut()) })
	to.counterFunc("sidebus_messages_forwarded_total", "Messages that this sidecar forwarded, once for each hop.",
		func() float64 { forwarded, _ := stats.Forwarded(); return float64(forwarded) })
	to.counterFunc("sidebus_forwards_refused_total",
		"Messages that this sidecar could not forward and dead-lettered.",
		func() float64 { _, refused := stats.Forwarded(); return float64(refused) })
}

// Sidecar has the values of metrics about the sidecar and its store.
type Sidecar struct {
	Version, Commit string
	StoreUp         func() bool
	Entities        EntityStore      // nil: no gauges of entities
	Sharer          semantics.Sharer // nil: each sidecar reads Entities
	MaxEntities     int              // with gauges; 0: none
}

// RegisterSidecar registers the metrics of a sidecar. It fails if the registry has metrics of the same names.
func RegisterSidecar(registry *prometheus.Registry, s Sidecar) error {
	all := &collection{}
	build := all.gaugeVec("sidebus_build_info",
		"Always 1; the labels have the version of Sidebus, of Go, and the commit.", "version", "go", "commit")
	build.WithLabelValues(s.Version, runtime.Version(), s.Commit).Set(1)
	all.gaugeFunc("sidebus_store_up", "1 if the last health check of the store succeeded, else 0.", func() float64 {
		if s.StoreUp() {
			return 1
		}
		return 0
	})
	if s.Entities != nil && s.MaxEntities > 0 {
		add(all, newEntities(s.Entities, s.Sharer, s.MaxEntities, s.StoreUp))
	}
	return all.register(registry)
}
