package verbs

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/cli"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/terminal"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics"
)

// serveTales is serveMemory with the queue "tales", which has sessions.
func serveTales(t *testing.T, options ...string) *served {
	t.Helper()
	s := serveMemory(t)
	args := []string{"entity", "create", "tales", "--set", "requiresSession=true"}
	for _, option := range options {
		args = append(args, "--set", option)
	}
	s.ok(t, args...)
	return s
}

// hold takes a session of "tales" for the length of the test.
func (s *served) hold(t *testing.T, id string) *sidebusv1.Session {
	t.Helper()
	answer, err := s.api.Sessions.Accept(t.Context(), &sidebusv1.SessionsAcceptRequest{Source: "queues/tales", SessionId: &id})
	if err != nil {
		t.Fatal(err)
	}
	return answer.GetSession()
}

func (s *served) letGo(t *testing.T, held *sidebusv1.Session) {
	t.Helper()
	if _, err := s.api.Sessions.Close(t.Context(), &sidebusv1.SessionsCloseRequest{Source: "queues/tales", LockToken: held.GetLockToken()}); err != nil {
		t.Fatal(err)
	}
}

// cells are the words of a table, row by row.
func cells(table string) (rows [][]string) {
	for line := range strings.Lines(table) {
		rows = append(rows, strings.Fields(line))
	}
	return rows
}

func TestSessionList(t *testing.T) {
	t.Parallel()
	verbsInTurn(t)
	s := serveTales(t)
	for _, form := range []string{"table", "json"} {
		got := s.verb(t, nil, "session", "list", "tales", "-o", form)
		if got.wants(t, cli.Clean, "no sessions in queues/tales"); got.stdout != "" {
			t.Errorf("got %q, want nothing", got.stdout)
		}
	}
	s.ok(t, "send", "tales", "a1", "a2", "--session=a")
	s.ok(t, "send", "tales", "later", "--session-id=b", "--in=1h") // as the flag was called first
	s.ok(t, "session", "state", "set", "tales", "c", "12345")
	held := s.hold(t, "a")
	rows := cells(s.ok(t, "session", "ls", "queues/tales"))
	until := held.GetLockedUntil().AsTime().Format(time.RFC3339)
	if len(rows) != 4 || strings.Join(rows[1][:8], " ") != "a 2 0 0 0 0 - "+until || strings.Join(rows[2][:8], " ") != "b 0 0 0 0 1 - -" ||
		strings.Join(rows[3][:9], " ") != "c 0 0 0 0 0 5 B -" || rows[3][10] != "-" {
		t.Errorf("got %q", rows)
	}
	document := decoded(t, s.ok(t, "session", "list", "tales", "-o", "json"))
	if len(document) != 3 || document[0]["sessionId"] != "a" || document[0]["availableCount"] != "2" || document[0]["locked"] != true || document[2]["stateSize"] != "5" {
		t.Errorf("got %v", document)
	}
	ids := func(args ...string) string {
		var all []string
		for _, row := range decoded(t, s.ok(t, append([]string{"session", "list", "tales", "-o", "json"}, args...)...)) {
			all = append(all, row["sessionId"].(string))
		}
		return strings.Join(all, " ")
	}
	for args, want := range map[string]string{
		"--active-since=1h": "a b c", "--updated-since=1h": "c", "--active-since=2100-01-01T00:00:00Z": "", "--updated-since=2001-02-03T04:05:06Z": "c", "--max=0": "a b c",
	} {
		if got := ids(args); got != want {
			t.Errorf("%s: got %q, want %q", args, got, want)
		}
	}
	s.verb(t, nil, "session", "list", "tales", "--max=2").wants(t, cli.Clean, "there are more; --max 0 lists all")
	if got := s.verb(t, nil, "session", "list", "tales", "--max=3"); got.stderr != "" || got.code != cli.Clean {
		t.Errorf("got the note %q though there is no more", got.stderr)
	}
}

func TestSessionListPages(t *testing.T) {
	t.Parallel()
	s := serveTales(t)
	var want []string
	for i := range 230 {
		want = append(want, fmt.Sprintf("s%03d", i))
		if _, err := s.api.Send(t.Context(), &sidebusv1.SendRequest{Target: "queues/tales", Messages: []*sidebusv1.Message{{SessionId: &want[i]}}}); err != nil {
			t.Fatal(err)
		}
	}
	for most, n := range map[string]int{"0": 230, "100": 100, "150": 150, "1": 1} {
		rows := cells(s.ok(t, "session", "list", "tales", "--max", most))
		var got []string
		for _, row := range rows[1:] {
			got = append(got, row[0])
		}
		if !slices.Equal(got, want[:n]) {
			t.Errorf("--max %s: got %d sessions %q", most, len(got), got)
		}
	}
	s.verb(t, nil, "session", "show", "tales", "s229").wants(t, cli.Clean, "s229")
}

