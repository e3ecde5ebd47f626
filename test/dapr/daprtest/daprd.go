package daprtest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	sdk "github.com/dapr/go-sdk/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/sidebus/sidebus/test/sidecartest"
)

// Options say what daprd runs with.
type Options struct {
	AppID     string   // "orders" when empty
	App       *App     // nil: there is none
	Resources string   // folder of Component and other files
	Sockets   string   // folder of pluggable components' sockets
	GRPCPort  int      // of daprd's API; 0: a free one
	Flags     []string // further ones
	User      uint32   // whom it runs as; 0: as the tests
	Binary    string   // empty: Binary
}

// Daprd is one daprd process.
type Daprd struct {
	HTTP, GRPC string // addresses of its APIs, host:port
	AppID      string

	command *exec.Cmd
	log     *log
	exited  chan struct{}
}

// log keeps what a process writes.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write never fails.
func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// FreePort returns a port on which nothing listens.
func FreePort(t testing.TB) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

// Launch starts daprd and does not wait. It is killed when the test ends.
func Launch(t testing.TB, o Options) *Daprd {
	t.Helper()
	if o.AppID == "" {
		o.AppID = "orders"
	}
	if o.GRPCPort == 0 {
		o.GRPCPort = FreePort(t)
	}
	if o.Binary == "" {
		o.Binary = Binary(t)
	}
	httpPort := FreePort(t)
	d := &Daprd{
		HTTP: fmt.Sprintf("127.0.0.1:%d", httpPort), GRPC: fmt.Sprintf("127.0.0.1:%d", o.GRPCPort), AppID: o.AppID,
		log: &log{},
	}
	args := []string{
		"--app-id", o.AppID, "--resources-path", o.Resources,
		"--dapr-http-port", strconv.Itoa(httpPort), "--dapr-grpc-port", strconv.Itoa(o.GRPCPort), "--dapr-listen-addresses", "127.0.0.1",
		"--dapr-internal-grpc-listen-address", "127.0.0.1",
	}
	if o.App != nil {
		args = append(args, "--app-port", strconv.Itoa(o.App.Port), "--app-protocol", o.App.protocol)
	}
	d.command = exec.Command(o.Binary, append(args, o.Flags...)...)
	d.command.Dir = o.Resources
	d.command.Env = append(sidecartest.Environment(), "DAPR_COMPONENTS_SOCKETS_FOLDER="+o.Sockets)
	d.command.Stdout, d.command.Stderr = d.log, d.log
	if o.User != 0 {
		d.command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: o.User, Gid: o.User}}
	}
	d.exited = sidecartest.Begin(t, d.command, func() string { return "log of daprd at " + d.HTTP + ":\n" + d.Log() })
	return d
}

// Start is Launch that waits until daprd is ready, which it is when its app is and its subscriptions are open.
func Start(t testing.TB, o Options) *Daprd {
	t.Helper()
	for tries := 3; ; tries-- {
		d := Launch(t, o)
		if d.isReady(t) {
			return d
		}
		// a port that was free may not be so any more
		if tries == 0 || !strings.Contains(d.Log(), "address already in use") {
			t.Fatalf("daprd ended: %s", d.command.ProcessState)
		}
	}
}

// isReady waits until daprd is ready, and reports false when it has ended.
func (d *Daprd) isReady(t testing.TB) bool {
	t.Helper()
	hasEnded := false
	sidecartest.Eventually(t, "daprd is ready", func() bool {
		select {
		case <-d.exited:
			hasEnded = true
		default:
		}
		return hasEnded || d.Call(t.Context(), http.MethodGet, "/v1.0/healthz", "", nil).Status == http.StatusNoContent
	})
	return !hasEnded
}

// Answer is what daprd's HTTP API answered.
type Answer struct {
	Status int // 0: there was no answer
	Text   string
}

// client keeps no connections, so that a test that ends leaves no goroutines.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// Call makes one call of daprd's HTTP API.
func (d *Daprd) Call(ctx context.Context, method, path, body string, headers map[string]string) Answer {
	ctx, cancel := context.WithTimeout(ctx, sidecartest.Patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, "http://"+d.HTTP+path, strings.NewReader(body))
	if err != nil {
		return Answer{Text: err.Error()}
	}
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	response, err := client.Do(request)
	if err != nil {
		return Answer{Text: err.Error()}
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return Answer{Text: err.Error()}
	}
	return Answer{Status: response.StatusCode, Text: string(text)}
}

// Client returns a client of the Go SDK, which is closed with the test.
func (d *Daprd) Client(t testing.TB) sdk.Client {
	t.Helper()
	conn, err := grpc.NewClient(d.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	c := sdk.NewClientWithConnection(conn)
	t.Cleanup(c.Close)
	return c
}

// Signal sends a signal to daprd.
func (d *Daprd) Signal(signal syscall.Signal) { _ = d.command.Process.Signal(signal) }

// Kill ends daprd with SIGKILL and waits for its end.
func (d *Daprd) Kill() {
	d.Signal(syscall.SIGKILL)
	<-d.exited
}

// Exit waits for daprd's own end and returns its exit code.
func (d *Daprd) Exit(t testing.TB) int {
	t.Helper()
	patience := time.NewTimer(sidecartest.Patience)
	defer patience.Stop()
	select {
	case <-d.exited:
		return d.command.ProcessState.ExitCode()
	case <-patience.C:
		t.Fatal("daprd does not end")
		return -1
	}
}

// Log is what daprd has written so far.
func (d *Daprd) Log() string { return d.log.String() }

// Component returns the file of a Component resource.
func Component(name, kind string, metadata map[string]string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: dapr.io/v1alpha1\nkind: Component\nmetadata:\n  name: %s\nspec:\n  type: %s\n  version: v1\n", name, kind)
	if len(metadata) == 0 {
		return b.String()
	}
	b.WriteString("  metadata:\n")
	for key, value := range metadata {
		fmt.Fprintf(&b, "    - name: %s\n      value: %q\n", key, value)
	}
	return b.String()
}

// Resources writes files of resources into a folder of their own.
func Resources(t testing.TB, files ...string) string {
	t.Helper()
	folder := t.TempDir()
	for i, text := range files {
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("%d.yaml", i)), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// Sockets makes a folder for sockets. A socket's path must be short, shorter than that of t.TempDir.
func Sockets(t testing.TB) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "sbd-") //nolint:usetesting // too long
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(folder, 0o755); err != nil { //nolint:gosec // daprd may run as another user
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	return folder
}
