package dapr

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	sdk "github.com/dapr/go-sdk/client"

	"github.com/sidebus/sidebus/test/dapr/daprtest"
	"github.com/sidebus/sidebus/test/sidecartest"
)

func TestDAPR_1_EveryAppGetsWhatIsPublished(t *testing.T) {
	t.Parallel()
	perApp(t, func(t *testing.T, kind string) {
		p := start(t, setup{})
		p.run(t, kind, daprtest.Subscription{Topic: "orders"})
		p.publish(t, "orders", "tea")
		d := p.next(t, "tea")
		if d.ID == "" || d.Topic != "orders" || d.ContentType != "text/plain" {
			t.Errorf("got the event %+v", d)
		}
		p.await(t, subscription("orders"), "lockedCount", 1)
		d.Answer(daprtest.Success)
		p.awaitEmpty(t, subscription("orders"))
	})
}

func TestDAPR_1_ConsumerIDNamesTheSubscription(t *testing.T) {
	t.Parallel()
	p := start(t, setup{metadata: map[string]string{"consumerID": "billing"}})
	p.app = daprtest.GRPC(t, daprtest.Subscription{Topic: "orders"})
	p.startDaprd(t, p.options())
	const source = "topics/orders/subscriptions/billing"
	sidecartest.Eventually(t, "there is the subscription", func() bool {
		return p.bus.Call(t.Context(), http.MethodGet, "/v1/"+source, "").Status == http.StatusOK
	})
	p.publish(t, "orders", "tea")
	p.finish(t, "tea")
	p.awaitEmpty(t, source)
}

func TestDAPR_1_WithoutEntityManagementNothingIsMade(t *testing.T) {
	t.Parallel()
	p := start(t, setup{metadata: map[string]string{"disableEntityManagement": "true"}})
	p.run(t, "")
	if err := p.tryPublish(t, "orders", "tea"); err == nil || !strings.Contains(err.Error(), "orders") {
		t.Errorf("publishing to a topic that is not there: got %v, want an error that names it", err)
	}
	if answer := p.bus.Call(t.Context(), http.MethodGet, "/v1/topics/orders", ""); answer.Status != http.StatusNotFound {
		t.Errorf("the topic was made: %s", answer.Text)
	}
	p.bus.Must(t, http.MethodPut, "/v1/topics/orders", "{}")
	p.publish(t, "orders", "tea")
}

func TestDAPR_4_MetadataIsMessageAndBack(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{overGRPC, overHTTP} { // the SDK's stream has no metadata
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			p := start(t, setup{})
			p.run(t, kind, daprtest.Subscription{Topic: "orders"})
			sent := map[string]string{
				"MessageId": "m-7", "CorrelationId": "c-7", "Label": "new", "ReplyTo": "answers", "To": "warehouse",
				"PartitionKey": "p-7", "ContentType": "text/x-order", "priority-class": "gold",
			}
			var list []string
			for name, value := range sent {
				list = append(list, name, value)
			}
			p.publish(t, "orders", "tea", list...)
			d := p.next(t, "tea")
			for name, value := range sent {
				if got := d.Metadata[strings.ToLower(name)]; got != value {
					t.Errorf("%s: got %q, want %q", name, got, value)
				}
			}
			for _, name := range []string{"deliverycount", "sequencenumber", "enqueuedtimeutc", "locktoken", "lockeduntilutc"} {
				if d.Metadata[name] == "" {
					t.Errorf("there is no %s in %v", name, d.Metadata)
				}
			}
			for _, name := range []string{"enqueuedtimeutc", "lockeduntilutc"} {
				if _, err := http.ParseTime(d.Metadata[name]); err != nil {
					t.Errorf("%s is no HTTP date: %v", name, err)
				}
			}
			if token, err := base64.StdEncoding.DecodeString(d.Metadata["locktoken"]); err != nil || len(token) != 16 {
				t.Errorf("the lock token %q is not 16 bytes in base64", d.Metadata["locktoken"])
			}
			seen := p.peek(t, subscription("orders"), "NONE")[0]
			if seen.MessageID != "m-7" || seen.CorrelationID != "c-7" || seen.Subject != "new" || seen.ReplyTo != "answers" || seen.To != "warehouse" ||
				seen.ContentType != "text/x-order" || seen.Properties["priority-class"] != "gold" {
				t.Errorf("Sidebus has the message as %+v", seen)
			}
			d.Answer(daprtest.Success)
			p.awaitEmpty(t, subscription("orders"))
		})
	}
}

