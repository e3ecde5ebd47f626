package verbs

import (
	"strings"
	"testing"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/cli"
	"github.com/sidebus/sidebus/test/filetest"
)

const eu = "topics/news/subscriptions/eu"

// serveNews is serveMemory with the topic "news" and its subscription "eu".
func serveNews(t *testing.T) *served {
	t.Helper()
	s := serveMemory(t)
	s.ok(t, "entity", "create", "topics/news")
	s.ok(t, "entity", "create", eu)
	return s
}

func TestEntityVerbsOfTopics(t *testing.T) {
	t.Parallel()
	verbsInTurn(t)
	s := serveMemory(t)
	s.verb(t, nil, "entity", "list", "topics").wants(t, cli.Clean, `there are no topics; "sidebus entity create topics/NAME" creates one`)
	s.verb(t, nil, "entity", "create", "topics/news", "--set", "failIfUnmatched=true", "-s", "status=send_disabled").wants(t, cli.Clean, "created topics/news")
	s.verb(t, nil, "entity", "create", "topics/News").wants(t, cli.Failure, "ENTITY_ALREADY_EXISTS")
	s.verb(t, nil, "entity", "create", "topics/orders").wants(t, cli.Failure, `queue "orders" exists already`)
	s.verb(t, nil, "entity", "list", "topics/news").wants(t, cli.Clean, `topics/news has no subscriptions; "sidebus entity create topics/news/subscriptions/NAME" creates one`)
	s.verb(t, nil, "entity", "create", eu, "--set", "overflow=drop_oldest", "--set", "maxMessageCount=5").wants(t, cli.Clean, "created "+eu)
	s.verb(t, nil, "entity", "ensure", eu, "--set", "overflow=REJECT").wants(t, cli.Clean, eu+" exists and differs", "DROP_OLDEST", `"sidebus rule" changes rules`)
	s.verb(t, nil, "entity", "ensure", "topics/news", "--set", "failIfUnmatched=true").wants(t, cli.Clean, "topics/news exists with these options")
	s.verb(t, nil, "entity", "show", "topics/news").wants(t, cli.Clean, "failIfUnmatched", "SEND_DISABLED", "supportOrdering")
	show := s.verb(t, nil, "entity", "show", eu)
	show.wants(t, cli.Clean, "overflow", "DROP_OLDEST", "lockDuration")
	if strings.Contains(show.stdout, "rules") {
		t.Errorf("got %s", show.stdout)
	}
	s.verb(t, nil, "send", "topics/news", "x").wants(t, cli.Failure, `"sidebus entity update topics/news --set status=ACTIVE" enables it`)
	s.verb(t, nil, "entity", "update", "topics/news", "--set", "status=").wants(t, cli.Clean, "updated topics/news")
	got := decoded(t, s.ok(t, "entity", "update", eu, "--set", "lockDuration=10s", "-o", "json"))[0]
	if got["name"] != "eu" || got["lockDuration"] != "10s" || got["overflow"] != "DROP_OLDEST" {
		t.Errorf("got %v", got)
	}
	s.ok(t, "entity", "create", "topics/sports")
	s.ok(t, "entity", "create", "topics/news%2Fsubscriptions/us")
	for args, want := range map[string]string{
		"queues": "orders", "topics": "news sports", "topics --prefix S": "sports", "topics/news": "eu us", "topics/news/subscriptions --prefix e": "eu",
		"queues --prefix x": "",
	} {
		var names []string
		for _, line := range strings.Split(s.ok(t, append([]string{"entity", "list"}, strings.Fields(args)...)...), "\n")[1:] {
			if fields := strings.Fields(line); len(fields) > 0 {
				names = append(names, fields[0])
			}
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("list %s: got %q, want %q", args, got, want)
		}
	}
	s.verb(t, nil, "entity", "list", "things").wants(t, cli.Usage, `cannot list "things"; specify queues, topics or topics/NAME`)
	s.verb(t, nil, "entity", "list", "topics", "--prefix", "x").wants(t, cli.Clean, `there are no topics whose names begin with "x"`)
	if got := decoded(t, s.ok(t, "entity", "list", "topics/news", "-o", "json"))[0]["subscriptions"].([]any); len(got) != 2 {
		t.Errorf("got %v", got)
	}
	s.verb(t, nil, "entity", "create", "topics/x", "--set", "lockDuration=3s").wants(t, cli.Usage, "the options of a topic are maxSizeInMegabytes")
	s.verb(t, nil, "entity", "create", "q", "--sql", "1=1").wants(t, cli.Usage, "only a subscription has rules")

	s.ok(t, "send", "topics/news", "x", "y")
	s.verb(t, typing("n\n"), "entity", "delete", eu).wants(t, cli.Failure, "This deletes "+eu+" with 2 messages in it, 0 of them dead-lettered.")
	s.verb(t, typing("topics/news\n"), "entity", "delete", "topics/news").wants(t, cli.Clean, "This deletes topics/news with 2 subscriptions, ", "deleted topics/news with 2 subscriptions, ")
	s.verb(t, nil, "entity", "show", eu).wants(t, cli.Failure, "ENTITY_NOT_FOUND")
}

