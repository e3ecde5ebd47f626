package redisstore_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sidebus/sidebus/lua"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
)

// steps compares the whole state of a queue with sessions after every step. In what it shows, / stands for a zero byte,
// T1 for the first token that was given, V for the version of a state, and t+5 for 5 ms after the beginning.
type steps struct {
	*sessions
	began time.Time
	names *strings.Replacer
	known []string
}

func openSteps(t *testing.T, changes ...func(*semantics.Options)) *steps {
	t.Helper()
	s := openSessions(t, changes...)
	return &steps{sessions: s, began: s.clock.Now(), names: strings.NewReplacer("\x00", "/")}
}

func (s *steps) accept(id string) semantics.Source {
	s.t.Helper()
	source := s.sessions.accept(id)
	s.named(source)
	return source
}

func (s *steps) named(source semantics.Source) {
	s.known = append(s.known, source.SessionLock.String(), fmt.Sprintf("T%d", len(s.known)/2+1))
	s.names = strings.NewReplacer(append([]string{"\x00", "/"}, s.known...)...)
}

var (
	stateVersion = regexp.MustCompile(`(:b?:)[1-9][0-9]*(:1[0-9]{12}:)`)
	instant      = regexp.MustCompile(`\b1[0-9]{12}\b`)
)

func (s *steps) want(step string, lines ...string) {
	s.t.Helper()
	got := []string{}
	for _, line := range dump(s.t, s.namespace) {
		line = stateVersion.ReplaceAllString(line, "${1}V$2")
		line = instant.ReplaceAllStringFunc(s.names.Replace(line), func(ms string) string {
			n, _ := strconv.ParseInt(ms, 10, 64)
			return fmt.Sprintf("t+%d", n-s.began.UnixMilli())
		})
		got = append(got, line)
	}
	slices.Sort(got)
	slices.Sort(lines)
	if diff := cmp.Diff(append([]string{}, lines...), got); diff != "" {
		s.t.Fatalf("%s (-want +got):\n%s", step, diff)
	}
	if len(got) > 0 {
		s.audit()
	}
}

func lockFor(d time.Duration) func(*semantics.Options) {
	return func(o *semantics.Options) { o.LockDuration = d }
}

