package verbs

import (
	"bytes"
	"context"
	"strings"
	"syscall"
	"testing"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/cli"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/terminal"
)

func TestEntityVerbs(t *testing.T) {
	t.Parallel()
	verbsInTurn(t)
	s := serveMemory(t)
	s.verb(t, nil, "entity", "create", "made", "--set", "lockDuration=45s", "-s", "status=send_disabled", "--set", "userMetadata=a,b=c",
		"--set", "defaultMessageTimeToLive=never").wants(t, cli.Clean, "created queues/made")
	s.verb(t, nil, "entity", "create", "made").wants(t, cli.Failure, "ENTITY_ALREADY_EXISTS", "entity update")
	show := s.verb(t, nil, "entity", "show", "queues/made")
	show.wants(t, cli.Clean, "SEND_DISABLED", "45s", "a,b=c", "10m", "never")
	got := decoded(t, s.ok(t, "entity", "show", "made", "-o", "json"))[0]
	if got["lockDuration"] != "45s" || got["status"] != "SEND_DISABLED" || got["userMetadata"] != "a,b=c" {
		t.Errorf("got %v", got)
	}
	s.verb(t, nil, "entity", "update", "made", "--set", "maxDeliveryCount=3", "--set", "lockDuration=").wants(t, cli.Clean, "updated queues/made")
	got = decoded(t, s.ok(t, "entity", "update", "made", "--set", "deadLetterTtl=14d", "-o", "json"))[0]
	if got["lockDuration"] != "60s" || got["maxDeliveryCount"] != 3.0 || got["status"] != "SEND_DISABLED" || got["deadLetterTtl"] != "1209600s" {
		t.Errorf("after updates: got %v", got)
	}
	s.verb(t, nil, "entity", "ensure", "made", "--set", "maxDeliveryCount=4").
		wants(t, cli.Clean, "queues/made exists and differs", "maxDeliveryCount", "nothing was changed")
	s.verb(t, nil, "entity", "ensure", "made", "--set", "deadLetterTtl=never", "--set", "defaultMessageTimeToLive=never").
		wants(t, cli.Clean, "queues/made exists and differs", "deadLetterTtl", "nothing was changed")
	s.verb(t, nil, "entity", "ensure", "orders").wants(t, cli.Clean, "queues/orders exists with these options")
	if got := decoded(t, s.ok(t, "entity", "ensure", "fresh", "-o", "json")); len(got) != 1 || got[0]["created"] != true {
		t.Errorf("got %v", got)
	}
	s.verb(t, nil, "entity", "list").wants(t, cli.Clean, "NAME", "fresh", "made", "orders")
	if got := decoded(t, s.ok(t, "entity", "list", "-o", "json")); len(got) != 1 || len(got[0]["queues"].([]any)) != 3 {
		t.Errorf("got %v, want one document", got)
	}
	s.ok(t, "send", "orders", "x")
	s.verb(t, nil, "entity", "delete", "orders").wants(t, cli.Usage, "--yes")
	s.verb(t, typing("n\n"), "entity", "delete", "orders").wants(t, cli.Failure, "This deletes queues/orders with 1 message in it, 0 of them dead-lettered.", "not confirmed")
	s.verb(t, typing("orders\n"), "entity", "delete", "orders").wants(t, cli.Clean, "deleted queues/orders with 1 message in it")
	if got := s.ok(t, "entity", "delete", "made", "--yes", "-o", "json"); got != "{}\n" {
		t.Errorf("got %q", got)
	}
	s.ok(t, "entity", "delete", "fresh", "-y")
	s.verb(t, nil, "entity", "list").wants(t, cli.Clean, "there are no queues")
	s.verb(t, nil, "stats").wants(t, cli.Clean, "there are no queues")
	if got := s.ok(t, "stats", "-o", "json"); got != `{"queues":[]}`+"\n" {
		t.Errorf("got %q", got)
	}
}

