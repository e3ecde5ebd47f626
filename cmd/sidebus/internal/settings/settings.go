// Package settings has the settings of "serve", where their values come from, and how they are shown.
package settings

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/sidebus/sidebus/semantics"
)

// Settings are the flags of "serve". The name of a flag is also its key in the file; its variable is the name in
// capitals with SIDEBUS_ before it.
type Settings struct {
	Admin

	HTTPAddr     string `name:"http-addr" env:"SIDEBUS_HTTP_ADDR" default:"127.0.0.1:7420" help:"Address of the HTTP/JSON API: host:port or unix:///path."`
	GRPCAddr     string `name:"grpc-addr" env:"SIDEBUS_GRPC_ADDR" default:"127.0.0.1:7421" help:"Address of the gRPC API: host:port or unix:///path."`
	ProbeAddr    string `name:"probe-addr" env:"SIDEBUS_PROBE_ADDR" placeholder:"ADDR" help:"Address of probes and metrics alone, for other machines: host:port, such as :7423, or unix:///path; default: none."`
	AMQPAddr     string `name:"amqp-addr" env:"SIDEBUS_AMQP_ADDR" placeholder:"ADDR" help:"Addresses for the SDKs of Azure Service Bus, separated by commas: host:port, such as 127.0.0.1:5672, or unix:///path; default: none. Each serves AMQP 1.0, AMQP over WebSockets, and HTTP with the administration API, with and without TLS."`
	AMQPCertFile string `name:"amqp-tls-cert-file" env:"SIDEBUS_AMQP_TLS_CERT_FILE" placeholder:"FILE" help:"Certificate, PEM, of --amqp-addr. It is read again when it changes. Default: that of --tls-cert-file, or one of an authority that the sidecar creates in --data-dir."`
	AMQPKeyFile  string `name:"amqp-tls-key-file" env:"SIDEBUS_AMQP_TLS_KEY_FILE" placeholder:"FILE" help:"Key of the certificate of --amqp-tls-cert-file, PEM."`
	DaprSocket   string `name:"dapr-socket" env:"SIDEBUS_DAPR_SOCKET" placeholder:"FILE" help:"Socket of the Dapr pub/sub component, such as sidebus.sock for type pubsub.sidebus. A relative path is in the folder of the Dapr sockets."`
	DaprDropIn   bool   `name:"dapr-drop-in" env:"SIDEBUS_DAPR_DROP_IN" help:"Also serve Components of type pubsub.azure.servicebus.topics and .queues instead of the ones of Dapr."`
	DaprSelfHeal bool   `name:"dapr-self-heal" env:"SIDEBUS_DAPR_SELF_HEAL" default:"true" help:"If Sidebus restarts while daprd runs, shut daprd down so that it restarts and subscribes again. false turns this off."`
	DaprGRPCAddr string `name:"dapr-grpc-addr" env:"SIDEBUS_DAPR_GRPC_ADDR" placeholder:"HOST:PORT" help:"Address of the gRPC API of daprd, used to shut it down. Default: 127.0.0.1 with the port in $$DAPR_GRPC_PORT. Without either, daprd is not shut down."`

	StoreSettings

	SASKeysFile    string `name:"sas-keys-file" env:"SIDEBUS_SAS_KEYS_FILE" placeholder:"FILE" help:"Shared access rules as YAML. If set, every call of the HTTP and gRPC APIs requires a token."`
	PolicyFile     string `name:"policy-file" env:"SIDEBUS_POLICY_FILE" placeholder:"FILE" help:"Who may do what, as YAML. If set, callers may do only what it grants, on every API."`
	AllowAnonymous bool   `name:"allow-anonymous" env:"SIDEBUS_ALLOW_ANONYMOUS" help:"Serve addresses that other machines reach although callers prove nothing. Without it, such an address is refused."`

	TLSCertFile     string `name:"tls-cert-file" env:"SIDEBUS_TLS_CERT_FILE" placeholder:"FILE" help:"Certificate, PEM, with which the addresses with host:port serve over TLS. It is read again when it changes."`
	TLSKeyFile      string `name:"tls-key-file" env:"SIDEBUS_TLS_KEY_FILE" placeholder:"FILE" help:"Key of the certificate, PEM."`
	TLSClientCAFile string `name:"tls-client-ca-file" env:"SIDEBUS_TLS_CLIENT_CA_FILE" placeholder:"FILE" help:"CA certificates, PEM, that sign the certificates of clients. Clients of the APIs and of the admin address must have one; with --policy-file they may, and it says what they may do."`

	DrainTimeout   time.Duration `name:"drain-timeout" env:"SIDEBUS_DRAIN_TIMEOUT" default:"25s" help:"Most time for a stop, ${span_drain_timeout}. Applications have all of it except the last 3s to 5s to settle their messages."`
	TTLSweep       string        `name:"ttl-sweep" env:"SIDEBUS_TTL_SWEEP" default:"eager" help:"When expired messages are removed: eager (within seconds) or lazy (when their queue is used)."`
	RateLimit      float64       `name:"rate-limit" env:"SIDEBUS_RATE_LIMIT" default:"0" help:"Credits per second that the application may spend, ${span_rate_limit}. A message costs 1, a management call 10. 0: no limit."`
	MaxEntities    int64         `name:"max-entities" env:"SIDEBUS_MAX_ENTITIES" default:"0" help:"Most entities in the namespace. 0: no limit. Use the same value for all sidecars of a namespace."`
	ForwardRetry   time.Duration `name:"forward-retry" env:"SIDEBUS_FORWARD_RETRY" default:"0s" help:"How long forwarding is retried if the destination refuses a message, before the message becomes a transfer dead letter, ${span_forward_retry}. Use the same value for all sidecars of a namespace."`
	Sessions       bool          `name:"features.sessions" env:"SIDEBUS_FEATURES_SESSIONS" default:"true" help:"Support sessions. If false, every call that needs sessions fails."`
	MaxConnections int           `name:"max-connections" env:"SIDEBUS_MAX_CONNECTIONS" default:"5000" help:"Most connections of clients, HTTP and gRPC together, ${span_max_connections}; a tenth is reserved for calls that do not wait."`
	AllowedHosts   string        `name:"allowed-hosts" env:"SIDEBUS_ALLOWED_HOSTS" placeholder:"NAMES" help:"More host names that HTTP requests may use, separated by commas; * permits all. Loopback and the listening addresses are always permitted."`
	RequestMemory  string        `name:"request-memory" env:"SIDEBUS_REQUEST_MEMORY" default:"auto" help:"Most memory for requests in progress, and the same again for answers, such as 64MiB, ${minRequestMemory} to ${maxRequestMemory}. auto: a quarter of the memory limit of the process, at most ${autoRequestMemory}."`
	SocketMode     string        `name:"socket-mode" env:"SIDEBUS_SOCKET_MODE" default:"0660" help:"Permissions of the unix sockets of --http-addr, --grpc-addr, --admin-addr, --probe-addr and --amqp-addr, octal. A client needs write permission to connect."`
	ExitWithApp    bool          `name:"exit-with-app" env:"SIDEBUS_EXIT_WITH_APP" help:"Stop, as by SIGTERM, when the application has called POST /quitquitquit on the admin address. For Jobs without native sidecars."`
	UI             string        `name:"ui" env:"SIDEBUS_UI" placeholder:"MODE" help:"Console at /ui/ of the admin address: off, read-only or on. Default: on if only this machine reaches the address, else read-only."`
	Pprof          bool          `name:"pprof" env:"SIDEBUS_PPROF" help:"Serve profiles at /debug/pprof/ on the admin address."`
	EntityMetrics  int           `name:"metrics-entities" env:"SIDEBUS_METRICS_ENTITIES" default:"100" help:"How many queues, topics and subscriptions have metrics of their own, ${span_metrics_entities}; 0: none, and no gauges of entities."`
	OTLPEndpoint   string        `name:"otlp-endpoint" env:"SIDEBUS_OTLP_ENDPOINT" placeholder:"URL" help:"Collector of OpenTelemetry to which traces and metrics are exported, such as http://127.0.0.1:4317. Default: $$OTEL_EXPORTER_OTLP_ENDPOINT; without either, nothing is traced or exported."`
	LogDeadLetters bool          `name:"log-dead-letters" env:"SIDEBUS_LOG_DEAD_LETTERS" help:"Log each message that this sidecar dead-letters."`
	LogLevel       string        `name:"log-level" env:"SIDEBUS_LOG_LEVEL" default:"info" help:"debug, info, warn or error."`
	LogFormat      string        `name:"log-format" env:"SIDEBUS_LOG_FORMAT" default:"auto" help:"json, text, or auto: text when stderr is a terminal."`
}

