package storetest

import (
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/sidebus/sidebus/semantics"
)

// sessionModel is what a run with sessions knows beside the answers of the stores.
type sessionModel struct {
	otherHasSessions bool

	sessions    []string               // ids to draw from
	holds       []*hold                // of main; the last ones, most of them over
	current     map[string]*hold       // the last one of each session
	sessionRows []semantics.SessionRow // what the last look showed

	versions     map[string]int64 // of the states, as far as seen
	pastVersions map[int64]bool
	books
}

func newSessionModel() *sessionModel {
	return &sessionModel{current: map[string]*hold{}, versions: map[string]int64{}, pastVersions: map[int64]bool{}, books: newBooks()}
}

// hold is one lock of a session. Both stores granted it at the same instant.
type hold struct {
	session            string
	reference, subject semantics.LockToken
	until              time.Time
	closed, ended      bool // ended: it ran out, and what it held is counted
}

// live reports whether the lock holds: up to its end, not including it.
func (h *hold) live(now time.Time) bool { return !h.closed && now.Before(h.until) }

const keptHolds = 8

// drawSessions chooses the few sessions of a run. Some ids look like those of others, or like what a store might put
// behind an id.
func (m *model) drawSessions(rt *rapid.T) {
	ids := []string{"a", "b", "ab", "a\x00", "a\x01", "\x00", "\x01", "a\x00a0000000000000001", "a\x00t", "a:b", "Ä", "{a}", strings.Repeat("a", 128)}
	m.sessions = rapid.SliceOfNDistinct(rapid.SampledFrom(ids), 1, 4, rapid.ID).Draw(rt, "session ids")
}

func (m *model) drawSessionID(rt *rapid.T) string {
	return m.sessions[even(len(m.sessions)).Draw(rt, "session")]
}

func drawSessionOptions(rt *rapid.T, o semantics.Options) semantics.Options {
	o.RequiresSession = rapid.Bool().Draw(rt, "requires session")
	if even(4).Draw(rt, "refuses") > 0 { // what keeps messages out of a queue is rarer here, or sessions would be empty
		o.RequiresDuplicateDetection, o.MaxMessageCount, o.Status = false, 0, semantics.StatusActive
		o.EnablePartitioning = false
	}
	o.LockDuration = units(2, 5, 12).Draw(rt, "lock duration")
	o.SessionInFlight = rapid.Int64Range(1, 3).Draw(rt, "in flight")
	o.SessionExpiryMode = rapid.SampledFrom([]semantics.SessionExpiryMode{0, 0, 1}).Draw(rt, "expiry mode")
	o.SessionOnDeadLetter = rapid.SampledFrom([]semantics.SessionOnDeadLetter{0, 0, 1}).Draw(rt, "on dead letter")
	o.SessionStateTTL = rapid.SampledFrom([]time.Duration{semantics.Never, 2 * unit, 6 * unit}).Draw(rt, "state ttl")
	o.AcceptNext = rapid.SampledFrom([]semantics.AcceptNext{0, 0, 0, 0, 0, 0, 0, 1}).Draw(rt, "accept next")
	o.MaxSizeInMegabytes = rapid.SampledFrom([]int64{1, 1024, 1024, 1024}).Draw(rt, "max size")
	return o
}

