package redistest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"
)

// slotOf returns the slot of a key, the primary that has it, and another primary. The servers hear of a slot that has
// moved one after the other, so it asks until they agree.
func (c *Cluster) slotOf(ctx context.Context, t testing.TB, key string) (slot int, home, other *clusterNode) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	c.until(ctx, t, "a server has the slot of "+key, func() bool {
		slot, home, other = c.askSlot(ctx, key)
		return home != nil && other != nil
	})
	return slot, home, other
}

func (c *Cluster) askSlot(ctx context.Context, key string) (slot int, home, other *clusterNode) {
	for _, node := range c.nodes {
		number, err := node.client.ClusterKeySlot(ctx, key).Result()
		if err != nil {
			continue // it was killed
		}
		slot = int(number)
		isPrimary, has := node.owns(ctx, slot)
		switch {
		case has:
			home = node
		case isPrimary:
			other = node
		}
	}
	return slot, home, other
}

// owns reports whether a server says of itself, which it learns first, that it is a primary and has a slot.
func (n *clusterNode) owns(ctx context.Context, slot int) (isPrimary, has bool) {
	//nolint:staticcheck // as the client of the store does, on whatever version
	for _, r := range n.client.ClusterSlots(ctx).Val() {
		if r.Nodes[0].Addr == n.addr {
			isPrimary = true
			has = has || r.Start <= slot && slot <= r.End
		}
	}
	return isPrimary, has
}

// HalfMoved begins to move the slot of a key to another primary and moves none of its keys. The caller ends it with
// what is returned.
func (c *Cluster) HalfMoved(t testing.TB, key string) (end func()) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	slot, from, to := c.slotOf(ctx, t, key)
	c.setSlot(ctx, t, to, slot, "IMPORTING", from.id(ctx))
	c.setSlot(ctx, t, from, slot, "MIGRATING", to.id(ctx))
	return func() {
		for _, node := range []*clusterNode{from, to} {
			c.must(t, node.client.Do(ctx, "CLUSTER", "SETSLOT", slot, "STABLE").Err())
		}
	}
}

// MoveSlot moves the slot of a key, with all keys in it, to another primary, as redis-cli does. It returns when all
// servers know: a second move before that could leave the slot without a server.
func (c *Cluster) MoveSlot(t testing.TB, key string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	slot, from, to := c.slotOf(ctx, t, key)
	c.setSlot(ctx, t, to, slot, "IMPORTING", from.id(ctx))
	c.setSlot(ctx, t, from, slot, "MIGRATING", to.id(ctx))
	host, port, _ := net.SplitHostPort(to.addr)
	for {
		keys, err := from.client.ClusterGetKeysInSlot(ctx, slot, 3).Result()
		c.must(t, err)
		if len(keys) == 0 {
			break
		}
		args := []any{"MIGRATE", host, port, "", 0, Patience.Milliseconds(), "KEYS"}
		for _, key := range keys {
			args = append(args, key)
		}
		c.must(t, from.client.Do(ctx, args...).Err())
	}
	c.setSlot(ctx, t, to, slot, "NODE", to.id(ctx))
	c.setSlot(ctx, t, from, slot, "NODE", to.id(ctx))
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	c.until(ctx, t, "all servers know the slots of "+to.addr, func() bool { return c.agreeAbout(ctx, to) })
}

// agreeAbout reports whether all servers that live know the slots and the config epoch of one.
func (c *Cluster) agreeAbout(ctx context.Context, one *clusterNode) bool {
	own := one.view(ctx, one)
	for _, node := range c.nodes {
		if view := node.view(ctx, one); view != own && node.client.Ping(ctx).Err() == nil {
			return false
		}
	}
	return own != ""
}

// view returns the config epoch and the slots that a server knows of another.
func (n *clusterNode) view(ctx context.Context, other *clusterNode) string {
	id := other.id(ctx)
	for line := range strings.Lines(n.client.ClusterNodes(ctx).Val()) {
		fields := strings.Fields(line) // id, address, flags, primary, two times, epoch, state, slots
		if len(fields) > 8 && fields[0] == id {
			return fields[6] + " " + strings.Join(fields[8:], " ")
		}
	}
	return ""
}

func (c *Cluster) setSlot(ctx context.Context, t testing.TB, node *clusterNode, slot int, state, id string) {
	t.Helper()
	c.must(t, node.client.Do(ctx, "CLUSTER", "SETSLOT", slot, state, id).Err())
}

func (n *clusterNode) id(ctx context.Context) string { return n.client.ClusterMyID(ctx).Val() }

// IsTogether reports whether two keys have the same server.
func (c *Cluster) IsTogether(t testing.TB, key, other string) bool {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	_, home, _ := c.slotOf(ctx, t, key)
	_, home2, _ := c.slotOf(ctx, t, other)
	return home == home2
}

