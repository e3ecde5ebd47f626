package figures

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// Machine describes the machine in one line: processor, cores, memory, system.
func Machine() string {
	var model string
	info, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(info)) {
		if name, text, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
			model = strings.TrimSpace(text)
		}
	}
	var kibibytes float64
	memory, _ := os.ReadFile("/proc/meminfo")
	_, _ = fmt.Sscanf(string(memory), "MemTotal: %f kB", &kibibytes)
	release, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	kernel, _, _ := strings.Cut(strings.TrimSpace(string(release)), "-")
	return fmt.Sprintf(
		"%s, %d cores, %.0f GiB, %s %s", model, runtime.NumCPU(), kibibytes/(1<<20), runtime.GOOS, kernel,
	)
}

// LoadAverage returns how many processes ran or waited to run in the last minute; 0 where there is no /proc.
func LoadAverage() (load float64) {
	text, _ := os.ReadFile("/proc/loadavg")
	_, _ = fmt.Sscan(string(text), &load)
	return load
}

// Commit returns the commit of the repository around the working folder, with "-dirty" when a file was changed.
func Commit(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty", "--exclude", "*").Output()
	if err != nil {
		return "unknown"
	}
	return string(bytes.TrimSpace(out))
}

// VersionOf returns the first word of what a program prints that looks like a version.
func VersionOf(ctx context.Context, program string, args ...string) string {
	out, err := exec.CommandContext(ctx, program, args...).Output()
	if err != nil {
		return "unknown"
	}
	for _, word := range strings.Fields(string(out)) {
		version := strings.TrimLeft(word, "v=go")
		if strings.Contains(version, ".") && version[0] >= '0' && version[0] <= '9' {
			return version
		}
	}
	return "unknown"
}