// Each verb leaves exactly the keys and members it should, from the first message of a session to the last.
func TestSessionsStepByStep(t *testing.T) {
	t.Parallel()
	s := openSteps(t, lockFor(time.Second))
	ctx := t.Context()
	s.sendTo("a", 3)
	s.want("send", "entity sequence=3", "entity bytes=6", "log 1-2", "log 2-2", "log 3-2", "sessions a=3:t+0",
		"by_session a/a0000000000000001", "by_session a/a0000000000000002", "by_session a/a0000000000000003", "ready_sessions a@t+0")

	s.clock.Advance(5 * time.Millisecond)
	first := s.accept("a")
	s.want("accept", "entity sequence=3", "entity bytes=6", "log 1-2", "log 2-2", "log 3-2", "sessions a=3:t+0:T1::0:0:0",
		"by_session a/a0000000000000001", "by_session a/a0000000000000002", "by_session a/a0000000000000003",
		"session_locks a@t+1005", "session_tokens T1=a")

	got := s.receiveIn(first, 2)
	s.want("receive", "entity sequence=3", "entity bytes=6", "log 1-2", "log 2-2", "log 3-2", "sessions a=3:t+0:T1::0:0:0",
		"locks a/0000000000000001", "locks a/0000000000000002", "by_session a/a0000000000000003",
		"session_locks a@t+1005", "session_tokens T1=a")

	s.settle(s.Complete(ctx, first, tokensOf(got[:1])))
	s.want("complete", "entity sequence=3", "entity bytes=4", "log 2-2", "log 3-2", "sessions a=3:t+0:T1::0:0:0",
		"locks a/0000000000000002", "by_session a/a0000000000000003", "session_locks a@t+1005", "session_tokens T1=a")

	s.setState(first, []byte("note"))
	if rows, _, err := s.ListSessions(ctx, "orders", "", 9, semantics.SessionFilter{}); err != nil || len(rows) != 1 {
		t.Fatal(rows, err)
	}
	s.want("set state, list", "entity sequence=3", "entity bytes=4", "entity state_bytes=4", "log 2-2", "log 3-2",
		"sessions a=3:t+5:T1::V:t+5:4", "session_states a=note", "by_session a/t",
		"locks a/0000000000000002", "by_session a/a0000000000000003", "session_locks a@t+1005", "session_tokens T1=a")

	if _, err := s.RenewSessionLock(ctx, first); err != nil {
		t.Fatal(err)
	}
	rest := []string{
		"entity sequence=3", "entity bytes=4", "entity state_bytes=4", "log 2-2", "log 3-2",
		"session_states a=note", "by_session a/t",
	}
	s.clock.Advance(999 * time.Millisecond)
	s.want("renewed", append(rest, "sessions a=3:t+5:T1::V:t+5:4", "locks a/0000000000000002", "by_session a/a0000000000000003",
		"session_locks a@t+1005", "session_tokens T1=a")...)

	s.clock.Advance(time.Millisecond)
	if rows, _, err := s.ListSessions(ctx, "orders", "", 9, semantics.SessionFilter{}); err != nil || len(rows) != 1 {
		t.Fatal(rows, err)
	}
	s.want("end of the lock", append(rest, "sessions a=3:t+5:::V:t+5:4", "deliveries 2=1",
		"by_session a/a0000000000000002", "by_session a/a0000000000000003", "ready_sessions a@t+1005")...)

	if id := s.acceptNext(); id != "a" {
		t.Fatalf("accepted %q", id)
	}
	s.named(semantics.Source{SessionLock: tokenIn(t, s.sessions, "a")})
	second := semantics.Source{Path: "orders", SessionLock: tokenIn(t, s.sessions, "a")}
	got = s.receiveIn(second, 9)
	s.settle(s.Abandon(ctx, second, tokensOf(got[:1]), semantics.AbandonOptions{Delay: ofMinutes(1)}))
	s.closes(second)
	s.want("closed behind a delay", append(rest, "sessions a=3:t+5:::V:t+5:4", "deliveries 2=2", "delayed 2",
		"by_session a/w0000000000000002", "by_session a/a0000000000000003")...)

	s.clock.Advance(time.Minute)
	third := s.accept("a")
	got = s.receiveIn(third, 9)
	s.settle(s.Defer(ctx, third, tokensOf(got[:1]), nil))
	s.want("defer", append(rest, "sessions a=3:t+5:T3::V:t+5:4", "session_locks a@t+62005", "session_tokens T3=a", "deliveries 2=2",
		"deferred 2", "by_session a/d0000000000000002", "locks a/0000000000000003")...)

	byNumber, err := s.ReceiveByNumber(ctx, third, semantics.Deferred, []int64{2})
	s.fails("receive by number", err)
	s.settle(s.Complete(ctx, third, tokensOf(append(byNumber, got[1]))))
	s.setState(third, nil)
	s.closes(third)
	s.want("all is done", "entity sequence=3", "entity bytes=0", "entity state_bytes=0",
		"sessions a=3:t+61005", "idle_sessions a@t+61005")

	s.fails("delete", s.DeleteEntity(ctx, semantics.QueueKind, "orders"))
	s.want("deleted")
}

// tokenIn finds the token of a held session.
func tokenIn(t *testing.T, s *sessions, session string) semantics.LockToken {
	t.Helper()
	for token, of := range s.raw.HGetAll(t.Context(), s.key("session_tokens")).Val() {
		if of == session {
			found, err := semantics.ParseLockToken(token)
			if err != nil {
				t.Fatal(err)
			}
			return found
		}
	}
	t.Fatalf("nobody holds %s", session)
	return semantics.LockToken{}
}

// A session that is blocked is on no list of what can be accepted until it is unblocked, whatever becomes of it
// meanwhile.
func TestBlockedSessionsStepByStep(t *testing.T) {
	t.Parallel()
	s := openSteps(t, lockFor(time.Second), func(o *semantics.Options) {
		o.SessionOnDeadLetter, o.MaxDeliveryCount = semantics.BlockSession, 1
	})
	s.sendTo("a", 2)
	s.receiveIn(s.accept("a"), 1)
	s.clock.Advance(time.Second)
	if _, err := s.Runtime(t.Context(), semantics.QueueKind, "orders"); err != nil {
		t.Fatal(err)
	}
	dead := []string{
		"entity sequence=2", "entity bytes=2", "entity blocked=1", "entity dead_sequence=1", "entity dead_bytes=2",
		"dead_log 1-2", "dead_numbers 1", "log 2-2", "by_session a/a0000000000000002",
	}
	s.want("blocked", append(dead, "entity blocked_sessions=1", "by_session a/b", "sessions a=2:t+0::b:0:0:0")...)
	s.fails("unblock", s.UnblockSession(t.Context(), "orders", "a"))
	s.want("unblocked", append(dead, "entity blocked_sessions=0", "sessions a=2:t+0", "ready_sessions a@t+1000")...)
}

