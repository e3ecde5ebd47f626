package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/test/figures"
)

func TestReadBenchmark(t *testing.T) {
	t.Parallel()
	const output = `goos: linux
pkg: github.com/sidebus/sidebus/redisstore
BenchmarkLifecycle/batch=1-2         	       1	         0 ns/op	        24.50 redis-us/msg-sidebus	     60388 send-sidebus/s
BenchmarkLifecycle/batch=100-2       	       1	         0 ns/op	         9.1 redis-us/msg-sidebus
BenchmarkMemory/node=4096            	       1	         0 ns/op	        -0.5 %left
BenchmarkLatency-2                   	       1	         0 ns/op	         0.643 delivery-p50-ms
PASS
`
	want := map[string]float64{
		"batch=1 redis-us/msg-sidebus": 24.5, "batch=1 send-sidebus/s": 60388, "batch=100 redis-us/msg-sidebus": 9.1,
		"node=4096 %left": -0.5, "delivery-p50-ms": 0.643,
	}
	if got := readBenchmark(output); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func namesOf(chosen []workload) (names []string) {
	for _, w := range chosen {
		names = append(names, w.name)
	}
	return names
}

func TestChoose(t *testing.T) {
	t.Parallel()
	chosen, err := choose("peers,sidebus-unary=/tmp/before,sidebus-unary", false)
	want := strings.Split(groups["peers"]+",sidebus-unary=/tmp/before,sidebus-unary", ",")
	if got := namesOf(chosen); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("chosen %v, %v, want %v", got, err, want)
	}
	for group, members := range groups {
		if chosen, err := choose(group, false); err != nil || strings.Join(namesOf(chosen), ",") != members {
			t.Errorf("group %s: %v, %v", group, namesOf(chosen), err)
		}
	}
	if _, err := choose("sidebus-stream,kafka", false); err == nil || !strings.Contains(err.Error(), `"kafka"`) {
		t.Errorf("an unknown workload: %v", err)
	}
}

func TestPart(t *testing.T) {
	t.Parallel()
	for share, want := range map[int]int{-1: 100, 0: 100, 5: 20, 1000: 1} {
		if got := (workload{share: share}).part(100); got != want {
			t.Errorf("share %d of 100: %d, want %d", share, got, want)
		}
	}
}

func TestCallersShareTheMessages(t *testing.T) {
	t.Parallel()
	var done atomic.Int64
	err := fromCallers(1000, func(more func() bool) error {
		for more() {
			done.Add(1)
		}
		return nil
	})
	if err != nil || done.Load() != 1000 {
		t.Errorf("%d messages, %v", done.Load(), err)
	}
}

func TestTheFirstErrorEndsAllCallers(t *testing.T) {
	t.Parallel()
	failure := errors.New("refused")
	var failed atomic.Bool
	err := fromCallers(1_000_000_000, func(more func() bool) error {
		for more() {
			if failed.CompareAndSwap(false, true) {
				return failure
			}
		}
		return nil
	})
	if !errors.Is(err, failure) {
		t.Errorf("got %v", err)
	}
}

func TestCarryingMeasuresEachProcessForAMessage(t *testing.T) {
	t.Parallel()
	used := time.Duration(0)
	round := carrying(
		processes{"server": func() time.Duration { return used }},
		func(_ context.Context, messages int) error {
			used += time.Duration(messages) * 5 * time.Microsecond
			return nil
		},
	)
	r, err := round(t.Context(), 200)
	if err != nil || r.CPU["server"] != 5 || r.Rate <= 0 {
		t.Errorf("got %v, %v", r, err)
	}
	failure := errors.New("refused")
	round = carrying(processes{}, func(context.Context, int) error { return failure })
	if _, err := round(t.Context(), 1); !errors.Is(err, failure) {
		t.Errorf("got %v", err)
	}
}

func TestPrintHasMedianAndSpread(t *testing.T) {
	t.Parallel()
	rounds := func(rates ...float64) (all []figures.Round) {
		for _, rate := range rates {
			all = append(all, figures.Round{Rate: rate, CPU: map[string]float64{"client": 10, "redis": 2.5}})
		}
		return all
	}
	var b strings.Builder
	printResults(&b, []figures.Result{
		{Workload: "fast", Rounds: rounds(30000, 10000, 20000)}, {Workload: "slow", Rounds: rounds(3000, 2000, 4000)},
	})
	for _, want := range []string{
		"messages/s 20000 (10000 to 30000)", "CPU us a message 12.5 (12.5 to 12.5), client 10 (10 to 10), redis 2.5 (2.5 to 2.5)",
		"rate 5.00 x, CPU 1.000 x slow",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// The client of the streams and of the calls is that of the workloads, so it works without a sidecar.
func TestFloorCarriesMessages(t *testing.T) {
	t.Parallel()
	client := clientOf(t, &floorServer{sent: make(chan struct{}, window)})
	for name, carry := range map[string]work{
		"stream": stream(0), "sessions": stream(10), "three calls": calling(steps), "two calls": calling(turns),
	} {
		if err := carry(t.Context(), client, queueOf(0), 500); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBareSessionsCarryMessages(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "sb-") //nolint:usetesting // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	store, err := startRedis(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer store.stop()
	server := newBareServer(store.socket)
	client := clientOf(t, server)
	for range 2 {
		if err := stream(10)(t.Context(), client, queueOf(0), 500); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := server.redis.DBSize(t.Context()).Result(); n != 0 || err != nil {
		t.Errorf("%d keys are left, %v", n, err)
	}
}

// clientOf returns a client of a server that serves until the test ends with its process.
func clientOf(t *testing.T, api sidebusv1.MessagesServer) sidebusv1.MessagesClient {
	t.Helper()
	in, out := io.Pipe()
	go func() { _ = out.CloseWithError(serve(api, out)) }()
	address, err := bufio.NewReader(in).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient(strings.TrimSpace(address), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return sidebusv1.NewMessagesClient(conn)
}
