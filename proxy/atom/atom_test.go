package atom_test

import (
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/proxy/sas"
	"github.com/sidebus/sidebus/semantics"
)

const (
	get  = http.MethodGet
	put  = http.MethodPut
	post = http.MethodPost
	del  = http.MethodDelete
)

func TestREST_10_Queues(t *testing.T) {
	t.Parallel()
	s := start(t, access.AllowAll{})
	s.put("/orders%2Feu", "<QueueDescription></QueueDescription>")
	s.put("/dead", "<QueueDescription></QueueDescription>")
	a := s.put("/orders", `<QueueDescription><LockDuration>PT45S</LockDuration><RequiresSession>true</RequiresSession>`+
		`<DefaultMessageTimeToLive>P1DT2H</DefaultMessageTimeToLive><Status>SendDisabled</Status>`+
		`<UserMetadata>a &amp; "b" 'c'</UserMetadata><ForwardDeadLetteredMessagesTo>sb://x/dead</ForwardDeadLetteredMessagesTo>`+
		`<AutoDeleteOnIdle>P10675199DT2H48M5.4775807S</AutoDeleteOnIdle><Unknown>1</Unknown></QueueDescription>`)
	host := strings.TrimPrefix(s.base, "http://")
	want := map[string]string{
		"LockDuration": "PT45S", "MaxSizeInMegabytes": "1024", "RequiresDuplicateDetection": "false", "RequiresSession": "true",
		"DefaultMessageTimeToLive": "P1DT2H", "DeadLetteringOnMessageExpiration": "false",
		"DuplicateDetectionHistoryTimeWindow": "PT10M", "MaxDeliveryCount": "10", "EnableBatchedOperations": "true",
		"SizeInBytes": "0", "MessageCount": "0", "IsAnonymousAccessible": "false", "Status": "SendDisabled",
		"UserMetadata": `a & "b" 'c'`, "SupportOrdering": "true", "CountDetails": "",
		"AutoDeleteOnIdle": "P10675199DT2H48M5.4775807S", "EnablePartitioning": "false",
		"ForwardDeadLetteredMessagesTo": "https://" + host + "/dead", "EntityAvailabilityStatus": "Available",
		"EnableExpress": "false", "MaxMessageSizeInKilobytes": "256",
	}
	for _, a := range []answer{a, s.want(200, get, "/ORDERS", "")} {
		got := a.read(t)
		for _, name := range []string{"CreatedAt", "UpdatedAt", "AccessedAt"} {
			if at, err := time.Parse(time.RFC3339, got[name]); err != nil || time.Since(at) > time.Hour {
				t.Errorf("%s is %s", name, got[name])
			}
			delete(got, name)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		if !strings.Contains(a.body, "<id>https://"+host+"/orders?api-version=2021-05</id>") {
			t.Errorf("the id is not there: %s", a.body)
		}
	}
	got := s.update("/orders", "<QueueDescription><LockDuration>PT1M30.5S</LockDuration></QueueDescription>").read(t)
	if got["LockDuration"] != "PT1M30.5S" || got["Status"] != "Active" || got["UserMetadata"] != "" || got["RequiresSession"] != "true" {
		t.Errorf("after the update: %v", got) // the rest has its defaults, except what cannot change (ENT-7)
	}
	s.want(200, del, "/orders", "")
	s.want(404, get, "/orders", "")
	s.want(200, get, "/orders/eu", "")
}

func TestREST_10_OptionsOfSidebusStay(t *testing.T) {
	t.Parallel()
	s := start(t, access.AllowAll{})
	options := semantics.DefaultOptions()
	options.RedeliveryDelay = time.Minute
	if _, err := s.broker.CreateEntity(t.Context(), semantics.QueueKind, "q", options, []string{"redeliveryDelay"}); err != nil {
		t.Fatal(err)
	}
	s.update("/q", "<QueueDescription></QueueDescription>")
	q, err := s.broker.GetEntity(t.Context(), semantics.QueueKind, "q")
	if err != nil || q.Options.RedeliveryDelay != time.Minute {
		t.Errorf("got %v, %v", q.Options, err)
	}
}

func TestREST_10_CountsOfMessages(t *testing.T) {
	t.Parallel()
	s := start(t, access.AllowAll{})
	s.put("/q", "<QueueDescription></QueueDescription>")
	later := time.Now().Add(time.Hour)
	for _, m := range []*semantics.Message{{}, {}, {ScheduledAt: later}} {
		if _, err := s.broker.Send(t.Context(), semantics.ToQueue("q"), []*semantics.Message{m}); err != nil {
			t.Fatal(err)
		}
	}
	a := s.want(200, get, "/q", "")
	const counts = `<CountDetails xmlns:d2p1="http://schemas.microsoft.com/netservices/2011/06/servicebus">` +
		`<d2p1:ActiveMessageCount>2</d2p1:ActiveMessageCount><d2p1:DeadLetterMessageCount>0</d2p1:DeadLetterMessageCount>` +
		`<d2p1:ScheduledMessageCount>1</d2p1:ScheduledMessageCount><d2p1:TransferMessageCount>0</d2p1:TransferMessageCount>`
	if !strings.Contains(a.body, counts) || a.read(t)["MessageCount"] != "3" {
		t.Errorf("got %s", a.body)
	}
}

func TestREST_10_TopicsAndSubscriptions(t *testing.T) {
	t.Parallel()
	s := start(t, access.AllowAll{})
	s.put("/news", "<TopicDescription><SupportOrdering>false</SupportOrdering></TopicDescription>")
	s.put("/News/subscriptions/eu", `<SubscriptionDescription><MaxDeliveryCount>3</MaxDeliveryCount></SubscriptionDescription>`)
	if got := s.want(200, get, "/news", "").read(t); got["SubscriptionCount"] != "1" || got["SupportOrdering"] != "false" {
		t.Errorf("the topic is %v", got)
	}
	a := s.want(200, get, "/news/Subscriptions/eu", "")
	if got := a.read(t); got["MaxDeliveryCount"] != "3" || !strings.Contains(a.body, `<title type="text">eu</title>`) {
		t.Errorf("the subscription is %s", a.body)
	}
	if names, _ := s.want(200, get, "/news/Subscriptions/eu/Rules/", "").titles(t); !reflect.DeepEqual(names, []string{"$Default"}) {
		t.Errorf("rules: %v", names)
	}
	s.put("/news/Subscriptions/us", `<SubscriptionDescription><DefaultRuleDescription><Filter p4:type="SqlFilter">`+
		`<SqlExpression>n = 1</SqlExpression></Filter><Action p4:type="EmptyRuleAction"/><Name>mine</Name>`+
		`</DefaultRuleDescription></SubscriptionDescription>`)
	if names, _ := s.want(200, get, "/news/Subscriptions/us/Rules", "").titles(t); !reflect.DeepEqual(names, []string{"mine"}) {
		t.Errorf("rules: %v", names)
	}
	if names, _ := s.want(200, get, "/news/Subscriptions", "").titles(t); !reflect.DeepEqual(names, []string{"eu", "us"}) {
		t.Errorf("subscriptions: %v", names)
	}
	s.want(200, del, "/news/Subscriptions/eu", "")
	s.want(200, del, "/news", "")
	s.want(404, get, "/news/Subscriptions/us", "")
}

func TestREST_10_Rules(t *testing.T) {
	t.Parallel()
	s := start(t, access.AllowAll{})
	s.put("/news", "<TopicDescription></TopicDescription>")
	s.put("/news/Subscriptions/eu", "<SubscriptionDescription></SubscriptionDescription>")
	const rules = "/news/Subscriptions/eu/Rules/"
	a := s.put(rules+"sql", `<RuleDescription><Filter p4:type="SqlFilter"><SqlExpression>n &gt; @n AND s = @s</SqlExpression><Parameters>`+
		`<KeyValueOfstringanyType><Key>@n</Key><Value p4:type="l28:int">5</Value></KeyValueOfstringanyType>`+
		`<KeyValueOfstringanyType><Key>@s</Key><Value p4:type="l28:string"> x </Value></KeyValueOfstringanyType></Parameters></Filter>`+
		`<Action p4:type="SqlRuleAction"><SqlExpression>SET a = 1</SqlExpression></Action><Name>sql</Name></RuleDescription>`)
	for _, want := range []string{
		"/news/Subscriptions/eu/Rules/sql?api-version=2021-05</id>",
		`<Filter i:type="SqlFilter"><SqlExpression>n &gt; @n AND s = @s</SqlExpression><CompatibilityLevel>20</CompatibilityLevel><Parameters>`,
		`<Key>@n</Key><Value i:type="d6p1:int" xmlns:d6p1="http://www.w3.org/2001/XMLSchema">5</Value>`,
		`<Key>@s</Key><Value i:type="d6p1:string" xmlns:d6p1="http://www.w3.org/2001/XMLSchema"> x </Value>`,
		`<Action i:type="SqlRuleAction"><SqlExpression>SET a = 1</SqlExpression>`, "<Name>sql</Name>",
	} {
		if !strings.Contains(a.body, want) {
			t.Errorf("%s is not in %s", want, a.body)
		}
	}
	a = s.update(rules+"sql", `<RuleDescription><Filter p4:type="CorrelationFilter"><Label>l</Label><Properties>`+
		`<KeyValueOfstringanyType><Key>at</Key><Value p4:type="l28:dateTime">2026-01-02T03:04:05</Value></KeyValueOfstringanyType>`+
		`</Properties></Filter><Name>sql</Name></RuleDescription>`)
	const correlation = `<Filter i:type="CorrelationFilter"><Label>l</Label><Properties><KeyValueOfstringanyType><Key>at</Key>` +
		`<Value i:type="d6p1:dateTime" xmlns:d6p1="http://www.w3.org/2001/XMLSchema">2026-01-02T03:04:05Z</Value>` +
		`</KeyValueOfstringanyType></Properties></Filter><Action i:type="EmptyRuleAction"></Action>`
	if !strings.Contains(a.body, correlation) || a.body != s.want(200, get, rules+"sql", "").body {
		t.Errorf("the rule is now %s", a.body)
	}
	s.put(rules+"none", `<RuleDescription><Filter p4:type="FalseFilter"><SqlExpression>1=0</SqlExpression></Filter></RuleDescription>`)
	if a := s.want(200, get, rules+"$Default", ""); !strings.Contains(a.body, `<Filter i:type="TrueFilter"><SqlExpression>1=1</SqlExpression>`) {
		t.Errorf("the default rule is %s", a.body)
	}
	if names, _ := s.want(200, get, rules, "").titles(t); !reflect.DeepEqual(names, []string{"$Default", "none", "sql"}) {
		t.Errorf("rules: %v", names)
	}
	s.want(200, del, rules+"$Default", "")
	s.want(404, get, rules+"$Default", "")
}

func TestENT_17_SkipAndTop(t *testing.T) {
	t.Parallel()
	s := start(t, access.AllowAll{})
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		s.put("/"+name, "<QueueDescription></QueueDescription>")
	}
	var all []string
	path := "/$Resources/Queues?$skip=1&$top=2&api-version=2021-05"
	for range 2 {
		titles, next := s.call(get, path, "").titles(t)
		all = append(all, titles...)
		path = strings.TrimPrefix(next, strings.Replace(s.base, "http", "https", 1))
	}
	if !reflect.DeepEqual(all, []string{"b", "c", "d", "e"}) || path != "" {
		t.Errorf("got %v, then %q", all, path)
	}
	if titles, next := s.call(get, "/$Resources/Queues?$skip=9", "").titles(t); titles != nil || next != "" {
		t.Errorf("beyond the last: %v, %q", titles, next)
	}
	if titles, _ := s.want(200, get, "/$Resources/topics", "").titles(t); titles != nil {
		t.Errorf("topics: %v", titles)
	}
	for _, query := range []string{"$top=101", "$top=0", "$top=x", "$skip=-1"} {
		if a := s.call(get, "/$Resources/Queues?"+query, ""); a.status != 400 {
			t.Errorf("%s: %d", query, a.status)
		}
	}
}

