package redisstore

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// Each fact about a server is one finding, which says what to do.
func TestWhatExamineSaysOfAServer(t *testing.T) {
	t.Parallel()
	good := map[string]string{
		"redis_version": "7.0.15", "role": "master", "maxmemory_policy": "noeviction", "used_memory": "1000000",
		"maxmemory": "2000000", "total_system_memory": "4000000", "aof_enabled": "1", "aof_last_write_status": "ok",
		"rdb_last_bgsave_status": "ok", "aof_last_bgrewrite_status": "ok", "connected_slaves": "1",
		"slave0":            "ip=10.0.0.2,port=6380,state=online,offset=1,lag=1",
		"connected_clients": "10", "maxclients": "10000", "cluster_enabled": "0", "master_replid": "x",
	}
	settings := map[string]string{
		"appendfsync": "always", "save": "", "min-replicas-to-write": "1", "timeout": "0",
		"stop-writes-on-bgsave-error": "yes", "stream-node-max-bytes": "16384",
	}
	node := map[string]string{"cluster_enabled": "1", "cluster_state": "ok"}
	for _, c := range []struct {
		name         string
		info, config map[string]string
		also         func(f *serverFacts)
		subject      string
		severity     semantics.Severity
		says, advice string
	}{
		{"old", map[string]string{"redis_version": "6.2.7"}, nil, nil, "version", semantics.Problem, "redis 6.2.7 is too old", "7.0"},
		{"valkey", map[string]string{"redis_version": "7.2.4", "valkey_version": "8.1.1"}, nil, nil, "version", semantics.Fine, "valkey 8.1.1", ""},
		{"replica", map[string]string{"role": "slave"}, nil, nil, "version", semantics.Problem, "is a replica", "primary"},
		{"evicts", map[string]string{"maxmemory_policy": "allkeys-lru"}, nil, nil, "eviction", semantics.Problem, "sidecars do not start", "noeviction"},
		{"may evict", map[string]string{"maxmemory_policy": "allkeys-lru"}, nil, func(f *serverFacts) { f.allowEviction = true }, "eviction", semantics.Warning, "--redis-allow-eviction", "noeviction"},
		{"has evicted", map[string]string{"evicted_keys": "3"}, nil, nil, "eviction", semantics.Problem, "evicted 3 keys", "memory"},
		{"no maxmemory", map[string]string{"maxmemory": "0"}, nil, nil, "memory", semantics.Warning, "maxmemory is not set", "three quarters"},
		{"nearly full", map[string]string{"used_memory": "1900000"}, nil, nil, "memory", semantics.Problem, "95 %", "sidebus top"},
		{"fills", map[string]string{"used_memory": "1600000"}, nil, nil, "memory", semantics.Warning, "80 %", "sidebus top"},
		{"too much", map[string]string{"maxmemory": "8000000"}, nil, nil, "memory", semantics.Warning, "more than the host has", "three quarters"},
		{"loading", map[string]string{"loading": "1"}, nil, nil, "disk", semantics.Problem, "loading", "wait"},
		{"disk full", map[string]string{"aof_last_write_status": "err"}, nil, nil, "disk", semantics.Problem, "not safe on disk", "free space"},
		{"no snapshot", map[string]string{"rdb_last_bgsave_status": "err"}, map[string]string{"save": "60 1"}, nil, "disk", semantics.Problem, "refuses all writes", "free space"},
		{"no rewrite", map[string]string{"aof_last_bgrewrite_status": "err"}, nil, nil, "disk", semantics.Warning, "the file grows", "free space"},
		{"nothing kept", map[string]string{"aof_enabled": "0"}, nil, nil, "disk", semantics.Warning, "loses every message", "appendonly yes"},
		{"snapshots only", map[string]string{"aof_enabled": "0"}, map[string]string{"save": "60 1"}, nil, "disk", semantics.Warning, "since the last snapshot", "appendonly yes"},
		{"everysec", nil, map[string]string{"appendfsync": "everysec"}, nil, "disk", semantics.Fine, "about a second", "guarantees.md"},
		{"no fsync", nil, map[string]string{"appendfsync": "no"}, nil, "disk", semantics.Warning, "30 seconds", "everysec"},
		{"no CONFIG", nil, map[string]string{"appendfsync": ""}, nil, "disk", semantics.Warning, "cannot be read", "CONFIG GET"},
		{"alone", map[string]string{"connected_slaves": "0"}, map[string]string{"min-replicas-to-write": "0"}, nil, "replicas", semantics.Warning, "no replica", "stores.md"},
		{"behind", map[string]string{"slave0": "ip=10.0.0.2,port=6380,state=online,offset=1,lag=60"}, map[string]string{"min-replicas-to-write": "0"}, nil, "replicas", semantics.Warning, "10.0.0.2:6380 is online and 60 s behind", "network"},
		{"too few", map[string]string{"slave0": "ip=10.0.0.2,port=6380,state=wait_bgsave,offset=1,lag=0"}, nil, nil, "replicas", semantics.Problem, "refuses all writes", "back"},
		{"cut off", nil, map[string]string{"min-replicas-to-write": "0"}, nil, "replicas", semantics.Warning, "cut off", "min-replicas-to-write 1"},
		{"a node", node, nil, nil, "cluster", semantics.Problem, "this is a node", "redis+cluster"},
		{"no cluster", nil, nil, func(f *serverFacts) { f.isCluster = true }, "cluster", semantics.Problem, "this is one Redis", "redis://"},
		{"slots lost", map[string]string{"cluster_enabled": "1", "cluster_state": "fail"}, nil, func(f *serverFacts) { f.isCluster = true }, "cluster", semantics.Problem, "cluster_state is fail", "CLUSTER NODES"},
		{"all or none", node, map[string]string{"cluster-require-full-coverage": "yes"}, func(f *serverFacts) { f.isCluster = true }, "cluster", semantics.Warning, "stops all entities", "full-coverage no"},
		{"no histories", map[string]string{"cluster_enabled": "1", "cluster_state": "ok", "master_replid": ""}, nil, func(f *serverFacts) { f.isCluster = true }, "cluster", semantics.Warning, "no master_replid", "start all sidecars"},
		{"all served", node, map[string]string{"cluster-require-full-coverage": "no"}, func(f *serverFacts) { f.isCluster = true }, "cluster", semantics.Fine, "all slots", ""},
		{"many clients", map[string]string{"connected_clients": "9000"}, nil, nil, "connections", semantics.Warning, "9000 of 10000", "maxclients"},
		{"refused", map[string]string{"rejected_connections": "7"}, nil, nil, "connections", semantics.Warning, "refused 7", "open files"},
		{"cuts", nil, map[string]string{"timeout": "60"}, nil, "connections", semantics.Warning, "timeout is 60 s", "timeout 0"},
		{"far", nil, nil, func(f *serverFacts) { f.roundTrips = []time.Duration{20 * time.Millisecond} }, "latency", semantics.Warning, "20ms", "close to Redis"},
		{"forks", map[string]string{"latest_fork_usec": "900000"}, nil, nil, "latency", semantics.Warning, "900 ms", "huge pages"},
		{"behind the times", nil, nil, func(f *serverFacts) { f.clockOffset = -time.Minute }, "clock", semantics.Warning, "-1m0s", "NTP"},
		{"small nodes", nil, map[string]string{"stream-node-max-bytes": "4096"}, nil, "streams", semantics.Fine, "4096", "16384"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := serverFacts{
				where: "10.0.0.1:6379", info: maps.Clone(good), config: maps.Clone(settings), roundTrips: []time.Duration{time.Millisecond},
			}
			maps.Copy(f.info, c.info)
			maps.Copy(f.config, c.config)
			if c.also != nil {
				c.also(&f)
			}
			seen := false
			for _, finding := range f.findings() {
				if finding.Subject != c.subject {
					if finding.Severity != semantics.Fine && c.subject != "cluster" {
						t.Errorf("also found %+v", finding)
					}
					continue
				}
				seen = true
				if finding.Severity != c.severity || !strings.Contains(finding.Text, c.says) ||
					!strings.Contains(finding.Advice, c.advice) || finding.Where != f.where {
					t.Errorf("got %+v", finding)
				}
			}
			if !seen {
				t.Error("nothing was said of it")
			}
		})
	}
}

// Clocks of servers that differ are found although each is close to ours.
func TestServersWhoseClocksDiffer(t *testing.T) {
	t.Parallel()
	apart := map[string]time.Duration{"a": -700 * time.Millisecond, "b": 700 * time.Millisecond}
	if found := compareClocks(apart); len(found) != 1 || found[0].Severity != semantics.Warning {
		t.Errorf("got %+v", found)
	}
	together := map[string]time.Duration{"a": time.Minute, "b": time.Minute}
	if found := compareClocks(together); found != nil {
		t.Errorf("got %+v", found)
	}
}