// sessionStep is one step of a run with sessions. What must come together to get anywhere is drawn most often. No step
// may be skipped: that would end the run.
func (m *model) sessionStep(rt *rapid.T) {
	transfers := !m.overPartitions // whose texts name partitions
	always, held, handedOut := true, len(m.holds) > 0, len(m.deliveries) > 0
	accepts := 10
	if slices.ContainsFunc(m.rows, isAvailable) && !slices.ContainsFunc(m.holds, func(h *hold) bool { return h.live(m.now) }) {
		accepts = 50 // or nothing could be received
	}
	steps := []struct {
		weight int
		can    bool
		name   string
		do     func(*rapid.T)
	}{
		{14, always, "send", m.send},
		{2, always, "send once", m.sendOnce},
		{6, always, "accept", m.accept},
		{accepts, always, "accept next", m.acceptNext},
		{4, held, "renew session", m.renewSession},
		{4, held, "close session", m.closeSession},
		{20, held, "receive", m.receive},
		{6, held, "receive deferred", m.receiveDeferred},
		{1, always, "receive by number", m.receiveByNumber},
		{8, handedOut, "complete", m.complete},
		{8, handedOut, "turn", m.turn},
		{8, handedOut, "abandon", m.abandon},
		{6, handedOut, "defer", m.deferSome},
		{3, handedOut, "release", m.release},
		{4, handedOut, "dead-letter", m.deadLetter},
		{8, always, "transact", m.transact},
		{1, handedOut, "renew", m.renew},
		{7, always, "advance", m.advance},
		{1, held, "session state", m.sessionState},
		{4, held, "set session state", m.setSessionState},
		{2, always, "list sessions", m.listSome},
		{4, always, "unblock", m.unblock},
		{2, always, "dead-letter the rest", m.deadLetterRest},
		{1, always, "peek", m.peek},
		{1, always, "peek one session", m.peekSession},
		{1, always, "purge", m.purge},
		{1, always, "purge one session", m.purgeSession},
		{1, always, "purge dead letters", m.purgeDead},
		{2, always, "delete by number", m.deleteByNumber},
		{3, always, "reactivate", m.reactivate},
		{2, always, "receive dead letters", m.receiveDead},
		{3, always, "resubmit", m.resubmit},
		{2, transfers, "resubmit elsewhere", m.resubmitElsewhere},
		{1, always, "receive other", m.receiveOther},
		{1, always, "cancel", m.cancel},
		{1, always, "cancel by id", m.cancelByID},
		{3, always, "update", m.update},
		{2, transfers, "forward dead letters", m.forwardDead},
		{2, len(m.passages) > 0, "arrive", m.arrive},
		{2, len(m.passages) > 0, "end transfer", m.endTransfer},
		{1, always, "receive undelivered", m.receiveUndelivered},
		{1, m.Restart != nil, "restart", m.restart},
		{1, held, "verb of wrong kind", m.wrongKind},
	}
	var all []int
	for i, s := range steps {
		if s.can {
			all = append(all, slices.Repeat([]int{i}, s.weight)...)
		}
	}
	step := steps[all[even(len(all)).Draw(rt, "step")]]
	rt.Log(step.name)
	step.do(rt)
}

// even draws 0 to n-1, each as often as the others. Other generators favour what is small.
func even(n int) *rapid.Generator[int] {
	return rapid.Custom(func(t *rapid.T) int {
		drawn := 0
		for range 10 {
			drawn *= 2
			if rapid.Bool().Draw(t, "") {
				drawn++
			}
		}
		return drawn % n
	})
}

// drawHold chooses a lock of a session, most often one that holds, and of a session with messages. There must be one.
func (m *model) drawHold(rt *rapid.T) *hold {
	holds := m.holds
	only := func(good func(h *hold) bool) {
		if left := slices.DeleteFunc(slices.Clone(holds), func(h *hold) bool { return !good(h) }); len(left) > 0 {
			holds = left
		}
	}
	if even(8).Draw(rt, "any hold") > 0 {
		only(func(h *hold) bool { return h.live(m.now) })
		only(func(h *hold) bool { return m.offers(h.session) })
	}
	h := holds[even(len(holds)).Draw(rt, "hold")]
	if !h.live(m.now) && m.moved {
		m.compareCounts(rt, m.main.Path) // whether a call that finds its lock lost looks at the queue is not fixed
		m.moved = false
	}
	return h
}

// offers reports whether a session had messages for its holder at the last look.
func (m *model) offers(id string) bool {
	return slices.ContainsFunc(m.rows, func(row *semantics.Received) bool {
		return row.SessionID == id && (isAvailable(row) || isDeferred(row))
	})
}

// under is main as the holder of a session sees it.
func (m *model) under(h *hold) origin { return origin{Source: m.main.Source, hold: h} }

// drawMain returns main for a verb that takes messages: with sessions mostly as the holder of one sees it.
func (m *model) drawMain(rt *rapid.T) origin {
	if !m.options.RequiresSession || len(m.holds) == 0 || even(16).Draw(rt, "without session") == 0 {
		return m.main
	}
	return m.under(m.drawHold(rt))
}

// ofSession narrows down, most often, what is meant to the session that is held.
func (m *model) ofSession(rt *rapid.T, from origin, meant func(row *semantics.Received) bool) func(row *semantics.Received) bool {
	if from.hold == nil || even(6).Draw(rt, "any session") == 0 {
		return meant
	}
	return func(row *semantics.Received) bool { return meant(row) && row.SessionID == from.hold.session }
}