// A version that does not count blocked sessions may have blocked one: to unblock it does not count below zero.
func TestCNT_2_UnblockOfASessionThatIsNotCounted(t *testing.T) {
	t.Parallel()
	s := openSessions(t, func(o *semantics.Options) { o.SessionOnDeadLetter = semantics.BlockSession })
	s.sendTo("a", 1)
	a := s.accept("a")
	s.settle(s.DeadLetter(t.Context(), a, tokensOf(s.receiveIn(a, 1)), semantics.DeadLetterTexts{}, nil))
	if err := s.raw.HDel(t.Context(), s.key("entity"), "blocked_sessions").Err(); err != nil {
		t.Fatal(err)
	}
	s.fails("unblock", s.UnblockSession(t.Context(), "orders", "a"))
	counts, err := s.Runtime(t.Context(), semantics.QueueKind, "orders")
	if err != nil || counts.BlockedSessions != 0 {
		t.Errorf("%d sessions are blocked, %v", counts.BlockedSessions, err)
	}
}

// One script may block a session, because of what is due, and unblock it: the record follows both changes.
func TestSESS_29_UnblockedAsItIsBlocked(t *testing.T) {
	t.Parallel()
	s := openSteps(t, lockFor(time.Second), func(o *semantics.Options) {
		o.SessionOnDeadLetter, o.MaxDeliveryCount, o.DeadLetteringOnMessageExpiration = semantics.BlockSession, 1, true
	})
	short := part("a", "m")
	short.TimeToLive = ofMinutes(1)
	s.send(t, short, part("a", "m"))
	s.clock.Advance(time.Minute)
	s.fails("unblock", s.UnblockSession(t.Context(), "orders", "a"))
	s.want("unblocked", "entity sequence=2", "entity bytes=2", "entity blocked=1", "entity blocked_sessions=0",
		"entity dead_sequence=1", "entity dead_bytes=2",
		"dead_log 1-2", "dead_numbers 1", "log 2-2", "by_session a/a0000000000000002", "sessions a=2:t+0", "ready_sessions a@t+60000")
}

// A block outlives the option that brought it about.
func TestSESS_29_BlockOutlivesTheOption(t *testing.T) {
	t.Parallel()
	s := openSessions(t, func(o *semantics.Options) { o.SessionOnDeadLetter = semantics.BlockSession })
	s.sendTo("a", 2)
	a := s.accept("a")
	s.settle(s.DeadLetter(t.Context(), a, tokensOf(s.receiveIn(a, 1)), semantics.DeadLetterTexts{}, nil))
	if _, err := s.UpdateEntity(t.Context(), semantics.QueueKind, "orders", semantics.DefaultOptions(), []string{"sessionOnDeadLetter"}); err != nil {
		t.Fatal(err)
	}
	if got := s.receiveIn(a, 1); len(got) != 0 {
		t.Errorf("the holder of a blocked session got %d messages", len(got))
	}
	s.fails("unblock", s.UnblockSession(t.Context(), "orders", "a"))
	if got := s.receiveIn(a, 1); len(got) != 1 {
		t.Errorf("the holder of an unblocked session got %d messages, want 1", len(got))
	}
}

