package main

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/sidebus/sidebus/test/figures"
)

// redisServer is a redis-server of one workload.
type redisServer struct {
	socket string
	pid    int
	stop   func()
}

// redisSettings are those that Sidebus recommends, for every workload that uses Redis. The append-only file is not
// rewritten, so that a rewrite does not slow down only one of those that take turns.
const redisSettings = "unix socket, appendonly yes, appendfsync everysec, no rewrite, stream-node-max-bytes 16384"

// startRedis runs a redis-server with its files in dir.
func startRedis(ctx context.Context, dir string) (*redisServer, error) {
	socket := filepath.Join(dir, "redis.sock")
	command := exec.CommandContext(
		ctx, "redis-server", "--port", "0", "--unixsocket", socket, "--dir", dir, "--save", "", "--appendonly", "yes",
		"--appendfsync", "everysec", "--auto-aof-rewrite-percentage", "0", "--maxmemory-policy", "noeviction",
		"--stream-node-max-bytes", "16384", "--loglevel", "warning",
	)
	if err := command.Start(); err != nil {
		return nil, err
	}
	stop := func() { _ = command.Process.Kill(); _ = command.Wait() }
	answers := func() bool { return exec.CommandContext(ctx, "redis-cli", "-s", socket, "ping").Run() == nil }
	if err := until(ctx, answers); err != nil {
		stop()
		return nil, errors.Join(errors.New("redis-server does not answer"), err)
	}
	return &redisServer{socket: socket, pid: command.Process.Pid, stop: stop}, nil
}

func (r *redisServer) url() string { return "unix://" + r.socket }

func (r *redisServer) cpu() time.Duration { return figures.CPUOf(r.pid)() }

func redisVersion(ctx context.Context) string {
	return figures.VersionOf(ctx, "redis-server", "--version")
}

// until asks until the answer is yes, for a minute at most.
func until(ctx context.Context, yes func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for !yes() {
		select {
		case <-look.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
