package idlepages

import (
	"os"
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

// A process goes on as before when its program is unmapped.
func TestUnmappedProgramGoesOn(t *testing.T) {
	t.Parallel()
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		t.Skip("there is no /proc")
	}
	mappings, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	if len(unchanged(mappings, program)) == 0 {
		t.Error("no part of the program is found")
	}
	for range 3 {
		unmapProgram()
		if text := strings.Repeat("a", 3); strings.ToUpper(text) != "AAA" {
			t.Error(text)
		}
	}
}
