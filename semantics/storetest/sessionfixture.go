package storetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

func hasSessions(o *semantics.Options)        { o.RequiresSession = true }
func expiresSessions(o *semantics.Options)    { o.SessionExpiryMode = semantics.ExpireSession }
func blocksOnDeadLetter(o *semantics.Options) { o.SessionOnDeadLetter = semantics.BlockSession }
func forbidsAcceptNext(o *semantics.Options)  { o.AcceptNext = semantics.AcceptNextForbidden }

func sessionInFlight(n int64) change {
	return func(o *semantics.Options) { o.SessionInFlight = n }
}

func keepsStateFor(d time.Duration) change {
	return func(o *semantics.Options) { o.SessionStateTTL = d }
}

// createSessions makes orders a queue with sessions.
func (h *fixture) createSessions(changes ...change) {
	h.t.Helper()
	h.create(append([]change{hasSessions}, changes...)...)
}

// sessionOf returns the source of a session of orders by its name, without a lock.
func sessionOf(id string) semantics.Source { return semantics.Source{Path: orders.Path, Session: id} }

// unheld returns the source of a session with a token that no lock has.
func unheld() semantics.Source {
	return semantics.Source{Path: orders.Path, SessionLock: semantics.NewLockToken()}
}

// of makes a message one of a session.
func of(session string, m *semantics.Message) *semantics.Message {
	m.SessionID = session
	return m
}

// part is a text of a session.
func part(session, id string) *semantics.Message { return of(session, text(id)) }

// sendTo sends n texts of a session to orders in one call and returns the number of the first.
func (h *fixture) sendTo(session string, n int) int64 {
	h.t.Helper()
	messages := make([]*semantics.Message, n)
	for i := range messages {
		messages[i] = part(session, fmt.Sprintf("m%d", i+1))
	}
	return h.send(messages...)
}

// sendEach sends one text to each of the sessions, all in one call.
func (h *fixture) sendEach(sessions ...string) {
	h.t.Helper()
	messages := make([]*semantics.Message, len(sessions))
	for i, session := range sessions {
		messages[i] = part(session, "m")
	}
	h.send(messages...)
}

// second returns the error of a call whose answer does not matter.
func second[T any](_ T, err error) error { return err }

func (h *fixture) tryAccept(id string) (*broker.Acceptance, error) {
	return h.broker.AcceptSession(h.t.Context(), orders.Path, broker.AcceptOptions{SessionID: id})
}

// take accepts a session that must be free.
func (h *fixture) take(id string) *broker.Acceptance {
	h.t.Helper()
	a, err := h.tryAccept(id)
	h.ok(err)
	h.same(a.Session.ID, id)
	return a
}

// accept accepts a session that must be free and returns the source of its messages.
func (h *fixture) accept(id string) semantics.Source {
	h.t.Helper()
	return h.take(id).Source()
}

// notFree checks that a session cannot be locked now, and that a try changes nothing.
func (h *fixture) notFree(id string) {
	h.t.Helper()
	h.refused(semantics.SessionCannotBeLocked, func() error {
		_, err := h.tryAccept(id)
		return err
	})
}

// acceptNext accepts the session that has been ready longest, if there is one.
func (h *fixture) acceptNext() *broker.Acceptance {
	h.t.Helper()
	a, err := h.broker.AcceptSession(h.t.Context(), orders.Path, broker.AcceptOptions{})
	h.ok(err)
	return a
}

// wantNext accepts one session after the other until none is ready and checks which they were. They stay held.
func (h *fixture) wantNext(want ...string) (held []semantics.Source) {
	h.t.Helper()
	var got []string
	for a := h.acceptNext(); a.Session != nil; a = h.acceptNext() {
		got, held = append(got, a.Session.ID), append(held, a.Source())
	}
	h.same(got, want)
	return held
}

func (h *fixture) closeSession(sources ...semantics.Source) {
	h.t.Helper()
	for _, source := range sources {
		h.ok(h.broker.CloseSession(h.t.Context(), source))
	}
}

func (h *fixture) renewSession(source semantics.Source) time.Time {
	h.t.Helper()
	until, err := h.broker.RenewSessionLock(h.t.Context(), source)
	h.ok(err)
	return until
}

func (h *fixture) state(source semantics.Source) semantics.SessionState {
	h.t.Helper()
	state, err := h.broker.SessionState(h.t.Context(), source)
	h.ok(err)
	return state
}

