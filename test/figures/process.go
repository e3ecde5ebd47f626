package figures

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

// OwnCPU returns the processor time of this process.
func OwnCPU() time.Duration {
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

const tick = 10 * time.Millisecond // of /proc

// CPUOf returns a function that reads the processor time of another process; 0 where there is no /proc.
func CPUOf(pid int) func() time.Duration {
	return func() time.Duration {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return 0
		}
		var user, system time.Duration
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')'):])) // the name may have spaces
		if _, err := fmt.Sscan(fields[12]+" "+fields[13], &user, &system); err != nil {
			return 0
		}
		return (user + system) * tick
	}
}

// ResidentMiB returns the resident memory of a process, and the part of it that are pages of files, above all of the
// program; 0 where there is no /proc.
func ResidentMiB(pid int) (all, files float64) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0
	}
	for line := range strings.Lines(string(status)) {
		_, _ = fmt.Sscanf(line, "VmRSS: %f kB", &all)
		_, _ = fmt.Sscanf(line, "RssFile: %f kB", &files)
	}
	return all / 1024, files / 1024
}
