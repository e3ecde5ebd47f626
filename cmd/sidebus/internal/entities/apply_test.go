package entities

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/client"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/inprocess"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/filter"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// watched tells of each call that changes something, before it and after it.
type watched struct {
	grpc.ClientConnInterface

	before func(method string, request any) error
	after  func(method string)
}

func (w *watched) Invoke(ctx context.Context, method string, request, reply any, options ...grpc.CallOption) error {
	isWrite := !strings.Contains(method, "List") && !strings.Contains(method, "Get")
	if isWrite && w.before != nil {
		if err := w.before(path.Base(method), request); err != nil {
			return err
		}
	}
	err := w.ClientConnInterface.Invoke(ctx, method, request, reply, options...)
	if isWrite && w.after != nil {
		w.after(path.Base(method))
	}
	return err
}

// newBroker gives a broker over a store in memory, and its management.
func newBroker() (*broker.Broker, *watched, sidebusv1.AdminClient) {
	b := broker.New(memstore.New(), broker.WithRules(filter.Compile))
	w := &watched{ClientConnInterface: inprocess.Connect(b)}
	return b, w, sidebusv1.NewAdminClient(w)
}

// names gives the names in the requests, in their order.
func (w *watched) names(into *[]string) {
	w.before = func(method string, request any) error {
		if named, ok := request.(interface{ GetName() string }); ok {
			*into = append(*into, strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(method, "Queue"), "Topic"), "Subscription")+" "+named.GetName())
		}
		return nil
	}
}

// What is named is there before it is named; in a circle it is named later.
func TestENT_13_DestinationsComeFirst(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"a chain": {
			"queues: [{name: a, forwardTo: B}, {name: b, forwardDeadLetteredMessagesTo: c}, {name: c}]",
			"Ensure queues/c, Ensure queues/b, Ensure queues/a",
		},
		"a topic and its subscriptions": {
			"queues: [{name: a, forwardTo: t}]\ntopics: [{name: t, unmatchedTo: b, subscriptions: [{name: s, forwardTo: u}]}, {name: u}, {name: b}]",
			"Ensure topics/b, Ensure topics/t, Ensure queues/a, Ensure topics/u, Ensure topics/t/subscriptions/s",
		},
		"a circle": {
			"queues: [{name: a, forwardTo: b}, {name: b, forwardTo: c, forwardDeadLetteredMessagesTo: a}, {name: c, forwardTo: a}]",
			"Ensure queues/c, Ensure queues/b, Ensure queues/a, Update queues/c, Update queues/b",
		},
		"elsewhere": {
			"queues: [{name: a, forwardTo: there}]", "Ensure queues/a",
		},
	} {
		set := mustRead(t, c.text)
		_, w, api := newBroker()
		if _, err := api.EnsureQueue(t.Context(), &sidebusv1.EnsureQueueRequest{Name: "queues/there"}); err != nil {
			t.Fatal(err)
		}
		var calls []string
		w.names(&calls)
		if err := set.Make(t.Context(), api, func(Made) {}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := strings.Join(calls, ", "); got != c.want {
			t.Errorf("%s: got %s\nwant %s", name, got, c.want)
		}
		if again := planOf(t, api, c.text); len(again.Changes) != 0 {
			t.Errorf("%s: afterwards %+v differs", name, again.Changes)
		}
	}
	api := inprocess.Empty()
	apply(t, api, false, "queues: [{name: a, forwardTo: b}, {name: b}]")
	var differences []Difference
	err := mustRead(t, "queues: [{name: a, forwardTo: b}, {name: b, forwardTo: a}]").Make(t.Context(), api, func(made Made) {
		differences = append(differences, made.Differences...)
	})
	if diff := cmp.Diff([]Difference{{"forwardTo", "", "a"}}, differences); diff != "" || err != nil {
		t.Errorf("a circle that is there in part: %v (-want +got)\n%s", err, diff)
	}
	if _, err := api.DeleteQueue(t.Context(), &sidebusv1.DeleteQueueRequest{Name: "queues/b"}); err != nil {
		t.Fatal(err)
	}
	if plan := planOf(t, api, exported(t, api, "")); len(plan.Changes) > 0 || plan.Unchanged != 1 {
		t.Errorf("with a destination that was deleted: %+v", plan)
	}
	_, err = mustRead(t, "queues:\n- name: a\n  forwardTo: nowhere\n").Plan(t.Context(), inprocess.Empty(), func(int, int) {})
	if err == nil || !strings.Contains(err.Error(), `f:3:3: queues[0].forwardTo is "nowhere", and there is no such queue or topic, and the file creates none`) {
		t.Errorf("got %v", err)
	}
}

