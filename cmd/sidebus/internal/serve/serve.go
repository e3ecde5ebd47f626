// Package serve runs the sidecar.
package serve

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/declared"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/gcpace"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/idlepages"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/observe"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/otlp"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/policy"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/saskeys"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/settings"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/store"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/terminal"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/version"
	"github.com/sidebus/sidebus/proxy"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/filter"
)

// startLine is the message of the one log line that says what is served where.
const startLine = "Sidebus is listening"

// Command is the verb "serve".
type Command struct{ settings.Settings }

// Run serves until a signal or a failure. The order matters: the proxy drains first, then the connections to the
// store close, then a private server stops.
func (s *Command) Run(ctx context.Context, to terminal.Streams, from *settings.Sources) error {
	if err := s.Check(); err != nil {
		return err
	}
	if err := s.checkExposure(); err != nil {
		return err
	}
	logger, err := newLogger(s.LogLevel, s.LogFormat, to.Stderr)
	if err != nil {
		return err
	}
	keys, err := saskeys.Open(s.SASKeysFile, logger)
	if err != nil {
		return err
	}
	entities, err := declared.New(ctx, from.Entities, s.Sessions, logger)
	if err != nil {
		return err
	}
	config, err := s.config(from, entities)
	if err != nil {
		return err
	}
	if config.Authorizer, err = policy.Authorizer(s.PolicyFile, keys, logger); err != nil {
		return err
	}
	s.warn(from, logger)
	last := &lastWill{}
	quit := make(chan struct{})
	if s.ExitWithApp {
		config.Quit = sync.OnceFunc(func() { close(quit) })
	}
	ctx, stop := stopSignals(ctx, logger, proxy.StopTime(s.DrainTimeout), quit, last.carryOut)
	defer stop()

	metrics := prometheus.NewRegistry()
	exporter, err := s.telemetry(ctx, metrics, logger)
	if err != nil {
		return err
	}
	defer exporter.Close()
	config.Tracing = exporter.Tracing()
	letters := observe.NewDeadLetters(metrics, s.EntityMetrics, s.LogDeadLetters, proxy.DeadLetterSpans(config.Tracing))
	opened, err := store.Open(ctx, &s.Settings, store.Observer{
		Script: observe.Scripts(metrics), DeadLettered: letters.Observe, Removed: observe.Removals(metrics, logger),
		UpkeepFailed: observe.UpkeepFaults(metrics, logger), Orphaned: observe.Orphans(metrics, logger),
	}, logger)
	if err != nil {
		if errors.Is(err, errStopped) {
			return nil // told to stop before there was anything to stop
		}
		return err
	}
	defer func() {
		opened.Stop()
		logger.Info("stopped")
	}()
	last.set(opened.StopNow)
	ctx, end := entities.Begin(ctx, opened, s.Sessions)
	err = s.serve(ctx, config, opened, letters, logger, metrics)
	end(nil)
	return errors.Join(entities.End(), err)
}

// telemetry starts to export spans and metrics, if that is asked for.
func (s *Command) telemetry(
	ctx context.Context, metrics *prometheus.Registry, logger *slog.Logger,
) (*otlp.Exporter, error) {
	if !otlp.IsOn(s.OTLPEndpoint) {
		return nil, nil
	}
	return otlp.Open(ctx, otlp.Config{
		Endpoint: s.OTLPEndpoint, Namespace: s.Namespace, Version: version.Text(), Metrics: metrics,
		Spans: observe.Spans(metrics), Logger: logger,
	})
}