func TestRuleVerbs(t *testing.T) {
	t.Parallel()
	verbsInTurn(t)
	s := serveNews(t)
	s.verb(t, nil, "rule", "add", eu, "red", "--sql", "color = @c", "--parameter", "c=red").
		wants(t, cli.Clean, "added rule red to "+eu, `the rule $Default still selects every message; "sidebus rule delete topics/news/subscriptions/eu '$Default'" removes it`)
	s.verb(t, nil, "rule", "delete", eu, "$Default").wants(t, cli.Clean, "deleted rule $Default of "+eu)
	s.verb(t, nil, "rule", "delete", eu, "$Default").wants(t, cli.Failure, "RULE_NOT_FOUND")
	s.verb(t, nil, "rule", "add", eu, "RED", "--all").wants(t, cli.Failure, "RULE_ALREADY_EXISTS", "a rule cannot be changed")
	urgent := s.verb(t, nil, "rule", "add", eu, "urgent", "--correlation", "sys.Label=urgent", "--correlation", "n:int32=5", "--action", "SET a = 1; REMOVE b")
	if urgent.wants(t, cli.Clean, "added rule urgent"); strings.Contains(urgent.stderr, "$Default") {
		t.Errorf("got %s", urgent.stderr)
	}
	s.verb(t, nil, "rule", "add", eu, "odd", "--sql", "1 = 'one'").wants(t, cli.Clean, "warning: filter: column 1")
	s.verb(t, nil, "rule", "add", eu, "bad", "--sql", "color = ").wants(t, cli.Failure, "FILTER_INVALID: column 9")
	s.verb(t, nil, "rule", "list", eu).wants(t, cli.Clean, "NAME", "color = @c", "sys.Label = 'urgent' (string) AND n = 5 (int32)", "SET a = 1; REMOVE b", "1 = 'one'")
	s.verb(t, nil, "rule", "show", eu, "Red").wants(t, cli.Clean, "filter parameters", `{"c":"red"}`)
	s.ok(t, "rule", "add", eu, "both", "--sql", "a = @One", "--action", "SET b = @two", "--parameter", "@one=1", "--parameter", "two=2")
	show := s.ok(t, "rule", "show", eu, "both")
	if !strings.Contains(show, `filter parameters  {"@one":1}`) || !strings.Contains(show, `action parameters  {"two":2}`) {
		t.Errorf("got %s", show)
	}
	s.ok(t, "rule", "delete", eu, "both")
	got := decoded(t, s.ok(t, "rule", "show", eu, "urgent", "-o", "json"))[0]
	correlation := got["filter"].(map[string]any)["correlation"].(map[string]any)
	if correlation["subject"] != "urgent" || correlation["properties"].(map[string]any)["n"].(map[string]any)["type"] != "int32" {
		t.Errorf("got %v", got)
	}
	if all := decoded(t, s.ok(t, "rule", "list", eu, "-o", "json"))[0]["rules"].([]any); len(all) != 3 {
		t.Errorf("got %v", all)
	}
	for _, c := range []struct{ args, text string }{
		{"add " + eu + " x", "--sql, --correlation, --all or --none"},
		{"add " + eu + " x --all --none", "--none"},
		{"add " + eu + " x --correlation sys.Nothing=1", "ReplyToSessionId"},
		{"add " + eu + " x --correlation sys.To=1 --correlation sys.to=2", "twice"},
		{"add " + eu + " x --correlation a=1 --correlation a=2", "twice"},
		{"add " + eu + " x --sql a=@p --parameter p", "--parameter"},
		{"add " + eu + " x --sql a=@p --parameter q=1", "--parameter q is in neither"},
		{"list", "<subscription>"},
	} {
		s.verb(t, nil, append([]string{"rule"}, strings.Fields(c.args)...)...).wants(t, cli.Usage, c.text)
	}
	s.verb(t, nil, "rule", "list", "topics/news").wants(t, cli.Failure, `subscription is "topics/news", must be "topics/{topic}/subscriptions/{subscription}"`)
	s.verb(t, nil, "rule", "list", "topics/news/subscriptions/none").wants(t, cli.Failure, "ENTITY_NOT_FOUND")

	const own = "topics/news/subscriptions/own"
	s.verb(t, nil, "entity", "create", own, "--rule", "blue", "--sql", "color = 'blue'").wants(t, cli.Clean, "created "+own)
	if all := s.ok(t, "rule", "list", own); !strings.Contains(all, "blue") || strings.Contains(all, "$Default") {
		t.Errorf("got %s", all)
	}
	s.verb(t, nil, "entity", "ensure", own, "--none").wants(t, cli.Clean, "rules[blue]", "rules[$Default]", "none")
	s.ok(t, "rule", "delete", own, "blue")
	s.verb(t, nil, "rule", "list", own).wants(t, cli.Clean, own+" has no rules and receives nothing")
}

