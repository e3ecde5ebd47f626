package storetest

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

var messageTests = []ruleTest{
	testMSG_1_MissingIDIsMade,
	testMSG_1_GivenIDIsKept,
	testMSG_2_IDsAreBounded,
	testMSG_2_EmptyKeysCountAsNotSet,
	testMSG_3_KeysMustAgree,
	testMSG_4_PropertiesOfBrokerNamesAreData,
	testMSG_5_NumbersRiseByOneFromOne,
	testMSG_6_FirstNumberIsTheNumber,
	testMSG_8_EnqueuedTimeIsTheStoresClock,
	testMSG_9_StateIsActive,
	testMSG_10_DeliveryCountOnReceiveAndPeek,
	testMSG_11_NoLockOnPeekAndReceiveAndDelete,
	testMSG_12_EveryPropertyTypeComesBack,
	testMSG_13_EveryFieldComesBack,
	testMSG_14_PropertyNames,
	testMSG_15_HeaderLimits,
	testMSG_20_MessageSizeLimit,
	testMSG_20_SizeCountsBodyAndProperties,
	testMSG_21_BatchSizeLimit,
	testMSG_22_RefusedSendLeavesNoTrace,
	testMSG_24_WhatOnlyAMQPHasIsKept,
}

func testMSG_1_MissingIDIsMade(t *testing.T, h *fixture) {
	h.create()
	results, err := h.broker.Send(t.Context(), semantics.ToQueue("orders"), []*semantics.Message{{}, {}})
	h.ok(err)
	for i, m := range h.receive(orders, 2) {
		h.same(m.MessageID, results[i].MessageID)
		id, err := semantics.ParseLockToken(m.MessageID)
		h.ok(err)
		if id[6]>>4 != 4 || id[8]>>6 != 2 {
			t.Errorf("made id %s is not a version 4 UUID", id)
		}
	}
	if results[0].MessageID == results[1].MessageID {
		t.Errorf("two messages got the same id %s", results[0].MessageID)
	}
}

func testMSG_1_GivenIDIsKept(t *testing.T, h *fixture) {
	h.create()
	results, err := h.broker.Send(t.Context(), semantics.ToQueue("orders"), []*semantics.Message{text("Mine")})
	h.ok(err)
	h.same(results, []semantics.SendResult{{Stored: semantics.Stored{SequenceNumber: 1}, MessageID: "Mine"}})
	h.same(h.receiveOne(orders).MessageID, "Mine")
}

func testMSG_2_IDsAreBounded(t *testing.T, h *fixture) {
	h.create()
	fields := map[string]func(m *semantics.Message, value string){
		"messageId":        func(m *semantics.Message, v string) { m.MessageID = v },
		"sessionId":        func(m *semantics.Message, v string) { m.SessionID = v },
		"partitionKey":     func(m *semantics.Message, v string) { m.PartitionKey = v },
		"correlationId":    func(m *semantics.Message, v string) { m.CorrelationID = v },
		"replyToSessionId": func(m *semantics.Message, v string) { m.ReplyToSessionID = v },
	}
	const clef = "\U0001D11E" // two UTF-16 units
	for field, set := range fields {
		for _, longest := range []string{strings.Repeat("x", 128), strings.Repeat("ü", 128), strings.Repeat(clef, 64)} {
			m := text("id")
			set(m, longest)
			h.send(m)
			tooLong := text("id")
			set(tooLong, longest+"x")
			err := h.refusedSend(semantics.InvalidArgument, tooLong)
			h.same(err.Details[semantics.DetailField], field)
		}
	}
}

func testMSG_2_EmptyKeysCountAsNotSet(t *testing.T, h *fixture) {
	h.create()
	h.send(&semantics.Message{MessageID: "a", SessionID: "s", PartitionKey: ""}, &semantics.Message{MessageID: "b", PartitionKey: "p"})
	got := h.receive(orders, 2)
	h.same([]string{got[0].SessionID, got[0].PartitionKey, got[1].SessionID, got[1].PartitionKey}, []string{"s", "", "", "p"})
}

