package compat_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

const (
	post, put, del   = http.MethodPost, http.MethodPut, http.MethodDelete
	brokerProperties = "BrokerProperties"
	nobodysToken     = "11111111-2222-4333-8444-555555555555"
	batchType        = "application/vnd.microsoft.servicebus.json"
)

var sameValue = cmp.Comparer(func(a, b semantics.Value) bool { return a == b })

func TestREST_1_SendKeepsEverything(t *testing.T) {
	t.Parallel()
	s := start(t)
	body := "\x00\xffraw\r\n"
	sent := s.want(http.StatusCreated, post, "/orders/messages", body, brokerProperties, `{"MessageId":"m","Label":"L","CorrelationId":"c","Unknown":1}`,
		"Content-Type", "image/png", "orderID", "42", "COLOR", `"red"`, "rate", "0.5", "ok", "true")
	if got := sent.broker(t); sent.body != "" || got["MessageId"] != "m" || got["SequenceNumber"] != 1.0 {
		t.Errorf("got %v %q", got, sent.body)
	}
	m := s.stored("orders")[0]
	want := semantics.Message{
		MessageID: "m", Subject: "L", CorrelationID: "c", ContentType: "image/png", Body: []byte(body), TimeToLive: m.TimeToLive,
		Properties: map[string]semantics.Value{
			"orderID": semantics.Int64(42), "COLOR": semantics.String("red"), "rate": semantics.Double(0.5), "ok": semantics.Bool(true),
		},
	}
	if diff := cmp.Diff(want, m.Message, sameValue); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestREST_3_BatchOfMessages(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.want(http.StatusCreated, post, "/orders/messages", `[{"Body":"one","UserProperties":{"n":1}},{"Body":"dHdv","IsBodyBase64":true,"BrokerProperties":{"MessageId":"2"}}]`,
		"Content-Type", batchType, "ignored", "5", brokerProperties, `{"MessageId":"ignored"`)
	got := s.stored("orders")
	if len(got) != 2 || string(got[0].Body) != "one" || string(got[1].Body) != "two" || got[1].MessageID != "2" || len(got[0].Properties) != 1 || len(got[1].Properties) != 0 {
		t.Fatalf("got %+v", got)
	}
	// All or nothing, and no other content type is a batch.
	refused := s.want(http.StatusBadRequest, post, "/orders/messages", `[{"Body":"x"},{"BrokerProperties":{"MessageId":""}}]`, "Content-Type", batchType)
	if !strings.Contains(refused.body, "message 1 of the batch") {
		t.Errorf("got %s", refused.body)
	}
	s.want(http.StatusBadRequest, post, "/orders/messages", `[]`, "Content-Type", batchType)
	if got := s.stored("orders"); len(got) != 2 {
		t.Errorf("%d messages", len(got))
	}
	s.want(http.StatusCreated, post, "/orders/messages", `[{"Body":"x"}]`, "Content-Type", batchType+"; charset=utf-8")
	if last := s.stored("orders")[2]; string(last.Body) != `[{"Body":"x"}]` || last.ContentType != batchType+"; charset=utf-8" {
		t.Errorf("got %+v", last)
	}
}

func TestREST_4_PeekLock(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.send(&semantics.Message{
		MessageID: "m", Subject: "é", ContentType: "text/x", Body: []byte("body\x00"),
		Properties: map[string]semantics.Value{"orderID": semantics.Int64(42), "Color": semantics.String("rédish \"1\""), "with blank": semantics.Bool(true)},
	})
	a := s.want(http.StatusCreated, post, "/ORDERS/messages/head?timeout=0&api-version=2015-01", "", "x-ms-retrypolicy", "NoRetry")
	got := a.broker(t)
	token, _ := got["LockToken"].(string)
	if a.body != "body\x00" || a.header.Get("Content-Type") != "text/x" || a.header.Get("orderID") != "42" || a.header.Get("Color") != `"r\u00e9dish \"1\""` {
		t.Errorf("got %v %q", a.header, a.body)
	}
	if a.header.Get("Sidebus-Properties") != `{"with blank":true}` || a.header.Get("Location") != s.base+"/ORDERS/messages/1/"+token {
		t.Errorf("got %v", a.header)
	}
	if got["DeliveryCount"] != 1.0 || got["State"] != "Active" || got["SequenceNumber"] != 1.0 || got["MessageId"] != "m" || got["Label"] != "é" || len(token) != 36 {
		t.Errorf("got %v", got) // REST-11 too
	}
	for _, date := range []string{"LockedUntilUtc", "EnqueuedTimeUtc"} {
		text, _ := got[date].(string)
		if at, err := http.ParseTime(text); err != nil || !strings.HasSuffix(text, " GMT") || time.Since(at).Abs() > 2*time.Minute {
			t.Errorf("%s: %q", date, text)
		}
	}
	s.want(http.StatusNoContent, post, "/orders/messages/head?timeout=0", "")
	s.want(http.StatusOK, put, s.lockPath(a), "")
	if again := s.want(http.StatusCreated, post, "/orders/messages/head?timeout=0", "").broker(t); again["DeliveryCount"] != 2.0 || again["LockToken"] == token {
		t.Errorf("after an unlock: got %v", again)
	}
}

func TestREST_5_ReceiveAndDelete(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.send(&semantics.Message{Body: []byte("one")})
	a := s.want(http.StatusOK, del, "/orders/messages/head?timeout=0", "")
	if got := a.broker(t); a.body != "one" || got["LockToken"] != nil || got["LockedUntilUtc"] != nil || a.header.Get("Location") != "" || a.header["Content-Type"] != nil {
		t.Errorf("got %q %v", a.body, a.header)
	}
	awaitCount(t, "removed", s.store.completed)
	if left := s.stored("orders"); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	s.want(http.StatusNoContent, del, "/orders/messages/head?timeout=0", "")
}

func TestREST_6_LocksByNumberAndByID(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, id := range []string{"2", "a/b", "ü%2F", "d"} { // the id of the first is the number of the second
		s.send(&semantics.Message{MessageID: id})
	}
	var taken []answer
	for range 4 {
		taken = append(taken, s.want(http.StatusCreated, post, "/orders/messages/head", ""))
	}
	path := func(i int, id string) string {
		return "/orders/messages/" + id + "/" + taken[i].broker(t)["LockToken"].(string)
	}
	for i, wrong := range []string{"3", "1", "a%2Fb", "5"} {
		for _, method := range []string{post, put, del} {
			a := s.want(http.StatusNotFound, method, path(i, wrong), "")
			if a.header.Get("Sidebus-Error") != string(semantics.MessageNotFound) {
				t.Errorf("got %v", a.header)
			}
		}
	}
	if n := s.broker.Held(); n != 4 {
		t.Errorf("%d are held", n)
	}
	renewed := s.want(http.StatusOK, post, path(0, "2"), "")
	if until, err := http.ParseTime(renewed.broker(t)["LockedUntilUtc"].(string)); err != nil || time.Until(until) > time.Minute || time.Until(until) < 50*time.Second {
		t.Errorf("renewed until %s, %v", until, err)
	}
	s.want(http.StatusOK, del, path(0, "1"), "")
	s.want(http.StatusOK, del, path(1, "a%2Fb"), "")
	s.want(http.StatusOK, put, path(2, "%C3%BC%252F"), "")
	s.want(http.StatusOK, del, path(3, "d"), "")
	for i, id := range []string{"1", "a%2Fb", "3", "4"} { // the locks are gone
		for _, method := range []string{post, put, del} {
			s.want(http.StatusNotFound, method, path(i, id), "")
		}
	}
	if left := s.stored("orders"); len(left) != 1 || left[0].SequenceNumber != 3 || left[0].DeliveryCount != 1 {
		t.Errorf("left: %v", left)
	}
}

// A lock is one of its source alone.
func TestREST_6_ALockOfAnotherQueue(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.create(semantics.QueueKind, "others", semantics.Options{})
	s.send(&semantics.Message{MessageID: "m"})
	lock := s.lockPath(s.want(http.StatusCreated, post, "/orders/messages/head", ""))
	for _, method := range []string{post, put, del} {
		s.want(http.StatusNotFound, method, strings.Replace(lock, "orders", "others", 1), "")
		s.want(http.StatusNotFound, method, strings.Replace(lock, "orders", "orders/$DeadLetterQueue", 1), "")
		s.want(http.StatusNotFound, method, "/orders/messages/m/no-token", "")
		s.want(http.StatusGone, method, "/none/messages/m/no-token", "")
	}
	s.want(http.StatusOK, post, lock, "")
	s.want(http.StatusOK, del, lock, "")
}

// LOCK-8: a lock that another sidecar handed out, or another call, is as good as one of this.
func TestLOCK_8_LocksOfOthers(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, id := range []string{"a", "7", "c"} {
		s.send(&semantics.Message{MessageID: id})
	}
	delivery, err := s.broker.Receive(t.Context(), semantics.Source{Path: "orders"}, broker.ReceiveOptions{MaxMessages: 3})
	if err != nil || delivery.Delivered(t.Context()) != nil {
		t.Fatal(err)
	}
	first, second := delivery.Messages[0].LockToken.String(), delivery.Messages[1].LockToken.String()
	for _, id := range []string{"4", "b", "0", "-1"} {
		s.want(http.StatusNotFound, del, "/orders/messages/"+id+"/"+first, "")
	}
	s.want(http.StatusOK, del, "/orders/messages/1/"+first, "")
	s.want(http.StatusNotFound, del, "/orders/messages/1/"+second, "") // there is none of that number any more
	s.want(http.StatusOK, post, "/orders/messages/2/"+second, "")
	if _, err := s.broker.UpdateEntity(t.Context(), semantics.QueueKind, "orders", semantics.Options{Status: semantics.StatusDisabled}, []string{"status"}); err != nil {
		t.Fatal(err)
	}
	s.want(http.StatusOK, del, "/orders/messages/7/"+second, "") // STAT-2: locked messages may be settled
	s.want(http.StatusOK, del, "/orders/messages/c/"+delivery.Messages[2].LockToken.String(), "")
}

func TestREST_7_TopicsAndSubQueues(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.create(semantics.TopicKind, "a/news", semantics.Options{})
	s.create(semantics.SubscriptionKind, "a/news/Subscriptions/eu", semantics.Options{})
	for i, path := range []string{"/a/news/messages", "/A/NEWS/messages", "/a%2Fnews/messages", "/a%5Cnews/Messages"} {
		s.want(http.StatusCreated, post, path, fmt.Sprint(i))
	}
	for i, path := range []string{"/a/news/subscriptions/eu", "/a/news/Subscriptions/EU", "/a%2Fnews/SUBSCRIPTIONS/eu", "/a/news%2Fsubscriptions%2Feu"} {
		a := s.want(http.StatusCreated, post, path+"/messages/head?timeout=0", "")
		if a.body != fmt.Sprint(i) {
			t.Errorf("%s: got %q", path, a.body)
		}
		token, err := semantics.ParseLockToken(a.broker(t)["LockToken"].(string))
		if err != nil {
			t.Fatal(err)
		}
		source := semantics.Source{Path: "a/news/Subscriptions/eu"}
		if i > 0 {
			s.want(http.StatusOK, del, s.lockPath(a), "")
		} else if _, err := s.broker.DeadLetter(t.Context(), source, []semantics.LockToken{token}, broker.DeadLetterOptions{Reason: new("Why")}); err != nil {
			t.Fatal(err)
		}
	}
	for _, queue := range []string{"/$DeadLetterQueue", "/$deadletterqueue", "/%24DEADLETTERQUEUE"} {
		a := s.want(http.StatusCreated, post, "/a/news/subscriptions/eu"+queue+"/messages/head?timeout=0", "")
		if a.header.Get("DeadLetterReason") != `"Why"` {
			t.Errorf("got %v", a.header)
		}
		s.want(http.StatusOK, put, s.lockPath(a), "")
	}
	s.want(http.StatusBadRequest, post, "/a/news/messages/head", "")             // TOPIC-8
	s.want(http.StatusBadRequest, post, "/a/news/subscriptions/eu/messages", "") // TOPIC-8
	s.want(http.StatusBadRequest, post, "/orders/$DeadLetterQueue/messages", "") // DLQ-3
	s.want(http.StatusGone, post, "/a/news/subscriptions/no/messages/head", "")  //
	s.want(http.StatusNoContent, post, "/orders/$DeadLetterQueue/messages/head?timeout=0", "")
}

// change sets options of an entity.
func (s *stand) change(kind semantics.Kind, name string, options semantics.Options, given ...string) {
	s.t.Helper()
	if _, err := s.broker.UpdateEntity(s.t.Context(), kind, name, options, given); err != nil {
		s.t.Fatal(err)
	}
}

func TestREST_7_TransferDeadLetters(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.create(semantics.QueueKind, "bin", semantics.Options{})
	s.create(semantics.TopicKind, "news", semantics.Options{})
	s.create(semantics.SubscriptionKind, "news/Subscriptions/eu", semantics.Options{ForwardTo: "bin"}, "forwardTo")
	s.change(semantics.QueueKind, "orders", semantics.Options{ForwardTo: "bin"}, "forwardTo")
	s.change(semantics.QueueKind, "bin", semantics.Options{Status: semantics.StatusDisabled}, "status")
	for path, source := range map[string]string{"/orders": "orders", "/news": "news/Subscriptions/eu"} {
		s.want(http.StatusCreated, post, path+"/messages", "x")
		if err := s.broker.Forward(t.Context(), semantics.Source{Path: source}); err != nil {
			t.Fatal(err)
		}
	}
	for _, queue := range []string{"/orders", "/news/subscriptions/eu"} {
		for _, suffix := range []string{"/$Transfer/$DeadLetterQueue", "/$transfer/$deadletterqueue", "/%24TRANSFER%2F%24DEADLETTERQUEUE"} {
			a := s.want(http.StatusCreated, post, queue+suffix+"/messages/head?timeout=0", "")
			if a.header.Get("DeadLetterReason") != `"TransferDestinationDisabled"` {
				t.Errorf("%s: got %v", queue+suffix, a.header)
			}
			s.want(http.StatusOK, post, s.lockPath(a), "") // renew
			s.want(http.StatusOK, put, s.lockPath(a), "")  // give back
		}
		a := s.want(http.StatusOK, del, queue+"/$Transfer/$DeadLetterQueue/messages/head?timeout=0", "")
		if a.body != "x" {
			t.Errorf("%s: got %q", queue, a.body)
		}
		s.want(http.StatusNoContent, del, queue+"/$Transfer/$DeadLetterQueue/messages/head?timeout=0", "")
	}
	s.want(http.StatusBadRequest, post, "/orders/messages/head?timeout=0", "") // FWD-2
}

func TestREST_7_UnmatchedTransferDeadLetters(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.create(semantics.TopicKind, "news", semantics.Options{UnmatchedTo: "orders"}, "unmatchedTo")
	s.change(semantics.QueueKind, "orders", semantics.Options{Status: semantics.StatusDisabled}, "status")
	s.want(http.StatusCreated, post, "/news/messages", "x")
	if err := s.broker.Forward(t.Context(), semantics.Source{Path: "news/Subscriptions/$unmatched"}); err != nil {
		t.Fatal(err)
	}
	a := s.want(http.StatusCreated, post, "/news/subscriptions/$unmatched/$Transfer/$DeadLetterQueue/messages/head?timeout=0", "")
	if a.body != "x" {
		t.Errorf("got %q", a.body)
	}
	s.want(http.StatusOK, del, s.lockPath(a), "")
	s.want(http.StatusBadRequest, post, "/news/subscriptions/$unmatched/messages/head?timeout=0", "")
}

func TestREST_4_BrokerPropertiesOfForwardedDeadLetters(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.create(semantics.QueueKind, "bin", semantics.Options{})
	s.change(semantics.QueueKind, "orders", semantics.Options{ForwardDeadLetteredMessagesTo: "bin"}, "forwardDeadLetteredMessagesTo")
	s.want(http.StatusCreated, post, "/bin/messages", "first")
	s.want(http.StatusOK, del, "/bin/messages/head?timeout=0", "")
	s.want(http.StatusCreated, post, "/orders/messages", "x")
	delivery, err := s.broker.Receive(t.Context(), semantics.Source{Path: "orders"}, broker.ReceiveOptions{MaxMessages: 1})
	if err != nil || len(delivery.Messages) != 1 {
		t.Fatalf("got %v, %v", delivery, err)
	}
	tokens := []semantics.LockToken{delivery.Messages[0].LockToken}
	if _, err := s.broker.DeadLetter(t.Context(), semantics.Source{Path: "orders"}, tokens, broker.DeadLetterOptions{Reason: new("Why")}); err != nil {
		t.Fatal(err)
	}
	if err := s.broker.Forward(t.Context(), semantics.Source{Path: "orders", SubQueue: semantics.DeadLetterQueue}); err != nil {
		t.Fatal(err)
	}
	a := s.want(http.StatusCreated, post, "/bin/messages/head?timeout=0", "")
	got := a.broker(t)
	if got["DeadLetterSource"] != "orders" || got["EnqueuedSequenceNumber"] != 1.0 || got["SequenceNumber"] != 2.0 || a.header.Get("DeadLetterReason") != `"Why"` {
		t.Errorf("got %v, %v", got, a.header)
	}
}

// A path may be that of a queue now and of a topic later, and the other way round.
func TestREST_1_TargetsChangeTheirKind(t *testing.T) {
	t.Parallel()
	s := start(t)
	kinds := []semantics.Kind{semantics.TopicKind, semantics.QueueKind}
	for i := range 4 {
		kind := kinds[i%2]
		s.want(http.StatusGone, post, "/target/messages", "x")
		s.create(kind, "target", semantics.Options{})
		for range 2 {
			s.want(http.StatusCreated, post, "/target/messages", "x")
		}
		if err := s.broker.DeleteEntity(t.Context(), kind, "target"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestREST_8_Timeout(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, bad := range []string{"x", "-1", "1.5", "", "%20", "1s"} {
		s.want(http.StatusBadRequest, post, "/orders/messages/head?timeout="+bad, "")
		s.want(http.StatusBadRequest, del, "/orders/messages/head?timeout="+bad, "")
	}
	for i, query := range []string{"", "?timeout=301", "?timeout=99999999999999999999"} {
		queue := fmt.Sprint("q", i)
		s.create(semantics.QueueKind, queue, semantics.Options{})
		came := make(chan answer, 1)
		go func() { came <- s.call(post, "/"+queue+"/messages/head"+query, "") }()
		awaitCount(t, "waited for", s.store.watched)
		s.want(http.StatusCreated, post, "/"+queue+"/messages", "x")
		if a := <-came; a.status != http.StatusCreated || a.body != "x" {
			t.Errorf("%s: got %d %s", query, a.status, a.body)
		}
	}
}

func TestREST_9_SessionsHaveNoPlainReceive(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.create(semantics.QueueKind, "tales", semantics.Options{RequiresSession: true}, "requiresSession")
	s.want(http.StatusBadRequest, post, "/tales/messages", "x")
	s.want(http.StatusCreated, post, "/tales/messages", "x", brokerProperties, `{"SessionId":"s"}`)
	for _, method := range []string{post, del} {
		a := s.want(http.StatusBadRequest, method, "/tales/messages/head?timeout=0", "")
		if a.header.Get("Sidebus-Error") != string(semantics.SessionRequired) {
			t.Errorf("got %v", a.header)
		}
	}
	s.want(http.StatusNoContent, post, "/tales/$DeadLetterQueue/messages/head?timeout=0", "") // SESS-34
}

func TestTTL_2_LifetimeAndSchedule(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.want(http.StatusCreated, post, "/orders/messages", "", brokerProperties, `{"ScheduledEnqueueTimeUtc":"Sat, 02 Jan 2100 15:04:05 GMT"}`)
	s.want(http.StatusCreated, post, "/orders/messages", "", brokerProperties, `{"ScheduledEnqueueTimeUtc":"2000-01-01T00:00:00Z","TimeToLive":60.5}`)
	m := s.stored("orders")
	if m[0].State != semantics.Scheduled || !m[0].ScheduledAt.Equal(time.Date(2100, 1, 2, 15, 4, 5, 0, time.UTC)) {
		t.Errorf("got %+v", m[0])
	}
	if m[1].State != semantics.Active || m[1].ExpiresAt.Sub(m[1].EnqueuedAt) != 60500*time.Millisecond {
		t.Errorf("got %+v", m[1])
	}
}

// What a topic without a matching subscription does with a message cannot be told here (ERR table).
func TestTOPIC_3_UnmatchedIsCreated(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.create(semantics.TopicKind, "news", semantics.Options{FailIfUnmatched: true}, "failIfUnmatched")
	if a := s.want(http.StatusCreated, post, "/news/messages", "x"); a.header.Get(brokerProperties) != "" || a.body != "" {
		t.Errorf("got %v", a)
	}
}

func TestDUP_7_DuplicateIsCreated(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.create(semantics.QueueKind, "once", semantics.Options{RequiresDuplicateDetection: true}, "requiresDuplicateDetection")
	for range 2 {
		if got := s.want(http.StatusCreated, post, "/once/messages", "x", brokerProperties, `{"MessageId":"m"}`).broker(t); got["SequenceNumber"] != 1.0 {
			t.Errorf("got %v", got)
		}
	}
	if got := s.stored("once"); len(got) != 1 {
		t.Errorf("%d are stored", len(got))
	}
}

func TestREST_4_DrainEndsTheWait(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.send(&semantics.Message{})
	lock := s.lockPath(s.want(http.StatusCreated, post, "/orders/messages/head", ""))
	waits := make(chan answer, 1)
	go func() { waits <- s.call(post, "/orders/messages/head?timeout=300", "") }()
	awaitCount(t, "waited for", s.store.watched)
	s.broker.BeginDrain()
	if a := <-waits; a.status != http.StatusNoContent {
		t.Errorf("the wait: got %d %s", a.status, a.body)
	}
	s.want(http.StatusServiceUnavailable, post, "/orders/messages/head", "")
	s.want(http.StatusCreated, post, "/orders/messages", "sends go on")
	s.want(http.StatusOK, del, lock, "")
}
