package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sidebus/sidebus/proxy"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/filter"
)

// startLine is the message of the one log line that says what is served where.
const startLine = "sidebus serves"

type serveCommand struct{ settings }

// Run serves until a signal or a failure. The order matters: the proxy drains first, then the connections to the
// store close, then a private server stops.
func (s *serveCommand) Run(ctx context.Context, to terminal, from *sources) error {
	if err := s.check(); err != nil {
		return err
	}
	logger, err := newLogger(s.LogLevel, s.LogFormat, to.stderr)
	if err != nil {
		return err
	}
	keys, err := openSASKeys(s.SASKeysFile, logger)
	if err != nil {
		return err
	}
	declared, err := newDeclared(ctx, from.entities, s.Sessions, logger)
	if err != nil {
		return err
	}
	dapr, err := s.dapr(os.Getenv)
	if err != nil {
		return err
	}
	last := &lastWill{}
	ctx, stop := stopSignals(ctx, logger, last.carryOut)
	defer stop()

	metrics := prometheus.NewRegistry()
	letters := newDeadLetters(metrics, s.LogDeadLetters)
	observe := observer{script: scriptObserver(metrics), deadLettered: letters.observe, removed: removalObserver(metrics, logger)}
	store, err := openStore(ctx, &s.settings, observe, logger)
	if err != nil {
		if errors.Is(err, errStopped) {
			return nil // told to stop before there was anything to stop
		}
		return err
	}
	defer store.close()
	last.set(store.abandon)
	config := proxy.Config{
		HTTPAddr: s.HTTPAddr, GRPCAddr: s.GRPCAddr, AdminAddr: s.AdminAddr, DrainTimeout: s.DrainTimeout,
		Dapr: dapr, Keys: keys, Handlers: from.handlers, Settings: declared.shown(shownHandlers(from.handlers, s.shown())),
	}
	ctx, end := declared.begin(ctx, store, s.Sessions)
	err = s.serve(ctx, config, store, letters, logger, metrics)
	end(nil)
	return errors.Join(declared.end(), err)
}

func (s *serveCommand) serve(ctx context.Context, config proxy.Config, store *openedStore, letters *deadLetters, logger *slog.Logger, metrics *prometheus.Registry) error {
	options := []semantics.BrokerOption{
		semantics.WithRateLimit(s.RateLimit), semantics.WithRules(filter.Compile), semantics.WithForwardRetry(s.ForwardRetry),
	}
	if !s.Sessions {
		options = append(options, semantics.WithoutSessions())
	}
	broker := semantics.NewBroker(store, options...)
	defer broker.Close()
	sidecar, err := proxy.New(config, broker, store.checker, logger, metrics)
	if err != nil {
		return err
	}
	var announcing sync.WaitGroup
	done := make(chan struct{})
	announcing.Go(func() {
		select {
		case <-sidecar.Opened():
			logger.Info(startLine, "version", versionText(), "http", addressText(sidecar.HTTPAddr()), "grpc", addressText(sidecar.GRPCAddr()),
				"admin", addressText(sidecar.AdminAddr()), "store", store.what, "namespace", s.Namespace)
		case <-done:
		}
	})
	beside := startBackground(ctx,
		func(ctx context.Context) { store.sweep(ctx, broker) },
		func(ctx context.Context) { letters.write(ctx, store, logger) },
	)
	err = sidecar.Run(ctx)
	beside.end()
	close(done)
	announcing.Wait()
	return err
}

// addressText gives an address in the form the flags take.
func addressText(addr net.Addr) string {
	if addr.Network() == "unix" {
		return "unix://" + addr.String()
	}
	return addr.String()
}
