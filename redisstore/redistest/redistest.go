// Package redistest provides tests with a real Redis: the one SIDEBUS_TEST_REDIS names, else one redis-server (or
// valkey-server) that it starts for the test binary and stops with it. SIDEBUS_TEST_REDIS=cluster starts a cluster,
// SIDEBUS_TEST_REDIS=sentinels a pair with three Sentinels instead. SIDEBUS_TEST_DURABILITY=disk or =replica starts one
// that can have this level of durability, which stores on it have unless they ask for another. With
// SIDEBUS_TEST_SEALED=1 stores encrypt bodies and session states. SIDEBUS_TEST_SERVER is the server that is started, if
// it is not the first on PATH. It never falls back to a fake and never skips. Tests share that Redis and keep apart by
// namespace, so they run in parallel and never flush.
package redistest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/sealed"
)

// Patience bounds every wait of a test for what must happen. It only ends a test that hangs, so it is far more than a
// busy machine needs.
const Patience = 2 * time.Minute

// Server is a redis-server process that a test started.
type Server struct {
	// URL is how to reach it, over a unix socket.
	URL string

	command *exec.Cmd
	folder  string // of its data
	socket  string
	exited  chan struct{}
}

var shared struct {
	sync.Mutex
	server  *Server
	several interface{ Stop() } // a cluster, or Sentinels with what they watch
	url     string              // of several
}

// Main runs a package's tests, stops the shared server after them, fails if goroutines are left then, and exits. It is
// all that a TestMain needs. Options let pass what the code of others leaves.
func Main(m goleak.TestingM, leaks ...goleak.Option) { goleak.VerifyTestMain(runner{m}, leaks...) }

// runner lets goleak look only after the shared server has stopped.
type runner struct{ goleak.TestingM }

// Run runs the tests.
func (r runner) Run() int {
	code := r.TestingM.Run()
	shared.Lock()
	defer shared.Unlock()
	if shared.server != nil {
		shared.server.Stop()
	}
	if shared.several != nil {
		shared.several.Stop()
	}
	return code
}

// URL returns the Redis all tests of this binary share.
func URL(t testing.TB) string {
	t.Helper()
	url := os.Getenv("SIDEBUS_TEST_REDIS")
	shared.Lock()
	defer shared.Unlock()
	switch {
	case url == "cluster" && shared.several == nil:
		cluster := StartCluster(t)
		shared.several, shared.url = cluster, cluster.URL
	case url == "sentinels" && shared.several == nil:
		sentinels := StartSentinels(t)
		shared.several, shared.url = sentinels, sentinels.URL
	}
	level := durability().Level
	if url == "" && level == semantics.DurabilityReplica && shared.several == nil {
		pair := StartPair(t)
		shared.several, shared.url = pair, pair.URL
	}
	if shared.several != nil {
		return shared.url
	}
	if url != "" {
		return url
	}
	if shared.server == nil && level == semantics.DurabilityDisk {
		shared.server = Start(t, "--appendfsync", "always")
	}
	if shared.server == nil {
		shared.server = Start(t)
	}
	return shared.server.URL
}

// durability returns what stores on the shared Redis wait for, however long that takes.
func durability() redisstore.Durability {
	for _, level := range []semantics.Durability{semantics.DurabilityDisk, semantics.DurabilityReplica} {
		if os.Getenv("SIDEBUS_TEST_DURABILITY") == level.String() {
			return redisstore.Durability{Level: level, Timeout: Patience}
		}
	}
	return redisstore.Durability{}
}

// payloadKeys returns keys with which stores encrypt bodies and session states, of which any test may know the secret.
func payloadKeys() *sealed.Keys {
	key, err := sealed.NewKey("test", make([]byte, sealed.KeySize))
	if err != nil {
		panic(err) // it is a constant
	}
	keys, err := sealed.NewKeys(key.Name(), key)
	if err != nil {
		panic(err)
	}
	return keys
}