// Pages may be short or empty although others follow.
func TestSessionListGoesOnAfterEmptyPages(t *testing.T) {
	t.Parallel()
	row := func(id string) *sidebusv1.SessionRow { return &sidebusv1.SessionRow{SessionId: id} }
	pages := map[string]*sidebusv1.SessionsListResponse{
		"": {NextPageToken: "1"}, "1": {Sessions: []*sidebusv1.SessionRow{row("b")}, NextPageToken: "2"}, "2": {NextPageToken: "3"}, "3": {Sessions: []*sidebusv1.SessionRow{row("d")}},
	}
	calls := 0
	s := serveFake(t, &fake{list: func(r *sidebusv1.SessionsListRequest) (*sidebusv1.SessionsListResponse, error) {
		calls++
		return pages[r.GetPageToken()], nil
	}})
	if got := decoded(t, s.ok(t, "session", "list", "tales", "-o", "json")); len(got) != 2 || got[1]["sessionId"] != "d" {
		t.Errorf("got %v", got)
	}
	s.verb(t, nil, "session", "list", "tales", "--max=1").wants(t, cli.Clean, "there are more")
	calls = 0
	s.verb(t, typing("n\n"), "purge", "tales", "--session=a").wants(t, cli.Clean, `there are no messages to remove in session "a" of queues/tales`)
	if calls != 2 {
		t.Errorf("%d pages were asked for, want 2: what comes after b cannot be a", calls)
	}
}

func TestSessionShow(t *testing.T) {
	t.Parallel()
	verbsInTurn(t)
	s := serveTales(t)
	for range 3 {
		s.ok(t, "send", "tales", "of a", "--session=a")
		s.ok(t, "send", "tales", "of b", "--session=b")
	}
	got := s.verb(t, nil, "session", "show", "tales", "a")
	if got.wants(t, cli.Clean, "SESSION", "SEQUENCE", "of a"); strings.Contains(got.stdout, "of b") || strings.Count(got.stdout, "of a") != 3 {
		t.Errorf("got %s", got.stdout)
	}
	s.verb(t, nil, "session", "get", "tales", "a", "--max=2").wants(t, cli.Clean, "there are more; --from 5 shows the next ones")
	document := decoded(t, s.ok(t, "session", "show", "tales", "a", "-o", "json"))
	if len(document) != 1 || document[0]["session"].(map[string]any)["availableCount"] != "3" || len(document[0]["messages"].([]any)) != 3 {
		t.Errorf("got %v", document)
	}
	if document = decoded(t, s.ok(t, "session", "show", "tales", "a", "--max=1", "-o", "json")); len(document[0]["messages"].([]any)) != 1 {
		t.Errorf("got %v", document)
	}
	s.verb(t, nil, "session", "show", "tales", "aa").wants(t, cli.Clean, `no messages in session "aa" of queues/tales`)
	if got := s.ok(t, "session", "show", "tales", "aa", "-o", "json"); got != `{"messages":[]}`+"\n" {
		t.Errorf("got %q", got)
	}
	s.ok(t, "session", "state", "set", "tales", "noted", "x")
	s.verb(t, nil, "session", "show", "tales", "noted").wants(t, cli.Clean, "1 B", "no messages")
	s.wantTexts(t, []string{"of a", "of a", "of a"}, "tales", "--session=a")
	s.verb(t, nil, "peek", "tales").wants(t, cli.Clean, "SESSION", "of b")
}