// What exists stays as it is, and what differs is told, but only of what the file says.
func TestENT_6_DifferencesAreReportedAndNotApplied(t *testing.T) {
	t.Parallel()
	api := inprocess.Empty()
	apply(t, api, false, `
queues:
- {name: a, lockDuration: 30s, defaultMessageTimeToLive: 1h, maxDeliveryCount: 5}
- {name: same, lockDuration: 30s}
- {name: other}
topics:
- name: t
  subscriptions:
  - {name: s, rules: [{name: r, filter: {sql: {expression: a = 1}}}, {name: gone, filter: {all: {}}}]}
  - {name: other}
- {name: o, subscriptions: [{name: other}]}
`)
	const text = `
queues:
- {name: A, lockDuration: 45s, defaultMessageTimeToLive: never, forwardTo: same}
- {name: same, lockDuration: PT30S, defaultMessageTimeToLive: null}
- {name: new}
topics:
- name: T
  subscriptions:
  - {name: S, rules: [{name: R, filter: {sql: {expression: a = 2}}}, {name: added, filter: {none: {}}}]}
`
	before := exported(t, api, "")
	plan := planOf(t, api, text)
	if plan.Unchanged != 2 || plan.Others != 3 || len(plan.Changes) != 3 {
		t.Errorf("got %d unchanged, %d others, %d changes", plan.Unchanged, plan.Others, len(plan.Changes))
	}
	want := []Difference{{"lockDuration", "30s", "45s"}, {"defaultMessageTimeToLive", "1h", "never"}, {"forwardTo", "", "same"}}
	if diff := cmp.Diff(want, plan.Changes[0].Options); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	var rules []string
	for _, r := range plan.Changes[2].Rules {
		rules = append(rules, fmt.Sprintf("%s: %s > %s", r.Name(), client.FilterText(r.Present), client.FilterText(r.Asked)))
	}
	if got := strings.Join(rules, ", "); got != "gone: every message > -, r: a = 1 > a = 2, added: - > no message" {
		t.Errorf("got %s", got)
	}
	if got := exported(t, api, ""); got != before {
		t.Errorf("a plan has changed something: %s", cmp.Diff(before, got))
	}
	if got := apply(t, api, false, text); got != "+queues/new ~queues/A ~topics/T/subscriptions/S" {
		t.Errorf("got %s", got)
	}
	if got := exported(t, api, ""); got != strings.Replace(before, "    - name: other\n", "    - name: new\n    - name: other\n", 1) {
		t.Errorf("got %s", cmp.Diff(before, got))
	}
	if got := apply(t, api, true, text); got != "queues/A topics/T/subscriptions/S" {
		t.Errorf("with update: got %s", got)
	}
	after := exported(t, api, "")
	for _, piece := range []string{
		"- name: a\n      lockDuration: 45s\n      maxDeliveryCount: 5\n      forwardTo: same\n",
		"- name: added\n              filter:\n                none: {}\n            - name: R\n              filter:\n                sql:\n                  expression: a = 2\n",
	} {
		if !strings.Contains(after, piece) {
			t.Errorf("after the update it lacks\n%s\nin\n%s", piece, after)
		}
	}
	if strings.Contains(after, "gone") || strings.Contains(after, "sidebus-apply") {
		t.Errorf("a rule is left over: %s", after)
	}
	if again := planOf(t, api, text); len(again.Changes) != 0 || again.Unchanged != 5 {
		t.Errorf("then still %+v", again)
	}
}

