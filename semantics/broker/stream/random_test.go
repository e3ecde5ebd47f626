package stream_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/stream"
)

// Clients come and go in every way while they work on sessions: nothing is lost, nothing is done twice that was
// answered, and within a session what is done is done in order.
func TestSESS_30_OrderWhateverClientsDo(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, s *stand) { (&unrest{stand: s, random: rand.New(rand.NewPCG(seed, 1))}).run() })
		})
	}
}

// Clients come and go in every way while messages are fetched ahead for them: nothing is lost, nothing is done twice
// that was answered, and nothing stays locked.
func TestRECV_12_FetchedAheadWhateverClientsDo(t *testing.T) {
	t.Parallel()
	for seed := range uint64(30) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, s *stand) {
				u := &aheadUnrest{unrest: unrest{stand: s, random: rand.New(rand.NewPCG(seed, 2))}, done: map[string]bool{}}
				u.run()
			})
		})
	}
}

// aheadUnrest is one run of the test.
type aheadUnrest struct {
	unrest

	sent int
	done map[string]bool // completed
}

func (u *aheadUnrest) run() { u.runOn("orders", 6000, u.step) }

func (u *aheadUnrest) step() {
	if u.sent < unrestSessions*unrestMessages && u.random.IntN(3) == 0 {
		u.sent++
		u.send("orders", fmt.Sprint(u.sent))
	}
	if len(u.crew) == 0 || len(u.crew) < 3 && u.random.IntN(20) == 0 {
		u.crew = append(u.crew, u.subscribe("orders", func(o *stream.Options) {
			o.Credits, o.Prefetch, o.MaxAutoRenew = 1+u.random.IntN(10), 1+u.random.IntN(20), time.Minute
		}))
	}
	at := u.random.IntN(len(u.crew))
	p := u.crew[at]
	switch u.random.IntN(30) {
	case 0:
		p.Close(u.t.Context())
	case 1:
		p.Drop(u.t.Context())
	case 2:
		p.Detach(u.t.Context())
	case 3, 4, 5:
		u.ok(p.SetCredits(u.random.IntN(10)))
	case 6:
		u.pass(time.Duration(u.random.IntN(40)) * time.Second)
	default:
		p.takes()
		u.settle(p)
		return
	}
	if shown := p.takes(); strings.Contains(shown, "end:") {
		u.crew = append(u.crew[:at], u.crew[at+1:]...)
	}
}

// settle settles one message that the client has.
func (u *aheadUnrest) settle(p *client) {
	for text := range p.unsettled { // any
		if u.random.IntN(4) == 0 {
			p.settle(u.abandonment, text)
		} else if p.settle(u.Complete, text) == "" {
			if u.done[text] {
				u.t.Fatalf("%s was completed twice", text)
			}
			u.done[text] = true
			u.all++
		}
		delete(p.unsettled, text)
		break
	}
}

const (
	unrestSessions = 5
	unrestMessages = 12 // of each session
)

// unrest is one run of the test.
type unrest struct {
	*stand

	random *rand.Rand
	next   [unrestSessions]int // number of the message of each session that is to be sent next
	done   [unrestSessions]int // number of the one that was completed last
	all    int                 // completed
	crew   []*client
}

func (u *unrest) run() { u.runOn("tales", 4000, u.step) }

// runOn takes at most so many steps on a queue until all messages are completed.
func (u *unrest) runOn(queue string, most int, step func()) {
	u.change(queue, semantics.Options{OnDisconnect: semantics.OnDisconnect(u.random.IntN(2)), MaxDeliveryCount: 1000}, "onDisconnect", "maxDeliveryCount")
	for range most {
		step()
		if u.all == unrestSessions*unrestMessages {
			u.wantCounts(queue, "available 0 locked 0 dead 0")
			return
		}
	}
	u.t.Errorf("%d messages done, want %d; %s", u.all, unrestSessions*unrestMessages, u.counts(queue))
}

func (u *unrest) step() {
	if u.random.IntN(4) == 0 {
		u.sendOne()
	}
	if len(u.crew) == 0 || len(u.crew) < 3 && u.random.IntN(20) == 0 {
		u.crew = append(u.crew, u.subscribe("tales", func(o *stream.Options) {
			o.Credits, o.MaxSessions, o.SessionInFlight = 1+u.random.IntN(6), 1+u.random.IntN(4), 1
			o.SessionIdle, o.MaxAutoRenew = time.Duration(u.random.IntN(3))*10*time.Second, time.Minute
		}))
	}
	at := u.random.IntN(len(u.crew))
	p := u.crew[at]
	switch u.random.IntN(40) {
	case 0:
		p.Close(u.t.Context())
	case 1:
		p.Drop(u.t.Context())
	case 2:
		p.Detach(u.t.Context())
	case 3:
		u.ok(p.SetCredits(u.random.IntN(6)))
	case 4:
		for _, lock := range p.opened {
			_ = p.CloseSession(lock) // which it may have lost
		}
	case 5:
		u.pass(time.Duration(u.random.IntN(40)) * time.Second)
	case 6:
		u.ok(p.SetCredits(3))
	default:
		u.work(p)
		return
	}
	if shown := p.takes(); strings.Contains(shown, "end:") {
		u.crew = append(u.crew[:at], u.crew[at+1:]...)
	}
}

func (u *unrest) sendOne() {
	id := u.random.IntN(unrestSessions)
	if u.next[id] < unrestMessages {
		u.next[id]++
		u.send("tales", fmt.Sprintf("%d/%d", id, u.next[id]))
	}
}

// work settles one unsettled message.
func (u *unrest) work(p *client) {
	p.takes()
	for text := range p.unsettled { // any
		if u.random.IntN(4) == 0 {
			p.settle(u.abandonment, text)
		} else if p.settle(u.Complete, text) == "" {
			id, number := numbersOf(u.t, text)
			if u.done[id]++; number != u.done[id] {
				u.t.Fatalf("session %d: completed %d after %d", id, number, u.done[id]-1)
			}
			u.all++
		}
		delete(p.unsettled, text)
		break
	}
}

func numbersOf(t *testing.T, text string) (id, number int) {
	t.Helper()
	first, second, _ := strings.Cut(text, "/")
	id, err := strconv.Atoi(first)
	if err == nil {
		number, err = strconv.Atoi(second)
	}
	if err != nil {
		t.Fatal(err)
	}
	return id, number
}
