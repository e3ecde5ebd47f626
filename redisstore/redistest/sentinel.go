package redistest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Sentinels are a primary, a replica and three Sentinels on loopback that a test started.
type Sentinels struct {
	// URL is how to reach the primary by them.
	URL string

	addresses []string
	args      []string // of the servers
	servers   []*Server
	ports     []string // of the servers
	watchers  []*exec.Cmd
	folders   []string
}

// sentinelMaster is the name that Sentinels know the primary by.
const sentinelMaster = "mymaster"

// StartSentinels starts a trio of the caller's own, with further arguments for the servers as on their command line,
// and waits until it works. The caller stops it.
func StartSentinels(t testing.TB, args ...string) *Sentinels {
	t.Helper()
	s := &Sentinels{}
	s.args = append([]string{"--bind", "127.0.0.1", "--repl-diskless-sync-delay", "0"}, args...)
	for i := range 2 {
		s.ports = append(s.ports, FreePort(t))
		s.servers = append(s.servers, Start(t, s.argsOf(i, 0)...))
	}
	for range 3 {
		s.watch(t, s.ports[0])
	}
	s.URL = "redis+sentinel://" + strings.Join(s.addresses, ",") + "/" + sentinelMaster
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	s.until(ctx, t, "the Sentinels find each other", s.isComplete)
	return s
}

// argsOf returns the arguments of a server, of which another one is the primary if they differ.
func (s *Sentinels) argsOf(i, primary int) []string {
	args := append([]string{"--port", s.ports[i]}, s.args...)
	if i != primary {
		args = append(args, "--replicaof", "127.0.0.1 "+s.ports[primary])
	}
	return args
}

func (s *Sentinels) until(ctx context.Context, t testing.TB, what string, holds func(context.Context) bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !holds(ctx) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			s.Stop()
			t.Fatalf("it did not happen in %s: %s", Patience, what)
		}
	}
}

func (s *Sentinels) watch(t testing.TB, primary string) {
	t.Helper()
	port := FreePort(t)
	folder, err := os.MkdirTemp("", "sidebus-sentinel-")
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(folder, "sentinel.conf")
	text := fmt.Sprintf("port %s\nbind 127.0.0.1\ndir %s\nlogfile \"\"\nsentinel monitor %s 127.0.0.1 %s 2\n"+
		"sentinel down-after-milliseconds %[3]s %[5]d\nsentinel failover-timeout %[3]s 5000\n", port, folder, sentinelMaster, primary, Patience.Milliseconds())
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(s.servers[0].command.Path, config, "--sentinel")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	s.addresses = append(s.addresses, net.JoinHostPort("127.0.0.1", port))
	s.watchers, s.folders = append(s.watchers, command), append(s.folders, folder)
}

// isComplete reports whether each Sentinel knows the two others and the replica.
func (s *Sentinels) isComplete(ctx context.Context) bool {
	for _, addr := range s.addresses {
		client := redis.NewSentinelClient(&redis.Options{Addr: addr})
		facts := client.Master(ctx, sentinelMaster).Val()
		_ = client.Close()
		if facts["num-other-sentinels"] != "2" || facts["num-slaves"] != "1" || facts["flags"] != "master" {
			return false
		}
	}
	return true
}

// ReplicaURL is how to reach the replica, whatever Sentinels say.
func (s *Sentinels) ReplicaURL() string { return s.servers[1].URL }

// KillPrimary ends the primary with SIGKILL, so that the Sentinels make the replica the primary, and returns when.
// Until then they wait for a busy machine, which else looks to them as if the primary were down.
func (s *Sentinels) KillPrimary(t testing.TB) time.Time {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	s.servers[s.primary(ctx, s.addresses[0])].Kill()
	diedAt := time.Now()
	s.setPatience(ctx, t, time.Second)
	return diedAt
}