// stray replaces, now and then, the session under which messages are settled by another one, which must never succeed.
func (m *model) stray(rt *rapid.T, from origin) origin {
	if !m.options.RequiresSession || from.Path != m.main.Path || even(8).Draw(rt, "stray") > 0 {
		return from
	}
	return m.drawMain(rt)
}

// preferHeld makes the first of the chosen deliveries, most often, one whose lock holds.
func (m *model) preferHeld(rt *rapid.T, chosen []received) {
	if !m.options.RequiresSession || even(6).Draw(rt, "any delivery") == 0 {
		return
	}
	held := slices.DeleteFunc(slices.Clone(m.deliveries), func(d received) bool {
		out := m.out[d.number]
		return d.from.hold != nil && (out == nil || out.token != d.reference)
	})
	if len(held) > 0 {
		chosen[0] = held[even(len(held)).Draw(rt, "held")]
	}
}

// drawSession makes a message one of a session, all of one call the same if the queue is partitioned, and few of none.
func (m *model) drawSession(rt *rapid.T, message *semantics.Message, partition string) {
	switch {
	case even(24).Draw(rt, "without session") == 0:
		message.PartitionKey = partition
	case partition != "":
		message.SessionID = m.sessions[0]
	default:
		message.SessionID = m.drawSessionID(rt)
	}
	if even(2).Draw(rt, "lasts") == 0 {
		message.TimeToLive = nil
	}
}

func (m *model) accept(rt *rapid.T) {
	id := m.drawSessionID(rt)
	m.accepted(rt, id, func(s semantics.Store) (*semantics.Session, error) { return s.AcceptSession(m.ctx, m.main.Path, id) })
}

func (m *model) acceptNext(rt *rapid.T) {
	m.accepted(rt, "", func(s semantics.Store) (*semantics.Session, error) { return m.nextOf(s, m.main.Path) })
}

// nextOf accepts the next session, however much there is to clear away before.
func (m *model) nextOf(s semantics.Store, path string) (*semantics.Session, error) {
	for {
		session, recheck, err := s.AcceptNextSession(m.ctx, path, semantics.RegisterNever)
		if err != nil || session != nil || recheck > 0 {
			return session, err
		}
	}
}

// accepted compares the sessions that both stores returned and keeps the tokens.
func (m *model) accepted(rt *rapid.T, id string, accept func(s semantics.Store) (*semantics.Session, error)) {
	refused := false
	reference, subject, ok := both(rt, m, "accept", func(s semantics.Store) (*semantics.Session, error) {
		session, err := accept(s)
		refused = semantics.CodeOf(err) == semantics.SessionCannotBeLocked
		return session, err
	})
	m.looked(ok || refused)
	if refused && !m.isHeld(id) {
		if row := m.listed(rt, id); !row.Blocked {
			rt.Fatalf("session %q cannot be locked, though it is neither held nor blocked", id)
		}
	}
	if reference == nil || subject == nil {
		same(rt, "session", reference == nil, subject == nil)
		return
	}
	h := &hold{session: reference.ID, reference: reference.Lock, subject: subject.Lock, until: reference.LockedUntil}
	seen := func(session semantics.Session) semantics.Session {
		session.Lock = semantics.LockToken{}
		return session
	}
	same(rt, "accepted session", seen(*reference), seen(*subject))
	if m.isHeld(h.session) {
		rt.Fatalf("session %q was accepted although it is held until %s (I3)", h.session, m.current[h.session].until)
	}
	if want := m.now.Add(m.options.LockDuration); !h.until.Equal(want) {
		rt.Fatalf("session %q is locked until %s, want %s", h.session, h.until, want)
	}
	m.current[h.session] = h
	m.versions[h.session] = reference.State.Version
	m.holds = append(m.holds, h)
	m.holds = m.holds[max(0, len(m.holds)-keptHolds):]
}

// isHeld reports whether the lock of a session holds, according to the answers alone.
func (m *model) isHeld(id string) bool {
	h := m.current[id]
	return h != nil && h.live(m.now)
}

// fenced checks the outcome of a verb under a session's lock: it can succeed only while the lock holds, and
// SESSION_LOCK_LOST is said only when it does not (I3, I5).
func (m *model) fenced(rt *rapid.T, what string, h *hold, code semantics.Code) {
	if code == "" && !h.live(m.now) {
		rt.Fatalf("%s took effect under the lock of session %q that ended at %s, closed %t (I5)", what, h.session, h.until, h.closed)
	}
	if code == semantics.SessionLockLost && h.live(m.now) {
		rt.Fatalf("%s finds the lock of session %q lost, which holds until %s", what, h.session, h.until)
	}
}

