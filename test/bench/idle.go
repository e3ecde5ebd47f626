package main

import (
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/test/figures"
)

const (
	idleReceivers = 10
	idleSpan      = 10 * time.Second
	longestWait   = 5 * time.Minute // of a receive
)

// idle is a sidecar with receivers that wait on empty queues. A round looks at it for a while.
func (b build) idle(ctx context.Context, dir string) (*opened, error) {
	redis, err := startRedis(ctx, dir)
	if err != nil {
		return nil, err
	}
	s, err := b.connected(ctx, redis.url(), dir+"/0", queueOf(0), carrier{options: "{}"})
	if err != nil {
		redis.stop()
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := func() { cancel(); s.stop(); redis.stop() }
	for i := range idleReceivers {
		if err := s.call(ctx, http.MethodPut, "/v1/queues/"+queueOf(i), "{}"); err != nil {
			stop()
			return nil, err
		}
		go func() {
			for ctx.Err() == nil {
				_, _ = s.messages.Receive(
					ctx, &sidebusv1.ReceiveRequest{Source: "queues/" + queueOf(i), MaxWait: durationpb.New(longestWait)},
				)
			}
		}()
	}
	return &opened{
		round: func(ctx context.Context, _ int) (figures.Round, error) { return watchIdle(ctx, redis, s) },
		settings: map[string]string{
			"receivers": fmt.Sprint(idleReceivers, ", each on an empty queue"), "span": idleSpan.String(), "redis": redisSettings,
		},
		versions: b.versions(ctx), stop: stop,
	}, nil
}

func watchIdle(ctx context.Context, redis *redisServer, s *sidecar) (figures.Round, error) {
	scripts, used := redis.scripts(ctx), figures.CPUOf(s.pid)
	before, began := used(), time.Now()
	select {
	case <-time.After(idleSpan):
	case <-ctx.Done():
		return figures.Round{}, ctx.Err()
	}
	took := time.Since(began)
	resident, files := figures.ResidentMiB(s.pid)
	return figures.Round{Values: map[string]float64{
		"redis scripts/s": (redis.scripts(ctx) - scripts) / took.Seconds(),
		"% of a core":     float64(used()-before) / float64(took) * 100,
		"RSS MiB":         resident,
		"RSS files MiB":   files,
	}}, nil
}

// scripts returns how many scripts Redis has run. A sidecar calls hardly anything else, and what scripts call counts as
// commands too.
func (r *redisServer) scripts(ctx context.Context) (sum float64) {
	out, _ := exec.CommandContext(ctx, "redis-cli", "-s", r.socket, "info", "commandstats").Output()
	for line := range strings.Lines(string(out)) {
		name, rest, _ := strings.Cut(line, ":")
		var calls float64
		if strings.HasPrefix(name, "cmdstat_evalsha") || strings.HasPrefix(name, "cmdstat_fcall") {
			_, _ = fmt.Sscanf(rest, "calls=%f,", &calls)
		}
		sum += calls
	}
	return sum
}

// starts measures how long a sidecar takes from its start to its first answer.
func (b build) starts(ctx context.Context, dir string) (*opened, error) {
	redis, err := startRedis(ctx, dir)
	if err != nil {
		return nil, err
	}
	round := func(ctx context.Context, _ int) (figures.Round, error) {
		began := time.Now()
		s, err := b.start(ctx, redis.url(), dir)
		if err != nil {
			return figures.Round{}, err
		}
		took := time.Since(began)
		s.stop()
		return figures.Round{Values: map[string]float64{"first answer ms": float64(took.Microseconds()) / 1000}}, nil
	}
	return &opened{
		round: round, versions: b.versions(ctx), settings: map[string]string{"redis": redisSettings}, stop: redis.stop,
	}, nil
}
