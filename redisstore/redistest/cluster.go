package redistest

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Cluster is a Redis Cluster on loopback that a test started: three primaries with a replica each.
type Cluster struct {
	// URL is how to reach it.
	URL string

	nodes []*clusterNode
}

// clusterNode is a server of a cluster.
type clusterNode struct {
	*Server

	args   []string
	addr   string
	bus    string // the port for its neighbours
	client *redis.Client
}

const clusterPrimaries = 3

// StartCluster starts a cluster of the caller's own, with further arguments for each server as on its command line, and
// waits until all of it works. The caller stops it.
func StartCluster(t testing.TB, args ...string) *Cluster {
	t.Helper()
	c := &Cluster{}
	for range 2 * clusterPrimaries {
		c.start(t, args)
	}
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	for i, primary := range c.nodes[:clusterPrimaries] {
		first, last := 16384*i/clusterPrimaries, 16384*(i+1)/clusterPrimaries-1
		c.must(t, primary.client.ClusterAddSlotsRange(ctx, first, last).Err())
		c.must(t, primary.client.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err())
	}
	host, port, _ := net.SplitHostPort(c.nodes[0].addr)
	for _, node := range c.nodes[1:] {
		c.must(t, node.client.Do(ctx, "CLUSTER", "MEET", host, port, c.nodes[0].bus).Err())
	}
	for i, replica := range c.nodes[clusterPrimaries:] {
		id := c.nodes[i].client.ClusterMyID(ctx).Val()
		c.until(ctx, t, "a replica knows its primary", func() bool {
			return replica.client.ClusterReplicate(ctx, id).Err() == nil
		})
	}
	for _, node := range c.nodes {
		c.until(ctx, t, "the cluster is complete", func() bool { return c.isComplete(ctx, node) })
	}
	addresses := make([]string, 0, clusterPrimaries)
	for _, node := range c.nodes[:clusterPrimaries] {
		addresses = append(addresses, node.addr)
	}
	c.URL = "redis+cluster://" + strings.Join(addresses, ",")
	return c
}

// start starts one server on a free port, and its bus on another.
func (c *Cluster) start(t testing.TB, args []string) {
	t.Helper()
	port, bus := FreePort(t), FreePort(t)
	args = append([]string{
		"--port", port, "--bind", "127.0.0.1", "--cluster-enabled", "yes", "--cluster-port", bus,
		"--cluster-node-timeout", "2000", "--repl-diskless-sync-delay", "0",
	}, args...)
	server := Start(t, args...)
	options := ClientOptions(t, server.URL)
	addr := net.JoinHostPort("127.0.0.1", port)
	c.nodes = append(c.nodes, &clusterNode{server, args, addr, bus, redis.NewClient(options)})
}

// isComplete reports whether a server knows all others and who has each slot, and that all replicas are in step. A
// client that asked a server without this knowledge would send commands for the other slots to any server. The state of
// a cluster does not tell when it may serve a part of its slots.
func (c *Cluster) isComplete(ctx context.Context, node *clusterNode) bool {
	info := node.client.ClusterInfo(ctx).Val()
	role := node.client.Info(ctx, "replication").Val()
	return strings.Contains(info, "cluster_state:ok") &&
		strings.Contains(info, "cluster_slots_ok:16384") &&
		strings.Contains(info, "cluster_known_nodes:"+strconv.Itoa(len(c.nodes))) &&
		(strings.Contains(role, "connected_slaves:1") || strings.Contains(role, "master_link_status:up"))
}

func (c *Cluster) until(ctx context.Context, t testing.TB, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			c.Stop()
			t.Fatalf("it did not happen in %s: %s", Patience, what)
		}
	}
}

func (c *Cluster) must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		c.Stop()
		t.Fatal(fmt.Errorf("start a cluster: %w", err))
	}
}

// Stop kills all servers and removes their data.
func (c *Cluster) Stop() {
	for _, node := range c.nodes {
		_ = node.client.Close()
		node.Stop()
	}
}
