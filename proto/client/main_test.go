package client_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sidebus/sidebus/proto/client"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// patience bounds everything that tests wait for. It only ends a test that hangs.
const patience = 2 * time.Minute

// target is the sidecar that examples and tests share.
var target string

// binary is sidebus, built from this repository: the module of the client must not import that of the sidecar.
var binary string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "sb-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "sidebus")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", binary, "./cmd/sidebus")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build sidebus: %v\n%s", err, out)
		return 1
	}
	shared := &sidecar{dir: dir}
	if err := shared.start(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	target = shared.target()
	code := m.Run()
	shared.kill()
	if code != 0 {
		fmt.Fprintf(os.Stderr, "log of the sidecar:\n%s", shared.log.String())
	} else if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// sidecar is a "sidebus serve" process with its messages in memory. It can be killed and started again at the same
// address.
type sidecar struct {
	dir     string
	command *exec.Cmd
	log     safeBuffer
}

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func (s *sidecar) target() string { return "unix://" + filepath.Join(s.dir, "grpc") }

func (s *sidecar) start(ctx context.Context, args ...string) error {
	admin := "unix://" + filepath.Join(s.dir, "admin")
	s.command = exec.Command(binary, append([]string{
		"serve", "--store", "memory", "--log-format", "text", "--grpc-addr", s.target(), "--http-addr", "unix://" + filepath.Join(s.dir, "http"),
		"--admin-addr", admin,
	}, args...)...)
	s.command.Dir, s.command.Env = s.dir, withoutSidebus(os.Environ())
	s.command.Stderr = &s.log
	if err := s.command.Start(); err != nil {
		return err
	}
	wait := exec.CommandContext(ctx, binary, "wait", "--admin-addr", admin, "--timeout", patience.String())
	wait.Env = s.command.Env
	if out, err := wait.CombinedOutput(); err != nil {
		s.kill()
		return fmt.Errorf("sidebus wait: %w\n%s%s", err, out, s.log.String())
	}
	return nil
}

func withoutSidebus(environment []string) (kept []string) {
	for _, variable := range environment {
		if !strings.HasPrefix(variable, "SIDEBUS_") {
			kept = append(kept, variable)
		}
	}
	return kept
}

func (s *sidecar) kill() {
	_ = s.command.Process.Kill()
	_ = s.command.Wait()
}

// startSidecar runs a sidecar of its own until the test ends.
func startSidecar(t *testing.T, args ...string) *sidecar {
	t.Helper()
	dir, err := os.MkdirTemp("", "sb-") //nolint:usetesting // t.TempDir is too long for the path of a socket
	if err != nil {
		t.Fatal(err)
	}
	s := &sidecar{dir: dir}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := s.start(t.Context(), args...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.kill() })
	return s
}

// connect makes a client of a sidecar until the test ends.
func connect(t *testing.T, target string, options *client.Options) *client.Client {
	t.Helper()
	c, err := client.New(target, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// mustQueue creates a queue in place of one of before. It fails the process, so that examples need no code for that.
func mustQueue(ctx context.Context, c *client.Client, name string, queue *sidebusv1.Queue) {
	_, _ = c.Admin().DeleteQueue(ctx, &sidebusv1.DeleteQueueRequest{Name: "queues/" + name})
	if _, err := c.Admin().EnsureQueue(ctx, &sidebusv1.EnsureQueueRequest{Name: "queues/" + name, Queue: queue}); err != nil {
		panic(err)
	}
}

// exampleQueue makes a client for an example, and a sender to a new queue. It fails the process as mustQueue does.
func exampleQueue(ctx context.Context, name string, queue *sidebusv1.Queue) (*client.Client, *client.Sender) {
	sidebus, err := client.New(target, nil)
	if err != nil {
		panic(err)
	}
	mustQueue(ctx, sidebus, name, queue)
	sender, err := sidebus.NewSender(name, nil)
	if err != nil {
		panic(err)
	}
	return sidebus, sender
}

// queueOf makes a queue for a test, with its name.
func queueOf(t *testing.T, c *client.Client, queue *sidebusv1.Queue) string {
	t.Helper()
	name := unique(t)
	mustQueue(t.Context(), c, name, queue)
	return name
}

var names atomic.Int64

// unique returns a name for an entity, which no other run of the test has.
func unique(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("%s-%d", strings.ToLower(t.Name()), names.Add(1))
}

func newSender(t *testing.T, c *client.Client, name string) *client.Sender {
	t.Helper()
	s, err := c.NewSender(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newReceiver(t *testing.T, c *client.Client, queue string, options *client.ReceiverOptions) *client.Receiver {
	t.Helper()
	r, err := c.NewReceiverForQueue(queue, options)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func text(body string) *client.Message {
	return &client.Message{Body: []byte(body), BodyType: client.BodyText}
}

func send(t *testing.T, c *client.Client, queue string, bodies ...string) {
	t.Helper()
	for _, body := range bodies {
		if err := newSender(t, c, queue).SendMessage(t.Context(), text(body), nil); err != nil {
			t.Fatal(err)
		}
	}
}

// receiveOne receives one message, and fails when none comes.
func receiveOne(t *testing.T, r interface {
	ReceiveMessages(ctx context.Context, most int, options *client.ReceiveMessagesOptions) ([]*client.ReceivedMessage, error)
},
) *client.ReceivedMessage {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	messages, err := r.ReceiveMessages(ctx, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	return messages[0]
}
