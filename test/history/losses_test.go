package history

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/test/sidecartest"
)

// lossRounds is how often Redis forgets in one history.
const lossRounds = 2

// However Redis forgets under running sidecars, and whatever its clock shows then, everything acknowledged from then on
// obeys every rule, and so does what was acknowledged so long before that it is still there (DUR-4). What a history
// does comes from its seed; what happens then is up to the machine.
func TestDUR_4_LossHistories(t *testing.T) {
	t.Parallel()
	playLosses(t, *histories, startInside(members))
}

// The same with so many sidecars that the messages of one entry, the copies of one body and the sessions of one turn come
// from, and go to, different ones.
func TestDUR_4_LossHistoriesOfManySidecars(t *testing.T) {
	t.Parallel()
	playLosses(t, (*histories+9)/10, startInside(150))
}

// The same with sidecars that are processes of their own, spoken to over gRPC and HTTP, and killed now and then.
func TestDUR_4_LossHistoriesOfProcesses(t *testing.T) {
	t.Parallel()
	sidecartest.Binary(t)
	playLosses(t, (*histories+1)/2, (*lossRun).startOutside) // each is twice the work
}

func playLosses(t *testing.T, count int, start func(*lossRun)) {
	t.Helper()
	if testing.Short() {
		count = min(count, 1)
	}
	var operations, losses, setBacks, kills, latest atomic.Int64
	t.Cleanup(func() {
		t.Logf("%d histories from seed %d on: %d operations, %d losses, %d with the clock set back, %d sidecars killed; upkeep at most %s late",
			count, *firstSeed, operations.Load(), losses.Load(), setBacks.Load(), kills.Load(), time.Duration(latest.Load()))
	})
	for i := range count {
		seed := *firstSeed + uint64(i)
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			name := t.Name()
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("to repeat: go test ./test/history -run '%s' -count=20 -seed=%d -histories=1", name, seed)
				}
			})
			r := newLossRun(t, seed)
			start(r)
			for number := range lossRounds {
				r.play(number, redistest.Losses[(int(seed)*lossRounds+number)%len(redistest.Losses)])
				r.checkRound()
			}
			r.checkSessions()
			operations.Add(int64(r.operations + len(r.calls)))
			losses.Add(int64(r.losses))
			setBacks.Add(int64(r.setBacks))
			kills.Add(int64(r.kills))
			for now := latest.Load(); int64(r.latest) > now && !latest.CompareAndSwap(now, int64(r.latest)); now = latest.Load() {
			}
		})
	}
}