func TestDAPR_4_RawPayloadsStayAsTheyAre(t *testing.T) {
	t.Parallel()
	perApp(t, func(t *testing.T, kind string) {
		p := start(t, setup{})
		p.run(t, kind, daprtest.Subscription{Topic: "orders", Metadata: map[string]string{"rawPayload": "true"}})
		raw := []byte{0, 1, 0xfe, 0xff}
		if err := p.sdk.PublishEvent(t.Context(), "bus", "orders", raw, sdk.PublishEventWithRawPayload()); err != nil {
			t.Fatal(err)
		}
		d := p.next(t, string(raw))
		if seen := p.peek(t, subscription("orders"), "NONE")[0]; string(seen.Body) != string(raw) {
			t.Errorf("Sidebus has %q, want the bytes alone", seen.Body)
		}
		d.Answer(daprtest.Success)
		p.awaitEmpty(t, subscription("orders"))
		// And one that no Dapr has seen.
		p.send(t, "topics/orders", map[string]any{"text": "from elsewhere"})
		p.finish(t, "from elsewhere")
		p.awaitEmpty(t, subscription("orders"))
	})
}

func TestDAPR_4_EventsAreCloudEvents(t *testing.T) {
	t.Parallel()
	p := start(t, setup{metadata: map[string]string{"entityKind": "queue"}})
	p.run(t, "")
	const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	answer := p.daprd.Call(t.Context(), http.MethodPost, "/v1.0/publish/bus/orders?metadata.cloudevent.id=e-1", "tea",
		map[string]string{"content-type": "text/plain", "traceparent": trace})
	if answer.Status != http.StatusNoContent {
		t.Fatalf("got %d %s", answer.Status, answer.Text)
	}
	var event map[string]any
	if err := json.Unmarshal(p.peek(t, queue("orders"), "NONE")[0].Body, &event); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"id": "e-1", "specversion": "1.0", "source": appID, "data": "tea", "datacontenttype": "text/plain"} {
		if event[name] != want {
			t.Errorf("%s: got %v, want %s", name, event[name], want)
		}
	}
	if parent, _ := event["traceparent"].(string); !strings.HasPrefix(parent, trace[:35]) {
		t.Errorf("the trace is lost: %v", event["traceparent"])
	}
}

func TestDAPR_4_TimeToLive(t *testing.T) {
	t.Parallel()
	p := start(t, setup{metadata: map[string]string{"entityKind": "queue", "deadLetteringOnMessageExpiration": "true"}})
	p.run(t, "")
	p.publish(t, "orders", "tea", "ttlInSeconds", "1")
	if live := p.peek(t, queue("orders"), "NONE"); len(live) == 1 && live[0].TimeToLive != "1s" {
		t.Errorf("it lives for %s, want 1s", live[0].TimeToLive)
	}
	if dead := p.onlyDeadLetter(t, queue("orders")); dead.DeadLetterReason != "TTLExpiredException" {
		t.Errorf("got the reason %q", dead.DeadLetterReason)
	}
	p.publish(t, "orders", "coffee")
	if live := p.peek(t, queue("orders"), "NONE"); len(live) != 1 || live[0].TimeToLive == "1s" {
		t.Errorf("a message without a time to live: got %+v", live)
	}
}

func TestDAPR_4_Scheduling(t *testing.T) {
	t.Parallel()
	p := start(t, setup{metadata: map[string]string{"entityKind": "queue"}})
	p.run(t, overHTTP, daprtest.Subscription{Topic: "orders"})
	due := time.Now().Add(5 * time.Second).Truncate(time.Second)
	p.publish(t, "orders", "tea", "ScheduledEnqueueTimeUtc", due.UTC().Format(http.TimeFormat))
	if n := p.count(t, queue("orders"), "scheduledMessageCount"); n != 1 {
		t.Errorf("%d messages are scheduled, want 1", n)
	}
	d := p.next(t, "tea")
	if early := time.Until(due); early > 0 {
		t.Errorf("it came %s early", early)
	}
	if got := d.Metadata["scheduledenqueuetimeutc"]; got != due.UTC().Format(http.TimeFormat) {
		t.Errorf("got the schedule %q", got)
	}
	d.Answer(daprtest.Success)
	p.awaitEmpty(t, queue("orders"))
	if err := p.tryPublish(t, "orders", "tea", "ScheduledEnqueueTimeUtc", "tomorrow"); err == nil || !strings.Contains(err.Error(), "ScheduledEnqueueTimeUtc") {
		t.Errorf("a time that is none: got %v, want an error that names the field", err)
	}
}

// bulk publishes texts in one call. A text that begins with "!" has metadata that is wrong.
func (p *pod) bulk(t testing.TB, contentType string, texts ...string) daprtest.Answer {
	t.Helper()
	var entries []map[string]any
	for i, text := range texts {
		entry := map[string]any{"entryId": fmt.Sprint(i), "event": text, "contentType": contentType}
		if contentType == "application/octet-stream" {
			entry["event"] = base64.StdEncoding.EncodeToString([]byte(text))
		}
		if strings.HasPrefix(text, "!") {
			entry["metadata"] = map[string]string{"ScheduledEnqueueTimeUtc": "tomorrow"}
		}
		entries = append(entries, entry)
	}
	body, err := json.Marshal(entries)
	if err != nil {
		t.Fatal(err)
	}
	return p.daprd.Call(t.Context(), http.MethodPost, "/v1.0-alpha1/publish/bulk/bus/orders", string(body), map[string]string{"content-type": "application/json"})
}

