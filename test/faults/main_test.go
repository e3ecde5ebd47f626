// Package faults lets applications work through several real sidecars for a long time, breaks what is between and below
// them, and then looks at every single message: what was acknowledged came (I1, I2), what was completed never came
// again, what was sent once came as one message, in its order within a session (I4), to every subscription (I19), and
// had one holder at a time (I3, I5). Package history checks fewer messages in finer detail.
//
// A run sends -messages messages and makes at least as many kills as are asked for. It prints its seed; what goes wrong
// then also depends on the machine.
package faults

import (
	"flag"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/sidebus/sidebus/test/sidecartest"
)

var (
	firstSeed    = flag.Uint64("seed", 1, "seed of what is sent and of the faults")
	messages     = flag.Int("messages", 1000, "how many messages each run sends at least")
	sidecarKills = flag.Int("sidecar-kills", 2, "how many sidecars each run kills at least")
	redisKills   = flag.Int("redis-kills", 2, "how many times each run kills a Redis at least")
	gap          = flag.Duration("gap", 150*time.Millisecond, "how long it is on average from one fault to the next")
	crowds       = flag.Int("crowds", 1, "how many times as many senders, receivers and holders of sessions as usual there are")
	maxBatch     = flag.Int("batch", 200, "how many messages a send has at most")
	cuts         = flag.Int("cuts", 6, "at how many bytes an append-only file is torn")
	levels       = flag.String("durability", "memory", "levels of durability of the sidecars, such as memory,replica; each has a run of its own")
	older        = flag.String("older", "", "a revision of Sidebus; every other sidecar is of that version")
)

func TestMain(m *testing.M) {
	signal.Ignore(syscall.SIGXFSZ) // a Redis inherits it, so that a write fails that finds no room
	sidecartest.Main(m)
}