func testMSG_3_KeysMustAgree(t *testing.T, h *fixture) {
	h.create()
	h.send(&semantics.Message{SessionID: "same", PartitionKey: "same"})
	h.refusedSend(semantics.PartitionKeyMismatch, &semantics.Message{SessionID: "one", PartitionKey: "other"})
	h.refusedSend(semantics.PartitionKeyMismatch, &semantics.Message{SessionID: "one", PartitionKey: "ONE"})
}

func testMSG_4_PropertiesOfBrokerNamesAreData(t *testing.T, h *fixture) {
	h.create()
	sent := text("a")
	sent.Properties = map[string]semantics.Value{
		semantics.PropertyDeadLetterReason:      semantics.Int64(7),
		semantics.PropertyDeadLetterDescription: semantics.String("mine"),
		"DeliveryCount":                         semantics.Int64(99),
		"SequenceNumber":                        semantics.Int64(99),
	}
	h.send(sent)
	got := h.receiveOne(orders)
	h.same(got.Properties, sent.Properties)
	if got.DeliveryCount != 1 || got.SequenceNumber != 1 || got.DeadLetterReason != "" || got.DeadLetterErrorDescription != "" {
		t.Errorf("properties of the sender were trusted: %+v", got)
	}
}

func testMSG_5_NumbersRiseByOneFromOne(t *testing.T, h *fixture) {
	h.create()
	h.same(h.send(text("a")), int64(1))
	h.same(h.send(text("b"), text("c")), int64(2))
	h.complete(orders, h.receive(orders, 3)...)
	h.same(h.send(text("d")), int64(4)) // numbers are not used again
	h.createNamed("other")
	results, err := h.broker.Send(t.Context(), semantics.ToQueue("other"), []*semantics.Message{text("a")})
	h.ok(err)
	h.same(results[0].SequenceNumber, int64(1)) // each queue counts for itself
}

func testMSG_6_FirstNumberIsTheNumber(_ *testing.T, h *fixture) {
	h.create()
	h.sendTexts(2)
	for _, m := range append(h.peek(orders), h.receive(orders, 2)...) {
		h.same(m.EnqueuedSequenceNumber, m.SequenceNumber)
	}
}

func testMSG_8_EnqueuedTimeIsTheStoresClock(_ *testing.T, h *fixture) {
	h.create()
	var sent []time.Time
	for range 3 {
		sent = append(sent, h.Now())
		h.sendTexts(1)
		h.Advance(7 * ms)
	}
	for i, m := range h.receive(orders, 3) {
		h.same(m.EnqueuedAt, sent[i])
	}
}

func testMSG_9_StateIsActive(t *testing.T, h *fixture) {
	h.create()
	h.sendTexts(2)
	locked := h.receiveOne(orders)
	h.deadLetter(h.receiveOne(orders))
	for _, m := range append(h.peek(orders), h.peek(deadOrders)[0], locked, h.receiveOne(deadOrders)) {
		if m.State != semantics.Active {
			t.Errorf("message %d is in state %d, want active", m.SequenceNumber, m.State)
		}
	}
}

func testMSG_10_DeliveryCountOnReceiveAndPeek(_ *testing.T, h *fixture) {
	h.create()
	h.sendTexts(1)
	for stored := range 4 {
		h.same(h.peek(orders)[0].DeliveryCount, stored)
		got := h.receiveOne(orders)
		h.same(got.DeliveryCount, stored+1)
		h.same(h.peek(orders)[0].DeliveryCount, stored) // a lock is not yet a delivery
		h.abandon(orders, got)
	}
}

