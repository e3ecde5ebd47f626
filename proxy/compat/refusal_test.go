package compat_test

import (
	"encoding/xml"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

func TestREST_1_Refusals(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.create(semantics.QueueKind, "shut", semantics.Options{Status: semantics.StatusDisabled}, "status")
	s.create(semantics.QueueKind, "small", semantics.Options{MaxSizeInMegabytes: 1, MaxMessageSizeInKilobytes: 1024}, "maxSizeInMegabytes", "maxMessageSizeInKilobytes")
	s.want(http.StatusCreated, post, "/small/messages", strings.Repeat("x", 700<<10))
	large := strings.Repeat("x", 1<<20)
	for _, c := range []struct {
		name, method, path, body string
		pairs                    []string
		status                   int
		reason                   semantics.Code
	}{
		{"no JSON", post, "/orders/messages", "", []string{brokerProperties, "{"}, 400, semantics.InvalidArgument},
		{"MSG-2 empty message id", post, "/orders/messages", "", []string{brokerProperties, `{"MessageId":""}`}, 400, semantics.InvalidArgument},
		{"MSG-2 long message id", post, "/orders/messages", "", []string{brokerProperties, `{"MessageId":"` + strings.Repeat("x", 129) + `"}`}, 400, semantics.InvalidArgument},
		{"MSG-3 keys differ", post, "/orders/messages", "", []string{brokerProperties, `{"SessionId":"a","PartitionKey":"b"}`}, 400, semantics.PartitionKeyMismatch},
		{"TTL-14 no lifetime", post, "/orders/messages", "", []string{brokerProperties, `{"TimeToLive":0}`}, 400, semantics.ArgumentOutOfRange},
		{"REST-12 line break", post, "/orders/messages", "", []string{"p", `"a\r\nX: y"`}, 400, semantics.InvalidArgument},
		{"property twice", post, "/orders/messages", "", []string{"p", "1", "P", "2"}, 400, semantics.InvalidArgument},
		{"MSG-14 names differ in case only", post, "/orders/messages", "", []string{"p", "1", "Sidebus-Properties", `{"P":2}`}, 400, semantics.InvalidArgument},
		{"MSG-15 large property", post, "/orders/messages", "", []string{"p", `"` + strings.Repeat("x", 32<<10+1) + `"`}, 403, semantics.MessageSizeExceeded},
		{"MSG-15 large headers", post, "/orders/messages", "", []string{"p", strings.Repeat("x", 32<<10), "q", strings.Repeat("x", 32<<10)}, 403, semantics.MessageSizeExceeded},
		{"MSG-20 large message", post, "/orders/messages", large[:256<<10+1], nil, 403, semantics.MessageSizeExceeded},
		{"MSG-21 message over 1 MiB", post, "/small/messages", large, []string{"p", "1"}, 403, semantics.MessageSizeExceeded},
		{"MSG-21 body over 1 MiB", post, "/orders/messages", large + "x", nil, 403, semantics.MessageSizeExceeded},
		{"large batch", post, "/orders/messages", `[{"Body":"` + large + large[:8] + `"}]`, []string{"Content-Type", batchType}, 403, semantics.MessageSizeExceeded},
		{"huge batch", post, "/orders/messages", strings.Repeat(" ", 8<<20+1), []string{"Content-Type", batchType}, 403, semantics.MessageSizeExceeded},
		{"QUOTA-6 full", post, "/small/messages", large[:700<<10], nil, 403, semantics.EntityFull},
		{"STAT-2 disabled: send", post, "/shut/messages", "", nil, 403, semantics.EntityDisabled},
		{"STAT-2 disabled: receive", post, "/shut/messages/head?timeout=0", "", nil, 403, semantics.EntityDisabled},
		{"missing: send", post, "/none/messages", "", nil, 410, semantics.EntityNotFound},
		{"missing: batch", post, "/none/messages", "[{}]", []string{"Content-Type", batchType}, 410, semantics.EntityNotFound},
		{"missing: peek-lock", post, "/none/messages/head?timeout=0", "", nil, 410, semantics.EntityNotFound},
		{"missing: receive and delete", del, "/none/messages/head?timeout=0", "", nil, 410, semantics.EntityNotFound},
		{"missing: complete", del, "/none/messages/1/" + nobodysToken, "", nil, 410, semantics.EntityNotFound},
		{"missing: unlock", put, "/none/messages/1/" + nobodysToken, "", nil, 410, semantics.EntityNotFound},
		{"missing: renew", post, "/none/messages/x/" + nobodysToken, "", nil, 410, semantics.EntityNotFound},
		{"no message: complete", del, "/orders/messages/1/" + nobodysToken, "", nil, 404, semantics.MessageNotFound},
		{"no message: unlock", put, "/orders/messages/x/" + nobodysToken, "", nil, 404, semantics.MessageNotFound},
		{"no message: renew", post, "/orders/messages/99999999999999999999/" + nobodysToken, "", nil, 404, semantics.MessageNotFound},
		{"ENT-3 bad name", post, "/or*ders/messages", "", nil, 400, semantics.InvalidArgument},
		{"ENT-3 empty segment", post, "/a//b/messages", "", nil, 400, semantics.InvalidArgument},
		{"ENT-5 reserved", post, "/orders/$x/messages/head", "", nil, 400, semantics.InvalidArgument},
		{"DLQ-3 send to transfer dead letters", post, "/orders/$Transfer/$DeadLetterQueue/messages", "", nil, 400, semantics.InvalidOperation},
		{"missing: transfer dead letters", del, "/none/$Transfer/$DeadLetterQueue/messages/head?timeout=0", "", nil, 410, semantics.EntityNotFound},
		{"ENT-5 transfer alone", post, "/orders/$Transfer/messages/head", "", nil, 400, semantics.InvalidArgument},
		{"method of messages", http.MethodGet, "/orders/messages", "", nil, 405, semantics.RouteNotFound},
		{"method of head", put, "/orders/messages/head", "", nil, 405, semantics.RouteNotFound},
		{"method of a lock", http.MethodPatch, "/orders/messages/1/" + nobodysToken, "", nil, 405, semantics.RouteNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := s.call(c.method, c.path, c.body, c.pairs...)
			var body struct {
				XMLName xml.Name `xml:"Error"`
				Code    int
				Detail  string
			}
			err := xml.Unmarshal([]byte(a.body), &body)
			if a.status != c.status || a.header.Get("Sidebus-Error") != string(c.reason) {
				t.Errorf("got %d %v %s, want %d %s", a.status, a.header, a.body, c.status, c.reason)
			}
			if err != nil || body.Code != c.status || !strings.HasPrefix(body.Detail, string(c.reason)+": ") || !strings.HasPrefix(a.header.Get("Content-Type"), "application/xml") {
				t.Errorf("the body is %s, %v", a.body, err)
			}
			if allow := a.header.Get("Allow"); (c.status == http.StatusMethodNotAllowed) != (allow != "") {
				t.Errorf("%d with Allow %q", a.status, allow)
			}
		})
	}
	if got := s.stored("orders"); len(got) != 0 {
		t.Errorf("something was stored: %v", got)
	}
}

