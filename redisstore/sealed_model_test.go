package redisstore_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/partitioned"
	"github.com/sidebus/sidebus/semantics/sealed"
)

// subsetModel is a chain of forwards, with any number of partitions in each queue, and three sidecars that forward and
// are killed between any two steps of a transfer. The first can read all messages. To the second the key of some is
// missing, and to the third it is declared lost.
type subsetModel struct {
	*rapid.T
	t        *testing.T
	brokers  [3]*broker.Broker
	dying    [3]*dyingStore
	sealedBy map[string]int // the sidecar that sent a message, by id
	isSealed bool           // the first sidecar has forwarded: it seals again with the key that others have not
	isLost   bool           // the third sidecar has forwarded
}

const (
	readsAll = iota
	missesKey
	losesKey
)

var subsetChain = []string{"in", "mid", "out"}

// Whichever sidecars carry a transfer on, those that can read all its messages or only some of them, each message is in
// one place in the end. If one declared its key lost, it may be a dead letter, or be forwarded and also a dead letter of
// where it came from, as CRYPT-4 says. `-rapid.checks=N` runs more.
func TestCRYPT_4_ForwardModelOfSubsets(t *testing.T) {
	t.Parallel()
	keys := [3]func() *sealed.Keys{
		readsAll: payloadKeys(t, "new", "other"), missesKey: payloadKeys(t, "other"), losesKey: losing(t, payloadKeys(t, "other"), "new"),
	}
	rapid.Check(t, func(rt *rapid.T) {
		m := &subsetModel{T: rt, t: t, sealedBy: map[string]int{}}
		namespace := redistest.NamespaceUntil(rt, redistest.URL(t))
		for i := range m.brokers {
			below, err := redisstore.Open(redisstore.Options{
				URL: redistest.URL(t), Namespace: namespace, ReadTimeout: redistest.Patience, PayloadKeys: keys[i],
			})
			m.must("open", err)
			rt.Cleanup(func() { _ = below.Close() })
			m.dying[i] = &dyingStore{Below: below}
			m.brokers[i] = brokerOver(partitioned.New(m.dying[i]))
			rt.Cleanup(m.brokers[i].Close)
		}
		for i, path := range slices.Backward(subsetChain) { // a destination comes first
			options, names := semantics.Options{Partitions: rapid.SampledFrom([]int64{1, 2, 3}).Draw(rt, "partitions")}, []string{"partitions"}
			if i+1 < len(subsetChain) {
				options.ForwardTo, names = subsetChain[i+1], append(names, "forwardTo")
			}
			_, err := m.brokers[readsAll].CreateEntity(t.Context(), semantics.QueueKind, path, options, names)
			m.must("create", err)
		}
		rt.Repeat(map[string]func(*rapid.T){
			"send": m.send, "forward": m.forward, "forward again": m.forward, "forward more": m.forward,
		})
		m.T = rt
		m.endWell()
	})
}

func (m *subsetModel) must(what string, err error) {
	m.Helper()
	if err != nil {
		m.Fatalf("%s: %v", what, err)
	}
}

func (m *subsetModel) send(rt *rapid.T) {
	m.T = rt
	i := rapid.IntRange(0, len(m.brokers)-1).Draw(rt, "sidecar")
	key := rapid.SampledFrom([]string{"", "a", "b"}).Draw(rt, "key")
	messages := make([]*semantics.Message, rapid.IntRange(1, 5).Draw(rt, "messages"))
	for j := range messages {
		messages[j] = &semantics.Message{MessageID: fmt.Sprint("m", len(m.sealedBy)), PartitionKey: key, Body: []byte("text")}
		m.sealedBy[messages[j].MessageID] = i
	}
	_, err := m.brokers[i].Send(m.t.Context(), semantics.ToQueue("in"), messages)
	m.must("send", err)
}

// forward lets one of the sidecars forward, which may be killed before or after any step.
func (m *subsetModel) forward(rt *rapid.T) {
	m.T = rt
	i := rapid.IntRange(0, len(m.brokers)-1).Draw(rt, "sidecar")
	path := rapid.SampledFrom(subsetChain[:2]).Draw(rt, "from")
	d := m.dying[i]
	d.limit, d.left, d.after = rapid.IntRange(1, 10).Draw(rt, "limit"), rapid.IntRange(0, 7).Draw(rt, "steps"), rapid.Bool().Draw(rt, "after")
	mayDie := d.left > 0
	err := m.brokers[i].Forward(m.t.Context(), semantics.Source{Path: path})
	d.limit, d.left = 0, 0
	m.isSealed, m.isLost = m.isSealed || i == readsAll, m.isLost || i == losesKey
	isKilled := mayDie && semantics.CodeOf(err) == semantics.StoreUnavailable
	isMissing := i == missesKey && semantics.CodeOf(err) == semantics.PayloadKeyMissing
	if err != nil && !isKilled && !isMissing {
		rt.Fatalf("forward from %s by sidecar %d: %v", path, i, err)
	}
}

// endWell lets the sidecar that can read all finish, and looks for each message.
func (m *subsetModel) endWell() {
	b, ctx := m.brokers[readsAll], m.t.Context()
	for range 2 {
		for _, path := range subsetChain[:2] {
			m.must("forward", b.Forward(ctx, semantics.Source{Path: path}))
		}
	}
	arrived, dead := map[string]int{}, map[string]int{}
	for _, path := range subsetChain {
		for side, found := range map[semantics.SubQueue]map[string]int{
			semantics.MainQueue: arrived, semantics.DeadLetterQueue: dead, semantics.TransferDeadLetterQueue: dead,
		} {
			rows, err := b.Peek(ctx, semantics.Source{Path: path, SubQueue: side}, 1, 250, semantics.ShowAll)
			m.must("peek", err)
			for _, row := range rows {
				found[row.MessageID]++
				if side == semantics.MainQueue && path != "out" {
					m.Errorf("%s is still in %s", row.MessageID, path)
				}
			}
		}
	}
	for id, i := range m.sealedBy {
		mayBeDead := m.isLost && (m.isSealed || i == readsAll)
		if arrived[id] > 1 || arrived[id]+dead[id] == 0 || !mayBeDead && (arrived[id] != 1 || dead[id] != 0) {
			m.Errorf("%s, sent by sidecar %d, has arrived %d times and is %d dead letters", id, i, arrived[id], dead[id])
		}
	}
}
