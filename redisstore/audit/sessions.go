package audit

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/sidebus/sidebus/semantics/sealed"
)

// sessionKept is what a queue keeps of one session, put together from all keys.
type sessionKept struct {
	letters  map[string][]string // what by_session has of it: positions by letter
	locks    []string            // positions of its locked messages
	numbered []numbered          // its messages in the log

	known bool // it has a record
	sessionRecord
}

// sessionRecord is a value of the hash sessions.
type sessionRecord struct {
	sequence, activity, version, setAt, bytes int64
	token, blocked                            string
	long                                      bool
}

// place says where by_session has a message, and numbered which SessionSequence the log has for it.
type (
	place    struct{ session, letter string }
	numbered struct{ position, sequence int64 }
)

var (
	sessionMember = regexp.MustCompile(`^([^\x00]+)\x00(?:([awxds])(\d{16})|([tb]))$`)
	sessionLock   = regexp.MustCompile(`^([^\x00]+)\x00(\d{16}):\d+$`)
	recordText    = regexp.MustCompile(`^(\d+):(\d+)(?::([^:]*):(b?):(\d+):(\d+):(\d+))?$`)
	sessionText   = regexp.MustCompile(`^(?:[^\x00\x01]|\x01[\x01\x02])+$`)
)

// unpadded returns 16 digits as positions stand elsewhere.
func unpadded(digits string) string {
	n, _ := strconv.ParseInt(digits, 10, 64)
	return strconv.FormatInt(n, 10)
}

// readSessions puts together what is kept of each session. A queue without sessions must have none of it.
func (q *audit) readSessions() {
	if q.entity["requires_session"] != "1" {
		for _, part := range []string{
			"by_session", "sessions", "session_locks", "session_tokens", "session_waiting", "idle_sessions",
			"session_states", "states_due",
		} {
			if q.keys[part] {
				q.fault("%s of a queue without sessions", part)
			}
		}
		return
	}
	q.sessions, q.places = map[string]*sessionKept{}, map[string][]place{}
	for _, part := range []string{"ready", "gaps"} {
		if q.keys[part] {
			q.fault("%s of a queue with sessions", part)
		}
	}
	if cursor := q.entity["cursor"]; cursor != "" {
		q.fault("a queue with sessions has the cursor %s", cursor)
	}
	for member, score := range q.zsets["by_session"] {
		m := sessionMember.FindStringSubmatch(member)
		if m == nil || score != 0 {
			q.fault("by_session has %q at %v", member, score)
			continue
		}
		on, letter := q.session(m[1]), m[2]+m[4]
		on.letters[letter] = append(on.letters[letter], unpadded(m[3]))
		if m[3] != "" {
			q.places[unpadded(m[3])] = append(q.places[unpadded(m[3])], place{m[1], letter})
		}
	}
	for session, text := range q.hashes["sessions"] {
		on := q.session(session)
		on.known = true
		if on.sessionRecord = readRecord(text); !recordText.MatchString(text) {
			q.fault("session %q has the record %q", session, text)
		}
	}
	for position, e := range q.logs["log"] {
		n, _ := strconv.ParseInt(position, 10, 64)
		sequence, _ := strconv.ParseInt(e.fields["q"], 10, 64)
		on := q.session(e.fields["s"])
		on.numbered = append(on.numbered, numbered{n, sequence})
	}
}

func readRecord(text string) sessionRecord {
	m := append(recordText.FindStringSubmatch(text), make([]string, 8)...)
	number := func(i int) int64 { n, _ := strconv.ParseInt(m[i], 10, 64); return n }
	return sessionRecord{
		sequence: number(1), activity: number(2), token: m[3], blocked: m[4], version: number(5),
		setAt: number(6), bytes: number(7), long: strings.Count(text, ":") > 1,
	}
}

func (q *audit) session(id string) *sessionKept {
	if q.sessions[id] == nil {
		q.sessions[id] = &sessionKept{letters: map[string][]string{}}
		if !sessionText.MatchString(id) {
			q.fault("%q is not the form in which a session is kept", id)
		}
	}
	return q.sessions[id]
}

// lockInSession notes the lock of a message of a session and returns its position.
func (q *audit) lockInSession(lock string, end float64) string {
	m := sessionLock.FindStringSubmatch(lock)
	if m == nil || end != 0 {
		q.fault("locks has %q at %v", lock, end)
		return ""
	}
	position := unpadded(m[2])
	on := q.session(m[1])
	on.locks = append(on.locks, position)
	if session := q.logs["log"][position].fields["s"]; session != m[1] {
		q.fault("%s is of session %q and locked in %q", position, session, m[1])
	}
	return position
}

// checkPlace is checkState for the main side of a queue with sessions: a message is in by_session once, under the
// letter that goes with delayed and deferred, or it is locked.
func (q *audit) checkPlace(position string, e logEntry, locked bool, sequence int64) {
	deferred, isDeferred := q.zsets["deferred"][position]
	_, delayed := q.zsets["delayed"][position]
	where := ""
	for _, p := range q.places[position] {
		where += p.letter
		if p.session != e.fields["s"] {
			q.fault("%s is of session %q and stands in %q", position, e.fields["s"], p.session)
		}
	}
	if locked {
		where += "l"
	}
	fits := map[string]bool{
		"a": !delayed && !isDeferred, "w": delayed && !isDeferred, "x": delayed && !isDeferred, "d": !delayed && deferred > 0,
		"l": !delayed && deferred <= 0,
	}
	n, _ := strconv.ParseInt(position, 10, 64)
	if !fits[where] || n > sequence {
		q.fault("%s stands under %q, delayed %t, deferred with %v, sequence %d", position, where, delayed, deferred, sequence)
	}
}

