package faults

import (
	"time"

	"golang.org/x/sys/unix"
)

// fillDisk lets Redis write no byte more to its files. With a file that is written before each answer it ends at once;
// with one that is written every second it refuses to change anything until there is room again.
func (o *one) fillDisk(r *run) (time.Duration, func()) {
	r.t.Helper()
	o.limitFiles(r, 1)
	return r.between(500*time.Millisecond, 3*time.Second), func() {
		r.t.Helper()
		if o.HasExited() {
			o.Restart(r.t, o.args...)
			return
		}
		o.limitFiles(r, unix.RLIM_INFINITY)
	}
}

func (o *one) limitFiles(r *run, bytes uint64) {
	r.t.Helper()
	limit := unix.Rlimit{Cur: bytes, Max: unix.RLIM_INFINITY}
	if err := unix.Prlimit(o.PID(), unix.RLIMIT_FSIZE, &limit, nil); err != nil {
		r.t.Error(err)
	}
}
