package idlepages

import "testing"

// Memory is returned once when load has ended, and not again until there was load in between.
func TestEndOfLoad(t *testing.T) {
	t.Parallel()
	var l load
	allocated := uint64(0)
	for i, step := range []struct {
		garbage uint64
		ended   bool
	}{
		{50 << 20, false},
		{idleGarbage - 1, true},
		{0, false},
		{100, false},
		{idleGarbage, false},
		{500 << 20, false},
		{0, true},
		{0, false},
	} {
		allocated += step.garbage
		if got := l.hasEnded(allocated); got != step.ended {
			t.Errorf("step %d: load has ended: %t, want %t", i, got, step.ended)
		}
	}
}
