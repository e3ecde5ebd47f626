package redisstore_test

import (
	_ "embed"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/audit"
	"github.com/sidebus/sidebus/semantics"
)

// topicBefore has the keys of a topic as the version before shared bodies (docs/decisions/0037) wrote them: batches and
// single messages, some with a time to live or scheduled, and in its subscriptions locked, deferred and dead ones.
//
//go:embed testdata/topic-before-shared-bodies.txt
var topicBefore string

// A topic that the version before shared bodies filled is taken over: nothing is lost, what that version handed out is
// settled, and what comes now lies beside it.
func TestTopicOfAnOlderVersionIsTakenOver(t *testing.T) {
	t.Parallel()
	var millis int64
	_, rest, _ := strings.Cut(topicBefore, "\n")
	if _, err := fmt.Sscanf(rest, "now %d\n", &millis); err != nil {
		t.Fatal(err)
	}
	now := time.UnixMilli(millis).Add(time.Second)
	s := &topics{t: t, swept: openSwept(t, redisstore.Options{Now: func() time.Time { return now }})}
	ctx, tokens := t.Context(), map[string][]semantics.LockToken{}
	for line := range strings.Lines(topicBefore) {
		fields := strings.Fields(line)
		switch fields[0] {
		case "#", "now":
		case "locked", "session":
			for _, text := range fields[1:] {
				token, err := semantics.ParseLockToken(text)
				s.fails("read token", err)
				tokens[fields[0]] = append(tokens[fields[0]], token)
			}
		default:
			dump, err := base64.StdEncoding.DecodeString(fields[1])
			s.fails("read dump", err)
			s.fails("restore", s.raw.Restore(ctx, s.newsKey(fields[0]), 0, string(dump)).Err())
			if owner, isEntity := strings.CutSuffix(fields[0], "entity"); isEntity {
				at, err := s.raw.HGet(ctx, s.newsKey(fields[0]), "alarm_ms").Float64()
				s.fails("read alarm", err)
				alarm := redis.Z{Score: at, Member: strings.TrimRight("news/"+owner, ":/")}
				s.fails("set alarm", s.raw.ZAdd(ctx, "sb:{"+s.namespace+"}:alarms", alarm).Err())
			}
		}
	}
	s.audit()
	for source, some := range map[semantics.Source][]semantics.LockToken{
		of("plain"): tokens["locked"],
		{Path: of("sessions").Path, SessionLock: tokens["session"][0]}: tokens["session"][1:],
	} {
		codes, err := s.Complete(ctx, source, some)
		if err != nil || slices.ContainsFunc(codes, func(c semantics.Code) bool { return c != "" }) {
			t.Errorf("complete what was handed out before: %q, %v", codes, err)
		}
	}
	names := []string{"bounded", "brief", "plain"}
	s.publishShared(ofAllSizes(20), func(int) []string { return names })
	s.audit()
	for name, want := range map[string]int{"bounded": 28 + 20, "brief": 28 + 20, "plain": 28 - 2 - 2 - 2 - 2 - 2 + 20} {
		got := 0
		for {
			batch, err := s.Receive(ctx, of(name), 7, semantics.RegisterNever)
			s.fails("receive", err)
			if len(batch.Messages) == 0 {
				break
			}
			for _, m := range batch.Messages {
				if m.Unreadable != nil || len(m.Body) == 0 {
					t.Errorf("%s: message %d has %d bytes, %v", name, m.SequenceNumber, len(m.Body), m.Unreadable)
				}
			}
			got += len(batch.Messages)
			s.fails("complete", second(s.Complete(ctx, of(name), tokensOf(batch.Messages))))
			s.audit()
		}
		if got != want {
			t.Errorf("%s: %d messages, want %d", name, got, want)
		}
	}
	deferred, err := s.Peek(ctx, of("plain"), 1, 10, semantics.ShowDeferred)
	s.fails("peek", err)
	dead, err := s.Peek(ctx, deadOf("plain"), 1, 10, semantics.ShowAll)
	s.fails("peek", err)
	if got := fmt.Sprint(len(deferred), len(dead)); got != "2 2" {
		t.Errorf("deferred and dead: %s, want 2 2", got)
	}
	s.fails("delete", s.DeleteEntity(ctx, semantics.TopicKind, "news"))
	s.fails("audit", audit.New(s.raw, s.namespace).Audit(ctx, "news"))
}
