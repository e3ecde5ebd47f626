package dapr

import (
	"bytes"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	proto "github.com/dapr/dapr/pkg/proto/components/v1"
	"github.com/google/go-cmp/cmp"

	"github.com/sidebus/sidebus/semantics"
)

// first returns the first message of a queue, or of the subscription "app" of a topic.
func (b *bed) first(path string) *semantics.Received {
	b.t.Helper()
	messages := b.peek(path, semantics.MainQueue)
	if len(messages) == 0 {
		b.t.Fatalf("%s is empty", path)
	}
	return messages[0]
}

func TestDAPR_4_MetadataOfAMessage(t *testing.T) {
	t.Parallel()
	b := onSockets(t)
	r := b.begin("entityKind", "queue")
	b.ok(r.publish("orders", "body",
		"MessageId", "m", "SessionId", "s", "CorrelationId", "c", "PartitionKey", "s", "Label", "l", "ReplyTo", "r", "ReplyToSessionId", "rs", "To", "t",
		"ContentType", "text/plain", "ttlInSeconds", "90", "color", "red", "cloudevent.subject", "x", "rawPayload", "true", "empty", "", "traceparent", "00-1"))
	m := b.first("orders").Message
	ttl := 90 * time.Second
	want := semantics.Message{
		MessageID: "m", SessionID: "s", CorrelationID: "c", PartitionKey: "s", Subject: "l", ReplyTo: "r", ReplyToSessionID: "rs", To: "t",
		ContentType: "text/plain", TimeToLive: &ttl, Body: []byte("body"), Properties: map[string]semantics.Value{
			"color": semantics.String("red"), "cloudevent.subject": semantics.String("x"), "traceparent": semantics.String("00-1"),
		},
	}
	if diff := cmp.Diff(want, m, cmp.AllowUnexported(semantics.Value{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestDAPR_4_NamesInOtherSpellings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, value, want string }{
		{"id", "m", "m,,,0s"},
		{"messageid", "m", "m,,,0s"},
		{"sessionID", "s", ",s,,0s"},
		{"correlationID", "c", ",,c,0s"},
		{"ttl", "1m30s", ",,,1m30s"},
		{"TTLInSeconds", "5", ",,,5s"},
	} {
		m, err := messageOf(nil, map[string]string{c.name: c.value})
		if err != nil {
			t.Fatal(err)
		}
		ttl := time.Duration(0)
		if m.TimeToLive != nil {
			ttl = *m.TimeToLive
		}
		if got := strings.Join([]string{m.MessageID, m.SessionID, m.CorrelationID, ttl.String()}, ","); got != c.want || len(m.Properties) > 0 {
			t.Errorf("%s: got %s %v, want %s", c.name, got, m.Properties, c.want)
		}
	}
}

func TestDAPR_4_WrongMetadataIsRefused(t *testing.T) {
	t.Parallel()
	b := onSockets(t)
	r := b.begin("entityKind", "queue")
	r.send("orders", "there")
	for _, c := range []struct {
		name, value string
		reason      semantics.Code
		text        string
	}{
		{"ttlInSeconds", "soon", semantics.InvalidArgument, "ttlInSeconds"},
		{"ttlInSeconds", "0", semantics.InvalidArgument, "ttlInSeconds"},
		{"ttl", "-1s", semantics.InvalidArgument, "ttl"},
		{"ScheduledEnqueueTimeUtc", "tomorrow", semantics.InvalidArgument, "ScheduledEnqueueTimeUtc"},
		{"SessionId", strings.Repeat("x", 129), semantics.InvalidArgument, "sessionId"},
		{"metadata.Sidebus-Properties", "[]", semantics.InvalidArgument, "Sidebus-Properties"},
	} {
		b.wantReason(r.publish("orders", "x", c.name, c.value), c.reason, c.text)
	}
	b.wantReason(r.publish("orders", "x", "SessionId", "a", "PartitionKey", "b"), semantics.PartitionKeyMismatch, "")
	b.wantReason(r.publish("or ders", "x"), semantics.InvalidArgument, "name")
	b.wantCounts("orders", "available 1 locked 0 dead 0")
}

func TestDAPR_4_Schedule(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		r := b.begin("entityKind", "queue")
		f := r.subscribe("orders")
		at := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
		b.ok(r.publish("orders", "date", "ScheduledEnqueueTimeUtc", at.Format("Mon, 02 Jan 2006 15:04:05 GMT")))
		b.ok(r.publish("orders", "stamp", "ScheduledEnqueueTimeUtc", at.Add(time.Minute).Format(time.RFC3339)))
		b.ok(r.publish("orders", "past", "ScheduledEnqueueTimeUtc", "1999-02-03T04:05:06Z"))
		f.wants("past")
		f.ack("past")
		b.pass(time.Hour)
		f.wants("date")
		b.pass(time.Minute)
		f.wants("stamp")
	})
}

