package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// crew is all processes of the experiment by name. Their output goes to files in dir.
type crew struct {
	dir, self string
	members   map[string]*member
}

type member struct {
	command *exec.Cmd
	exited  chan struct{}
	killed  bool
}

// startSidecars starts Redis and one sidecar for each consumer, and returns the sidecars' gRPC addresses.
func (c *crew) startSidecars(ctx context.Context) ([]string, error) {
	var err error
	if c.self, err = os.Executable(); err != nil {
		return nil, err
	}
	sidebus := os.Getenv("SIDEBUS")
	if sidebus == "" {
		sidebus = "sidebus"
	}
	socket := filepath.Join(c.dir, "redis.sock")
	server := "redis-server"
	if _, err := exec.LookPath(server); err != nil {
		server = "valkey-server"
	}
	err = c.start("redis", server, "--port", "0", "--unixsocket", socket, "--dir", c.dir, "--save", "",
		"--appendonly", "yes", "--appendfsync", "everysec", "--maxmemory-policy", "noeviction")
	if err != nil {
		return nil, err
	}
	addresses := make([]string, consumers)
	admins := make([]string, consumers)
	for i := range consumers {
		free, err := freeAddresses(3)
		if err != nil {
			return nil, err
		}
		addresses[i], admins[i] = free[1], free[2]
		err = c.start(fmt.Sprintf("sidecar-%d", i), sidebus, "serve", "--store", "unix://"+socket,
			"--http-addr", free[0], "--grpc-addr", free[1], "--admin-addr", free[2])
		if err != nil {
			return nil, err
		}
	}
	for i, admin := range admins {
		out, err := exec.CommandContext(ctx, sidebus, "wait", "--admin-addr", admin).CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("sidecar %d: %w: %s", i, err, out)
		}
	}
	return addresses, nil
}

// freeAddresses returns loopback addresses without a listener.
func freeAddresses(n int) ([]string, error) {
	addresses := make([]string, n)
	for i := range addresses {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer listener.Close() //nolint:errcheck // without connections; all are kept open until all are known
		addresses[i] = listener.Addr().String()
	}
	return addresses, nil
}

func (c *crew) start(name, program string, args ...string) error {
	log, err := os.Create(filepath.Join(c.dir, name+".log"))
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // the child has its own
	m := &member{command: exec.Command(program, args...), exited: make(chan struct{})}
	m.command.Stdout, m.command.Stderr = log, log
	if err := m.command.Start(); err != nil {
		return err
	}
	go func() {
		_ = m.command.Wait() // the state shows it
		close(m.exited)
	}()
	if c.members == nil {
		c.members = map[string]*member{}
	}
	c.members[name] = m
	return nil
}

func (c *crew) kill(name string) {
	m := c.members[name]
	m.killed = true
	_ = m.command.Process.Kill()
	<-m.exited
}

// awaitExit waits for a process to end without a signal, and in order.
func (c *crew) awaitExit(ctx context.Context, name string) error {
	m := c.members[name]
	select {
	case <-m.exited:
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", name, context.Cause(ctx))
	}
	if !m.command.ProcessState.Success() {
		return fmt.Errorf("%s ended with %s", name, m.command.ProcessState)
	}
	return nil
}

// stopRest ends consumers, then sidecars, in order; every one of them must exit with 0.
func (c *crew) stopRest(ctx context.Context) error {
	var errs []error
	for _, kind := range []string{"consumer", "sidecar"} {
		for i := range consumers {
			name := fmt.Sprintf("%s-%d", kind, i)
			if c.members[name].killed {
				continue
			}
			_ = c.members[name].command.Process.Signal(syscall.SIGTERM)
			errs = append(errs, c.awaitExit(ctx, name))
		}
	}
	return errors.Join(errs...)
}

// killAll ends whatever still runs.
func (c *crew) killAll() {
	for name := range c.members {
		c.kill(name)
	}
}