// checkSessions checks that what is kept of each session agrees, and returns the first instant at which something is
// due.
func (q *audit) checkSessions() int64 {
	if q.sessions == nil {
		return 0
	}
	first, bytes, versions := int64(0), int64(0), map[int64]string{}
	for _, part := range []string{"session_locks", "ready_sessions", "idle_sessions", "states_due"} {
		for session := range q.zsets[part] {
			q.session(session) // so that it is looked at too
		}
	}
	for _, part := range []string{"session_waiting", "session_states"} {
		for session := range q.hashes[part] {
			q.session(session)
		}
	}
	for session, on := range q.sessions {
		q.checkSession(session, on)
		bytes += on.bytes
		if other, taken := versions[on.version]; on.version > 0 && taken {
			q.fault("session %q has the state version %d, as %q has", session, on.version, other)
		}
		versions[on.version] = session
		first = earlier(first, int64(q.zsets["session_locks"][session]))
		first = earlier(first, int64(q.zsets["states_due"][session]))
	}
	for token, session := range q.hashes["session_tokens"] {
		if q.session(session).token != token {
			q.fault("token %s is of session %q, which has %q", token, session, q.session(session).token)
		}
	}
	if got := q.number("state_bytes"); got != bytes {
		q.fault("state_bytes is %d, the states are %d", got, bytes)
	}
	q.checkPlaces()
	return first
}

// checkPlaces checks that by_session has only what is there: see checkPlace for what the log has.
func (q *audit) checkPlaces() {
	for position, places := range q.places {
		_, active := q.logs["log"][position]
		scheduled, isScheduled := q.logs["scheduled"][position]
		isScheduled = isScheduled && len(places) == 1 && places[0] == place{scheduled.fields["s"], "s"}
		if active == isScheduled {
			q.fault("by_session has %s as %q, in the log %t", position, places, active)
		}
	}
	for number := range q.logs["scheduled"] {
		if len(q.places[number]) == 0 {
			q.fault("scheduled %s is not in by_session", number)
		}
	}
}

// checkSession checks one session: its record against all indexes that it is in or should be in.
func (q *audit) checkSession(session string, on *sessionKept) {
	wrong := func(format string, args ...any) {
		q.fault("session %q, %+v: %s", session, *on, fmt.Sprintf(format, args...))
	}
	held, resting := on.token != "", len(on.letters) == 0 && on.token == ""
	if !on.known {
		wrong("it has no record")
	}
	if on.long != (held || on.blocked != "" || on.version > 0) {
		wrong("its record is longer or shorter than it should be")
	}
	same := func(part string, has, should bool) {
		if has != should {
			wrong("in %s is %t, should be %t", part, has, should)
		}
	}
	in := func(part string) bool { _, is := q.zsets[part][session]; return is }
	same("session_locks", in("session_locks"), held)
	same("session_tokens", q.hashes["session_tokens"][on.token] == session, held)
	same("ready_sessions", in("ready_sessions"), !held && on.blocked == "" && on.receivable())
	same("idle_sessions", in("idle_sessions"), resting)
	same("by_session with b", on.letters["b"] != nil, on.blocked != "")
	same("by_session with t", on.letters["t"] != nil, on.version > 0)
	state, hasState := q.hashes["session_states"][session]
	same("session_states", hasState, on.version > 0)
	same("states_due", in("states_due"), in("states_due") && on.version > 0 && !held)
	if !isStateOf(state, on.bytes) || (on.setAt > 0) != hasState {
		wrong("its state has %d bytes", len(state))
	}
	if len(on.locks) > 0 && !held {
		wrong("messages are locked, but no client holds it")
	}
	if waits, is := q.hashes["session_waiting"][session]; is && (!held || !strings.HasSuffix(waits, ":"+on.token)) {
		wrong("its holder waits as %s", waits)
	}
	if resting && on.sequence == 0 {
		wrong("it never had a message and nothing is left of it")
	}
	slices.SortFunc(on.numbered, func(a, b numbered) int { return cmp.Compare(a.position, b.position) })
	for i, n := range on.numbered {
		if n.sequence < 1 || n.sequence > on.sequence || i > 0 && n.sequence <= on.numbered[i-1].sequence {
			wrong("message %d has the SessionSequence %d", n.position, n.sequence)
		}
	}
}

// isStateOf reports whether a stored state counts for so many bytes: one that is sealed is longer.
func isStateOf(state string, bytes int64) bool {
	if int64(len(state)) <= bytes {
		return int64(len(state)) == bytes
	}
	_, length, err := sealed.NameOf([]byte(state))
	return err == nil && int64(length) == bytes
}

// receivable reports whether a message is there that a receive could hand out: not behind one that is delayed and holds
// it up.
func (on *sessionKept) receivable() bool {
	lowest := func(letter string) int64 {
		low := int64(-1)
		for _, position := range on.letters[letter] {
			if n, _ := strconv.ParseInt(position, 10, 64); low < 0 || n < low {
				low = n
			}
		}
		return low
	}
	available, delayed := lowest("a"), lowest("w")
	return available >= 0 && (delayed < 0 || available < delayed)
}
