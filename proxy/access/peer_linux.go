package access

import (
	"net"

	"golang.org/x/sys/unix"
)

// uidOf returns the user id of the process that connected, as the kernel noted it then; nil if it is not known.
func uidOf(conn *net.UnixConn) *int {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil
	}
	var credentials *unix.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) {
		credentials, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) //nolint:gosec // a small number
	}); err != nil || failed != nil {
		return nil
	}
	uid := int(credentials.Uid)
	return &uid
}
