package faults

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/test/sidecartest"
)

// post is where applications find a sidecar, which may be replaced.
type post struct {
	now  atomic.Pointer[sidecar]
	line *line // to its Redis, nil: it has none to break
	url  string
}

// sidecar is one process with a connection to it.
type sidecar struct {
	*sidecartest.Sidecar
	number   uint16
	conn     *grpc.ClientConn
	messages sidebusv1.MessagesClient
	sessions sidebusv1.SessionsClient
	admin    sidebusv1.AdminClient
}

// any returns one of the sidecars.
func (r *run) any(rng *rand.Rand) *sidecar { return r.posts[rng.IntN(len(r.posts))].now.Load() }

// launch puts a new sidecar on a post.
func (r *run) launch(p *post) {
	r.t.Helper()
	// A socket of its own: the port of one that is gone may become that of another one, which its clients would then
	// find.
	r.launched++
	socket := "unix://" + filepath.Join(r.sockets, strconv.Itoa(r.launched))
	process := sidecartest.LaunchBinary(r.t, r.program(), "--store", p.url, "--namespace", r.namespace, "--grpc-addr", socket, "--drain-timeout", "500ms",
		"--durability", r.level)
	conn, err := grpc.NewClient(process.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(2*semantics.MaxMessageSize)))
	if err != nil {
		r.t.Fatal(err)
	}
	before := p.now.Swap(&sidecar{
		process, uint16(r.launched), conn, sidebusv1.NewMessagesClient(conn), sidebusv1.NewSessionsClient(conn), sidebusv1.NewAdminClient(conn),
	})
	if before != nil {
		_ = before.conn.Close()
	}
}

// program returns the binary of the next sidecar.
func (r *run) program() string {
	if *older != "" && r.launched%2 == 0 {
		return olderBinary(r.t)
	}
	return sidecartest.Binary(r.t)
}

var built struct {
	sync.Once

	folder string
	err    error
}

// olderBinary builds the older version.
func olderBinary(t *testing.T) string {
	t.Helper()
	built.Do(func() {
		if built.folder, built.err = os.MkdirTemp("", "sidebus-older-"); built.err != nil { //nolint:usetesting // outlives the first test
			return
		}
		command := exec.Command("sh", "-c", `git archive "$1" | tar -x -C "$2" && cd "$2" && go build -buildvcs=false -o sidebus ./cmd/sidebus`, "", *older, built.folder)
		command.Dir = "../.."
		if out, err := command.CombinedOutput(); err != nil {
			built.err = fmt.Errorf("%w: %s", err, out)
		}
	})
	if built.err != nil {
		t.Fatalf("build %s: %v", *older, built.err)
	}
	return filepath.Join(built.folder, "sidebus")
}

// killSidecar ends a sidecar with SIGKILL and starts another one.
func (r *run) killSidecar(p *post) {
	p.now.Load().Kill()
	r.killed++
	r.launch(p)
}

// reviveSidecars starts sidecars again that ended because no replica was there to confirm anything, as an orchestrator
// does. None ends for another reason.
func (r *run) reviveSidecars() {
	r.t.Helper()
	for _, p := range r.posts {
		s := p.now.Load()
		if !s.HasExited() {
			continue
		}
		if r.level == "memory" || !strings.Contains(s.Log(), "PRECONDITION_FAILED") {
			r.t.Errorf("a sidecar ended: %s", s.Log())
		}
		r.note("sidecar refused to start")
		r.launch(p)
	}
}

// drainSidecar ends a sidecar as an orchestrator does, with SIGTERM, and starts another one.
func (r *run) drainSidecar(p *post) {
	s := p.now.Load()
	r.ledger.draining(s.number)
	s.Signal(syscall.SIGTERM)
	if code := s.Exit(r.t); code != 0 && code != 1 { // 1: Redis did not answer
		r.t.Errorf("a drained sidecar ended with %d", code)
	}
	r.launch(p)
}
