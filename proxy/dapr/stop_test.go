package dapr

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	proto "github.com/dapr/dapr/pkg/proto/components/v1"

	"github.com/sidebus/sidebus/test/apptest"
)

// At whatever moment the sidecar stops, no message waits for the end of its lock: what was handed over meanwhile is
// given back, or settled by the answer of the runtime. What was given back is not counted.
func TestDAPR_6_AStopAtAnyMomentLeavesNoLock(t *testing.T) {
	t.Parallel()
	for round := range 40 {
		seed := rand.Uint64()
		t.Run(fmt.Sprint(round, " seed ", seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // no secret
			inBubble(t, func(t *testing.T, b *bed) {
				r := b.begin("entityKind", "queue", "requireSessions", fmt.Sprint(round%2 == 0), "maxConcurrentSessions", fmt.Sprint(1+random.IntN(8)),
					"maxConcurrentHandlers", fmt.Sprint(1+random.IntN(20)))
				f := r.subscribe("orders")
				synctest.Wait()
				takes, answers := time.Duration(random.IntN(5))*time.Millisecond, 0.5+random.Float64()/2
				var work sync.WaitGroup
				quit := make(chan struct{})
				work.Go(func() { // the app, which leaves some without an answer
					for {
						select {
						case response := <-f.comes:
							<-time.After(takes)
							if rand.Float64() < answers { //nolint:gosec // no secret
								_ = f.stream.Send(&proto.PullMessagesRequest{AckMessageId: response.GetId()})
							}
						case <-quit:
							return
						}
					}
				})
				apptest.StopAtAnyMoment(t, random, b.Broker, "orders", func() {
					b.server.stop.Do(func() { close(b.server.stopping) })
					if err := <-f.ended; err != nil {
						t.Log(err) // how it ends is for other tests
					}
					close(quit)
					work.Wait()
					b.pass(time.Millisecond)
				})
			})
		})
	}
}
