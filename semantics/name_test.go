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
		{Path: "Orders", SubQueue: semantics.DeadLetterQueue}: "Orders/$deadletterqueue",
	} {
		if got := source.String(); got != want {
			t.Errorf("String() = %q, want %q", got, want)
		}
	}
	if got := semantics.MainQueue.String() + " " + semantics.DeadLetterQueue.String(); got != "NONE DEAD_LETTER" {
		t.Errorf("sub-queues are called %q", got)
	}
}