// StoreSettings are the flags that say where the messages are and how to get there.
type StoreSettings struct {
	Store     string `name:"store" env:"SIDEBUS_STORE" default:"embedded" help:"Where messages are stored: a redis://, rediss:// or unix:// URL; redis+sentinel://host:port,host:port/master or redis+cluster://host:port,host:port (rediss+... for TLS); embedded (a private redis-server or valkey-server); memory (lost at exit)."`
	DataDir   string `name:"data-dir" env:"SIDEBUS_DATA_DIR" default:"./sidebus-data" help:"Directory of the data of --store embedded, and of the certificate authority of --amqp-addr."`
	Namespace string `name:"namespace" env:"SIDEBUS_NAMESPACE" default:"default" help:"Prefix of all keys; many namespaces share one Redis."`

	Durability     string        `name:"durability" env:"SIDEBUS_DURABILITY" default:"memory" help:"What Redis must have done before a send or settlement is answered: memory (run it), disk (written it to disk) or replica (sent it to replicas)."`
	DurabilityReps int           `name:"durability-replicas" env:"SIDEBUS_DURABILITY_REPLICAS" default:"1" help:"How many replicas must have it with --durability replica, ${span_durability_replicas}."`
	DurabilityWait time.Duration `name:"durability-timeout" env:"SIDEBUS_DURABILITY_TIMEOUT" default:"1s" help:"How long to wait for disk or replicas before the answer is DURABILITY_NOT_MET, ${span_durability_timeout}."`

	PayloadKeysFile string `name:"payload-keys-file" env:"SIDEBUS_PAYLOAD_KEYS_FILE" placeholder:"FILE" help:"Keys with which the bodies of messages and the states of sessions are encrypted in Redis, as YAML. It is read again when it changes. Default: no encryption."`

	RedisPoolSize           int           `name:"redis-pool-size" env:"SIDEBUS_REDIS_POOL_SIZE" default:"16" help:"Most connections to Redis, ${span_redis_pool_size}."`
	RedisDialTimeout        time.Duration `name:"redis-dial-timeout" env:"SIDEBUS_REDIS_DIAL_TIMEOUT" default:"5s" help:"Most time to connect to Redis, ${span_redis_dial_timeout}."`
	RedisReadTimeout        time.Duration `name:"redis-read-timeout" env:"SIDEBUS_REDIS_READ_TIMEOUT" default:"3s" help:"Most time for an answer from Redis, ${span_redis_read_timeout}."`
	RedisWriteTimeout       time.Duration `name:"redis-write-timeout" env:"SIDEBUS_REDIS_WRITE_TIMEOUT" default:"3s" help:"Most time to send a call to Redis, ${span_redis_write_timeout}."`
	RedisPasswordFile       string        `name:"redis-password-file" env:"SIDEBUS_REDIS_PASSWORD_FILE" placeholder:"FILE" help:"File that contains only the Redis password. $$${passwordVariable} can hold the password instead."`
	RedisTLSCAFile          string        `name:"redis-tls-ca-file" env:"SIDEBUS_REDIS_TLS_CA_FILE" placeholder:"FILE" help:"CA certificates for Redis, PEM. Default: those of the system."`
	RedisTLSCertFile        string        `name:"redis-tls-cert-file" env:"SIDEBUS_REDIS_TLS_CERT_FILE" placeholder:"FILE" help:"Client certificate for Redis, PEM."`
	RedisTLSKeyFile         string        `name:"redis-tls-key-file" env:"SIDEBUS_REDIS_TLS_KEY_FILE" placeholder:"FILE" help:"Key of the client certificate, PEM."`
	RedisTLSInsecureSkipVer bool          `name:"redis-tls-insecure-skip-verify" env:"SIDEBUS_REDIS_TLS_INSECURE_SKIP_VERIFY" help:"Do not verify the certificate of Redis. For tests only."`
	RedisAllowEviction      bool          `name:"redis-allow-eviction" env:"SIDEBUS_REDIS_ALLOW_EVICTION" help:"Start even if Redis may evict keys, which loses messages."`
}

