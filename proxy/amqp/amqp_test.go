package amqp_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/proxy/amqp/internal/codec"
	"github.com/sidebus/sidebus/proxy/amqp/internal/convert"
	"github.com/sidebus/sidebus/proxy/amqp/internal/frame"
	"github.com/sidebus/sidebus/proxy/sas"
	"github.com/sidebus/sidebus/semantics"
)

func TestAddresses(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.queue("orders/eu", nil)
	c := s.dial(nil).open()
	for _, address := range []string{"orders/eu", "/Orders/EU", "sb://host:1/orders/eu/", "amqps://host/orders/eu"} {
		if _, ok := c.transfer(c.sender(address), data("x")).(frame.Accepted); !ok {
			t.Errorf("%s: not accepted", address)
		}
	}
	for address, condition := range map[string]string{
		"": "amqp:invalid-field", "sb://host": "amqp:invalid-field", "missing": "amqp:not-found",
		"orders/eu/$DeadLetterQueue": "amqp:not-allowed", "a//b": "com.microsoft:argument-error",
		"t/Subscriptions/s": "amqp:not-allowed",
	} {
		a := c.attach(frame.Attach{Target: &frame.Target{Address: address}})
		if a.Source != nil || a.Target != nil {
			t.Errorf("%q is attached", address)
		}
		d := want[*frame.Detach](c)
		if d.Error == nil || d.Error.Condition != condition || !d.Closed {
			t.Errorf("%q is refused with %v, want %s", address, d.Error, condition)
		}
		c.send(&frame.Detach{Handle: c.handle - 1, Closed: true})
	}
}

func TestSendsThatAreRefused(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.queue("q", nil)
	s.queue("sessions", func(o *semantics.Options) { o.RequiresSession = true }, "requiresSession")
	c := s.dial(nil).open()
	q, sessions := c.sender("q"), c.sender("sessions")
	for _, row := range []struct {
		name, condition string
		handle          uint32
		payload         []byte
	}{
		{"no message", "com.microsoft:argument-error", q, []byte{0x40}},
		{"list as a property", "com.microsoft:argument-error", q, sections(uint64(0x74), codec.Map{codec.Entry("a", codec.List{})})},
		{"no session", "amqp:not-allowed", sessions, data("x")},
		{"too large", "amqp:link:message-size-exceeded", q, data(strings.Repeat("x", 300<<10))},
		{"far too large", "amqp:link:message-size-exceeded", q, data(strings.Repeat("x", 500<<10))},
	} {
		rejected, ok := c.transferLarge(row.handle, row.payload).(frame.Rejected)
		if !ok || rejected.Error.Condition != row.condition || rejected.Error.Info.Get("sidebus:reason") == nil {
			t.Errorf("%s: %+v", row.name, rejected.Error)
		}
	}
	if _, ok := c.transfer(q, data("x")).(frame.Accepted); !ok {
		t.Error("nothing is accepted afterwards")
	}
}

func TestSettlementsOfUnusualClients(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.queue("q", nil)
	c := s.dial(nil).open()
	sender := c.sender("q")
	for range 3 {
		c.transfer(sender, data("x"))
	}
	c.receiver("q", 2)
	tags := [][]byte{want[*frame.Transfer](c).DeliveryTag, want[*frame.Transfer](c).DeliveryTag}
	if len(tags[0]) != 16 || string(tags[0]) == string(tags[1]) {
		t.Errorf("tags are %x", tags)
	}
	c.send(&frame.Disposition{IsReceiver: true, First: 0, Last: 1, State: frame.Accepted{}})
	if d := want[*frame.Disposition](c); d.First != 0 || d.Last != 1 || !d.Settled {
		t.Errorf("acknowledged %+v", d)
	}
	c.credit(c.handle-1, 2, 1, false)
	if third := want[*frame.Transfer](c); *third.DeliveryID != 2 {
		t.Errorf("delivered %d", *third.DeliveryID)
	}
	c.send(&frame.Disposition{IsReceiver: true, First: 2, Last: 2, State: frame.Rejected{Error: &frame.Error{Condition: "mine", Description: "text"}}})
	if r, ok := want[*frame.Disposition](c).State.(frame.Rejected); !ok || r.Error != nil {
		t.Errorf("the outcome of a rejection: %+v", r)
	}
	dead := c.receiver("q/$deadletterqueue", 1)
	f := c.frame()
	m, err := convert.Message(f.Payload)
	if err != nil || m.Properties["DeadLetterReason"] != semantics.String("mine") || m.Properties["DeadLetterErrorDescription"] != semantics.String("text") {
		t.Errorf("dead letter: %+v, %v", m, err)
	}
	c.send(&frame.Disposition{IsReceiver: true, First: 3, Last: 3, State: frame.Transactional{}})
	if r, ok := want[*frame.Disposition](c).State.(frame.Rejected); !ok || r.Error.Condition != "amqp:not-allowed" {
		t.Errorf("a transaction without an outcome: %+v", r)
	}
	_ = dead
}

