package embedded

import "syscall"

// processAttributes makes the child its own process group, so that Ctrl-C in a terminal reaches the sidecar alone and
// the server outlives the drain, and has the kernel end it when the sidecar is killed. The signal is SIGTERM and not
// SIGKILL, because a server may hold back writes for a moment while its file is being synced.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
