package main

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/test/dapr/daprtest"
	"github.com/sidebus/sidebus/test/figures"
)

// bed is what the contender runs on: a Redis, with Sidebus a sidecar over it, a daprd, and a folder.
type bed struct {
	dir, runtime string // the binary of daprd
	redisAddr    string
	httpAddr     string // of the sidecar
	redis        *redis.Client
	processes    map[string]*exec.Cmd // by what they do
}

func newBed(ctx context.Context, c *contender, sidebus string) (*bed, error) {
	b := &bed{processes: map[string]*exec.Cmd{}}
	var err error
	if b.runtime, err = daprtest.Build(); err != nil {
		return nil, err
	}
	if b.dir, err = os.MkdirTemp("", "sbd-"); err != nil {
		return nil, err
	}
	if err := b.open(ctx, c, sidebus); err != nil {
		b.stop()
		return nil, err
	}
	return b, nil
}

func (b *bed) open(ctx context.Context, c *contender, sidebus string) error {
	ports, err := freePorts(2)
	if err != nil {
		return err
	}
	b.redisAddr, b.httpAddr = address(ports[0]), address(ports[1])
	// As Sidebus recommends it.
	err = b.run(
		"redis", "redis-server", nil, "--port", strconv.Itoa(ports[0]), "--bind", "127.0.0.1", "--dir", b.dir, "--save",
		"", "--appendonly", "yes", "--appendfsync", "everysec", "--maxmemory-policy", "noeviction", "--loglevel", "warning",
	)
	if err != nil {
		return err
	}
	b.redis = redis.NewClient(&redis.Options{Addr: b.redisAddr})
	if err := until(ctx, "redis-server answers", func() bool { return b.redis.Ping(ctx).Err() == nil }); err != nil {
		return err
	}
	if c.isRedis {
		return nil
	}
	socket := filepath.Join(b.dir, "sidebus.sock")
	if c.isFloor {
		program, err := os.Executable()
		if err != nil {
			return err
		}
		if err := b.run("sidecar", program, nil, "serve-floor", socket); err != nil {
			return err
		}
		return until(ctx, "the component serves", func() bool { return exists(socket) })
	}
	err = b.run(
		"sidecar", sidebus, nil, "serve", "--store", "redis://"+b.redisAddr, "--http-addr", b.httpAddr, "--grpc-addr",
		"127.0.0.1:0", "--admin-addr", "127.0.0.1:0", "--dapr-socket", socket,
		"--log-level", "error",
	)
	if err != nil {
		return fmt.Errorf("%w; run make build first", err)
	}
	return until(ctx, "the sidecar serves", func() bool { return b.ask(ctx, "/v1/queues") })
}

// hello is what the other process needs to know.
func (b *bed) hello(ctx context.Context) any {
	pids := map[string]int{}
	for what, p := range b.processes {
		pids[what] = p.Process.Pid
	}
	client, _ := debug.ReadBuildInfo()
	runtime, err := buildinfo.ReadFile(b.runtime)
	if err != nil {
		runtime = &debug.BuildInfo{}
	}
	return map[string]any{"processes": pids, "versions": map[string]string{
		"daprd":  versionIn(runtime, "github.com/dapr/dapr"),
		"go-sdk": versionIn(client, "github.com/dapr/go-sdk"),
		"redis":  figures.VersionOf(ctx, "redis-server", "--version"),
	}}
}

// versionIn returns the version of a module that a program was built with.
func versionIn(program *debug.BuildInfo, module string) string {
	for _, m := range program.Deps {
		if m.Path == module {
			return strings.TrimPrefix(m.Version, "v")
		}
	}
	return "unknown"
}

func (b *bed) stop() {
	for _, p := range b.processes {
		_ = p.Process.Kill()
		_ = p.Wait()
	}
	_ = os.RemoveAll(b.dir)
}

func (b *bed) run(what, program string, env []string, args ...string) error {
	command := exec.Command(program, args...)
	command.Env = append(os.Environ(), env...)
	command.Stderr = os.Stderr
	if err := command.Start(); err != nil {
		return err
	}
	b.processes[what] = command
	return nil
}

// daprd runs Dapr's runtime with the component of a contender and returns the address of its API.
func (b *bed) daprd(ctx context.Context, c *contender, appPort int) (string, error) {
	resources := filepath.Join(b.dir, "resources")
	if err := os.Mkdir(resources, 0o755); err != nil {
		return "", err
	}
	metadata := c.metadata
	if c.isRedis {
		metadata = map[string]string{"redisHost": b.redisAddr}
	}
	if err := os.WriteFile(filepath.Join(resources, "bus.yaml"), []byte(daprtest.Component("bus", c.kind, metadata)),
		0o644); err != nil {
		return "", err
	}
	ports, err := freePorts(2)
	if err != nil {
		return "", err
	}
	err = b.run(
		"daprd", b.runtime, []string{"DAPR_COMPONENTS_SOCKETS_FOLDER=" + b.dir}, "--app-id", "bench", "--resources-path",
		resources, "--log-level", "error", "--dapr-http-port", strconv.Itoa(ports[0]), "--dapr-grpc-port",
		strconv.Itoa(ports[1]), "--dapr-listen-addresses", "127.0.0.1", "--dapr-internal-grpc-listen-address",
		"127.0.0.1", "--app-port", strconv.Itoa(appPort), "--app-protocol", "grpc",
	)
	if err != nil {
		return "", err
	}
	err = until(
		ctx,
		"daprd is ready",
		func() bool { return status(ctx, "http://"+address(ports[0])+"/v1.0/healthz") == http.StatusNoContent },
	)
	return address(ports[1]), err
}

// subscribed waits until what is published will be delivered.
func (b *bed) subscribed(ctx context.Context, c *contender) error {
	if c.isFloor {
		return nil // it keeps what is published until there is one
	}
	return until(ctx, "there is a subscription", func() bool {
		if c.isRedis {
			groups, err := b.redis.XInfoGroups(ctx, topic).Result()
			return err == nil && len(groups) > 0
		}
		return b.ask(ctx, "/v1/queues/"+topic) || b.ask(ctx, "/v1/topics/"+topic+"/subscriptions/bench")
	})
}

// drained waits until everything was acknowledged.
func (b *bed) drained(ctx context.Context, c *contender) error {
	if c.isFloor {
		return nil
	}
	return until(ctx, "everything is acknowledged", func() bool {
		if c.isRedis {
			pending, err := b.redis.XPending(ctx, topic, "bench").Result()
			return err == nil && pending.Count == 0
		}
		return b.ask(ctx, "/v1/queues/"+topic+"/runtime", `"totalMessageCount":"0"`) ||
			b.ask(ctx, "/v1/topics/"+topic+"/subscriptions/bench/runtime", `"totalMessageCount":"0"`)
	})
}

// memory returns what Redis has in use.
func (b *bed) memory(ctx context.Context) (float64, error) {
	info, err := b.redis.Info(ctx, "memory").Result()
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(info) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "used_memory:"); ok {
			return strconv.ParseFloat(text, 64)
		}
	}
	return 0, errors.New("INFO does not tell used_memory")
}

// ask reports whether the sidecar answers 200, with a text in the answer.
func (b *bed) ask(ctx context.Context, path string, texts ...string) bool {
	answer, err := get(ctx, "http://"+b.httpAddr+path)
	if err != nil || answer.status != http.StatusOK {
		return false
	}
	for _, text := range texts {
		if !strings.Contains(strings.ReplaceAll(answer.body, `": `, `":`), text) {
			return false
		}
	}
	return true
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
