package client_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/sidebus/sidebus/proto/client"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// every has a property of each type.
func every(at time.Time) map[string]any {
	return map[string]any{
		"null": nil, "string": "grüße", "bool": true, "bytes": []byte{0, 1, 2}, "float32": float32(1.5), "float64": 2.5,
		"time": at.UTC(), "offset": client.DateTimeOffset(at), "duration": 90 * time.Second, "char": client.Char('ü'),
		"decimal": client.Decimal("1.20"), "uuid": client.UUID("0f8fad5b-d9cb-469f-a165-70867728950e"), "uri": client.URI("urn:x"),
		"int64": int64(-1 << 62), "int32": int32(-5), "int16": int16(-6), "int8": int8(-7), "uint64": uint64(1 << 63),
		"uint32": uint32(8), "uint16": uint16(9), "uint8": uint8(10),
	}
}

// A message arrives as it was sent, with properties of all types, and counts for as many bytes as the batch said.
func TestMSG_13_MessagesArriveAsSent(t *testing.T) {
	t.Parallel()
	sidebus := connect(t, target, nil)
	queue := queueOf(t, sidebus, nil)
	at := time.Date(2026, 11, 22, 10, 30, 0, 0, time.FixedZone("", 3600))
	sent := []*client.Message{
		{},
		{Body: []byte{0, 255}},
		{Body: []byte("grüße"), BodyType: client.BodyText},
		{Body: []byte(`{"a": 1}`), BodyType: client.BodyJSON, ContentType: new("application/json")},
		{
			MessageID: new("m-1"), SessionID: new("k"), PartitionKey: new("k"), CorrelationID: new("c"), Subject: new("s"),
			To: new("t"), ReplyTo: new("r"), ReplyToSessionID: new("rs"), TimeToLive: new(time.Hour),
		},
		{ApplicationProperties: every(at)},
	}
	for name, value := range every(at) {
		sent = append(sent, &client.Message{ApplicationProperties: map[string]any{name: value}})
	}
	sender, receiver := newSender(t, sidebus, queue), newReceiver(t, sidebus, queue, nil)
	for i, m := range sent {
		batch := sender.NewMessageBatch(nil)
		if err := batch.AddMessage(m, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := sender.SendMessageBatch(t.Context(), batch, nil); err != nil {
			t.Fatal(err)
		}
		got := receiveOne(t, receiver)
		if err := receiver.CompleteMessage(t.Context(), got, nil); err != nil {
			t.Fatal(err)
		}
		if got.Size != batch.NumBytes() {
			t.Errorf("message %d counts for %d bytes, the batch has %d", i, got.Size, batch.NumBytes())
		}
		again := got.Message()
		if m.MessageID == nil {
			again.MessageID = nil
		}
		for name, value := range again.ApplicationProperties {
			if offset, isOffset := value.(client.DateTimeOffset); isOffset && time.Time(offset).Format(time.RFC3339) == at.Format(time.RFC3339) {
				again.ApplicationProperties[name] = m.ApplicationProperties[name]
			}
		}
		if !reflect.DeepEqual(again, m) {
			t.Errorf("message %d is\n%#v, want\n%#v", i, again, m)
		}
		if got.SequenceNumber != int64(i+1) || got.DeliveryCount != 1 || got.LockToken == "" || got.EnqueuedTime.IsZero() || got.LockedUntil == nil {
			t.Errorf("message %d is %#v", i, got)
		}
	}
	err := sender.SendMessage(t.Context(), &client.Message{ApplicationProperties: map[string]any{"c": complex(1, 2)}}, nil)
	if !errors.Is(err, client.CodeInvalidArgument) || client.ErrorOf(err).Details["field"] != "properties[c]" {
		t.Errorf("a property of an unknown type: got %v", err)
	}
}

// What does not fit is refused with the bound and what was asked for, before the send or by the sidecar, and changes
// nothing.
func TestBATCH_5_Limits(t *testing.T) {
	t.Parallel()
	sidebus := connect(t, target, nil)
	queue := queueOf(t, sidebus, nil)
	sender := newSender(t, sidebus, queue)
	tooLarge := func(what string, err error, names ...string) {
		t.Helper()
		failed := client.ErrorOf(err)
		if !errors.Is(err, client.ErrMessageTooLarge) {
			t.Errorf("%s: got %v", what, err)
			return
		}
		for _, name := range names {
			if !strings.Contains(failed.Message+fmt.Sprint(failed.Details), name) {
				t.Errorf("%s: %q with %v does not name %s", what, failed.Message, failed.Details, name)
			}
		}
	}
	half := &client.Message{Body: make([]byte, 128<<10-36)}
	batch := sender.NewMessageBatch(nil)
	for range 2 {
		if err := batch.AddMessage(half, nil); err != nil {
			t.Fatal(err)
		}
	}
	tooLarge("a full batch", batch.AddMessage(&client.Message{}, nil), "bytes", "262144", "262180")
	if batch.NumBytes() != 256<<10 || batch.NumMessages() != 2 {
		t.Errorf("the batch has %d bytes, %d messages", batch.NumBytes(), batch.NumMessages())
	}
	if _, err := sender.SendMessageBatch(t.Context(), batch, nil); err != nil {
		t.Error(err)
	}
	many := sender.NewMessageBatch(&client.MessageBatchOptions{MaxBytes: 1 << 20})
	for range 4500 {
		if err := many.AddMessage(&client.Message{}, nil); err != nil {
			t.Fatal(err)
		}
	}
	tooLarge("a message too many", many.AddMessage(&client.Message{}, nil), "messages", "4500")
	_, err := sender.SendMessages(t.Context(), []*client.Message{half, half, {}}, nil)
	tooLarge("a batch too large", err, "262144")
	tooLarge("a message too large", sender.SendMessage(t.Context(), &client.Message{Body: make([]byte, 256<<10)}, nil), "262144")
	tooLarge("more than the sidecar reads", sender.SendMessage(t.Context(), &client.Message{Body: make([]byte, 120<<20)}, nil))
	_, err = sender.SendMessages(t.Context(), nil, nil)
	if !errors.Is(err, client.CodeInvalidArgument) {
		t.Errorf("nothing: got %v", err)
	}
	peeked, err := newReceiver(t, sidebus, queue, nil).PeekMessages(t.Context(), 10, nil)
	if err != nil || len(peeked) != 2 {
		t.Errorf("%d messages are stored, %v; want 2", len(peeked), err)
	}
	_, err = newReceiver(t, sidebus, queue, nil).ReceiveMessages(t.Context(), 1001, nil)
	if !errors.Is(err, client.CodeArgumentOutOfRange) || !strings.Contains(err.Error(), "1000") {
		t.Errorf("too many at a time: got %v", err)
	}
}

// lossy is a connection whose first answers get lost after the call was carried out.
type lossy struct {
	grpc.ClientConnInterface

	lost int
}

func (l *lossy) Invoke(ctx context.Context, method string, request, reply any, options ...grpc.CallOption) error {
	err := l.ClientConnInterface.Invoke(ctx, method, request, reply, options...)
	if l.lost > 0 {
		l.lost--
		proto.Reset(reply.(proto.Message))
		return status.Error(codes.Unavailable, "the connection broke")
	}
	return err
}

// A send whose answer is lost is repeated and stored once, and a settlement counts as done.
func TestIDEM_1_LostAnswers(t *testing.T) {
	t.Parallel()
	whole := connect(t, target, nil)
	queue := queueOf(t, whole, nil)
	conn := &lossy{whole.Conn(), 2}
	sidebus := client.NewFromConn(conn, nil)
	defer sidebus.Close()
	numbers, err := newSender(t, sidebus, queue).ScheduleMessages(t.Context(), []*client.Message{text("later")}, time.Now().Add(time.Hour), nil)
	if err != nil || !slices.Equal(numbers, []int64{1}) {
		t.Errorf("got %v, %v", numbers, err)
	}
	conn.lost = 2
	sent, err := newSender(t, sidebus, queue).SendMessages(t.Context(), []*client.Message{text("now")}, &client.SendMessageOptions{RequestID: "r"})
	if err != nil || sent[0].SequenceNumber != 2 {
		t.Errorf("got %v, %v", sent, err)
	}
	again, err := newSender(t, whole, queue).SendMessages(t.Context(), []*client.Message{text("now")}, &client.SendMessageOptions{RequestID: "r"})
	if err != nil || !slices.Equal(again, sent) {
		t.Errorf("the same request id: got %v, %v, want %v", again, err, sent)
	}
	receiver := newReceiver(t, sidebus, queue, nil)
	m := receiveOne(t, receiver)
	conn.lost = 1
	if err := receiver.CompleteMessage(t.Context(), m, nil); err != nil {
		t.Error(err)
	}
	if err := receiver.CompleteMessage(t.Context(), m, nil); !errors.Is(err, client.CodeMessageLockLost) {
		t.Errorf("a second time: got %v", err)
	}
	left, err := receiver.PeekMessages(t.Context(), 10, nil)
	if err != nil || len(left) != 1 || left[0].State != client.MessageStateScheduled {
		t.Errorf("left: %v, %v", left, err)
	}
}

// A sender finds out by itself whether its name is that of a queue or of a topic, also when that changes.
func TestTOPIC_2_SenderFindsItsTarget(t *testing.T) {
	t.Parallel()
	sidebus := connect(t, target, nil)
	name := unique(t)
	admin, sender := sidebus.Admin(), newSender(t, sidebus, name)
	err := sender.SendMessage(t.Context(), text("x"), nil)
	if !errors.Is(err, client.CodeEntityNotFound) || !strings.Contains(err.Error(), `queue or topic has the name "`+name) {
		t.Errorf("got %v", err)
	}
	if _, err := admin.EnsureTopic(t.Context(), &sidebusv1.EnsureTopicRequest{Name: "topics/" + name}); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.EnsureSubscription(t.Context(), &sidebusv1.EnsureSubscriptionRequest{Name: "topics/" + name + "/subscriptions/s"}); err != nil {
		t.Fatal(err)
	}
	if err := sender.SendMessage(t.Context(), text("to the topic"), nil); err != nil {
		t.Fatal(err)
	}
	receiver, err := sidebus.NewReceiverForSubscription(name, "s", nil)
	if err != nil {
		t.Fatal(err)
	}
	if m := receiveOne(t, receiver); string(m.Body) != "to the topic" {
		t.Errorf("got %q", m.Body)
	}
	if _, err := admin.DeleteTopic(t.Context(), &sidebusv1.DeleteTopicRequest{Name: "topics/" + name}); err != nil {
		t.Fatal(err)
	}
	mustQueue(t.Context(), sidebus, name, nil)
	if err := sender.SendMessage(t.Context(), text("to the queue"), nil); err != nil {
		t.Error(err)
	}
}

// Every way to settle, and what becomes of the message.
func TestSETTLE_1_Verbs(t *testing.T) {
	t.Parallel()
	sidebus := connect(t, target, nil)
	queue := queueOf(t, sidebus, nil)
	receiver := newReceiver(t, sidebus, queue, nil)
	letters := newReceiver(t, sidebus, queue, &client.ReceiverOptions{SubQueue: client.SubQueueDeadLetter})
	ctx := t.Context()
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	send(t, sidebus, queue, "x")
	m := receiveOne(t, receiver)
	ok(receiver.AbandonMessage(ctx, m, &client.AbandonMessageOptions{PropertiesToModify: map[string]any{"tries": 1}, Delay: new(time.Duration)}))
	if m = receiveOne(t, receiver); m.DeliveryCount != 2 || m.ApplicationProperties["tries"] != int64(1) {
		t.Errorf("abandoned: got %#v", m)
	}
	ok(receiver.ReleaseMessage(ctx, m, nil))
	if m = receiveOne(t, receiver); m.DeliveryCount != 2 {
		t.Errorf("released: delivery %d", m.DeliveryCount)
	}
	before := *m.LockedUntil
	m.LockedUntil = nil
	ok(receiver.RenewMessageLock(ctx, m, nil))
	if m.LockedUntil == nil || m.LockedUntil.Before(before) {
		t.Errorf("renewed: locked until %s, before %s", m.LockedUntil, before)
	}
	ok(receiver.DeferMessage(ctx, m, &client.DeferMessageOptions{PropertiesToModify: map[string]any{"waits": true}}))
	deferred, err := receiver.ReceiveDeferredMessages(ctx, []int64{m.SequenceNumber}, nil)
	ok(err)
	m = deferred[0]
	if m.State != client.MessageStateDeferred || m.ApplicationProperties["waits"] != true {
		t.Errorf("deferred: got %#v", m)
	}
	_, err = receiver.ReceiveDeferredMessages(ctx, []int64{m.SequenceNumber}, nil)
	if !errors.Is(err, client.CodeMessageNotFound) || client.ErrorOf(err).Details["sequenceNumbers"] != "1" {
		t.Errorf("deferred and locked: got %v", err)
	}
	ok(receiver.DeadLetterMessage(ctx, m, &client.DeadLetterOptions{
		Reason: new("r"), ErrorDescription: new("d"), PropertiesToModify: map[string]any{"why": "x"},
	}))
	if err := receiver.RenewMessageLock(ctx, m, nil); !errors.Is(err, client.CodeMessageLockLost) {
		t.Errorf("renewed after it was settled: got %v", err)
	}
	dead := receiveOne(t, letters)
	if *dead.DeadLetterReason != "r" || *dead.DeadLetterErrorDescription != "d" || dead.ApplicationProperties["why"] != "x" || dead.DeadLetteredTime == nil {
		t.Errorf("dead-lettered: got %#v", dead)
	}
	if err := letters.DeadLetterMessage(ctx, dead, nil); !errors.Is(err, client.CodeInvalidOperation) {
		t.Errorf("dead-lettered twice: got %v", err)
	}
	ok(letters.CompleteMessage(ctx, dead, nil))

	send(t, sidebus, queue, "gone")
	for _, m := range []*client.ReceivedMessage{
		receiveOne(t, newReceiver(t, sidebus, queue, &client.ReceiverOptions{ReceiveMode: client.ReceiveModeReceiveAndDelete})), {},
	} {
		if err := receiver.CompleteMessage(ctx, m, nil); !errors.Is(err, client.CodeInvalidOperation) || m.LockToken != "" {
			t.Errorf("without a lock: got %v", err)
		}
	}
	if err := receiver.AbandonMessage(ctx, dead, &client.AbandonMessageOptions{PropertiesToModify: map[string]any{"c": struct{}{}}}); !errors.Is(err, client.CodeInvalidArgument) {
		t.Errorf("a property of an unknown type: got %v", err)
	}
}

// Peeks go on where the last one ended, or begin where they are told.
func TestPEEK_1_Pages(t *testing.T) {
	t.Parallel()
	sidebus := connect(t, target, nil)
	queue := queueOf(t, sidebus, nil)
	send(t, sidebus, queue, "1", "2", "3")
	receiver := newReceiver(t, sidebus, queue, nil)
	var got []string
	for _, options := range []*client.PeekMessagesOptions{nil, nil, nil, {FromSequenceNumber: new(int64(1))}, nil} {
		messages, err := receiver.PeekMessages(t.Context(), 2, options)
		if err != nil {
			t.Fatal(err)
		}
		page := ""
		for _, m := range messages {
			page += string(m.Body)
			if m.LockToken != "" || m.IsLocked || m.DeliveryCount != 0 {
				t.Errorf("peeked %#v", m)
			}
		}
		got = append(got, page)
	}
	if want := []string{"12", "3", "", "12", "3"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Waits end with a message, with MaxWait, or with the context, and take no message with them.
func TestRECV_5_Waits(t *testing.T) {
	t.Parallel()
	sidebus := connect(t, target, nil)
	queue := queueOf(t, sidebus, nil)
	receiver := newReceiver(t, sidebus, queue, nil)
	for _, wait := range []time.Duration{0, 300 * time.Millisecond} {
		began := time.Now()
		messages, err := receiver.ReceiveMessages(t.Context(), 1, &client.ReceiveMessagesOptions{MaxWait: &wait})
		if err != nil || len(messages) > 0 || time.Since(began) < wait {
			t.Errorf("after %s: got %v, %v", time.Since(began), messages, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 400*time.Millisecond)
	defer cancel()
	_, err := receiver.ReceiveMessages(ctx, 1, nil)
	if !errors.Is(err, client.CodeCancelled) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("deadline: got %v", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	outcome := make(chan error, 1)
	go func() {
		_, err := receiver.ReceiveMessages(ctx, 1, nil)
		outcome <- err
	}()
	cancel()
	if err := <-outcome; !errors.Is(err, client.CodeCancelled) || !errors.Is(err, context.Canceled) {
		t.Errorf("cancel: got %v", err)
	}
	messages := make(chan *client.ReceivedMessage, 1)
	go func() { messages <- receiveOne(t, receiver) }()
	send(t, sidebus, queue, "x")
	if m := <-messages; m.DeliveryCount != 1 {
		t.Errorf("delivery %d, want the first", m.DeliveryCount)
	}
}

// A session is held by one receiver, with its messages in order and its state.
func TestSESS_11_Sessions(t *testing.T) {
	t.Parallel()
	ctx, sidebus := t.Context(), connect(t, target, nil)
	queue := queueOf(t, sidebus, &sidebusv1.Queue{RequiresSession: new(true)})
	_, err := sidebus.AcceptNextSessionForQueue(ctx, queue, &client.SessionReceiverOptions{MaxWait: new(50 * time.Millisecond)})
	if !errors.Is(err, client.CodeServiceTimeout) || !client.ErrorOf(err).Retryable {
		t.Errorf("no session: got %v", err)
	}
	for _, body := range []string{"1", "2"} {
		m := text(body)
		m.SessionID = new("s")
		if err := newSender(t, sidebus, queue).SendMessage(ctx, m, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := newSender(t, sidebus, queue).SendMessage(ctx, text("x"), nil); !errors.Is(err, client.CodeSessionIDMissing) {
		t.Errorf("without a session: got %v", err)
	}
	_, err = newReceiver(t, sidebus, queue, nil).ReceiveMessages(ctx, 1, nil)
	if !errors.Is(err, client.CodeSessionRequired) {
		t.Errorf("received without a session: got %v", err)
	}
	session, err := sidebus.AcceptNextSessionForQueue(ctx, queue, nil)
	if err != nil || session.SessionID() != "s" {
		t.Fatal(session, err)
	}
	for _, wait := range []*time.Duration{nil, new(200 * time.Millisecond)} {
		_, err := sidebus.AcceptSessionForQueue(ctx, queue, "s", &client.SessionReceiverOptions{MaxWait: wait})
		if !errors.Is(err, client.CodeSessionCannotBeLocked) {
			t.Errorf("held by another: got %v", err)
		}
	}
	for _, state := range [][]byte{nil, {}, []byte("note"), nil} {
		if err := session.SetSessionState(ctx, state, nil); err != nil {
			t.Fatal(err)
		}
		if got, err := session.GetSessionState(ctx, nil); err != nil || string(got) != string(state) || (got == nil) != (state == nil) {
			t.Errorf("state is %q, %v; want %q", got, err, state)
		}
	}
	if err := session.SetSessionState(ctx, make([]byte, 300<<10), nil); !errors.Is(err, client.CodeSessionStateTooLarge) {
		t.Errorf("a large state: got %v", err)
	}
	before := session.LockedUntil()
	if err := session.RenewSessionLock(ctx, nil); err != nil || session.LockedUntil().Before(before) {
		t.Errorf("renewed: %v, locked until %s, before %s", err, session.LockedUntil(), before)
	}
	messages, err := session.ReceiveMessages(ctx, 10, nil)
	if err != nil || len(messages) != 2 || *messages[1].SessionSequence != 2 {
		t.Fatal(messages, err)
	}
	if err := session.CompleteMessage(ctx, messages[0], nil); err != nil {
		t.Error(err)
	}
	waiting := make(chan *client.SessionReceiver, 1)
	go func() {
		next, err := sidebus.AcceptSessionForQueue(ctx, queue, "s", &client.SessionReceiverOptions{MaxWait: new(patience)})
		if err != nil {
			t.Error(err)
		}
		waiting <- next
	}()
	for range 2 {
		if err := session.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	next := <-waiting
	if m := receiveOne(t, next); string(m.Body) != "2" || m.DeliveryCount != 1 {
		t.Errorf("after the first receiver: got %q, delivery %d", m.Body, m.DeliveryCount)
	}
	if _, err := session.GetSessionState(ctx, nil); !errors.Is(err, client.CodeClosed) {
		t.Errorf("after close: got %v", err)
	}
	if err := next.Close(ctx); err != nil {
		t.Error(err)
	}
}

// What renewal keeps no other receiver gets, and when it ends the lock does.
func TestLOCK_3_RenewalOnASidecar(t *testing.T) {
	t.Parallel()
	sidebus := connect(t, target, nil)
	queue := queueOf(t, sidebus, &sidebusv1.Queue{LockDuration: durationpb.New(5 * time.Second)})
	send(t, sidebus, queue, "x")
	receiver := newReceiver(t, sidebus, queue, &client.ReceiverOptions{MaxAutoRenew: time.Hour})
	m := receiveOne(t, receiver)
	other := newReceiver(t, sidebus, queue, nil)
	got, err := other.ReceiveMessages(t.Context(), 1, &client.ReceiveMessagesOptions{MaxWait: new(8 * time.Second)})
	if err != nil || len(got) > 0 {
		t.Errorf("another receiver got %v, %v", got, err)
	}
	_ = receiver.Close(t.Context())
	if again := receiveOne(t, other); again.SequenceNumber != m.SequenceNumber || again.DeliveryCount != 2 {
		t.Errorf("got %#v", again)
	}
}

// Many goroutines share a client, a sender and a receiver; each message is received once.
func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	sidebus := connect(t, target, nil)
	queue := queueOf(t, sidebus, nil)
	const workers, each = 8, 40
	sender, receiver := newSender(t, sidebus, queue), newReceiver(t, sidebus, queue, &client.ReceiverOptions{MaxAutoRenew: time.Hour})
	var mu sync.Mutex
	var work sync.WaitGroup
	got := map[string]int{}
	for i := range workers {
		work.Go(func() {
			for j := range each {
				if err := sender.SendMessage(t.Context(), text(strconv.Itoa(i*each+j)), nil); err != nil {
					t.Error(err)
				}
			}
		})
		work.Go(func() {
			for range each {
				m := receiveOne(t, receiver)
				mu.Lock()
				got[string(m.Body)]++
				mu.Unlock()
				if err := receiver.CompleteMessage(t.Context(), m, nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	if len(got) != workers*each {
		t.Errorf("received %d different messages, want %d", len(got), workers*each)
	}
}
