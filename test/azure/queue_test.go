package azure

import (
	"bytes"
	"errors"
	"net/url"
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/sidebus/sidebus/test/sidecartest"
)

func escape(name string) string { return url.PathEscape(name) }

func TestSendReceiveComplete(t *testing.T) {
	t.Parallel()
	s := start(t)
	l := open(t, s, queue(t, s, `{}`), nil)
	sent := &azservicebus.Message{
		Body: []byte("hello"), MessageID: pointer("m1"), Subject: pointer("greeting"), CorrelationID: pointer("c1"),
		ContentType: pointer("text/plain"), To: pointer("to"), ReplyTo: pointer("reply"), ReplyToSessionID: pointer("rs"),
		PartitionKey: pointer("p"), TimeToLive: pointer(time.Hour),
		ApplicationProperties: map[string]any{
			"text": "a", "number": int64(7), "small": int32(1), "ratio": 0.5, "flag": true, "raw": []byte{1, 2},
			"at": time.UnixMilli(1_700_000_000_123).UTC(), "nothing": nil,
		},
	}
	must(t, l.send.SendMessage(patient(t), sent, nil))
	m := l.one(t)
	if string(m.Body) != "hello" || m.MessageID != "m1" || *m.Subject != "greeting" || *m.CorrelationID != "c1" ||
		*m.ContentType != "text/plain" || *m.To != "to" || *m.ReplyTo != "reply" || *m.ReplyToSessionID != "rs" ||
		*m.PartitionKey != "p" || *m.TimeToLive != time.Hour || m.DeliveryCount != 1 || *m.SequenceNumber != 1 ||
		m.EnqueuedTime == nil || m.LockedUntil == nil || m.State != azservicebus.MessageStateActive {
		t.Errorf("got %+v", m)
	}
	m.ApplicationProperties["at"] = m.ApplicationProperties["at"].(time.Time).UTC()
	if !reflect.DeepEqual(m.ApplicationProperties, sent.ApplicationProperties) {
		t.Errorf("properties are %v, want %v", m.ApplicationProperties, sent.ApplicationProperties)
	}
	must(t, l.receive.CompleteMessage(patient(t), m, nil))
	if left, err := l.receive.PeekMessages(patient(t), 1, nil); err != nil || len(left) != 0 {
		t.Errorf("after completion: %v, %v", left, err)
	}
}

func TestMessagesOfOtherClientsArrive(t *testing.T) {
	t.Parallel()
	s := start(t)
	name := queue(t, s, `{}`)
	l := open(t, s, name, nil)
	s.Must(t, "POST", "/v1/queues/"+escape(name)+"/messages:send",
		`{"messages":[{"json":{"a":1},"messageId":"http","properties":{"id":{"type":"uuid","value":"00112233-4455-6677-8899-aabbccddeeff"}}}]}`)
	m := l.one(t)
	if string(m.Body) != `{"a":1}` || m.MessageID != "http" || *m.ContentType != "application/json" {
		t.Errorf("over AMQP: %s, %s, %v", m.Body, m.MessageID, m.ContentType)
	}
	must(t, l.receive.CompleteMessage(patient(t), m, nil))
	l.put(t, "from amqp")
	answer := s.Must(t, "POST", "/v1/queues/"+escape(name)+"/messages:receive", `{"maxMessages":1}`)
	if body := answer.Body["messages"].([]any)[0].(map[string]any)["body"]; body != "ZnJvbSBhbXFw" {
		t.Errorf("over HTTP: %s", answer.Text)
	}
}

func TestBatchIsOneSend(t *testing.T) {
	t.Parallel()
	s := start(t)
	l := open(t, s, queue(t, s, `{}`), nil)
	batch, err := l.send.NewMessageBatch(patient(t), nil)
	must(t, err)
	for i := range 50 {
		must(t, batch.AddMessage(&azservicebus.Message{Body: []byte(strconv.Itoa(i))}, nil))
	}
	must(t, l.send.SendMessageBatch(patient(t), batch, nil))
	for i, m := range get(t, l.receive, 50) {
		if string(m.Body) != strconv.Itoa(i) || *m.SequenceNumber != int64(i+1) {
			t.Fatalf("message %d is %s with number %d", i, m.Body, *m.SequenceNumber)
		}
		must(t, l.receive.CompleteMessage(patient(t), m, nil))
	}
}