// Where messages go on, nothing is deleted for being idle, so that asking for both is no difference for ever.
func TestENT_14_ForwardingForcesNever(t *testing.T) {
	t.Parallel()
	api := inprocess.Empty()
	apply(t, api, false, "queues: [{name: a, forwardTo: b}, {name: b}]")
	const text = "queues: [{name: a, forwardTo: b, autoDeleteOnIdle: 10m}]"
	if plan := planOf(t, api, text); len(plan.Changes) != 0 {
		t.Errorf("got %+v", plan.Changes[0])
	}
	err := mustRead(t, text).Make(t.Context(), api, func(made Made) {
		if len(made.Differences) > 0 {
			t.Errorf("got %+v", made)
		}
	})
	if err != nil {
		t.Error(err)
	}
}

func TestENT_16_ImmutableOptionsAreNamed(t *testing.T) {
	t.Parallel()
	api := inprocess.Empty()
	apply(t, api, false, "queues: [{name: a}, {name: p, partitions: 4}]\ntopics: [{name: t, enablePartitioning: true}]")
	plan := planOf(t, api, "queues:\n- {name: a, requiresSession: true, lockDuration: 30s}\n- {name: p, partitions: 5}\ntopics: [{name: t, enablePartitioning: false}]")
	want := []string{
		"f:2:13: queues[0].requiresSession is true and queues/a has false; it is set at creation only, so delete the entity and apply again",
		"f:3:13: queues[1].partitions is 5 and queues/p has 4; it is set at creation only, so delete the entity and apply again",
		"f:4:20: topics[0].enablePartitioning is false and topics/t has true; it is set at creation only, so delete the entity and apply again",
	}
	var got []string
	for _, err := range plan.Immutable() {
		got = append(got, err.Error())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestENT_2_OtherKindOfTheSameName(t *testing.T) {
	t.Parallel()
	api := inprocess.Empty()
	apply(t, api, false, "topics: [{name: a}]")
	_, err := mustRead(t, "queues: [{name: A}]").Plan(t.Context(), api, func(int, int) {})
	if err == nil || err.Error() != "f:1:10: queues[0]: there is a topic of this name, and queues and topics share their names; choose another name" {
		t.Errorf("got %v", err)
	}
}

// While a rule is replaced, a message that the old one and the new one select is not missed and does not come twice.
func TestTOPIC_5_NoMessageIsMissedWhileRulesChange(t *testing.T) {
	t.Parallel()
	b, w, api := newBroker()
	const one = "topics: [{name: t, subscriptions: [{name: s, rules: [{name: a, filter: {sql: {expression: n > 0}}}, {name: old, filter: {sql: {expression: n > 1}}}]}]}]"
	const two = "topics: [{name: t, subscriptions: [{name: s, rules: [{name: a, filter: {sql: {expression: n > 2}}}, {name: new, filter: {sql: {expression: n > 3}}}]}]}]"
	apply(t, api, true, one)
	calls := 0
	w.after = func(string) {
		calls++
		message := &semantics.Message{Properties: map[string]semantics.Value{"n": semantics.Int64(5)}}
		if _, err := b.Send(t.Context(), semantics.ToTopic("t"), []*semantics.Message{message}); err != nil {
			t.Error(err)
		}
	}
	apply(t, api, true, two)
	count, err := b.Runtime(t.Context(), semantics.SubscriptionKind, semantics.SubscriptionPath("t", "s"))
	if err != nil || int(count.Available) != calls || calls != 6 {
		t.Errorf("after %d calls and messages there are %d, %v; want 6 of both", calls, count.Available, err)
	}
}

// The rule that stands in has a name of its own.
func TestRULE_3_StandInHasAFreeName(t *testing.T) {
	t.Parallel()
	_, w, api := newBroker()
	const text = "topics: [{name: t, subscriptions: [{name: s, rules: [{name: sidebus-apply-0, filter: {all: {}}}, {name: Sidebus-Apply-1, filter: {all: {}}}]}]}]"
	apply(t, api, true, text)
	var calls []string
	w.names(&calls)
	apply(t, api, true, strings.Replace(text, "Apply-1, filter: {all", "Apply-1, filter: {none", 1))
	const rules = "Rule topics/t/subscriptions/s/rules/"
	want := []string{
		"Ensure" + rules + "sidebus-apply-2", "Delete" + rules + "Sidebus-Apply-1", "Ensure" + rules + "Sidebus-Apply-1", "Delete" + rules + "sidebus-apply-2",
	}
	if diff := cmp.Diff(want, calls); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// A failure in the middle leaves what was done, tells what it is about, and applying again goes on.
func TestENT_6_ApplyingAgainGoesOn(t *testing.T) {
	t.Parallel()
	const start = "queues: [{name: q, lockDuration: 10s}]\ntopics: [{name: t, subscriptions: [{name: s, rules: [{name: r, filter: {all: {}}}]}]}]"
	const text = `
queues: [{name: a, forwardTo: b}, {name: b, forwardTo: a}, {name: q, lockDuration: 20s}]
topics:
- name: t
  subscriptions:
  - {name: s, rules: [{name: r, filter: {none: {}}}]}
  - {name: nobody, rules: []}
`
	for failing := 0; ; failing++ {
		_, w, api := newBroker()
		apply(t, api, false, start)
		calls, away := 0, &client.Failure{Reason: semantics.StoreUnavailable, Message: "the store is away"}
		w.before = func(string, any) error {
			if calls++; calls == failing+1 {
				return away
			}
			return nil
		}
		err := planOf(t, api, text).CarryOut(t.Context(), api, true, func(Change) {})
		var failed *Failed
		if err != nil && (!errors.As(err, &failed) || !errors.Is(err, error(away)) || !strings.HasPrefix(err.Error(), failed.Entity.Resource+": ")) {
			t.Errorf("call %d fails: got %v", failing, err)
		}
		w.before = nil
		apply(t, api, true, text)
		if plan := planOf(t, api, text); len(plan.Changes) != 0 {
			t.Errorf("call %d fails: in the end %+v", failing, plan.Changes[0])
		}
		if got := exported(t, api, ""); strings.Contains(got, "sidebus-apply") {
			t.Errorf("call %d fails: left over in\n%s", failing, got)
		}
		if err == nil {
			if failing < 9 {
				t.Errorf("only %d calls", failing)
			}
			return
		}
	}
}

// A subscription that is to have no rules has none, at no moment another, and one that has some differs.
func TestRULE_2_SubscriptionWithoutRules(t *testing.T) {
	t.Parallel()
	const text = "topics: [{name: t, subscriptions: [{name: s, rules: []}]}]"
	b, w, api := newBroker()
	w.after = func(method string) {
		if method == "EnsureTopic" {
			return
		}
		if _, err := b.Send(t.Context(), semantics.ToTopic("t"), []*semantics.Message{{}}); err != nil {
			t.Error(err)
		}
	}
	apply(t, api, false, text)
	count, err := b.Runtime(t.Context(), semantics.SubscriptionKind, semantics.SubscriptionPath("t", "s"))
	if err != nil || count.Active != 0 {
		t.Errorf("it has %d messages, %v", count.Active, err)
	}
	w.after = nil
	if got := exported(t, api, ""); !strings.HasSuffix(got, "- name: s\n          rules: []\n") {
		t.Errorf("got %s", got)
	}
	apply(t, api, true, "topics: [{name: t, subscriptions: [{name: s, rules: [{name: x, filter: {all: {}}}]}]}]")
	var differences []Difference
	err = mustRead(t, text).Make(t.Context(), api, func(made Made) { differences = append(differences, made.Differences...) })
	if diff := cmp.Diff([]Difference{{"rules[x]", "all", ""}}, differences); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	apply(t, api, true, "topics: [{name: t, subscriptions: [{name: s, rules: [{name: $Default, filter: {all: {}}}]}]}]")
	differences = nil
	err = mustRead(t, text).Make(t.Context(), api, func(made Made) { differences = append(differences, made.Differences...) })
	if diff := cmp.Diff([]Difference{{"rules[$Default]", "all", ""}}, differences); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	if got := apply(t, api, true, text); got != "topics/t/subscriptions/s" {
		t.Errorf("got %s", got)
	}
	if again := planOf(t, api, text); len(again.Changes) != 0 {
		t.Errorf("got %+v", again.Changes[0])
	}
}

func TestExportByPrefix(t *testing.T) {
	t.Parallel()
	api := inprocess.Empty()
	if got := exported(t, api, ""); got != "entities: {}\n" {
		t.Errorf("of nothing: got %q", got)
	}
	apply(t, api, false, "queues: [{name: ab}, {name: b}]\ntopics: [{name: abc, subscriptions: [{name: s}]}, {name: c}]")
	for prefix, want := range map[string]string{
		"": "ab b abc s c", "A": "ab abc s", "queues/": "ab b", "queues/a": "ab", "topics/": "abc s c", "topics/c": "c", "x": "",
	} {
		var names []string
		for line := range strings.Lines(exported(t, api, prefix)) {
			if _, name, ok := strings.Cut(line, "- name: "); ok {
				names = append(names, strings.TrimSpace(name))
			}
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%q: got %q, want %q", prefix, got, want)
		}
	}
}

// An export that is applied where it comes from does nothing, and applied to nothing makes the same.
func TestENT_6_ExportsAreApplied(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		set := drawSet(rt)
		api := inprocess.Empty()
		if err := set.Make(t.Context(), api, func(Made) {}); err != nil {
			rt.Fatal(err)
		}
		text := exported(t, api, "")
		if plan := planOf(t, api, text); len(plan.Changes) > 0 || plan.Others > 0 {
			rt.Fatalf("%s differs from itself in %+v:\n%s", plan.Changes[0].Entity.Resource, plan.Changes[0], text)
		}
		other := inprocess.Empty()
		apply(t, other, false, text)
		if again := exported(t, other, ""); again != text {
			rt.Fatalf("it comes back as another one: %s", cmp.Diff(text, again))
		}
		json, err := Export(t.Context(), api, "", func(int, int) {})
		if err != nil {
			rt.Fatal(err)
		}
		if plan := planOf(t, other, string(json.JSON())); len(plan.Changes) > 0 {
			rt.Fatalf("as JSON %+v differs:\n%s", plan.Changes[0], json.JSON())
		}
	})
}

// drawSet makes up entities with any options and rules.
func drawSet(t *rapid.T) *Set {
	set := &Set{}
	isSpread := false // the last queue or topic; several partitions go with few other options
	add := func(resource string, d client.Description, rules []*sidebusv1.Rule, hasRules bool) {
		fixed := map[string]string{}
		if _, ok := d.(*sidebusv1.Subscription); !ok {
			isSpread = rapid.Bool().Draw(t, "isSpread")
			fixed["partitions"] = "1"
		}
		if isSpread {
			fixed = map[string]string{"enablePartitioning": "true", "partitions": "", "autoDeleteOnIdle": ""}
		}
		for _, option := range client.OptionNames(d) {
			value, isFixed := fixed[option]
			if value != "" {
				if err := client.SetOption(d, option, value); err != nil {
					t.Fatal(err)
				}
			}
			if values := values(option); !isFixed && len(values) > 0 && rapid.Bool().Draw(t, option) {
				if err := client.SetOption(d, option, rapid.SampledFrom(values).Draw(t, "value")); err != nil {
					t.Fatal(err)
				}
			}
		}
		if s, ok := d.(*sidebusv1.Subscription); ok {
			s.Rules = rules
		}
		if err := set.add(&Entity{Resource: resource, Description: d, HasRules: hasRules}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "queues") {
		name := []string{"a/b", "Z.y-x_w", strings.Repeat("n", 260)}[i]
		add("queues/"+name, &sidebusv1.Queue{Name: name}, nil, false)
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "topics") {
		topic := []string{"t/subs", "5"}[i]
		add("topics/"+topic, &sidebusv1.Topic{Name: topic}, nil, false)
		for j := range rapid.IntRange(0, 2).Draw(t, "subscriptions") {
			name := []string{"true", strings.Repeat("s", 50)}[j]
			rules := rapid.SliceOfNDistinct(drawRule(), 0, 3, func(r *sidebusv1.Rule) string { return semantics.Fold(r.GetName()) }).Draw(t, "rules")
			add(client.Subscription("topics/"+topic, name), &sidebusv1.Subscription{Name: name}, rules, len(rules) > 0 || rapid.Bool().Draw(t, "none"))
		}
	}
	return set
}

// values are some that an option may have.
func values(option string) []string {
	switch option {
	case "lockDuration":
		return []string{"30s", "5.5s", "1m"}
	case "defaultMessageTimeToLive", "deadLetterTtl", "sessionStateTtl":
		return []string{"1h", "never", "400d", "1.5s"}
	case "autoDeleteOnIdle":
		return []string{"1h", "never"}
	case "duplicateDetectionHistoryTimeWindow", "redeliveryDelay":
		return []string{"20s", "7d"}
	case "maxMessageCount", "duplicateHistoryMaxEntries":
		return []string{"1", "9223372036854775807"}
	case "maxSizeInMegabytes", "maxMessageSizeInKilobytes", "maxDeliveryCount", "sessionInFlight":
		return []string{"1", "77"}
	case "userMetadata":
		return []string{"", "5", "null", "line\n  and\tline\n", "#: é😀\u0085\u2028\x7f"}
	case "status":
		return []string{"DISABLED", "ACTIVE"}
	case "durability":
		return []string{"MEMORY", "SIDECAR"}
	case "overflow":
		return []string{"DROP_OLDEST"}
	case "onDisconnect":
		return []string{"RELEASE"}
	case "forwardTo", "forwardDeadLetteredMessagesTo", "unmatchedTo", "sessionExpiryMode", "sessionOnDeadLetter", "acceptNext":
		return nil
	default:
		return []string{"true", "false"}
	}
}

func drawRule() *rapid.Generator[*sidebusv1.Rule] {
	value := rapid.Custom(func(t *rapid.T) *sidebusv1.Value {
		name := rapid.SampledFrom([]string{
			"p=true", "p=5", "p=5.0", "p=x", "p:string=5", "p:string=", "p:string=null", "p:string=a\nb ", "p:int32=7", "p:uint64=18446744073709551615", "p:double=NaN",
			"p:double=-Infinity", "p:float=0.1", "p:char=é", "p:timespan=PT1M", "p:datetime=2026-01-02T03:04:05Z", "p:uuid=6f9619ff-8b86-d011-b42d-00c04fc964ff",
			"p:decimal=1.50", "p:uri=http://x/", "p:null=",
		}).Draw(t, "value")
		_, v, err := client.Property(name)
		if err != nil {
			t.Fatal(err)
		}
		return v
	})
	return rapid.Custom(func(t *rapid.T) *sidebusv1.Rule {
		r := &sidebusv1.Rule{Name: rapid.SampledFrom([]string{"$Default", "5", "true", "a.b-c_d", "X"}).Draw(t, "name"), Filter: &sidebusv1.Rule_Filter{}}
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			r.Filter.Kind = &sidebusv1.Rule_Filter_All{All: &sidebusv1.Rule_All{}}
		case 1:
			r.Filter.Kind = &sidebusv1.Rule_Filter_None{None: &sidebusv1.Rule_None{}}
		case 2:
			r.Filter.Kind = &sidebusv1.Rule_Filter_Sql{Sql: &sidebusv1.Rule_Sql{
				Expression: rapid.SampledFrom([]string{"a = 1", "1=1", "x = 'it''s: #'\n  AND\ty > @p", "\"a b\" IS NULL", "5 = 5"}).Draw(t, "sql"),
				Parameters: map[string]*sidebusv1.Value{"p": {Kind: &sidebusv1.Value_Int64Value{Int64Value: 5}}},
			}}
		default:
			r.Filter.Kind = &sidebusv1.Rule_Filter_Correlation{Correlation: &sidebusv1.Rule_Correlation{
				Subject:    proto.String(rapid.SampledFrom([]string{"", "5", " x ", "~", "a: b"}).Draw(t, "subject")),
				Properties: map[string]*sidebusv1.Value{rapid.SampledFrom([]string{"p", "a b", "5", "null", "<<", "é: #"}).Draw(t, "property"): value.Draw(t, "value")},
			}}
		}
		if rapid.Bool().Draw(t, "action") {
			r.Action = &sidebusv1.Rule_Action{Sql: &sidebusv1.Rule_Sql{Expression: "SET a = 1; REMOVE b"}}
		}
		return r
	})
}