func testMSG_11_NoLockOnPeekAndReceiveAndDelete(t *testing.T, h *fixture) {
	h.create()
	h.sendTexts(2)
	h.receiveOne(orders)
	taken, err := h.broker.Receive(t.Context(), orders, broker.ReceiveOptions{MaxMessages: 1, Mode: semantics.ReceiveAndDelete})
	h.ok(err)
	for _, m := range append(h.peek(orders), taken.Messages...) {
		if !m.LockToken.IsZero() || !m.LockedUntil.IsZero() {
			t.Errorf("message %d shows lock %s until %s", m.SequenceNumber, m.LockToken, m.LockedUntil)
		}
	}
	h.ok(taken.Delivered(t.Context()))
}

func testMSG_12_EveryPropertyTypeComesBack(_ *testing.T, h *fixture) {
	h.create()
	integer := func(typ semantics.ValueType, n int64) semantics.Value {
		v, err := semantics.IntegerOf(typ, n)
		h.ok(err)
		return v
	}
	textual := func(typ semantics.ValueType, s string) semantics.Value {
		v, err := semantics.TextOf(typ, s)
		h.ok(err)
		return v
	}
	properties := map[string]semantics.Value{
		"null": semantics.Null(), "string": semantics.String("Grüße\x00\n\U0001D11E"), "empty": semantics.String(""),
		"true": semantics.Bool(true), "false": semantics.Bool(false),
		"byte": integer(semantics.TypeByte, 255), "sbyte": integer(semantics.TypeSByte, -128),
		"char":  integer(semantics.TypeChar, 0x1D11E),
		"int16": integer(semantics.TypeInt16, math.MinInt16), "uint16": integer(semantics.TypeUint16, math.MaxUint16),
		"int32": integer(semantics.TypeInt32, math.MinInt32), "uint32": integer(semantics.TypeUint32, math.MaxUint32),
		// Numbers that a store which goes through floating point would not bring back.
		"int64": semantics.Int64(math.MaxInt64), "int64low": semantics.Int64(math.MinInt64), "int64odd": semantics.Int64(1<<53 + 1),
		"uint64": semantics.Uint64(math.MaxUint64),
		"float":  semantics.Float(0.1), "double": semantics.Double(math.Pi), "tiny": semantics.Double(math.SmallestNonzeroFloat64),
		"minus zero": semantics.Double(math.Copysign(0, -1)), "infinite": semantics.Double(math.Inf(-1)), "nan": semantics.Double(math.NaN()),
		"decimal": textual(semantics.TypeDecimal, "-12345678901234567890.1200"),
		"uuid":    textual(semantics.TypeUUID, "6BA7B810-9dad-11d1-80b4-00c04fd430c8"),
		"uri":     textual(semantics.TypeURI, "urn:a?b#c"),
		"instant": textual(semantics.TypeDateTime, "2026-02-03T04:05:06.7890123Z"),
		"offset":  textual(semantics.TypeDateTimeOffset, "2026-02-03T04:05:06.789+05:30"),
		"span":    integer(semantics.TypeTimeSpan, math.MinInt64),
		"bytes":   semantics.Bytes([]byte{0, 255, 128, 10}), "no bytes": semantics.Bytes(nil),
		"Ключ с пробелом": semantics.String("name"),
	}
	sent := text("a")
	sent.Properties = properties
	h.send(sent)
	h.same(h.peek(orders)[0].Properties, properties)
	got := h.receiveOne(orders)
	h.same(got.Properties, properties)
	h.deadLetter(got)
	dead := h.receiveOne(deadOrders)
	for name, want := range properties {
		if dead.Properties[name] != want {
			h.t.Errorf("dead letter has %s = %v, want %v", name, dead.Properties[name], want)
		}
	}
}

