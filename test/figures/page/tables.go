package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/sidebus/sidebus/test/figures"
)

const notMeasured = "Not measured yet."

// labelled is a workload of a table, and what people call it.
type labelled struct{ workload, label string }

// peers are the workloads of one table, in its order.
var peers = []labelled{
	{"sidebus-stream", "Sidebus, stream"},
	{"sidebus-sessions", "Sidebus, 1,000 sessions"},
	{"sidebus-calls-2", "Sidebus, two calls over one stream"},
	{"sidebus-calls", "Sidebus, three calls over one stream"},
	{"sidebus-unary-2", "Sidebus, two calls"},
	{"sidebus-unary", "Sidebus, three calls"},
	{"nats-jetstream", "NATS JetStream"},
	{"rabbitmq-quorum", "RabbitMQ quorum queue"},
	{"rabbitmq-quorum-4.0.5", "RabbitMQ 4.0.5 quorum queue"},
	{"asynq", "asynq"},
	{"bullmq", "BullMQ"},
	{"floor-stream", "gRPC alone, stream"},
	{"floor-sessions", "gRPC and bare commands, 1,000 sessions"},
	{"floor-calls-2", "gRPC alone, two calls over one stream"},
	{"floor-calls", "gRPC alone, three calls over one stream"},
	{"floor-unary-2", "gRPC alone, two calls"},
	{"floor-unary", "gRPC alone, three calls"},
}

// peersRun is the newest run that has Sidebus and its peers.
func peersRun(h figures.History) map[string]figures.Result {
	return h.Newest("sidebus-stream", "nats-jetstream", "asynq")
}

func peersTable(h figures.History) string {
	run := peersRun(h)
	if run == nil {
		return notMeasured
	}
	rows := [][]string{{"", "messages/s", "to NATS", "to asynq", "CPU us a message", "client", "sidecar or server", "Redis"}}
	for _, p := range peers {
		r, is := run[p.workload]
		if !is {
			continue
		}
		process := func(names ...string) string {
			for _, name := range names {
				if slices.Contains(r.Processes(), name) {
					return number(r.Of(figures.CPU(name)).Median)
				}
			}
			return ""
		}
		rows = append(rows, []string{
			p.label, spread(r.Of(figures.Rate)),
			number(r.Ratio(run["nats-jetstream"], figures.Rate).Median),
			number(r.Ratio(run["asynq"], figures.Rate).Median),
			spread(r.Of(figures.TotalCPU)), process("client"), process("sidecar", "server"), process("redis"),
		})
	}
	return table(rows)
}

func storeTable(h figures.History) string {
	run := h.Newest("store")
	if run == nil {
		return notMeasured
	}
	rows := [][]string{{"Batch", "", "send/s", "receive/s", "complete/s", "all three/s", "Redis CPU us a message"}}
	for _, batch := range []string{"1", "10", "100"} {
		for _, who := range []struct{ name, label string }{{"streams", "bare streams"}, {"sidebus", "Sidebus"}} {
			row := []string{batch, who.label}
			for _, step := range []string{"send", "receive", "complete", "lifecycle"} {
				row = append(row, number(run["store"].Of(figures.Value("batch="+batch+" "+step+"-"+who.name+"/s")).Median))
			}
			us := run["store"].Of(figures.Value("batch=" + batch + " redis-us/msg-" + who.name))
			rows = append(rows, append(row, spread(us)))
		}
	}
	return table(rows)
}

var daprLabels = []labelled{
	{"dapr-sidebus-topic", "Sidebus, topic"},
	{"dapr-sidebus-lanes", "Sidebus, topic, 10 streams by name"},
	{"dapr-sidebus-streams", "Sidebus, topic, 10 streaming subscriptions"},
	{"dapr-sidebus-queue", "Sidebus, queue"},
	{"dapr-sidebus-sessions", "Sidebus, 100 sessions"},
	{"dapr-sidebus-sessions-lanes", "Sidebus, 100 sessions, 10 streams by name"},
	{"dapr-redis", "pubsub.redis"},
	{"dapr-sidebus-topic-bulk", "Sidebus, topic, batches of 100"},
	{"dapr-redis-bulk", "pubsub.redis, batches of 100"},
	{"dapr-floor", "a component that stores nothing"},
	{"dapr-floor-bulk", "a component that stores nothing, batches of 100"},
	{"dapr-sidebus-topic-1.14", "Sidebus, topic, daprd 1.14"},
	{"dapr-sidebus-lanes-1.14", "Sidebus, topic, 10 streams by name, daprd 1.14"},
	{"dapr-sidebus-streams-1.14", "Sidebus, topic, 10 streaming subscriptions, daprd 1.14"},
	{"dapr-redis-1.14", "pubsub.redis, daprd 1.14"},
}

// daprRun is the newest run that has both components, and that with an older daprd, which has other names.
func daprRun(h figures.History) map[string]figures.Result {
	run := h.Newest("dapr-sidebus-topic", "dapr-redis")
	if run != nil {
		maps.Copy(run, h.Newest("dapr-sidebus-topic-1.14", "dapr-redis-1.14"))
	}
	return run
}

func daprTable(h figures.History) string {
	run := daprRun(h)
	if run == nil {
		return notMeasured
	}
	rows := [][]string{{
		"", "publish/s", "publish and deliver/s", "CPU us a message", "client and app", "sidecar", "daprd", "Redis",
		"left in Redis, bytes a message",
	}}
	for _, d := range daprLabels {
		r, is := run[d.workload]
		if !is {
			continue
		}
		row := []string{d.label, spread(r.Of(figures.Value("publish/s"))), spread(r.Of(figures.Rate)), number(r.Of(figures.TotalCPU).Median)}
		for _, process := range []string{"client", "sidecar", "daprd", "redis"} {
			row = append(row, number(r.Of(figures.CPU(process)).Median))
		}
		rows = append(rows, append(row, number(r.Of(figures.Value("left bytes/message")).Median)))
	}
	text := table(rows)
	for _, d := range []labelled{
		{"dapr-sidebus-topic-latency", "Sidebus, topic"}, {"dapr-redis-latency", "pubsub.redis"},
	} {
		if r, is := run[d.workload]; is {
			text += fmt.Sprintf(
				"\nA single message from publish to the app, %s: p50 %s ms, p99 %s ms.\n", d.label,
				spread(r.Of(figures.Value("p50 ms"))), spread(r.Of(figures.Value("p99 ms"))),
			)
		}
	}
	return text
}

func spread(s figures.Spread) string {
	return fmt.Sprintf("%s (%s to %s)", number(s.Median), number(s.Low), number(s.High))
}

// apart writes thousands apart.
func apart(n int) string {
	if -1000 < n && n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%s,%03d", apart(n/1000), max(n, -n)%1000)
}

// number writes thousands apart, and three digits of what is smaller.
func number(n float64) string {
	switch {
	case math.Abs(n) >= 1000:
		return apart(int(math.Round(n)))
	case math.Abs(n) >= 100:
		return fmt.Sprintf("%.0f", n)
	case math.Abs(n) >= 10:
		return fmt.Sprintf("%.1f", n)
	default:
		return fmt.Sprintf("%.2f", n)
	}
}