// config returns what the proxy is told of the settings.
func (s *Command) config(from *settings.Sources, entities *declared.Entities) (proxy.Config, error) {
	handlers, err := readHandlers(from.Handlers)
	if err != nil {
		return proxy.Config{}, err
	}
	config := proxy.Config{
		HTTPAddr: s.HTTPAddr, GRPCAddr: s.GRPCAddr, AdminAddr: s.AdminAddr, ProbeAddr: s.ProbeAddr,
		AMQPAddrs: s.AMQPAddresses(), AMQPCertFile: s.AMQPCertFile, AMQPKeyFile: s.AMQPKeyFile,
		AuthorityDir: filepath.Join(s.DataDir, "amqp"), DrainTimeout: s.DrainTimeout, Pprof: s.Pprof, MaxConnections: s.MaxConnections,
		Version: version.Text(), Commit: version.Commit(), MetricsEntities: s.EntityMetrics,
		TLS: proxy.TLS{
			CertFile: s.TLSCertFile, KeyFile: s.TLSKeyFile, ClientCAFile: s.TLSClientCAFile, ClientsNeedOne: s.PolicyFile == "",
		},
		Console: consoleMode(s.UI, s.AdminAddr), Namespace: s.Namespace,
		Handlers: handlers, Settings: entities.Show(showHandlers(handlers, s.Shown())),
	}
	if s.EntityMetrics == 0 {
		config.MetricsEntities = -1 // 0 is the default of the package
	}
	if config.Dapr, err = s.dapr(os.Getenv); err != nil {
		return config, err
	}
	if config.SocketMode, err = s.FileMode(); err != nil {
		return config, err
	}
	if config.RequestMemory, err = s.RequestMemoryBytes(); err != nil {
		return config, err
	}
	config.AllowedHosts, err = s.AllowedHostNames()
	return config, err
}

func (s *Command) serve(ctx context.Context, config proxy.Config, opened *store.Opened, letters *observe.DeadLetters,
	logger *slog.Logger, metrics *prometheus.Registry,
) error {
	options := []broker.Option{
		broker.WithRateLimit(s.RateLimit), broker.WithRules(filter.Compile), broker.WithForwardRetry(s.ForwardRetry),
	}
	if !s.Sessions {
		options = append(options, broker.WithoutSessions())
	}
	if config.Tracing != nil {
		options = append(options, broker.WithStamp(proxy.TraceContext))
	}
	config.Entities, config.Sharer = opened.Store, opened.Sharer
	broker := broker.New(opened, options...)
	defer broker.Close()
	sidecar, err := proxy.New(config, broker, opened.Checker, logger, metrics)
	if err != nil {
		return err
	}
	var announcing sync.WaitGroup
	done := make(chan struct{})
	announcing.Go(func() {
		select {
		case <-sidecar.Opened():
			attrs := []any{
				"version", version.Text(), "http", addressText(sidecar.HTTPAddr()), "grpc", addressText(sidecar.GRPCAddr()),
				"admin", addressText(sidecar.AdminAddr()), "store", opened.What, "namespace", s.Namespace,
				"sidecar", opened.Sidecar(),
			}
			if addresses := sidecar.AMQPAddrs(); len(addresses) > 0 {
				attrs = append(attrs, "amqp", addressTexts(addresses))
			}
			if file := sidecar.AuthorityFile(); file != "" {
				attrs = append(attrs, "amqpAuthority", file)
			}
			if url := consoleURL(sidecar.AdminAddr(), s.TLSCertFile); url != "" && config.Console != proxy.ConsoleOff {
				attrs = append(attrs, "console", url)
			}
			logger.Info(startLine, attrs...)
		case <-done:
		}
	})
	beside := startBackground(ctx,
		func(ctx context.Context) {
			select {
			case <-sidecar.Started(): // a store that is refused is left as it is
				opened.Sweep(ctx, broker)
			case <-ctx.Done():
			}
		},
		func(ctx context.Context) { letters.Write(ctx, opened, logger) },
		func(ctx context.Context) {
			select {
			case <-sidecar.Started(): // the garbage of the start is not load
				gcpace.Start(settings.LoadedHeap())
				idlepages.Run(ctx)
			case <-ctx.Done():
			}
		},
	)
	err = sidecar.Run(ctx)
	beside.end()
	close(done)
	announcing.Wait()
	return err
}

// addressText returns an address in the form the flags take.
// addressTexts returns addresses as --amqp-addr has them.
func addressTexts(addresses []net.Addr) string {
	texts := make([]string, len(addresses))
	for i, addr := range addresses {
		texts[i] = addressText(addr)
	}
	return strings.Join(texts, ",")
}

func addressText(addr net.Addr) string {
	if addr.Network() == "unix" {
		return "unix://" + addr.String()
	}
	return addr.String()
}
