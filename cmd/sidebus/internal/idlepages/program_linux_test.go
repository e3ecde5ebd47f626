package idlepages

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const smaps = `00400000-00500000 r-xp 00000000 fe:00 99 /bin/sidebus
Rss:                 900 kB
Anonymous:             0 kB
VmFlags: rd ex
00500000-00600000 r--p 00100000 fe:00 99 /bin/sidebus
Anonymous:             4 kB
00600000-00700000 r--p 00200000 fe:00 99 /bin/sidebus
Anonymous:             0 kB
00700000-00800000 rw-p 00300000 fe:00 99 /bin/sidebus
Anonymous:             0 kB
7f0000000000-7f0000100000 r-xp 00000000 fe:00 77 /lib/libc.so.6
Anonymous:             0 kB
7f0000200000-7f0000300000 r--p 00000000 00:00 0
Anonymous:             0 kB
`

// Only what the program file has, unchanged and not writable, is unmapped.
func TestUnchangedParts(t *testing.T) {
	t.Parallel()
	want := []part{{0x400000, 0x500000}, {0x600000, 0x700000}}
	if got := unchanged([]byte(smaps), "/bin/sidebus"); !slices.Equal(got, want) {
		t.Errorf("got %x, want %x", got, want)
	}
}

// A process goes on as before when its program is unmapped, also when its file was deleted, as an upgrade in place does.
func TestUnmappedProgramGoesOn(t *testing.T) {
	t.Parallel()
	const inCopy = "SIDEBUS_TEST_UNMAPS"
	if program := os.Getenv(inCopy); program != "" {
		unmapsItself(t, program)
		return
	}
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	upgraded := filepath.Join(t.TempDir(), "sidebus test")
	if err := os.WriteFile(upgraded, program, 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	command := exec.Command(upgraded, "-test.run=^TestUnmappedProgramGoesOn$")
	command.Env = append(os.Environ(), inCopy+"="+upgraded)
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// unmapsItself unmaps this process as it is, and then after another file has taken the place of its own.
func unmapsItself(t *testing.T, file string) {
	t.Helper()
	for _, isReplaced := range []bool{false, true} {
		if isReplaced {
			newer := file + ".new"
			if err := errors.Join(os.WriteFile(newer, []byte("newer"), 0o600), os.Rename(newer, file)); err != nil {
				t.Fatal(err)
			}
		}
		program, err := os.Readlink("/proc/self/exe")
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(program, " (deleted)") != isReplaced {
			t.Errorf("the program is %q: this proves nothing", program)
		}
		mappings, err := os.ReadFile("/proc/self/smaps")
		if err != nil {
			t.Fatal(err)
		}
		if len(unchanged(mappings, program)) == 0 {
			t.Errorf("no part of %q is found", program)
		}
		for range 3 {
			unmapProgram()
			if text := strings.Repeat("a", 3); strings.ToUpper(text) != "AAA" {
				t.Error(text)
			}
		}
	}
}
