package settings

import (
	"slices"
	"testing"

	"github.com/sidebus/sidebus/proxy"
)

func TestAdmissionSettings(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"64MiB": 64 << 20, "2GiB": 2 << 30, "2048KiB": 2 << 20, "1048576": 1 << 20} {
		s := Settings{MaxConnections: 20, RequestMemory: text, AllowedHosts: "a, b.example,10.0.0.1"}
		var config proxy.Config
		if err := s.Admission(&config); err != nil || config.RequestMemory != want || config.MaxConnections != 20 ||
			!slices.Equal(config.AllowedHosts, []string{"a", "b.example", "10.0.0.1"}) {
			t.Errorf("%s: got %+v, %v", text, config, err)
		}
	}
	if n, err := (&Settings{RequestMemory: "auto"}).requestMemory(); err != nil || n < minRequestMemory || n > proxy.DefaultRequestMemory {
		t.Errorf("auto: got %d, %v", n, err)
	}
}