func TestENT_11_AutoDeleteOnIdleOfTheVerbs(t *testing.T) {
	t.Parallel()
	verbsInTurn(t)
	s := serveMemory(t)
	for _, name := range []string{"replies", "topics/news", "topics/news/subscriptions/eu"} {
		s.verb(t, nil, "entity", "create", name, "--set", "autoDeleteOnIdle=4m59s").wants(t, cli.Failure, "ARGUMENT_OUT_OF_RANGE", "autoDeleteOnIdle", "5m")
		s.ok(t, "entity", "create", name, "--set", "autoDeleteOnIdle=5m", "--set", "autoDeleteKeepsDeadLetters=true")
		got := decoded(t, s.ok(t, "entity", "show", name, "-o", "json"))[0]
		if got["autoDeleteOnIdle"] != "300s" || got["autoDeleteKeepsDeadLetters"] != true {
			t.Errorf("%s: got %v", name, got)
		}
		s.ok(t, "entity", "update", name, "--set", "autoDeleteOnIdle=never")
		got = decoded(t, s.ok(t, "entity", "show", name, "-o", "json"))[0]
		if span, is := got["autoDeleteOnIdle"]; is {
			t.Errorf("%s: after the update it is %v", name, span)
		}
		for _, line := range strings.Split(s.ok(t, "entity", "show", name), "\n") {
			if words := strings.Fields(line); len(words) == 2 && words[0] == "autoDeleteOnIdle" && words[1] != "never" {
				t.Errorf("%s shows %q", name, line)
			}
		}
	}
}

func TestStats(t *testing.T) {
	t.Parallel()
	s := serveMemory(t)
	s.ok(t, "entity", "create", "other")
	s.ok(t, "send", "orders", strings.Repeat("x", 3000), "b")
	s.take(t, 1)
	got := s.ok(t, "stats", "--wide")
	if rows := strings.Split(strings.TrimSpace(got), "\n"); len(rows) != 3 || !strings.HasPrefix(strings.Join(strings.Fields(rows[1]), " "), "orders 2 1 1 0 0 0 0 0 3.0 KiB 20") {
		t.Errorf("got %q", rows)
	}
	if got := s.ok(t, "stats", "other"); strings.Contains(got, "orders") {
		t.Errorf("got %q, want one queue", got)
	}
	document := decoded(t, s.ok(t, "stats", "orders", "queues/other", "-o", "json"))[0]["queues"].([]any)
	first := document[0].(map[string]any)
	if len(document) != 2 || first["name"] != "orders" || first["lockedCount"] != "1" || first["availableCount"] != "1" {
		t.Errorf("got %v", document)
	}
	s.verb(t, nil, "stats", "orders", "none").wants(t, cli.Failure, "ENTITY_NOT_FOUND")
	s.verb(t, nil, "stats", "--watch=1ms").wants(t, cli.Usage, "--watch")
}

func TestStatsWatch(t *testing.T) {
	t.Parallel()
	s := serveMemory(t)
	for _, isScreen := range []bool{false, true} {
		ctx, cancel := context.WithCancelCause(t.Context())
		var stdout, stderr bytes.Buffer
		watching := writerFunc(func(p []byte) (int, error) {
			n, err := stdout.Write(p)
			if strings.Count(stdout.String(), "QUEUE ") == 2 {
				cancel(cli.Interrupted{By: syscall.SIGINT})
			}
			return n, err
		})
		code := cli.Run(ctx, &Grammar{}, []string{"stats", "--watch=100ms", "--grpc-addr", s.grpc}, terminal.Streams{Stdout: watching, Stderr: &stderr, IsScreen: isScreen})
		outcome{code, stdout.String(), stderr.String()}.wants(t, 130, "every 100ms", "orders")
		if strings.Contains(stdout.String(), "\x1b[2J") != isScreen {
			t.Errorf("screen %t: got %q", isScreen, stdout.String())
		}
	}
}
