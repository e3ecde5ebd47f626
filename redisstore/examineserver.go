package redisstore

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/semantics"
)

// serverFacts are what a server says of itself, and what was measured at it.
type serverFacts struct {
	where       string
	info        map[string]string
	config      map[string]string // empty where CONFIG is forbidden
	clockOffset time.Duration     // of its clock to ours
	roundTrips  []time.Duration   // sorted

	allowEviction, isCluster bool
}

// examinedSettings are what is read with CONFIG GET.
var examinedSettings = []string{
	"appendfsync", "save", "min-replicas-to-write", "min-replicas-max-lag", "timeout", "stream-node-max-bytes",
	"stop-writes-on-bgsave-error", "cluster-require-full-coverage",
}

// measuredTrips is how many round trips are measured at a server.
const measuredTrips = 50

func readServer(ctx context.Context, server *redis.Client) (serverFacts, error) {
	f := serverFacts{config: map[string]string{}}
	text, err := server.Do(ctx, "INFO", "everything").Text()
	if err != nil {
		return f, err
	}
	f.info = parseInfo(text)
	for _, name := range examinedSettings { // one by one: older servers take only one
		values, err := server.Do(ctx, "CONFIG", "GET", name).StringSlice()
		if err == nil && len(values) == 2 {
			f.config[name] = values[1]
		}
	}
	if f.isNode() { // what it says of its cluster
		if text, err := server.ClusterInfo(ctx).Result(); err == nil {
			for name, value := range parseInfo(text) {
				f.info[name] = value
			}
		}
	}
	for range measuredTrips {
		before := time.Now()
		at, err := server.Time(ctx).Result()
		if err != nil {
			return f, err
		}
		took := time.Since(before)
		if len(f.roundTrips) == 0 || took < slices.Min(f.roundTrips) { // the shortest says most about the clock
			f.clockOffset = at.Sub(before.Add(took / 2))
		}
		f.roundTrips = append(f.roundTrips, took)
	}
	slices.Sort(f.roundTrips)
	return f, nil
}

func (f *serverFacts) number(name string) float64 {
	n, _ := strconv.ParseFloat(f.info[name], 64)
	return n
}

func (f *serverFacts) isNode() bool { return f.info["cluster_enabled"] == "1" }

// findings returns one finding for each subject.
func (f *serverFacts) findings() []semantics.Finding {
	var all []semantics.Finding
	for _, examine := range []struct {
		subject string
		of      func() (semantics.Severity, string, string)
	}{
		{"version", f.examineVersion},
		{"eviction", f.examineEviction},
		{"memory", f.examineMemory},
		{"disk", f.examineDisk},
		{"replicas", f.examineReplicas},
		{"cluster", f.examineCluster},
		{"connections", f.examineConnections},
		{"latency", f.examineLatency},
		{"clock", f.examineClock},
		{"streams", f.examineStreams},
	} {
		if severity, text, advice := examine.of(); text != "" {
			all = append(all, semantics.Finding{
				Severity: severity, Where: f.where, Subject: examine.subject, Text: text, Advice: advice,
			})
		}
	}
	return all
}

func (f *serverFacts) examineVersion() (semantics.Severity, string, string) {
	is := product(f.info) + " " + version(f.info)
	major, _, _ := strings.Cut(f.info["redis_version"], ".")
	if n, err := strconv.Atoi(major); err != nil || n < 7 {
		return semantics.Problem, is + " is too old", "use Redis 7.0 or later, or Valkey"
	}
	if f.info["role"] == "slave" {
		return semantics.Problem, is + " is a replica and accepts no writes", "point --store at the primary"
	}
	return semantics.Fine, is, ""
}

func (f *serverFacts) examineEviction() (semantics.Severity, string, string) {
	const advice = "CONFIG SET maxmemory-policy noeviction, and the same in its configuration file"
	policy := f.info["maxmemory_policy"]
	switch evicted := f.number("evicted_keys"); {
	case policy != "noeviction" && f.allowEviction:
		return semantics.Warning, "maxmemory-policy is " + policy + ": Redis deletes messages when memory runs out, as " +
			"--redis-allow-eviction permits", advice
	case policy != "noeviction":
		return semantics.Problem, "maxmemory-policy is " + policy + ": Redis deletes messages when memory runs out, and " +
			"sidecars do not start", advice
	case evicted > 0:
		return semantics.Problem, fmt.Sprintf("Redis has evicted %.0f keys since it started: messages may be missing", evicted),
			"check the structures below; more memory, and nothing else in this Redis"
	default:
		return semantics.Fine, "maxmemory-policy is noeviction", ""
	}
}

// Parts of maxmemory, and of maxclients, that are used.
const (
	fullSoon = 0.75
	almost   = 0.9
)