func TestREST_10_Refusals(t *testing.T) {
	t.Parallel()
	s := start(t, access.AllowAll{})
	s.put("/q", "<QueueDescription></QueueDescription>")
	s.put("/t", "<TopicDescription></TopicDescription>")
	s.put("/t/Subscriptions/s", "<SubscriptionDescription></SubscriptionDescription>")
	const queue, rule = "<QueueDescription></QueueDescription>", `<RuleDescription><Filter p4:type="TrueFilter"/></RuleDescription>`
	for _, c := range []struct {
		name, method, path, body string
		status                   int
		detail                   string
	}{
		{"exists", put, "/Q", entry(queue), 409, "SubCode=40900. ENTITY_ALREADY_EXISTS: "},
		{"as another kind", put, "/t", entry(queue), 409, "SubCode=40900. "},
		{"rule exists", put, "/t/Subscriptions/s/Rules/$Default", entry(rule), 409, "SubCode=40900. RULE_ALREADY_EXISTS: "},
		{"missing topic", put, "/no/Subscriptions/s", entry("<SubscriptionDescription></SubscriptionDescription>"), 404, "SubCode=40400. ENTITY_NOT_FOUND: "},
		{"missing queue", get, "/no", "", 404, "SubCode=40400. "},
		{"delete a missing one", del, "/no", "", 404, "SubCode=40400. "},
		{"missing rule", get, "/t/Subscriptions/s/Rules/no", "", 404, "SubCode=40400. RULE_NOT_FOUND: "},
		{"missing topic of a list", get, "/no/Subscriptions", "", 404, "SubCode=40400. "},
		{"out of bounds", put, "/x", entry("<QueueDescription><LockDuration>PT1S</LockDuration></QueueDescription>"), 400, "SubCode=40000. ARGUMENT_OUT_OF_RANGE: lockDuration"},
		{"no duration", put, "/x", entry("<QueueDescription><LockDuration>1m</LockDuration></QueueDescription>"), 400, "SubCode=40000. INVALID_ARGUMENT: lockDuration"},
		{"no number", put, "/x", entry("<QueueDescription><MaxDeliveryCount>x</MaxDeliveryCount></QueueDescription>"), 400, "SubCode=40000. "},
		{"no status", put, "/x", entry("<QueueDescription><Status>Renaming</Status></QueueDescription>"), 400, "SubCode=40000. "},
		{"another path", put, "/x", entry("<SubscriptionDescription></SubscriptionDescription>"), 400, "SubCode=40000. "},
		{"invalid name", put, "/x~", entry(queue), 400, "SubCode=40000. "},
		{"no XML", put, "/x", "no", 400, "SubCode=40000. "},
		{"cut XML", put, "/x", entry(queue)[:150], 400, "SubCode=40000. "},
		{"no entry", put, "/x", "<a/>", 400, "SubCode=40000. "},
		{"unknown filter", put, "/t/Subscriptions/s/Rules/x", entry(`<RuleDescription><Filter p4:type="DateFilter"/></RuleDescription>`), 400, "SubCode=40000. "},
		{"bad filter", put, "/t/Subscriptions/s/Rules/x", entry(`<RuleDescription><Filter p4:type="SqlFilter"><SqlExpression>n =</SqlExpression></Filter></RuleDescription>`), 400, "SubCode=40000. FILTER_INVALID: "},
		{"an entity of the document", put, "/x", `<!DOCTYPE a [<!ENTITY b "c">]><entry>&b;</entry>`, 400, "SubCode=40000. "},
		{"deep", put, "/x", strings.Repeat("<a>", 100), 400, "SubCode=40000. "},
		{"many", put, "/x", "<entry>" + strings.Repeat("<a/>", 20_000) + "</entry>", 400, "SubCode=40000. "},
		{"large", put, "/x", strings.Repeat(" ", 300<<10), 403, "SubCode=40300. MESSAGE_SIZE_EXCEEDED: "},
		{"method", post, "/q", "", 405, "ROUTE_NOT_FOUND: "},
	} {
		a := s.want(c.status, c.method, c.path, c.body)
		if !strings.Contains(a.body, "<Error><Code>") || !strings.Contains(a.body, "<Detail>"+c.detail) {
			t.Errorf("%s: %s", c.name, a.body)
		}
	}
	a := s.want(400, put, "/q", entry("<QueueDescription><RequiresSession>true</RequiresSession></QueueDescription>"), "If-Match", "*")
	if !strings.Contains(a.body, "The value for the RequiresSession property of an existing") || a.header.Get("Sidebus-Error") != "PROPERTY_IMMUTABLE" {
		t.Errorf("an option that cannot change: %s", a.body)
	}
	s.want(404, put, "/no", entry(queue), "If-Match", "*")
	s.want(404, put, "/t/Subscriptions/s/Rules/no", entry(rule), "If-Match", "*")
	s.want(400, put, "/q", entry(queue), "If-Match", `"1"`)
}