func TestDrainIsAnswered(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.queue("q", nil)
	c := s.dial(nil).open()
	sender := c.sender("q")
	r := c.receiver("q", 10)
	c.credit(r, 0, 10, true)
	if f := want[*frame.Flow](c); !f.Drain || *f.LinkCredit != 0 || *f.DeliveryCount != 10 {
		t.Errorf("drained with %+v", f)
	}
	c.transfer(sender, data("x"))
	c.credit(r, 10, 5, true) // brings what is there, and then the answer
	want[*frame.Transfer](c)
	if f := want[*frame.Flow](c); *f.DeliveryCount != 15 {
		t.Errorf("drained with %+v", f)
	}
}

func TestSessionFiltersKeepTheirForm(t *testing.T) {
	t.Parallel()
	const name = "com.microsoft:session-filter"
	s := start(t, nil)
	s.queue("q", func(o *semantics.Options) { o.RequiresSession = true }, "requiresSession")
	c := s.dial(nil).open()
	source := func(filter any) *frame.Source {
		return &frame.Source{Address: "q", Filter: codec.Map{codec.Named(name, filter)}}
	}
	a := c.attach(frame.Attach{IsReceiver: true, Source: source("a")})
	if got := a.Source.Filter.Get(name); got != "a" {
		t.Errorf("a bare filter is answered with %v", got)
	}
	ticks, _ := a.Properties.Get("com.microsoft:locked-until-utc").(int64)
	if until := time.Unix((ticks-621_355_968_000_000_000)/1e7, 0); time.Until(until) < 0 || time.Until(until) > time.Hour {
		t.Errorf("locked until %s", until)
	}
	code := uint64(0x000000137000000C)
	a = c.attach(frame.Attach{IsReceiver: true, Source: source(codec.Described{Descriptor: code, Value: "b"})})
	if got := a.Source.Filter.Get(name); got != (codec.Described{Descriptor: code, Value: "b"}) {
		t.Errorf("a described filter is answered with %v", got)
	}
	for _, row := range []struct {
		filter    any
		condition string
	}{{"a", "com.microsoft:session-cannot-be-locked"}, {nil, "com.microsoft:timeout"}, {"", "com.microsoft:argument-error"}} {
		c.attach(frame.Attach{
			IsReceiver: true, Source: source(row.filter),
			Properties: codec.Map{codec.Named("com.microsoft:timeout", uint32(50))},
		})
		if d := want[*frame.Detach](c); d.Error.Condition != row.condition {
			t.Errorf("filter %v: %v, want %s", row.filter, d.Error, row.condition)
		}
	}
	c.attach(frame.Attach{IsReceiver: true, Source: &frame.Source{Address: "q"}})
	if d := want[*frame.Detach](c); !strings.Contains(d.Error.Description, "non-sessionful message receiver") {
		t.Errorf("without a filter: %v", d.Error)
	}
}

