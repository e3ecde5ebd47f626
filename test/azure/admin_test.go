package azure

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"

	"github.com/sidebus/sidebus/test/sidecartest"
)

// secured is a sidecar with the authority that its clients trust over TLS.
type secured struct {
	*sidecartest.Sidecar

	authority string // the file
}

// startSecured starts a sidecar with a data directory of its own, which gets the authority.
func startSecured(t *testing.T, more ...string) secured {
	t.Helper()
	data := t.TempDir()
	s := start(t, append([]string{"--data-dir", data}, more...)...)
	return secured{s, filepath.Join(data, "amqp", "ca.pem")}
}

// connectionString is that of a client over TLS: without UseDevelopmentEmulator.
func (s secured) connectionString(host string) string {
	_, port, _ := strings.Cut(s.AMQP, ":")
	return "Endpoint=sb://" + host + ":" + port + ";SharedAccessKeyName=app;SharedAccessKey=secret"
}

// trust returns a configuration of TLS that trusts the authority.
func (s secured) trust(t *testing.T) *tls.Config {
	t.Helper()
	text, err := os.ReadFile(s.authority)
	must(t, err)
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		t.Fatal("the authority has no certificate")
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
}

// administer returns an administration client. The test closes its connections.
func (s secured) administer(t *testing.T, connection string) *admin.Client {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: s.trust(t), ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	client, err := admin.NewClientFromConnectionString(connection, &admin.ClientOptions{
		ClientOptions: azcore.ClientOptions{Transport: &http.Client{Transport: transport}},
	})
	must(t, err)
	return client
}

func statusOf(err error) int {
	var failed *azcore.ResponseError
	if errors.As(err, &failed) {
		return failed.StatusCode
	}
	return 0
}

func TestAdminQueues(t *testing.T) {
	t.Parallel()
	s := startSecured(t)
	client := s.administer(t, s.connectionString("127.0.0.1"))
	for _, name := range []string{"dead", "next"} {
		_, err := client.CreateQueue(patient(t), name, nil)
		must(t, err)
	}
	host := "sb://" + s.AMQP + "/"
	created, err := client.CreateQueue(patient(t), "orders/eu", &admin.CreateQueueOptions{Properties: &admin.QueueProperties{
		LockDuration: pointer("PT45S"), MaxDeliveryCount: pointer(int32(4)), DefaultMessageTimeToLive: pointer("P14D"),
		DeadLetteringOnMessageExpiration: pointer(true), UserMetadata: pointer("<'mine' & \"yours\">"),
		RequiresDuplicateDetection: pointer(true), DuplicateDetectionHistoryTimeWindow: pointer("PT1M"),
		ForwardDeadLetteredMessagesTo: pointer(host + "dead"), MaxSizeInMegabytes: pointer(int32(2048)),
		AuthorizationRules: []admin.AuthorizationRule{{AccessRights: []admin.AccessRight{admin.AccessRightSend}, KeyName: pointer("k")}},
	}})
	must(t, err)
	p := created.QueueProperties
	if *p.LockDuration != "PT45S" || *p.MaxDeliveryCount != 4 || *p.DefaultMessageTimeToLive != "P14D" ||
		!*p.DeadLetteringOnMessageExpiration || *p.UserMetadata != "<'mine' & \"yours\">" || !*p.RequiresDuplicateDetection ||
		*p.DuplicateDetectionHistoryTimeWindow != "PT1M" || !strings.HasSuffix(*p.ForwardDeadLetteredMessagesTo, "/dead") ||
		*p.MaxSizeInMegabytes != 2048 || *p.Status != admin.EntityStatusActive || *p.RequiresSession {
		t.Errorf("created: %+v", p)
	}
	_, err = client.CreateQueue(patient(t), "Orders/EU", nil)
	if statusOf(err) != http.StatusConflict || !strings.Contains(err.Error(), "ENTITY_ALREADY_EXISTS") {
		t.Errorf("created twice: %v", err)
	}
	got, err := client.GetQueue(patient(t), "orders/eu", nil)
	must(t, err)
	if !reflect.DeepEqual(got.QueueProperties, p) {
		t.Errorf("got %+v, created %+v", got.QueueProperties, p)
	}
	p.MaxDeliveryCount, p.Status, p.ForwardTo = pointer(int32(7)), pointer(admin.EntityStatusSendDisabled), pointer("next")
	updated, err := client.UpdateQueue(patient(t), "orders/eu", p, nil)
	must(t, err)
	if *updated.MaxDeliveryCount != 7 || *updated.Status != admin.EntityStatusSendDisabled || *updated.LockDuration != "PT45S" ||
		!strings.HasSuffix(*updated.ForwardTo, "/next") {
		t.Errorf("updated: %+v", updated.QueueProperties)
	}
	p.RequiresSession = pointer(true)
	if _, err := client.UpdateQueue(patient(t), "orders/eu", p, nil); statusOf(err) != http.StatusBadRequest ||
		!strings.Contains(err.Error(), "The value for the RequiresSession property of an existing") {
		t.Errorf("an option that cannot change: %v", err)
	}
	if _, err := client.UpdateQueue(patient(t), "missing", p, nil); statusOf(err) != http.StatusNotFound {
		t.Errorf("update of a missing queue: %v", err)
	}
	_, err = client.DeleteQueue(patient(t), "orders/eu", nil)
	must(t, err)
	if got, err := client.GetQueue(patient(t), "orders/eu", nil); got != nil || err != nil {
		t.Errorf("a deleted queue: %v, %v", got, err)
	}
	if _, err := client.DeleteQueue(patient(t), "orders/eu", nil); statusOf(err) != http.StatusNotFound {
		t.Errorf("deleted twice: %v", err)
	}
}

