package serve

import (
	"context"
	"log/slog"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/observe"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/policy"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/settings"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/store"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/terminal"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/version"
	"github.com/sidebus/sidebus/proxy"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/filter"
	"github.com/sidebus/sidebus/semantics/partitioned"
)

// scalerStartLine is the message of the one log line that says where the scaler is.
const scalerStartLine = "the scaler is listening"

// Scaler is the verb "scaler".
type Scaler struct {
	Addr      string `name:"addr" env:"SIDEBUS_SCALER_ADDR" default:"127.0.0.1:7424" help:"Address of KEDA's external scaler over gRPC: host:port, such as :7424."`
	ProbeAddr string `name:"probe-addr" env:"SIDEBUS_PROBE_ADDR" placeholder:"ADDR" help:"Address of probes and metrics: host:port, such as :7423; default: none."`

	settings.StoreSettings

	PolicyFile      string `name:"policy-file" env:"SIDEBUS_POLICY_FILE" placeholder:"FILE" help:"Who may do what, as YAML. If set, a caller needs the claim Listen on the source that it scales by."`
	AllowAnonymous  bool   `name:"allow-anonymous" env:"SIDEBUS_ALLOW_ANONYMOUS" help:"Serve an address that other machines reach although callers prove nothing. Without it, such an address is refused."`
	TLSCertFile     string `name:"tls-cert-file" env:"SIDEBUS_TLS_CERT_FILE" placeholder:"FILE" help:"Certificate, PEM, with which the addresses serve over TLS. It is read again when it changes."`
	TLSKeyFile      string `name:"tls-key-file" env:"SIDEBUS_TLS_KEY_FILE" placeholder:"FILE" help:"Key of the certificate, PEM."`
	TLSClientCAFile string `name:"tls-client-ca-file" env:"SIDEBUS_TLS_CLIENT_CA_FILE" placeholder:"FILE" help:"CA certificates, PEM, that sign the certificates of clients. Clients of --addr must have one; with --policy-file they may, and it says what they may do."`

	TTLSweep      string `name:"ttl-sweep" env:"SIDEBUS_TTL_SWEEP" default:"eager" help:"When expired messages are removed: eager (within seconds) or lazy (when their queue is used), as for the sidecars."`
	EntityMetrics int    `name:"metrics-entities" env:"SIDEBUS_METRICS_ENTITIES" default:"100" help:"How many queues, topics and subscriptions have gauges, ${span_metrics_entities}; 0: none."`
	LogLevel      string `name:"log-level" env:"SIDEBUS_LOG_LEVEL" default:"info" help:"debug, info, warn or error."`
	LogFormat     string `name:"log-format" env:"SIDEBUS_LOG_FORMAT" default:"auto" help:"json, text, or auto: text when stderr is a terminal."`
	Config        string `name:"config" env:"SIDEBUS_CONFIG" placeholder:"FILE" help:"YAML file with settings. The keys are the names of the flags of serve."`
}

// Run serves until a signal or a failure.
func (s *Scaler) Run(ctx context.Context, to terminal.Streams) error {
	config, err := s.config()
	if err != nil {
		return err
	}
	logger, err := newLogger(s.LogLevel, s.LogFormat, to.Stderr)
	if err != nil {
		return err
	}
	if config.Authorizer, err = policy.Authorizer(s.PolicyFile, nil, logger); err != nil {
		return err
	}
	if s.AllowAnonymous && s.isOpenToAll() {
		logger.Warn("other machines can reach this address, and need to prove nothing", "flag", "--addr", "addr", s.Addr)
	}
	metrics := prometheus.NewRegistry()
	letters := observe.NewDeadLetters(metrics, s.EntityMetrics, false, nil)
	opened, err := store.OpenExaminer(&s.StoreSettings, store.Observer{
		Script: observe.Scripts(metrics), DeadLettered: letters.Observe, Removed: observe.Removals(metrics, logger),
		UpkeepFailed: observe.UpkeepFaults(metrics, logger), Orphaned: observe.Orphans(metrics, logger),
	}, s.TTLSweep == settings.SweepLazy, logger)
	if err != nil {
		return err
	}
	defer opened.Close()
	ctx, stop := stopSignals(ctx, logger, proxy.ScalerStopTime, nil, func() {})
	defer stop()
	whole := partitioned.New(opened.Store)
	broker := broker.New(whole, broker.WithRules(filter.Compile))
	defer broker.Close()
	scaler, err := proxy.NewScaler(config, whole, broker, opened.Store, opened.Store, logger, metrics)
	if err != nil {
		return err
	}
	ctx, end := context.WithCancel(ctx)
	var beside sync.WaitGroup
	beside.Go(func() { s.announce(ctx, scaler, opened.What, logger) })
	// What the sidecars of an application without pods would do: scheduled messages of a topic reach its subscriptions,
	// and messages their forward, so that there is something to scale by.
	beside.Go(func() {
		select {
		case <-scaler.Started(): // a store that is refused is left as it is
			opened.Sweep(ctx, broker)
		case <-ctx.Done():
		}
	})
	err = scaler.Run(ctx)
	end()
	beside.Wait()
	logger.Info("stopped")
	return err
}

func (s *Scaler) announce(ctx context.Context, scaler *proxy.Scaler, store string, logger *slog.Logger) {
	select {
	case <-scaler.Opened():
		probes := ""
		if addr := scaler.ProbeAddr(); addr != nil {
			probes = addressText(addr)
		}
		logger.Info(
			scalerStartLine, "version", version.Text(), "addr", addressText(scaler.Addr()), "probes", probes, "store", store,
			"namespace", s.Namespace,
		)
	case <-ctx.Done():
	}
}

// config returns what the proxy is told of the settings.
func (s *Scaler) config() (proxy.ScalerConfig, error) {
	config := proxy.ScalerConfig{
		Addr: s.Addr, ProbeAddr: s.ProbeAddr, Version: version.Text(), Commit: version.Commit(),
		MetricsEntities: s.EntityMetrics,
		TLS: proxy.TLS{
			CertFile: s.TLSCertFile, KeyFile: s.TLSKeyFile, ClientCAFile: s.TLSClientCAFile,
			ClientsNeedOne: s.PolicyFile == "",
		},
	}
	if err := s.StoreSettings.Check(); err != nil {
		return config, err
	}
	if err := settings.CheckTTLSweep(s.TTLSweep); err != nil {
		return config, err
	}
	if err := settings.CheckEntityMetrics(s.EntityMetrics); err != nil {
		return config, err
	}
	if err := settings.CheckAddress("addr", s.Addr); err != nil {
		return config, err
	}
	if s.ProbeAddr != "" {
		if err := settings.CheckAddress("probe-addr", s.ProbeAddr); err != nil {
			return config, err
		}
	}
	if s.isOpenToAll() && !s.AllowAnonymous {
		return config, settings.Bad(
			"addr", "is %q, so other machines could read there how much each queue holds and need to prove nothing; bind it to "+
				"loopback, require a certificate with --tls-client-ca-file, or allow it with --allow-anonymous", s.Addr,
		)
	}
	return config, nil
}

// isOpenToAll reports whether other machines reach the address and need to prove nothing.
func (s *Scaler) isOpenToAll() bool {
	return isBeyondLoopback(s.Addr) && s.PolicyFile == "" && s.TLSClientCAFile == ""
}