func (f *serverFacts) examineMemory() (semantics.Severity, string, string) {
	used, most, machine := f.number("used_memory"), f.number("maxmemory"), f.number("total_system_memory")
	size := func(bytes float64) string { return fmt.Sprintf("%.0f MiB", bytes/(1<<20)) }
	switch {
	case most == 0:
		return semantics.Warning, "maxmemory is not set, " + size(used) + " are used: if Redis grows beyond the memory of its " +
				"host, the system ends it",
			"set maxmemory to three quarters of the memory of the host or container; sends are then refused in time"
	case used > almost*most:
		return semantics.Problem, fmt.Sprintf("%s of %s are used (%.0f %%): when it is full, sends fail with STORE_UNAVAILABLE",
				size(used), size(most), 100*used/most),
			`more memory, or fewer messages: "sidebus top" shows the fullest queues; limits for entities keep one from filling all`
	case used > fullSoon*most:
		return semantics.Warning, fmt.Sprintf("%s of %s are used (%.0f %%)", size(used), size(most), 100*used/most),
			`plan for more memory; "sidebus top" shows the fullest queues`
	case machine > 0 && most > machine:
		return semantics.Warning, "maxmemory is " + size(most) + ", more than the host has: " + size(machine),
			"set maxmemory to three quarters of the memory of the host or container"
	case f.number("mem_fragmentation_ratio") > 1.5 && used > 256<<20:
		return semantics.Warning, fmt.Sprintf("Redis takes %.1f times the memory that it uses (%s)",
				f.number("mem_fragmentation_ratio"), size(used)),
			"CONFIG SET activedefrag yes, if this Redis was built with jemalloc"
	default:
		return semantics.Fine, fmt.Sprintf("%s of %s are used", size(used), size(most)), ""
	}
}

func (f *serverFacts) examineDisk() (semantics.Severity, string, string) {
	const everysec = "CONFIG SET appendonly yes, and appendfsync everysec or always"
	snapshots := "the last snapshot failed"
	if f.config["stop-writes-on-bgsave-error"] == "yes" && f.config["save"] != "" {
		snapshots += ": Redis refuses all writes until one succeeds"
	}
	switch fsync := f.config["appendfsync"]; {
	case f.info["loading"] == "1":
		return semantics.Problem, "Redis is loading its data", "wait; INFO persistence says how far it is"
	case f.info["aof_enabled"] == "1" && f.info["aof_last_write_status"] != "ok":
		return semantics.Problem, "the last write to the append-only file failed: messages are not safe on disk",
			"free space on its disk; the log of Redis has the error"
	case f.info["rdb_last_bgsave_status"] == "err":
		return semantics.Problem, snapshots, "free space on its disk and memory for a fork; the log of Redis has the error"
	case f.info["aof_enabled"] == "1" && f.info["aof_last_bgrewrite_status"] == "err":
		return semantics.Warning, "the last rewrite of the append-only file failed: the file grows",
			"free space on its disk and memory for a fork; the log of Redis has the error"
	case f.info["aof_enabled"] != "1" && f.config["save"] == "" && f.config["appendfsync"] != "":
		return semantics.Warning, "neither append-only file nor snapshots: a restart of Redis loses every message", everysec
	case f.info["aof_enabled"] != "1":
		return semantics.Warning, "the append-only file is off: a restart of Redis loses all since the last snapshot", everysec
	case fsync == "always":
		return semantics.Fine, "append-only file, appendfsync always", ""
	case fsync == "everysec":
		return semantics.Fine, "append-only file, appendfsync everysec: a crash of the host loses up to about a second",
			"docs/guarantees.md says what that means; appendfsync always loses nothing and is slower"
	case fsync == "no":
		return semantics.Warning, "appendfsync is no: a crash of the host loses what the system had not written, often 30 seconds",
			"CONFIG SET appendfsync everysec"
	default:
		return semantics.Warning, "append-only file; appendfsync cannot be read, so the loss of a crash of the host is unknown",
			"permit CONFIG GET to the user, or look into the configuration of Redis"
	}
}

// mostLag is how many seconds a replica may be behind.
const mostLag = 10

func (f *serverFacts) examineReplicas() (semantics.Severity, string, string) {
	replicas, good, behind := int(f.number("connected_slaves")), 0, ""
	for i := range replicas { // slave0:ip=127.0.0.1,port=6380,state=online,offset=1,lag=0
		var state, address string
		lag := 0
		for part := range strings.SplitSeq(f.info["slave"+strconv.Itoa(i)], ",") {
			switch name, value, _ := strings.Cut(part, "="); name {
			case "ip":
				address = value
			case "port":
				address += ":" + value
			case "state":
				state = value
			case "lag":
				lag, _ = strconv.Atoi(value)
			}
		}
		if state == "online" && lag <= mostLag {
			good++
		} else {
			behind = fmt.Sprintf("replica %s is %s and %d s behind", address, state, lag)
		}
	}
	least, _ := strconv.Atoi(f.config["min-replicas-to-write"])
	switch {
	case least > good:
		return semantics.Problem, fmt.Sprintf("min-replicas-to-write is %d, and %d replicas follow: Redis refuses all writes", least, good),
			"bring the replicas back"
	case replicas == 0:
		return semantics.Warning, "no replica: if the host is lost with its disk, so are all messages",
			"docs/stores.md shows how to run Redis with Sentinels or as a cluster"
	case behind != "":
		return semantics.Warning, behind + ": a failover to it loses what it does not have",
			"look at its log and at the network; --durability replica waits for replicas before it answers"
	case f.config["min-replicas-to-write"] == "0":
		return semantics.Warning, fmt.Sprintf("%d replicas follow, and min-replicas-to-write is 0: a primary that is cut off "+
			"accepts messages that are lost at the failover", good), "CONFIG SET min-replicas-to-write 1"
	default:
		return semantics.Fine, fmt.Sprintf("%d replicas follow, none more than %d s behind", good, mostLag), ""
	}
}

