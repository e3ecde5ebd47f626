package proxy

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/proxy/dapr"
	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/proxy/internal/traces"
	"github.com/sidebus/sidebus/proxy/push"
	"github.com/sidebus/sidebus/semantics"
)

// Config configures a Proxy. An address is "host:port", with port 0 for any free one, or "unix:///path".
type Config struct {
	HTTPAddr  string // the JSON API
	GRPCAddr  string // the gRPC API, with health and reflection
	AdminAddr string // probes, metrics, settings, drain, profiles
	ProbeAddr string // probes and metrics only, for an address that other machines reach; empty: not served

	// AMQPAddrs serve AMQP 1.0, AMQP over WebSockets and HTTP, for the SDKs of Service Bus; none: not served.
	AMQPAddrs []string
	// AMQPCertFile and AMQPKeyFile are a certificate of AMQPAddrs, PEM, which serve without TLS too, unless TLS has
	// one. They are read again when they change.
	AMQPCertFile, AMQPKeyFile string
	// AuthorityDir is the folder of the certificate authority that AMQPAddrs use without a certificate from files.
	// Empty: they serve without TLS then.
	AuthorityDir string

	// SocketMode is the permissions of unix sockets, regardless of the umask. Zero is DefaultSocketMode.
	SocketMode fs.FileMode

	// TLS is how the listeners on TCP are served. The zero TLS is none.
	TLS TLS

	// Console is what the web console on AdminAddr may do. It needs Entities.
	Console ConsoleMode
	// Namespace is shown in the console.
	Namespace string

	// Pprof serves profiles on AdminAddr.
	Pprof bool
	// Quit, if set, is called by POST /quitquitquit on AdminAddr. It must end the context of Run.
	Quit func()

	// DrainTimeout is the total time of a stop, see StopTime. In most of it, clients settle the messages that they have
	// locked; then the rest is released. Zero releases them at once.
	DrainTimeout time.Duration

	// MaxGRPCMessage is the maximum size of a gRPC request in bytes; a larger one is refused with RESOURCE_EXHAUSTED
	// and not read. Zero is DefaultMaxGRPCMessage.
	MaxGRPCMessage int

	// MaxConnections limits client connections over HTTP and gRPC together; a tenth is reserved for calls that do not
	// wait (QUOTA-5). Zero is DefaultMaxConnections.
	MaxConnections int

	// RequestMemory limits the bytes of requests in flight, and those of unread responses. Zero is
	// DefaultRequestMemory.
	RequestMemory int64

	// RequestTime is how long a request body may take to arrive, plus one second for each 64 KiB of it. Zero is
	// DefaultRequestTime.
	RequestTime time.Duration

	// AllowedHosts are further host names for which HTTP requests are served, or "*" for all. Loopback names and the
	// listen addresses are always served.
	AllowedHosts []string

	// Authorizer authorizes calls of all APIs, the Dapr component and push handlers. nil permits all calls.
	Authorizer access.Authorizer

	// Handlers are the sources whose messages are pushed to the app.
	Handlers []push.Handler

	// Dapr configures the Dapr pub/sub component. Without a Socket there is none. Its MaxMessage and
	// Authorizer are set to those of this Config.
	Dapr dapr.Config

	// Tracing records spans of messages; see TraceContext. nil: none.
	Tracing trace.TracerProvider

	// Version and Commit of the build are shown in the metrics.
	Version, Commit string

	// Entities is read for the gauges of queues, topics and subscriptions. nil: no gauges.
	Entities obs.EntityStore

	// Sharer lets one sidecar read Entities for all that use the store. nil: each reads for itself.
	Sharer semantics.Sharer

	// MetricsEntities limits the entities with metrics of their own. Zero is DefaultMetricsEntities, negative is none.
	MetricsEntities int

	// Settings are shown at /config of AdminAddr. Secrets must be masked.
	Settings map[string]string
}

// TraceContext returns the properties that carry the span of a send with its messages, for broker.WithStamp. It returns
// nil without Config.Tracing, and for a message that has a trace context.
func TraceContext(ctx context.Context, m *semantics.Message) map[string]semantics.Value {
	return traces.Stamp(ctx, m)
}

// DeadLetterSpans returns a function that records the span of a message that Sidebus has dead-lettered without being
// asked to, at the path of its entity. It returns nil if provider is nil.
func DeadLetterSpans(
	provider trace.TracerProvider,
) func(ctx context.Context, path, cause string, m *semantics.Received) {
	t := traces.New(provider)
	if t == nil {
		return nil
	}
	return t.DeadLettered
}

// Defaults of Config.
const (
	DefaultMaxGRPCMessage  = 102 << 20 // the largest message with its properties and the overhead of the encoding
	DefaultMaxConnections  = 5000
	DefaultMetricsEntities = 100
	DefaultRequestMemory   = 256 << 20
	DefaultRequestTime     = 30 * time.Second
	DefaultSocketMode      = fs.FileMode(0o660)
)

// EntityLabels returns a function that converts the path of an entity to its value of the metric label "entity". At
// most limit entities get a value of their own, as with Config.MetricsEntities. The function is safe for concurrent
// use.
func EntityLabels(limit int) func(path string) string { return obs.NewLabels(limit).Of }

func (c Config) withDefaults() (Config, error) {
	for _, a := range []struct{ name, value string }{
		{"HTTPAddr", c.HTTPAddr}, {"GRPCAddr", c.GRPCAddr}, {"AdminAddr", c.AdminAddr},
	} {
		if a.value == "" {
			return c, fmt.Errorf("%s is empty, must be host:port or unix:///path", a.name)
		}
	}
	if c.DrainTimeout < 0 || c.MaxGRPCMessage < 0 || c.MaxConnections < 0 || c.RequestMemory < 0 || c.RequestTime < 0 {
		return c, fmt.Errorf(
			"DrainTimeout, MaxGRPCMessage, MaxConnections, RequestMemory and RequestTime must not be negative",
		)
	}
	if c.MaxGRPCMessage == 0 {
		c.MaxGRPCMessage = DefaultMaxGRPCMessage
	}
	if c.Authorizer == nil {
		c.Authorizer = access.AllowAll{}
	}
	if c.SocketMode == 0 {
		c.SocketMode = DefaultSocketMode
	}
	c.MetricsEntities = cmp.Or(c.MetricsEntities, DefaultMetricsEntities)
	c.MaxConnections = cmp.Or(c.MaxConnections, DefaultMaxConnections)
	c.RequestMemory = cmp.Or(c.RequestMemory, DefaultRequestMemory)
	c.RequestTime = cmp.Or(c.RequestTime, DefaultRequestTime)
	c.Dapr.MaxMessage, c.Dapr.Authorizer = c.MaxGRPCMessage, c.Authorizer
	return c, nil
}
