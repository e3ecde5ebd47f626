package redisstore_test

import (
	"fmt"
	"hash/fnv"
	"testing"
	"time"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
)

// withoutFailover keeps a cluster from replacing a server that hangs or has died while a test looks, and lets the other
// servers go on.
var withoutFailover = []string{"--cluster-node-timeout", "120000", "--cluster-require-full-coverage", "no"}

// One server of a cluster that hangs does not make the others look unavailable, and holds up each call to it for one
// timeout.
func TestERR_6_OneServerOfAClusterHangs(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, withoutFailover...)
	t.Cleanup(cluster.Stop)
	const timeout = 3 * time.Second
	namespace := redistest.Namespace()
	s := redistest.Open(t, redisstore.Options{
		URL: cluster.URL, Namespace: namespace, DialTimeout: timeout, ReadTimeout: timeout, WriteTimeout: timeout,
	})
	create(t, s)
	must(t, second(s.Check(t.Context())))
	goOn := cluster.StopPrimaryOf(t, "sb:{"+namespace+"/orders}:entity")
	defer goOn()
	for range 3 {
		began := time.Now()
		health, err := s.Check(t.Context())
		if err != nil || len(health.Warnings) == 0 || time.Since(began) > timeout {
			t.Errorf("a check took %s: %v, %v", time.Since(began), health, err)
		}
	}
	for range 2 { // over a connection from before, and over a new one
		began := time.Now()
		if _, err := s.Send(t.Context(), "orders", message(1)); semantics.CodeOf(err) != semantics.StoreUnavailable {
			t.Errorf("send: %v", err)
		}
		if took := time.Since(began); took > 3*timeout {
			t.Errorf("a send took %s", took)
		}
	}
}

// All servers of a cluster may be slow, as at a start on a busy machine: that is not an outage.
func TestERR_6_AllServersOfAClusterAreSlow(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, withoutFailover...)
	t.Cleanup(cluster.Stop)
	s := redistest.Open(t, redisstore.Options{URL: cluster.URL})
	must(t, second(s.Check(t.Context())))
	goOn := cluster.StopPrimaries(t)
	slow := time.AfterFunc(time.Second, goOn)
	defer slow.Stop()
	must(t, second(s.Check(t.Context())))
}

// A queue whose name cannot be taken off its list is deleted, so the failure says that the call may have taken effect. One
// whose name cannot be listed is not made.
func TestERR_6_TheListOfAClusterIsDown(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, withoutFailover...)
	t.Cleanup(cluster.Stop)
	namespace := redistest.Namespace()
	s := redistest.Open(t, redisstore.Options{URL: cluster.URL, Namespace: namespace})
	entity := func(queue string) string { return "sb:{" + namespace + "/" + queue + "}:entity" }
	list := func(queue string) string {
		h := fnv.New32a()
		_, _ = h.Write([]byte(queue))
		return fmt.Sprintf("sb:{%s#%d}:names", namespace, h.Sum32()%8)
	}
	queue, other := "", ""
	for i := 0; other == ""; i++ {
		switch one := fmt.Sprint("q", i); {
		case cluster.IsTogether(t, entity(one), list(one)):
		case queue == "":
			queue = one
		case cluster.IsTogether(t, list(queue), list(one)):
			other = one
		}
	}
	must(t, makeQueue(t, s, queue))
	cluster.KillPrimaryOf(t, list(queue))
	if err := s.DeleteEntity(t.Context(), semantics.QueueKind, queue); !semantics.IsOutcomeUnknown(err) {
		t.Errorf("delete: %v", err)
	}
	for _, one := range []string{queue, other} {
		if err := makeQueue(t, s, one); semantics.CodeOf(err) != semantics.StoreUnavailable || semantics.IsOutcomeUnknown(err) {
			t.Errorf("create %s: %v", one, err)
		}
		if _, err := s.GetEntity(t.Context(), semantics.QueueKind, one); semantics.CodeOf(err) != semantics.EntityNotFound {
			t.Errorf("get %s: %v", one, err)
		}
	}
}
