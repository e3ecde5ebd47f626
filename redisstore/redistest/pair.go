package redistest

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Pair is a primary and its replica on loopback that a test started.
type Pair struct {
	// URL is how to reach the primary.
	URL string
	// Primary and Replica may be killed.
	Primary, Replica *Server
}

// StartPair starts a pair of the caller's own, with further arguments for both as on their command line, and waits
// until the replica has what the primary has. The caller stops it.
func StartPair(t testing.TB, args ...string) *Pair {
	t.Helper()
	args = append([]string{"--bind", "127.0.0.1", "--repl-diskless-sync-delay", "0"}, args...)
	withPorts := withPort(t, args)
	p := &Pair{Primary: Start(t, withPorts...)}
	p.URL = p.Primary.URL
	p.Replica = Start(t, withPort(t, append(args, "--replicaof", "127.0.0.1 "+withPorts[1]))...)
	client := Client(t, p.URL)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), Patience)
	defer cancel()
	for !strings.Contains(client.Info(ctx, "replication").Val(), "state=online") {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			p.Stop()
			t.Fatal("the replica does not find its primary")
		}
	}
	return p
}

// Stop kills both and removes their data.
func (p *Pair) Stop() {
	p.Replica.Stop()
	p.Primary.Stop()
}

// Pause lets the server answer nothing until the test goes on with what is returned, which may be called twice.
func (s *Server) Pause(t testing.TB) (goOn func()) {
	t.Helper()
	if err := s.command.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	return func() { _ = s.command.Process.Signal(syscall.SIGCONT) }
}

// LoseReplica makes the replica of Sentinels lag for good: it gets nothing more from the primary. It stops until the
// test goes on with what is returned, after the end of the primary.
func (s *Sentinels) LoseReplica(t testing.TB) (goOn func()) {
	t.Helper()
	goOn = s.servers[1].Pause(t)
	client := redis.NewClient(ClientOptions(t, s.servers[0].URL))
	defer client.Close()
	if err := client.ClientKillByFilter(t.Context(), "TYPE", "replica").Err(); err != nil {
		t.Fatal(err)
	}
	return goOn
}