// What is sent to a topic is handled at its subscription by the verbs that handle a queue.
func TestVerbsOfSubscriptions(t *testing.T) {
	t.Parallel()
	verbsInTurn(t)
	s := serveNews(t)
	const us, tellers = "topics/news/subscriptions/us", "topics/news/subscriptions/tellers"
	s.ok(t, "entity", "create", us)
	s.verb(t, nil, "send", "topics/news", "a", "b", "c", "d").wants(t, cli.Clean, "sent")
	s.verb(t, piping("e\nf\n"), "send", "topics/news", "--lines").wants(t, cli.Clean, "sent 2 messages to topics/news")
	s.wantTexts(t, []string{"a", "b", "c", "d", "e", "f"}, eu)
	s.verb(t, nil, "receive", eu, "--complete").wants(t, cli.Clean, "a")
	s.verb(t, nil, "receive", eu, "--abandon").wants(t, cli.Clean, "b")
	s.wantTexts(t, []string{"b", "c", "d", "e", "f"}, eu)
	s.wantTexts(t, []string{"a", "b", "c", "d", "e", "f"}, us)
	s.ok(t, "entity", "update", eu, "--set", "maxDeliveryCount=1")
	s.ok(t, "receive", eu, "--max=2", "--abandon")
	s.verb(t, nil, "dlq", eu, "list").wants(t, cli.Clean, "MaxDeliveryCountExceeded")
	if got := s.ok(t, "dlq", eu, "count"); got != "2\n" {
		t.Errorf("got %q", got)
	}
	s.verb(t, nil, "dlq", eu, "resubmit", "--number=2").wants(t, cli.Clean, "resubmitted 1 message to "+eu)
	s.verb(t, nil, "dlq", eu, "resubmit", "--number=3", "--to", us).wants(t, cli.Failure, "INVALID_OPERATION: dead letters cannot be resubmitted to another subscription")
	s.verb(t, nil, "dlq", eu, "resubmit", "--all", "--yes", "--to", "orders").wants(t, cli.Clean, "resubmitted 1 message to queues/orders")
	s.wantTexts(t, []string{"c"}, "orders")
	s.verb(t, typing(us+"\n"), "purge", us).wants(t, cli.Clean, "This removes up to 6 messages of "+us+" permanently", "removed 6 messages from "+us)
	s.verb(t, nil, "send", "topics/news", "later", "--in=1h").wants(t, cli.Clean, "scheduled for")
	s.wantTexts(t, []string{"later"}, "topics/news")

	stats := s.ok(t, "stats", "--wide")
	rows := strings.Split(strings.TrimSpace(stats), "\n")
	if len(rows) != 7 || !strings.HasPrefix(strings.Join(strings.Fields(rows[2]), " "), eu+" 4 4 0 0 0 0 ") ||
		!strings.HasPrefix(strings.Join(strings.Fields(rows[6]), " "), "topics/news 2 1 ") {
		t.Errorf("got %s", stats)
	}
	got := decoded(t, s.ok(t, "stats", "orders", eu, "topics/news", "-o", "json"))[0]
	if got["queues"].([]any)[0].(map[string]any)["name"] != "orders" || got["subscriptions"].([]any)[0].(map[string]any)["name"] != eu ||
		got["topics"].([]any)[0].(map[string]any)["subscriptionCount"] != "2" {
		t.Errorf("got %v", got)
	}
	if only := s.ok(t, "stats", "topics/news"); strings.Contains(only, "QUEUE") || !strings.Contains(only, "SUBSCRIPTIONS") {
		t.Errorf("got %s", only)
	}

	s.ok(t, "entity", "create", tellers, "--set", "requiresSession=true")
	s.ok(t, "send", "topics/news", "one", "two", "--session=s")
	s.verb(t, nil, "receive", tellers).wants(t, cli.Failure, "SESSION_REQUIRED", "--session or --next-session")
	s.verb(t, nil, "receive", tellers, "--session=s", "--complete").wants(t, cli.Clean, "one")
	s.verb(t, nil, "session", "list", tellers).wants(t, cli.Clean, "s  ")
	s.verb(t, nil, "session", "state", "set", tellers, "s", "half way").wants(t, cli.Clean, `set the state of session "s" of `+tellers)
	s.verb(t, nil, "session", "show", tellers, "s").wants(t, cli.Clean, "two")

	for _, args := range []string{"receive", "purge --yes", "dlq resubmit --number=1"} {
		fields := append(strings.Fields(args), "topics/news")
		if fields[0] == "dlq" {
			fields = []string{"dlq", "topics/news", "resubmit", "--number=1"}
		}
		s.verb(t, nil, fields...).wants(t, cli.Failure, "INVALID_OPERATION: cannot receive from a topic; use one of its subscriptions")
	}
	s.verb(t, nil, "send", eu, "x").wants(t, cli.Failure, `INVALID_OPERATION: cannot send to a subscription; send to its topic "news"`)
}

