package dapr

import (
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// The runtime gets each message of any size once. At rest just those are locked that it was given and has not answered.
func TestRECV_13_EachOnceOfAllSizes(t *testing.T) {
	t.Parallel()
	const messages = 1000
	inBubble(t, func(t *testing.T, b *bed) {
		r := b.begin("entityKind", "queue")
		r.send("orders", "0 ")
		_, err := b.UpdateEntity(t.Context(), semantics.QueueKind, "orders", semantics.Options{MaxMessageSizeInKilobytes: 2 << 10}, []string{"maxMessageSizeInKilobytes"})
		b.ok(err)
		random := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // the same each time
		for i := 1; i < messages; i++ {
			size := int(math.Exp(random.Float64() * math.Log(250<<10)))
			if i == messages/2 {
				size = 1 << 20
			}
			text := strconv.Itoa(i) + " "
			r.send("orders", text+strings.Repeat(".", max(size-len(text), 0)))
		}
		came := map[string]int{}
		f := r.subscribe("orders")
		for done := 0; done < messages; {
			b.pass(time.Second) // completions of messages that are acknowledged may wait for others
			var given []string
			for more := true; more; {
				select {
				case response := <-f.comes:
					f.note(response)
					given = append(given, string(response.GetData()))
				default:
					more = false
				}
			}
			counts, err := b.Runtime(t.Context(), semantics.QueueKind, "orders")
			b.ok(err)
			if int(counts.Locked) != len(given) || len(given) == 0 {
				t.Fatalf("%d are locked, %d were given; %d done", counts.Locked, len(given), done)
			}
			for _, body := range given {
				number, _, _ := strings.Cut(body, " ")
				came[number]++
			}
			f.ack(given...)
			done += len(given)
		}
		b.wantCounts("orders", "available 0 locked 0 dead 0")
		for number, times := range came {
			if times != 1 {
				t.Errorf("message %s came %d times", number, times)
			}
		}
	})
}
