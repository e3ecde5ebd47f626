package proxy_test

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// The methods as functions of a client.
var (
	sending            = sidebusv1.MessagesClient.Send
	cancelling         = sidebusv1.MessagesClient.CancelScheduled
	receivingDeferred  = sidebusv1.MessagesClient.ReceiveDeferred
	receivingByNumber  = sidebusv1.MessagesClient.ReceiveBySequence
	peeking            = sidebusv1.MessagesClient.Peek
	abandoning         = sidebusv1.MessagesClient.Abandon
	deferring          = sidebusv1.MessagesClient.Defer
	deadLettering      = sidebusv1.MessagesClient.DeadLetter
	reactivating       = sidebusv1.MessagesClient.Reactivate
	deleting           = sidebusv1.MessagesClient.DeleteBySequence
	purging            = sidebusv1.MessagesClient.Purge
	resubmitting       = sidebusv1.MessagesClient.Resubmit
	nobodys            = []string{nobodysToken}
	outOfRange, absent = "ARGUMENT_OUT_OF_RANGE", "queues/none"
)

// ones is a list of n valid sequence numbers.
func ones(n int) []int64 { return slices.Repeat([]int64{1}, n) }

func scheduleRefusals() []refusal {
	cancel := func(name, reason, field string, request *sidebusv1.CancelScheduledRequest) refusal {
		if request.Target == "" {
			request.Target = orders
		}
		return refuse("cancel: "+name, reason, field, cancelling, request)
	}
	return []refusal{
		cancel("nothing", "INVALID_ARGUMENT", "sequenceNumbers", &sidebusv1.CancelScheduledRequest{}),
		cancel("both", "INVALID_ARGUMENT", "messageIds", &sidebusv1.CancelScheduledRequest{SequenceNumbers: []int64{5}, MessageIds: []string{"a"}}),
		cancel("zero", outOfRange, "sequenceNumbers", &sidebusv1.CancelScheduledRequest{SequenceNumbers: []int64{5, 0}}),
		cancel("negative", outOfRange, "sequenceNumbers", &sidebusv1.CancelScheduledRequest{SequenceNumbers: []int64{math.MinInt64}}),
		cancel("too many", outOfRange, "sequenceNumbers", &sidebusv1.CancelScheduledRequest{SequenceNumbers: ones(1001)}),
		cancel("too many ids", outOfRange, "messageIds", &sidebusv1.CancelScheduledRequest{MessageIds: slices.Repeat([]string{"a"}, 1001)}),
		cancel("empty id", "INVALID_ARGUMENT", "messageIds", &sidebusv1.CancelScheduledRequest{MessageIds: []string{"a", ""}}),
		cancel("long id", "INVALID_ARGUMENT", "messageIds", &sidebusv1.CancelScheduledRequest{MessageIds: []string{strings.Repeat("x", 129)}}),
		cancel("SCHED-5 unknown", "MESSAGE_NOT_FOUND", "", &sidebusv1.CancelScheduledRequest{SequenceNumbers: []int64{math.MaxInt64}}),
		cancel("SCHED-8 unknown id", "MESSAGE_NOT_FOUND", "", &sidebusv1.CancelScheduledRequest{MessageIds: []string{"a"}}),
		cancel("unknown queue", "ENTITY_NOT_FOUND", "", &sidebusv1.CancelScheduledRequest{Target: absent, SequenceNumbers: []int64{5}}),
		cancel("DLQ-3 dead-letter queue", "INVALID_OPERATION", "", &sidebusv1.CancelScheduledRequest{Target: orders + "/$deadletterqueue", SequenceNumbers: []int64{5}}),
		refuse("schedule: lifetime", outOfRange, "timeToLive", sending, &sidebusv1.SendRequest{Target: orders, Messages: []*sidebusv1.Message{
			{ScheduledEnqueueTime: timestamppb.New(time.Unix(4e9, 0)), TimeToLive: &durationpb.Duration{}},
		}}),
		refuse("schedule: unknown queue", "ENTITY_NOT_FOUND", "", sending, &sidebusv1.SendRequest{Target: absent, Messages: []*sidebusv1.Message{
			{ScheduledEnqueueTime: timestamppb.New(time.Unix(4e9, 0))},
		}}),
	}
}

