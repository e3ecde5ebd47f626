package push

import (
	"bytes"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/sidebus/sidebus/semantics"
)

// The app gets each message of any size once. At rest just those are locked that it has calls for.
func TestRECV_14_EachOnceOfAllSizes(t *testing.T) {
	t.Parallel()
	const messages, atATime = 1000, 16
	inBubble(t, func(t *testing.T, b *bed) {
		_, err := b.UpdateEntity(t.Context(), semantics.QueueKind, "orders", semantics.Options{MaxMessageSizeInKilobytes: 2 << 10}, []string{"maxMessageSizeInKilobytes"})
		b.ok(err)
		random := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // the same each time
		for i := range messages {
			size := int(math.Exp(random.Float64() * math.Log(255<<10)))
			if i == messages/2 {
				size = 1 << 20
			}
			text := strconv.Itoa(i+1) + " "
			b.sendMessage("orders", &semantics.Message{Body: append([]byte(text), make([]byte, max(size-len(text), 0))...)})
		}
		var mu sync.Mutex
		came, gate := map[string]int{}, make(chan struct{})
		b.begin(Handler{MaxConcurrent: atATime}, func(_ http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			number, _, _ := bytes.Cut(body, []byte(" "))
			mu.Lock()
			came[string(number)]++
			mu.Unlock()
			<-gate
		})
		for done := 0; done < messages; {
			synctest.Wait()
			r, err := b.Runtime(t.Context(), semantics.QueueKind, "orders")
			b.ok(err)
			mu.Lock()
			calls := len(came) - done
			mu.Unlock()
			if want := min(atATime, messages-done); int(r.Locked) != calls || calls != want {
				t.Fatalf("%d are locked, %d calls are made, want %d; %d done", r.Locked, calls, want, done)
			}
			for range 1 + random.IntN(calls) {
				gate <- struct{}{}
				done++
			}
		}
		synctest.Wait()
		b.wantCounts("orders", nothing)
		for number, times := range came {
			if times != 1 {
				t.Errorf("message %s came %d times", number, times)
			}
		}
	})
}