// KillPrimaryOf ends the server that has a key with SIGKILL, so that its replica becomes the primary, and returns when.
func (c *Cluster) KillPrimaryOf(t testing.TB, key string) time.Time {
	t.Helper()
	_, home, _ := c.slotOf(context.WithoutCancel(t.Context()), t, key)
	home.Kill()
	return time.Now()
}

// Recover runs the servers again that were killed and waits until the cluster is complete.
func (c *Cluster) Recover(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), Patience)
	defer cancel()
	for _, node := range c.nodes {
		if node.HasExited() {
			node.Restart(t, node.args...)
		}
	}
	for _, node := range c.nodes {
		c.until(ctx, t, "the cluster is complete again", func() bool { return c.isComplete(ctx, node) })
	}
}

// Hang ends all subscriptions at the server that has a key, which then answers nothing for a while. It needs
// enable-debug-command. It returns when the server hangs.
func (c *Cluster) Hang(t testing.TB, key string, lasts time.Duration) {
	t.Helper()
	_, home, _ := c.slotOf(context.WithoutCancel(t.Context()), t, key)
	var conns [2]net.Conn
	for i, say := range []string{"SUBSCRIBE x\r\n", "PING\r\n"} {
		conn, err := net.Dial("tcp", home.addr)
		c.must(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		_, err = fmt.Fprint(conn, say)
		c.must(t, err)
		_, err = bufio.NewReader(conn).ReadString('\n')
		c.must(t, err)
		conns[i] = conn
	}
	_, err := fmt.Fprintf(conns[1], "CLIENT KILL TYPE pubsub\r\nDEBUG SLEEP %g\r\n", lasts.Seconds()) // nothing comes between them
	c.must(t, err)
	_, _ = io.Copy(io.Discard, conns[0]) // until it is killed
}

// StopPrimaryOf lets the server that has a key answer nothing until the test goes on with what is returned.
func (c *Cluster) StopPrimaryOf(t testing.TB, key string) (goOn func()) {
	t.Helper()
	_, home, _ := c.slotOf(context.WithoutCancel(t.Context()), t, key)
	c.must(t, home.command.Process.Signal(syscall.SIGSTOP))
	return func() { c.must(t, home.command.Process.Signal(syscall.SIGCONT)) }
}

// Fill lets the server that has a key refuse what needs memory.
func (c *Cluster) Fill(t testing.TB, key string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), Patience)
	defer cancel()
	_, home, _ := c.slotOf(ctx, t, key)
	c.must(t, home.client.ConfigSet(ctx, "maxmemory", "1").Err())
}

// StopPrimaries lets all primaries answer nothing until the test goes on.
func (c *Cluster) StopPrimaries(t testing.TB) (goOn func()) {
	t.Helper()
	signal := func(s syscall.Signal) {
		for _, primary := range c.nodes[:clusterPrimaries] {
			c.must(t, primary.command.Process.Signal(s))
		}
	}
	signal(syscall.SIGSTOP)
	return func() { signal(syscall.SIGCONT) }
}

// StopReplicaOf lets the replica of the server that has a key answer nothing until the test goes on.
func (c *Cluster) StopReplicaOf(t testing.TB, key string) (goOn func()) {
	t.Helper()
	_, home, _ := c.slotOf(context.WithoutCancel(t.Context()), t, key)
	return c.replicaOf(t, home).Pause(t)
}

// replicaOf returns the replica of a server.
func (c *Cluster) replicaOf(t testing.TB, primary *clusterNode) *clusterNode {
	t.Helper()
	_, port, _ := net.SplitHostPort(primary.addr)
	for _, node := range c.nodes {
		if strings.Contains(node.client.Info(context.WithoutCancel(t.Context()), "replication").Val(), "master_port:"+port+"\r") {
			return node
		}
	}
	t.Fatal("the server has no replica")
	return nil
}

// StopAllOf lets the server that has a key, and its replica, answer nothing until the test goes on with what is returned.
func (c *Cluster) StopAllOf(t testing.TB, key string) (goOn func()) {
	t.Helper()
	_, home, _ := c.slotOf(context.WithoutCancel(t.Context()), t, key)
	replica := c.replicaOf(t, home) // before the other one answers nothing
	primaryGoesOn, replicaGoesOn := home.Pause(t), replica.Pause(t)
	return func() {
		primaryGoesOn()
		replicaGoesOn()
	}
}

// KillAllOf ends the server that has a key and its replica with SIGKILL.
func (c *Cluster) KillAllOf(t testing.TB, key string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	_, home, _ := c.slotOf(ctx, t, key)
	c.replicaOf(t, home).Kill()
	home.Kill()
}
