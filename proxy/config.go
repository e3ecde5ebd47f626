package proxy

import (
	"cmp"
	"fmt"
	"io/fs"
	"time"

	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/proxy/dapr"
	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/proxy/push"
)

// Config says where a Proxy listens and how it behaves. An address is "host:port", port 0 for any free one, or
// "unix:///path".
type Config struct {
	HTTPAddr  string // the JSON API
	GRPCAddr  string // the gRPC API, with health and reflection
	AdminAddr string // probes, metrics, settings, drain, profiles
	ProbeAddr string // probes and metrics alone, for an address that other machines reach; empty: nowhere else

	// SocketMode are the permissions of unix sockets, whatever the umask is. Zero is DefaultSocketMode.
	SocketMode fs.FileMode

	// Pprof serves profiles on AdminAddr.
	Pprof bool

	// DrainTimeout is the budget of a stop: how long it may take in all, see StopTime. Most of it is for messages in
	// hand to be settled before they are given back. Zero gives them back at once.
	DrainTimeout time.Duration

	// MaxGRPCMessage is the most bytes of one gRPC request; a larger one is RESOURCE_EXHAUSTED and not read. Zero is
	// DefaultMaxGRPCMessage.
	MaxGRPCMessage int

	// MaxConnections is the most connections of clients over both wires together, of which a tenth is kept for calls
	// that do not wait (QUOTA-5). Zero is DefaultMaxConnections.
	MaxConnections int

	// RequestMemory is the most memory for requests under way, and for answers that were not read yet as much again.
	// Zero is DefaultRequestMemory.
	RequestMemory int64

	// RequestTime is how long a request's body may take to arrive, and a second more for each 64 KiB of it. Zero is
	// DefaultRequestTime.
	RequestTime time.Duration

	// AllowedHosts are further names for which HTTP requests are served; "*" for all. Loopback and the addresses that
	// are listened on are always served.
	AllowedHosts []string

	// Authorizer decides who may make which calls of the HTTP and gRPC APIs; nil: everybody may make all.
	Authorizer access.Authorizer

	// Handlers are what the app is called for.
	Handlers []push.Handler

	// Dapr is where Dapr's runtime finds its pub/sub component; without a Socket there is none. Its MaxMessage is
	// MaxGRPCMessage.
	Dapr dapr.Config

	// Version and Commit of the build are shown in the metrics.
	Version, Commit string

	// Entities is asked for the gauges of queues, topics and subscriptions, as a semantics.Store is; nil: they have
	// none.
	Entities obs.EntityStore

	// MetricsEntities is how many entities have metrics of their own. Zero is DefaultMetricsEntities, less than zero
	// none.
	MetricsEntities int

	// Settings are shown at /config of the admin address as they are, so secrets must be masked already.
	Settings map[string]string
}

// Defaults of Config.
const (
	DefaultMaxGRPCMessage  = 102 << 20 // the largest message, its properties, and room for the encoding
	DefaultMaxConnections  = 5000
	DefaultMetricsEntities = 100
	DefaultRequestMemory   = 256 << 20
	DefaultRequestTime     = 30 * time.Second
	DefaultSocketMode      = fs.FileMode(0o660)
)

// EntityLabels returns a function from the path of an entity to its value for the label "entity" of a metric. At most
// limit entities have a value of their own, as with Config.MetricsEntities. The function is safe for concurrent use.
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
	c.Dapr.MaxMessage = c.MaxGRPCMessage
	return c, nil
}