// numbersRefusals are about lists of sequence numbers, for each verb that takes one from a source.
func numbersRefusals() (all []refusal) {
	lists := []struct {
		name, source string
		numbers      []int64
		reason       string
		field        string
	}{
		{"zero", orders, []int64{1, 0}, outOfRange, "sequenceNumbers"},
		{"negative", orders, []int64{-1}, outOfRange, "sequenceNumbers"},
		{"DEFER-4 too many", orders, ones(251), outOfRange, "sequenceNumbers"},
		{"unknown queue", absent, []int64{1}, "ENTITY_NOT_FOUND", ""},
		{"malformed queue", "queues/a b", []int64{1}, "INVALID_ARGUMENT", "name"},
	}
	for _, c := range lists {
		all = append(all,
			refuse("receive deferred: "+c.name, c.reason, c.field, receivingDeferred, &sidebusv1.ReceiveDeferredRequest{Source: c.source, SequenceNumbers: c.numbers}),
			refuse("receive by sequence: "+c.name, c.reason, c.field, receivingByNumber, &sidebusv1.ReceiveBySequenceRequest{Source: c.source, SequenceNumbers: c.numbers}),
			refuse("reactivate: "+c.name, c.reason, c.field, reactivating, &sidebusv1.ReactivateRequest{Source: c.source, SequenceNumbers: c.numbers}),
			refuse("delete: "+c.name, c.reason, c.field, deleting, &sidebusv1.DeleteBySequenceRequest{Source: c.source, SequenceNumbers: c.numbers}),
		)
	}
	return append(all,
		refuse("delete: nothing", "INVALID_ARGUMENT", "sequenceNumbers", deleting, &sidebusv1.DeleteBySequenceRequest{Source: orders}),
		refuse("receive deferred: unknown", "MESSAGE_NOT_FOUND", "", receivingDeferred, &sidebusv1.ReceiveDeferredRequest{Source: orders, SequenceNumbers: []int64{math.MaxInt64}}),
		refuse("receive by sequence: unknown", "MESSAGE_NOT_FOUND", "", receivingByNumber, &sidebusv1.ReceiveBySequenceRequest{Source: orders, SequenceNumbers: []int64{math.MaxInt64}}),
		refuse("reactivate: unknown", "MESSAGE_NOT_FOUND", "", reactivating, &sidebusv1.ReactivateRequest{Source: orders, SequenceNumbers: []int64{math.MaxInt64}}),
	)
}