func TestDAPR_4_ExpiredIsNotDelivered(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		r := b.begin("entityKind", "queue", "deadLetteringOnMessageExpiration", "true")
		b.ok(r.publish("orders", "short", "ttlInSeconds", "5"))
		b.ok(r.publish("orders", "long", "ttlInSeconds", "50"))
		b.pass(6 * time.Second)
		f := r.subscribe("orders")
		f.wants("long")
		b.wantCounts("orders", "available 0 locked 1 dead 1")
	})
}

func TestDAPR_4_DeliveredMetadata(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		r := b.begin("entityKind", "queue")
		_, err := b.EnsureEntity(t.Context(), semantics.QueueKind, "orders", semantics.Options{}, nil)
		b.ok(err)
		at := time.Now().UTC()
		_, err = b.Send(t.Context(), semantics.ToQueue("orders"), []*semantics.Message{{
			MessageID: "m", SessionID: "s", CorrelationID: "c", PartitionKey: "s", Subject: "Grüße", ReplyTo: "r", ReplyToSessionID: "rs", To: "t",
			ContentType: "text/plain", Body: []byte("body"), Properties: map[string]semantics.Value{
				"color": semantics.String("red"), "n": semantics.Int64(7), "ok": semantics.Bool(true), "f": semantics.Double(2),
				"raw": semantics.Bytes([]byte{1, 2}), "two words": semantics.String("x"), "umlaut": semantics.String("ä"), "sessionid": semantics.String("mine"),
			},
		}})
		b.ok(err)
		f := r.subscribe("orders")
		response := f.bodiesWith(t, 1)[0]
		got := response.GetMetadata()
		token, ok := deliveredToken(got)
		if !ok || token.String() != response.GetId() {
			t.Errorf("lock token %q, id %s", got["metadata.LockToken"], response.GetId())
		}
		delete(got, "metadata.LockToken")
		const date = "Mon, 02 Jan 2006 15:04:05 GMT"
		want := map[string]string{
			"metadata.MessageId": "m", "metadata.SessionId": "s", "metadata.CorrelationId": "c", "metadata.PartitionKey": "s",
			"metadata.Label": "utf-8''Gr%C3%BC%C3%9Fe", "metadata.ReplyTo": "r", "metadata.ReplyToSessionId": "rs", "metadata.To": "t",
			"metadata.ContentType": "text/plain", "metadata.DeliveryCount": "1", "metadata.SequenceNumber": "1",
			"metadata.EnqueuedTimeUtc": at.Format(date), "metadata.LockedUntilUtc": at.Add(time.Minute).Format(date),
			"metadata.color": "red", "metadata.n": "7", "metadata.ok": "true", "metadata.f": "2.0", "metadata.raw": "AQI=",
			"metadata.Sidebus-Properties": `{"sessionid":"mine","two words":"x","umlaut":"\u00e4"}`,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		if response.GetContentType() != "" {
			t.Errorf("content type %q", response.GetContentType())
		}
	})
}

