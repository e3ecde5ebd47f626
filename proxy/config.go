package proxy

import (
	"fmt"
	"time"

	"github.com/sidebus/sidebus/proxy/compat"
	"github.com/sidebus/sidebus/proxy/dapr"
	"github.com/sidebus/sidebus/proxy/push"
)

// Config says where a Proxy listens and how it behaves. An address is "host:port", port 0 for any free one, or
// "unix:///path".
type Config struct {
	HTTPAddr  string // the JSON API
	GRPCAddr  string // the gRPC API, with health and reflection
	AdminAddr string // probes, metrics, settings, drain, profiles

	// DrainTimeout is how long a stop waits for messages in hand to be settled before it gives them back. Zero gives them
	// back at once.
	DrainTimeout time.Duration

	// MaxGRPCMessage is the most bytes of one gRPC request; a larger one is RESOURCE_EXHAUSTED and not read. Zero is
	// DefaultMaxGRPCMessage.
	MaxGRPCMessage int

	// MaxConnections is the most connections of clients over both wires together (QUOTA-5). Zero is
	// DefaultMaxConnections.
	MaxConnections int

	// Keys gives the rules of shared access to the compat REST API; nil: nobody is asked for a token (AUTH-5). It is called
	// for each request.
	Keys func() compat.Keys

	// Handlers are what the app is called for.
	Handlers []push.Handler

	// Dapr is where Dapr's runtime finds its pub/sub component; without a Socket there is none. Its MaxMessage is MaxGRPCMessage.
	Dapr dapr.Config

	// Settings are shown at /config of the admin address as they are, so secrets must be masked already.
	Settings map[string]string
}

// Defaults of Config.
const (
	DefaultMaxGRPCMessage = 102 << 20 // the largest message, its properties, and room for the encoding
	DefaultMaxConnections = 1000
)

func (c Config) withDefaults() (Config, error) {
	for _, a := range []struct{ name, value string }{
		{"HTTPAddr", c.HTTPAddr}, {"GRPCAddr", c.GRPCAddr}, {"AdminAddr", c.AdminAddr},
	} {
		if a.value == "" {
			return c, fmt.Errorf("%s is empty, must be host:port or unix:///path", a.name)
		}
	}
	if c.DrainTimeout < 0 || c.MaxGRPCMessage < 0 || c.MaxConnections < 0 {
		return c, fmt.Errorf("DrainTimeout, MaxGRPCMessage and MaxConnections must not be negative")
	}
	if c.MaxGRPCMessage == 0 {
		c.MaxGRPCMessage = DefaultMaxGRPCMessage
	}
	if c.MaxConnections == 0 {
		c.MaxConnections = DefaultMaxConnections
	}
	c.Dapr.MaxMessage = c.MaxGRPCMessage
	return c, nil
}
