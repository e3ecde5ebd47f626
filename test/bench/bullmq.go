package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
)

// bullMQ are jobs on a Redis with the settings of Sidebus'. Its client is for Node only.
func bullMQ(ctx context.Context, dir string) (*opened, error) {
	node, err := exec.LookPath("node")
	if err != nil {
		return nil, errors.New("node is not installed; run test/install.sh node, or leave it out with -only")
	}
	if _, err := os.Stat("bullmq/node_modules/bullmq"); err != nil {
		return nil, errors.New("bullmq is not installed; run npm ci in test/bench/bullmq (make bullmq), or leave it out with -only")
	}
	server, err := startRedis(ctx, dir)
	if err != nil {
		return nil, err
	}
	d, err := startDriver(ctx, "bullmq", node, "driver.js", server.socket, strconv.Itoa(callers), strconv.Itoa(bodySize))
	if err != nil {
		server.stop()
		return nil, err
	}
	p := d.processes()
	p["redis"] = server.cpu
	versions := d.hello.Versions
	versions["redis"] = redisVersion(ctx)
	return &opened{
		round: carrying(p, func(_ context.Context, messages int) error {
			_, err := d.do(fmt.Sprint(messages))
			return err
		}),
		versions: versions,
		settings: map[string]string{
			"client": "64 callers, one job a call; one worker of concurrency 64; removeOnComplete", "redis": redisSettings,
		},
		stop: func() { d.stop(); server.stop() },
	}, nil
}