func (f *serverFacts) examineCluster() (semantics.Severity, string, string) {
	switch {
	case f.isNode() && !f.isCluster:
		return semantics.Problem, "this is a node of a cluster, and --store names it as one Redis",
			"name the cluster as redis+cluster://host:port,host:port"
	case !f.isNode() && f.isCluster:
		return semantics.Problem, "--store names a cluster, and this is one Redis", "name it as redis://host:port"
	case !f.isNode():
		return "", "", ""
	case f.info["cluster_state"] != "ok":
		return semantics.Problem, "cluster_state is " + f.info["cluster_state"] + ": some slots have no server",
			"CLUSTER NODES shows which primaries are down"
	case f.number("cluster_slots_pfail")+f.number("cluster_slots_fail") > 0:
		return semantics.Problem, "a primary does not answer the others", "CLUSTER NODES shows which"
	case f.info["master_replid"] == "":
		return semantics.Warning, "INFO has no master_replid: after a failover that forgot a change of an entity with " +
			"partitions, sidecars that used it before may go on as before", "start all sidecars again after a failover"
	case f.config["cluster-require-full-coverage"] == "yes":
		return semantics.Warning, "cluster-require-full-coverage is yes: one lost primary stops all entities, not only its own",
			"CONFIG SET cluster-require-full-coverage no, on every node"
	default:
		return semantics.Fine, "all slots are served", ""
	}
}

func (f *serverFacts) examineConnections() (semantics.Severity, string, string) {
	clients, most := f.number("connected_clients"), f.number("maxclients")
	text := fmt.Sprintf("%.0f of %.0f", clients, most)
	switch refused := f.number("rejected_connections"); {
	case most > 0 && clients > fullSoon*most:
		return semantics.Warning, text + " connections are used",
			"raise maxclients; each sidecar uses up to --redis-pool-size connections and one to wait"
	case refused > 0:
		return semantics.Warning, fmt.Sprintf("%s; Redis refused %.0f connections since it started", text, refused),
			"raise maxclients, and the limit of open files of the Redis process"
	case f.config["timeout"] != "" && f.config["timeout"] != "0":
		return semantics.Warning, "timeout is " + f.config["timeout"] + " s: Redis cuts idle connections, and sidecars connect again and again",
			"CONFIG SET timeout 0"
	default:
		return semantics.Fine, text, ""
	}
}

const (
	slowTrip = 5 * time.Millisecond
	slowFork = 500_000 // microseconds
)

func (f *serverFacts) examineLatency() (semantics.Severity, string, string) {
	median, longest := f.roundTrips[len(f.roundTrips)/2], f.roundTrips[len(f.roundTrips)-1]
	text := fmt.Sprintf("a round trip takes %s, the longest of %d took %s",
		median.Round(10*time.Microsecond), len(f.roundTrips), longest.Round(10*time.Microsecond))
	switch fork := f.number("latest_fork_usec"); {
	case median > slowTrip:
		return semantics.Warning, text, "run the sidecars close to Redis; each call takes at least one round trip"
	case fork > slowFork:
		return semantics.Warning, fmt.Sprintf("%s; the last fork stopped Redis for %.0f ms", text, fork/1000),
			"turn transparent huge pages off on its host, and keep the data set small"
	default:
		return semantics.Fine, text, ""
	}
}

// mostClockOffset is how much clocks may differ.
const mostClockOffset = time.Second

func (f *serverFacts) examineClock() (semantics.Severity, string, string) {
	offset := f.clockOffset.Round(time.Millisecond)
	if offset.Abs() > mostClockOffset {
		return semantics.Warning, fmt.Sprintf("its clock is %s from the one here: times in answers look wrong here, although "+
			"locks and schedules are exact by its clock", offset), "keep both hosts on NTP"
	}
	return semantics.Fine, fmt.Sprintf("its clock is %s from the one here", offset), ""
}

func (f *serverFacts) examineStreams() (semantics.Severity, string, string) {
	bytes, err := strconv.Atoi(f.config["stream-node-max-bytes"])
	if err == nil && bytes < 16384 {
		return semantics.Fine, fmt.Sprintf("stream-node-max-bytes is %d", bytes),
			"16384 saves about 100 bytes for each message of 1 KiB that is sent alone"
	}
	return "", "", ""
}
