package stream_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/broker/stream"
	"github.com/sidebus/sidebus/semantics/storetest"
)

// sendSizes stores messages of so many bytes, in as few calls as that takes. Their texts are numbers, filled up.
func (s *stand) sendSizes(queue string, sizes ...int) {
	s.t.Helper()
	var batch []*semantics.Message
	bytes := 0
	flush := func() {
		if len(batch) > 0 {
			_, err := s.Send(s.t.Context(), semantics.ToQueue(queue), batch)
			s.ok(err)
		}
		batch, bytes = nil, 0
	}
	for i, size := range sizes {
		if bytes += size + 64; bytes > 256<<10 || len(batch) == 1000 {
			flush()
			bytes = size
		}
		body := strconv.AppendInt(make([]byte, 0, size), int64(i+1), 10)
		batch = append(batch, &semantics.Message{Body: append(body, make([]byte, max(size-len(body), 0))...)})
	}
	flush()
}

// locked is how many messages of orders are locked.
func (s *stand) locked() int {
	s.t.Helper()
	r, err := s.Runtime(s.t.Context(), semantics.QueueKind, "orders")
	s.ok(err)
	return int(r.Locked)
}

// lockedBytes returns the total size of the messages that are locked and that the client does not have, and the size of
// the largest.
func (s *stand) lockedBytes(unsettled map[string]semantics.LockToken) (sum, largest int64) {
	s.t.Helper()
	for from := int64(0); ; {
		rows, err := s.Peek(s.t.Context(), semantics.Source{Path: "orders"}, from, broker.MaxPeekMessages, semantics.ShowLocked)
		s.ok(err)
		if len(rows) == 0 {
			return sum, largest
		}
		for _, row := range rows {
			if _, isUnsettled := unsettled[string(row.Body)]; !isUnsettled {
				sum, largest = sum+row.Size, max(largest, row.Size)
			}
		}
		from = rows[len(rows)-1].SequenceNumber + 1
	}
}

// completeAll completes all unsettled messages, as many at a time as one settlement may have.
func (p *client) completeAll() {
	p.t.Helper()
	var tokens []semantics.LockToken
	for text, token := range p.unsettled {
		tokens = append(tokens, token)
		delete(p.unsettled, text)
	}
	codes, err := p.Complete(p.t.Context(), tokens)
	p.stand.ok(err)
	for _, code := range codes {
		if code != "" {
			p.t.Fatalf("complete: %s", code)
		}
	}
}

// Whatever credits and prefetch a stream has, of what is permitted, it goes on to the last message, and has no more at
// any time than both together.
func TestRECV_13_AnyCreditsAndPrefetch(t *testing.T) {
	t.Parallel()
	const most = stream.MaxCredits
	random := rand.New(rand.NewPCG(22, 1))
	pairs := [][2]int{{most, stream.MaxPrefetch}, {most, 1}, {1, stream.MaxPrefetch}, {most, 0}, {500, 501}}
	for range 12 {
		pairs = append(pairs, [2]int{storetest.RandomLogUniform(random, most), storetest.RandomLogUniform(random, stream.MaxPrefetch)})
	}
	for _, pair := range pairs {
		t.Run(fmt.Sprintf("%d and %d", pair[0], pair[1]), func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, s *stand) {
				number := pair[0] + pair[1] + 37
				s.sendSizes("orders", make([]int, number)...)
				p := s.subscribe("orders", fetching(pair[0], pair[1]))
				for done := 0; done < number; {
					p.takes()
					n := len(p.unsettled)
					if n == 0 || n > pair[0] {
						t.Fatalf("%d in hand, %d of %d done", n, done, number)
					}
					if got, want := s.locked(), min(number-done, pair[0]+pair[1]); got != want {
						t.Fatalf("%d are locked, want %d; %d done", got, want, done)
					}
					p.completeAll()
					done += n
				}
				p.wants("")
				s.wantCounts("orders", "available 0 locked 0 dead 0")
			})
		})
	}
}

// What is fetched ahead has a bound in bytes too.
func TestRECV_12_BytesFetchedAheadAreBounded(t *testing.T) {
	t.Parallel()
	kinds := map[string]func(random *rand.Rand, i int) int{
		"large":         func(*rand.Rand, int) int { return 200_000 },
		"of all sizes":  func(random *rand.Rand, _ int) int { return storetest.RandomLogUniform(random, 255<<10) },
		"one huge":      func(_ *rand.Rand, i int) int { return 1 + i%40/39*(10<<20) },
		"small, larger": func(_ *rand.Rand, i int) int { return 1 + i*600 },
	}
	for name, size := range kinds {
		for _, ahead := range []int{1, 30, stream.MaxPrefetch} {
			t.Run(fmt.Sprintf("%s %d", name, ahead), func(t *testing.T) {
				t.Parallel()
				inBubble(t, func(t *testing.T, s *stand) {
					s.change("orders", semantics.Options{MaxMessageSizeInKilobytes: 11 << 10}, "maxMessageSizeInKilobytes")
					random := rand.New(rand.NewPCG(12, uint64(ahead)))
					sizes := make([]int, 120)
					for i := range sizes {
						sizes[i] = size(random, i)
					}
					s.sendSizes("orders", sizes...)
					p := s.subscribe("orders", fetching(2, ahead))
					for done := 0; done < len(sizes); {
						p.takes()
						synctest.Wait()
						n := len(p.unsettled)
						if n == 0 || n > 2 {
							t.Fatalf("%d in hand, %d done", n, done)
						}
						if bytes, largest := s.lockedBytes(p.unsettled); bytes-largest > stream.MaxPrefetchBytes {
							t.Fatalf("%d bytes are fetched ahead besides one message of %d; %d done", bytes-largest, largest, done)
						}
						p.completeAll()
						done += n
					}
					p.wants("")
				})
			})
		}
	}
}
