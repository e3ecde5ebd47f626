// Package powerloss measures what of the acknowledged messages is lost when the power of Redis is cut or Redis is
// killed, at each setting of the append-only file and level of durability. Redis keeps its files on a disk that forgets
// what was not synced, a file system in FUSE. It is a module of its own, so that FUSE stays out of Sidebus' dependencies.
package powerloss

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/test/sidecartest"
)

var (
	cuts      = flag.Int("cuts", 2, "how many times each setting loses its power, and how many times its Redis is killed")
	firstSeed = flag.Uint64("seed", 1, "seed of when that happens")
)

const (
	senders  = 8
	patience = 30 * time.Second // of one call while Redis comes back
	page     = 250              // messages of a peek
)

func TestMain(m *testing.M) { sidecartest.Main(m) }

// setting is how Redis keeps its file, and what an answer stands for.
type setting struct {
	fsync, level string
	syncTime     time.Duration // of the disk
	// How long before its end what was acknowledged can be lost, -1: nothing can.
	inPowerCut, inKill time.Duration
}

const (
	nothing = -1
	all     = time.Hour
)

// With everysec a sync begins each second. While one takes long, a write is put off for two seconds, which Redis counts
// by its seconds, so for up to three; then it waits for that sync, and what it writes for the next one. The rest is for
// a busy machine.
var settings = []setting{
	{"always", "memory", time.Millisecond, nothing, nothing},
	{"always", "disk", time.Millisecond, nothing, nothing},
	{"everysec", "memory", time.Millisecond, 3 * time.Second, 2 * time.Second},
	{"everysec", "memory", 1500 * time.Millisecond, 8 * time.Second, 6500 * time.Millisecond},
	{"no", "memory", time.Millisecond, all, nothing},
}

// What an answer stands for survives the power: all with always, all except the last seconds with everysec.
func TestDUR_1_PowerLoss(t *testing.T) {
	for _, s := range settings {
		t.Run(fmt.Sprintf("%s,%s,sync=%s", s.fsync, s.level, s.syncTime), func(t *testing.T) {
			n := start(t, s)
			n.lose(t, "power cut", s.inPowerCut, func() {
				n.disk.cutPower()
				n.redis.Kill()
				n.disk.restorePower(t)
			})
			n.lose(t, "kill -9", s.inKill, n.redis.Kill)
		})
	}
}

// node is a Redis on the disk, and a sidecar.
type node struct {
	setting

	rng      *rand.Rand
	disk     *disk
	redis    *redistest.Server
	args     []string // of Redis
	queues   sidebusv1.AdminClient
	messages sidebusv1.MessagesClient
	rounds   int
}

func start(t *testing.T, s setting) *node {
	t.Helper()
	n := &node{setting: s, rng: rand.New(rand.NewPCG(*firstSeed, 0)), disk: mount(t, s.syncTime)}
	n.args = []string{"--dir", n.disk.at, "--appendfsync", s.fsync, "--auto-aof-rewrite-min-size", "1mb"}
	n.redis = redistest.Start(t, n.args...)
	t.Cleanup(n.redis.Stop)
	sidecar := sidecartest.Launch(t, "--store", n.redis.URL, "--durability", s.level, "--durability-timeout", "5s",
		"--grpc-addr", "unix://"+filepath.Join(socketFolder(t), "s"))
	conn, err := grpc.NewClient(sidecar.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	n.queues, n.messages = sidebusv1.NewAdminClient(conn), sidebusv1.NewMessagesClient(conn)
	return n
}

// socketFolder returns a folder whose name is short enough for a socket.
func socketFolder(t *testing.T) string {
	t.Helper()
	at, err := os.MkdirTemp("", "sidebus-power-") //nolint:usetesting // names of tests are too long for a socket's
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(at) })
	return at
}

// lose lets Redis end in some way under load, -cuts times, and looks what is lost of what was acknowledged.
func (n *node) lose(t *testing.T, how string, limit time.Duration, end func()) {
	t.Helper()
	var acked, lost, cutsWithLoss int
	var oldest time.Duration
	for range *cuts {
		n.rounds++
		queue := fmt.Sprintf("orders-%d", n.rounds)
		n.create(t, queue)
		n.disk.syncAll()
		answers, ended := n.sendUntil(t, queue, end)
		n.redis.Restart(t, n.args...)
		there := n.texts(t, queue)
		acked += len(answers)
		missing := 0
		for text, at := range answers {
			if !there[text] {
				missing++
				oldest = max(oldest, ended.Sub(at))
			}
		}
		lost += missing
		if missing > 0 {
			cutsWithLoss++
		}
	}
	t.Logf("%s: %d times, %d messages acknowledged, %d of them lost, in %d cuts, the oldest %s before",
		how, *cuts, acked, lost, cutsWithLoss, oldest.Round(time.Millisecond))
	switch {
	case acked == 0:
		t.Errorf("%s: no message was acknowledged", how)
	case limit == nothing && lost > 0:
		t.Errorf("%s: %d acknowledged messages are lost, want none", how, lost)
	case limit == all && lost == 0:
		t.Errorf("%s: nothing is lost, so the disk does not forget", how)
	case limit != nothing && oldest > limit:
		t.Errorf("%s: a message is lost that was acknowledged %s before, want at most %s", how, oldest, limit)
	}
}

func (n *node) create(t *testing.T, queue string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := n.queues.CreateQueue(ctx, &sidebusv1.CreateQueueRequest{Queue: &sidebusv1.Queue{Name: queue}}); err != nil {
		t.Fatal(err)
	}
}

// sendUntil sends for some seconds until it ends Redis. It returns when each message was acknowledged, and when Redis
// ended.
func (n *node) sendUntil(t *testing.T, queue string, end func()) (answers map[string]time.Time, ended time.Time) {
	t.Helper()
	answers = map[string]time.Time{}
	var mu sync.Mutex
	var work sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	for sender := range senders {
		work.Go(func() {
			for number := 0; ctx.Err() == nil; number++ {
				text := fmt.Sprintf("%d-%d", sender, number)
				_, err := n.messages.Send(ctx, &sidebusv1.SendRequest{Target: "queues/" + queue, Messages: []*sidebusv1.Message{
					{MessageId: proto.String(text), Content: &sidebusv1.Message_Text{Text: text}},
				}})
				if err != nil {
					rest(ctx)
					continue
				}
				mu.Lock()
				answers[text] = time.Now()
				mu.Unlock()
			}
		})
	}
	// Long enough for the longest window, and at any time between two syncs.
	<-time.After(1500*time.Millisecond + 2*n.syncTime + time.Duration(n.rng.Int64N(int64(2*time.Second))))
	ended = time.Now()
	end()
	stop()
	work.Wait()
	return answers, ended
}

// rest lets Redis come back.
func rest(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(10 * time.Millisecond):
	}
}

// texts returns the messages of a queue; none if the queue is lost too, because Redis had not written it yet.
func (n *node) texts(t *testing.T, queue string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for from := int64(0); ; {
		var got *sidebusv1.PeekResponse
		sidecartest.Eventually(t, "Redis is there again", func() (ok bool) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			var err error
			got, err = n.messages.Peek(ctx, &sidebusv1.PeekRequest{
				Source: "queues/" + queue, FromSequenceNumber: proto.Int64(from), MaxMessages: proto.Int32(page),
			})
			return err == nil || status.Code(err) == codes.NotFound
		})
		if len(got.GetMessages()) == 0 {
			return found
		}
		for _, m := range got.GetMessages() {
			found[m.GetMessageId()] = true
			from = m.GetSequenceNumber() + 1
		}
	}
}