// Start runs a redis-server of the caller's own, with further arguments as on its command line. The caller stops it.
// However long a script takes, the server makes neighbours wait and never answers BUSY, unless an argument sets
// busy-reply-threshold.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	program := os.Getenv("SIDEBUS_TEST_SERVER")
	for _, name := range []string{"redis-server", "valkey-server"} {
		if path, err := exec.LookPath(name); program == "" && err == nil {
			program = path
		}
	}
	if program == "" {
		t.Fatal("no redis-server on PATH: run `make test`, which installs it, or set SIDEBUS_TEST_REDIS to a URL")
	}
	folder, err := os.MkdirTemp("", "sidebus-redis-")
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(folder, "s")
	s := &Server{folder: folder, socket: socket, URL: "unix://" + socket}
	s.run(t, program, args)
	return s
}

func (s *Server) run(t testing.TB, program string, args []string) {
	t.Helper()
	args = append([]string{
		"--port", "0", "--unixsocket", s.socket, "--dir", s.folder, "--save", "",
		"--appendonly", "yes", "--appendfsync", "everysec", "--maxmemory-policy", "noeviction", "--loglevel", "warning",
		"--busy-reply-threshold", "0",
	}, args...)
	s.command = exec.Command(program, args...)
	s.exited = make(chan struct{})
	if err := s.command.Start(); err != nil {
		_ = os.RemoveAll(s.folder)
		t.Fatalf("start %s: %v", program, err)
	}
	go func() {
		_ = s.command.Wait()
		close(s.exited)
	}()
	options := ClientOptions(t, s.URL)
	client := redis.NewClient(options)
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	for client.Ping(ctx).Err() != nil {
		select {
		case <-s.exited:
			_ = os.RemoveAll(s.folder)
			t.Fatalf("%s ended at once: %s", program, s.command.ProcessState)
		case <-ctx.Done():
			s.Stop()
			t.Fatalf("%s does not answer", program)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// Kill ends the server with SIGKILL and waits for its end.
func (s *Server) Kill() {
	_ = s.command.Process.Kill()
	<-s.exited
}

// HasExited reports whether the server has ended.
func (s *Server) HasExited() bool {
	select {
	case <-s.exited:
		return true
	default:
		return false
	}
}

// PID returns the process id of the server.
func (s *Server) PID() int { return s.command.Process.Pid }

// Signal sends a signal to the server.
func (s *Server) Signal(signal syscall.Signal) { _ = s.command.Process.Signal(signal) }

// Restart runs the server again on the same data after Kill.
func (s *Server) Restart(t testing.TB, args ...string) {
	t.Helper()
	s.run(t, s.command.Path, args)
}

// Stop kills the server if it runs and removes its data.
func (s *Server) Stop() {
	s.Kill()
	_ = os.RemoveAll(s.folder)
}

// seedSlice is how many rows one script of Seed writes: few milliseconds, so that neighbours on the server do not wait.
const seedSlice = 1000

// Seed runs a piece of Lua with i = 1 to rows, in scripts that are short however many rows there are. What is in Redis
// between two of them must do no harm.
func Seed(t testing.TB, client *redis.Client, rows int, keys []string, row string) {
	t.Helper()
	script := redis.NewScript("for i = tonumber(ARGV[1]), tonumber(ARGV[2]) do " + row + "\nend")
	for first := 1; first <= rows; first += seedSlice {
		if err := script.Run(t.Context(), client, keys, first, min(first+seedSlice-1, rows)).Err(); err != nil && !errors.Is(err, redis.Nil) {
			t.Fatalf("seed rows from %d: %v", first, err)
		}
	}
}

// Open makes a Store on the shared Redis with a namespace of its own, unless options name one, and closes it with the
// test.
func Open(t testing.TB, options redisstore.Options) *redisstore.Store {
	t.Helper()
	if options.URL == "" {
		options.URL = URL(t)
		if options.Namespace == "" {
			options.Namespace = NamespaceUntil(t, options.URL)
		}
		if options.Durability == (redisstore.Durability{}) {
			options.Durability = durability()
		}
	}
	if options.Namespace == "" {
		options.Namespace = Namespace()
	}
	if options.PayloadKeys == nil && os.Getenv("SIDEBUS_TEST_SEALED") != "" {
		options.PayloadKeys = payloadKeys
	}
	if options.ReadTimeout == 0 {
		options.ReadTimeout = Patience // neighbours on the shared server must not make an outcome unknown
	}
	store, err := redisstore.Open(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(fmt.Errorf("close store: %w", err))
		}
	})
	return store
}
