package entities

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/yamlfile"
)

const whole = `entities:
  queues:
    - name: orders
      lockDuration: 30s
      defaultMessageTimeToLive: 14d
      maxMessageCount: 5
      status: SEND_DISABLED
      userMetadata: "5"
    - name: A/b.c-d_e
  topics:
    - name: news
      failIfUnmatched: true
      subscriptions:
        - name: eu
          overflow: DROP_OLDEST
          rules:
            - name: big
              filter:
                sql:
                  expression: total > @limit
                  parameters:
                    limit: 1000
              action:
                sql:
                  expression: SET a = 1
            - name: mine
              filter:
                correlation:
                  subject: "7"
                  properties:
                    at:
                      type: datetime
                      value: "2026-01-02T03:04:05Z"
                    n: null
                    ok: true
                    p:
                      type: double
                      value: 2
            - name: none
              filter:
                none: {}
        - name: us
        - name: nobody
          rules: []
`

// All forms of a file are one and the same.
func TestFormsOfAFile(t *testing.T) {
	t.Parallel()
	set := mustRead(t, whole)
	if diff := cmp.Diff(whole, yamlOf(t, set)); diff != "" {
		t.Errorf("written again it is another one (-want +got)\n%s", diff)
	}
	for name, text := range map[string]string{
		"JSON":            string(set.JSON()),
		"without the key": strings.ReplaceAll("\n"+strings.TrimPrefix(whole, "entities:\n"), "\n  ", "\n"),
		"among settings":  "store: memory\n" + whole,
		"other spellings": strings.NewReplacer("30s", "PT30S", "SEND_DISABLED", "send_disabled", "14d", "14d", "limit: 1000", "limit: 0x3e8",
			"subject: \"7\"", "subject: 7", "userMetadata: \"5\"", "userMetadata: 5", "none: {}", "none: {}\n                all:", "c-d_e", "c-d_e\n      lockDuration: null",
			"    - name: news", "    - name: news\n      createdAt: 2026-01-01T00:00:00Z").Replace(whole),
		"references": strings.NewReplacer("expression: total > @limit", "expression: &text total > @limit", "subject: \"7\"",
			"subject: \"7\"\n                  to: *text").Replace(whole),
	} {
		got, err := read(text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := whole
		if name == "references" {
			want = strings.Replace(whole, `subject: "7"`, "subject: \"7\"\n                  to: total > @limit", 1)
		}
		if diff := cmp.Diff(want, yamlOf(t, got)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
	for _, text := range []string{"", "# nothing\n", "---\n", "{}", "entities:\n", "entities: {}\n", "queues:\ntopics: []\n", "store: memory\nentities:\n"} {
		if set, err := read(text); err != nil || len(set.Entities) != 0 {
			t.Errorf("%q: got %v, %v; want no entities", text, set, err)
		}
	}
	if got := yamlOf(t, mustRead(t, "topics: [{name: only}]")); got != "entities:\n  topics:\n    - name: only\n" {
		t.Errorf("got %s", got)
	}
	queues, topics, subscriptions := set.Count()
	if queues != 2 || topics != 1 || subscriptions != 3 {
		t.Errorf("counted %d queues, %d topics, %d subscriptions", queues, topics, subscriptions)
	}
}

// Whatever is wrong with a file is said with its place, before anything is asked.
func TestENT_11_ErrorsOfAFileNameTheirPlace(t *testing.T) {
	t.Parallel()
	const rule = "topics: [{name: t, subscriptions: [{name: s, rules: [\n"
	long := strings.Repeat("x", 261)
	for name, c := range map[string]struct{ text, want string }{
		"no mapping":           {"- a\n", "f:1:1: must be a mapping of queues and topics"},
		"unknown key":          {"queus: []\n", `f:1:1: unknown key "queus"; keys are queues, topics`},
		"beside the key":       {"entities: {}\nqueues: []\n", `f:2:1: unknown key "queues" beside "entities"`},
		"inside the key":       {"entities:\n  queue: []\n", `f:2:3: unknown key "entities.queue"; keys are queues, topics`},
		"no list":              {"queues: {name: a}\n", "f:1:1: queues must be a list of queues"},
		"a text":               {"queues: [orders]\n", "f:1:10: queues[0] must be a mapping of name, options and so on"},
		"unknown option":       {"queues:\n  - name: a\n    lockDurration: 3s\n", `f:3:5: unknown key "queues[0].lockDurration"; did you mean lockDuration?`},
		"option of another":    {"topics:\n  - {name: a, lockDuration: 3s}\n", `f:2:15: unknown key "topics[0].lockDuration"; the options of a topic are maxSizeInMegabytes, `},
		"rules of a queue":     {"queues: [{name: a, rules: []}]\n", `unknown key "queues[0].rules"`},
		"twice":                {"queues: [{name: a, status: ACTIVE, status: ACTIVE}]\n", `key "queues[0].status" stands already at f:1:20`},
		"no name":              {"queues: [{lockDuration: 30s}]\n", "f:1:10: queues[0] must have a name"},
		"null name":            {"queues: [{name: }]\n", "f:1:10: queues[0] must have a name"},
		"bad name":             {"queues:\n- name: a b\n", `f:2:3: queues[0].name is refused: name "a b" has ' ' at position 2`},
		"long name":            {"queues: [{name: " + long + "}]\n", "f:1:11: queues[0].name is refused: name is 261 characters long, at most 260 are allowed"},
		"reserved name":        {"topics: [{name: a/subscriptions/b}]\n", "reserved segment"},
		"slash":                {"topics: [{name: a, subscriptions: [{name: b/c}]}]\n", `topics[0].subscriptions[0].name is "b/c"; only queues and topics may have a slash`},
		"bad subscription":     {"topics: [{name: a, subscriptions: [{name: -b}]}]\n", "topics[0].subscriptions[0].name is refused"},
		"same name":            {"queues:\n- name: Orders\n- name: a\n- name: oRders\n", "f:4:3: queues[2] has the name of queues/Orders, which stands already at f:2:3"},
		"same name as a topic": {"queues: [{name: a}]\ntopics: [{name: A}]\n", "f:2:10: topics[0] has the name of queues/a, which stands already at f:1:10"},
		"same subscription":    {"topics: [{name: a, subscriptions: [{name: b}, {name: B}]}]\n", "has the name of topics/a/subscriptions/b"},
		"not a duration":       {"queues:\n- name: a\n  lockDuration: soon\n", `f:3:3: queues[0].lockDuration is "soon", must be a duration`},
		"not a number":         {"queues: [{name: a, maxDeliveryCount: 3.5}]\n", `queues[0].maxDeliveryCount is "3.5", must be a whole number`},
		"not a word":           {"queues: [{name: a, status: ON}]\n", `queues[0].status is "ON", must be one of ACTIVE, DISABLED, `},
		"not a truth":          {"queues: [{name: a, requiresSession: yes}]\n", `queues[0].requiresSession is "yes", must be true or false`},
		"not a plain value":    {"queues: [{name: a, lockDuration: [30s]}]\n", "queues[0].lockDuration must have one plain value"},
		"out of bounds":        {"queues:\n- name: a\n  status: ACTIVE\n  lockDuration: 4s\n", "f:4:3: queues[0].lockDuration: ARGUMENT_OUT_OF_RANGE: lockDuration is 4s, must be 5s to 5m"},
		"never too long":       {"queues: [{name: a, lockDuration: never}]\n", "queues[0].lockDuration"},
		"status of a topic":    {"topics: [{name: a, status: RECEIVE_DISABLED}]\n", "topics[0].status"},
		"bad destination":      {"queues: [{name: a, forwardTo: 'b c'}]\n", `queues[0].forwardTo is refused: name "b c" has`},
		"unknown in a rule":    {rule + "{name: r, filtr: {all: {}}}]}]}]\n", `f:2:11: unknown key "topics[0].subscriptions[0].rules[0].filtr"; keys are name, filter, action`},
		"unknown filter":       {rule + "{name: r, filter: {sq: {}}}]}]}]\n", `unknown key "topics[0].subscriptions[0].rules[0].filter.sq"; keys are sql, correlation, all, none`},
		"two filters":          {rule + "{name: r, filter: {all: {}, none: {}}}]}]}]\n", "rules[0].filter.none cannot be set together with all"},
		"no filter":            {rule + "{name: r}]}]}]\n", "f:2:1: topics[0].subscriptions[0].rules[0]: FILTER_INVALID"},
		"no name of a rule":    {rule + "{filter: {all: {}}}]}]}]\n", "f:2:1: topics[0].subscriptions[0].rules[0] must have a name"},
		"bad name of a rule":   {rule + "{name: $r, filter: {all: {}}}]}]}]\n", "INVALID_ARGUMENT: rule \"$r\""},
		"same rule":            {rule + "{name: r, filter: {all: {}}},\n{name: R, filter: {all: {}}}]}]}]\n", "f:3:1: topics[0].subscriptions[0].rules[1] has the name of a rule that stands already at f:2:1"},
		"bad SQL":              {rule + "{name: r, filter: {all: {}}},\n{name: s, filter: {sql: {expression: 'color = '}}}]}]}]\n", "f:3:1: topics[0].subscriptions[0].rules[1]: FILTER_INVALID: column 9"},
		"bad action":           {rule + "{name: r, filter: {all: {}}, action: {sql: {expression: SET}}}]}]}]\n", "ACTION_INVALID: column"},
		"missing parameter":    {rule + "{name: r, filter: {sql: {expression: a = @b}}}]}]}]\n", "FILTER_INVALID"},
		"bad value":            {rule + "{name: r, filter: {correlation: {properties: {a: {type: uuid, value: 5}}}}}]}]}]\n", "properties.a has a value that is no uuid"},
		"list as a value":      {rule + "{name: r, filter: {correlation: {properties: {a: [1]}}}}]}]}]\n", "properties.a must have one plain value"},
		"unknown type":         {rule + "{name: r, filter: {correlation: {properties: {a: {type: int, value: 5}}}}}]}]}]\n", `properties.a has the unknown type "int"`},
	} {
		set, err := read(c.text)
		if err == nil {
			err = set.Check(t.Context())
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// A small file that refers to itself again and again is not a large one.
func TestFilesThatRefer(t *testing.T) {
	t.Parallel()
	shared := mustRead(t, `
topics:
- name: a
  subscriptions: &shared [{name: x}, {name: y, lockDuration: 30s}]
- {name: b, subscriptions: *shared}
`)
	if _, _, n := shared.Count(); n != 4 {
		t.Errorf("got %d subscriptions, want 4", n)
	}
	top, err := yamlfile.Parse("f", []byte(`
topics:
- {name: a, subscriptions: &shared [{name: x}, {name: y, lockDuration: 30s}]}
- {name: b, subscriptions: *shared}
- {name: c, subscriptions: *shared}
`))
	if err != nil {
		t.Fatal(err)
	}
	for left, want := range map[int]string{26: "", 25: "f:3:48: topics[2].subscriptions[1] is one value too many", 2: "topics[0] is one value too many"} {
		r := newReader()
		r.left = left
		if err := r.section(top.WithColumns()); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("with room for %d: got %v, want %q", left, err, want)
		}
	}
	if _, err := read("queues: &q [*q]\n"); err == nil {
		t.Error("a list that holds itself is no error")
	}
}

// What is valid and hardly meant so is told (SQL-12).
func TestSQL_12_WarningsOfAFile(t *testing.T) {
	t.Parallel()
	set := mustRead(t, "topics: [{name: t, subscriptions: [{name: s, rules: [{name: r, filter: {sql: {expression: \"1 = 'one'\"}}}]}]}]\n")
	if len(set.Notes) != 1 || !strings.Contains(set.Notes[0], "f:1:54: topics[0].subscriptions[0].rules[0] warning: filter: column 1") {
		t.Errorf("got %q", set.Notes)
	}
}
