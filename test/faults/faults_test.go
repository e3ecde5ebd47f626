package faults

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// atEachLevel runs something at each level of durability that was asked for.
func atEachLevel(t *testing.T, run func(t *testing.T, level string)) {
	t.Helper()
	for level := range strings.SplitSeq(*levels, ",") {
		t.Run(level, func(t *testing.T) { run(t, level) })
	}
}

// With an append-only file that is written before each answer, nothing that was acknowledged is lost or comes again
// (I1, I2). If that file ends at any byte, sidecars carry on from there: all that is kept fits together, and everything
// can be received.
func TestDUR_4_FaultsOfOneRedis(t *testing.T) {
	t.Parallel()
	atEachLevel(t, func(t *testing.T, level string) {
		t.Helper()
		folder := filepath.Join(t.TempDir(), "data")
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		namespace := play(t, level, startOne(t, "--appendfsync", "always", "--dir", folder))
		tearAll(t, folder, namespace)
	})
}

// With a file that is written every second, only what was acknowledged shortly before a kill is lost.
func TestDUR_4_FaultsOfOneRedisEverySecond(t *testing.T) {
	t.Parallel()
	atEachLevel(t, func(t *testing.T, level string) {
		t.Helper()
		on := startOne(t, "--appendfsync", "everysec")
		on.forgetful, on.window = true, everysec
		play(t, level, on)
	})
}

// The clocks of the pods do not matter: locks last as long as they should while those are an hour ahead of Redis.
func TestLOCK_1_FaultsWithPodsAnHourAhead(t *testing.T) {
	t.Parallel()
	atEachLevel(t, func(t *testing.T, level string) {
		t.Helper()
		play(t, level, anHourBehind(t))
	})
}

// A failover loses what its replica has not heard of, and nothing else.
func TestDUR_4_FaultsOfSentinels(t *testing.T) {
	t.Parallel()
	atEachLevel(t, func(t *testing.T, level string) {
		t.Helper()
		play(t, level, startSentinels(t))
	})
}

// Slots move, half and wholly, and primaries die and hang. A move loses nothing.
func TestDUR_4_FaultsOfACluster(t *testing.T) {
	t.Parallel()
	atEachLevel(t, func(t *testing.T, level string) {
		t.Helper()
		play(t, level, startCluster(t))
	})
}