// trySetState sets the state of a session, of the given version when there is one.
func (h *fixture) trySetState(source semantics.Source, data []byte, expected ...int64) (int64, error) {
	var version *int64
	if len(expected) > 0 {
		version = &expected[0]
	}
	return h.broker.SetSessionState(h.t.Context(), source, data, version)
}

func (h *fixture) setState(source semantics.Source, data []byte, expected ...int64) int64 {
	h.t.Helper()
	version, err := h.trySetState(source, data, expected...)
	h.ok(err)
	return version
}

func (h *fixture) unblock(id string) {
	h.t.Helper()
	h.ok(h.broker.UnblockSession(h.t.Context(), orders.Path, id))
}

// sessions lists all sessions of orders that a filter lets through.
func (h *fixture) sessions(filter semantics.SessionFilter) []semantics.SessionRow {
	h.t.Helper()
	return h.sessionPages(semantics.MaxPageSize, filter)
}

func (h *fixture) sessionPages(size int, filter semantics.SessionFilter) (all []semantics.SessionRow) {
	h.t.Helper()
	for token, pages := "", 0; ; pages++ {
		rows, next, err := h.broker.ListSessions(h.t.Context(), orders.Path, size, token, filter)
		h.ok(err)
		if len(rows) > size {
			h.t.Fatalf("page of %d has %d sessions", size, len(rows))
		}
		all = append(all, rows...)
		if token = next; token == "" {
			return all
		}
		if pages > 100_000 {
			h.t.Fatal("the list of sessions never ends")
		}
	}
}

// sessionIDs are the ids of all sessions that are listed.
func (h *fixture) sessionIDs() []string {
	h.t.Helper()
	return idsOf(h.sessions(semantics.SessionFilter{}))
}

func idsOf(rows []semantics.SessionRow) (ids []string) {
	for _, row := range rows {
		ids = append(ids, row.ID)
	}
	return ids
}

func (h *fixture) sessionRow(id string) semantics.SessionRow {
	h.t.Helper()
	for _, row := range h.sessions(semantics.SessionFilter{}) {
		if row.ID == id {
			return row
		}
	}
	h.t.Fatalf("session %q is not listed", id)
	return semantics.SessionRow{}
}

// wantSessions checks the counts of sessions.
func (h *fixture) wantSessions(all, ready, locked int64) {
	h.t.Helper()
	r := h.runtime()
	h.same([]int64{r.Sessions, r.ReadySessions, r.LockedSessions}, []int64{all, ready, locked})
}

// messageCounts are counts without those of sessions.
func (h *fixture) messageCounts() semantics.Runtime {
	h.t.Helper()
	r := h.counts()
	r.Sessions, r.ReadySessions, r.LockedSessions, r.BlockedSessions = 0, 0, 0, 0
	return r
}

// wantCounted checks the stored delivery counts of all messages of source, in order of number.
func (h *fixture) wantCounted(source semantics.Source, want ...int) {
	h.t.Helper()
	var got []int
	for _, m := range h.peek(source) {
		got = append(got, m.DeliveryCount)
	}
	h.same(got, want)
}

// pass receives one message of a session after the other, completes it at once, and checks that they were these.
func (h *fixture) pass(source semantics.Source, want ...int64) {
	h.t.Helper()
	for _, number := range want {
		got := h.receiveOne(source)
		h.same(got.SequenceNumber, number)
		h.complete(source, got)
	}
}

// deadLetterIn dead-letters messages of a held session.
func (h *fixture) deadLetterIn(source semantics.Source, messages ...*semantics.Received) {
	h.t.Helper()
	codes, err := h.broker.DeadLetter(h.t.Context(), source, tokensOf(messages...), why("poison", "cannot be read"))
	h.settled(codes, err)
}

