//go:build unix

package embedded

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T, dir string) *Server {
	t.Helper()
	server, err := Start(t.Context(), dir, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	return server
}

// command sends one inline command and gives the answer.
func command(t *testing.T, s *Server, text string) string {
	t.Helper()
	return talk(s.socket.path, text+"\r\n")
}

func TestStartAnswersAndKeepsData(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	server := start(t, dir)
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("data directory: got %v, %v; want mode 0700", info.Mode(), err)
	}
	if got := command(t, server, "SET k v"); !strings.HasPrefix(got, "+OK") {
		t.Fatalf("SET: got %q", got)
	}
	server.Stop()
	if _, err := net.Dial("unix", filepath.Join(dir, socketName)); err == nil {
		t.Error("the server still answers after Stop")
	}

	server = start(t, dir)
	defer server.Stop()
	// It may still be loading: to say so is an answer too.
	eventually(t, func() bool { return !strings.HasPrefix(command(t, server, "PING"), "-LOADING") })
	if got := command(t, server, "GET k"); !strings.Contains(got, "v") {
		t.Errorf("GET after a restart: got %q, want v", got)
	}
	settings := map[string]string{
		"appendonly": "yes", "appendfsync": "everysec", "maxmemory-policy": "noeviction", "port": "0", "save": "",
	}
	for name, want := range settings {
		lines := strings.Split(command(t, server, "CONFIG GET "+name), "\r\n")
		if len(lines) < 5 || lines[4] != want {
			t.Errorf("%s: got %q, want %q", name, lines, want)
		}
	}
}

// A directory of a version before is closed to other users, and so is all the server writes.
func TestAUTH_3_DataIsForThisUserAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files := filepath.Join(dir, filesName)
	for path, mode := range map[string]os.FileMode{dir: 0o755, files: 0o755} {
		if err := os.MkdirAll(path, mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil { //nolint:gosec // what is to be mended
			t.Fatal(err)
		}
	}
	old := filepath.Join(files, "left.aof")
	if err := os.WriteFile(old, nil, 0o644); err != nil { //nolint:gosec // what is to be mended
		t.Fatal(err)
	}
	server := start(t, dir)
	defer server.Stop()
	if got := command(t, server, "SET k v"); !strings.HasPrefix(got, "+OK") {
		t.Fatalf("SET: got %q", got)
	}
	seen := 0
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil && info.Mode()&0o077 != 0 {
			t.Errorf("%s has mode %s, others must have no right", path, info.Mode())
		}
		seen++
		return err
	})
	if err != nil || seen < 6 { // two directories, two locks, the socket, the files
		t.Errorf("saw %d files: %v", seen, err)
	}
}

func TestAUTH_3_ADirectoryThatOthersUseIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // what is to be refused
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "letter"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	server, err := Start(t.Context(), dir, slog.New(slog.DiscardHandler))
	if err == nil {
		server.Stop()
	}
	if err == nil || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "0700") {
		t.Errorf("got %v, want an error that names %s and the mode to give", err, dir)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the directory was changed: %v, %v", info.Mode(), err)
	}
	start(t, filepath.Join(dir, "below")).Stop()
}

func TestSecondSidecarIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := start(t, dir)
	defer server.Stop()
	_, err := Start(t.Context(), dir, slog.New(slog.DiscardHandler))
	if !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), dir) {
		t.Errorf("second Start: got %v, want ErrInUse that names %s", err, dir)
	}
}

func TestServerThatDiesIsStartedAgain(t *testing.T) {
	t.Parallel()
	server := start(t, t.TempDir())
	defer server.Stop()
	command(t, server, "SET k v")
	before := server.child.Load().Pid
	if err := syscall.Kill(before, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return strings.Contains(command(t, server, "GET k"), "v") })
	if after := server.child.Load().Pid; after == before {
		t.Error("the same process answers")
	}
}

func TestLeftOverServerIsStopped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	// A server whose sidecar is gone: it runs on the directory and holds the server's lock alone.
	lock, held, err := tryLock(filepath.Join(dir, "server.lock"))
	if err != nil || held {
		t.Fatal(held, err)
	}
	program, err := findProgram()
	if err != nil {
		t.Fatal(err)
	}
	left := exec.Command(program, arguments()...)
	left.Dir, left.ExtraFiles = dir, []*os.File{lock}
	if err := left.Start(); err != nil {
		t.Fatal(err)
	}
	_ = lock.Close()
	eventually(t, func() bool { return answers(filepath.Join(dir, socketName)) })

	server := start(t, dir)
	defer server.Stop()
	if err := left.Wait(); err != nil {
		t.Errorf("the left-over server did not end in order: %v", err)
	}
}

func TestLongDataDir(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 25), strings.Repeat("path", 25))
	server := start(t, dir)
	if got := command(t, server, "PING"); !strings.HasPrefix(got, "+PONG") {
		t.Errorf("PING: got %q", got)
	}
	temp := server.socket.temp
	server.Stop()
	if _, err := os.Stat(temp); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the short path %q is left behind: %v", temp, err)
	}
}

func TestStartReportsWhatTheServerSaid(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	// A directory in the place of the append-only manifest makes the server give up.
	if err := os.MkdirAll(filepath.Join(dir, "appendonlydir", "appendonly.aof.manifest"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), dir, slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), "manifest") {
		t.Errorf("got %v, want the server's own words", err)
	}
	// The failure must leave no lock behind.
	if err := os.RemoveAll(filepath.Join(dir, "appendonlydir")); err != nil {
		t.Fatal(err)
	}
	start(t, dir).Stop()
}

func TestStartEndsWithItsContext(t *testing.T) {
	t.Parallel()
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	server, err := Start(ctx, t.TempDir(), slog.New(slog.DiscardHandler))
	if err == nil {
		server.Stop() // it answered before the context was looked at
		return
	}
	if !errors.Is(err, why) {
		t.Errorf("got %v, want %v", err, why)
	}
}

func TestNoServerOnPath(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := Start(t.Context(), t.TempDir(), slog.New(slog.DiscardHandler)); !errors.Is(err, ErrNoServer) {
		t.Errorf("got %v, want ErrNoServer", err)
	}
}

// eventually asks until the answer is yes.
func eventually(t *testing.T, yes func() bool) {
	t.Helper()
	deadline := time.NewTimer(2 * time.Minute)
	defer deadline.Stop()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for !yes() {
		select {
		case <-look.C:
		case <-deadline.C:
			t.Fatal("it did not happen")
		}
	}
}
