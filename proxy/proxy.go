// Package proxy is the running sidecar. It serves the API over gRPC and HTTP, probes and metrics on an address of their
// own, the Dapr component and push handlers, and starts and stops without losing messages.
package proxy

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"

	"github.com/sidebus/sidebus/proxy/amqp"
	"github.com/sidebus/sidebus/proxy/console"
	"github.com/sidebus/sidebus/proxy/dapr"
	"github.com/sidebus/sidebus/proxy/internal/admission"
	"github.com/sidebus/sidebus/proxy/internal/authority"
	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/proxy/internal/oneport"
	"github.com/sidebus/sidebus/proxy/internal/readiness"
	"github.com/sidebus/sidebus/proxy/internal/response"
	"github.com/sidebus/sidebus/proxy/internal/traces"
	"github.com/sidebus/sidebus/proxy/push"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// Proxy is one sidecar. Use New, then Run.
type Proxy struct {
	config    Config
	broker    *broker.Broker
	logger    *slog.Logger
	readiness *readiness.Readiness
	responses *response.Tracker

	grpc      *grpc.Server
	http      *http.Server
	admin     *http.Server
	probes    *http.Server
	admission *admission.Controller
	push      *push.Pusher
	dapr      *dapr.Server
	amqp      *amqp.Server
	port      *oneport.Port    // of Config.AMQPAddrs; nil: none
	console   *console.Console // nil: none

	certificates     *certificates // nil: no TLS
	amqpCertificates *certificates // of Config.AMQPAddrs alone; nil: none
	authority        *authority.Authority

	opened   chan struct{}           // closed when all listeners are open
	bound    [listenerCount]net.Addr // set before opened is closed, as the next one
	amqpAt   []net.Addr
	stopping chan struct{} // closed when the servers stop
}

// New returns a Proxy and registers its metrics. It opens nothing and does not block; Run must follow. It fails if an
// address is missing, a limit is negative, a handler is invalid, or the registry has metrics of the same names. The
// caller closes broker after Run.
func New(
	config Config, broker *broker.Broker, checker semantics.Checker, logger *slog.Logger, metrics *prometheus.Registry,
) (*Proxy, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	store := readiness.New(checker, broker, logger)
	measures, calls, err := measure(metrics, broker, max(config.MetricsEntities, 0), obs.Sidecar{
		Version: config.Version, Commit: config.Commit, Entities: config.Entities, Sharer: config.Sharer,
		MaxEntities: config.MetricsEntities,
	}, store, logger)
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	measures.Traces = traces.New(config.Tracing)
	p := &Proxy{
		config: config, broker: broker, logger: logger,
		readiness: store,
		responses: response.NewTracker(logger),
		admission: admission.New(admission.Config{
			MaxConnections: config.MaxConnections, MaxMemory: config.RequestMemory, ReadTimeout: config.RequestTime,
		}, measures, logger),
		opened: make(chan struct{}), stopping: make(chan struct{}),
	}
	if p.push, err = push.New(config.Handlers, broker, config.Authorizer, measures, logger); err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	if p.dapr, err = dapr.New(config.Dapr, broker, measures, calls, logger); err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	if p.certificates, err = openCertificates(config.TLS); err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	if p.amqpCertificates, err = openCertificates(config.amqpTLS()); err != nil {
		p.certificates.close()
		return nil, fmt.Errorf("proxy: AMQP: %w", err)
	}
	if err := p.newServers(measures, calls, metrics); err != nil { // last: it starts goroutines, which Run ends
		p.certificates.close()
		p.amqpCertificates.close()
		return nil, fmt.Errorf("proxy: %w", err)
	}
	return p, nil
}

// Opened returns a channel that is closed when all listeners are open.
func (p *Proxy) Opened() <-chan struct{} { return p.opened }

// Started returns a channel that is closed when the store was ready for the first time.
func (p *Proxy) Started() <-chan struct{} { return p.readiness.Started() }

// HTTPAddr returns the address of the HTTP API. It blocks until Opened.
func (p *Proxy) HTTPAddr() net.Addr { return p.addr(httpListener) }

// GRPCAddr returns the address of the gRPC API. It blocks until Opened.
func (p *Proxy) GRPCAddr() net.Addr { return p.addr(grpcListener) }

// AdminAddr returns the address of probes and metrics. It blocks until Opened.
func (p *Proxy) AdminAddr() net.Addr { return p.addr(adminListener) }

// ProbeAddr returns the address that serves only probes and metrics, or nil if there is none. It blocks until Opened.
func (p *Proxy) ProbeAddr() net.Addr { return p.addr(probeListener) }

// AMQPAddrs returns the addresses of AMQP, none if it is not served. It blocks until Opened.
func (p *Proxy) AMQPAddrs() []net.Addr {
	<-p.opened
	return p.amqpAt
}

// AuthorityFile returns the file with the authority that clients of AMQPAddrs over TLS trust, or "" if these addresses
// have another certificate or none. It blocks until Opened.
func (p *Proxy) AuthorityFile() string {
	<-p.opened
	if p.authority == nil {
		return ""
	}
	return p.authority.File
}

func (p *Proxy) addr(which int) net.Addr {
	<-p.opened
	return p.bound[which]
}

// Drain makes readiness fail and ends new and waiting receives; settlements and sends continue. It blocks until no
// message is locked or ctx ends, and returns how many are. It may be called at any time, also before a stop, which then
// has less to wait for.
func (p *Proxy) Drain(ctx context.Context) int {
	p.broker.BeginDrain()
	return p.broker.AwaitSettled(ctx)
}