// holderVerbs calls every verb that accepts a source with a session's lock, except settlements.
func (h *fixture) holderVerbs(source semantics.Source) map[string]error {
	ctx, errs := h.t.Context(), map[string]error{}
	_, errs["receive"] = h.broker.Receive(ctx, source, broker.ReceiveOptions{MaxMessages: 1})
	_, errs["wait"] = h.broker.Receive(ctx, source, broker.ReceiveOptions{MaxMessages: 1, MaxWait: patience})
	errs["receive deferred"] = h.receiveDeferred(source, 1)
	errs["reactivate"] = h.reactivate(source, 1)
	_, errs["peek"] = h.broker.Peek(ctx, source, 0, 1, semantics.ShowAll)
	_, errs["purge"] = h.broker.Purge(ctx, source, broker.PurgeOptions{Deferred: true, Scheduled: true})
	_, errs["delete by number"] = h.broker.DeleteBySequence(ctx, source, []int64{1})
	_, errs["renew"] = h.broker.RenewSessionLock(ctx, source)
	errs["close"] = h.broker.CloseSession(ctx, source)
	_, errs["state"] = h.broker.SessionState(ctx, source)
	_, errs["set state"] = h.trySetState(source, []byte("late"))
	_, errs["clear state"] = h.trySetState(source, nil)
	_, errs["set state of version 0"] = h.trySetState(source, []byte("late"), 0)
	return errs
}

type settlement struct {
	codes []semantics.Code
	err   error
}

// settlements calls every settle verb with tokens of source.
func (h *fixture) settlements(source semantics.Source, tokens []semantics.LockToken) map[string]settlement {
	ctx, all := h.t.Context(), map[string]settlement{}
	note := func(verb string, codes []semantics.Code, err error) { all[verb] = settlement{codes, err} }
	codes, err := h.broker.Complete(ctx, source, tokens)
	note("complete", codes, err)
	codes, err = h.broker.Abandon(ctx, source, tokens, semantics.AbandonOptions{Properties: properties{"late": semantics.Null()}})
	note("abandon", codes, err)
	codes, err = h.broker.Release(ctx, source, tokens)
	note("release", codes, err)
	codes, err = h.broker.Defer(ctx, source, tokens, properties{"late": semantics.Null()})
	note("defer", codes, err)
	codes, err = h.broker.DeadLetter(ctx, source, tokens, why("late", ""))
	note("dead-letter", codes, err)
	return all
}

// wantSettlements checks that every settlement has this code for each of n tokens.
func (h *fixture) wantSettlements(all map[string]settlement, n int, want semantics.Code) {
	h.t.Helper()
	for verb, s := range all {
		if s.err != nil || len(s.codes) != n {
			h.t.Errorf("%s: got %v and %v, want %d codes", verb, s.codes, s.err, n)
		}
		for _, code := range s.codes {
			if code != want {
				h.t.Errorf("%s: got %q, want %s", verb, code, want)
			}
		}
	}
}

// wantAll checks that every call failed with a code.
func (h *fixture) wantAll(errs map[string]error, want semantics.Code) {
	h.t.Helper()
	for verb, err := range errs {
		if got := h.codeOf(err); got != want {
			h.t.Errorf("%s: got %v, want %s", verb, err, want)
		}
	}
}

// sessionLost checks that no verb works with a session's token, nor with tokens of messages that were received by it,
// and that nothing changes by trying.
func (h *fixture) sessionLost(source semantics.Source, messages ...*semantics.Received) {
	h.t.Helper()
	before := h.snapshot()
	h.wantAll(h.holderVerbs(source), semantics.SessionLockLost)
	tokens := append(tokensOf(messages...), semantics.NewLockToken())
	h.wantSettlements(h.settlements(source, tokens), len(tokens), semantics.SessionLockLost)
	if diff := cmp.Diff(before, h.snapshot(), comparing); diff != "" {
		h.t.Fatalf("a lost session changed something (-before +after):\n%s", diff)
	}
}

// oddIDs are ids that a careless store mixes up.
var oddIDs = []string{
	"a", "A", "ab", "a\x00b", "a\x00", "\x00", "\x00\x00", "\x01", "a\x01", "\x01a", "\x7f", `"`, `'`, `\`, "`", "{a}", "{", "}", "a:b", ":", "*", "?", "[a]",
	" ", " a", "a ", "\n", "\r\n", "\t", "%", "%s", "%00", "/", "..", "a/b", "0", "-1", "1e5", "01", "1", "1.0", "nan", "inf", "-inf", "nil", "null", "false",
	"ü", "u\u0308", "\u2028", "\ufeff", "\ufffd", "\U0001D11E", "é", "ÿ", strings.Repeat("x", semantics.MaxIDLength),
	strings.Repeat("x", semantics.MaxIDLength-1), strings.Repeat("ü", semantics.MaxIDLength), "(a", "[a", "+", "-", "$", "<a>", "a,b", ";",
}
