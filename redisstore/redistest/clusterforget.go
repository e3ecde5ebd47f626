package redistest

import (
	"context"
	"strconv"
	"strings"
	"testing"
)

// Forgetting lets the server that has a key forget all that it does from now on, when the test calls what is returned:
// then it is killed, and a replica that has heard nothing since takes its place. The other servers forget nothing.
func (c *Cluster) Forgetting(t testing.TB, key string) (forget func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), Patience)
	defer cancel()
	_, home, _ := c.slotOf(ctx, t, key)
	replica := c.replicaOf(t, home)
	done := home.replication(ctx, "master_repl_offset")
	c.until(ctx, t, "the replica has all that was done", func() bool {
		return replica.replication(ctx, "slave_repl_offset") >= done
	})
	for _, setting := range [][2]string{
		{"masteruser", "nobody"}, {"masterauth", "x"}, {"cluster-replica-validity-factor", "0"},
	} {
		c.must(t, replica.client.ConfigSet(ctx, setting[0], setting[1]).Err())
	}
	c.until(ctx, t, "the replica hears nothing", func() bool {
		c.must(t, home.client.Do(ctx, "CLIENT", "KILL", "TYPE", "replica").Err())
		return strings.Contains(replica.client.Info(ctx, "replication").Val(), "master_link_status:down")
	})
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), Patience)
		defer cancel()
		home.Kill()
		c.must(t, replica.client.Do(ctx, "CLUSTER", "FAILOVER", "TAKEOVER").Err())
		c.until(ctx, t, "the replica has the slots", func() bool {
			_, now, _ := c.askSlot(ctx, key)
			return now == replica && c.agreeAbout(ctx, replica)
		})
	}
}

// replication returns a number of INFO replication.
func (n *clusterNode) replication(ctx context.Context, name string) int {
	_, rest, _ := strings.Cut(n.client.Info(ctx, "replication").Val(), "\n"+name+":")
	text, _, _ := strings.Cut(rest, "\r")
	number, _ := strconv.Atoi(text)
	return number
}
