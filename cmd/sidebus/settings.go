package main

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/sidebus/sidebus/semantics"
)

// settings are the flags of "serve". The name of a flag is also its key in the file; its variable is the name in
// capitals with SIDEBUS_ before it.
type settings struct {
	adminSettings

	HTTPAddr       string        `name:"http-addr" env:"SIDEBUS_HTTP_ADDR" default:"127.0.0.1:7420" help:"Address of the HTTP/JSON API: host:port or unix:///path."`
	GRPCAddr       string        `name:"grpc-addr" env:"SIDEBUS_GRPC_ADDR" default:"127.0.0.1:7421" help:"Address of the gRPC API: host:port or unix:///path."`
	DaprSocket     string        `name:"dapr-socket" env:"SIDEBUS_DAPR_SOCKET" placeholder:"FILE" help:"Socket of the pub/sub component of Dapr, like sidebus.sock for type pubsub.sidebus; a path that is not absolute is in the folder of Dapr's sockets."`
	DaprDropIn     bool          `name:"dapr-drop-in" env:"SIDEBUS_DAPR_DROP_IN" help:"Serve Components of type pubsub.azure.servicebus.topics and .queues too, in place of Dapr's own."`
	DaprSelfHeal   bool          `name:"dapr-self-heal" env:"SIDEBUS_DAPR_SELF_HEAL" default:"true" help:"After a restart under a running daprd shut daprd down, so that it comes back and subscribes again; =false leaves it alone."`
	DaprGRPCAddr   string        `name:"dapr-grpc-addr" env:"SIDEBUS_DAPR_GRPC_ADDR" placeholder:"HOST:PORT" help:"gRPC API of daprd, for that; default: port $$DAPR_GRPC_PORT of 127.0.0.1, and without that nothing is done."`
	Store          string        `name:"store" env:"SIDEBUS_STORE" default:"embedded" help:"Where messages live: redis://, rediss:// or unix:// URL; embedded (a private redis-server or valkey-server); memory (nothing survives)."`
	DataDir        string        `name:"data-dir" env:"SIDEBUS_DATA_DIR" default:"./sidebus-data" help:"Data of --store embedded."`
	Namespace      string        `name:"namespace" env:"SIDEBUS_NAMESPACE" default:"default" help:"Prefix of all keys; many namespaces share one Redis."`
	SASKeysFile    string        `name:"sas-keys-file" env:"SIDEBUS_SAS_KEYS_FILE" placeholder:"FILE" help:"Rules of shared access as YAML; with them, requests of the Service Bus REST API need a token."`
	DrainTimeout   time.Duration `name:"drain-timeout" env:"SIDEBUS_DRAIN_TIMEOUT" default:"25s" help:"How long a stop waits for messages in hand to be settled, 0s to ${maxDrain}."`
	TTLSweep       string        `name:"ttl-sweep" env:"SIDEBUS_TTL_SWEEP" default:"eager" help:"When expired messages leave: eager, within seconds; lazy, when somebody looks at their queue."`
	RateLimit      float64       `name:"rate-limit" env:"SIDEBUS_RATE_LIMIT" default:"0" help:"Credits a second that the app may spend, ${minRate} to ${maxRate}: 1 a message, 10 a management call; 0: no limit."`
	MaxEntities    int64         `name:"max-entities" env:"SIDEBUS_MAX_ENTITIES" default:"0" help:"Most entities the namespace may have; 0: no bound. Give all sidecars of a namespace the same."`
	ForwardRetry   time.Duration `name:"forward-retry" env:"SIDEBUS_FORWARD_RETRY" default:"0s" help:"How long messages that a forwarding destination does not take are offered again before they are transfer dead letters, 0s to ${maxForwardRetry}. Give all sidecars of a namespace the same."`
	Sessions       bool          `name:"features.sessions" env:"SIDEBUS_FEATURES_SESSIONS" default:"true" help:"Whether the sidecar has sessions; =false makes every session verb fail."`
	LogDeadLetters bool          `name:"log-dead-letters" env:"SIDEBUS_LOG_DEAD_LETTERS" help:"Write a log line for each message that becomes a dead letter in a call of this sidecar."`
	LogLevel       string        `name:"log-level" env:"SIDEBUS_LOG_LEVEL" default:"info" help:"debug, info, warn or error."`
	LogFormat      string        `name:"log-format" env:"SIDEBUS_LOG_FORMAT" default:"auto" help:"json, text, or auto: text when stderr is a terminal."`

	RedisPoolSize           int           `name:"redis-pool-size" env:"SIDEBUS_REDIS_POOL_SIZE" default:"16" help:"Most connections to Redis, 1 to ${maxPool}."`
	RedisDialTimeout        time.Duration `name:"redis-dial-timeout" env:"SIDEBUS_REDIS_DIAL_TIMEOUT" default:"5s" help:"Time to connect to Redis, ${minRedisTimeout} to ${maxRedisTimeout}."`
	RedisReadTimeout        time.Duration `name:"redis-read-timeout" env:"SIDEBUS_REDIS_READ_TIMEOUT" default:"3s" help:"Time for an answer of Redis, ${minRedisTimeout} to ${maxRedisTimeout}."`
	RedisWriteTimeout       time.Duration `name:"redis-write-timeout" env:"SIDEBUS_REDIS_WRITE_TIMEOUT" default:"3s" help:"Time to send a call to Redis, ${minRedisTimeout} to ${maxRedisTimeout}."`
	RedisPasswordFile       string        `name:"redis-password-file" env:"SIDEBUS_REDIS_PASSWORD_FILE" placeholder:"FILE" help:"File that holds the password of Redis and nothing else; $$${passwordVariable} holds it directly."`
	RedisTLSCAFile          string        `name:"redis-tls-ca-file" env:"SIDEBUS_REDIS_TLS_CA_FILE" placeholder:"FILE" help:"Certificates that vouch for Redis, PEM; default: the system's."`
	RedisTLSCertFile        string        `name:"redis-tls-cert-file" env:"SIDEBUS_REDIS_TLS_CERT_FILE" placeholder:"FILE" help:"Certificate to show to Redis, PEM."`
	RedisTLSKeyFile         string        `name:"redis-tls-key-file" env:"SIDEBUS_REDIS_TLS_KEY_FILE" placeholder:"FILE" help:"Key of that certificate, PEM."`
	RedisTLSInsecureSkipVer bool          `name:"redis-tls-insecure-skip-verify" env:"SIDEBUS_REDIS_TLS_INSECURE_SKIP_VERIFY" help:"Accept any certificate of Redis. For tests only."`
	RedisAllowEviction      bool          `name:"redis-allow-eviction" env:"SIDEBUS_REDIS_ALLOW_EVICTION" help:"Start even if Redis may evict keys, which loses messages."`
}

