package redisstore_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/audit"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// wants compares everything that is kept, each line with the name of its entity: "orders:log 1-1".
func (s *transfers) wants(step string, lines ...string) {
	s.t.Helper()
	var got []string
	for _, path := range []string{"orders", "archive", "attic", "news"} {
		for _, line := range dumpOf(s.t, s.namespace, path) {
			got = append(got, path+":"+line)
		}
	}
	slices.Sort(got)
	lines = slices.Clone(lines)
	slices.Sort(lines)
	if diff := cmp.Diff(lines, got); diff != "" {
		s.t.Fatalf("%s (-want +got):\n%s", step, diff)
	}
	s.audit("orders", "archive", "attic", "news")
}

// Each step of a transfer leaves exactly the keys and members it should, at its source and at its destination, and so
// does each step that is repeated.
func TestFWD_1_TransferStepByStep(t *testing.T) {
	t.Parallel()
	s := openTransfers(t)
	s.makeAll()
	life := time.Minute
	s.send(t, &semantics.Message{MessageID: "a"}, &semantics.Message{MessageID: "bb", TimeToLive: &life}, &semantics.Message{MessageID: "ccc"})
	s.wants("sent", "orders:entity sequence=3", "orders:entity bytes=6", "orders:entity forwarder_called=1",
		"orders:log 1-1", "orders:log 2-2", "orders:log 3-3", "orders:expiry 2")

	transfer := s.begin(orders, "ARCHIVE", 2)
	begun := []string{
		"orders:entity sequence=3", "orders:entity bytes=6", "orders:entity cursor=2", "orders:entity forwarder_called=1",
		"orders:entity transfer=archive", "orders:log 1-1", "orders:log 2-2", "orders:log 3-3", "orders:expiry -2", "orders:locks 1", "orders:locks 2",
	}
	s.wants("begun", begun...)
	if again := s.begin(orders, "attic", 9); cmp.Diff(transfer, again) != "" {
		t.Fatalf("begun again: %s", cmp.Diff(transfer, again))
	}
	s.wants("begun again", begun...)
	s.clock.Advance(time.Hour) // a lock would end, and a lifetime is over
	if counts, err := s.Runtime(t.Context(), semantics.QueueKind, "orders"); err != nil || counts.Transfer != 2 || counts.Active != 1 || counts.Locked != 0 {
		t.Fatalf("under way: %+v %v", counts, err)
	}
	s.wants("under way", begun...)

	if codes := s.arrive(transfer); !slices.Equal(codes, []semantics.Code{"", ""}) {
		t.Fatalf("arrived: %v", codes)
	}
	arrived := append(slices.Clone(begun), "archive:arrivals :orders=", "archive:entity sequence=2", "archive:entity bytes=3",
		"archive:log 1-1", "archive:log 2-2", "archive:expiry 2")
	s.wants("arrived", arrived...)
	s.arrive(transfer)
	s.wants("arrived again", arrived...)

	s.end(transfer, gone(2)...)
	ended := []string{
		"orders:entity sequence=3", "orders:entity bytes=3", "orders:entity cursor=2", "orders:entity forwarder_called=1", "orders:log 3-3",
		"archive:arrivals :orders=", "archive:entity sequence=2", "archive:entity bytes=3", "archive:log 1-1", "archive:log 2-2", "archive:expiry 2",
	}
	s.wants("ended", ended...)
	s.end(transfer, dead("late", false), dead("late", true))
	s.arrive(transfer)
	s.wants("ended again", ended...)
	expires := int64(s.raw.ZScore(t.Context(), "sb:{"+s.namespace+"/archive}:expiry", "2").Val())
	if want := s.clock.Now().Add(life - time.Hour).UnixMilli(); expires != want {
		t.Errorf("it expires at %d, want %d: the hop must not extend its life", expires, want)
	}
	found, err := s.Peek(t.Context(), archive, 1, 9, semantics.ShowAll)
	if err != nil || len(found) != 1 || found[0].SequenceNumber != 1 || found[0].MessageID != "a" || found[0].TimeToLive != nil {
		t.Fatalf("at the destination: %+v %v", found, err)
	}
	if err := s.DeleteEntity(t.Context(), semantics.QueueKind, "archive"); err != nil {
		t.Fatal(err)
	}
	s.wants("destination deleted", ended[:5]...)
}

