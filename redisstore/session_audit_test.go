package redisstore_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/audit"
	"github.com/sidebus/sidebus/semantics"
)

// damage is one thing done to the keys of a queue, and a word of what the auditor must say of it.
type damage struct {
	name, says string
	do         func(d *damaged)
}

// damaged writes to the keys of a queue past the scripts.
type damaged struct {
	*testing.T
	c   *redis.Client
	tag string
}

func (d *damaged) command(args ...any) {
	d.Helper()
	args[1] = d.tag + args[1].(string)
	if err := d.c.Do(d.Context(), args...).Err(); err != nil {
		d.Fatal(err)
	}
}

func (d *damaged) members(part, prefix string) []string {
	var found []string
	for _, member := range d.c.ZRange(d.Context(), d.tag+part, 0, -1).Val() {
		if strings.HasPrefix(member, prefix) {
			found = append(found, member)
		}
	}
	if len(found) == 0 {
		d.Fatalf("%s has nothing that begins with %q", part, prefix)
	}
	return found
}

// variedSessions has a session in each condition.
func variedSessions(t *testing.T) *sessions {
	t.Helper()
	s := openSessions(t, func(o *semantics.Options) {
		o.SessionOnDeadLetter, o.SessionStateTTL = semantics.BlockSession, time.Hour
	})
	ctx := t.Context()
	s.sendTo("held", 3)
	held := s.accept("held")
	s.receiveIn(held, 1)
	s.setState(held, []byte("state"))
	if _, err := s.Receive(ctx, held, 1, semantics.RegisterAlways); err != nil {
		t.Fatal(err)
	}
	s.sendTo("ready", 2)
	s.sendTo("idle", 1)
	s.settle(s.DeleteByNumber(ctx, orders, []int64{6}))
	for session, options := range map[string]semantics.AbandonOptions{
		"delayed": {Delay: ofMinutes(9)}, "skipping": {Delay: ofMinutes(9), SkipOrder: true},
	} {
		s.sendTo(session, 2)
		source := s.accept(session)
		s.settle(s.Abandon(ctx, source, tokensOf(s.receiveIn(source, 1)), options))
		s.closes(source)
	}
	s.sendTo("blocked", 2)
	source := s.accept("blocked")
	s.settle(s.DeadLetter(ctx, source, tokensOf(s.receiveIn(source, 1)), semantics.DeadLetterTexts{}, nil))
	s.closes(source)
	s.sendTo("deferred", 1)
	source = s.accept("deferred")
	s.settle(s.Defer(ctx, source, tokensOf(s.receiveIn(source, 1)), nil))
	s.closes(source)
	later := part("scheduled", "m")
	later.ScheduledAt = s.clock.Now().Add(time.Hour)
	s.send(t, later)
	source = s.accept("resting")
	s.setState(source, []byte{})
	s.closes(source)
	s.audit()
	return s
}