func testMSG_13_EveryFieldComesBack(_ *testing.T, h *fixture) {
	h.create()
	binary := make([]byte, 512)
	for i := range binary {
		binary[i] = byte(i)
	}
	messages := []*semantics.Message{
		{
			MessageID: "id", SessionID: "s", PartitionKey: "s", CorrelationID: "c", Subject: "Betreff: ß", To: "to", ReplyTo: "back",
			ReplyToSessionID: "rs", ContentType: "application/json", Properties: map[string]semantics.Value{"A": semantics.Int64(1)},
			Body: []byte(`{"a":1}`), BodyKind: semantics.BodyJSON,
		},
		{MessageID: "binary", Body: binary, BodyKind: semantics.BodyBytes},
		{MessageID: "text", Body: []byte("text"), BodyKind: semantics.BodyText},
		{MessageID: "empty", BodyKind: semantics.BodyText},
	}
	h.send(messages...)
	peeked, received := h.peek(orders), h.receive(orders, len(messages))
	for i, want := range messages {
		h.same(&peeked[i].Message, want)
		h.same(&received[i].Message, want)
	}
	h.deadLetter(received[0])
	got := h.receiveOne(deadOrders).Message
	delete(got.Properties, semantics.PropertyDeadLetterReason)
	delete(got.Properties, semantics.PropertyDeadLetterDescription)
	h.same(&got, messages[0])
}

func testMSG_14_PropertyNames(_ *testing.T, h *fixture) {
	h.create()
	named := func(names ...string) *semantics.Message {
		m := text("a")
		m.Properties = map[string]semantics.Value{}
		for _, name := range names {
			m.Properties[name] = semantics.Null()
		}
		return m
	}
	h.send(named(strings.Repeat("n", 128), "Name", "name2"))
	h.refusedSend(semantics.InvalidArgument, named(""))
	h.refusedSend(semantics.InvalidArgument, named(strings.Repeat("n", 129)))
	h.refusedSend(semantics.InvalidArgument, named("Name", "nAME"))
	if _, kept := h.receiveOne(orders).Properties["Name"]; !kept {
		h.t.Error("the case of a property name was not kept")
	}
}

func testMSG_15_HeaderLimits(_ *testing.T, h *fixture) {
	h.create()
	with := func(values ...int) *semantics.Message {
		m := &semantics.Message{MessageID: "i", Properties: map[string]semantics.Value{}}
		for i, n := range values {
			m.Properties[string(rune('a'+i))] = semantics.Bytes(make([]byte, n))
		}
		return m
	}
	h.send(with(semantics.MaxPropertyValueSize))
	h.refusedSend(semantics.MessageSizeExceeded, with(semantics.MaxPropertyValueSize+1))
	// The id and three names take 4 bytes.
	rest := semantics.MaxHeaderSize - semantics.MaxPropertyValueSize - 1000 - 4
	h.send(with(semantics.MaxPropertyValueSize, 1000, rest))
	h.refusedSend(semantics.MessageSizeExceeded, with(semantics.MaxPropertyValueSize, 1000, rest+1))
	for name, set := range map[string]func(m *semantics.Message, text string){
		"subject": func(m *semantics.Message, text string) { m.Subject = text }, "to": func(m *semantics.Message, text string) { m.To = text },
		"replyTo":     func(m *semantics.Message, text string) { m.ReplyTo = text },
		"contentType": func(m *semantics.Message, text string) { m.ContentType = text },
	} {
		m := with(semantics.MaxPropertyValueSize, 1000, rest-10)
		set(m, strings.Repeat("x", 10)) // headers count with the properties
		h.send(m)
		set(m, strings.Repeat("x", 11))
		err := h.refusedSend(semantics.MessageSizeExceeded, m)
		if err.Details[semantics.DetailLimit] != strconv.Itoa(semantics.MaxHeaderSize) {
			h.t.Errorf("%s: got %v", name, err)
		}
	}
}

func testMSG_20_MessageSizeLimit(_ *testing.T, h *fixture) {
	h.create(func(o *semantics.Options) { o.MaxMessageSizeInKilobytes = 2 })
	h.send(sized(2048))
	err := h.refusedSend(semantics.MessageSizeExceeded, sized(2049))
	h.same([]string{err.Details[semantics.DetailActual], err.Details[semantics.DetailLimit]}, []string{"2049", "2048"})
	h.update(func(o *semantics.Options) { o.MaxMessageSizeInKilobytes = 3 }, "maxMessageSizeInKilobytes")
	h.send(sized(3072))
	h.refusedSend(semantics.MessageSizeExceeded, sized(3073))
}

