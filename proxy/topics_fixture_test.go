package proxy_test

import (
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// The topic of these tests and its subscriptions.
const (
	news = "topics/news"
	eu   = "topics/news/subscriptions/eu"
	us   = "topics/news/subscriptions/us"
)

// openNews makes the topic "news", with the subscriptions "eu" and "us", which get everything.
func (s *sidecar) openNews(t *testing.T) {
	t.Helper()
	mustPut(t, s, "/v1/topics/news", `{}`)
	mustPut(t, s, "/v1/topics/news/subscriptions/eu", `{}`)
	mustPut(t, s, "/v1/topics/news/subscriptions/us", `{}`)
}

// tellAll sends messages to a target and gives the results.
func (w *wire) tellAll(t *testing.T, target string, messages ...*sidebusv1.Message) []*sidebusv1.SendResponse_Result {
	t.Helper()
	sent, err := w.messages.Send(t.Context(), &sidebusv1.SendRequest{Target: target, Messages: messages})
	if err != nil {
		t.Fatal(err)
	}
	return sent.GetResults()
}

// takeFrom receives up to most messages that are in a source now.
func (w *wire) takeFrom(t *testing.T, source string, most int32) []*sidebusv1.ReceivedMessage {
	t.Helper()
	taken, err := w.messages.Receive(t.Context(), &sidebusv1.ReceiveRequest{Source: source, MaxMessages: &most, MaxWait: &durationpb.Duration{}})
	if err != nil {
		t.Fatal(err)
	}
	return taken.GetMessages()
}

// seenIn peeks at a source.
func (w *wire) seenIn(t *testing.T, source string, subQueue sidebusv1.SubQueue_Kind) []*sidebusv1.ReceivedMessage {
	t.Helper()
	peeked, err := w.messages.Peek(t.Context(), &sidebusv1.PeekRequest{Source: source, SubQueue: subQueue, MaxMessages: proto.Int32(250)})
	if err != nil {
		t.Fatal(err)
	}
	return peeked.GetMessages()
}

// wantIn compares the texts of what is in a source.
func (w *wire) wantIn(t *testing.T, source, want string) {
	t.Helper()
	if got := texts(w.seenIn(t, source, sidebusv1.SubQueue_NONE)); got != want {
		t.Errorf("in %s: got %q, want %q", source, got, want)
	}
}

// wantDead compares the texts of the dead letters of a source.
func (w *wire) wantDead(t *testing.T, source, want string) {
	t.Helper()
	if got := texts(w.seenIn(t, source, sidebusv1.SubQueue_DEAD_LETTER)); got != want {
		t.Errorf("dead letters of %s: got %q, want %q", source, got, want)
	}
}

// counts of a subscription.
func (w *wire) countsIn(t *testing.T, subscription string) *sidebusv1.QueueRuntime {
	t.Helper()
	counts, err := w.admin.GetSubscriptionRuntime(t.Context(), &sidebusv1.GetSubscriptionRuntimeRequest{Name: subscription})
	if err != nil {
		t.Fatal(err)
	}
	return counts
}

// filters of each kind.
func sqlFilter(expression string) *sidebusv1.Rule_Filter {
	return &sidebusv1.Rule_Filter{Kind: &sidebusv1.Rule_Filter_Sql{Sql: &sidebusv1.Rule_Sql{Expression: expression}}}
}

func correlationFilter(c *sidebusv1.Rule_Correlation) *sidebusv1.Rule_Filter {
	return &sidebusv1.Rule_Filter{Kind: &sidebusv1.Rule_Filter_Correlation{Correlation: c}}
}

func allFilter() *sidebusv1.Rule_Filter {
	return &sidebusv1.Rule_Filter{Kind: &sidebusv1.Rule_Filter_All{All: &sidebusv1.Rule_All{}}}
}

func noneFilter() *sidebusv1.Rule_Filter {
	return &sidebusv1.Rule_Filter{Kind: &sidebusv1.Rule_Filter_None{None: &sidebusv1.Rule_None{}}}
}

func sqlAction(expression string) *sidebusv1.Rule_Action {
	return &sidebusv1.Rule_Action{Sql: &sidebusv1.Rule_Sql{Expression: expression}}
}

// addRule adds a rule to a subscription.
func (w *wire) addRule(t *testing.T, subscription string, rule *sidebusv1.Rule) *sidebusv1.Rule {
	t.Helper()
	made, err := w.admin.CreateRule(t.Context(), &sidebusv1.CreateRuleRequest{Subscription: subscription, Rule: rule})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func (w *wire) dropRule(t *testing.T, name string) {
	t.Helper()
	if _, err := w.admin.DeleteRule(t.Context(), &sidebusv1.DeleteRuleRequest{Name: name}); err != nil {
		t.Fatal(err)
	}
}
