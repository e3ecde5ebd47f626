package serve

import (
	"context"
	"log/slog"
	"net"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/observe"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/policy"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/saskeys"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/settings"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/store"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/terminal"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/version"
	"github.com/sidebus/sidebus/proxy"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/filter"
	"github.com/sidebus/sidebus/semantics/partitioned"
)

// consoleStartLine is the message of the one log line that says where the console is.
const consoleStartLine = "the console is listening"

// Console is the verb "console".
type Console struct {
	Addr         string `name:"addr" env:"SIDEBUS_CONSOLE_ADDR" default:"127.0.0.1:7425" help:"Address of the console, which is at /ui/ there, and of probes and metrics: host:port or unix:///path."`
	UI           string `name:"ui" env:"SIDEBUS_UI" placeholder:"MODE" help:"What the console may do: read-only or on. Default: on if only this machine reaches the address, else read-only."`
	AllowedHosts string `name:"allowed-hosts" env:"SIDEBUS_ALLOWED_HOSTS" placeholder:"NAMES" help:"More host names that requests may use, separated by commas; * permits all. Loopback and the listening address are always permitted."`

	settings.StoreSettings

	PolicyFile      string `name:"policy-file" env:"SIDEBUS_POLICY_FILE" placeholder:"FILE" help:"Who may do what, as YAML. If set, callers see and do only what it grants."`
	SASKeysFile     string `name:"sas-keys-file" env:"SIDEBUS_SAS_KEYS_FILE" placeholder:"FILE" help:"Shared access rules as YAML. If set, callers need a token."`
	AllowAnonymous  bool   `name:"allow-anonymous" env:"SIDEBUS_ALLOW_ANONYMOUS" help:"Serve an address that other machines reach although callers prove nothing. Without it, such an address is refused."`
	TLSCertFile     string `name:"tls-cert-file" env:"SIDEBUS_TLS_CERT_FILE" placeholder:"FILE" help:"Certificate, PEM, with which the address serves over TLS. It is read again when it changes."`
	TLSKeyFile      string `name:"tls-key-file" env:"SIDEBUS_TLS_KEY_FILE" placeholder:"FILE" help:"Key of the certificate, PEM."`
	TLSClientCAFile string `name:"tls-client-ca-file" env:"SIDEBUS_TLS_CLIENT_CA_FILE" placeholder:"FILE" help:"CA certificates, PEM, that sign the certificates of clients. Clients must have one; with --policy-file they may, and it says what they may do."`

	LogLevel  string `name:"log-level" env:"SIDEBUS_LOG_LEVEL" default:"info" help:"debug, info, warn or error."`
	LogFormat string `name:"log-format" env:"SIDEBUS_LOG_FORMAT" default:"auto" help:"json, text, or auto: text when stderr is a terminal."`
	Config    string `name:"config" env:"SIDEBUS_CONFIG" placeholder:"FILE" help:"YAML file with settings. The keys are the names of the flags of serve."`
}

// Run serves until a signal or a failure.
func (c *Console) Run(ctx context.Context, to terminal.Streams) error {
	config, err := c.config()
	if err != nil {
		return err
	}
	logger, err := newLogger(c.LogLevel, c.LogFormat, to.Stderr)
	if err != nil {
		return err
	}
	keys, err := saskeys.Open(c.SASKeysFile, logger)
	if err != nil {
		return err
	}
	if config.Authorizer, err = policy.Authorizer(c.PolicyFile, keys, logger); err != nil {
		return err
	}
	if c.AllowAnonymous && c.isOpenToAll() {
		logger.Warn("other machines can reach this address, and need to prove nothing", "flag", "--addr", "addr", c.Addr)
	}
	metrics := prometheus.NewRegistry()
	opened, err := store.OpenExaminer(&c.StoreSettings, store.Observer{Script: observe.Scripts(metrics)}, false, logger)
	if err != nil {
		return err
	}
	defer opened.Close()
	ctx, stop := stopSignals(ctx, logger, proxy.ConsoleStopTime, nil, func() {})
	defer stop()
	whole := partitioned.New(opened.Store)
	broker := broker.New(whole, broker.WithRules(filter.Compile))
	defer broker.Close()
	console, err := proxy.NewConsole(config, broker, whole, opened.Store, logger, metrics)
	if err != nil {
		return err
	}
	ctx, end := context.WithCancel(ctx)
	var beside sync.WaitGroup
	beside.Go(func() { c.announce(ctx, console, opened.What, logger) })
	err = console.Run(ctx)
	end()
	beside.Wait()
	logger.Info("stopped")
	return err
}

func (c *Console) announce(ctx context.Context, console *proxy.Console, store string, logger *slog.Logger) {
	select {
	case <-console.Opened():
		logger.Info(
			consoleStartLine, "version", version.Text(), "addr", addressText(console.Addr()),
			"url", consoleURL(console.Addr(), c.TLSCertFile), "store", store, "namespace", c.Namespace,
		)
	case <-ctx.Done():
	}
}

// consoleURL returns where a browser finds the console of an address, "" for a socket, which browsers cannot open.
func consoleURL(addr net.Addr, certFile string) string {
	switch {
	case addr.Network() == "unix":
		return ""
	case certFile != "":
		return "https://" + addr.String() + "/ui/"
	default:
		return "http://" + addr.String() + "/ui/"
	}
}

// config returns what the proxy is told of the settings.
func (c *Console) config() (proxy.ConsoleConfig, error) {
	mode := consoleMode(c.UI, c.Addr)
	config := proxy.ConsoleConfig{
		Addr: c.Addr, ReadOnly: mode != proxy.ConsoleOn, Namespace: c.Namespace,
		Version: version.Text(), Commit: version.Commit(),
		TLS: proxy.TLS{
			CertFile: c.TLSCertFile, KeyFile: c.TLSKeyFile, ClientCAFile: c.TLSClientCAFile,
			ClientsNeedOne: c.PolicyFile == "",
		},
	}
	if err := c.StoreSettings.Check(); err != nil {
		return config, err
	}
	if err := settings.CheckUI(c.UI); err != nil {
		return config, err
	}
	if mode == proxy.ConsoleOff {
		return config, settings.Bad("ui", "is %s, but this process serves nothing else; use read-only or on", c.UI)
	}
	if err := settings.CheckAddress("addr", c.Addr); err != nil {
		return config, err
	}
	if c.isOpenToAll() && !c.AllowAnonymous {
		return config, settings.Bad(
			"addr", "is %q, so other machines could read all messages there and need to prove nothing; bind it to loopback, say "+
				"with --policy-file or --sas-keys-file who may do what, or allow it with --allow-anonymous", c.Addr,
		)
	}
	var err error
	config.AllowedHosts, err = (&settings.Settings{AllowedHosts: c.AllowedHosts}).AllowedHostNames()
	return config, err
}

// isOpenToAll reports whether other machines reach the address and need to prove nothing.
func (c *Console) isOpenToAll() bool {
	return isBeyondLoopback(c.Addr) && c.PolicyFile == "" && c.SASKeysFile == "" && c.TLSClientCAFile == ""
}

// consoleMode returns what the console may do at an address.
func consoleMode(ui, addr string) proxy.ConsoleMode {
	switch {
	case ui == settings.UIOff:
		return proxy.ConsoleOff
	case ui == settings.UIOn, ui == "" && !isBeyondLoopback(addr):
		return proxy.ConsoleOn
	default:
		return proxy.ConsoleReadOnly
	}
}