func TestRuleTest(t *testing.T) {
	t.Parallel()
	verbsInTurn(t)
	s := serveNews(t)
	own := func(args ...string) outcome { return s.verb(t, nil, append([]string{"rule", "test"}, args...)...) }
	own("--sql", "color = 'red' AND n > 5", "-p", "color=red", "-p", "n=7").wants(t, cli.Clean, "rule test: matches", "color is 'red' (string)", "n is 7 (int64)")
	own("--sql", "color = 'red' AND n > 5", "-p", "color=blue").wants(t, cli.Clean, "rule test: does not match", "n is missing")
	own("--correlation", "sys.Label=x", "--correlation", "n=5", "--subject=x", "-p", "n:string=5").wants(t, cli.Clean, "does not match", "n is '5' (string)")
	own("--all", "--action", "SET a = 1; REMOVE b", "--name", "mine", "-p", "b=2").wants(t, cli.Clean, "rule mine: matches", "a: missing -> 1 (int64)", "b: 2 (int64) -> missing", "RuleName")
	own("--sql", "1 / n = 1", "-p", "n=0").wants(t, cli.Clean, "rule test: fails", "cannot evaluate")
	own("--sql", "color = @c", "--parameter", "c=red", "-m", `{"properties":{"color":"red"},"sequenceNumber":"5","lockToken":"x"}`).wants(t, cli.Clean, "matches")
	s.verb(t, piping(`{"subject":"hello"}`), "rule", "test", "--sql", "sys.Subject = 'hello'", "--message-file=-").wants(t, cli.Clean, "matches")
	own("--sql", "sys.Subject = 'hello'", "--message-file", filetest.Write(t, `{"subject":"hello"}`)).wants(t, cli.Clean, "matches")
	own("--sql", "color = ").wants(t, cli.Failure, "FILTER_INVALID: column 9")
	own("--all", "--action", "SET").wants(t, cli.Failure, "ACTION_INVALID: column")
	own("--all", "-m", `{"subjekt":"hello"}`).wants(t, cli.Failure, "INVALID_ARGUMENT: subjekt is not a known field")
	own("--all", "--ttl=0s").wants(t, cli.Failure, "ARGUMENT_OUT_OF_RANGE")
	own("--all", "-m", `{}`, "-p", "a=1").wants(t, cli.Usage, "exclude each other")
	own("--all", "--peek", eu).wants(t, cli.Usage, "--peek and --number")
	own("--all", "--dlq").wants(t, cli.Usage, "--dlq and --transfer-dlq require --peek")
	own(eu, "--all").wants(t, cli.Usage, "exclude each other")
	own().wants(t, cli.Usage, "specify a rule")
	// it needs no sidecar
	(&served{grpc: "127.0.0.1:1"}).verb(t, nil, "rule", "test", "--all").wants(t, cli.Clean, "rule test: matches")

	got := decoded(t, own("--all", "--action", "SET a = 'ü<'; SET sys.To = 'there'", "-p", "n:int32=5", "-o", "json").stdout)[0]
	made := got["copy"].(map[string]any)
	if got["rule"] != "test" || got["matches"] != true || made["to"] != "there" || made["properties"].(map[string]any)["a"] != "ü<" || len(got["changes"].([]any)) != 3 {
		t.Errorf("got %v", got)
	}
	got = decoded(t, own("--sql", "a = 1", "-o", "json").stdout)[0]
	if step := got["steps"].([]any)[0].(map[string]any); got["matches"] != false || got["copy"] != nil || step["outcome"] != "UNKNOWN" {
		t.Errorf("got %v", got)
	}
}

