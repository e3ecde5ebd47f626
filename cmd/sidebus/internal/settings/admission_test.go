package settings

import (
	"slices"
	"testing"
)

func TestAdmissionSettings(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"64MiB": 64 << 20, "2GiB": 2 << 30, "2048KiB": 2 << 20, "1048576": 1 << 20} {
		if n, err := (&Settings{RequestMemory: text}).RequestMemoryBytes(); err != nil || n != want {
			t.Errorf("%s: got %d, %v", text, n, err)
		}
	}
	names, err := (&Settings{AllowedHosts: "a, b.example,10.0.0.1"}).AllowedHostNames()
	if want := []string{"a", "b.example", "10.0.0.1"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("got %q, %v; want %q", names, err, want)
	}
	if n, err := (&Settings{RequestMemory: "auto"}).RequestMemoryBytes(); err != nil || n < minRequestMemory || n > autoRequestMemory {
		t.Errorf("auto: got %d, %v", n, err)
	}
}