func TestDAPR_5_BulkPublishIsAllOrNothing(t *testing.T) {
	t.Parallel()
	p := start(t, setup{metadata: map[string]string{"entityKind": "queue"}})
	p.run(t, overGRPC, daprtest.Subscription{Topic: "orders"})
	answer := p.bulk(t, "text/plain", "one", "two", "!three", "four")
	if answer.Status < 400 || !strings.Contains(answer.Text, `"entryId":"0"`) && !strings.Contains(answer.Text, "ScheduledEnqueueTimeUtc") {
		t.Errorf("got %d %s, want a failure of all", answer.Status, answer.Text)
	}
	p.quiet(t, 200*time.Millisecond)
	if n := p.count(t, queue("orders"), "totalMessageCount"); n != 0 {
		t.Errorf("%d messages are there, want none", n)
	}
	if answer := p.bulk(t, "text/plain", "one", "two", "three"); answer.Status >= 300 {
		t.Fatalf("got %d %s", answer.Status, answer.Text)
	}
	p.finishAll(t, "one", "two", "three")
	p.awaitEmpty(t, queue("orders"))
	if !daprtest.IsNewest() {
		return // the SDK calls what older runtimes do not have
	}
	if r := p.sdk.PublishEvents(t.Context(), "bus", "orders", []any{"four", "five"}); r.Error != nil {
		t.Fatal(r.Error)
	}
	p.finishAll(t, "four", "five")
	p.awaitEmpty(t, queue("orders"))
}

// Dapr takes the content type of a delivery for a mode of CloudEvents: echoed, an app gets an event without id and
// data.
func TestDAPR_4_BinaryInBulkArrives(t *testing.T) {
	t.Parallel()
	p := start(t, setup{})
	p.run(t, overGRPC, daprtest.Subscription{Topic: "orders"})
	const binary = "\x00\x01\xfe\xff"
	if answer := p.bulk(t, "application/octet-stream", binary); answer.Status >= 300 {
		t.Fatalf("got %d %s", answer.Status, answer.Text)
	}
	d := p.next(t, binary)
	if d.ID == "" || d.ContentType != "application/octet-stream" {
		t.Errorf("got the event %+v", d)
	}
	d.Answer(daprtest.Success)
	p.awaitEmpty(t, subscription("orders"))
}

func TestDAPR_5_BulkSubscribeSettlesEach(t *testing.T) {
	t.Parallel()
	p := start(t, setup{})
	p.run(t, overHTTP, daprtest.Subscription{Topic: "orders", IsBulk: true})
	const messages = 8
	began := time.Now()
	for i := range messages {
		p.publish(t, "orders", fmt.Sprint(i))
	}
	seen := map[string]int{}
	for n := 0; n < messages+1; n++ {
		d := p.app.Next(t)
		text := string(d.Data)
		if seen[text]++; text == "2" && seen[text] == 1 {
			d.Answer(daprtest.Retry)
			continue
		}
		d.Answer(daprtest.Success)
	}
	// Dapr waits a second for each batch to fill, unless it is told not to.
	if took := time.Since(began); took > messages*time.Second {
		t.Errorf("it took %s", took)
	}
	for i := range messages {
		want := 1
		if i == 2 {
			want = 2
		}
		if got := seen[fmt.Sprint(i)]; got != want {
			t.Errorf("message %d came %d times, want %d", i, got, want)
		}
	}
	p.awaitEmpty(t, subscription("orders"))
}

// Dapr ends a subscription for good when a message is longer than it takes.
func TestDAPR_4_NothingTooLongReachesDapr(t *testing.T) {
	t.Parallel()
	p := start(t, setup{metadata: map[string]string{"entityKind": "queue"}})
	p.run(t, overGRPC, daprtest.Subscription{Topic: "orders", Metadata: map[string]string{"rawPayload": "true"}})
	const mega = 1 << 20
	if err := p.sdk.PublishEvent(t.Context(), "bus", "orders", make([]byte, 36*mega/10)); err == nil {
		t.Error("an event of 3.6 MiB, 4.8 MiB in base64, was taken")
	}
	p.bus.Must(t, http.MethodPatch, "/v1/queues/orders", `{"maxMessageSizeInKilobytes":"8192"}`)
	p.sendBytes(t, "queues/orders", make([]byte, 5*mega))
	if dead := p.onlyDeadLetter(t, queue("orders")); dead.DeadLetterReason == "" || !strings.Contains(dead.DeadLetterError, "Dapr") {
		t.Errorf("got the reason %q, %q", dead.DeadLetterReason, dead.DeadLetterError)
	}
	if err := p.sdk.PublishEvent(t.Context(), "bus", "orders", make([]byte, 3*mega), sdk.PublishEventWithRawPayload()); err != nil {
		t.Fatal(err)
	}
	if d := p.app.Next(t); len(d.Data) != 3*mega {
		t.Errorf("got %d bytes, want %d", len(d.Data), 3*mega)
	} else {
		d.Answer(daprtest.Success)
	}
	p.send(t, "queues/orders", map[string]any{"text": "the stream lives"})
	p.finish(t, "the stream lives")
}