func TestLargeMessages(t *testing.T) {
	t.Parallel()
	s := start(t)
	l := open(t, s, queue(t, s, `{"maxMessageSizeInKilobytes":1024}`), nil)
	body := bytes.Repeat([]byte("0123456789"), 90_000)
	must(t, l.send.SendMessage(patient(t), &azservicebus.Message{Body: body}, nil))
	m := l.one(t)
	if !bytes.Equal(m.Body, body) {
		t.Errorf("got %d bytes, want %d", len(m.Body), len(body))
	}
	must(t, l.receive.CompleteMessage(patient(t), m, nil))
	err := l.send.SendMessage(patient(t), &azservicebus.Message{Body: make([]byte, 2<<20)}, nil)
	if !errors.Is(err, azservicebus.ErrMessageTooLarge) {
		t.Errorf("too large: %v", err)
	}
	l.put(t, "after")
}

func TestReceiveAndDelete(t *testing.T) {
	t.Parallel()
	s := start(t)
	l := open(t, s, queue(t, s, `{}`), &azservicebus.ReceiverOptions{ReceiveMode: azservicebus.ReceiveModeReceiveAndDelete})
	l.put(t, "a", "b", "c")
	for i, m := range get(t, l.receive, 3) {
		if string(m.Body) != string(rune('a'+i)) {
			t.Errorf("message %d is %s", i, m.Body)
		}
	}
	sidecartest.Eventually(t, "the queue is empty", func() bool {
		left, err := l.receive.PeekMessages(patient(t), 1, nil)
		must(t, err)
		return len(left) == 0
	})
}

