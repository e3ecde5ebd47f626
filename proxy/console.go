package proxy

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/proxy/admin"
	"github.com/sidebus/sidebus/proxy/console"
	"github.com/sidebus/sidebus/proxy/grpcapi"
	"github.com/sidebus/sidebus/proxy/httpapi"
	"github.com/sidebus/sidebus/proxy/internal/admission"
	"github.com/sidebus/sidebus/proxy/internal/hosts"
	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/proxy/internal/readiness"
	"github.com/sidebus/sidebus/proxy/internal/response"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// ConsoleMode is what the web console may do.
type ConsoleMode int

// The modes of the console.
const (
	ConsoleOff      ConsoleMode = iota // there is none
	ConsoleReadOnly                    // it shows everything and changes nothing
	ConsoleOn                          // it may do what its caller may
)

// ConsoleConfig configures a Console.
type ConsoleConfig struct {
	Addr         string // "host:port" or "unix:///path": the console, probes and metrics
	AllowedHosts []string
	ReadOnly     bool
	TLS          TLS
	Authorizer   access.Authorizer // nil permits all calls

	Namespace       string
	Version, Commit string
}

// Limits of a Console.
const (
	maxConsoleConnections = 1000
	maxConsoleMemory      = 64 << 20
	consoleRequestTime    = 30 * time.Second

	// ConsoleStopTime is the longest time that a Console takes to stop.
	ConsoleStopTime = 3 * time.Second
)

// Console serves the web console of a namespace without a sidecar. Use NewConsole, then Run.
type Console struct {
	config       ConsoleConfig
	broker       *broker.Broker
	readiness    *readiness.Readiness
	certificates *certificates // nil: no TLS
	console      *console.Console
	server       *http.Server

	opened   chan struct{} // closed when it listens
	listener net.Listener
	addr     net.Addr // set before opened is closed
}

// NewConsole returns a Console and registers its metrics. It opens nothing and does not block; Run must follow. The
// caller closes broker after Run.
func NewConsole(
	config ConsoleConfig, broker *broker.Broker, store console.Entities, checker semantics.Checker, logger *slog.Logger,
	metrics *prometheus.Registry,
) (*Console, error) {
	if config.Authorizer == nil {
		config.Authorizer = access.AllowAll{}
	}
	c := &Console{
		config: config, broker: broker, readiness: readiness.New(checker, broker, logger), opened: make(chan struct{}),
	}
	process := obs.Sidecar{Version: config.Version, Commit: config.Commit}
	measures, calls, err := measure(metrics, broker, 0, process, c.readiness, logger)
	if err != nil {
		return nil, fmt.Errorf("console: %w", err)
	}
	messages := grpcapi.NewMessages(broker, measures, grpcapi.OverHTTP, make(chan struct{}))
	api, err := httpapi.New(
		messages, grpcapi.NewSessions(broker), grpcapi.NewTransactions(messages), grpcapi.NewAdmin(broker),
		response.NewTracker(logger), calls, config.Authorizer,
	)
	if err != nil {
		return nil, fmt.Errorf("console: %w", err)
	}
	names := hosts.New(config.Addr, config.AllowedHosts)
	limits := admission.New(admission.Config{
		MaxConnections: maxConsoleConnections, MaxMemory: maxConsoleMemory, ReadTimeout: consoleRequestTime,
	}, measures, logger)
	c.console = console.New(console.Config{
		Entities: store, Broker: broker, API: limits.Handler(names, api), Authorizer: config.Authorizer,
		Readiness: c.readiness, ReadOnly: config.ReadOnly, Always: true, Namespace: config.Namespace,
		Version: config.Version,
	})
	c.server = newHTTPServer(admin.NewConsole(admin.Config{
		Readiness: c.readiness, Metrics: metrics, Hosts: names, BodyTimeout: consoleRequestTime, Console: c.console,
	}), logger)
	c.server.ConnContext = admission.PeerContext
	if c.certificates, err = openCertificates(config.TLS); err != nil {
		return nil, fmt.Errorf("console: %w", err)
	}
	return c, nil
}

// Opened returns a channel that is closed when the console listens.
func (c *Console) Opened() <-chan struct{} { return c.opened }

// Addr returns the address of the console. It blocks until Opened.
func (c *Console) Addr() net.Addr {
	<-c.opened
	return c.addr
}

// Run serves until ctx ends, and then stops within ConsoleStopTime and returns nil. It returns an error if the listener
// cannot be opened, if the store needs a repair before it can be used (PRECONDITION_FAILED, only while starting), or if
// the server fails. It must be called once.
func (c *Console) Run(ctx context.Context) (err error) {
	defer c.certificates.close()
	if c.listener, err = listen(ctx, "--addr", c.config.Addr, fs.FileMode(0o600)); err != nil {
		return err
	}
	c.addr = c.listener.Addr()
	c.listener = c.certificates.listen(c.listener, httpListener)
	close(c.opened)
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	run := running{fail: fail}
	run.serve("console", func() error { return c.server.Serve(c.listener) })
	run.serve("store", func() error { return watchStore(ctx, c.readiness) })
	run.work.Go(func() { c.console.Run(ctx) })
	<-ctx.Done()
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), ConsoleStopTime/2)
	defer cancel()
	c.broker.BeginDrain() // readiness shows it
	stopHTTP(stop, c.server)
	run.work.Wait()
	return failureOf(ctx)
}