func TestSessionState(t *testing.T) {
	t.Parallel()
	verbsInTurn(t)
	s := serveTales(t)
	state := func(args ...string) []string { return append([]string{"session", "state"}, args...) }
	s.verb(t, nil, state("get", "tales", "s")...).wants(t, cli.Clean, `session "s" of queues/tales has no state`)
	if got := s.ok(t, state("get", "tales", "s", "-o", "json")...); got != `{"version":"0"}`+"\n" {
		t.Errorf("got %q", got)
	}
	s.verb(t, nil, state("set", "tales", "s", "step 2\nof 5")...).wants(t, cli.Clean, `set the state of session "s" of queues/tales: 11 B, version 1`)
	s.verb(t, nil, state("get", "tales", "s")...).wants(t, cli.Clean, "VERSION", `1        11 B  step 2\nof 5`)
	if got := s.ok(t, state("get", "tales", "s", "--raw")...); got != "step 2\nof 5" {
		t.Errorf("raw: got %q", got)
	}
	if got := s.ok(t, state("get", "tales", "s", "-o", "json")...); got != `{"state":"c3RlcCAyCm9mIDU=","version":"1"}`+"\n" {
		t.Errorf("got %q", got)
	}
	octets := string([]byte{0, 0xff, '\n'})
	s.verb(t, piping(octets), state("set", "tales", "s")...).wants(t, cli.Clean, "3 B, version 2")
	if got := s.ok(t, state("get", "tales", "s", "--raw")...); got != octets {
		t.Errorf("octets: got %q", got)
	}
	s.verb(t, nil, state("get", "tales", "s")...).wants(t, cli.Clean, "(3 bytes)")
	s.verb(t, typing("typed"), state("set", "tales", "s", "-")...).wants(t, cli.Clean, "Ctrl-D", "5 B, version 3")
	file := filepath.Join(t.TempDir(), "state")
	if err := os.WriteFile(file, []byte("from a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := s.ok(t, state("set", "tales", "s", "--file", file, "-o", "json")...); got != `{"version":"4"}`+"\n" {
		t.Errorf("got %q", got)
	}
	s.verb(t, nil, state("set", "tales", "s", "x", "--expected-version=3")...).wants(t, cli.Failure, "PRECONDITION_FAILED")
	s.verb(t, nil, state("clear", "tales", "s", "--expected-version=3")...).wants(t, cli.Failure, "PRECONDITION_FAILED")
	s.verb(t, nil, state("clear", "tales", "s", "--expected-version=4")...).wants(t, cli.Clean, `cleared the state of session "s" of queues/tales`)
	// empty is a state
	s.verb(t, nil, state("set", "tales", "s", "", "--expected-version=0")...).wants(t, cli.Clean, "0 B, version 5")
	if got := s.ok(t, state("get", "tales", "s", "-o", "json")...); got != `{"state":"","version":"5"}`+"\n" {
		t.Errorf("got %q", got)
	}
	if got := s.ok(t, state("clear", "tales", "s", "-o", "json")...); got != `{"version":"0"}`+"\n" {
		t.Errorf("got %q", got)
	}
	s.verb(t, nil, state("set", "tales", "s", strings.Repeat("x", 256<<10+1))...).wants(t, cli.Failure, "SESSION_STATE_TOO_LARGE")

	held := s.hold(t, "s") // each verb has closed it
	for _, args := range [][]string{state("get", "tales", "s"), state("set", "tales", "s", "x"), state("clear", "tales", "s")} {
		s.verb(t, nil, args...).wants(t, cli.Failure, "SESSION_CANNOT_BE_LOCKED", `"sidebus session show" shows until when it is locked, --wait waits for it`)
	}
	s.letGo(t, held)
	s.ok(t, state("set", "tales", "s", "x", "--wait=60s")...)
	s.verb(t, nil, state("get", "tales", "s", "--wait=61s")...).wants(t, cli.Usage, "--wait is")
}

func TestSessionUnblock(t *testing.T) {
	t.Parallel()
	s := serveTales(t, "sessionOnDeadLetter=block")
	s.ok(t, "send", "tales", "bad", "good", "--session=s")
	held := s.hold(t, "s")
	taken, err := s.api.Receive(t.Context(), &sidebusv1.ReceiveRequest{Source: "queues/tales", SessionLockToken: &held.LockToken})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.api.DeadLetter(t.Context(), &sidebusv1.DeadLetterRequest{
		Source: "queues/tales", LockTokens: tokens(taken.GetMessages()), SessionLockToken: &held.LockToken,
	}); err != nil {
		t.Fatal(err)
	}
	s.letGo(t, held)
	s.verb(t, nil, "session", "list", "tales").wants(t, cli.Clean, "  blocked\n")
	s.verb(t, nil, "receive", "tales", "--next-session").wants(t, cli.Clean, "no session of queues/tales is ready")
	s.verb(t, nil, "receive", "tales", "--session=s").wants(t, cli.Failure, "SESSION_CANNOT_BE_LOCKED")
	s.verb(t, nil, "session", "unblock", "tales", "s").wants(t, cli.Clean, `session "s" of queues/tales is not blocked`)
	if got := s.ok(t, "session", "unblock", "tales", "s", "-o", "json"); got != "{}\n" {
		t.Errorf("got %q", got)
	}
	s.verb(t, nil, "receive", "tales", "--next-session", "--complete").wants(t, cli.Clean, "good")
}

func TestSESS_29_SessionDeadLetterRest(t *testing.T) {
	t.Parallel()
	s := serveTales(t)
	s.ok(t, "send", "tales", "one", "two", "--session=s")
	s.ok(t, "send", "tales", "three", "--session=t")
	s.verb(t, nil, "session", "dead-letter-rest", "tales", "s").wants(t, cli.Usage, "--yes")
	s.verb(t, nil, "session", "dead-letter-rest", "tales", "s", "-y").
		wants(t, cli.Clean, `dead-lettered the remaining messages of session "s" of queues/tales`)
	s.wantTexts(t, []string{"one", "two"}, "tales", "--dlq")
	s.wantTexts(t, []string{"three"}, "tales")
	if got := s.ok(t, "session", "dead-letter-rest", "tales", "none", "-y", "-o", "json"); got != "{}\n" {
		t.Errorf("got %q", got)
	}
}

func TestReceiveFromSessions(t *testing.T) {
	t.Parallel()
	s := serveTales(t)
	s.ok(t, "send", "tales", "a1", "a2", "a3", "--session=a")
	s.ok(t, "send", "tales", "b1", "--session=b")
	s.verb(t, nil, "receive", "tales").wants(t, cli.Failure, "SESSION_REQUIRED", "specify --session or --next-session")
	s.verb(t, nil, "receive", "orders", "--session=a").wants(t, cli.Failure, "SESSION_NOT_SUPPORTED")
	for range 2 { // given back, and the session closed
		got := s.verb(t, nil, "receive", "tales", "--session=a", "--max=2")
		got.wants(t, cli.Clean, "  a1\n", "  a2\n", "released 2 messages without counting")
		if strings.Contains(got.stdout, "  a3\n") || !strings.Contains(got.stdout, "SESSION") {
			t.Errorf("got %s", got.stdout)
		}
	}
	s.verb(t, nil, "receive", "tales", "--next-session", "--abandon", "-o", "json").wants(t, cli.Clean, `"sessionId":"b"`, `"sessionSequence":"1"`)
	if got := decoded(t, s.ok(t, "receive", "tales", "--session=b", "--delete", "-o", "json")); len(got) != 1 || got[0]["deliveryCount"] != 2.0 {
		t.Errorf("got %v", got)
	}
	s.ok(t, "receive", "tales", "--next-session", "--complete", "--max=5000")
	s.wantTexts(t, nil, "tales")
	s.verb(t, nil, "receive", "tales", "--next-session").wants(t, cli.Clean, "no session of queues/tales is ready")
	s.verb(t, nil, "receive", "tales", "--session=a", "--wait=10ms").wants(t, cli.Clean, `no messages in session "a" of queues/tales`)

	s.ok(t, "send", "tales", "deferred", "--session=a")
	held := s.hold(t, "a")
	s.verb(t, nil, "receive", "tales", "--session=a").wants(t, cli.Failure, "SESSION_CANNOT_BE_LOCKED")
	taken, err := s.api.Receive(t.Context(), &sidebusv1.ReceiveRequest{Source: "queues/tales", SessionLockToken: &held.LockToken})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.api.Defer(t.Context(), &sidebusv1.DeferRequest{
		Source: "queues/tales", LockTokens: tokens(taken.GetMessages()), SessionLockToken: &held.LockToken,
	}); err != nil {
		t.Fatal(err)
	}
	s.letGo(t, held)
	number := fmt.Sprint(taken.GetMessages()[0].GetSequenceNumber())
	s.verb(t, nil, "receive", "tales", "--session=b", "--deferred", number).wants(t, cli.Failure, "MESSAGE_NOT_FOUND")
	s.verb(t, nil, "receive", "tales", "--session=a", "--complete", "--deferred", number).wants(t, cli.Clean, "deferred")
	s.hold(t, "a") // a failure closes it too
	s.hold(t, "b")
}

// A receive that takes longer than the lock keeps the session, whatever becomes of single renewals.
func TestReceiveKeepsItsSession(t *testing.T) {
	t.Parallel()
	f := &fake{
		renewed: make(chan string), close: func() error { return nil }, released: make(chan []string, 1),
		received: []*sidebusv1.ReceivedMessage{{SequenceNumber: 7, LockToken: proto.String("a")}},
	}
	s := serveFake(t, f)
	s.verb(t, nil, "receive", "tales", "--session=s").wants(t, cli.Clean, "released 1 message")
	lost := semantics.Errorf(semantics.SessionLockLost, "the lock has ended")
	f.close = func() error { return statusOf(lost) }
	s.verb(t, nil, "receive", "tales", "--session=s", "--delete").
		wants(t, cli.Failure, `session "s" of queues/tales could not be closed and is held until its lock expires: SESSION_LOCK_LOST: the lock has ended`)
}

func TestSignalClosesTheSession(t *testing.T) {
	t.Parallel()
	s := serveTales(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer time.AfterFunc(50*time.Millisecond, func() { cancel(cli.Interrupted{By: syscall.SIGTERM}) }).Stop()
	var stdout, stderr bytes.Buffer
	code := cli.Run(ctx, &Grammar{}, []string{"receive", "tales", "--session=s", "--wait=300s", "--grpc-addr", s.grpc}, terminal.Streams{Stdout: &stdout, Stderr: &stderr})
	outcome{code, stdout.String(), stderr.String()}.wants(t, 143, "ended by a signal: terminated")
	s.hold(t, "s")
}

func TestPurgeOneSession(t *testing.T) {
	t.Parallel()
	s := serveTales(t)
	s.ok(t, "send", "tales", "a1", "a2", "--session=a")
	s.ok(t, "send", "tales", "a3", "--session=a", "--in=1h")
	s.ok(t, "send", "tales", "b1", "--session=b")
	s.verb(t, typing("no\n"), "purge", "tales", "--session=a").
		wants(t, cli.Failure, `This removes up to 2 messages of session "a" of queues/tales permanently: 2 available.`, "not confirmed")
	s.verb(t, typing("tales\n"), "purge", "tales", "--session=a", "--include=scheduled").
		wants(t, cli.Clean, "2 available, 1 scheduled.", `removed 3 messages from session "a" of queues/tales`)
	s.wantTexts(t, []string{"b1"}, "tales")
	s.verb(t, nil, "purge", "tales", "--session=nobody", "--yes").wants(t, cli.Clean, "removed 0 messages")
}

func TestSessionsInOtherVerbs(t *testing.T) {
	t.Parallel()
	s := serveTales(t, "sessionInFlight=7", "acceptNext=forbidden", "sessionStateTtl=never", "sessionExpiryMode=SESSION", "onDisconnect=release")
	show := s.verb(t, nil, "entity", "show", "tales")
	show.wants(t, cli.Clean, "requiresSession", "FORBIDDEN", "sessionStateTtl")
	got := decoded(t, s.ok(t, "entity", "update", "tales", "--set", "sessionStateTtl=7d", "-o", "json"))[0]
	if got["requiresSession"] != true || got["sessionInFlight"] != 7.0 || got["onDisconnect"] != "RELEASE" || got["sessionStateTtl"] != "604800s" {
		t.Errorf("got %v", got)
	}
	s.verb(t, nil, "entity", "update", "orders", "--set", "requiresSession=true").wants(t, cli.Failure, "PROPERTY_IMMUTABLE")
	s.verb(t, nil, "entity", "update", "orders", "--set", "acceptNext=maybe").wants(t, cli.Usage, "ALLOWED, FORBIDDEN")
	rows := cells(s.ok(t, "entity", "list"))
	if header := strings.Join(rows[0], " "); !strings.Contains(header, "DUPLICATE DETECTION SESSIONS CREATED") || rows[1][6] != "false" || rows[2][6] != "true" {
		t.Errorf("got %q", rows)
	}
	s.ok(t, "send", "tales", "x", "--session=a")
	s.ok(t, "send", "tales", "x", "--session=b")
	s.hold(t, "a")
	rows = cells(s.ok(t, "stats", "--wide"))
	if strings.Join(rows[0][12:15], " ") != "SESSIONS READY HELD" || strings.Join(rows[2][12:15], " ") != "2 1 1" {
		t.Errorf("got %q", rows)
	}
	s.verb(t, nil, "send", "tales", "x").wants(t, cli.Failure, "SESSION_ID_MISSING", "; specify --session\n")
	s.verb(t, nil, "receive", "tales", "--next-session").wants(t, cli.Failure, "INVALID_OPERATION")
}

func TestSessionVerbsRefuse(t *testing.T) {
	t.Parallel()
	s := serveTales(t)
	const noDLQ = "dead letters belong to no session"
	for name, test := range map[string]struct {
		args []string
		code int
		text string
	}{
		"no session":               {[]string{"session", "show", "tales"}, cli.Usage, "<session>"},
		"unknown queue":            {[]string{"session", "list", "none"}, cli.Failure, `ENTITY_NOT_FOUND: entity "none" does not exist`},
		"plain queue":              {[]string{"session", "list", "orders"}, cli.Failure, "SESSION_NOT_SUPPORTED"},
		"negative":                 {[]string{"session", "list", "tales", "--max=-1"}, cli.Usage, "--max"},
		"negative messages":        {[]string{"session", "show", "tales", "s", "--max=-1"}, cli.Usage, "--max"},
		"no instant":               {[]string{"session", "list", "tales", "--active-since=soon"}, cli.Usage, "--active-since is"},
		"no age":                   {[]string{"session", "list", "tales", "--updated-since=-1h"}, cli.Usage, "--updated-since is"},
		"empty id":                 {[]string{"session", "show", "tales", ""}, cli.Failure, "INVALID_ARGUMENT: sessionId"},
		"empty id to unblock":      {[]string{"session", "unblock", "tales", ""}, cli.Failure, "INVALID_ARGUMENT: sessionId"},
		"empty id to read":         {[]string{"session", "state", "get", "tales", ""}, cli.Failure, "INVALID_ARGUMENT: sessionId"},
		"long id":                  {[]string{"session", "state", "get", "tales", strings.Repeat("x", 129)}, cli.Failure, "INVALID_ARGUMENT: sessionId"},
		"raw JSON":                 {[]string{"session", "state", "get", "tales", "s", "--raw", "-o", "json"}, cli.Usage, "--raw"},
		"negative wait":            {[]string{"session", "state", "get", "tales", "s", "--wait=-1s"}, cli.Usage, "--wait"},
		"two states":               {[]string{"session", "state", "set", "tales", "s", "x", "--file=y"}, cli.Usage, "--file"},
		"no file":                  {[]string{"session", "state", "set", "tales", "s", "--file=/nowhere/at all"}, cli.Failure, "--file"},
		"negative version":         {[]string{"session", "state", "clear", "tales", "s", "--expected-version=-1"}, cli.Failure, "ARGUMENT_OUT_OF_RANGE: expectedVersion"},
		"two sessions":             {[]string{"receive", "tales", "--session=s", "--next-session"}, cli.Usage, "--next-session"},
		"receive an empty id":      {[]string{"receive", "tales", "--session="}, cli.Failure, "INVALID_ARGUMENT: sessionId"},
		"receive by number":        {[]string{"receive", "tales", "--session=s", "--number=1"}, cli.Usage, "--number"},
		"receive dead letters":     {[]string{"receive", "tales", "--next-session", "--dlq"}, cli.Usage, noDLQ},
		"peek at dead letters":     {[]string{"peek", "tales", "--session=s", "--dlq"}, cli.Usage, noDLQ},
		"peek into an empty id":    {[]string{"peek", "tales", "--session="}, cli.Failure, "INVALID_ARGUMENT: sessionId"},
		"purge dead letters":       {[]string{"purge", "tales", "--session=s", "--dlq", "--yes"}, cli.Usage, noDLQ},
		"purge dead letters too":   {[]string{"purge", "tales", "--session=s", "--include=dead-letter", "--yes"}, cli.Usage, noDLQ},
		"purge an empty id":        {[]string{"purge", "tales", "--session=", "--yes"}, cli.Failure, "INVALID_ARGUMENT: sessionId"},
		"purge of a plain queue":   {[]string{"purge", "orders", "--session=s", "--yes"}, cli.Failure, "SESSION_NOT_SUPPORTED"},
		"state of a plain queue":   {[]string{"session", "state", "get", "orders", "s"}, cli.Failure, "SESSION_NOT_SUPPORTED"},
		"unblock in a plain queue": {[]string{"session", "unblock", "orders", "s"}, cli.Failure, "SESSION_NOT_SUPPORTED"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.verb(t, nil, test.args...).wants(t, test.code, test.text)
		})
	}
}