// The scripts that carry several calls give each its own outcome: of two sessions, of the same one twice, of one that
// is lost.
func TestSeveralSessionsInOneScript(t *testing.T) {
	t.Parallel()
	s := openSteps(t, func(o *semantics.Options) { o.SessionInFlight = 3 })
	s.sendTo("a", 2)
	s.sendTo("b", 4)
	a, b, lost := s.accept("a").SessionLock, s.accept("b").SessionLock, semantics.NewLockToken()
	now, until := s.clock.Now().UnixMilli(), s.clock.Now().Add(time.Minute).UnixMilli()

	reply := s.script("turn", allKeys, now, 1<<20, 7, "me",
		a, 1, 1<<20, 0, 0, lost, 5, 1<<20, 2, 0, b, 2, 1<<20, 2, 0, b, 2, 1<<20, 1, 0, a, 9, 1<<20, 0, 0)
	row := func(left, positions string) string { return fmt.Sprintf("- %s %d%s", left, until, positions) }
	want := []any{
		"OK", "0", "10000",
		[]any{},
		[]any{},
		// b has no more than three in flight
		row("1", " 1"), "SESSION_LOCK_LOST", row("1", " 3 4"), row("0", " 5"), row("0", " 2"),
	}
	if diff := cmp.Diff(want, reply); diff != "" {
		t.Fatalf("received (-want +got):\n%s", diff)
	}
	held := []string{
		"entity sequence=6", "log 6-2", "by_session b/a0000000000000006", "sessions a=2:t+0:T1::0:0:0", "sessions b=4:t+0:T2::0:0:0",
		"session_locks a@t+60000", "session_locks b@t+60000", "session_tokens T1=a", "session_tokens T2=b",
	}
	s.want("received", append(held, "entity bytes=12", "log 1-2", "log 2-2", "log 3-2", "log 4-2", "log 5-2", "session_waiting b=me:T2",
		"locks a/0000000000000001", "locks a/0000000000000002", "locks b/0000000000000003", "locks b/0000000000000004",
		"locks b/0000000000000005")...)

	// Each turn completes before it takes, and what one completes counts for all.
	lock := func(position int) string { return fmt.Sprintf("%016d:7", position) }
	reply = s.script("turn", allKeys, now, 1<<20, 8, "me",
		a, 0, 1<<20, 0, 2, lock(1), "1-2", lock(1), "1-2", b, 0, 1<<20, 0, 1, lock(1), "1-2", lost, 0, 1<<20, 0, 1, lock(3), "3-2",
		b, 9, 1<<20, 0, 3, lock(3), "3-2", lock(3), "3-2", "0000000000000004:8", "4-2", a, 9, 1<<20, 1, 1, lock(2), "2-2",
		b, 0, 1<<20, 0, 1, lock(5), "5-2")
	want = []any{
		"OK", "0", "10000",
		[]any{},
		[]any{},
		fmt.Sprintf("-10 0 %d", until), fmt.Sprintf("-0 0 %d", until), "SESSION_LOCK_LOST",
		fmt.Sprintf("-100 0 %d 6", until), fmt.Sprintf("-1 0 %d", until), fmt.Sprintf("-1 0 %d", until),
	}
	if diff := cmp.Diff(want, reply); diff != "" {
		t.Fatalf("completed and received (-want +got):\n%s", diff)
	}
	s.want("completed", "entity sequence=6", "log 6-2", "sessions a=2:t+0:T1::0:0:0", "sessions b=4:t+0:T2::0:0:0",
		"session_locks a@t+60000", "session_locks b@t+60000", "session_tokens T1=a", "session_tokens T2=b", "entity bytes=4",
		"log 4-2", "locks b/0000000000000004", "locks b/0000000000000006", "session_waiting a=me:T1")
}

// allKeys are the keys of a queue in the order of lua/lib/entity/open_queue.lua.
var allKeys = strings.Fields(`entity log ready locks waiting deliveries expiry gaps delayed deferred modified
	dead_log dead_ready dead_locks dead_waiting dead_deliveries dead_expiry dead_gaps dead_delayed dead_deferred dead_modified dead_numbers
	scheduled due scheduled_ids history history_times
	by_session sessions session_locks session_tokens session_waiting ready_sessions idle_sessions session_states states_due runs run_locks chunks bodies body_uses`)

// script calls a script past the store.
func (s *sessions) script(name string, parts []string, args ...any) []any {
	s.t.Helper()
	return callScript(s.t, s.key, name, parts, args...)
}

// callScript calls a script past the store. key makes the name of a key of its part.
func callScript(t *testing.T, key func(part string) string, name string, parts []string, args ...any) []any {
	t.Helper()
	scripts, err := lua.Scripts()
	if err != nil {
		t.Fatal(err)
	}
	keys := make([]string, len(parts))
	for i, part := range parts {
		keys[i] = key(part)
	}
	for i, arg := range args {
		if token, is := arg.(semantics.LockToken); is {
			args[i] = token.String()
		}
	}
	if !scripts[name].Accepts(len(keys), len(args)) {
		t.Fatalf("%s does not take %d keys and %d arguments", name, len(keys), len(args))
	}
	reply, err := rawClient(t).Eval(t.Context(), scripts[name].Text, keys, args...).Slice()
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return reply
}

