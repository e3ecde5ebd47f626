package main

import (
	"fmt"

	"github.com/sidebus/sidebus/test/figures"
)

// checks are the targets as far as a benchmark of the history measures them.
var checks = []check{
	{"P1", "stream, rate compared with NATS JetStream", false, 0.75, "x", rate("sidebus-stream", "nats-jetstream")},
	{"P1", "stream, CPU of all processes compared with NATS", true, 1, "x", cpu("sidebus-stream", "nats-jetstream")},
	{"P1", "stream, rate compared with asynq", false, 7, "x", rate("sidebus-stream", "asynq")},
	{"P2", "three calls a message, rate compared with asynq", false, 1.2, "x", rate("sidebus-unary", "asynq")},
	{"P2", "two calls a message, rate compared with asynq", false, 1.6, "x", rate("sidebus-unary-2", "asynq")},
	{"P2", "two calls, rate compared with RabbitMQ quorum", false, 1, "x", rate("sidebus-unary-2", "rabbitmq-quorum")},
	{"P3", "Redis CPU in batches of 100, compared with bare streams", true, 0.6, "x", redisCPU("100")},
	{"P3", "Redis CPU in batches of 10, compared with bare streams", true, 1.1, "x", redisCPU("10")},
	{"P3", "Redis CPU in batches of 1, compared with bare streams", true, 2.2, "x", redisCPU("1")},
	{
		"P4", "1,000 sessions in strict order, rate compared with our stream", false, 0.5, "x",
		rate("sidebus-sessions", "sidebus-stream"),
	},
	{"P4", "1,000 sessions in strict order, rate compared with asynq", false, 4, "x", rate("sidebus-sessions", "asynq")},
	{"P5", "idle, send to delivery, p50", true, 0.8, "ms", named("latency", "delivery-p50-ms")},
	{"P5", "idle, send to delivery, p99", true, 3, "ms", named("latency", "delivery-p99-ms")},
	{"P5", "idle, from one session to the next, p99", true, 10, "ms", named("latency", "hand-over-p99-ms")},
	{"P6", "send at a backlog of 1,000,000, rate compared with 1,000", false, 0.9, "x", named("backlog", "send-ratio")},
	{
		"P6", "receive and complete at a backlog of 1,000,000, compared with 1,000", false, 0.9, "x",
		named("backlog", "receive+complete-ratio"),
	},
	{
		"P7", "Redis memory of a message above body and id, Redis defaults", true, 80, "bytes",
		named("memory", "node=4096 bytes/message"),
	},
	{"P7", "the same with stream-node-max-bytes 16384", true, 80, "bytes", named("memory", "node=16384 bytes/message")},
	{"P7", "left after all is completed, Redis defaults", true, 1, "%", named("memory", "node=4096 %left")},
	{"P8", "10 receivers wait: scripts in Redis", true, 2, "/s", named("idle", "redis scripts/s")},
	{"P8", "10 receivers wait: CPU of the sidecar", true, 1, "% of a core", named("idle", "% of a core")},
	{"P8", "10 receivers wait: resident memory of the sidecar", true, 30, "MiB", named("idle", "RSS MiB")},
	{"P9", "start to the first answer", true, 300, "ms", named("start", "first answer ms")},
	{
		"P11", "CPU a message with 2 sidecars on one Redis, compared with 1", true, 1.1, "x",
		cpu("sidebus-stream-2-sidecars", "sidebus-stream"),
	},
	{
		"P12", "publish through daprd, compared with pubsub.redis", false, 0.7, "x",
		ratioOf("dapr-sidebus-topic", "dapr-redis", figures.Value("publish/s")),
	},
	{"P12", "publish and deliver, compared with pubsub.redis", false, 0.75, "x", rate("dapr-sidebus-topic", "dapr-redis")},
	{
		"P12", "publish in batches of 100, compared with pubsub.redis", false, 1.5, "x",
		ratioOf("dapr-sidebus-topic-bulk", "dapr-redis-bulk", figures.Value("publish/s")),
	},
	{"P13", "copies to 10 subscriptions", false, 184_000, "/s", named("fan-out", "subscriptions=10 copies/s")},
	{"P13", "copies to 100 subscriptions", false, 156_000, "/s", named("fan-out", "subscriptions=100 copies/s")},
	{"P13", "Redis memory of a copy above one shared body, 10 subscriptions", true, 160, "bytes", copyBytes(10)},
	{"P13", "Redis memory of a copy above one shared body, 100 subscriptions", true, 160, "bytes", copyBytes(100)},
}

// redisCPU compares the processor time of Redis for a message with that of bare streams.
func redisCPU(batch string) measure {
	return share("store", "batch="+batch+" redis-us/msg-sidebus", "batch="+batch+" redis-us/msg-streams")
}

// copyBytes leaves out each copy's part of the body.
func copyBytes(subscriptions int) measure {
	return value("fan-out", func(r figures.Round) float64 {
		return r.Values[fmt.Sprintf("subscriptions=%d bytes/copy", subscriptions)] - 1024/float64(subscriptions)
	})
}

func targetsTable(h figures.History) string {
	rows := [][]string{{"", "What", "Target", "Measured: median (lowest to highest)", ""}}
	for _, c := range checks {
		sign := "≥"
		if c.isLimit {
			sign = "≤"
		}
		measured, verdict := "not measured", ""
		if s, is := c.measure(h); is {
			measured, verdict = spread(s)+" "+c.unit, "**missed**"
			if c.isReached(s) {
				verdict = "reached"
			}
		}
		rows = append(rows, []string{c.target, c.what, fmt.Sprintf("%s %s %s", sign, number(c.bound), c.unit), measured, verdict})
	}
	return table(rows)
}