func TestAbandonDeferDeadLetter(t *testing.T) {
	t.Parallel()
	s := start(t)
	name := queue(t, s, `{}`)
	l := open(t, s, name, nil)
	l.put(t, "x")

	m := l.one(t)
	must(t, l.receive.AbandonMessage(patient(t), m, &azservicebus.AbandonMessageOptions{
		PropertiesToModify: map[string]any{"tried": "once"},
	}))
	m = l.one(t)
	if m.DeliveryCount != 2 || m.ApplicationProperties["tried"] != "once" {
		t.Errorf("after abandon: count %d, properties %v", m.DeliveryCount, m.ApplicationProperties)
	}

	must(t, l.receive.DeferMessage(patient(t), m, nil))
	if got, err := l.receive.ReceiveMessages(briefly(t), 1, nil); len(got) > 0 {
		t.Fatalf("a deferred message is received: %v, %v", got, err)
	}
	deferred, err := l.receive.ReceiveDeferredMessages(patient(t), []int64{*m.SequenceNumber}, nil)
	must(t, err)
	if len(deferred) != 1 || deferred[0].State != azservicebus.MessageStateDeferred || deferred[0].LockedUntil == nil {
		t.Fatalf("deferred: %+v", deferred)
	}

	must(t, l.receive.DeadLetterMessage(patient(t), deferred[0], &azservicebus.DeadLetterOptions{
		Reason: pointer("why"), ErrorDescription: pointer("because"), PropertiesToModify: map[string]any{"dead": true},
	}))
	dead, err := l.NewReceiverForQueue(name, &azservicebus.ReceiverOptions{SubQueue: azservicebus.SubQueueDeadLetter})
	must(t, err)
	letter := get(t, dead, 1)[0]
	if *letter.DeadLetterReason != "why" || *letter.DeadLetterErrorDescription != "because" ||
		letter.ApplicationProperties["dead"] != true || string(letter.Body) != "x" {
		t.Errorf("dead letter: %+v", letter)
	}
	must(t, dead.CompleteMessage(patient(t), letter, nil))
	if left, err := dead.PeekMessages(patient(t), 1, nil); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestLocksEndAndAreRenewed(t *testing.T) {
	t.Parallel()
	s := start(t)
	l := open(t, s, queue(t, s, `{"lockDuration":"5s"}`), nil)
	l.put(t, "x")
	m := l.one(t)
	before := *m.LockedUntil
	sidecartest.Eventually(t, "the lock ends later", func() bool { // the first time, it may be the same millisecond
		must(t, l.receive.RenewMessageLock(patient(t), m, nil))
		return m.LockedUntil.After(before)
	})
	again := l.one(t) // when the lock has ended
	if again.DeliveryCount != 2 {
		t.Errorf("count is %d", again.DeliveryCount)
	}
	var failed *azservicebus.Error
	if err := l.receive.CompleteMessage(patient(t), m, nil); !errors.As(err, &failed) || failed.Code != azservicebus.CodeLockLost {
		t.Errorf("complete with the old lock: %v", err)
	}
	if err := l.receive.RenewMessageLock(patient(t), m, nil); !errors.As(err, &failed) || failed.Code != azservicebus.CodeLockLost {
		t.Errorf("renew the old lock: %v", err)
	}
	must(t, l.receive.CompleteMessage(patient(t), again, nil))
}

func TestSettleOnAnotherConnection(t *testing.T) {
	t.Parallel()
	s := start(t)
	name := queue(t, s, `{}`)
	l := open(t, s, name, nil)
	l.put(t, "x")
	m := l.one(t)
	must(t, l.receive.Close(patient(t)))
	other := open(t, s, name, nil)
	must(t, other.receive.CompleteMessage(patient(t), m, nil))
	if left, err := other.receive.PeekMessages(patient(t), 1, nil); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestScheduleAndCancel(t *testing.T) {
	t.Parallel()
	s := start(t)
	l := open(t, s, queue(t, s, `{}`), nil)
	numbers, err := l.send.ScheduleMessages(patient(t), []*azservicebus.Message{
		{Body: []byte("never")}, {Body: []byte("never")},
	}, time.Now().Add(time.Hour), nil)
	must(t, err)
	if len(numbers) != 2 {
		t.Fatalf("numbers are %v", numbers)
	}
	shown, err := l.receive.PeekMessages(patient(t), 10, nil)
	must(t, err)
	if len(shown) != 2 || shown[0].State != azservicebus.MessageStateScheduled || shown[0].ScheduledEnqueueTime == nil {
		t.Errorf("peeked %+v", shown)
	}
	must(t, l.send.CancelScheduledMessages(patient(t), numbers, nil))
	if err := l.send.CancelScheduledMessages(patient(t), numbers, nil); err == nil {
		t.Error("cancelled twice")
	}
	at := time.Now().Add(time.Second)
	must(t, l.send.SendMessage(patient(t), &azservicebus.Message{Body: []byte("soon"), ScheduledEnqueueTime: &at}, nil))
	m := l.one(t)
	if string(m.Body) != "soon" || m.EnqueuedTime.Before(at.Truncate(time.Millisecond)) {
		t.Errorf("got %s at %s, scheduled for %s", m.Body, m.EnqueuedTime, at)
	}
	must(t, l.receive.CompleteMessage(patient(t), m, nil))
}

func TestUnwantedMessagesAreReleasedUncounted(t *testing.T) {
	t.Parallel()
	s := start(t)
	l := open(t, s, queue(t, s, `{"maxDeliveryCount":2}`), nil)
	for range 5 { // a receive whose context ends leaves credit, and the SDK releases what it brings
		if got, err := l.receive.ReceiveMessages(briefly(t), 100, nil); len(got) > 0 {
			t.Fatalf("got %v, %v", got, err)
		}
		l.put(t, "x")
		m := l.one(t)
		if m.DeliveryCount != 1 {
			t.Fatalf("count is %d", m.DeliveryCount)
		}
		must(t, l.receive.CompleteMessage(patient(t), m, nil))
	}
}

func TestWhatIsNotThereIsNotFound(t *testing.T) {
	t.Parallel()
	s := start(t)
	client := connect(t, connectionString(s))
	sender, err := client.NewSender("missing", nil)
	must(t, err)
	var failed *azservicebus.Error
	if err := sender.SendMessage(patient(t), &azservicebus.Message{}, nil); !errors.As(err, &failed) || failed.Code != azservicebus.CodeNotFound {
		t.Errorf("send: %v", err)
	}
	receiver, err := client.NewReceiverForSubscription("missing", "sub", nil)
	must(t, err)
	if _, err := receiver.ReceiveMessages(patient(t), 1, nil); !errors.As(err, &failed) || failed.Code != azservicebus.CodeNotFound {
		t.Errorf("receive: %v", err)
	}
}