var sessionDamages = []damage{
	{"no place", `stands under ""`, func(d *damaged) { d.command("ZREM", "by_session", d.members("by_session", "ready\x00a")[0]) }},
	{"two places", `stands under`, func(d *damaged) {
		d.command("ZADD", "by_session", 0, strings.Replace(d.members("by_session", "ready\x00a")[0], "\x00a", "\x00d", 1))
	}},
	{"another session's", `stands in "held"`, func(d *damaged) {
		d.command("ZADD", "by_session", 0, strings.Replace(d.members("by_session", "ready\x00a")[0], "ready", "held", 1))
	}},
	{"place of nothing", `by_session has 99`, func(d *damaged) { d.command("ZADD", "by_session", 0, "ready\x00a0000000000000099") }},
	{"odd place", `by_session has "ready"`, func(d *damaged) { d.command("ZADD", "by_session", 0, "ready") }},
	{"score of a place", `at 1`, func(d *damaged) { d.command("ZADD", "by_session", 1, d.members("by_session", "ready\x00a")[0]) }},
	{"not escaped", `is not the form`, func(d *damaged) { d.command("HSET", "sessions", "a\x01b", "1:1") }},
	{"delay gone", `stands under "w"`, func(d *damaged) { d.command("DEL", "delayed") }},
	{"deferral gone", `stands under "d"`, func(d *damaged) { d.command("DEL", "deferred") }},
	{"delayed, available", `stands under "a"`, func(d *damaged) {
		member := d.members("by_session", "delayed\x00w")[0]
		d.command("ZREM", "by_session", member)
		d.command("ZADD", "by_session", 0, strings.Replace(member, "\x00w", "\x00a", 1))
	}},
	{"not scheduled", `is not in by_session`, func(d *damaged) { d.command("ZREM", "by_session", d.members("by_session", "scheduled\x00s")[0]) }},
	{"scheduled in another session", `by_session has`, func(d *damaged) {
		member := d.members("by_session", "scheduled\x00s")[0]
		d.command("ZREM", "by_session", member)
		d.command("ZADD", "by_session", 0, strings.Replace(member, "scheduled", "ready", 1))
	}},

	{"not ready", `in ready_sessions is false`, func(d *damaged) { d.command("ZREM", "ready_sessions", "ready") }},
	{"not ready behind one that skips", `in ready_sessions is false`, func(d *damaged) { d.command("ZREM", "ready_sessions", "skipping") }},
	{"ready behind a delay", `in ready_sessions is true`, func(d *damaged) { d.command("ZADD", "ready_sessions", 1, "delayed") }},
	{"ready while held", `in ready_sessions is true`, func(d *damaged) { d.command("ZADD", "ready_sessions", 1, "held") }},
	{"ready while blocked", `in ready_sessions is true`, func(d *damaged) { d.command("ZADD", "ready_sessions", 1, "blocked") }},
	{"ready without messages", `in ready_sessions is true`, func(d *damaged) { d.command("ZADD", "ready_sessions", 1, "deferred") }},
	{"ready without anything", `it has no record`, func(d *damaged) { d.command("ZADD", "ready_sessions", 1, "none") }},

	{"no end", `in session_locks is false`, func(d *damaged) { d.command("DEL", "session_locks") }},
	{"end of nobody's", `in session_locks is true`, func(d *damaged) { d.command("ZADD", "session_locks", "9e12", "ready") }},
	{"no token", `in session_tokens is false`, func(d *damaged) { d.command("DEL", "session_tokens") }},
	{"token of nobody", `token x`, func(d *damaged) { d.command("HSET", "session_tokens", "x", "ready") }},
	{"second token", `token x`, func(d *damaged) { d.command("HSET", "session_tokens", "x", "held") }},
	{"waits for nothing", `its holder waits`, func(d *damaged) { d.command("HSET", "session_waiting", "ready", "s:t") }},
	{"waits with another token", `its holder waits`, func(d *damaged) { d.command("HSET", "session_waiting", "held", "s:t") }},
	{"lock gone", `stands under ""`, func(d *damaged) { d.command("DEL", "locks") }},
	{"lock in another session", `locked in "ready"`, func(d *damaged) {
		lock := d.members("locks", "held")[0]
		d.command("ZREM", "locks", lock)
		d.command("ZADD", "locks", 0, strings.Replace(lock, "held", "ready", 1))
	}},
	{"lock that no client holds", `no client holds it`, func(d *damaged) {
		place := d.members("by_session", "ready\x00a")[0]
		d.command("ZREM", "by_session", place)
		d.command("ZADD", "locks", 0, strings.Replace(place, "\x00a", "\x00", 1)+":7")
	}},
	{"second lock", `has two locks`, func(d *damaged) { d.command("ZADD", "locks", 0, d.members("locks", "held")[0]+"7") }},
	{"lock of its own end", `locks has`, func(d *damaged) { d.command("ZADD", "locks", 5, d.members("locks", "held")[0]) }},

	{"no record", `it has no record`, func(d *damaged) { d.command("HDEL", "sessions", "ready") }},
	{"odd record", `has the record "x"`, func(d *damaged) { d.command("HSET", "sessions", "ready", "x") }},
	{"long record", `longer or shorter`, func(d *damaged) { d.command("HSET", "sessions", "ready", "2:1:::0:0:0") }},
	{"short record", `in session_locks is true`, func(d *damaged) { d.command("HSET", "sessions", "held", "3:1") }},
	{"record of nothing", `nothing is left of it`, func(d *damaged) { d.command("HSET", "sessions", "none", "0:1") }},
	{"number not given", `has the SessionSequence 2`, func(d *damaged) { d.command("HSET", "sessions", "ready", "1:1") }},
	{"not idle", `in idle_sessions is false`, func(d *damaged) { d.command("DEL", "idle_sessions") }},
	{"idle with messages", `in idle_sessions is true`, func(d *damaged) { d.command("ZADD", "idle_sessions", 1, "ready") }},
	{"idle without record", `it has no record`, func(d *damaged) { d.command("ZADD", "idle_sessions", 1, "none") }},
	{"idle with state", `in idle_sessions is true`, func(d *damaged) { d.command("ZADD", "idle_sessions", 1, "resting") }},

	{"state gone", `session_states is false`, func(d *damaged) { d.command("HDEL", "session_states", "resting") }},
	{"state of nobody", `session_states is true`, func(d *damaged) { d.command("HSET", "session_states", "ready", "") }},
	{"state longer", `its state has 6 bytes`, func(d *damaged) { d.command("HSET", "session_states", "held", "longer") }},
	{"bytes of states", `state_bytes is 6`, func(d *damaged) { d.command("HINCRBY", "entity", "state_bytes", 1) }},
	{"no mark of a state", `by_session with t is false`, func(d *damaged) { d.command("ZREM", "by_session", "held\x00t") }},
	{"mark of no state", `by_session with t is true`, func(d *damaged) { d.command("ZADD", "by_session", 0, "ready\x00t") }},
	{"version of two", `state version`, func(d *damaged) {
		var parts [2][]string // "<sequence>:<activity>:<token>:<b>:<version>:<set at>:<bytes>"
		for i, session := range []string{"held", "resting"} {
			parts[i] = strings.Split(d.c.HGet(d.Context(), d.tag+"sessions", session).Val(), ":")
		}
		parts[1][4] = parts[0][4]
		d.command("HSET", "sessions", "resting", strings.Join(parts[1], ":"))
	}},
	{"state due while held", `in states_due is true`, func(d *damaged) { d.command("ZADD", "states_due", "9e12", "held") }},
	{"state due of none", `in states_due is true`, func(d *damaged) { d.command("ZADD", "states_due", "9e12", "ready") }},
	{"no mark of a block", `by_session with b is false`, func(d *damaged) { d.command("ZREM", "by_session", "blocked\x00b") }},
	{"mark of no block", `by_session with b is true`, func(d *damaged) { d.command("ZADD", "by_session", 0, "ready\x00b") }},

	{"end past the alarm", `alarm_ms is`, func(d *damaged) { d.command("ZADD", "session_locks", 1, "held") }},
	{"state past the alarm", `alarm_ms is`, func(d *damaged) { d.command("ZADD", "states_due", 1, "resting") }},
	{"of a plain queue", `ready of a queue with sessions`, func(d *damaged) { d.command("ZADD", "ready", 1, 1) }},
	{"gap", `gaps of a queue with sessions`, func(d *damaged) { d.command("ZADD", "gaps", 50, "50-50") }},
	{"cursor", `has the cursor 1`, func(d *damaged) { d.command("HSET", "entity", "cursor", 1) }},
}