func TestAdminCountsAndPages(t *testing.T) {
	t.Parallel()
	s := startSecured(t)
	client := s.administer(t, s.connectionString("localhost"))
	var want []string
	for i := range 7 {
		want = append(want, fmt.Sprint("q", i))
		_, err := client.CreateQueue(patient(t), want[i], nil)
		must(t, err)
	}
	l := open(t, s.Sidecar, "q3", nil)
	l.put(t, "a", "b", "c")
	_, err := l.send.ScheduleMessages(patient(t), []*azservicebus.Message{{}}, distant(), nil)
	must(t, err)
	must(t, l.receive.DeadLetterMessage(patient(t), l.one(t), nil))
	counts, err := client.GetQueueRuntimeProperties(patient(t), "q3", nil)
	must(t, err)
	if counts.ActiveMessageCount != 2 || counts.DeadLetterMessageCount != 1 || counts.ScheduledMessageCount != 1 ||
		counts.TotalMessageCount != 4 || counts.SizeInBytes == 0 || time.Since(counts.CreatedAt) > time.Hour {
		t.Errorf("counts: %+v", counts.QueueRuntimeProperties)
	}
	var names []string
	pages := 0
	for pager := client.NewListQueuesPager(&admin.ListQueuesOptions{MaxPageSize: 3}); pager.More(); pages++ {
		page, err := pager.NextPage(patient(t))
		must(t, err)
		for _, q := range page.Queues {
			names = append(names, q.QueueName)
		}
	}
	if !reflect.DeepEqual(names, want) || pages != 3 {
		t.Errorf("%d pages: %v", pages, names)
	}
	for pager := client.NewListQueuesRuntimePropertiesPager(nil); pager.More(); {
		page, err := pager.NextPage(patient(t))
		must(t, err)
		for _, q := range page.QueueRuntimeProperties {
			if q.QueueName == "q3" && q.TotalMessageCount != 4 {
				t.Errorf("in the list: %+v", q)
			}
		}
	}
	namespace, err := client.GetNamespaceProperties(patient(t), nil)
	must(t, err)
	if namespace.Name == "" || namespace.SKU != "Standard" {
		t.Errorf("namespace: %+v", namespace.NamespaceProperties)
	}
}

