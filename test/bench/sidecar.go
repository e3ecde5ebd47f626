package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	sidebus "github.com/sidebus/sidebus/proto/client"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/test/figures"
)

// build is a binary of the sidecar, and how it is run.
type build struct {
	binary string
	socket bool // the gRPC API listens on a unix socket
}

// sidecar is a process of a build.
type sidecar struct {
	http, grpc string // addresses of its APIs
	pid        int
	stop       func()
	messages   sidebusv1.MessagesClient
}

// start runs a sidecar over a store, with more flags, and waits until it is ready.
func (b build) start(ctx context.Context, store, dir string, more ...string) (*sidecar, error) {
	s := &sidecar{http: "127.0.0.1:" + freePort(), grpc: "127.0.0.1:" + freePort()}
	if b.socket {
		s.grpc = "unix://" + filepath.Join(dir, "grpc")
	}
	command := exec.CommandContext(ctx, b.binary, append([]string{
		"serve", "--store", store, "--grpc-addr", s.grpc, "--http-addr", s.http,
		"--admin-addr", "127.0.0.1:" + freePort(), "--log-level", "error",
	}, more...)...)
	command.Stderr = os.Stderr
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("%w; run make build first", err)
	}
	s.pid = command.Process.Pid
	s.stop = func() { _ = command.Process.Kill(); _ = command.Wait() }
	if err := until(ctx, func() bool { return s.call(ctx, http.MethodGet, "/v1/queues", "") == nil }); err != nil {
		s.stop()
		return nil, fmt.Errorf("the sidecar does not serve: %w", err)
	}
	return s, nil
}

// isEmpty reports whether a queue has no messages.
func (s *sidecar) isEmpty(ctx context.Context, queue string) bool {
	body := strings.NewReader("{}")
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.http+"/v1/queues/"+queue+"/messages:peek", body)
	if err != nil {
		return false
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	defer answer.Body.Close() //nolint:errcheck // it was read
	text, err := io.ReadAll(answer.Body)
	return err == nil && answer.StatusCode == http.StatusOK && !strings.Contains(string(text), "sequenceNumber")
}

// call makes a call of the HTTP API.
func (s *sidecar) call(ctx context.Context, method, path, body string) error {
	request, err := http.NewRequestWithContext(ctx, method, "http://"+s.http+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	if err := answer.Body.Close(); err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %s", method, path, answer.Status)
	}
	return nil
}

// work carries messages through a queue.
type work = func(ctx context.Context, client sidebusv1.MessagesClient, queue string, messages int) error

// carrier is how messages are carried through sidecars.
type carrier struct {
	client   string // what the client does, in words
	options  string // of the queue
	sidecars int    // over one Redis, each with a queue and an equal part of the messages
	work     work
	separate bool // each call is an RPC of its own
}

// carries returns a function that runs the sidecars over a Redis of their own.
func (b build) carries(c carrier) func(context.Context, string) (*opened, error) {
	return func(ctx context.Context, dir string) (*opened, error) {
		redis, err := startRedis(ctx, dir)
		if err != nil {
			return nil, err
		}
		stops := []func(){redis.stop}
		stop := func() {
			for _, stop := range slices.Backward(stops) {
				stop()
			}
		}
		var all []*sidecar
		for i := range c.sidecars {
			s, err := b.connected(ctx, redis.url(), fmt.Sprint(dir, "/", i), queueOf(i), c)
			if err != nil {
				stop()
				return nil, err
			}
			stops, all = append(stops, s.stop), append(all, s)
		}
		return &opened{
			round: carrying(
				processes{"client": figures.OwnCPU, "sidecar": usedBy(all), "redis": redis.cpu},
				func(ctx context.Context, messages int) error { return c.through(ctx, all, messages) },
			),
			versions: b.versions(ctx),
			settings: map[string]string{"client": c.client, "sidecar": b.transport(), "redis": redisSettings},
			stop:     stop,
		}, nil
	}
}

func queueOf(i int) string { return fmt.Sprint("bench-", i) }

// through lets all sidecars work at the same time.
func (c carrier) through(ctx context.Context, all []*sidecar, messages int) error {
	ended := make(chan error, len(all))
	for i, s := range all {
		go func() { ended <- c.work(ctx, s.messages, queueOf(i), messages/len(all)) }()
	}
	var failed error
	for range all {
		failed = cmp.Or(failed, <-ended)
	}
	return failed
}

// connected starts a sidecar with a client, and creates a queue.
func (b build) connected(ctx context.Context, store, dir, queue string, c carrier) (*sidecar, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	s, err := b.start(ctx, store, dir)
	if err != nil {
		return nil, err
	}
	connection, err := sidebus.New(s.grpc, &sidebus.Options{SeparateCalls: c.separate})
	if err == nil {
		err = s.call(ctx, http.MethodPut, "/v1/queues/"+queue, c.options)
	}
	if err != nil {
		s.stop()
		return nil, err
	}
	s.messages = sidebusv1.NewMessagesClient(connection.Conn())
	kill := s.stop
	s.stop = func() { _ = connection.Close(); kill() }
	return s, nil
}

func (b build) versions(ctx context.Context) map[string]string {
	return map[string]string{
		"redis": redisVersion(ctx), "grpc-go": moduleVersion("google.golang.org/grpc"),
		"sidebus": outputOf(ctx, b.binary, "version"),
	}
}

func (b build) transport() string {
	if b.socket {
		return "gRPC on a unix socket"
	}
	return "gRPC on TCP"
}

// outputOf returns the first line that a program prints.
func outputOf(ctx context.Context, program string, args ...string) string {
	out, err := exec.CommandContext(ctx, program, args...).Output()
	if err != nil {
		return "unknown"
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return line
}

// freePort returns a port on which nothing listens.
func freePort() string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "0"
	}
	defer listener.Close() //nolint:errcheck // only its port is wanted
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	return port
}
