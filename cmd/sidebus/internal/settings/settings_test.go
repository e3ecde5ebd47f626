package settings

import (
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"github.com/sidebus/sidebus/test/filetest"
)

// grammar is that of serve alone.
type grammar struct {
	Serve struct{ Settings } `cmd:""`
}

// parseServe reads the settings of serve from a command line, with the environment and files as they are.
func parseServe(t *testing.T, args ...string) (Settings, error) {
	t.Helper()
	var g grammar
	from := &Sources{}
	parser, err := kong.New(&g, Vars(), Durations(), kong.WithBeforeResolve(from.Load), kong.Resolvers(from))
	if err != nil {
		t.Fatal(err)
	}
	_, err = parser.Parse(append([]string{"serve"}, args...))
	return g.Serve.Settings, err
}

func TestFlagBeatsEnvironmentBeatsFile(t *testing.T) {
	file := filetest.Write(t, "namespace: from-file\nhttp-addr: file:1\ndrain-timeout: 7s\nredis-allow-eviction: true\nredis-pool-size: 3\n")
	t.Setenv("SIDEBUS_CONFIG", file)
	t.Setenv("SIDEBUS_NAMESPACE", "from-env")
	t.Setenv("SIDEBUS_HTTP_ADDR", "env:1")
	t.Setenv("SIDEBUS_GRPC_ADDR", "") // empty counts as not set
	t.Setenv("SIDEBUS_REDIS_POOL_SIZE", "")
	s, err := parseServe(t, "--namespace", "from-flag")
	if err != nil {
		t.Fatal(err)
	}
	if s.Namespace != "from-flag" || s.HTTPAddr != "env:1" || s.DrainTimeout != 7*time.Second || !s.RedisAllowEviction {
		t.Errorf("got %+v; want the namespace of the flag, the address of the environment, the rest of the file", s)
	}
	if s.GRPCAddr != "127.0.0.1:7421" || s.RedisPoolSize != 3 {
		t.Errorf("got gRPC address %q and pool size %d; want the default and the file's 3", s.GRPCAddr, s.RedisPoolSize)
	}
	other := filetest.Write(t, "drain-timeout: 9s\n")
	if s, err = parseServe(t, "--config", other); err != nil || s.DrainTimeout != 9*time.Second {
		t.Errorf("--config beside SIDEBUS_CONFIG: got %s, %v; want the flag's file", s.DrainTimeout, err)
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	s, err := parseServe(t)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"http-addr": "127.0.0.1:7420", "grpc-addr": "127.0.0.1:7421", "admin-addr": "127.0.0.1:7422",
		"store": "embedded", "data-dir": "./sidebus-data", "namespace": "default", "drain-timeout": "25s",
	}
	shown := s.Shown()
	for name, value := range want {
		if shown[name] != value {
			t.Errorf("--%s: got %q, want %q", name, shown[name], value)
		}
	}
	if err := s.Check(); err != nil {
		t.Errorf("the defaults do not pass: %v", err)
	}
}

func TestFileErrorsNameTheirPlace(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ text, want string }{
		"unknown key":      {"store: memory\nwatchers: []\n", `:2: unknown key "watchers"`},
		"other style":      {"httpAddr: x\n", `did you mean "http-addr"?`},
		"snake case":       {"http_addr: x\n", `did you mean "http-addr"?`},
		"config in itself": {"config: x\n", `:1: unknown key "config"`},
		"twice":            {"store: memory\nstore: memory\n", `:2: key "store" stands already at`},
		"wrong type":       {"\n\ndrain-timeout: soon\n", ":3: drain-timeout is \"soon\", must be a duration"},
		"list":             {"store: [a]\n", ":1: store must have one plain value"},
		"null":             {"store:\n", ":1: store must have one plain value"},
		"no mapping":       {"- store\n", ":1: must be a mapping"},
		"two documents":    {"store: memory\n---\nstore: memory\n", "only one YAML document"},
		"no YAML":          {"store: {\n", ": line 1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filetest.Write(t, test.text)
			_, err := parseServe(t, "--config", path)
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("got %v, want %q and the path", err, test.want)
			}
		})
	}
	for _, text := range []string{"", "# nothing\n", "---\n"} {
		if _, err := parseServe(t, "--config", filetest.Write(t, text)); err != nil {
			t.Errorf("a file with %q: %v", text, err)
		}
	}
}

func TestBadValuesNameFlagAndBound(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"--http-addr=nowhere":                    "--http-addr is \"nowhere\", must be host:port or unix:///path",
		"--max-connections=9":                    "--max-connections is 9, must be 10 to 1000000",
		"--request-memory=1000":                  "--request-memory is \"1000\", must be auto or a size like 64MiB, from 1MiB to 64GiB",
		"--request-memory=64mb":                  "--request-memory is \"64mb\", must be auto or a size like 64MiB, from 1MiB to 64GiB",
		"--request-memory=99999999999999GiB":     "--request-memory is \"99999999999999GiB\", must be auto or a size like 64MiB, from 1MiB to 64GiB",
		"--allowed-hosts=a,,b":                   "--allowed-hosts has \"\", must be names or addresses without port, separated by commas, or *",
		"--allowed-hosts=http://a":               "--allowed-hosts has \"http://a\", must be names or addresses without port, separated by commas, or *",
		"--allowed-hosts=a,b:80":                 "--allowed-hosts has \"b:80\", must be names or addresses without port, separated by commas, or *",
		"--allowed-hosts=[::1]:80":               "--allowed-hosts has \"[::1]:80\", must be names or addresses without port, separated by commas, or *",
		"--grpc-addr=h:70000":                    "--grpc-addr is \"h:70000\", its port must be 0 to 65535",
		"--admin-addr=unix://relative":           "--admin-addr is \"unix://relative\", must be unix:///absolute/path",
		"--grpc-addr=127.0.0.1:7420":             "--http-addr and --grpc-addr are both",
		"--drain-timeout=-1s":                    "--drain-timeout is -1s, must be 0s to 1h",
		"--drain-timeout=61m":                    "--drain-timeout is 61m",
		"--forward-retry=-1s":                    "--forward-retry is -1s, must be 0s to 1d",
		"--forward-retry=24h1s":                  "--forward-retry is 1d1s",
		"--rate-limit=0.05":                      "--rate-limit is 0.05, must be 0 (no limit) or 0.1 to 1000000",
		"--rate-limit=-1":                        "--rate-limit is -1",
		"--rate-limit=1000001":                   "--rate-limit is 1000001, must be 0 (no limit) or 0.1 to 1000000",
		"--rate-limit=NaN":                       "--rate-limit is NaN",
		"--redis-pool-size=0":                    "--redis-pool-size is 0, must be 1 to 1000",
		"--redis-read-timeout=1ms":               "--redis-read-timeout is 1ms, must be 10ms to 5m",
		"--redis-tls-cert-file=a":                "--redis-tls-cert-file and --redis-tls-key-file go together",
		"--namespace=a/b":                        "--namespace is \"a/b\"",
		"--namespace=" + strings.Repeat("a", 65): "1 to 64 characters",
	}
	for arg, want := range tests {
		s, err := parseServe(t, arg)
		if err != nil {
			t.Errorf("%s: %v", arg, err)
			continue
		}
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", arg, err, want)
		}
	}
}
