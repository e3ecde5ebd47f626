package storetest

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

var alteredTokenTests = []ruleTest{
	testLOCK_2_AlteredTokenOfAQueue,
	testLOCK_2_AlteredTokenOfDeadLetters,
	testLOCK_2_AlteredTokenInASession,
}

func testLOCK_2_AlteredTokenOfAQueue(_ *testing.T, h *fixture) {
	h.create(deliversAtMost(1000))
	(&forger{fixture: h, source: orders, fill: func(sizes []int64) { h.sendOfSizes("", sizes) }}).run()
}

func testLOCK_2_AlteredTokenOfDeadLetters(_ *testing.T, h *fixture) {
	h.create(deliversAtMost(1000))
	(&forger{fixture: h, source: deadOrders, fill: func(sizes []int64) {
		h.sendOfSizes("", sizes)
		h.deadLetter(h.receive(orders, len(sizes))...)
	}}).run()
}

func testLOCK_2_AlteredTokenInASession(_ *testing.T, h *fixture) {
	h.createSessions(deliversAtMost(1000), sessionInFlight(1000))
	h.sendTo("s", 1)
	source := h.accept("s")
	(&forger{fixture: h, source: source, fill: func(sizes []int64) { h.sendOfSizes("s", sizes) }}).run()
}

// sendOfSizes sends messages of a session, or of none, that count for so many bytes.
func (h *fixture) sendOfSizes(session string, sizes []int64) {
	h.t.Helper()
	messages := make([]*semantics.Message, len(sizes))
	for i, size := range sizes {
		messages[i] = of(session, &semantics.Message{MessageID: "m", Body: make([]byte, size)})
	}
	h.send(messages...)
}

// forger settles with tokens that a client has altered, beside true ones: an altered one is lost, and changes nothing.
type forger struct {
	*fixture
	source semantics.Source
	fill   func(sizes []int64) // sends messages, so that they can be received
	hand   []semantics.LockToken
}

func (f *forger) run() {
	rapid.Check(f.t, func(rt *rapid.T) {
		if len(f.hand) > 0 { // of a check that failed
			_, _ = f.broker.Complete(f.t.Context(), f.source, f.hand)
		}
		// Many of one size, so that an altered position may be that of a message that is as large.
		f.fill(rapid.SliceOfN(rapid.SampledFrom([]int64{1, 1, 1, 2, 256, 257, 20_000}), 3, 12).Draw(rt, "sizes"))
		f.hand = tokensOf(f.receive(f.source, 1000)...)
		for len(f.hand) > 1 {
			f.step(rt)
		}
	})
	if f.Audit != nil {
		f.ok(f.Audit(f.source.Path))
	}
}

// step settles some at a time with one verb. It draws everything before it does anything.
func (f *forger) step(rt *rapid.T) {
	verb := f.drawVerb(rt)
	isTrue := rapid.SliceOfN(rapid.Bool(), 1, 4).Draw(rt, "true")
	tokens, want, hand := make([]semantics.LockToken, len(isTrue)), make([]semantics.Code, len(isTrue)), f.hand
	for i := range tokens {
		if isTrue[i] && len(hand) > 1 {
			tokens[i], hand = hand[0], hand[1:]
		} else {
			tokens[i], want[i] = f.alter(rt), semantics.MessageLockLost
		}
	}
	if verb != "renew" { // renewed messages stay unsettled
		f.hand = hand
	}
	same(rt, verb, want, f.settle(rt, verb, tokens))
	f.recount(rt, verb)
}

// recount checks that what was handed out is locked, and nothing else.
func (f *forger) recount(rt *rapid.T, verb string) {
	locked, err := f.broker.Peek(f.t.Context(), f.source, 0, broker.MaxPeekMessages, semantics.ShowLocked)
	if err != nil || len(locked) != len(f.hand) {
		rt.Fatalf("after %s %d messages are locked, %d are unsettled (%v)", verb, len(locked), len(f.hand), err)
	}
}

// alter makes a token that was never given of one or two that hold.
func (f *forger) alter(rt *rapid.T) semantics.LockToken {
	token := rapid.SampledFrom(f.hand).Draw(rt, "of")
	switch rapid.IntRange(0, 3).Draw(rt, "how") {
	case 0: // one bit
		flip(&token, rapid.IntRange(0, 127).Draw(rt, "bit"))
	case 1: // some bits
		for _, bit := range rapid.SliceOfN(rapid.IntRange(0, 127), 2, 128).Draw(rt, "bits") {
			flip(&token, bit)
		}
	case 2: // put together from two: fields are swapped
		other := rapid.SampledFrom(f.hand).Draw(rt, "and")
		cut := rapid.IntRange(1, 15).Draw(rt, "cut")
		copy(token[cut:], other[cut:])
	default: // a neighbour's number
		token[15] += byte(rapid.IntRange(1, 255).Draw(rt, "further"))
	}
	for slices.Contains(f.hand, token) {
		token[0]++
	}
	return token
}

func flip(token *semantics.LockToken, bit int) { token[bit/8] ^= 1 << (bit % 8) }

// drawVerb chooses one of the verbs that take tokens.
func (f *forger) drawVerb(rt *rapid.T) string {
	verbs := []string{"complete", "complete", "abandon", "release", "defer", "abandon with changes"}
	if f.source.SubQueue == semantics.MainQueue {
		verbs = append(verbs, "dead-letter")
	}
	if f.source.SessionLock.IsZero() {
		verbs = append(verbs, "renew")
	}
	return rapid.SampledFrom(verbs).Draw(rt, "verb")
}

func (f *forger) settle(rt *rapid.T, verb string, tokens []semantics.LockToken) (codes []semantics.Code) {
	ctx, err := f.t.Context(), error(nil)
	switch verb {
	case "complete":
		codes, err = f.broker.Complete(ctx, f.source, tokens)
	case "abandon":
		codes, err = f.broker.Abandon(ctx, f.source, tokens, semantics.AbandonOptions{})
	case "abandon with changes":
		codes, err = f.broker.Abandon(ctx, f.source, tokens, semantics.AbandonOptions{Properties: properties{"n": semantics.Int64(7)}})
	case "release":
		codes, err = f.broker.Release(ctx, f.source, tokens)
	case "defer":
		codes, err = f.broker.Defer(ctx, f.source, tokens, nil)
	case "dead-letter":
		codes, err = f.broker.DeadLetter(ctx, f.source, tokens, why("poison", ""))
	default:
		var renewals []semantics.Renewal
		renewals, err = f.broker.RenewLocks(ctx, f.source, tokens)
		for _, r := range renewals {
			codes = append(codes, r.Code)
		}
	}
	if err != nil {
		rt.Fatal(err)
	}
	return codes
}
