package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

// ownCPU returns the processor time of this process, which is the client.
func ownCPU() time.Duration {
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

const tick = 10 * time.Millisecond // of /proc

// cpuOf returns the processor time of another process; 0 where there is no /proc.
func cpuOf(pid int) time.Duration {
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