// changesRefusals are about the properties of settlements; the token is a good one, so nothing else is wrong.
func changesRefusals(token string) (all []refusal) {
	tokens := []string{token}
	long, large := strings.Repeat("x", 129), strings.Repeat("x", 32<<10+1)
	changes := []struct {
		name, reason, field string
		properties          map[string]*sidebusv1.Value
	}{
		{"MSG-14 empty name", "INVALID_ARGUMENT", "properties", map[string]*sidebusv1.Value{"": int32Value(1)}},
		{"MSG-14 names differ in case only", "INVALID_ARGUMENT", "properties[a]", map[string]*sidebusv1.Value{"a": int32Value(1), "A": int32Value(2)}},
		{"MSG-14 long name", "INVALID_ARGUMENT", "properties[" + long[:80] + "...]", map[string]*sidebusv1.Value{long: int32Value(1)}},
		{"MSG-15 large value", "MESSAGE_SIZE_EXCEEDED", "properties[a]", map[string]*sidebusv1.Value{"a": stringValue(large)}},
		{"MSG-15 large together", "MESSAGE_SIZE_EXCEEDED", "headers and properties", map[string]*sidebusv1.Value{"a": stringValue(large[1:]), "b": stringValue(large[1:]), "c": int32Value(1)}},
		{"MSG-12 out of its type", "INVALID_ARGUMENT", "properties[p]", map[string]*sidebusv1.Value{"p": {Kind: &sidebusv1.Value_ByteValue{ByteValue: 256}}}},
		{"MSG-12 no uuid", "INVALID_ARGUMENT", "properties[p]", map[string]*sidebusv1.Value{"p": {Kind: &sidebusv1.Value_UuidValue{UuidValue: "x"}}}},
	}
	for _, name := range []string{"MessageId", "SessionId", "Label", "State", "LockToken", "DeliveryCount", "DeadLetterSource", "ScheduledEnqueueTime"} {
		changes = append(changes, struct {
			name, reason, field string
			properties          map[string]*sidebusv1.Value
		}{"SETTLE-5 " + name, "INVALID_ARGUMENT", "properties[" + name + "]", map[string]*sidebusv1.Value{name: stringValue("x")}})
	}
	for _, c := range changes {
		all = append(all,
			refuse("abandon: "+c.name, c.reason, c.field, abandoning, &sidebusv1.AbandonRequest{Source: orders, LockTokens: tokens, Properties: c.properties}),
			refuse("defer: "+c.name, c.reason, c.field, deferring, &sidebusv1.DeferRequest{Source: orders, LockTokens: tokens, Properties: c.properties}),
			refuse("dead-letter: "+c.name, c.reason, c.field, deadLettering, &sidebusv1.DeadLetterRequest{Source: orders, LockTokens: tokens, Properties: c.properties}),
		)
	}
	for _, name := range []string{"DeadLetterReason", "DeadLetterErrorDescription"} { // only a dead letter has them
		properties, field := map[string]*sidebusv1.Value{name: stringValue("x")}, "properties["+name+"]"
		all = append(all,
			refuse("abandon: "+name, "INVALID_ARGUMENT", field, abandoning, &sidebusv1.AbandonRequest{Source: orders, LockTokens: tokens, Properties: properties}),
			refuse("defer: "+name, "INVALID_ARGUMENT", field, deferring, &sidebusv1.DeferRequest{Source: orders, LockTokens: tokens, Properties: properties}),
			refuse("SETTLE-6 two texts: "+name, "INVALID_ARGUMENT", field, deadLettering, &sidebusv1.DeadLetterRequest{
				Source: orders, LockTokens: tokens, Properties: properties, Reason: proto.String(""), Description: proto.String("y"),
			}),
		)
	}
	return all
}

