package verbs

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/cli"
)

// editor makes the verb run a script on the file.
func editor(t *testing.T, script string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "editor")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o700); err != nil { //nolint:gosec // it is to be run
		t.Fatal(err)
	}
	t.Setenv("VISUAL", "")
	t.Setenv("EDITOR", path)
	t.Setenv("TMPDIR", t.TempDir())
}

func TestMSG_17_DLQEdit(t *testing.T) {
	s := serveMemory(t)
	s.ok(t, "send", "orders", "--json", `{"total": "12"}`, "-p", "color=red", "-p", "n:int32=5", "--subject=order")
	_, err := s.api.DeadLetter(t.Context(), deadLetterRequest(tokens(s.take(t, 1))))
	if err != nil {
		t.Fatal(err)
	}
	number := strings.Fields(strings.Split(s.ok(t, "dlq", "list", "orders"), "\n")[1])[0]
	args := []string{"dlq", "edit", "orders", "--number", number}

	editor(t, `exit 0`)
	s.verb(t, typing(""), args...).wants(t, cli.Clean, "no changes, nothing was sent")
	editor(t, `exit 3`)
	s.verb(t, typing(""), args...).wants(t, cli.Failure, "failed, and nothing was sent: exit status 3")
	editor(t, `echo "subject: [" >> "$1"`)
	s.verb(t, typing(""), args...).wants(t, cli.Failure, "nothing was sent", "the edited text is kept in")
	editor(t, `sed -i 's/total: "12"/total: 12/; s/color: red/color: blue/; s/^subject: order/subject: repaired/' "$1"`)
	s.verb(t, typing("n\n"), args...).wants(t, cli.Failure, `- json: {"total":"12"}`, `+ json: {"total":12}`, "not confirmed; nothing was changed", "the edited text is kept in")
	s.verb(t, nil, args...).wants(t, cli.Usage, "pass --yes")
	if got := s.ok(t, "dlq", "count", "orders"); got != "1\n" {
		t.Fatalf("there are %s dead letters", got)
	}

	s.verb(t, typing("y\n"), args...).wants(t, cli.Clean, `+ properties.color: "blue"`, "- subject: \"order\"", "+ subject: \"repaired\"",
		"This sends the edited message to queues/orders and deletes dead letter "+number, "and deleted dead letter "+number)
	got := decoded(t, s.ok(t, "peek", "orders", "-o", "json"))
	properties, _ := got[0]["properties"].(map[string]any)
	body, _ := got[0]["json"].(map[string]any)
	if len(got) != 1 || got[0]["subject"] != "repaired" || body["total"] != 12.0 || properties["color"] != "blue" || properties["n"] == nil || len(properties) != 2 {
		t.Errorf("got %v, want it without the reason for which it was dead-lettered", got)
	}
	if got := s.ok(t, "dlq", "count", "orders"); got != "0\n" {
		t.Errorf("there are %s dead letters", got)
	}
	s.verb(t, typing("y\n"), args...).wants(t, cli.Failure, "there is no message "+number)
}

// Whichever call fails, the dead letter or the edited message is there.
func TestDLQEditLosesNothing(t *testing.T) {
	s := serveMemory(t)
	s.ok(t, "entity", "create", "small", "--set", "maxMessageCount=1")
	s.ok(t, "send", "small", "full")
	s.deadLetter(t, "Late", "body")
	editor(t, `sed -i 's/text: body/text: edited/' "$1"`)
	number := strings.Fields(strings.Split(s.ok(t, "dlq", "list", "orders"), "\n")[1])[0]
	s.verb(t, nil, "dlq", "edit", "orders", "--number", number, "--to=small", "--yes").wants(t, cli.Failure, "dead letter "+number+" stays", "the edited text is kept in")
	s.verb(t, nil, "dlq", "edit", "orders", "--number", number, "--to=nowhere", "--yes").wants(t, cli.Failure, "ENTITY_NOT_FOUND")
	s.wantTexts(t, []string{"body"}, "orders", "--dlq")
	if got := s.ok(t, "dlq", "list", "orders"); !strings.Contains(got, "available") {
		t.Errorf("it is still locked: %s", got)
	}
	s.ok(t, "dlq", "edit", "orders", "--number", number, "--yes", "--json")
	s.wantTexts(t, []string{"body"}, "orders", "--dlq") // the editor looks for YAML, so nothing was changed
	s.ok(t, "dlq", "edit", "orders", "--number", number, "--yes")
	s.wantTexts(t, []string{"edited"}, "orders")
	s.wantTexts(t, nil, "orders", "--dlq")
	s.verb(t, nil, "dlq", "edit", "topics/news/subscriptions/eu", "--number=1").wants(t, cli.Usage, "--to is missing")
}

// What the operator leaves alone stays byte for byte, although the editor shows it in another form.
func TestDLQEditKeepsTheBody(t *testing.T) {
	s := serveMemory(t)
	const body = `{ "a" : "<b>&", "big":9007199254740993, "x":1.10 }`
	s.ok(t, "send", "orders", "--json", body, "--subject=order")
	if _, err := s.api.DeadLetter(t.Context(), deadLetterRequest(tokens(s.take(t, 1)))); err != nil {
		t.Fatal(err)
	}
	for _, form := range []string{"--json=true", "--json=false"} {
		editor(t, `sed -i 's/order/repaired order/' "$1"`)
		number := strings.Fields(strings.Split(s.ok(t, "dlq", "list", "orders"), "\n")[1])[0]
		s.ok(t, "dlq", "edit", "orders", "--number", number, "--yes", form)
		got := s.take(t, 1)
		if got[0].GetJson() != body || !strings.HasPrefix(got[0].GetSubject(), "repaired") {
			t.Errorf("%s: got %v", form, got)
		}
		if _, err := s.api.DeadLetter(t.Context(), deadLetterRequest(tokens(got))); err != nil {
			t.Fatal(err)
		}
	}
}

// While the editor runs, the queue is deleted and created again, and another dead letter gets the number.
func TestDLQEditOfANumberThatMeansAnotherMessage(t *testing.T) {
	s := serveMemory(t)
	s.deadLetter(t, "Late", "first")
	editor(t, `sed -i 's/text: first/text: edited/' "$1"; cat "$TMPDIR/gate"`)
	gate := filepath.Join(os.Getenv("TMPDIR"), "gate")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	ended := make(chan outcome, 1)
	go func() { ended <- s.verb(t, nil, "dlq", "edit", "orders", "--number=1", "--yes") }()
	opened, err := os.OpenFile(gate, os.O_WRONLY, 0) // waits for the editor to read
	if err != nil {
		t.Fatal(err)
	}
	s.ok(t, "entity", "delete", "orders", "--yes")
	s.ok(t, "entity", "create", "orders")
	s.deadLetter(t, "Late", "second")
	_ = opened.Close() // the editor ends
	(<-ended).wants(t, cli.Failure, "dead letter 1 stays: it is not the message that you edited", "the edited text is kept in")
	s.wantTexts(t, []string{"second"}, "orders", "--dlq")
	s.wantTexts(t, nil, "orders")
}
