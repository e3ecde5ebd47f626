package idlepages

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// unmapProgram drops the pages of the program file from this process. It does nothing if /proc cannot be read.
func unmapProgram() {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	mappings, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return
	}
	for _, p := range unchanged(mappings, program) {
		_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, p.begin, p.end-p.begin, syscall.MADV_DONTNEED)
	}
}

// part is a range of addresses.
type part struct{ begin, end uintptr }

// unchanged returns where a file is mapped without permission to write and without a page that differs from the file,
// in the form of /proc/<pid>/smaps. Pages that differ, because of relocations or a debugger, exist nowhere else.
func unchanged(smaps []byte, file string) []part {
	var parts []part
	var candidate *part
	for lines := bufio.NewScanner(bytes.NewReader(smaps)); lines.Scan(); {
		line := lines.Text()
		var p part
		var mode string
		if n, _ := fmt.Sscanf(line, "%x-%x %s", &p.begin, &p.end, &mode); n == 3 {
			candidate = nil
			if strings.HasSuffix(line, " "+file) && strings.HasPrefix(mode, "r-") {
				candidate = &p
			}
			continue
		}
		var kib int
		if n, _ := fmt.Sscanf(line, "Anonymous: %d kB", &kib); n == 1 && kib == 0 && candidate != nil {
			parts = append(parts, *candidate)
		}
	}
	return parts
}