// The rules of a subscription are tested with what is there, and nothing changes.
func TestRuleTestOfSubscription(t *testing.T) {
	t.Parallel()
	verbsInTurn(t)
	s := serveNews(t)
	s.ok(t, "rule", "add", eu, "red", "--sql", "color = 'red'")
	s.ok(t, "rule", "add", eu, "marked", "--sql", "color = 'red'", "--action", "SET mark = TRUE")
	s.ok(t, "rule", "add", eu, "zero", "--sql", "1 / n = 1")
	s.ok(t, "send", "topics/news", "x", "-p", "color=red", "-p", "n=0")
	s.ok(t, "send", "orders", "y", "-p", "color=blue", "-p", "n=2")
	of := func(args ...string) outcome { return s.verb(t, nil, append([]string{"rule", "test", eu}, args...)...) }
	of("red", "-p", "color=red").wants(t, cli.Clean, "rule red: matches")
	of("none").wants(t, cli.Failure, "RULE_NOT_FOUND")
	of("--peek", eu, "--number=1").wants(t, cli.Clean, "rule $Default: matches", "rule red: matches", "rule marked: matches", "rule zero: fails",
		eu+" would get 2 copies and 1 dead letter")
	of("--peek", "orders", "--number=1").wants(t, cli.Clean, "rule red: does not match", eu+" would get 1 copy\n")
	of("--peek", "orders", "--number=2").wants(t, cli.Failure, "there is no message 2 in queues/orders")
	if got := decoded(t, of("-p", "color=red", "-o", "json").stdout); len(got) != 4 {
		t.Errorf("got %v", got)
	}
	s.ok(t, "rule", "delete", eu, "$Default")
	of("-p", "color=blue", "-p", "n=2").wants(t, cli.Clean, eu+" would get nothing")
	s.ok(t, "entity", "update", eu, "--set", "deadLetteringOnFilterEvaluationExceptions=false")
	of("-p", "color=blue", "-p", "n=0").wants(t, cli.Clean, "rule zero: fails", eu+" would get nothing")
	const tellers = "topics/news/subscriptions/tellers"
	s.ok(t, "entity", "create", tellers, "--set", "requiresSession=true")
	s.verb(t, nil, "rule", "test", tellers).wants(t, cli.Clean, tellers+" would get 1 dead letter")
	s.verb(t, nil, "rule", "test", tellers, "--session=s").wants(t, cli.Clean, tellers+" would get 1 copy")
	s.wantTexts(t, []string{"x", "x"}, eu) // as before
}