func TestRulesOverManagement(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	options := semantics.DefaultOptions()
	for kind, name := range map[semantics.Kind]string{semantics.TopicKind: "news"} {
		if _, err := s.broker.CreateEntity(t.Context(), kind, name, options, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.broker.CreateEntity(t.Context(), semantics.SubscriptionKind, "news/Subscriptions/eu", options, nil); err != nil {
		t.Fatal(err)
	}
	n := s.dial(nil).open().node("news/Subscriptions/eu/$management")
	add := func(name string, description codec.Map) codec.Map {
		t.Helper()
		status, _ := n.ask("com.microsoft:add-rule", codec.Map{codec.Entry("rule-name", name), codec.Entry("rule-description", description)})
		return status
	}
	sql := codec.Map{
		codec.Entry("sql-filter", codec.Map{codec.Entry("expression", "a = 1")}),
		codec.Entry("sql-rule-action", codec.Map{codec.Entry("expression", "SET b = 2")}),
	}
	correlation := codec.Map{codec.Entry("correlation-filter", codec.Map{
		codec.Entry("label", "l"), codec.Entry("properties", codec.Map{codec.Entry("p", int64(7))}),
	})}
	if status := add("sql", sql); status.Get("statusCode") != int32(200) {
		t.Errorf("added with %v", status)
	}
	add("by-label", correlation)
	if status := add("sql", sql); status.Get("statusCode") != int32(409) ||
		status.Get("errorCondition") != codec.Symbol("com.microsoft:entity-already-exists") {
		t.Errorf("added again with %v", status)
	}
	if status := add("bad", codec.Map{codec.Entry("sql-filter", codec.Map{codec.Entry("expression", "a =")})}); status.Get("statusCode") != int32(400) {
		t.Errorf("a bad filter is added with %v", status)
	}
	_, answer := n.ask("com.microsoft:enumerate-rules", codec.Map{codec.Entry("skip", int32(0)), codec.Entry("top", int32(100))})
	rules, _ := answer.Get("rules").(codec.List)
	if len(rules) != 3 {
		t.Fatalf("rules are %v", rules)
	}
	rule := rules[1].(codec.Map).Get("rule-description").(codec.Described).Value.(codec.List) // $Default, by-label, sql
	fields := rule[0].(codec.Described).Value.(codec.List)
	if rule[2] != "by-label" || fields[4] != "l" || fields[8].(codec.Map).Get("p") != int64(7) {
		t.Errorf("by-label is %v", rule)
	}
	if status, _ := n.ask("com.microsoft:remove-rule", codec.Map{codec.Entry("rule-name", "sql")}); status.Get("statusCode") != int32(200) {
		t.Errorf("removed with %v", status)
	}
	if status, _ := n.ask("com.microsoft:remove-rule", codec.Map{codec.Entry("rule-name", "sql")}); status.Get("statusCode") != int32(404) {
		t.Errorf("removed again with %v", status)
	}
	if _, answer = n.ask("com.microsoft:enumerate-rules", codec.Map{codec.Entry("skip", int32(1)), codec.Entry("top", int32(1))}); len(answer.Get("rules").(codec.List)) != 1 {
		t.Errorf("a page is %v", answer)
	}
	if status, _ := n.ask("com.microsoft:dance", codec.Map{}); status.Get("statusCode") != int32(400) {
		t.Errorf("an unknown operation: %v", status)
	}
}

func TestSessionsAreListed(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.queue("q", func(o *semantics.Options) { o.RequiresSession = true }, "requiresSession")
	for _, id := range []string{"a", "b", "c"} {
		if _, err := s.broker.Send(t.Context(), semantics.ToQueue("q"), []*semantics.Message{{SessionID: id}}); err != nil {
			t.Fatal(err)
		}
	}
	n := s.dial(nil).open().node("q/$management")
	list := func(since codec.Timestamp, skip int32) (codec.Map, codec.Map) {
		return n.ask("com.microsoft:get-message-sessions", codec.Map{
			codec.Entry("last-updated-time", since), codec.Entry("skip", skip), codec.Entry("top", int32(2)),
		})
	}
	_, answer := list(253_402_300_800_000, 0)
	if ids, _ := answer.Get("sessions-ids").(codec.Array); len(ids) != 2 || ids[0] != "a" || answer.Get("skip") != int32(2) {
		t.Errorf("the first page is %v", answer)
	}
	if _, answer = list(253_402_300_800_000, 2); len(answer.Get("sessions-ids").(codec.Array)) != 1 {
		t.Errorf("the second page is %v", answer)
	}
	if status, _ := list(convert.Timestamp(time.Now().Add(-time.Hour)), 0); status.Get("statusCode") != int32(204) { // no state was set
		t.Errorf("by time: %v", status)
	}
}

func TestPasswordsAreKeysOfRules(t *testing.T) {
	t.Parallel()
	keys := access.Keys{"app": {Primary: "secret", Claims: access.Send}}
	s := start(t, access.SAS(func() access.Keys { return keys }))
	s.queue("q", nil)
	c := s.dial(&frame.Init{Mechanism: "PLAIN", Response: []byte("\x00app\x00secret")})
	if o := want[*frame.Outcome](c); o.Code != 0 {
		t.Fatalf("outcome is %d", o.Code)
	}
	c.open()
	if _, ok := c.transfer(c.sender("q"), data("x")).(frame.Accepted); !ok {
		t.Error("a sender with Send is refused")
	}
	c.attach(frame.Attach{IsReceiver: true, Source: &frame.Source{Address: "q"}})
	if d := want[*frame.Detach](c); d.Error.Condition != "amqp:unauthorized-access" || !strings.Contains(d.Error.Description, "'Listen' claim(s) are required") {
		t.Errorf("a receiver without Listen: %v", d.Error)
	}
	c = s.dial(&frame.Init{Mechanism: "PLAIN", Response: []byte("\x00app\x00wrong")})
	if o := want[*frame.Outcome](c); o.Code != 1 {
		t.Errorf("outcome of a wrong password is %d", o.Code)
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	keys := access.Keys{"app": {Primary: "secret", Claims: access.Send}}
	s := start(t, access.SAS(func() access.Keys { return keys }))
	s.queue("q", nil)
	c := s.dial(nil).open()
	c.attach(frame.Attach{Target: &frame.Target{Address: "q"}})
	if d := want[*frame.Detach](c); d.Error.Condition != "amqp:unauthorized-access" {
		t.Errorf("without a token: %v", d.Error)
	}
	n := c.node("$cbs")
	put := func(audience, token string) (int32, string) {
		t.Helper()
		state := n.transfer(n.requests, sections(uint64(0x73), codec.List{"id", nil, nil, nil, "answers"}, uint64(0x74), codec.Map{
			codec.Entry("operation", "put-token"), codec.Entry("type", "servicebus.windows.net:sastoken"), codec.Entry("name", audience),
		}, uint64(0x77), token))
		if _, ok := state.(frame.Accepted); !ok {
			t.Fatalf("the request is %#v", state)
		}
		a, err := convert.Parse(n.frame().Payload)
		if err != nil {
			t.Fatal(err)
		}
		description, _ := a.Application.Get("status-description").(string)
		return a.Application.Get("status-code").(int32), description
	}
	hour := time.Now().Add(time.Hour)
	for _, row := range []struct {
		audience, token string
		status          int32
		prefix          string
	}{
		{"sb://host/q", sas.Sign("app", "wrong", hour), 401, "InvalidSignature: "},
		{"sb://host/q", sas.Sign("app", "secret", time.Now().Add(-time.Hour)), 401, "ExpiredToken: "},
		{"sb://host/q", "nonsense", 401, "InvalidSignature: "},
		{strings.Repeat("q", 3000), sas.Sign("app", "secret", hour), 400, "the name has 3000 bytes"},
		{"sb://host/missing", sas.Sign("app", "secret", hour), 404, "The messaging entity 'missing' could not be found"},
		{"sb://host/q/$management", sas.Sign("app", "secret", hour), 202, ""},
		{"sb://host/q", sas.Sign("app", "secret", hour), 202, ""},
	} {
		if status, text := put(row.audience, row.token); status != row.status || !strings.HasPrefix(text, row.prefix) {
			t.Errorf("%s: %d %s, want %d %s", row.audience, status, text, row.status, row.prefix)
		}
	}
	if _, ok := c.transfer(c.sender("q"), data("x")).(frame.Accepted); !ok {
		t.Error("not accepted with a token")
	}
}