func TestREST_10_OtherRequestsAreNotOurs(t *testing.T) {
	t.Parallel()
	s := start(t, access.AllowAll{})
	for _, path := range []string{"/v1/queues/q", "/v1/queues/q?api-version=1", "/q", "/", "/?api-version=1", "/openapi.json"} {
		if a := s.call(get, path, ""); a.status != http.StatusTeapot {
			t.Errorf("%s: %d", path, a.status)
		}
	}
	if got := s.want(200, get, "/$namespaceinfo", "").read(t); got["Name"] != "default" {
		t.Errorf("the namespace is %v", got)
	}
	if a := s.call(get, "/$namespaceinfo", "", "Sec-Fetch-Site", "cross-site"); a.status != 200 { // it changes nothing
		t.Errorf("read by a page: %d", a.status)
	}
	s.want(401, put, "/q", entry("<QueueDescription></QueueDescription>"), "Sec-Fetch-Site", "cross-site")
}

func TestAUTH_5_Management(t *testing.T) {
	t.Parallel()
	all := access.Send | access.Listen | access.Manage
	s := start(t, access.SAS(func() access.Keys {
		return access.Keys{
			"root": {Primary: "r", Claims: all}, "q": {Primary: "q", Claims: all, Entity: "q"},
			"reader": {Primary: "l", Claims: access.Listen},
		}
	}))
	as := func(rule, key string) []string {
		return []string{"Authorization", sas.Sign(rule, key, time.Now().Add(time.Hour))}
	}
	const queue = "<QueueDescription></QueueDescription>"
	s.want(201, put, "/t", entry("<TopicDescription></TopicDescription>"), as("root", "r")...)
	s.want(201, put, "/t/Subscriptions/s", entry("<SubscriptionDescription></SubscriptionDescription>"), as("root", "r")...)
	s.want(201, put, "/q", entry(queue), as("q", "q")...)
	s.want(200, get, "/$Resources/Queues", "", as("root", "r")...)
	s.want(200, get, "/t/Subscriptions/s/Rules", "", as("reader", "l")...)
	for _, c := range []struct {
		name, method, path, body, rule, key string
		detail                              string
	}{
		{"no token", get, "/q", "", "", "", "UNAUTHENTICATED"},
		{"wrong key", get, "/q", "", "q", "wrong", "UNAUTHENTICATED"},
		{"other entity", put, "/x", entry(queue), "q", "q", "Unauthorized: Manage,EntityWrite claims required for this operation"},
		{"forwards to another", put, "/q", entry("<QueueDescription><ForwardTo>t</ForwardTo></QueueDescription>"), "q", "q", "PERMISSION_DENIED"},
		{"lists", get, "/$Resources/Queues", "", "q", "q", "Manage,EntityRead claims required for this operation"},
		{"of the namespace", get, "/$namespaceinfo", "", "q", "q", "Manage,EntityRead"},
		{"reads", get, "/q", "", "reader", "l", "Manage,EntityRead claims required for this operation"},
		{"does not learn what exists", get, "/no", "", "reader", "l", "Manage,EntityRead claims required for this operation"},
		{"creates rules", put, "/t/Subscriptions/s/Rules/x", entry("<RuleDescription></RuleDescription>"), "reader", "l", "Manage,EntityWrite"},
		{"deletes", del, "/q", "", "reader", "l", "Manage,EntityDelete claims required for this operation"},
	} {
		var token []string
		if c.rule != "" {
			token = as(c.rule, c.key)
		}
		if a := s.want(401, c.method, c.path, c.body, token...); !strings.Contains(a.body, "<Detail>SubCode=40100. ") || !strings.Contains(a.body, c.detail) {
			t.Errorf("%s: %s", c.name, a.body)
		}
	}
	// the SDK for Go signs the address that it calls
	for _, path := range []string{"/$Resources/Queues", "/t/Subscriptions/s/Rules/"} {
		token := signFor("https://x"+path+"?api-version=2024-05", "root", "r")
		s.want(200, get, path, "", "Authorization", token)
		s.want(401, get, "/q", "", "Authorization", token)
	}
}
