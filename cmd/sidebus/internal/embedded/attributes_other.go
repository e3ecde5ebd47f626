//go:build unix && !linux

package embedded

import "syscall"

// processAttributes makes the child its own process group, so that Ctrl-C in a terminal reaches the sidecar alone. A
// server that outlives a killed sidecar is ended by the next start.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