func settleRefusals(token string) []refusal {
	tokens, long := []string{token}, strings.Repeat("€", 4097)
	abandon := func(name string, delay *durationpb.Duration) refusal {
		return refuse("abandon: "+name, outOfRange, "delay", abandoning, &sidebusv1.AbandonRequest{Source: orders, LockTokens: tokens, Delay: delay})
	}
	deadLetter := func(name, reason, field string, request *sidebusv1.DeadLetterRequest) refusal {
		request.Source, request.LockTokens = orders, tokens
		return refuse("dead-letter: "+name, reason, field, deadLettering, request)
	}
	return append(changesRefusals(token),
		abandon("SETTLE-11 long delay", durationpb.New(7*24*time.Hour+time.Millisecond)),
		abandon("SETTLE-11 negative delay", durationpb.New(-time.Millisecond)),
		abandon("SETTLE-11 endless delay", &durationpb.Duration{Seconds: 315_576_000_000}),
		deadLetter("SETTLE-6 long reason", outOfRange, "reason", &sidebusv1.DeadLetterRequest{Reason: &long}),
		deadLetter("SETTLE-6 long description", outOfRange, "description", &sidebusv1.DeadLetterRequest{Description: &long}),
		deadLetter("SETTLE-6 long reason as property", outOfRange, "reason", &sidebusv1.DeadLetterRequest{Properties: map[string]*sidebusv1.Value{"DeadLetterReason": stringValue(long)}}),
		deadLetter("SETTLE-8 dead letter", "INVALID_OPERATION", "", &sidebusv1.DeadLetterRequest{SubQueue: sidebusv1.SubQueue_DEAD_LETTER}),
		refuse("defer: no tokens", "INVALID_ARGUMENT", "lockTokens", deferring, &sidebusv1.DeferRequest{Source: orders}),
		refuse("defer: too many tokens", outOfRange, "lockTokens", deferring, &sidebusv1.DeferRequest{Source: orders, LockTokens: slices.Repeat(nobodys, 1001)}),
		refuse("defer: LOCK-2 malformed token", "INVALID_ARGUMENT", "lockTokens", deferring, &sidebusv1.DeferRequest{Source: orders, LockTokens: []string{token, "x"}}),
		refuse("defer: SETTLE-13 empty token", "INVALID_OPERATION", "lockTokens", deferring, &sidebusv1.DeferRequest{Source: orders, LockTokens: []string{token, ""}}),
		refuse("defer: unknown queue", "ENTITY_NOT_FOUND", "", deferring, &sidebusv1.DeferRequest{Source: absent, LockTokens: tokens}),
	)
}

func removeRefusals() []refusal {
	purge := func(name, reason, field string, request *sidebusv1.PurgeRequest) refusal {
		if request.Source == "" {
			request.Source = orders
		}
		return refuse("purge: "+name, reason, field, purging, request)
	}
	resubmit := func(name, reason, field string, request *sidebusv1.ResubmitRequest) refusal {
		if request.Source == "" {
			request.Source = orders
		}
		return refuse("resubmit: "+name, reason, field, resubmitting, request)
	}
	filter := func(text string) *sidebusv1.ResubmitRequest { return &sidebusv1.ResubmitRequest{Filter: &text} }
	target := func(target string) *sidebusv1.ResubmitRequest { return &sidebusv1.ResubmitRequest{Target: target} }
	return []refusal{
		purge("PURGE-1 none", outOfRange, "maxMessages", &sidebusv1.PurgeRequest{MaxMessages: proto.Int32(0)}),
		purge("PURGE-1 negative", outOfRange, "maxMessages", &sidebusv1.PurgeRequest{MaxMessages: proto.Int32(-1)}),
		purge("PURGE-1 too many", outOfRange, "maxMessages", &sidebusv1.PurgeRequest{MaxMessages: proto.Int32(4001)}),
		purge("unknown queue", "ENTITY_NOT_FOUND", "", &sidebusv1.PurgeRequest{Source: absent}),
		purge("malformed queue", "INVALID_ARGUMENT", "name", &sidebusv1.PurgeRequest{Source: "queues/a b"}),
		resubmit("not from the dead-letter queue", "INVALID_OPERATION", "subQueue", &sidebusv1.ResubmitRequest{SubQueue: sidebusv1.SubQueue_NONE.Enum()}),
		resubmit("none", outOfRange, "max", &sidebusv1.ResubmitRequest{Max: proto.Int32(0)}),
		resubmit("negative", outOfRange, "max", &sidebusv1.ResubmitRequest{Max: proto.Int32(-1)}),
		resubmit("too many", outOfRange, "max", &sidebusv1.ResubmitRequest{Max: proto.Int32(10001)}),
		resubmit("number zero", outOfRange, "sequenceNumbers", &sidebusv1.ResubmitRequest{SequenceNumbers: []int64{2, 0}}),
		resubmit("negative number", outOfRange, "sequenceNumbers", &sidebusv1.ResubmitRequest{SequenceNumbers: []int64{-2}}),
		resubmit("more numbers than max", outOfRange, "sequenceNumbers", &sidebusv1.ResubmitRequest{SequenceNumbers: []int64{2, 3}, Max: proto.Int32(1)}),
		resubmit("too many numbers", outOfRange, "sequenceNumbers", &sidebusv1.ResubmitRequest{SequenceNumbers: ones(10001)}),
		resubmit("numbers and filter", "INVALID_ARGUMENT", "filter", &sidebusv1.ResubmitRequest{SequenceNumbers: []int64{2}, Filter: proto.String("1=1")}),
		resubmit("RULE-7 malformed filter", "FILTER_INVALID", "filter", filter("a = ")),
		resubmit("RULE-7 empty filter", "FILTER_INVALID", "filter", filter("")),
		resubmit("RULE-7 blank filter", "FILTER_INVALID", "filter", filter(" \n")),
		resubmit("SQL-4 unknown system property", "FILTER_INVALID", "filter", filter("sys.Nothing = 1")),
		resubmit("SQL-16 unknown parameter", "FILTER_INVALID", "filter", filter("a = @b")),
		resubmit("RULE-4 long filter", "FILTER_INVALID", "filter", filter("a = '"+strings.Repeat("x", 1024)+"'")),
		resubmit("unknown queue", "ENTITY_NOT_FOUND", "", &sidebusv1.ResubmitRequest{Source: absent}),
		resubmit("unknown target", "ENTITY_NOT_FOUND", "", target(absent)),
		resubmit("to an unknown topic", "ENTITY_NOT_FOUND", "", target("topics/t")),
		resubmit("to another subscription", "INVALID_OPERATION", "target", target("topics/t/subscriptions/s")),
		resubmit("other kind of target", "INVALID_ARGUMENT", "target", target("things/t")),
		resubmit("bare target", "INVALID_ARGUMENT", "target", target("orders")),
		resubmit("target without name", "INVALID_ARGUMENT", "target", target("queues/")),
		resubmit("malformed target", "INVALID_ARGUMENT", "name", target("queues/a b")),
		resubmit("DLQ-3 dead-letter queue as target", "INVALID_OPERATION", "", target(orders+"/$deadletterqueue")),
	}
}

