package verbs

import (
	"strings"
	"testing"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/cli"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/terminal"
)

// Only the name of the entity confirms what cannot be undone.
func TestPurgeIsConfirmedByTheName(t *testing.T) {
	t.Parallel()
	verbsInTurn(t)
	s := serveMemory(t)
	s.ok(t, "send", "orders", "a")
	for _, answer := range []string{"y\n", "yes\n", "order\n", "\n"} {
		s.verb(t, typing(answer), "purge", "orders").wants(t, cli.Failure, `Type "orders" to confirm: `, "not confirmed; nothing was changed")
		s.verb(t, typing(answer), "entity", "delete", "orders").wants(t, cli.Failure, "not confirmed; nothing was changed")
	}
	s.wantTexts(t, []string{"a"}, "orders")
	s.verb(t, nil, "purge", "orders").wants(t, cli.Usage, "stdin is not a terminal; pass --yes to skip confirmation")
	s.verb(t, typing(""), "purge", "orders").wants(t, cli.Usage, "Type \"orders\" to confirm: \nsidebus: stdin ended without an answer; pass --yes to skip confirmation")
	s.verb(t, typing("orders\n"), "purge", "orders").wants(t, cli.Clean, "removed 1 message")
	s.verb(t, typing(""), "purge", "orders").wants(t, cli.Clean, "there are no messages to remove in queues/orders")
	s.verb(t, nil, "purge", "orders", "--yes").wants(t, cli.Clean, "removed 0 messages")
}

func TestAnEntityThatIsMissing(t *testing.T) {
	t.Parallel()
	s := serveMemory(t)
	for _, c := range []struct{ args, want string }{
		{"entity delete nope --yes", `ENTITY_NOT_FOUND: entity "nope" does not exist; check the name or create it; "sidebus entity list" lists what exists` + "\n"},
		{"entity rm topics/nope --yes", `"sidebus entity list topics" lists what exists` + "\n"},
		{"entity list topics/nope", `"sidebus entity list topics" lists what exists` + "\n"},
		{"entity create topics/nope/subscriptions/eu", `"sidebus entity list topics" lists what exists` + "\n"},
		{"rule list topics/nope/subscriptions/eu", `entity "topics/nope/subscriptions/eu" does not exist; check the name or create it; "sidebus entity list topics/nope" lists what exists` + "\n"},
		{"receive nope", `"nope" does not exist; check the name or create it; "sidebus entity list" lists what exists` + "\n"},
		{"send nope hello", `"sidebus entity create nope" creates it, "sidebus entity list" lists what exists; a topic is written topics/nope` + "\n"},
		{"send topics/nope hello", `"sidebus entity create topics/nope" creates it, "sidebus entity list topics" lists what exists` + "\n"},
		{"entity show topics/nope/eu", `"sidebus entity list topics" lists what exists; a subscription is written topics/TOPIC/subscriptions/NAME` + "\n"},
		{"receive nope/subscriptions/eu", `has the reserved segment "subscriptions"; a subscription is topics/{topic}/subscriptions/{subscription}` + "\n"},
		{"entity create orders", `queue "orders" exists already; "sidebus entity ensure" keeps it, "sidebus entity update" changes it` + "\n"},
	} {
		got := s.verb(t, nil, strings.Fields(c.args)...)
		got.wants(t, cli.Failure, c.want)
		if strings.Contains(got.stderr, "PUT") || strings.Contains(got.stderr, "create it first") {
			t.Errorf("%s: got %s", c.args, got.stderr)
		}
	}
}