// Admin are what every verb needs to reach the sidecar.
type Admin struct {
	AdminAddr string `name:"admin-addr" env:"SIDEBUS_ADMIN_ADDR" default:"127.0.0.1:7422" help:"Address of probes, metrics, drain and the console: host:port or unix:///path."`
	Config    string `name:"config" env:"SIDEBUS_CONFIG" placeholder:"FILE" help:"YAML file with settings. The keys are the names of the flags of serve."`
}

// Values of --store that are not a URL.
const (
	Embedded = "embedded"
	Memory   = "memory"
)

// Values of --ttl-sweep.
const (
	SweepEager = "eager"
	SweepLazy  = "lazy"
)

// Values of --ui.
const (
	UIOff      = "off"
	UIReadOnly = "read-only"
	UIOn       = "on"
)

// CheckUI refuses what is not a value of --ui.
func CheckUI(mode string) error {
	switch mode {
	case "", UIOff, UIReadOnly, UIOn:
		return nil
	default:
		return Bad("ui", "is %q, must be %s, %s or %s", mode, UIOff, UIReadOnly, UIOn)
	}
}

// SASKeyVariable holds the key of the verbs for operators. There is no flag for the key itself: every process of the
// machine can read a command line.
const SASKeyVariable = "SIDEBUS_SAS_KEY" //nolint:gosec // the name of a variable, not a key