func TestREST_1_OtherPathsAreTheNativeAPIs(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, path := range []string{
		"/", "/v1/queues/orders/messages:send", "/v1/queues/orders/messages", "/openapi.json", "/messages", "/messages/head", "/head", "/orders", "/orders/messages/1",
		"/orders/messages/", "/orders/messages/head/", "/orders/messages//x", "/orders/message/head",
	} {
		s.want(http.StatusTeapot, post, path, "")
	}
}

func TestMSG_22_ExactlyTheMostPasses(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.create(semantics.QueueKind, "large", semantics.Options{MaxMessageSizeInKilobytes: 2048}, "maxMessageSizeInKilobytes")
	s.want(http.StatusCreated, post, "/large/messages", strings.Repeat("x", 1<<20-1), brokerProperties, `{"MessageId":"m"}`)
	s.want(http.StatusForbidden, post, "/large/messages", strings.Repeat("x", 1<<20), brokerProperties, `{"MessageId":"m"}`)
	// MSG-15: 64 KiB of headers, all of it escaped.
	escaped := strings.Repeat(`\u0001`, 32<<10-1)
	s.want(http.StatusCreated, post, "/large/messages", "", brokerProperties, `{"MessageId":"m"}`, "p", `"`+escaped+`"`, "q", `"`+escaped[6:]+`"`)
	s.want(http.StatusForbidden, post, "/large/messages", "", brokerProperties, `{"MessageId":"m"}`, "p", `"`+escaped+`"`, "q", `"`+escaped+`"`)
	s.want(http.StatusOK, del, "/large/messages/head", "")
	if a := s.want(http.StatusOK, del, "/large/messages/head", ""); a.header.Get("p") != `"`+escaped+`"` {
		t.Error("the large property is another")
	}
}

func TestERR_6_TheStoreIsDown(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.send(&semantics.Message{})
	lock := s.lockPath(s.want(http.StatusCreated, post, "/orders/messages/head", ""))
	s.store.fail(semantics.Errorf(semantics.StoreUnavailable, "the store is down"))
	for _, a := range []answer{s.call(post, "/orders/messages", "x"), s.call(post, "/orders/messages/head?timeout=0", ""), s.call(del, lock, "")} {
		if a.status != http.StatusServiceUnavailable || a.header.Get("Sidebus-Error") != string(semantics.StoreUnavailable) {
			t.Errorf("got %d %s", a.status, a.body)
		}
	}
	s.store.fail(nil)
	s.want(http.StatusOK, del, lock, "")
}

func TestQUOTA_10_ThrottledSaysWhen(t *testing.T) {
	t.Parallel()
	s := start(t)
	throttled := semantics.Errorf(semantics.Throttled, "slow down")
	throttled.RetryAfter = 1500 * time.Millisecond
	s.store.fail(throttled)
	a := s.want(http.StatusServiceUnavailable, post, "/orders/messages/head?timeout=0", "")
	if a.header.Get("Retry-After") != "2" {
		t.Errorf("got %v", a.header)
	}
}

func TestREST_1_WebPagesFromElsewhereAreRefused(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.want(http.StatusUnauthorized, post, "/orders/messages", "x", "Origin", "http://evil.example", "Sec-Fetch-Site", "cross-site")
}

// errBroken is what a store fails with that has a bug.
var errBroken = errors.New("broken")

func TestINTERNAL_IsA500(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.store.fail(errBroken)
	if a := s.want(http.StatusInternalServerError, post, "/orders/messages/head?timeout=0", ""); strings.Contains(a.body, "broken") {
		t.Errorf("the answer tells of the inside: %s", a.body)
	}
}