func TestAdminTopicsSubscriptionsRules(t *testing.T) {
	t.Parallel()
	s := startSecured(t)
	client := s.administer(t, s.connectionString("localhost"))
	topic, err := client.CreateTopic(patient(t), "news", &admin.CreateTopicOptions{Properties: &admin.TopicProperties{
		UserMetadata: pointer("m"), SupportOrdering: pointer(false),
	}})
	must(t, err)
	if *topic.UserMetadata != "m" || *topic.SupportOrdering || *topic.MaxSizeInMegabytes != 1024 {
		t.Errorf("topic: %+v", topic.TopicProperties)
	}
	_, err = client.CreateSubscription(patient(t), "news", "all", nil)
	must(t, err)
	sub, err := client.CreateSubscription(patient(t), "news", "some", &admin.CreateSubscriptionOptions{
		Properties: &admin.SubscriptionProperties{
			RequiresSession: pointer(true), MaxDeliveryCount: pointer(int32(2)), EnableDeadLetteringOnFilterEvaluationExceptions: pointer(false),
			DefaultRule: &admin.RuleProperties{Name: "first", Filter: &admin.SQLFilter{
				Expression: "n > @n", Parameters: map[string]any{"@n": int64(5)},
			}, Action: &admin.SQLAction{Expression: "SET seen = 'yes'"}},
		},
	})
	must(t, err)
	if !*sub.RequiresSession || *sub.MaxDeliveryCount != 2 || *sub.EnableDeadLetteringOnFilterEvaluationExceptions {
		t.Errorf("subscription: %+v", sub.SubscriptionProperties)
	}
	sub.MaxDeliveryCount = pointer(int32(9))
	updated, err := client.UpdateSubscription(patient(t), "news", "some", sub.SubscriptionProperties, nil)
	must(t, err)
	if *updated.MaxDeliveryCount != 9 {
		t.Errorf("subscription: %+v", updated.SubscriptionProperties)
	}
	rule, err := client.GetRule(patient(t), "news", "some", "first", nil)
	must(t, err)
	if !reflect.DeepEqual(rule.RuleProperties, admin.RuleProperties{
		Name: "first", Filter: &admin.SQLFilter{Expression: "n > @n", Parameters: map[string]any{"@n": int64(5)}},
		Action: &admin.SQLAction{Expression: "SET seen = 'yes'"},
	}) {
		t.Errorf("rule: %+v", rule.RuleProperties)
	}
	correlation := &admin.CorrelationFilter{
		Subject: pointer("s"), ContentType: pointer("c"), CorrelationID: pointer("ci"), MessageID: pointer("m"),
		ReplyTo: pointer("r"), ReplyToSessionID: pointer("rs"), SessionID: pointer("si"), To: pointer("t"),
		ApplicationProperties: map[string]any{
			"text": "a<b", "flag": true, "ratio": 0.5, "at": time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		},
	}
	for name, filter := range map[string]admin.RuleFilter{
		"true": &admin.TrueFilter{}, "false": &admin.FalseFilter{}, "correlation": correlation,
	} {
		created, err := client.CreateRule(patient(t), "news", "all", &admin.CreateRuleOptions{Name: &name, Filter: filter})
		must(t, err)
		if !reflect.DeepEqual(created.Filter, filter) || created.Name != name || created.Action != nil {
			t.Errorf("rule %s: %+v", name, created.RuleProperties)
		}
	}
	_, err = client.CreateRule(patient(t), "news", "all", &admin.CreateRuleOptions{Name: pointer("true")})
	if statusOf(err) != http.StatusConflict {
		t.Errorf("created twice: %v", err)
	}
	replaced, err := client.UpdateRule(patient(t), "news", "all", admin.RuleProperties{Name: "true", Filter: &admin.SQLFilter{Expression: "a = 1"}})
	must(t, err)
	if !reflect.DeepEqual(replaced.Filter, &admin.SQLFilter{Expression: "a = 1"}) {
		t.Errorf("updated: %+v", replaced.RuleProperties)
	}
	var names []string
	for pager := client.NewListRulesPager("news", "all", &admin.ListRulesOptions{MaxPageSize: 2}); pager.More(); {
		page, err := pager.NextPage(patient(t))
		must(t, err)
		for _, r := range page.Rules {
			names = append(names, r.Name)
		}
	}
	if !reflect.DeepEqual(names, []string{"$Default", "correlation", "false", "true"}) {
		t.Errorf("rules: %v", names)
	}
	_, err = client.DeleteRule(patient(t), "news", "all", "$Default", nil)
	must(t, err)
	if missing, err := client.GetRule(patient(t), "news", "all", "$Default", nil); missing != nil || err != nil {
		t.Errorf("a deleted rule: %v, %v", missing, err)
	}
	names = nil
	for pager := client.NewListSubscriptionsPager("news", nil); pager.More(); {
		page, err := pager.NextPage(patient(t))
		must(t, err)
		for _, one := range page.Subscriptions {
			names = append(names, one.SubscriptionName)
		}
	}
	if !reflect.DeepEqual(names, []string{"all", "some"}) {
		t.Errorf("subscriptions: %v", names)
	}
	runtime, err := client.GetTopicRuntimeProperties(patient(t), "news", nil)
	must(t, err)
	if runtime.SubscriptionCount != 2 {
		t.Errorf("topic: %+v", runtime.TopicRuntimeProperties)
	}
	_, err = client.DeleteSubscription(patient(t), "news", "all", nil)
	must(t, err)
	_, err = client.DeleteTopic(patient(t), "news", nil)
	must(t, err)
	if missing, err := client.GetSubscription(patient(t), "news", "some", nil); missing != nil || err != nil {
		t.Errorf("a subscription of a deleted topic: %v, %v", missing, err)
	}
}

