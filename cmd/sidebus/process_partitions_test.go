package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/partitioned"
	"github.com/sidebus/sidebus/test/sidecartest"
)

// A primary of a cluster is lost, and no replica takes its place: it was killed, or it hangs. What has a key of its
// partitions fails and says so; all else goes on, and no call but the first waits for the one that hangs. When it is
// back everything is there.
func TestPART_7_APrimaryIsLost(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(t *testing.T, c *redistest.Cluster, key string) (back func()){
		"killed": func(t *testing.T, c *redistest.Cluster, key string) func() {
			t.Helper()
			c.KillAllOf(t, key)
			return func() { c.Recover(t) }
		},
		"hangs": func(t *testing.T, c *redistest.Cluster, key string) func() {
			t.Helper()
			goOn := c.StopAllOf(t, key)
			return func() {
				goOn()
				c.Recover(t)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := redistest.StartCluster(t, "--cluster-require-full-coverage", "no")
			t.Cleanup(cluster.Stop)
			l := newLostNode(t, cluster)
			woken := l.wait()
			back := lose(t, cluster, l.server)
			l.sendsWithAKey()
			l.sendsWithoutAKey()
			l.waits(woken)
			l.looks()
			back()
			l.isBack()
		})
	}
}

// lostNode is a sidecar on a cluster that loses a primary, with queues of six partitions: a stream takes all from "fed",
// calls wait on "calls", and what is in "kept" is received in the end.
type lostNode struct {
	*sidecartest.Sidecar

	t      *testing.T
	server string    // a key that the server has
	keys   [6]string // one of each partition
	number [6]string // of the message in each partition of "kept"
	isLost [6]bool
	fed    *fedStream
	next   int
}

func newLostNode(t *testing.T, cluster *redistest.Cluster) *lostNode {
	t.Helper()
	namespace := redistest.Namespace()
	l := &lostNode{t: t, Sidecar: sidecartest.Start(t, "--store", cluster.URL, "--namespace", namespace)}
	for _, queue := range []string{"fed", "calls", "kept"} {
		l.Queue(t, queue, `{"partitions":6,"lockDuration":"5m"}`)
	}
	for slices.Contains(l.keys[:], "") {
		l.next++
		key := fmt.Sprint("customer-", l.next)
		answer := l.send("kept", key)
		number := answer.Body["results"].([]any)[0].(map[string]any)["sequenceNumber"].(string)
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			t.Fatal(answer.Text)
		}
		if _, p := semantics.PartitionOf(n); l.keys[p] == "" {
			l.keys[p], l.number[p] = key, number
		}
	}
	store := partitioned.New(redistest.Open(t, redisstore.Options{URL: cluster.URL, Namespace: namespace}))
	if _, err := store.Peek(t.Context(), semantics.Source{Path: "fed"}, 0, 1, semantics.ShowAll); err != nil {
		t.Fatal(err)
	}
	keyOf := func(p int) string {
		return "sb:{" + namespace + "/" + semantics.Fold(store.Path("fed", p)) + "}:entity"
	}
	l.server = keyOf(0)
	for p := range l.isLost { // a share of the slots is that of any queue with as many partitions
		l.isLost[p] = cluster.IsTogether(t, l.server, keyOf(p))
	}
	l.fed = openFedStream(t, l.Sidecar, "fed")
	return l
}

// send sends a message, with a key if there is one.
func (l *lostNode) send(queue, key string) sidecartest.Answer {
	l.t.Helper()
	l.next++
	text := fmt.Sprint(queue, "-", l.next)
	message := map[string]string{"text": text}
	if key != "" {
		message["partitionKey"] = key
	}
	body, err := json.Marshal(map[string]any{"messages": []any{message}})
	if err != nil {
		l.t.Fatal(err)
	}
	answer := l.Call(l.t.Context(), http.MethodPost, "/v1/queues/"+queue+"/messages:send", string(body))
	if queue == "fed" && answer.Status == http.StatusOK {
		l.fed.expect(text)
	}
	return answer
}

// isOfTheLost reports whether an answer is a refusal for a partition that is lost.
func (l *lostNode) isOfTheLost(answer sidecartest.Answer) bool {
	details, _ := answer.Body["details"].(map[string]any)
	name, _ := details[semantics.DetailPartition].(string)
	p, err := strconv.Atoi(name)
	return answer.Body["reason"] == "STORE_UNAVAILABLE" && err == nil && p < len(l.isLost) && l.isLost[p]
}

