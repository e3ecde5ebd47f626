package main

import (
	"fmt"

	"github.com/sidebus/sidebus/test/figures"
)

// targets are those of the history, as far as a benchmark measures them.
var targets = []target{
	{"P1", []check{
		{
			"stream, rate compared with NATS JetStream", atLeast(0.75, "x"), rate("sidebus-stream", "nats-jetstream"),
			rate("floor-stream", "nats-jetstream"),
		},
		{
			"stream, CPU of all processes compared with NATS", atMost(1, "x"), cpu("sidebus-stream", "nats-jetstream"),
			cpu("floor-stream", "nats-jetstream"),
		},
		{
			"stream, rate compared with asynq", atLeast(7, "x"), rate("sidebus-stream", "asynq"),
			rate("floor-stream", "asynq"),
		},
	}, "each message passes through the sidecar and Redis three times, while NATS writes it to its own log once; gRPC " +
		"alone leaves what the floor shows, see [decision 0039](../decisions/0039-what-a-call-costs.md)"},
	{"P2", []check{
		{
			"three calls a message over one stream, rate compared with asynq", atLeast(1.2, "x"),
			rate("sidebus-calls", "asynq"), rate("floor-calls", "asynq"),
		},
		{
			"two calls a message over one stream, rate compared with asynq", atLeast(1.6, "x"),
			rate("sidebus-calls-2", "asynq"), rate("floor-calls-2", "asynq"),
		},
		{
			"two calls over one stream, rate compared with RabbitMQ quorum", atLeast(1, "x"),
			rate("sidebus-calls-2", "rabbitmq-quorum"), rate("floor-calls-2", "rabbitmq-quorum"),
		},
		{
			"three calls a message, rate compared with asynq", atLeast(1.2, "x"), rate("sidebus-unary", "asynq"),
			rate("floor-unary", "asynq"),
		},
		{
			"two calls a message, rate compared with asynq", atLeast(1.6, "x"), rate("sidebus-unary-2", "asynq"),
			rate("floor-unary-2", "asynq"),
		},
		{
			"two calls, rate compared with RabbitMQ quorum", atLeast(1, "x"), rate("sidebus-unary-2", "rabbitmq-quorum"),
			rate("floor-unary-2", "rabbitmq-quorum"),
		},
	}, "as RPCs of their own, calls leave about as much for Redis and the sidecar as bare streams take of Redis: see " +
		"[decision 0039](../decisions/0039-what-a-call-costs.md); over one stream, gRPC is a smaller part: see [decision " +
		"0045](../decisions/0045-calls-over-one-stream.md)"},
	{"P3", []check{
		{"Redis CPU in batches of 100, compared with bare streams", atMost(0.6, "x"), redisCPU("100"), nil},
		{"Redis CPU in batches of 10, compared with bare streams", atMost(1.1, "x"), redisCPU("10"), nil},
		{"Redis CPU in batches of 1, compared with bare streams", atMost(2.2, "x"), redisCPU("1"), nil},
	}, "scripts check limits, tokens and the state of the queue, which bare streams do not have"},
	{"P4", []check{
		{
			"1,000 sessions in strict order, rate compared with our stream", atLeast(0.5, "x"),
			rate("sidebus-sessions", "sidebus-stream"), rate("floor-sessions", "sidebus-stream"),
		},
		{
			"1,000 sessions in strict order, rate compared with asynq", atLeast(4, "x"), rate("sidebus-sessions", "asynq"),
			rate("floor-sessions", "asynq"),
		},
	}, "a message is settled before the next one of its session is delivered; the floor is a server that runs bare " +
		"commands for this and checks nothing, see [decision 0033](../decisions/0033-a-record-for-each-session.md)"},
	{"P5", []check{
		{"idle, send to delivery, p50", atMost(0.8, "ms"), named("latency", "delivery-p50-ms"), nil},
		{"idle, send to delivery, p99", atMost(3, "ms"), named("latency", "delivery-p99-ms"), nil},
		{"idle, from one session to the next, p99", atMost(10, "ms"), named("latency", "hand-over-p99-ms"), nil},
	}, "not examined"},
	{"P6", []check{
		{
			"send at a backlog of 1,000,000, compared with 1,000", atLeast(0.9, "x"), named("backlog", "send-ratio"),
			named("backlog", "bare-send-ratio"),
		},
		{
			"receive and complete at a backlog of 1,000,000, compared with 1,000", atLeast(0.9, "x"),
			named("backlog", "receive+complete-ratio"), named("backlog", "bare-receive+complete-ratio"),
		},
	}, "no step takes longer with a backlog, but its messages are in memory that no cache has; the floor is a bare stream " +
		"with a consumer group"},
	{"P7", []check{
		{
			"Redis memory of a message above body and id, sent in batches of 100", atMost(80, "bytes"),
			named("memory", "node=4096/batch=100 bytes/message"), named("memory", "node=4096/batch=100 bare-bytes/message"),
		},
		{
			"the same with `stream-node-max-bytes` 16384", atMost(80, "bytes"),
			named("memory", "node=16384/batch=100 bytes/message"), named("memory", "node=16384/batch=100 bare-bytes/message"),
		},
		{
			"the same, sent one by one", atMost(80, "bytes"), named("memory", "node=4096/batch=1 bytes/message"),
			named("memory", "node=4096/batch=1 bare-bytes/message"),
		},
		{
			"the same, sent one by one, with `stream-node-max-bytes` 16384", atMost(80, "bytes"),
			named("memory", "node=16384/batch=1 bytes/message"), named("memory", "node=16384/batch=1 bare-bytes/message"),
		},
		{"left after all is completed", atMost(1, "%"), named("memory", "node=4096/batch=100 %left"), nil},
	}, "the floor is a bare stream with an entry for each message, of which only three fit into a node of 4096 bytes; " +
		"`--store embedded` sets 16384"},
	{"P8", []check{
		{"10 receivers wait: scripts in Redis", atMost(2, "/s"), named("idle", "redis scripts/s"), nil},
		{"10 receivers wait: CPU of the sidecar", atMost(1, "% of a core"), named("idle", "% of a core"), nil},
		{
			"10 receivers wait: resident memory of the sidecar", atMost(30, "MiB"), named("idle", "RSS MiB"),
			named("idle", "RSS files MiB"),
		},
	}, "the floor is the part of the memory that are pages of the program's file, which sidecars of a host share; an idle " +
		"sidecar unmaps what it does not use, see [decision 0039](../decisions/0039-what-a-call-costs.md)"},
	{"P9", []check{
		{"start to the first answer", atMost(300, "ms"), named("start", "first answer ms"), nil},
	}, "not examined"},
	{"P11", []check{
		{
			"CPU a message with 2 sidecars on one Redis, compared with 1", atMost(1.1, "x"),
			cpu("sidebus-stream-2-sidecars", "sidebus-stream"), nil,
		},
		{
			"a cluster of three nodes, CPU a message with 6 partitions, compared with 1", atMost(1.1, "x"),
			cpu("sidebus-cluster-6-1", "sidebus-cluster-1-1"), nil,
		},
		{
			"the same queue with 6 partitions, CPU a message with 4 sidecars, compared with 1", atMost(1.1, "x"),
			cpu("sidebus-cluster-6-4", "sidebus-cluster-6-1"), nil,
		},
		{
			"6 partitions on three nodes, share of the busiest node", atMost(0.4, ""),
			named("sidebus-cluster-6-4", busiestNode), nil,
		},
	}, "calls to several partitions run side by side, and so do those of several sidecars, so each script has fewer messages"},
	{"P12", []check{
		{
			"publish through daprd, compared with pubsub.redis", atLeast(0.7, "x"),
			publishRate("dapr-sidebus-topic", "dapr-redis"), publishRate("dapr-floor", "dapr-redis"),
		},
		{
			"publish and deliver with 10 streams, compared with pubsub.redis", atLeast(0.75, "x"),
			rate("dapr-sidebus-lanes", "dapr-redis"), nil,
		},
		{
			"publish in batches of 100, compared with pubsub.redis", atLeast(1.5, "x"),
			publishRate("dapr-sidebus-topic-bulk", "dapr-redis-bulk"), publishRate("dapr-floor-bulk", "dapr-redis-bulk"),
		},
	}, "pubsub.redis runs inside daprd; with a component of another process, each message takes two more calls; " +
		"the floor is such a component that answers at once and stores nothing"},
	{"P13", []check{
		{"copies to 10 subscriptions", atLeast(184_000, "/s"), named("fan-out", "subscriptions=10 copies/s"), nil},
		{"copies to 100 subscriptions", atLeast(156_000, "/s"), named("fan-out", "subscriptions=100 copies/s"), nil},
		{
			"Redis memory of a copy above one shared body, 10 subscriptions", atMost(160, "bytes"), copyBytes(10), nil,
		},
		{
			"Redis memory of a copy above one shared body, 100 subscriptions", atMost(160, "bytes"), copyBytes(100), nil,
		},
	}, "the rates are absolute and depend on the machine; versions before [decision " +
		"0037](../decisions/0037-copies-share-a-body.md) stored a body with each copy"},
}