func TestAdminNeedsManage(t *testing.T) {
	t.Parallel()
	keys := filepath.Join(t.TempDir(), "keys.yaml")
	must(t, os.WriteFile(keys, []byte(rules), 0o600))
	s := startSecured(t, "--sas-keys-file", keys)
	as := func(rule, key string) *admin.Client {
		return s.administer(t, strings.NewReplacer("KeyName=app", "KeyName="+rule, "Key=secret", "Key="+key).Replace(s.connectionString("localhost")))
	}
	root := as("root", "km")
	_, err := root.CreateQueue(patient(t), "q", nil)
	must(t, err)
	page, err := root.NewListQueuesPager(nil).NextPage(patient(t))
	must(t, err)
	if len(page.Queues) != 1 {
		t.Errorf("queues: %v", page.Queues)
	}
	for _, c := range []struct{ rule, key string }{{"sender", "ks"}, {"receiver", "kr"}, {"root", "wrong"}, {"nobody", "km"}} {
		client := as(c.rule, c.key)
		_, get := client.GetQueue(patient(t), "q", nil)
		_, create := client.CreateQueue(patient(t), "other", nil)
		_, remove := client.DeleteQueue(patient(t), "q", nil)
		_, list := client.NewListQueuesPager(nil).NextPage(patient(t))
		for _, err := range []error{get, create, remove, list} {
			if statusOf(err) != http.StatusUnauthorized {
				t.Errorf("%s: %v", c.rule, err)
			}
		}
	}
}

// TestAdminJavaScript and TestAdminPython run programs with the administration clients of the other SDKs.
func TestAdminJavaScript(t *testing.T) {
	t.Parallel()
	s := startSecured(t)
	command := exec.CommandContext(patient(t), "node", "js/admin.js", s.connectionString("localhost"))
	command.Env = append(os.Environ(), "NODE_EXTRA_CA_CERTS="+s.authority)
	if out, err := command.CombinedOutput(); err != nil || string(out) != "all checked\n" {
		t.Fatalf("%v\n%s", err, out)
	}
}

func TestAdminPython(t *testing.T) {
	t.Parallel()
	s := startSecured(t)
	command := exec.CommandContext(patient(t), python, "python/admin.py", s.connectionString("localhost"), s.authority)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
