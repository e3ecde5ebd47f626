//go:build unix

package embedded

import (
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// child is one run of the server program.
type child struct {
	cmd     *exec.Cmd
	output  *output
	started time.Time
	gone    chan struct{} // closed when the process has ended and was waited for
}

// spawn starts the program. The goroutine that starts it keeps its OS thread until the child has gone: the kernel
// sends the parent-death signal when the thread that made the child ends, not when the process does.
func (s *Server) spawn() (*child, error) {
	c := &child{output: &output{logger: s.logger}, started: time.Now(), gone: make(chan struct{})}
	//nolint:gosec,noctx // a fixed name found on PATH; ends by keep, not by a context
	c.cmd = exec.Command(s.program, append(arguments(), s.more...)...)
	c.cmd.Dir = s.dir
	c.cmd.Env = slices.DeleteFunc(
		os.Environ(),
		func(variable string) bool { return strings.HasPrefix(variable, "SIDEBUS_") },
	) // passwords among them
	c.cmd.Stdout, c.cmd.Stderr = c.output, c.output
	c.cmd.ExtraFiles = []*os.File{s.locks.server} // held for as long as the server, or a child it forked, lives
	c.cmd.SysProcAttr = processAttributes()

	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := privately(c.cmd.Start)
		if err == nil {
			s.child.Store(c.cmd.Process)
		}
		started <- err
		if err == nil {
			_ = c.cmd.Wait() // see child.state
			close(c.gone)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return c, nil
}

// arguments makes a server that only its sidecar can reach, that keeps what it is given, and that never drops keys.
// Paths are relative to the data directory, which is its working directory.
func arguments() []string {
	return []string{
		"--port", "0",
		"--unixsocket", socketName, "--unixsocketperm", "600",
		"--appendonly", "yes", "--appendfsync", "everysec", "--save", "",
		"--maxmemory-policy", "noeviction",
		"--stream-node-max-bytes", "16384", // less memory for each message, see docs/operations.md
		"--daemonize", "no", "--logfile", "",
	}
}

// end asks the process to finish, which makes it write and sync its file, and insists after a while.
func (c *child) end() {
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	patience := time.NewTimer(stopPatience)
	defer patience.Stop()
	select {
	case <-c.gone:
	case <-patience.C:
		_ = c.cmd.Process.Kill()
		<-c.gone
	}
}

// state returns how the process ended. Call it only after gone is closed.
func (c *child) state() string { return c.cmd.ProcessState.String() }