func TestRefusalsOnBothWires(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		there := w.furnish(t)
		check := w.unchanged(t)
		all := slices.Concat(scheduleRefusals(), numbersRefusals(), settleRefusals(there.token), removeRefusals())
		for _, r := range all {
			if !t.Run(r.name, func(t *testing.T) { r.check(t, w.messages); check(t) }) {
				break // what follows would tell of the same change
			}
		}
		if w.broker.Held() != 1 {
			t.Errorf("%d held, want 1", w.broker.Held())
		}
	})
}

// Where in its text a filter is wrong is told in characters.
func TestFILTER_INVALID_NamesTheColumn(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		for text, column := range map[string]int{"a = ": 5, "é = 'x' AN b": 9, "(a = 1": 7, "sys.Nope = 1": 5, strings.Repeat(" ", 1025): 1025} {
			_, err := w.messages.Resubmit(t.Context(), &sidebusv1.ResubmitRequest{Source: orders, Filter: &text})
			if want := "column " + strconv.Itoa(column) + ":"; infoOf(t, err).GetReason() != "FILTER_INVALID" || !strings.Contains(status.Convert(err).Message(), want) {
				t.Errorf("%q: got %v, want %s", text, err, want)
			}
		}
	})
}

// What JSON cannot say, or says otherwise: see refusedFields.
func TestGRPCRefusalsOfVerbs(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	there := s.furnish(t)
	check := s.unchanged(t)
	const thing, badMode, badSub = "things/t", sidebusv1.ReceiveRequest_Mode(2), sidebusv1.SubQueue_Kind(-1)
	tokens, bad := []string{there.token}, "INVALID_ARGUMENT"
	broken := &durationpb.Duration{Seconds: 1, Nanos: -1}
	scheduled := func(at *timestamppb.Timestamp) *sidebusv1.SendRequest {
		return &sidebusv1.SendRequest{Target: orders, Messages: []*sidebusv1.Message{{ScheduledEnqueueTime: at}}}
	}
	all := []refusal{
		refuse("schedule: after all years", bad, "scheduledEnqueueTime", sending, scheduled(&timestamppb.Timestamp{Seconds: 253402300800})),
		refuse("schedule: before all years", bad, "scheduledEnqueueTime", sending, scheduled(&timestamppb.Timestamp{Seconds: -62135596801})),
		refuse("schedule: broken instant", bad, "scheduledEnqueueTime", sending, scheduled(&timestamppb.Timestamp{Nanos: -1})),
		refuse("cancel: unknown field", bad, "request", cancelling, unknownField(&sidebusv1.CancelScheduledRequest{Target: orders, SequenceNumbers: []int64{5}})),
		refuse("cancel: other kind", bad, "target", cancelling, &sidebusv1.CancelScheduledRequest{Target: thing, SequenceNumbers: []int64{5}}),
		refuse("receive deferred: unknown field", bad, "request", receivingDeferred, unknownField(&sidebusv1.ReceiveDeferredRequest{Source: orders, SequenceNumbers: []int64{1}})),
		refuse("receive deferred: other kind", bad, "source", receivingDeferred, &sidebusv1.ReceiveDeferredRequest{Source: thing}),
		refuse("receive deferred: unknown mode", bad, "mode", receivingDeferred, &sidebusv1.ReceiveDeferredRequest{Source: orders, SequenceNumbers: []int64{1}, Mode: badMode}),
		refuse("receive deferred: unknown sub-queue", bad, "subQueue", receivingDeferred, &sidebusv1.ReceiveDeferredRequest{Source: orders, SubQueue: badSub}),
		refuse("receive by sequence: unknown field", bad, "request", receivingByNumber, unknownField(&sidebusv1.ReceiveBySequenceRequest{Source: orders, SequenceNumbers: []int64{4}})),
		refuse("receive by sequence: unknown mode", bad, "mode", receivingByNumber, &sidebusv1.ReceiveBySequenceRequest{Source: orders, SequenceNumbers: []int64{4}, Mode: badMode}),
		refuse("peek: unknown group", bad, "include", peeking, &sidebusv1.PeekRequest{Source: orders, Include: []sidebusv1.PeekRequest_Include{0, 4}}),
		refuse("peek: negative group", bad, "include", peeking, &sidebusv1.PeekRequest{Source: orders, Include: []sidebusv1.PeekRequest_Include{-1}}),
		refuse("abandon: unknown field", bad, "request", abandoning, unknownField(&sidebusv1.AbandonRequest{Source: orders, LockTokens: tokens})),
		refuse("abandon: broken delay", bad, "delay", abandoning, &sidebusv1.AbandonRequest{Source: orders, LockTokens: tokens, Delay: broken}),
		refuse("abandon: property without value", bad, "properties[p]", abandoning, &sidebusv1.AbandonRequest{Source: orders, LockTokens: tokens, Properties: map[string]*sidebusv1.Value{"p": {}}}),
		refuse("defer: unknown field", bad, "request", deferring, unknownField(&sidebusv1.DeferRequest{Source: orders, LockTokens: tokens})),
		refuse("defer: property of unknown type", bad, "properties[p]", deferring, &sidebusv1.DeferRequest{Source: orders, LockTokens: tokens, Properties: map[string]*sidebusv1.Value{"p": unknownField(&sidebusv1.Value{})}}),
		refuse("dead-letter: unknown field", bad, "request", deadLettering, unknownField(&sidebusv1.DeadLetterRequest{Source: orders, LockTokens: tokens})),
		refuse("reactivate: unknown field", bad, "request", reactivating, unknownField(&sidebusv1.ReactivateRequest{Source: orders, SequenceNumbers: []int64{1}})),
		refuse("delete: unknown field", bad, "request", deleting, unknownField(&sidebusv1.DeleteBySequenceRequest{Source: orders, SequenceNumbers: []int64{1}})),
		refuse("purge: unknown field", bad, "request", purging, unknownField(&sidebusv1.PurgeRequest{Source: orders})),
		refuse("purge: unknown group", bad, "include", purging, &sidebusv1.PurgeRequest{Source: orders, Include: []sidebusv1.PurgeRequest_Include{4}}),
		refuse("purge: broken instant", bad, "before", purging, &sidebusv1.PurgeRequest{Source: orders, Before: &timestamppb.Timestamp{Nanos: 1e9}}),
		refuse("purge: unknown sub-queue", bad, "subQueue", purging, &sidebusv1.PurgeRequest{Source: orders, SubQueue: badSub}),
		refuse("resubmit: unknown field", bad, "request", resubmitting, unknownField(&sidebusv1.ResubmitRequest{Source: orders})),
		refuse("resubmit: unknown sub-queue", bad, "subQueue", resubmitting, &sidebusv1.ResubmitRequest{Source: orders, SubQueue: badSub.Enum()}),
		refuse("resubmit: other kind", bad, "source", resubmitting, &sidebusv1.ResubmitRequest{Source: thing}),
	}
	for _, r := range all {
		t.Run(r.name, func(t *testing.T) { r.check(t, s.messages); check(t) })
	}
}