// The auditor finds each kind of damage to sessions, and says which. A test that cannot fail proves nothing.
func TestAuditorFindsDamageOfSessions(t *testing.T) {
	t.Parallel()
	for _, damage := range sessionDamages {
		t.Run(damage.name, func(t *testing.T) {
			t.Parallel()
			s := variedSessions(t)
			damage.do(&damaged{T: t, c: s.raw, tag: s.key("")})
			err := audit.New(s.raw, s.namespace).Audit(t.Context(), "orders")
			if err == nil || !strings.Contains(err.Error(), damage.says) {
				t.Errorf("got %v, want %q", err, damage.says)
			}
		})
	}
}

// A queue without sessions has nothing of them.
func TestAuditorFindsSessionsOfAPlainQueue(t *testing.T) {
	t.Parallel()
	for part, command := range map[string][]any{
		"by_session": {"ZADD", "by_session", 0, "a\x00t"}, "session_locks": {"ZADD", "session_locks", 1, "a"},
		"ready_sessions": {"ZADD", "ready_sessions", 1, "a"}, "idle_sessions": {"ZADD", "idle_sessions", 1, "a"},
		"states_due": {"ZADD", "states_due", 1, "a"}, "sessions": {"HSET", "sessions", "a", "1:1"},
		"session_tokens": {"HSET", "session_tokens", "t", "a"}, "session_waiting": {"HSET", "session_waiting", "a", "s:t"},
		"session_states": {"HSET", "session_states", "a", ""},
	} {
		s := openSwept(t, redisstore.Options{})
		s.create(t, func(*semantics.Options) {})
		(&damaged{T: t, c: s.raw, tag: s.key("")}).command(command...)
		err := audit.New(s.raw, s.namespace).Audit(t.Context(), "orders")
		if err == nil || !strings.Contains(err.Error(), part+" of a queue without sessions") {
			t.Errorf("%s: got %v", part, err)
		}
	}
}
