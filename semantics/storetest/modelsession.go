package storetest

import (
	"time"

	"pgregory.net/rapid"

	"github.com/sidebus/sidebus/semantics"
)

// sessionModel is what a run with sessions knows beside the answers of the stores.
type sessionModel struct {
	otherHasSessions bool

	holds       []*hold                // of main; the last ones, most of them over
	current     map[string]*hold       // the last one of each session
	sessionRows []semantics.SessionRow // what the last look showed

	versions    map[string]int64 // of the states, as far as seen
	lastVersion int64
	books
}

func newSessionModel() *sessionModel {
	return &sessionModel{current: map[string]*hold{}, versions: map[string]int64{}, books: newBooks()}
}

// hold is one lock of a session. Both stores gave it at the same instant.
type hold struct {
	session            string
	reference, subject semantics.LockToken
	until              time.Time
	closed, ended      bool // ended: it ran out, and what it held is counted
}

// live says whether the lock holds: up to its end, not including it.
func (h *hold) live(now time.Time) bool { return !h.closed && now.Before(h.until) }

const keptHolds = 8

// Few sessions, some of whose ids look like those of others, or like what a store might put behind an id.
var someSessions = rapid.SampledFrom([]string{
	"a", "a", "a", "b", "b", "c", "ab", "a\x00", "a\x01", "\x00", "a\x00a0000000000000001", "a:b", "Ä", "{a}",
})

func drawSessionOptions(rt *rapid.T, o semantics.QueueOptions) semantics.QueueOptions {
	o.RequiresSession = rapid.Bool().Draw(rt, "requires session")
	o.SessionInFlight = rapid.Int64Range(1, 3).Draw(rt, "in flight")
	o.SessionExpiryMode = rapid.SampledFrom([]semantics.SessionExpiryMode{0, 0, 1}).Draw(rt, "expiry mode")
	o.SessionOnDeadLetter = rapid.SampledFrom([]semantics.SessionOnDeadLetter{0, 0, 1}).Draw(rt, "on dead letter")
	o.SessionStateTTL = rapid.SampledFrom([]time.Duration{semantics.Never, 2 * unit, 6 * unit}).Draw(rt, "state ttl")
	o.AcceptNext = rapid.SampledFrom([]semantics.AcceptNext{0, 0, 0, 0, 0, 0, 0, 1}).Draw(rt, "accept next")
	o.MaxSizeInMegabytes = rapid.SampledFrom([]int64{1, 1024, 1024, 1024}).Draw(rt, "max size")
	return o
}

// sessionSteps are what a run with sessions does besides.
func (m *model) sessionSteps() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"accept":             m.accept,
		"accept next":        m.acceptNext,
		"accept next again":  m.acceptNext,
		"receive in turn":    m.receive,
		"renew session":      m.renewSession,
		"close session":      m.closeSession,
		"session state":      m.sessionState,
		"set session state":  m.setSessionState,
		"list sessions":      m.listSome,
		"unblock":            m.unblock,
		"peek one session":   m.peekSession,
		"purge one session":  m.purgeSession,
		"verb of wrong kind": m.wrongKind,
	}
}

// drawHold chooses a lock of a session, most often one that holds.
func (m *model) drawHold(rt *rapid.T) *hold {
	if len(m.holds) == 0 {
		rt.Skip("no session was accepted yet")
	}
	var live []*hold
	for _, h := range m.holds {
		if h.live(m.now) {
			live = append(live, h)
		}
	}
	if len(live) == 0 || rapid.IntRange(1, 6).Draw(rt, "any hold") == 1 {
		live = m.holds
	}
	return rapid.SampledFrom(live).Draw(rt, "hold")
}

// under is main as the holder of a session sees it.
func (m *model) under(h *hold) origin { return origin{Source: m.main.Source, hold: h} }

// drawMain gives main for a verb that takes messages: with sessions mostly as the holder of one sees it.
func (m *model) drawMain(rt *rapid.T) origin {
	if !m.options.RequiresSession || rapid.IntRange(1, 12).Draw(rt, "without session") == 1 {
		return m.main
	}
	return m.under(m.drawHold(rt))
}

// stray replaces, now and then, the session under which messages are settled by another one, which must never succeed.
func (m *model) stray(rt *rapid.T, from origin) origin {
	if !m.options.RequiresSession || from.Path != m.main.Path || rapid.IntRange(1, 8).Draw(rt, "stray") > 1 {
		return from
	}
	return m.drawMain(rt)
}

// drawSession makes a message one of a session, all of one call the same if the queue is partitioned, and few of none.
func (m *model) drawSession(rt *rapid.T, message *semantics.Message, partition string) {
	switch {
	case rapid.IntRange(1, 16).Draw(rt, "without session") == 1:
		message.PartitionKey = partition
	case partition != "":
		message.SessionID = partition
	default:
		message.SessionID = someSessions.Draw(rt, "session")
	}
}

func (m *model) accept(rt *rapid.T) {
	id := someSessions.Draw(rt, "session")
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

// accepted compares the sessions that both stores gave and keeps the tokens.
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
			rt.Fatalf("session %q cannot be locked, though nobody holds it and it is not blocked", id)
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

// isHeld says whether the lock of a session holds, going by the answers alone.
func (m *model) isHeld(id string) bool {
	h := m.current[id]
	return h != nil && h.live(m.now)
}

// fenced checks the outcome of a verb under a session's lock: it can succeed only while the lock holds, and SESSION_LOCK_LOST is
// said only when it does not (I3, I5).
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
	id := someSessions.Draw(rt, "session")
	_, ok := agree(rt, m, "unblock", func(s semantics.Store) (any, error) { return nil, s.UnblockSession(m.ctx, m.main.Path, id) })
	m.looked(ok)
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
		"session of nobody": func(s semantics.Store) error {
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
