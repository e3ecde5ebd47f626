package redistest

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Loss is a way in which a Redis forgets.
type Loss string

// The ways in which a Redis forgets.
const (
	AOFCut Loss = "AOF cut" // it is killed, and of its AOF only what was there at the mark is left
	// it is killed, and a replica that has heard nothing since the mark takes its place
	Failover     Loss = "failover"
	Flush        Loss = "FLUSHALL"      // it goes on with nothing; no connection is lost
	EmptyRestart Loss = "empty restart" // it is killed and comes back with nothing
	ScriptFlush  Loss = "SCRIPT FLUSH"  // it forgets the scripts and nothing else
)

// Losses are all of them.
var Losses = []Loss{AOFCut, Failover, Flush, EmptyRestart, ScriptFlush}

// ForgetsAll reports whether nothing is left, not even what was there at the mark.
func (l Loss) ForgetsAll() bool { return l == Flush || l == EmptyRestart }

// EndsRedis reports whether another run of Redis goes on afterwards, which may have another clock.
func (l Loss) EndsRedis() bool { return l != Flush && l != ScriptFlush }

// Forgetful is a Redis that can be made to forget while sidecars use it. It is always found under the same URL.
type Forgetful struct {
	*Server

	// WhileGone is called in the middle of each loss that ends the Redis: when it is gone and does not run again yet.
	WhileGone func()

	args    []string
	replica *Server
	size    int64 // of the AOF at the mark
}

// StartForgetful runs a redis-server that can be made to forget, with further arguments as on its command line. It ends
// with the test.
func StartForgetful(t testing.TB, args ...string) *Forgetful {
	t.Helper()
	args = append([]string{
		"--appendfsync", "no", // a write would wait for an fsync that is under way, and the mark would be too early
		"--auto-aof-rewrite-percentage", "0", "--repl-diskless-sync-delay", "0", "--bind", "127.0.0.1",
	}, args...)
	f := &Forgetful{args: args, Server: Start(t, withPort(t, args)...)}
	t.Cleanup(func() {
		f.Stop()
		if f.replica != nil {
			f.replica.Stop()
		}
	})
	return f
}

// withPort adds a free port, which replicas need.
func withPort(t testing.TB, args []string) []string {
	t.Helper()
	return append([]string{"--port", FreePort(t)}, args...)
}

// Prepare gets ready what a loss needs. It may take a second, in which the Redis goes on.
func (f *Forgetful) Prepare(t testing.TB, loss Loss) {
	t.Helper()
	if loss != Failover {
		return
	}
	if f.replica != nil {
		f.replica.Stop()
	}
	port := f.do(t, "CONFIG", "GET", "port").([]any)[1].(string)
	f.replica = Start(t, withPort(t, append([]string{"--replicaof", "127.0.0.1 " + port}, f.args...))...)
	f.catchUp(t)
}

// catchUp waits until the replica has all that was done so far.
func (f *Forgetful) catchUp(t testing.TB) {
	t.Helper()
	client := f.open(t)
	defer client.Close()
	conn := client.Conn() // WAIT is about what its own connection wrote last
	defer conn.Close()
	for range 100 {
		if err := conn.Set(t.Context(), "redistest:mark", 1, 0).Err(); err != nil {
			t.Fatal(err)
		}
		if n, err := conn.Wait(t.Context(), 1, 100*time.Millisecond).Result(); err == nil && n == 1 {
			return
		}
	}
	t.Fatal("the replica never caught up")
}

// Mark is the instant to which the Redis will come back. Prepare must have been called with the same loss.
func (f *Forgetful) Mark(t testing.TB, loss Loss) {
	t.Helper()
	switch loss {
	case AOFCut:
		info, err := os.Stat(f.log(t))
		if err != nil {
			t.Fatal(err)
		}
		f.size = info.Size()
	case Failover:
		f.catchUp(t)
		f.replica.do(t, "REPLICAOF", "NO", "ONE")
	default: // they forget all, or nothing
	}
}

// Lose makes the Redis forget. It returns when the Redis answers again.
func (f *Forgetful) Lose(t testing.TB, loss Loss) {
	t.Helper()
	switch loss {
	case AOFCut:
		f.end()
		if err := os.Truncate(f.log(t), f.size); err != nil {
			t.Fatal(err)
		}
		f.Restart(t, withPort(t, f.args)...)
	case Failover:
		f.promote(t)
	case Flush:
		f.do(t, "FLUSHALL")
	case EmptyRestart:
		f.end()
		if err := os.RemoveAll(filepath.Join(f.folder, "appendonlydir")); err != nil {
			t.Fatal(err)
		}
		f.Restart(t, withPort(t, f.args)...)
	case ScriptFlush:
		f.do(t, "SCRIPT", "FLUSH")
	}
}

func (f *Forgetful) end() {
	f.Kill()
	if f.WhileGone != nil {
		f.WhileGone()
	}
}

// promote lets the replica take the place of the server, and its address.
func (f *Forgetful) promote(t testing.TB) {
	t.Helper()
	f.end()
	gone, next := f.Server, f.replica
	if err := os.Rename(next.socket, gone.socket); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(gone.folder) })
	f.Server, f.replica = &Server{URL: gone.URL, command: next.command, folder: next.folder, socket: gone.socket, exited: next.exited}, nil
}

// log returns the file to which the server appends what it does.
func (f *Forgetful) log(t testing.TB) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(f.folder, "appendonlydir", "*.incr.aof"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the AOF is in %v, %v", files, err)
	}
	return files[0]
}

func (s *Server) open(t testing.TB) *redis.Client {
	t.Helper()
	options := ClientOptions(t, s.URL)
	options.Protocol = 2
	return redis.NewClient(options)
}

// do runs one command past everything.
func (s *Server) do(t testing.TB, args ...any) any {
	t.Helper()
	client := s.open(t)
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	result, err := client.Do(ctx, args...).Result()
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return result
}