// A queue has no more states than it may, however small they are, and changes those it has (QUOTA-8).
func TestQUOTA_8_StatesOfAQueue(t *testing.T) {
	t.Parallel()
	s := openSteps(t)
	a, b, now := s.accept("a"), s.accept("b"), s.clock.Now().UnixMilli()
	s.setState(a, []byte("1"))
	for i, step := range []struct {
		token semantics.LockToken
		state string
		want  string
	}{
		{b.SessionLock, "", "QUOTA_EXCEEDED"},
		{a.SessionLock, "longer", "OK"},
		{b.SessionLock, "clear", "OK"}, // clears nothing
		{a.SessionLock, "clear", "OK"},
		{b.SessionLock, "", "OK"},
		{a.SessionLock, "1", "QUOTA_EXCEEDED"},
	} {
		if step.state == "clear" {
			if reply := s.script("clear_session_state", allKeys, now, step.token, -1); reply[0] != step.want {
				t.Errorf("step %d: got %v, want %s", i, reply, step.want)
			}
		} else if reply := s.script("set_session_state", append(slices.Clip(allKeys), "entity"), now, step.token, -1, 1, step.state, "", i+1, len(step.state)); reply[0] != step.want {
			t.Errorf("step %d: got %v, want %s", i, reply, step.want)
		}
		s.audit()
	}
	s.want("one state", "entity state_bytes=0", "session_states b=", "by_session b/t",
		"sessions a=0:t+0:T1::0:0:0", "sessions b=0:t+0:T2::V:t+0:0",
		"session_locks a@t+60000", "session_locks b@t+60000", "session_tokens T1=a", "session_tokens T2=b")
}

// The numbers of the sessions that were used up last are kept, 100,000 of them, and those before are forgotten
// (MSG-19).
func TestMSG_19_IdleSessionsAreForgotten(t *testing.T) {
	t.Parallel()
	s := openSessions(t)
	s.sendTo("last", 1)
	redistest.Seed(t, s.raw, semantics.MaxIdleSessions, []string{s.key("sessions"), s.key("idle_sessions")}, `
	  redis.call("HSET", KEYS[1], "idle" .. i, "1:1")
	  redis.call("ZADD", KEYS[2], i, "idle" .. i)`)
	s.settle(s.DeleteByNumber(t.Context(), orders, []int64{1}))
	for session, want := range map[string]bool{"idle1": false, "idle2": true, "last": true} {
		known := s.raw.HExists(t.Context(), s.key("sessions"), session).Val()
		idle := s.raw.ZScore(t.Context(), s.key("idle_sessions"), session).Err() == nil
		if known != want || idle != want {
			t.Errorf("%s: known %t, idle %t, want %t", session, known, idle, want)
		}
	}
	if n := s.raw.ZCard(t.Context(), s.key("idle_sessions")).Val(); n != semantics.MaxIdleSessions {
		t.Errorf("%d sessions are idle, want %d", n, semantics.MaxIdleSessions)
	}
	s.sendTo("last", 1)
	s.sendTo("idle1", 1)
	for _, row := range mustPeek(t, s) {
		if want := map[string]int64{"last": 2, "idle1": 1}[row.SessionID]; row.SessionSequence != want {
			t.Errorf("%s goes on with %d, want %d", row.SessionID, row.SessionSequence, want)
		}
	}
}

func mustPeek(t *testing.T, s *sessions) []*semantics.Received {
	t.Helper()
	rows, err := s.Peek(t.Context(), orders, 0, 250, semantics.ShowAll)
	s.fails("peek", err)
	return rows
}

// A dead letter that is too large for a queue with sessions and has no session is refused for its size, which comes
// first (ERR-5).
func TestERR_5_SizeBeforeSession(t *testing.T) {
	t.Parallel()
	s := openSessions(t, func(o *semantics.Options) { o.MaxMessageSizeInKilobytes = 1 })
	ctx, plain := t.Context(), semantics.Source{Path: "plain"}
	if _, _, err := s.CreateEntity(ctx, semantics.QueueKind, plain.Path, semantics.DefaultOptions()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Send(ctx, plain.Path, []*semantics.Message{{MessageID: "l", Body: make([]byte, 2000)}, {MessageID: "s"}}); err != nil {
		t.Fatal(err)
	}
	s.settle(s.DeadLetter(ctx, plain, tokensOf(s.receiveIn(plain, 2)), semantics.DeadLetterTexts{}, nil))
	plain.SubQueue = semantics.DeadLetterQueue
	letters := []semantics.Resubmission{{SequenceNumber: 1, MessageID: "l"}, {SequenceNumber: 2, MessageID: "s"}}
	moved, err := s.Resubmit(ctx, plain, "orders", letters, false)
	s.fails("resubmit", err)
	if moved[0].Code != semantics.MessageSizeExceeded || moved[1].Code != semantics.SessionIDMissing {
		t.Errorf("got %+v, want MESSAGE_SIZE_EXCEEDED and SESSION_ID_MISSING", moved)
	}
}