// Dapr's runtime publishes what the app has given up with the metadata that was delivered, and some of its own.
func TestDAPR_4_DeadLetterTopicKeepsTheSession(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		r := b.begin("entityKind", "queue", "requireSessions", "true")
		f := r.subscribe("orders")
		b.ok(r.publish("orders", "1", "SessionId", "Straße", "MessageId", "m", "CorrelationId", "c", "Label", "l", "color", "red", "two words", "x"))
		metadata := maps.Clone(f.bodiesWith(t, 1)[0].GetMetadata())
		metadata["content-type"], metadata["pubsubName"] = "", "sb"
		publish := func() {
			t.Helper()
			twice := b.runtime("sb", "")
			twice.ctx = twiceNamed(twice.ctx)
			_, err := twice.Publish(twice.ctx, &proto.PublishRequest{Topic: "poison", Data: []byte("1"), Metadata: metadata})
			b.ok(err)
		}
		publish()
		publish() // an id that was remembered would make the second one vanish
		messages := b.peek("poison", semantics.MainQueue)
		if len(messages) != 2 {
			t.Fatalf("%d messages", len(messages))
		}
		m := messages[0]
		if m.SessionID != "Straße" || m.CorrelationID != "c" || m.Subject != "l" || m.MessageID == "m" {
			t.Errorf("got %+v", m.Message)
		}
		texts := map[string]string{}
		for name, value := range m.Properties {
			texts[name] = value.Text()
		}
		if texts["OriginEnqueuedTimeUtc"] == "" {
			t.Error("no time")
		}
		delete(texts, "OriginEnqueuedTimeUtc")
		want := map[string]string{"color": "red", "two words": "x", "OriginMessageId": "m", "OriginDeliveryCount": "1", "OriginSequenceNumber": "1"}
		if diff := cmp.Diff(want, texts); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		metadata["SessionId"], metadata["Color"] = "other", "blue" // what the publisher says counts more
		publish()
		if m := b.peek("poison", semantics.MainQueue)[2]; m.SessionID != "other" || m.Properties["Color"].Text() != "blue" || len(m.Properties) != len(messages[0].Properties) {
			t.Errorf("got %+v", m.Message)
		}
	})
}

func bulk(topic string, metadata map[string]string, bodies ...string) *proto.BulkPublishRequest {
	request := &proto.BulkPublishRequest{Topic: topic, PubsubName: "sb", Metadata: metadata}
	for _, body := range bodies {
		request.Entries = append(request.Entries, &proto.BulkMessageEntry{EntryId: body, Event: []byte(body), ContentType: "application/octet-stream"})
	}
	return request
}

func TestDAPR_5_BulkIsAllOrNothing(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, b *bed) {
				r := b.begin("entityKind", kind)
				f := r.subscribe("orders", "maxConcurrentHandlers", "10")
				synctest.Wait()
				good := bulk("orders", map[string]string{"color": "red"}, "1", "2", "3")
				good.Entries[1].Metadata = map[string]string{"color": "blue", "SessionId": "s"}
				response, err := r.BulkPublish(r.ctx, good)
				b.ok(err)
				if len(response.GetFailedEntries()) != 0 {
					t.Errorf("got %v", response)
				}
				got := f.bodiesWith(t, 3)
				for i, want := range []string{"1 red ", "2 blue s", "3 red "} {
					m := got[i].GetMetadata()
					if text := string(got[i].GetData()) + " " + m["metadata.color"] + " " + m["metadata.SessionId"]; text != want {
						t.Errorf("got %q, want %q", text, want)
					}
					if got[i].GetContentType() != "" || m["metadata.ContentType"] != "application/octet-stream" {
						t.Errorf("content types %q and %q", got[i].GetContentType(), m["metadata.ContentType"])
					}
				}
				bad := bulk("orders", nil, "4", "5", "6")
				bad.Entries[1].Metadata = map[string]string{"ttlInSeconds": "x"}
				_, err = r.BulkPublish(r.ctx, bad)
				b.wantReason(err, semantics.InvalidArgument, "ttlInSeconds")
				_, err = r.BulkPublish(r.ctx, bulk("orders", map[string]string{metaMaxBulkBytes: "100"}, strings.Repeat("x", 90), "y"))
				b.wantReason(err, semantics.MessageSizeExceeded, metaMaxBulkBytes)
				_, err = r.BulkPublish(r.ctx, bulk("orders", map[string]string{metaMaxBulkBytes: "some"}, "x"))
				b.wantReason(err, semantics.InvalidArgument, metaMaxBulkBytes)
				_, err = r.BulkPublish(r.ctx, bulk("orders", nil))
				b.ok(err)
				f.wants("")
			})
		})
	}
}