// adminSettings are what every verb needs to reach the sidecar.
type adminSettings struct {
	AdminAddr string `name:"admin-addr" env:"SIDEBUS_ADMIN_ADDR" default:"127.0.0.1:7422" help:"Address of probes, metrics and drain: host:port or unix:///path."`
	Config    string `name:"config" env:"SIDEBUS_CONFIG" placeholder:"FILE" help:"Settings as YAML; keys are the names of the flags of serve."`
}

// Bounds of settings.
const (
	maxDrainTimeout = time.Hour
	maxForwardRetry = 24 * time.Hour
	maxPoolSize     = 1000
	minRateLimit    = 0.1
	maxRateLimit    = 1_000_000
	minRedisTimeout = 10 * time.Millisecond
	maxRedisTimeout = 5 * time.Minute
	passwordEnv     = "SIDEBUS_REDIS_PASSWORD" //nolint:gosec // the name of a variable, not a password
)

// settingDefaults are the words that the help texts of the flags use.
func settingDefaults() kong.Vars {
	return kong.Vars{
		"maxDrain":         maxDrainTimeout.String(),
		"maxForwardRetry":  maxForwardRetry.String(),
		"maxPool":          strconv.Itoa(maxPoolSize),
		"minRate":          strconv.FormatFloat(minRateLimit, 'f', -1, 64),
		"maxRate":          strconv.Itoa(maxRateLimit),
		"minRedisTimeout":  minRedisTimeout.String(),
		"maxRedisTimeout":  maxRedisTimeout.String(),
		"passwordVariable": passwordEnv,
	}
}