// busiestNode is a value of the workloads on a cluster.
const busiestNode = "share of the busiest node"

// publishRate compares only how fast publishers are answered.
func publishRate(workload, other string) measure {
	return ratioOf(workload, other, figures.Value("publish/s"))
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

// targetsTable has all checks, and below it why targets are missed.
func targetsTable(h figures.History) string {
	rows := [][]string{{"", "What", "Target", "Measured: median (lowest to highest)", "Floor", ""}}
	why := [][]string{{"", "Why it is missed"}}
	for _, t := range targets {
		isMissed := false
		for _, c := range t.checks {
			row, verdict := c.row(h)
			rows = append(rows, append([]string{t.id}, row...))
			isMissed = isMissed || verdict == missed
		}
		if isMissed {
			why = append(why, []string{t.id, t.why})
		}
	}
	if len(why) == 1 {
		return table(rows)
	}
	return table(rows) + "\n" + table(why)
}

const missed = "**missed**"

func (c check) row(h figures.History) (cells []string, verdict string) {
	measured, floor := "not measured", ""
	if s, is := c.measure(h); is {
		measured, verdict = spread(s)+" "+c.bound.unit, missed
		if c.bound.isReached(s) {
			verdict = "reached"
		}
	}
	if c.floor != nil {
		if s, is := c.floor(h); is {
			floor = number(s.Median)
		}
	}
	target := fmt.Sprintf("%s %s %s", c.bound.sign, number(c.bound.value), c.bound.unit)
	return []string{c.what, target, measured, floor, verdict}, verdict
}
