package push

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/sidebus/sidebus/test/apptest"
)

// At whatever moment the sidecar stops, no message waits for the end of its lock: what was handed over meanwhile is
// given back, or settled by the app's answer. What was given back is not counted.
func TestRECV_7_AStopAtAnyMomentLeavesNoLock(t *testing.T) {
	t.Parallel()
	for round := range 40 {
		seed := rand.Uint64()
		t.Run(fmt.Sprint(round, " seed ", seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // no secret
			inBubble(t, func(t *testing.T, b *bed) {
				queue := []string{"orders", "tales"}[round%2]
				takes := time.Duration(random.IntN(20)) * time.Millisecond
				app := func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body) // else it is not told that the caller went away
					select {
					case <-time.After(takes):
						w.WriteHeader(http.StatusOK)
					case <-r.Context().Done():
					}
				}
				b.begin(Handler{Source: "queues/" + queue, MaxConcurrent: 1 + random.IntN(8), MaxConcurrentSessions: 1 + random.IntN(8)}, app)
				apptest.StopAtAnyMoment(t, random, b.Broker, queue, func() {
					b.stop()
					<-b.over
				})
			})
		})
	}
}
