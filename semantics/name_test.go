package semantics_test

import (
	"strings"
	"testing"

	"github.com/sidebus/sidebus/semantics"
)

func TestENT_3_ParsePath(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", semantics.MaxPathLength)
	good := map[string]string{
		"q": "q", "7": "7", "Orders": "Orders", "a.b-c_d": "a.b-c_d", "a/b/c": "a/b/c", `a\b`: "a/b", "a-/-b": "a-/-b",
		"subscriptions": "subscriptions", "subscriptions2/x": "subscriptions2/x", "a/subscription": "a/subscription", long: long,
	}
	for path, want := range good {
		got, err := semantics.ParsePath(path)
		if err != nil || got != want {
			t.Errorf("ParsePath(%q) = %q, %v, want %q", path, got, err, want)
		}
	}
	bad := []string{
		"", "/", "/a", "a/", `a\`, "a//b", `a\\b`, ".a", "a.", "-a", "a_", "a b", "a@b", "a?b", "a#b", "a*b", "a:b", "a\x00b", "ä",
		"a/ä", "\xff", "a\nb", "{a}", "a%2fb", long + "x",
	}
	for _, path := range bad {
		_, err := semantics.ParsePath(path)
		wantCode(t, path, err, semantics.InvalidArgument)
	}
}

func TestENT_5_ReservedSegments(t *testing.T) {
	t.Parallel()
	for _, path := range []string{
		"$management", "$Resources", "q/$deadletterqueue", "q/$Transfer/$deadletterqueue", "t/Subscriptions/s", "t/subscriptions",
		`t\SUBSCRIPTIONS\s`, "a/b/Subscriptions/c",
	} {
		_, err := semantics.ParsePath(path)
		wantCode(t, path, err, semantics.InvalidArgument)
	}
}

func TestENT_3_SplitSubscription(t *testing.T) {
	t.Parallel()
	for path, want := range map[string][2]string{
		"news/Subscriptions/eu": {"news", "eu"},
		// in any case of the segment, and the case of names is kept
		"News/subscriptions/EU":                {"News", "EU"},
		"a/b/c/SUBSCRIPTIONS/x.y-z_1":          {"a/b/c", "x.y-z_1"},
		"subscriptions/Subscriptions/eu":       {"subscriptions", "eu"},
		"news/Subscriptions/":                  {"news", ""},
		"a/Subscriptions/b/Subscriptions/c":    {"a/Subscriptions/b", "c"},
		"news/Subscriptions/subscriptions":     {"news", "subscriptions"},
		semantics.SubscriptionPath("t/u", "v"): {"t/u", "v"},
	} {
		topic, name, ok := semantics.SplitSubscription(path)
		if !ok || topic != want[0] || name != want[1] {
			t.Errorf("SplitSubscription(%q) = %q, %q, %v, want %q", path, topic, name, ok, want)
		}
	}
	for _, path := range []string{
		"", "/", "news", "news/eu", "Subscriptions/eu", "news/Subscriptions", "news/Subscriptions/eu/x", "news/subscription/eu",
		"newsSubscriptions/eu", "news/Subscriptionseu", "news/xSubscriptions/eu", "news/Subscriptionsx/eu",
		"news/SubscrİptİonS/eu", "news/ſubscriptions/eu", // which become "/subscriptions/" in lower case, or as capitals
	} {
		if topic, name, ok := semantics.SplitSubscription(path); ok || topic != "" || name != "" {
			t.Errorf("SplitSubscription(%q) = %q, %q, %v", path, topic, name, ok)
		}
	}
	if got := semantics.SubscriptionPath("News", "EU"); got != "News/Subscriptions/EU" {
		t.Errorf("SubscriptionPath() = %q", got)
	}
}

func TestENT_3_ParseSourcePath(t *testing.T) {
	t.Parallel()
	longTopic, longName := strings.Repeat("t", semantics.MaxPathLength), strings.Repeat("s", semantics.MaxNameLength)
	for path, want := range map[string]string{
		"q": "q", "a/b": "a/b", `a\b`: "a/b", "subscriptions/x": "subscriptions/x", longTopic: longTopic,
		"news/Subscriptions/eu": "news/Subscriptions/eu",
		"News/subscriptions/EU": "News/Subscriptions/EU", // the segment has one form
		`a\b\SUBSCRIPTIONS\c`:   "a/b/Subscriptions/c",
		"news/Subscriptions/7":  "news/Subscriptions/7", "news/Subscriptions/a.b-c_d": "news/Subscriptions/a.b-c_d",
		longTopic + "/Subscriptions/" + longName: longTopic + "/Subscriptions/" + longName,
	} {
		got, err := semantics.ParseSourcePath(path)
		if err != nil || got != want {
			t.Errorf("ParseSourcePath(%q) = %q, %v, want %q", path, got, err, want)
		}
	}
	for _, path := range []string{
		"", "a//b", "-a", "news/Subscriptions", "news/Subscriptions/", "/Subscriptions/eu", "-/Subscriptions/eu", "a//Subscriptions/eu",
		"news/Subscriptions/.a", "news/Subscriptions/a-", "news/Subscriptions/a b", "news/Subscriptions/ä", "news/Subscriptions/$Default",
		"news/Subscriptions/a:b", "news/Subscriptions/{a}", "news/Subscriptions/a\x00", "news/Subscriptions/" + longName + "s",
		longTopic + "t/Subscriptions/eu", "news/Subscriptions/a/b", "a/Subscriptions/b/Subscriptions/c", "news/Subscriptions/eu/$deadletterqueue",
		"news/SubscrİptİonS/eu", // not "eu" of the topic "news/S", to which access was not checked
	} {
		_, err := semantics.ParseSourcePath(path)
		wantCode(t, path, err, semantics.InvalidArgument)
	}
}

func TestENT_3_ParseRuleName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a", "7", "A.b-c_D", "$Default", "$default", "$DEFAULT", "default", strings.Repeat("r", semantics.MaxNameLength)} {
		wantCode(t, name, semantics.ParseRuleName(name), "")
	}
	for _, name := range []string{
		"", "$", "$Other", "$Defaul", "$Default1", "a$", ".a", "a_", "a b", "a/b", `a\b`, "ä", "a\x00", "\xff", strings.Repeat("r", semantics.MaxNameLength+1),
	} {
		wantCode(t, name, semantics.ParseRuleName(name), semantics.InvalidArgument)
	}
}

func TestENT_1_Targets(t *testing.T) {
	t.Parallel()
	if queue, topic := semantics.ToQueue("a"), semantics.ToTopic("a"); queue != (semantics.Target{Path: "a"}) || topic != (semantics.Target{Path: "a", IsTopic: true}) {
		t.Errorf("targets are %+v and %+v", queue, topic)
	}
	for kind, want := range map[semantics.Kind]string{
		semantics.QueueKind: "queue", semantics.TopicKind: "topic", semantics.SubscriptionKind: "subscription", 9: "9",
	} {
		if got := kind.String(); got != want {
			t.Errorf("kind %d is called %q, want %q", kind, got, want)
		}
	}
}

func TestParseNamespace(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a", "prod.eu-1_x", "-", strings.Repeat("n", semantics.MaxNamespaceLength)} {
		if got, err := semantics.ParseNamespace(name); err != nil || got != name {
			t.Errorf("ParseNamespace(%q) = %q, %v", name, got, err)
		}
	}
	for _, name := range []string{"", "a/b", "a b", "a:b", "{a}", "ä", strings.Repeat("n", semantics.MaxNamespaceLength+1)} {
		_, err := semantics.ParseNamespace(name)
		wantCode(t, name, err, semantics.InvalidArgument)
	}
}

func TestENT_4_Fold(t *testing.T) {
	t.Parallel()
	source := semantics.Source{Path: "Team/ORDERS", SubQueue: semantics.DeadLetterQueue}
	if got, want := source.Fold(), (semantics.Source{Path: "team/orders", SubQueue: semantics.DeadLetterQueue}); got != want {
		t.Errorf("Fold() = %v, want %v", got, want)
	}
}

func TestDLQ_2_Addresses(t *testing.T) {
	t.Parallel()
	for source, want := range map[semantics.Source]string{
		{Path: "Orders"}: "Orders",
		{Path: "Orders", SubQueue: semantics.DeadLetterQueue}:                "Orders/$deadletterqueue",
		{Path: "News/Subscriptions/EU"}:                                      "News/Subscriptions/EU",
		{Path: "News/Subscriptions/EU", SubQueue: semantics.DeadLetterQueue}: "News/Subscriptions/EU/$deadletterqueue",
	} {
		if got := source.String(); got != want {
			t.Errorf("String() = %q, want %q", got, want)
		}
	}
	if got := semantics.MainQueue.String() + " " + semantics.DeadLetterQueue.String(); got != "NONE DEAD_LETTER" {
		t.Errorf("sub-queues are called %q", got)
	}
}
