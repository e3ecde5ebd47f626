package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/sidebus/sidebus/test/figures"
)

// redisCluster is a Redis Cluster of three primaries on loopback.
type redisCluster struct {
	url  string
	pids []int
	stop func()
}

const (
	clusterNodes    = 3
	clusterSettings = "three primaries on loopback without replicas, appendonly yes, appendfsync everysec, no rewrite, " +
		"stream-node-max-bytes 16384"
)

// startCluster runs a cluster with its files in dir.
func startCluster(ctx context.Context, dir string) (*redisCluster, error) {
	c := &redisCluster{}
	var commands []*exec.Cmd
	c.stop = func() {
		for _, command := range commands {
			_ = command.Process.Kill()
			_ = command.Wait()
		}
	}
	var addresses []string
	for i := range clusterNodes {
		port, bus, files := freePort(), freePort(), fmt.Sprint(dir, "/node-", i)
		if err := os.Mkdir(files, 0o700); err != nil {
			c.stop()
			return nil, err
		}
		command := exec.CommandContext(
			ctx, "redis-server", "--port", port, "--bind", "127.0.0.1", "--cluster-enabled", "yes", "--cluster-port", bus,
			"--dir", files, "--save", "", "--appendonly", "yes", "--appendfsync", "everysec",
			"--auto-aof-rewrite-percentage", "0", "--stream-node-max-bytes", "16384", "--loglevel", "warning",
		)
		if err := command.Start(); err != nil {
			c.stop()
			return nil, err
		}
		commands = append(commands, command)
		c.pids, addresses = append(c.pids, command.Process.Pid), append(addresses, "127.0.0.1:"+port)
	}
	join := func() bool {
		args := append([]string{"--cluster", "create"}, append(addresses, "--cluster-yes")...)
		return exec.CommandContext(ctx, "redis-cli", args...).Run() == nil
	}
	if err := until(ctx, join); err != nil {
		c.stop()
		return nil, fmt.Errorf("the servers do not become a cluster: %w", err)
	}
	c.url = "redis+cluster://" + strings.Join(addresses, ",")
	return c, nil
}

// spreads returns a function that runs sidecars over a cluster of their own, which all use one queue with partitions.
func (b build) spreads(partitions, sidecars int) func(context.Context, string) (*opened, error) {
	return func(ctx context.Context, dir string) (*opened, error) {
		cluster, err := startCluster(ctx, dir)
		if err != nil {
			return nil, err
		}
		stops := []func(){cluster.stop}
		stop := func() {
			for _, stop := range slices.Backward(stops) {
				stop()
			}
		}
		options := fmt.Sprintf(`{"maxSizeInMegabytes":"81920","partitions":%d}`, partitions)
		var all []*sidecar
		for i := range sidecars {
			s, err := b.connected(ctx, cluster.url, fmt.Sprint(dir, "/", i), queueOf(0), carrier{options: options})
			if err != nil {
				stop()
				return nil, err
			}
			stops, all = append(stops, s.stop), append(all, s)
		}
		used := processes{"client": figures.OwnCPU, "sidecar": usedBy(all)}
		for i, pid := range cluster.pids {
			used[nodeOf(i)] = figures.CPUOf(pid)
		}
		carry := carrying(used, func(ctx context.Context, messages int) error {
			return shared(ctx, all, queueOf(0), messages)
		})
		return &opened{
			round: func(ctx context.Context, messages int) (figures.Round, error) {
				r, err := carry(ctx, messages)
				if err == nil {
					r.Values = map[string]float64{"share of the busiest node": busiest(r.CPU)}
				}
				return r, err
			},
			versions: b.versions(ctx),
			settings: map[string]string{
				"client":  "Publish, at most 1000 unanswered; Subscribe with 1000 credits; one message a request; all on one queue",
				"sidecar": b.transport(), "redis": clusterSettings,
			},
			stop: stop,
		}, nil
	}
}

func nodeOf(i int) string { return fmt.Sprint("redis-", i+1) }

// usedBy returns the processor time of all sidecars.
func usedBy(all []*sidecar) func() time.Duration {
	return func() (sum time.Duration) {
		for _, s := range all {
			sum += figures.CPUOf(s.pid)()
		}
		return sum
	}
}

// busiest returns the part of the processor time of all nodes that the busiest one has.
func busiest(cpu map[string]float64) float64 {
	most, sum := 0.0, 0.0
	for i := range clusterNodes {
		most, sum = max(most, cpu[nodeOf(i)]), sum+cpu[nodeOf(i)]
	}
	return most / sum
}