func (l *lostNode) sendsWithAKey() {
	l.t.Helper()
	for p, key := range l.keys {
		answer := l.send("fed", key)
		if is := answer.Status == http.StatusOK; is == l.isLost[p] || !is && !l.isOfTheLost(answer) {
			l.t.Errorf("a send to partition %d, lost %v: %d %s", p, l.isLost[p], answer.Status, answer.Text)
		}
	}
}

// sendsWithoutAKey sends what may go anywhere. Nearly nothing waits for the server that hangs.
func (l *lostNode) sendsWithoutAKey() {
	l.t.Helper()
	sidecartest.Eventually(l.t, "a send without a key succeeds", func() bool { return l.send("fed", "").Status == http.StatusOK })
	slow := 0
	for range 20 {
		began := time.Now()
		if answer := l.send("fed", ""); answer.Status != http.StatusOK {
			l.t.Errorf("a send without a key: %d %s", answer.Status, answer.Text)
		}
		l.fed.await()
		if time.Since(began) > time.Second {
			slow++
		}
	}
	if slow > 4 {
		l.t.Errorf("%d of 20 messages took more than a second through the stream", slow)
	}
}

// wait begins a receive that waits for a message.
func (l *lostNode) wait() (got <-chan int) {
	found := make(chan int, 1)
	go func() {
		answer := l.Call(l.t.Context(), http.MethodPost, "/v1/queues/calls/messages:receive", `{"maxWait":"2m"}`)
		messages, _ := answer.Body["messages"].([]any)
		found <- len(messages)
	}()
	return found
}

// waits wakes a receive that has been waiting since before the loss, and others that began after it.
func (l *lostNode) waits(woken <-chan int) {
	l.t.Helper()
	slow := 0
	for range 6 {
		began := time.Now()
		if answer := l.send("calls", ""); answer.Status != http.StatusOK {
			l.t.Errorf("a send without a key: %d %s", answer.Status, answer.Text)
		}
		if n := <-woken; n != 1 {
			l.t.Errorf("a receive that waited has %d messages, want 1", n)
		}
		if time.Since(began) > time.Second {
			slow++
		}
		woken = l.wait()
	}
	l.send("calls", "")
	<-woken
	if slow > 2 {
		l.t.Errorf("%d of 6 receives that waited took more than a second", slow)
	}
}

// looks asks for what needs all partitions, and for what needs one.
func (l *lostNode) looks() {
	l.t.Helper()
	// its record may be on the server that is lost
	if answer := l.Call(l.t.Context(), http.MethodGet, "/v1/queues/kept/runtime", ""); answer.Body["reason"] != "STORE_UNAVAILABLE" {
		l.t.Errorf("counts: %d %s", answer.Status, answer.Text)
	}
	if answer := l.Call(l.t.Context(), http.MethodPost, "/v1/queues/kept/messages:peek", `{}`); !l.isOfTheLost(answer) {
		l.t.Errorf("peek: %d %s", answer.Status, answer.Text)
	}
	for p, number := range l.number {
		answer := l.Call(l.t.Context(), http.MethodPost, "/v1/queues/kept/messages:peek", `{"maxMessages":1,"fromSequenceNumber":"`+number+`"}`)
		if is := answer.Status == http.StatusOK; is == l.isLost[p] {
			l.t.Errorf("peek in partition %d, lost %v: %d %s", p, l.isLost[p], answer.Status, answer.Text)
		}
	}
}

// isBack sends to all partitions and receives what was in them.
func (l *lostNode) isBack() {
	l.t.Helper()
	for _, key := range l.keys {
		sidecartest.Eventually(l.t, "a send to each partition succeeds", func() bool { return l.send("fed", key).Status == http.StatusOK })
	}
	l.fed.await()
	missing := map[string]bool{}
	for _, number := range l.number {
		missing[number] = true
	}
	sidecartest.Eventually(l.t, "all that was kept is received", func() bool {
		for _, m := range l.Receive(l.t, "kept", time.Second) {
			delete(missing, m.SequenceNumber)
		}
		return len(missing) == 0
	})
}