func TestAliasesAreAlikeEverywhere(t *testing.T) {
	t.Parallel()
	verbsInTurn(t)
	s := serveNews(t)
	s.deadLetter(t, "Late", "a", "b")
	for _, pair := range []string{
		"entity ls|entity list", "entity get orders|entity show orders", "rule ls topics/news/subscriptions/eu|rule list topics/news/subscriptions/eu",
		"dlq ls orders|dlq list orders", "dlq list orders|dlq orders list", "dlq count orders|dlq orders count", "dlq count orders --transfer|dlq orders --transfer count", "dlq count orders --transfer-dlq|dlq orders --transfer-dlq count",
		"dlq list orders --transfer|dlq list orders --transfer-dlq", "peek orders --transfer|peek orders --transfer-dlq",
	} {
		alias, full, _ := strings.Cut(pair, "|")
		if a, b := s.ok(t, strings.Fields(alias)...), s.ok(t, strings.Fields(full)...); a != b {
			t.Errorf("%s: got\n%s\nwant\n%s", pair, a, b)
		}
	}
	s.ok(t, "dlq", "rm", "orders", "--all", "--yes")
	s.ok(t, "entity", "rm", "orders", "--yes")
}

func TestCaretsUnderSQL(t *testing.T) {
	t.Parallel()
	s := serveNews(t)
	const sub = "topics/news/subscriptions/eu"
	for _, args := range [][]string{
		{"rule", "add", sub, "bad", "--sql", "color = = 'red'"},
		{"rule", "test", "--sql", "color = = 'red'"},
		{"dlq", "resubmit", "orders", "--filter", "color = = 'red'"},
		{"entity", "create", "topics/news/subscriptions/x", "--sql", "color = = 'red'"},
	} {
		s.verb(t, nil, args...).wants(t, cli.Failure, "FILTER_INVALID", "sidebus:   color = = 'red'\nsidebus:           ^\n")
	}
	s.verb(t, nil, "rule", "add", sub, "bad", "--all", "--action", "SET = 1").wants(t, cli.Failure, "ACTION_INVALID", "sidebus:   SET = 1\nsidebus:       ^\n")
}

func TestColoursOnlyWhereTheyAreSeen(t *testing.T) {
	t.Parallel()
	s := serveMemory(t)
	coloured := func(to *terminal.Streams) { to.HasColours, to.HasErrorColours = true, true }
	s.verb(t, coloured, "entity", "list").wants(t, cli.Clean, "\x1b[1mNAME", "orders")
	s.verb(t, coloured, "peek", "nope").wants(t, cli.Failure, "\x1b[31msidebus:\x1b[0m ENTITY_NOT_FOUND")
	for _, args := range [][]string{{"entity", "list"}, {"peek", "nope"}} {
		if got := s.verb(t, nil, args...); strings.Contains(got.stdout+got.stderr, "\x1b") {
			t.Errorf("%q: got %q", args, got.stdout+got.stderr)
		}
	}
}

func TestDurationsOfTables(t *testing.T) {
	t.Parallel()
	verbsInTurn(t)
	s := serveMemory(t)
	s.ok(t, "entity", "create", "week", "--set", "defaultMessageTimeToLive=P7D", "--set", "lockDuration=90s", "--set", "deadLetterTtl=1d2h30m")
	s.verb(t, nil, "entity", "list").wants(t, cli.Clean, " 7d ", " 90s ")
	s.verb(t, nil, "entity", "show", "week").wants(t, cli.Clean, "1d2h30m")
	s.verb(t, nil, "entity", "ensure", "week", "--set", "defaultMessageTimeToLive=30d").wants(t, cli.Clean, "CURRENT", "REQUESTED", "7d", "30d")
	s.verb(t, nil, "entity", "export", "week").wants(t, cli.Clean, "defaultMessageTimeToLive: 7d\n", "lockDuration: 90s\n", "deadLetterTtl: 1d2h30m\n")
	s.verb(t, nil, "entity", "create", "short", "--set", "lockDuration=400s").wants(t, cli.Failure, "lockDuration is 400s, must be 5s to 5m")
	s.verb(t, piping(s.ok(t, "entity", "export")), "entity", "apply", "-f", "-").wants(t, cli.Clean, "= 2 unchanged")
}