// underHold makes a call under a session's lock on both stores.
func underHold[T any](rt *rapid.T, m *model, what string, h *hold, call func(s semantics.Store, source semantics.Source) (T, error)) (answer T, ok bool) {
	var code semantics.Code
	answer, ok = agree(rt, m, what, func(s semantics.Store) (T, error) {
		got, err := call(s, m.on(s, m.under(h)))
		code = semantics.CodeOf(err)
		return got, err
	})
	m.fenced(rt, what, h, code)
	return answer, ok
}

func (m *model) renewSession(rt *rapid.T) {
	h := m.drawHold(rt)
	until, ok := underHold(rt, m, "renew session", h, func(s semantics.Store, source semantics.Source) (time.Time, error) {
		return s.RenewSessionLock(m.ctx, source)
	})
	if ok {
		h.until = until
	}
}

func (m *model) closeSession(rt *rapid.T) {
	h := m.drawHold(rt)
	_, ok := underHold(rt, m, "close session", h, func(s semantics.Store, source semantics.Source) (any, error) {
		return nil, s.CloseSession(m.ctx, source)
	})
	if ok {
		h.closed = true
		m.giveBack(h, false)
	}
}

func (m *model) unblock(rt *rapid.T) {
	id := m.drawSessionID(rt)
	_, ok := agree(rt, m, "unblock", func(s semantics.Store) (any, error) { return nil, s.UnblockSession(m.ctx, m.main.Path, id) })
	m.looked(ok)
}

func (m *model) deadLetterRest(rt *rapid.T) {
	id := m.drawSessionID(rt)
	_, ok := agree(rt, m, "dead-letter the rest", func(s semantics.Store) (any, error) {
		return nil, s.DeadLetterRest(m.ctx, m.main.Path, id)
	})
	m.looked(ok)
	m.decideEnded()
	for _, row := range m.rows { // as they were before
		if ok && row.SessionID == id && m.out[row.SequenceNumber] == nil {
			delete(m.deferred, row.SequenceNumber)
		}
	}
}

// visitOther takes a session of other, and some of its messages for good.
func (m *model) visitOther(rt *rapid.T) {
	limit, complete := rapid.IntRange(1, 3).Draw(rt, "limit"), rapid.Bool().Draw(rt, "complete")
	agree(rt, m, "visit other", func(s semantics.Store) ([]semantics.Received, error) {
		session, err := m.nextOf(s, m.other.Path)
		if err != nil || session == nil {
			return nil, err
		}
		source := semantics.Source{Path: m.other.Path, SessionLock: session.Lock}
		batch, err := s.Receive(m.ctx, source, limit, semantics.RegisterNever)
		if err != nil {
			return nil, err
		}
		if complete {
			for _, received := range batch.Messages {
				if _, err := s.Complete(m.ctx, source, []semantics.LockToken{received.LockToken}); err != nil {
					return nil, err
				}
			}
		}
		return plain(batch.Messages), s.CloseSession(m.ctx, source)
	})
	m.otherChanged = true
}

// wrongKind makes a call that is not for this queue or side.
func (m *model) wrongKind(rt *rapid.T) {
	h := m.drawHold(rt)
	calls := map[string]func(s semantics.Store) error{
		"session without a holder": func(s semantics.Store) error {
			_, err := s.RenewSessionLock(m.ctx, semantics.Source{Path: m.main.Path, SessionLock: semantics.LockToken{1}})
			return err
		},
		"message lock of a session": func(s semantics.Store) error {
			_, err := s.RenewLocks(m.ctx, m.on(s, m.under(h)), []semantics.LockToken{{1}})
			return err
		},
		"session of another queue": func(s semantics.Store) error {
			source := m.on(s, m.under(h))
			source.Path = m.other.Path
			return s.CloseSession(m.ctx, source)
		},
		"settle under a session of another queue": func(s semantics.Store) error {
			source := m.on(s, m.under(h))
			source.Path = m.other.Path
			codes, err := s.Complete(m.ctx, source, []semantics.LockToken{{1}})
			if err == nil {
				err = &semantics.Error{Code: codes[0]}
			}
			return err
		},
	}
	name := rapid.SampledFrom(sortedKeys(calls)).Draw(rt, "call")
	both(rt, m, name, func(s semantics.Store) (any, error) { return nil, calls[name](s) })
	m.otherChanged = true
}