// badSetting is a value that parses and makes no sense.
type badSetting struct {
	flag, text string
}

// Error names the flag and what is wrong with its value.
func (b *badSetting) Error() string { return "--" + b.flag + " " + b.text }

func bad(flag, format string, args ...any) error {
	return &badSetting{flag: flag, text: fmt.Sprintf(format, args...)}
}

// check refuses values that parse but make no sense. The error names the flag and the bound.
func (s *settings) check() error {
	addresses := []struct{ flag, value string }{
		{"http-addr", s.HTTPAddr}, {"grpc-addr", s.GRPCAddr}, {"admin-addr", s.AdminAddr},
	}
	taken := map[string]string{}
	for _, a := range addresses {
		if err := checkAddress(a.flag, a.value); err != nil {
			return err
		}
		if other, twice := taken[a.value]; twice && !strings.HasSuffix(a.value, ":0") {
			return fmt.Errorf("--%s and --%s are both %s; each needs its own address", other, a.flag, a.value)
		}
		taken[a.value] = a.flag
	}
	if s.DrainTimeout < 0 || s.DrainTimeout > maxDrainTimeout {
		return bad("drain-timeout", "is %s, must be 0s to %s", s.DrainTimeout, maxDrainTimeout)
	}
	if r := s.RateLimit; r != 0 && !(r >= minRateLimit && r <= maxRateLimit) { // so that NaN is refused
		return bad("rate-limit", "is %v, must be 0 (no limit) or %v to %d", r, minRateLimit, maxRateLimit)
	}
	if s.ForwardRetry < 0 || s.ForwardRetry > maxForwardRetry {
		return bad("forward-retry", "is %s, must be 0s to %s", s.ForwardRetry, maxForwardRetry)
	}
	if s.MaxEntities < 0 {
		return bad("max-entities", "is %d, must not be negative", s.MaxEntities)
	}
	if s.TTLSweep != sweepEager && s.TTLSweep != sweepLazy {
		return bad("ttl-sweep", "is %q, must be %s or %s", s.TTLSweep, sweepEager, sweepLazy)
	}
	if s.RedisPoolSize < 1 || s.RedisPoolSize > maxPoolSize {
		return bad("redis-pool-size", "is %d, must be 1 to %d", s.RedisPoolSize, maxPoolSize)
	}
	timeouts := []struct {
		flag  string
		value time.Duration
	}{
		{"redis-dial-timeout", s.RedisDialTimeout},
		{"redis-read-timeout", s.RedisReadTimeout},
		{"redis-write-timeout", s.RedisWriteTimeout},
	}
	for _, t := range timeouts {
		if t.value < minRedisTimeout || t.value > maxRedisTimeout {
			return bad(t.flag, "is %s, must be %s to %s", t.value, minRedisTimeout, maxRedisTimeout)
		}
	}
	if (s.RedisTLSCertFile == "") != (s.RedisTLSKeyFile == "") {
		return fmt.Errorf("--redis-tls-cert-file and --redis-tls-key-file go together; only one is set")
	}
	if _, err := semantics.ParseNamespace(s.Namespace); err != nil {
		return bad("namespace", "is %q: %s", s.Namespace, semantics.AsError(err).Message)
	}
	return nil
}

// checkAddress accepts host:port, with port 0 for any free one, and unix:///path.
func checkAddress(flag, value string) error {
	if path, isUnix := strings.CutPrefix(value, "unix://"); isUnix {
		if !strings.HasPrefix(path, "/") {
			return bad(flag, "is %q, must be unix:///absolute/path", value)
		}
		return nil
	}
	_, port, err := net.SplitHostPort(value)
	if err != nil {
		return bad(flag, "is %q, must be host:port or unix:///path", value)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return bad(flag, "is %q, its port must be 0 to 65535", value)
	}
	return nil
}

// redisPassword reads the password that was given apart from the URL, "" when there is none.
func (s *settings) redisPassword() (string, error) {
	direct := os.Getenv(passwordEnv)
	if s.RedisPasswordFile == "" {
		return direct, nil
	}
	if direct != "" {
		return "", fmt.Errorf("--redis-password-file and %s are both set; use one", passwordEnv)
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