func TestSTAT_2_DisabledQueuesOnBothWires(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		there := w.furnish(t)
		cases := map[string][]refusal{
			"RECEIVE_DISABLED": {
				refuse("receive deferred", "ENTITY_DISABLED", "", receivingDeferred, &sidebusv1.ReceiveDeferredRequest{Source: orders, SequenceNumbers: []int64{there.deferred}}),
				refuse("receive by sequence", "ENTITY_DISABLED", "", receivingByNumber, &sidebusv1.ReceiveBySequenceRequest{Source: orders, SequenceNumbers: []int64{there.available}}),
				refuse("reactivate", "ENTITY_DISABLED", "", reactivating, &sidebusv1.ReactivateRequest{Source: orders, SequenceNumbers: []int64{there.deferred}}),
				refuse("delete", "ENTITY_DISABLED", "", deleting, &sidebusv1.DeleteBySequenceRequest{Source: orders, SequenceNumbers: []int64{there.available}}),
				refuse("purge", "ENTITY_DISABLED", "", purging, &sidebusv1.PurgeRequest{Source: orders}),
				refuse("resubmit", "ENTITY_DISABLED", "", resubmitting, &sidebusv1.ResubmitRequest{Source: orders}),
			},
			"SEND_DISABLED": {
				refuse("cancel", "ENTITY_DISABLED", "", cancelling, &sidebusv1.CancelScheduledRequest{Target: orders, SequenceNumbers: []int64{there.scheduled}}),
				refuse("cancel by id", "ENTITY_DISABLED", "", cancelling, &sidebusv1.CancelScheduledRequest{Target: orders, MessageIds: []string{"a"}}),
				refuse("resubmit", "ENTITY_DISABLED", "", resubmitting, &sidebusv1.ResubmitRequest{Source: orders}),
			},
		}
		before := w.runtime(t)
		for condition, refusals := range cases {
			mustPatch(t, w.sidecar, `{"status":"`+condition+`"}`)
			for _, r := range refusals {
				t.Run(condition+" "+r.name, func(t *testing.T) { r.check(t, w.messages) })
			}
		}
		if after := w.runtime(t); !proto.Equal(before, after) {
			t.Errorf("something changed: %v, %v", before, after)
		}
		mustPatch(t, w.sidecar, `{"status":"DISABLED"}`) // unsettled messages may still be settled
		settled(t)(w.messages.Defer(t.Context(), &sidebusv1.DeferRequest{Source: orders, LockTokens: []string{there.token}}))
	})
}