// PasswordVariable holds the password of Redis, apart from the URL.
const PasswordVariable = "SIDEBUS_REDIS_PASSWORD" //nolint:gosec // the name of a variable, not a password

// Vars are the words that the help texts of the flags use.
func Vars() kong.Vars {
	return spans().CloneWith(kong.Vars{
		"minRequestMemory":  sizeText(minRequestMemory),
		"maxRequestMemory":  sizeText(maxRequestMemory),
		"autoRequestMemory": sizeText(autoRequestMemory),
		"passwordVariable":  PasswordVariable,
		"sasKeyVariable":    SASKeyVariable,
	})
}

// badSetting is a value that parses and makes no sense.
type badSetting struct {
	flag, text string
}

// Error names the flag and what is wrong with its value.
func (b *badSetting) Error() string { return "--" + b.flag + " " + b.text }

// Bad returns an error that names a flag and what is wrong with its value.
func Bad(flag, format string, args ...any) error {
	return &badSetting{flag: flag, text: fmt.Sprintf(format, args...)}
}

// Check refuses values that parse but make no sense. The error names the flag and the bound.
func (s *Settings) Check() error {
	if err := s.checkAddresses(); err != nil {
		return err
	}
	for _, b := range s.bounds() {
		if err := b.check(); err != nil {
			return err
		}
	}
	if _, err := s.RequestMemoryBytes(); err != nil {
		return err
	}
	if _, err := s.AllowedHostNames(); err != nil {
		return err
	}
	if err := s.checkOTLPEndpoint(); err != nil {
		return err
	}
	if err := CheckUI(s.UI); err != nil {
		return err
	}
	if s.MaxEntities < 0 {
		return Bad("max-entities", "is %d, must not be negative", s.MaxEntities)
	}
	if err := CheckTTLSweep(s.TTLSweep); err != nil {
		return err
	}
	return s.StoreSettings.checkTogether()
}

// CheckTTLSweep checks --ttl-sweep alone.
func CheckTTLSweep(value string) error {
	if value != SweepEager && value != SweepLazy {
		return Bad("ttl-sweep", "is %q, must be %s or %s", value, SweepEager, SweepLazy)
	}
	return nil
}

// Check refuses values that parse but make no sense.
func (s *StoreSettings) Check() error {
	for _, b := range s.bounds() {
		if err := b.check(); err != nil {
			return err
		}
	}
	return s.checkTogether()
}

// checkTogether refuses what does not go together.
func (s *StoreSettings) checkTogether() error {
	if err := s.checkDurability(); err != nil {
		return err
	}
	if (s.RedisTLSCertFile == "") != (s.RedisTLSKeyFile == "") {
		return fmt.Errorf("--redis-tls-cert-file and --redis-tls-key-file go together; only one is set")
	}
	if _, err := semantics.ParseNamespace(s.Namespace); err != nil {
		return Bad("namespace", "is %q: %s", s.Namespace, semantics.AsError(err).Message)
	}
	return nil
}

// checkDurability refuses a level that the store can never have.
func (s *StoreSettings) checkDurability() error {
	level, known := semantics.ParseDurability(s.Durability)
	if !known {
		return Bad("durability", "is %q, must be memory, disk or replica", s.Durability)
	}
	if s.Store == Memory && level != semantics.DurabilityMemory {
		return Bad("durability", "is %s, but --store memory keeps messages in memory only; use a Redis", level)
	}
	if s.Store == Embedded && level == semantics.DurabilityReplica {
		return Bad("durability", "is %s, but the private Redis of --store embedded has no replicas; use disk", level)
	}
	return nil
}

// RedisPassword reads the password that was given apart from the URL, "" when there is none.
func (s *StoreSettings) RedisPassword() (string, error) {
	direct := os.Getenv(PasswordVariable)
	if s.RedisPasswordFile == "" {
		return direct, nil
	}
	if direct != "" {
		return "", fmt.Errorf("--redis-password-file and %s are both set; use one", PasswordVariable)
	}
	text, err := os.ReadFile(s.RedisPasswordFile)
	if err != nil {
		return "", fmt.Errorf("--redis-password-file: %w", err)
	}
	password := strings.TrimRight(string(text), "\r\n")
	if password == "" {
		return "", fmt.Errorf("--redis-password-file: %s is empty", s.RedisPasswordFile)
	}
	return password, nil
}