// StopPrimary lets the primary answer nothing, so that the Sentinels make the replica the primary, until the test goes
// on with what is returned.
func (s *Sentinels) StopPrimary(t testing.TB) (goOn func()) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	primary := s.servers[s.primary(ctx, s.addresses[0])]
	primary.Signal(syscall.SIGSTOP)
	s.setPatience(ctx, t, time.Second)
	return func() { primary.Signal(syscall.SIGCONT) }
}

// FailOver makes the replica the primary, though nothing is wrong. What the old primary acknowledges until it hears of
// it is lost. A Sentinel refuses while it has not heard from the replica, so this asks again until it has.
func (s *Sentinels) FailOver(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), Patience)
	defer cancel()
	s.until(ctx, t, "the Sentinels fail over", func(ctx context.Context) bool {
		err := s.with(ctx, s.addresses[0], func(ctx context.Context, client *redis.SentinelClient) error {
			return client.Failover(ctx, sentinelMaster).Err()
		})
		if err != nil && !strings.HasPrefix(err.Error(), "NOGOODSLAVE") && !strings.HasPrefix(err.Error(), "INPROG") {
			t.Fatal(err)
		}
		return err == nil
	})
}

// Recover waits until another server is the primary than the one that was killed, runs that one again as its replica,
// and waits until it is in step.
func (s *Sentinels) Recover(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), Patience)
	defer cancel()
	for i, server := range s.servers {
		if !server.HasExited() {
			continue
		}
		s.until(ctx, t, "the replica becomes the primary", func(ctx context.Context) bool {
			return !slices.ContainsFunc(s.addresses, func(addr string) bool { return s.primary(ctx, addr) == i })
		})
		server.Restart(t, s.argsOf(i, 1-i)...)
	}
	s.setPatience(ctx, t, Patience)
	s.until(ctx, t, "the replica is in step", s.isInStep)
}

// isInStep reports whether one server is the primary, as all Sentinels know, and the other its replica.
func (s *Sentinels) isInStep(ctx context.Context) bool {
	primary := s.primary(ctx, s.addresses[0])
	for _, addr := range s.addresses {
		if primary < 0 || s.primary(ctx, addr) != primary {
			return false
		}
	}
	client := redis.NewClient(&redis.Options{Addr: net.JoinHostPort("127.0.0.1", s.ports[1-primary])})
	defer client.Close() //nolint:errcheck // nothing depends on it any more
	return strings.Contains(client.Info(ctx, "replication").Val(), "master_link_status:up")
}

// primary returns which server is the primary as a Sentinel knows it, -1 if it does not answer.
func (s *Sentinels) primary(ctx context.Context, sentinel string) int {
	client := redis.NewSentinelClient(&redis.Options{Addr: sentinel})
	defer client.Close() //nolint:errcheck // nothing depends on it any more
	at := client.GetMasterAddrByName(ctx, sentinelMaster).Val()
	if len(at) < 2 {
		return -1
	}
	return slices.Index(s.ports, at[1])
}

// setPatience sets after how long without an answer a Sentinel believes that the primary is down.
func (s *Sentinels) setPatience(ctx context.Context, t testing.TB, after time.Duration) {
	t.Helper()
	for _, addr := range s.addresses {
		err := s.with(ctx, addr, func(ctx context.Context, client *redis.SentinelClient) error {
			return client.Set(ctx, sentinelMaster, "down-after-milliseconds", strconv.FormatInt(after.Milliseconds(), 10)).Err()
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func (s *Sentinels) with(ctx context.Context, sentinel string, do func(context.Context, *redis.SentinelClient) error) error {
	client := redis.NewSentinelClient(&redis.Options{Addr: sentinel})
	defer client.Close() //nolint:errcheck // nothing depends on it any more
	return do(ctx, client)
}

// Stop kills all processes and removes their data.
func (s *Sentinels) Stop() {
	for i, command := range s.watchers {
		_ = command.Process.Kill()
		_ = command.Wait()
		_ = os.RemoveAll(s.folders[i])
	}
	for _, server := range s.servers {
		server.Stop()
	}
}