// What could not go on lies in the transfer dead-letter queue, whole, or among the dead letters of its own queue, and
// can be received and sent again from there.
func TestDLQ_19_RefusedStepByStep(t *testing.T) {
	t.Parallel()
	s := openTransfers(t)
	s.makeAll(func(o *semantics.Options) { o.DeadLetterTTL, o.ForwardDeadLetteredMessagesTo = time.Hour, "" })
	s.wants("made")
	s.send(t, messagesOf(4, semantics.Message{})...)
	transfer := s.begin(orders, "archive", 9)
	s.end(transfer, semantics.Fate{}, dead(semantics.ReasonTooManyHops, true), dead(semantics.ReasonDestinationFull, false),
		dead(semantics.ReasonDestinationFull, false))
	base := []string{"orders:entity sequence=4", "orders:entity cursor=4", "orders:entity bytes=0", "orders:entity forwarder_called=1"}
	own := []string{"orders:entity dead_sequence=1", "orders:entity dead_bytes=1", "orders:dead_log 1-1", "orders:dead_numbers 1", "orders:dead_expiry 1"}
	refused := []string{
		"orders:transfer:entity dead_sequence=2", "orders:transfer:dead_log 1-1", "orders:transfer:dead_log 2-1", "orders:transfer:dead_numbers 1",
		"orders:transfer:dead_numbers 2", "orders:transfer:entity dead_bytes=2", "orders:transfer:dead_expiry 1", "orders:transfer:dead_expiry 2",
	}
	s.wants("refused", slices.Concat(base, own, refused)...)
	counts, err := s.Runtime(t.Context(), semantics.QueueKind, "orders")
	if err != nil || counts.TransferDeadLetter != 2 || counts.DeadLetter != 1 || counts.SizeInBytes != 3 || counts.Active+counts.Transfer != 0 {
		t.Fatalf("counts: %+v %v", counts, err)
	}
	batch, err := s.Receive(t.Context(), undelivered, 1, semantics.RegisterNever)
	if err != nil || batch.Messages[0].SequenceNumber != 3 || batch.Messages[0].DeadLetterReason != semantics.ReasonDestinationFull {
		t.Fatalf("receive: %+v %v", batch.Messages, err)
	}
	codes, err := s.Complete(t.Context(), undelivered, []semantics.LockToken{batch.Messages[0].LockToken})
	if err != nil || codes[0] != "" {
		t.Fatal(codes, err)
	}
	moved, err := s.Resubmit(t.Context(), undelivered, "orders", []semantics.Resubmission{{SequenceNumber: 4, MessageID: "3"}}, false)
	if err != nil || moved[0].Code != "" || moved[0].SequenceNumber != 5 {
		t.Fatalf("resubmit: %+v %v", moved, err)
	}
	left := []string{
		"orders:entity sequence=5", "orders:entity cursor=4", "orders:entity bytes=1", "orders:entity forwarder_called=1", "orders:log 5-1",
		"orders:transfer:entity dead_sequence=2", "orders:transfer:entity dead_cursor=2", "orders:transfer:entity dead_bytes=0",
	}
	s.wants("received and sent again", slices.Concat(left, own)...)
	if moved, err = s.Resubmit(t.Context(), deadOrders, "archive", []semantics.Resubmission{{SequenceNumber: 2, MessageID: "1"}}, false); err != nil {
		t.Fatal(moved, err)
	}

	if _, err := s.UpdateEntity(t.Context(), semantics.QueueKind, "orders", semantics.Options{Status: semantics.StatusDisabled}, []string{"status"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Receive(t.Context(), undelivered, 1, semantics.RegisterNever); semantics.CodeOf(err) != semantics.EntityDisabled {
		t.Fatalf("receive from a disabled queue: %v", err)
	}
	s.audit("orders")
	if err := s.DeleteEntity(t.Context(), semantics.QueueKind, "orders"); err != nil {
		t.Fatal(err)
	}
	s.wants("deleted", "archive:entity sequence=1", "archive:entity bytes=1", "archive:log 1-1")
}

// Whoever ends a transfer is told what became a dead letter by that and why, once.
func TestDLQ_24_RefusedAreTold(t *testing.T) {
	t.Parallel()
	told := map[string][]int64{}
	s := &transfers{t: t, swept: openSwept(t, redisstore.Options{DeadLettered: func(entity, cause string, numbers []int64) {
		told[entity+" "+cause] = append(told[entity+" "+cause], numbers...)
	}})}
	s.makeAll()
	s.send(t, messagesOf(5, semantics.Message{})...)
	transfer := s.begin(orders, "archive", 9)
	for range 2 {
		s.end(transfer, semantics.Fate{}, dead(semantics.ReasonTooManyHops, true), dead(semantics.ReasonDestinationFull, false),
			dead(semantics.ReasonDestinationNotFound, false), dead(semantics.ReasonDestinationDisabled, false))
	}
	want := map[string][]int64{
		"orders " + semantics.ReasonTooManyHops: {2}, "orders " + semantics.ReasonDestinationFull: {3},
		"orders " + semantics.ReasonDestinationNotFound: {4}, "orders " + semantics.ReasonDestinationDisabled: {5},
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Error(diff)
	}
}

// A dead letter that is refused keeps its number and its count; one that has arrived is gone from all keys.
func TestFWD_9_DeadLettersStepByStep(t *testing.T) {
	t.Parallel()
	s := openTransfers(t)
	s.makeAll(func(o *semantics.Options) { o.ForwardTo = "" })
	s.send(t, messagesOf(3, semantics.Message{})...)
	deadLetter(t, s, 3)
	transfer := s.begin(deadOrders, "attic", 2)
	base := []string{"orders:entity sequence=3", "orders:entity cursor=3", "orders:entity bytes=0", "orders:entity forwarder_called=1"}
	s.wants("begun", append(slices.Clone(base), "orders:entity dead_sequence=3", "orders:entity dead_bytes=3", "orders:entity dead_cursor=2",
		"orders:entity dead_transfer=attic", "orders:dead_log 1-1", "orders:dead_log 2-1", "orders:dead_log 3-1", "orders:dead_locks 1",
		"orders:dead_locks 2", "orders:dead_numbers 1", "orders:dead_numbers 2", "orders:dead_numbers 3")...)
	s.end(transfer, semantics.Fate{}, dead(semantics.ReasonDestinationNotFound, false))
	s.wants("ended", append(slices.Clone(base), "orders:entity dead_sequence=3", "orders:entity dead_bytes=1", "orders:entity dead_cursor=2",
		"orders:dead_log 3-1", "orders:dead_numbers 3", "orders:transfer:entity dead_sequence=1", "orders:transfer:entity dead_bytes=1",
		"orders:transfer:dead_log 1-1", "orders:transfer:dead_numbers 1")...)
	found, err := s.Peek(t.Context(), undelivered, 1, 9, semantics.ShowAll)
	if err != nil || len(found) != 1 || found[0].SequenceNumber != 2 || found[0].DeadLetterReason != semantics.ReasonDestinationNotFound {
		t.Fatalf("refused: %+v %v", found, err)
	}
}

// A topic gets copies of what arrives, as of what is sent, and keeps what no subscription gets if it is to.
func TestFWD_1_ToATopicStepByStep(t *testing.T) {
	t.Parallel()
	s := openTransfers(t)
	s.make("archive")
	s.ok("create", createTopic(t, s.Store, func(o *semantics.Options) { o.RequiresDuplicateDetection, o.UnmatchedTo = true, "archive" }))
	s.ok("subscribe", subscribe(t, s.Store, "eu"))
	s.make("orders", func(o *semantics.Options) { o.ForwardTo = "news" })
	s.send(t, &semantics.Message{MessageID: "a"}, &semantics.Message{MessageID: "bb"}, &semantics.Message{MessageID: "a"})
	transfer := s.begin(orders, "news", 9)
	routes, err := s.Routes(t.Context(), "news")
	s.ok("routes", err)
	if !routes.KeepsUnmatched || len(routes.Subscriptions) != 1 {
		t.Fatalf("routes: %+v", routes)
	}
	publications := onward(transfer, "eu")
	publications[1].Copies = copiesOf(publications[1].Message, semantics.UnmatchedSubscription)
	if _, err := s.Arrive(t.Context(), transfer, routes.Version+1, publications, true); !errors.Is(err, semantics.ErrRoutesChanged) {
		t.Fatalf("by other routes: %v", err)
	}
	for range 2 {
		arrivals, err := s.Arrive(t.Context(), transfer, routes.Version, publications, true)
		if err != nil || len(arrivals) != 3 || arrivals[0].Refused+arrivals[1].Refused+arrivals[2].Refused != "" {
			t.Fatalf("arrive: %v %v", arrivals, err)
		}
		s.wants("arrived", "orders:entity sequence=3", "orders:entity bytes=4", "orders:entity cursor=3", "orders:entity forwarder_called=1",
			"orders:entity transfer=news", "orders:log 1-1", "orders:log 2-2", "orders:log 3-1", "orders:locks 1", "orders:locks 2", "orders:locks 3",
			"news:arrivals :orders=", "news:entity sequence=2", "news:entity most_bytes=3",
			fmt.Sprintf("news:history a=%d:1", s.clock.Now().UnixMilli()), fmt.Sprintf("news:history bb=%d:2", s.clock.Now().UnixMilli()),
			"news:history_times a", "news:history_times bb", "news:rules eu $default", "news:subscriptions eu=01", "news:subscriptions $unmatched=01",
			"news:subscriptions/eu:entity sequence=1", "news:subscriptions/eu:entity bytes=1", "news:subscriptions/eu:log 1-1 of 1",
			"news:subscriptions/$unmatched:entity sequence=1", "news:subscriptions/$unmatched:entity bytes=2",
			"news:subscriptions/$unmatched:entity forwarder_called=1", "news:subscriptions/$unmatched:log 1-2 of 2")
	}
	s.ok("delete", s.DeleteEntity(t.Context(), semantics.TopicKind, "news"))
	if lines := dumpOf(t, s.namespace, "news"); len(lines) > 0 {
		t.Errorf("deleted: %v", lines)
	}
}

// A message without a session is a dead letter of a queue with sessions at once, and each refusal is one message's.
func TestFWD_8_OutcomesOneByOne(t *testing.T) {
	t.Parallel()
	s := openTransfers(t)
	s.make("archive", func(o *semantics.Options) {
		o.RequiresSession, o.RequiresDuplicateDetection, o.DuplicateHistoryMaxEntries = true, true, 3
		o.MaxMessageSizeInKilobytes, o.MaxMessageCount = 1, 2
	})
	s.make("orders", func(o *semantics.Options) { o.ForwardTo = "archive" })
	body := make([]byte, 2000)
	s.send(t, &semantics.Message{MessageID: "a"}, &semantics.Message{MessageID: "big", Body: body}, &semantics.Message{MessageID: "b", SessionID: "s"},
		&semantics.Message{MessageID: "b", SessionID: "s"}, &semantics.Message{MessageID: "c", SessionID: "s"}, &semantics.Message{MessageID: "d", SessionID: "s"},
		&semantics.Message{MessageID: "e"})
	transfer := s.begin(orders, "archive", 9)
	if _, err := s.Arrive(t.Context(), transfer, 0, onward(transfer), false); !errors.Is(err, semantics.ErrNotYet) {
		t.Fatalf("not yet: %v", err)
	}
	if lines := dumpOf(t, s.namespace, "archive"); len(lines) > 0 {
		t.Fatalf("not yet, but there is %v", lines)
	}
	want := []semantics.Code{"", semantics.MessageSizeExceeded, "", "", "", semantics.EntityFull, semantics.QuotaExceeded}
	for range 2 {
		if codes := s.arrive(transfer); !slices.Equal(codes, want) {
			t.Fatalf("got %q, want %q", codes, want)
		}
	}
	lines := dumpOf(t, s.namespace, "archive")
	lines = slices.DeleteFunc(lines, func(line string) bool { return strings.Contains(line, "istory") || strings.Contains(line, "session") })
	wanted := []string{
		"arrivals :orders=.s...fq", "dead_log 1-1", "dead_numbers 1", "entity bytes=4", "entity dead_bytes=1", "entity dead_sequence=1",
		"entity sequence=3", "log 2-2", "log 3-2",
	}
	if diff := cmp.Diff(wanted, lines); diff != "" {
		t.Error(diff)
	}
	found, err := s.Peek(t.Context(), semantics.Source{Path: "archive", SubQueue: semantics.DeadLetterQueue}, 1, 1, semantics.ShowAll)
	if err != nil || len(found) != 1 || found[0].DeadLetterReason != semantics.ReasonNoSession || found[0].MessageID != "a" {
		t.Errorf("the dead letter: %+v %v", found, err)
	}
	s.audit("archive", "orders")
}

// With room for one of two, the second is refused, in bytes too, and what is refused does not take the room of what
// follows.
func TestFWD_8_RoomIsExact(t *testing.T) {
	t.Parallel()
	s := openTransfers(t)
	s.ok("create", createTopic(t, s.Store, func(o *semantics.Options) { o.MaxSizeInMegabytes, o.MaxMessageSizeInKilobytes = 1, 1024 }))
	s.ok("subscribe", subscribe(t, s.Store, "eu"))
	s.ok("subscribe", subscribe(t, s.Store, "few", func(o *semantics.Options) { o.MaxMessageCount = 1 }))
	s.make("orders", func(o *semantics.Options) { o.ForwardTo, o.MaxMessageSizeInKilobytes = "news", 1024 })
	for _, size := range []int{600 << 10, 500 << 10, 400 << 10, 10, 10} {
		s.send(t, &semantics.Message{Body: make([]byte, size)})
	}
	var messages []*semantics.Received
	transfer := s.begin(orders, "news", 1) // a topic with two subscriptions would have fewer at a time
	for len(transfer.Messages) > 0 {
		messages = append(messages, transfer.Messages...)
		s.end(transfer, gone(len(transfer.Messages))...)
		transfer = s.begin(orders, "news", 1)
	}
	s.send(t, &semantics.Message{MessageID: "m"})
	transfer = s.begin(orders, "news", 1)
	transfer.Messages = messages
	publications := onward(transfer, "eu")
	for i := 3; i < 5; i++ {
		publications[i].Copies = copiesOf(publications[i].Message, "few")
	}
	routes, err := s.Routes(t.Context(), "news")
	s.ok("routes", err)
	arrivals, err := s.Arrive(t.Context(), transfer, routes.Version, publications, true)
	s.ok("arrive", err)
	want := []semantics.Arrival{{}, {Refused: semantics.EntityFull}, {}, {}, {Refused: semantics.EntityFull}}
	if diff := cmp.Diff(want, arrivals); diff != "" {
		t.Error(diff)
	}
	if err := audit.New(s.raw, s.namespace).Audit(t.Context(), "news"); err != nil {
		t.Error(err)
	}
}

// dumpOf is dump of one entity.
func dumpOf(t *testing.T, namespace, path string) []string {
	t.Helper()
	return dump(t, namespace+"/"+path)
}

// A transfer to a topic has fewer messages the more subscriptions there are, so that the script that stores all copies
// stays short.
func TestFWD_1_TransfersToTopicsAreSmall(t *testing.T) {
	t.Parallel()
	s := openTransfers(t)
	s.ok("create", createTopic(t, s.Store))
	for i := range 50 {
		s.ok("subscribe", subscribe(t, s.Store, fmt.Sprint(i)))
	}
	s.make("archive")
	s.make("orders", func(o *semantics.Options) { o.ForwardTo = "news" })
	s.send(t, messagesOf(300, semantics.Message{})...)
	transfer := s.begin(orders, "news", 1000)
	if n := len(transfer.Messages); n != 20 {
		t.Errorf("%d messages, want 20", n)
	}
	s.end(transfer, gone(len(transfer.Messages))...)
	if _, err := s.UpdateEntity(t.Context(), semantics.QueueKind, "orders", semantics.Options{ForwardTo: "archive"}, []string{"forwardTo"}); err != nil {
		t.Fatal(err)
	}
	if n := len(s.begin(orders, "archive", 1000).Messages); n != 250 {
		t.Errorf("to a queue: %d messages, want 250", n)
	}
}

// A transfer dead letter counts for no quota. When it is sent again to its subscription it needs room in the topic,
// exactly as much as it has.
func TestTOPIC_7_RoomForWhatIsSentAgain(t *testing.T) {
	t.Parallel()
	s := openTransfers(t)
	s.ok("create", createTopic(t, s.Store, func(o *semantics.Options) { o.MaxSizeInMegabytes, o.MaxMessageSizeInKilobytes = 1, 1024 }))
	s.make("archive")
	s.ok("subscribe", subscribe(t, s.Store, "eu", func(o *semantics.Options) { o.ForwardTo = "archive" }))
	s.ok("subscribe", subscribe(t, s.Store, "us"))
	send := func(name string, size int) {
		t.Helper()
		m := &semantics.Message{MessageID: "m", Body: make([]byte, size-1)}
		s.ok("publish", publish(t, s, semantics.Publication{Message: m, Copies: copiesOf(m, name)}).Err)
	}
	for range 2 {
		send("eu", 300<<10)
	}
	transfer := s.begin(of("eu"), "archive", 9)
	s.end(transfer, dead("r", false), dead("r", false))
	send("us", 200<<10)
	send("us", 1<<20-300<<10)
	codes, err := s.Complete(t.Context(), of("us"), []semantics.LockToken{receiveOneOf(t, s, of("us")).LockToken})
	if err != nil || codes[0] != "" { // so that the topic holds less than the bound that it has says
		t.Fatal(codes, err)
	}
	refused := semantics.Source{Path: of("eu").Path, SubQueue: semantics.TransferDeadLetterQueue}
	moved, err := s.Resubmit(t.Context(), refused, of("eu").Path, []semantics.Resubmission{
		{SequenceNumber: 1, MessageID: "m"}, {SequenceNumber: 2, MessageID: "m"},
	}, false)
	if err != nil || moved[0].Code != "" || moved[1].Code != semantics.EntityFull {
		t.Fatalf("sent again: %+v %v", moved, err)
	}
	if topic, err := s.Runtime(t.Context(), semantics.TopicKind, "news"); err != nil || topic.SizeInBytes != 1<<20 {
		t.Errorf("the topic holds %d bytes (%v)", topic.SizeInBytes, err)
	}
	s.audit("news")
}

// Who sends a dead letter again sends a message that was never forwarded, whatever else is changed about it before and
// after.
func TestFWD_5_SentAnewStaysSo(t *testing.T) {
	t.Parallel()
	s := openTransfers(t)
	s.make("orders")
	reason, properties := "was dead", map[string]semantics.Value{semantics.PropertyDeadLetterReason: semantics.String("was dead")}
	from := &semantics.Forwarded{Hops: 3, EnqueuedSequenceNumber: 77, DeadLetterSource: "far", DeadLetterTexts: semantics.DeadLetterTexts{Reason: &reason}}
	s.send(t, &semantics.Message{MessageID: "a", Forwarded: from, Properties: properties})
	deadLetter := func(name string) {
		t.Helper()
		tokens := []semantics.LockToken{receiveOne(t, s).LockToken}
		codes, err := s.DeadLetter(t.Context(), orders, tokens, semantics.DeadLetterTexts{}, map[string]semantics.Value{name: semantics.Int64(1)})
		if err != nil || codes[0] != "" {
			t.Fatal(codes, err)
		}
	}
	b := brokerOver(s)
	defer b.Close()
	deadLetter("before")
	for i := range 2 {
		if results, _, err := b.Resubmit(t.Context(), deadOrders, broker.ResubmitOptions{NewMessageIDs: i == 0}); err != nil || len(results) != 1 || results[0].Code != "" {
			t.Fatalf("resubmit: %+v %v", results, err)
		}
		m := receiveOne(t, s)
		if m.Forwarded != nil || m.DeadLetterSource != "" || m.DeadLetterReason != "" || m.EnqueuedSequenceNumber != m.SequenceNumber {
			t.Fatalf("sent anew: %+v", m)
		}
		if _, is := m.Properties[semantics.PropertyDeadLetterReason]; is || m.Properties["before"] != semantics.Int64(1) || m.Size != m.Message.Size() {
			t.Fatalf("its properties: %v of %d bytes, counted as %d", m.Properties, m.Message.Size(), m.Size)
		}
		if _, err := s.Release(t.Context(), orders, []semantics.LockToken{m.LockToken}); err != nil {
			t.Fatal(err)
		}
		deadLetter("after")
		if found, err := s.Peek(t.Context(), deadOrders, 1, 9, semantics.ShowAll); err != nil || len(found) != 1 || found[0].Forwarded != nil {
			t.Fatalf("dead again: %+v %v", found, err)
		}
		s.audit("orders")
	}
}
