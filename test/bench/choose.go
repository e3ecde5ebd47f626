package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// groups are the names that -only knows besides those of workloads.
var groups = map[string]string{
	"sidebus": "sidebus-stream,sidebus-sessions,sidebus-unary,sidebus-unary-2,sidebus-calls,sidebus-calls-2,sidebus-stream-2-sidecars",
	"floors":  "floor-stream,floor-sessions,floor-unary,floor-unary-2,floor-calls,floor-calls-2",
	"cluster": "sidebus-cluster-1-1,sidebus-cluster-2-1,sidebus-cluster-4-1,sidebus-cluster-6-1,sidebus-cluster-1-2," +
		"sidebus-cluster-6-2,sidebus-cluster-1-4,sidebus-cluster-6-4",
	"amqp":    "sidebus-stream,sidebus-amqp,idle-amqp",
	"peers":   "nats-jetstream,rabbitmq-quorum,asynq,bullmq",
	"targets": "store,fan-out,latency,memory,backlog,idle,start",
	"dapr": "dapr-redis,dapr-sidebus-topic,dapr-sidebus-lanes,dapr-sidebus-streams,dapr-sidebus-queue," +
		"dapr-sidebus-sessions,dapr-sidebus-sessions-lanes,dapr-redis-bulk,dapr-sidebus-topic-bulk,dapr-floor,dapr-floor-bulk," +
		"dapr-redis-latency,dapr-sidebus-topic-latency," +
		"dapr-redis-1.14,dapr-sidebus-topic-1.14,dapr-sidebus-lanes-1.14,dapr-sidebus-streams-1.14",
}

// workloads returns all that a binary of Sidebus can be compared with and in. RabbitMQ is that of this system, or that
// of another one in a root.
func workloads(b build, root string) []workload {
	const plain, sessions = `{"maxSizeInMegabytes":"81920"}`, `{"maxSizeInMegabytes":"81920","requiresSession":true}`
	const streamed = "Publish, at most 1000 unanswered; Subscribe with 1000 credits; one message a request"
	const shared = ", over one stream"
	const ordered = "; strict order in 1000 sessions"
	const unary, unary2 = "64 callers: Send, Receive, Complete of one message",
		"64 callers: Send, CompleteAndReceive of one message"
	all := []workload{
		{name: "floor-stream", open: floor(streamed, stream(0), true)},
		{name: "floor-sessions", share: 2, open: floorSessions(streamed + ordered)},
		{name: "floor-unary", share: 5, open: floor(unary, calling(steps), true)},
		{name: "floor-unary-2", share: 5, open: floor(unary2, calling(turns), true)},
		{name: "floor-calls", share: 5, open: floor(unary+shared, calling(steps), false)},
		{name: "floor-calls-2", share: 5, open: floor(unary2+shared, calling(turns), false)},
		{name: "sidebus-stream", open: b.carries(carrier{streamed, plain, 1, stream(0), true})},
		{name: "sidebus-stream-2-sidecars", open: b.carries(carrier{streamed, plain, 2, stream(0), true})},
		{name: "sidebus-sessions", share: 2, open: b.carries(
			carrier{streamed + ordered, sessions, 1, stream(1000), true},
		)},
		{name: "sidebus-unary", share: 5, open: b.carries(carrier{unary, plain, 1, calling(steps), true})},
		{name: "sidebus-unary-2", share: 5, open: b.carries(carrier{unary2, plain, 1, calling(turns), true})},
		{name: "sidebus-calls", share: 5, open: b.carries(carrier{unary + shared, plain, 1, calling(steps), false})},
		{name: "sidebus-calls-2", share: 5, open: b.carries(carrier{unary2 + shared, plain, 1, calling(turns), false})},
		{name: "sidebus-amqp", open: b.amqp},
		{name: "idle-amqp", share: -1, open: b.idleAMQP},
		{name: "nats-jetstream", open: natsJetStream},
		{name: "rabbitmq-quorum", share: 4, open: rabbitQuorum(root)},
		{name: "asynq", share: 5, open: asynqTasks},
		{name: "bullmq", share: 5, open: bullMQ},
		{name: "store", share: -1, open: goBenchmark("redisstore", "Lifecycle")},
		{name: "fan-out", share: -1, open: goBenchmark("redisstore", "FanOut")},
		{name: "memory", share: -1, open: goBenchmark("redisstore", "Memory")},
		{name: "backlog", share: -1, open: goBenchmark("redisstore", "Backlog")},
		{name: "session-backlog", share: -1, open: goBenchmark("redisstore", "SessionBacklog")},
		{name: "latency", share: -1, open: goBenchmark("cmd/sidebus", "Latency")},
		{name: "idle", share: -1, open: b.idle},
		{name: "start", share: -1, open: b.starts},
	}
	for _, partitions := range []int{1, 2, 4, 6} {
		for _, sidecars := range []int{1, 2, 4} {
			all = append(all, workload{
				name: fmt.Sprintf("sidebus-cluster-%d-%d", partitions, sidecars), open: b.spreads(partitions, sidecars),
			})
		}
	}
	return append(all, daprWorkloads(b.binary)...)
}

// choose returns the workloads of a list of names and groups.
func choose(only string, socket bool) (chosen []workload, err error) {
	for group, members := range groups {
		only = strings.ReplaceAll(","+only+",", ","+group+",", ","+members+",")
	}
	known := map[string][]workload{} // by path
	for name := range strings.SplitSeq(strings.Trim(only, ","), ",") {
		kind, path, _ := strings.Cut(name, "=")
		if known[path] == nil {
			known[path] = workloads(build{binary: cmp.Or(path, repository+"/bin/sidebus"), socket: socket}, path)
		}
		at := slices.IndexFunc(known[path], func(w workload) bool { return w.name == kind })
		if at < 0 {
			return nil, fmt.Errorf("there is no workload %q", kind)
		}
		w := known[path][at]
		w.name = name
		chosen = append(chosen, w)
	}
	return chosen, nil
}
