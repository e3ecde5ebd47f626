package proxy

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	"github.com/sidebus/sidebus/proxy/admin"
	"github.com/sidebus/sidebus/proxy/amqp"
	"github.com/sidebus/sidebus/proxy/atom"
	"github.com/sidebus/sidebus/proxy/compat"
	"github.com/sidebus/sidebus/proxy/console"
	"github.com/sidebus/sidebus/proxy/grpcapi"
	"github.com/sidebus/sidebus/proxy/httpapi"
	"github.com/sidebus/sidebus/proxy/internal/admission"
	"github.com/sidebus/sidebus/proxy/internal/hosts"
	"github.com/sidebus/sidebus/proxy/internal/obs"
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

	// streamWorkers goroutines run the calls of gRPC one after the other, so that their stacks need not grow again for
	// each call. grpc-go starts a goroutine for a call or stream that finds all of them busy, so waiting receives and
	// streams block no other call. More than the calls under way would be slower: each gets a turn, with a cold stack.
	streamWorkers = 64
)

// newServers creates the servers of the API, of the admin pages and of the probes.
func (p *Proxy) newServers(measures *obs.Metrics, calls *obs.Calls, metrics *prometheus.Registry) error {
	sessions, queues := grpcapi.NewSessions(p.broker), grpcapi.NewAdmin(p.broker)
	overGRPC := grpcapi.NewMessages(p.broker, measures, grpcapi.OverGRPC, p.stopping)
	overHTTP := grpcapi.NewMessages(p.broker, measures, grpcapi.OverHTTP, p.stopping)

	api, err := httpapi.New(
		overHTTP, sessions, grpcapi.NewTransactions(overHTTP), queues, p.responses, calls, p.config.Authorizer,
	)
	if err != nil {
		return err
	}
	p.grpc = newGRPCServer(p.config.MaxGRPCMessage)
	grpcapi.Register(
		p.grpc, overGRPC, sessions, grpcapi.NewTransactions(overGRPC), queues, p.responses, calls, p.config.Authorizer,
	)
	healthpb.RegisterHealthServer(p.grpc, &health{readiness: p.readiness, stopping: p.stopping})
	reflection.Register(p.grpc)

	p.amqp = amqp.New(amqp.Config{
		Broker: p.broker, Authorizer: p.config.Authorizer, Metrics: measures, Calls: calls, Logger: p.logger,
		Admission: p.admission,
	})

	management := atom.New(atom.Config{
		Broker: p.broker, Responses: p.responses, Calls: calls, Authorizer: p.config.Authorizer,
		Namespace: p.config.Namespace, Next: api,
	})
	var all http.Handler = compat.New(compat.Config{
		Broker: p.broker, Responses: p.responses, Calls: calls, Metrics: measures, Next: management,
		Authorizer: p.config.Authorizer,
	})
	if len(p.config.AMQPAddrs) > 0 {
		all = p.amqp.WebSockets(all)
	}
	p.http = p.apiServer(all)

	pages := admin.Config{
		Readiness: p.readiness, Metrics: metrics, Hosts: p.hosts(p.config.AdminAddr),
		BodyTimeout: p.config.RequestTime, Settings: p.config.Settings, Pprof: p.config.Pprof,
		Drain: p.Drain, Quit: p.config.Quit, DrainTimeout: p.config.DrainTimeout, Logger: p.logger,
	}
	if p.config.Console != ConsoleOff && p.config.Entities != nil {
		p.console = console.New(console.Config{
			Entities: p.config.Entities, Broker: p.broker, API: p.admission.Handler(pages.Hosts, api),
			Authorizer: p.config.Authorizer, Readiness: p.readiness, ReadOnly: p.config.Console == ConsoleReadOnly,
			Namespace: p.config.Namespace, Version: p.config.Version,
		})
		pages.Console = p.console
	}
	p.admin = p.server(admin.New(pages))
	p.admin.ConnContext = admission.PeerContext
	pages.Hosts = p.hosts(p.config.ProbeAddr)
	p.probes = p.server(admin.NewProbes(pages))
	return nil
}

func newGRPCServer(maxMessage int) *grpc.Server {
	return grpc.NewServer(append(
		slices.Concat(admission.GRPCOptions(), grpcapi.ServerOptions()),
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.MaxHeaderListSize(maxHeaderBytes),
		grpc.KeepaliveEnforcementPolicy(
			keepalive.EnforcementPolicy{MinTime: minPingInterval, PermitWithoutStream: true},
		),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: pingInterval, Timeout: pingTimeout}),
		grpc.WaitForHandlers(true),
		grpc.NumStreamWorkers(streamWorkers),
	)...)
}

// apiServer is the HTTP server of the API, with limits on who is let in.
func (p *Proxy) apiServer(api http.Handler) *http.Server {
	names := hosts.New(p.config.HTTPAddr, slices.Concat(p.config.AllowedHosts, p.config.amqpHosts()))
	server := p.server(p.admission.Handler(names, api))
	server.MaxHeaderBytes = maxMessageHeaders
	server.ConnState = p.admission.ConnState
	server.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		if below, ok := admission.Underlying(conn); ok {
			ctx = compat.Spelled(ctx, below)
		}
		return admission.ConnContext(ctx, conn)
	}
	return server
}

func (p *Proxy) server(handler http.Handler) *http.Server { return newHTTPServer(handler, p.logger) }

func newHTTPServer(handler http.Handler, logger *slog.Logger) *http.Server {
	return &http.Server{
		Handler: handler, MaxHeaderBytes: maxHeaderBytes, ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout: idleTimeout,
		ErrorLog:    slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
	}
}

// hosts are the host names for which requests to an address are served.
func (p *Proxy) hosts(address string) *hosts.Hosts { return hosts.New(address, p.config.AllowedHosts) }