// Dapr's runtime takes 4 MiB of a message with its metadata, and ends the stream for good when one is larger.
func TestDAPR_5_TooLargeIsRefusedOrDeadLettered(t *testing.T) {
	t.Parallel()
	b := onSockets(t)
	r := b.begin("entityKind", "queue")
	f := r.subscribe("orders")
	body := func(n int) []byte { return bytes.Repeat([]byte("x"), n) }
	publish := func(n int, metadata map[string]string) error {
		_, err := r.Publish(r.ctx, &proto.PublishRequest{Topic: "orders", Data: body(n), Metadata: metadata})
		return err
	}
	b.wantReason(publish(maxDelivery-100, nil), semantics.MessageSizeExceeded, "4194304")
	b.wantReason(publish(maxDelivery-30<<10, map[string]string{"big": strings.Repeat("y", 31<<10)}), semantics.MessageSizeExceeded, "4194304")
	b.ok(publish(maxDelivery-4000, nil))
	if got := f.next(); len(got.GetData()) != maxDelivery-4000 {
		t.Errorf("%d bytes", len(got.GetData()))
	}
	b.ok(f.stream.Send(&proto.PullMessagesRequest{AckMessageId: f.id(string(body(maxDelivery - 4000)))}))

	_, err := b.UpdateEntity(t.Context(), semantics.QueueKind, "orders", semantics.Options{MaxMessageSizeInKilobytes: 10000}, []string{"maxMessageSizeInKilobytes"})
	b.ok(err)
	_, err = b.Send(t.Context(), semantics.ToQueue("orders"), []*semantics.Message{{Body: body(maxDelivery), SessionID: "s"}})
	b.ok(err)
	r.send("orders", "after")
	if got := f.next(); string(got.GetData()) != "after" {
		t.Errorf("%d bytes", len(got.GetData()))
	}
	f.ack("after")
	b.eventually(func() bool { return b.counts("orders") == "available 0 locked 0 dead 1" })
	if m := b.peek("orders", semantics.DeadLetterQueue)[0]; m.DeadLetterReason != reasonTooLarge || !strings.Contains(m.DeadLetterErrorDescription, "4194304") {
		t.Errorf("%q: %q", m.DeadLetterReason, m.DeadLetterErrorDescription)
	}
	dead := r.subscribe("orders/$deadletterqueue") // it is not sent from there either, and stays
	b.eventually(func() bool { return b.metric("sidebus_dapr_deliveries_total", "outcome=too_large") == 2 })
	if len(dead.comes)+len(dead.ended) > 0 {
		t.Error("something came")
	}
	b.wantCounts("orders", "available 0 locked 0 dead 1")
}

// A request over the limit of the server is refused cleanly, and the connection goes on.
func TestDAPR_5_RequestOverTheLimit(t *testing.T) {
	t.Parallel()
	b := onSockets(t, func(c *Config) { c.MaxMessage = 5 << 20 })
	r := b.begin("entityKind", "queue")
	if err := r.publish("orders", strings.Repeat("x", 6<<20)); err == nil || !strings.Contains(err.Error(), "larger than max") {
		t.Errorf("got %v", err)
	}
	r.send("orders", "1")
}

// Dapr's runtime does not wait for a subscription to stand, so its app may publish to it at once.
func TestDAPR_1_PublishedRightAfterSubscribing(t *testing.T) {
	t.Parallel()
	b := onSockets(t)
	r := b.begin()
	for i := range 50 {
		topic := fmt.Sprint("orders-", i)
		f := r.subscribe(topic)
		r.send(topic, "1")
		if got := string(f.next().GetData()); got != "1" {
			t.Fatalf("got %q", got)
		}
	}
}

// A subscription that cannot be opened delays no other.
func TestDAPR_1_PublishedBesideASubscriptionThatFails(t *testing.T) {
	t.Parallel()
	inBubble(t, func(_ *testing.T, b *bed) {
		r := b.begin("disableEntityManagement", "true")
		missing := r.subscribe("missing")
		_, err := b.CreateEntity(b.t.Context(), semantics.TopicKind, "orders", semantics.Options{}, nil)
		b.ok(err)
		r.send("orders", "1")
		missing.cancel()
	})
}

// A publish that Dapr's runtime repeats, or the app, is stored once when it has a RequestId, in a queue that is made
// for it too.
func TestIDEM_1_RequestIDOfAPublish(t *testing.T) {
	t.Parallel()
	b := onSockets(t)
	r := b.begin("entityKind", "queue")
	for range 2 {
		b.ok(r.publish("orders", "body", "requestid", "r", "color", "red"))
	}
	b.wantReason(r.publish("orders", "an other body", "RequestId", "r"), semantics.InvalidArgument, "requestId")
	b.wantReason(r.publish("orders", "body", "RequestId", strings.Repeat("x", 129)), semantics.InvalidArgument, "requestId")
	if all := b.peek("orders", semantics.MainQueue); len(all) != 1 || len(all[0].Properties) != 1 {
		t.Errorf("got %+v, want one message with one property", all)
	}
}