func testMSG_20_SizeCountsBodyAndProperties(_ *testing.T, h *fixture) {
	h.create()
	m := &semantics.Message{
		MessageID: "1", Subject: "22", CorrelationID: "333", Body: []byte("55555"),
		Properties: map[string]semantics.Value{"7777777": semantics.Int64(0)}, // and 8 for the value
	}
	h.send(m)
	const want = 1 + 2 + 3 + 5 + 7 + 8
	h.same([]int64{m.Size(), h.peek(orders)[0].Size, h.receiveOne(orders).Size, h.runtime().SizeInBytes}, []int64{want, want, want, want})
}

func testMSG_21_BatchSizeLimit(_ *testing.T, h *fixture) {
	h.create() // messages of at most 256 KiB
	h.send(sized(semantics.SmallBatchSize/2), sized(semantics.SmallBatchSize/2))
	h.refusedSend(semantics.MessageSizeExceeded, sized(semantics.SmallBatchSize/2), sized(semantics.SmallBatchSize/2+1))
	h.send(sized(semantics.SmallBatchSize))

	h.update(func(o *semantics.Options) { o.MaxMessageSizeInKilobytes = 2048 }, "maxMessageSizeInKilobytes")
	h.send(sized(semantics.MaxBatchSize/2), sized(semantics.MaxBatchSize/2))
	h.refusedSend(semantics.MessageSizeExceeded, sized(semantics.MaxBatchSize/2), sized(semantics.MaxBatchSize/2+1))
	h.send(sized(2 * semantics.MaxBatchSize)) // the limit of batches does not bind a message alone
}

func testMSG_22_RefusedSendLeavesNoTrace(_ *testing.T, h *fixture) {
	h.create(func(o *semantics.Options) { o.MaxMessageSizeInKilobytes = 1 })
	h.send(sized(1024))
	accessed, err := h.Store.GetEntity(h.t.Context(), semantics.QueueKind, "orders")
	h.ok(err)
	h.Advance(ms)
	_, err = h.broker.Send(h.t.Context(), semantics.ToQueue("orders"), []*semantics.Message{text("good"), sized(1025)})
	h.wantCode(err, semantics.MessageSizeExceeded)
	after, err := h.Store.GetEntity(h.t.Context(), semantics.QueueKind, "orders")
	h.ok(err)
	h.same(after, accessed)
	h.refusedSend(semantics.MessageSizeExceeded, sized(1025))
	h.same(h.send(sized(1024)), int64(2)) // no number was used up
}

func testMSG_24_WhatOnlyAMQPHasIsKept(_ *testing.T, h *fixture) {
	h.create()
	kept := []byte{2, 0, 0xff, 'x'}
	alone, scheduled := text("alone"), text("scheduled")
	alone.AMQP, scheduled.AMQP, scheduled.ScheduledAt = kept, kept, h.in(time.Hour)
	h.send(alone)
	h.send(text("first"), scheduled, text("last")) // small messages may share an entry
	h.same(h.peek(orders)[0].Size, alone.Size())
	h.same(alone.Size(), text("alone").Size()+int64(len(kept)))
	m := h.receiveOne(orders)
	h.same(m.AMQP, kept)
	h.deadLetter(m)
	h.same(h.receiveOne(deadOrders).AMQP, kept)
	h.Advance(time.Hour)
	for _, m := range h.receive(orders, 3) {
		want := []byte(nil)
		if m.MessageID == "scheduled" {
			want = kept
		}
		h.same(m.AMQP, want)
	}
	large := text("large")
	large.AMQP = make([]byte, semantics.MaxHeaderSize+1)
	h.refusedSend(semantics.MessageSizeExceeded, large)
}
