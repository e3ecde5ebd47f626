// Package proxy is the running sidecar. It serves the API over gRPC and HTTP, probes and metrics on an address of their
// own, the Dapr component and push handlers, and starts and stops without losing messages.
package proxy

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	"github.com/sidebus/sidebus/proxy/admin"
	"github.com/sidebus/sidebus/proxy/compat"
	"github.com/sidebus/sidebus/proxy/dapr"
	"github.com/sidebus/sidebus/proxy/grpcapi"
	"github.com/sidebus/sidebus/proxy/httpapi"
	"github.com/sidebus/sidebus/proxy/internal/admission"
	"github.com/sidebus/sidebus/proxy/internal/hosts"
	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/proxy/internal/readiness"
	"github.com/sidebus/sidebus/proxy/internal/response"
	"github.com/sidebus/sidebus/proxy/push"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// Limits of the servers. Responses have no time limit, since a receive may wait for semantics.MaxWait. When a client
// disconnects, its call ends.
const (
	maxHeaderBytes    = 64 << 10
	maxMessageHeaders = 512 << 10 // of a message in REST headers, with all characters escaped (MSG-15)
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 2 * time.Minute
	minPingInterval   = 10 * time.Second // of a gRPC client, also without calls
	pingInterval      = time.Minute      // of the gRPC server, to detect lost clients
	pingTimeout       = 20 * time.Second
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

	opened   chan struct{}           // closed when all listeners are open
	bound    [listenerCount]net.Addr // set before opened is closed
	stopping chan struct{}           // closed when the servers stop
}

// New returns a Proxy and registers its metrics. It opens nothing and does not block. It fails if an address is
// missing, a limit is negative, a handler is invalid, or the registry has metrics of the same names. The caller closes
// broker after Run.
func New(
	config Config, broker *broker.Broker, checker semantics.Checker, logger *slog.Logger, metrics *prometheus.Registry,
) (*Proxy, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	measures, err := obs.NewMetrics(metrics, broker, max(config.MetricsEntities, 0))
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	p := &Proxy{
		config: config, broker: broker, logger: logger,
		readiness: readiness.New(checker, broker, logger),
		responses: response.NewTracker(logger),
		admission: admission.New(admission.Config{
			MaxConnections: config.MaxConnections, MaxMemory: config.RequestMemory, ReadTimeout: config.RequestTime,
		}, measures, logger),
		opened: make(chan struct{}), stopping: make(chan struct{}),
	}
	if err := obs.RegisterSidecar(metrics, obs.Sidecar{
		Version: config.Version, Commit: config.Commit, StoreUp: p.readiness.StoreUp,
		Entities: config.Entities, MaxEntities: config.MetricsEntities,
	}); err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	calls := obs.NewCalls(measures, logger)
	calls.OnOutage = p.readiness.CheckSoon
	sessions, queues := grpcapi.NewSessions(broker), grpcapi.NewAdmin(broker)
	p.grpc = grpc.NewServer(append(
		admission.GRPCOptions(),
		grpcapi.ServerOption(),
		grpc.MaxRecvMsgSize(config.MaxGRPCMessage),
		grpc.MaxHeaderListSize(maxHeaderBytes),
		grpc.KeepaliveEnforcementPolicy(
			keepalive.EnforcementPolicy{MinTime: minPingInterval, PermitWithoutStream: true},
		),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: pingInterval, Timeout: pingTimeout}),
		grpc.WaitForHandlers(true),
	)...)
	grpcapi.Register(
		p.grpc, grpcapi.NewMessages(broker, measures, semantics.MaxMessageSize, p.stopping), sessions, queues,
		p.responses, calls, config.Authorizer,
	)
	healthpb.RegisterHealthServer(p.grpc, &health{readiness: p.readiness, stopping: p.stopping})
	reflection.Register(p.grpc)

	overHTTP := grpcapi.NewMessages(broker, measures, semantics.MaxHTTPMessageSize, p.stopping)
	api, err := httpapi.New(overHTTP, sessions, queues, p.responses, calls, config.Authorizer)
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	p.http = p.server(p.admission.Handler(hosts.New(config.HTTPAddr, config.AllowedHosts), compat.New(compat.Config{
		Broker: broker, Responses: p.responses, Calls: calls, Metrics: measures, Next: api,
		Authorizer: config.Authorizer,
	})))
	p.http.MaxHeaderBytes = maxMessageHeaders
	p.http.ConnState = p.admission.ConnState
	p.http.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		if below, ok := admission.Underlying(conn); ok {
			ctx = compat.Spelled(ctx, below)
		}
		return admission.ConnContext(ctx, conn)
	}
	if p.push, err = push.New(config.Handlers, broker, measures, logger); err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	if p.dapr, err = dapr.New(config.Dapr, broker, measures, calls, logger); err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	pages := admin.Config{
		Readiness: p.readiness, Metrics: metrics, Hosts: hosts.New(config.AdminAddr, config.AllowedHosts),
		BodyTimeout: config.RequestTime, Settings: config.Settings, Pprof: config.Pprof,
		Drain: p.Drain, DrainTimeout: config.DrainTimeout,
	}
	p.admin = p.server(admin.New(pages))
	pages.Hosts = hosts.New(config.ProbeAddr, config.AllowedHosts)
	p.probes = p.server(admin.NewProbes(pages))
	return p, nil
}

func (p *Proxy) server(handler http.Handler) *http.Server {
	return &http.Server{
		Handler: handler, MaxHeaderBytes: maxHeaderBytes, ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout: idleTimeout,
		ErrorLog:    slog.NewLogLogger(p.logger.Handler(), slog.LevelDebug),
	}
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
