package storetest

import (
	"testing"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

var modifiedTests = []ruleTest{
	testSETTLE_5_SetAndOverwrite,
	testSETTLE_5_StayWithTheMessage,
	testSETTLE_5_SizeAndQuotaFollow,
	testSETTLE_5_BrokerPropertiesAreRefused,
	testSETTLE_5_HeaderLimitKeepsTheLock,
	testSETTLE_5_NamesThatDifferInCase,
	testSETTLE_5_CodePerToken,
	testSETTLE_5_MalformedIsRefusedWhole,
	testSETTLE_5_InTheDeadLetterQueue,
	testSETTLE_6_TextsInTheMap,
	testSETTLE_6_MapAndArgumentMustAgree,
	testSETTLE_6_NoTexts,
	testSETTLE_7_ReasonThatIsNoString,
	testSCHED_11_SettlementCannotSchedule,
}

type properties = map[string]semantics.Value

// modifiers are the verbs that take modified properties, on a source.
func (h *fixture) modifiers(source semantics.Source) map[string]func(p properties, m ...*semantics.Received) ([]semantics.Code, error) {
	verbs := map[string]func(p properties, m ...*semantics.Received) ([]semantics.Code, error){
		"abandon": func(p properties, m ...*semantics.Received) ([]semantics.Code, error) {
			return h.broker.Abandon(h.t.Context(), source, tokensOf(m...), semantics.AbandonOptions{Properties: p})
		},
		"defer": func(p properties, m ...*semantics.Received) ([]semantics.Code, error) {
			return h.broker.Defer(h.t.Context(), source, tokensOf(m...), p)
		},
	}
	if source == orders {
		verbs["dead-letter"] = func(p properties, m ...*semantics.Received) ([]semantics.Code, error) {
			return h.broker.DeadLetter(h.t.Context(), source, tokensOf(m...), broker.DeadLetterOptions{Properties: p})
		}
	}
	return verbs
}

// only returns the one message that is left, wherever it is.
func (h *fixture) only() *semantics.Received {
	h.t.Helper()
	rows := append(h.peek(orders), h.peek(deadOrders)...)
	if len(rows) != 1 {
		h.t.Fatalf("there are %d messages, want 1", len(rows))
	}
	return rows[0]
}

// without leaves the dead-letter texts out.
func without(p properties) properties {
	rest := properties{}
	for name, value := range p {
		if name != semantics.PropertyDeadLetterReason && name != semantics.PropertyDeadLetterDescription {
			rest[name] = value
		}
	}
	return rest
}

func with(p properties) *semantics.Message {
	m := text("a")
	m.Properties = p
	return m
}

func testSETTLE_5_SetAndOverwrite(_ *testing.T, h *fixture) {
	for _, verb := range h.modifiers(orders) {
		h.create()
		h.send(with(properties{"kept": semantics.Int64(1), "changed": semantics.String("old"), "Nulled": semantics.Bool(true)}))
		codes, err := verb(properties{"changed": semantics.Double(2.5), "Nulled": semantics.Null(), "new": semantics.Bytes([]byte{0, 255})}, h.receiveOne(orders))
		h.settled(codes, err)
		h.same(without(h.only().Properties), properties{
			"kept": semantics.Int64(1), "changed": semantics.Double(2.5),
			"Nulled": semantics.Null(), // set to null, not removed
			"new":    semantics.Bytes([]byte{0, 255}),
		})
		h.drop()

		h.create() // one that had none, and none given
		h.send(text("a"))
		codes, err = verb(nil, h.receiveOne(orders))
		h.settled(codes, err)
		h.same(without(h.only().Properties), properties{})
		h.drop()
	}
}

func testSETTLE_5_StayWithTheMessage(_ *testing.T, h *fixture) {
	h.create(deliversAtMost(3))
	h.send(with(properties{"n": semantics.Int64(0)}), text("other"))
	verbs := h.modifiers(orders)
	codes, err := verbs["abandon"](properties{"n": semantics.Int64(1), "a": semantics.Bool(true)}, h.receiveOne(orders))
	h.settled(codes, err)
	got := h.receiveOne(orders)
	h.same(got.Properties, properties{"n": semantics.Int64(1), "a": semantics.Bool(true)})
	h.release(orders, got)
	codes, err = verbs["defer"](properties{"n": semantics.Int64(2)}, h.receiveOne(orders))
	h.settled(codes, err)
	got = h.takeDeferred(orders, 1)[0]
	want := properties{"n": semantics.Int64(2), "a": semantics.Bool(true)}
	h.same(got.Properties, want)
	h.Advance(lock) // the end of a lock changes none
	h.same(h.row(orders, 1).Properties, want)
	// the last delivery
	codes, err = verbs["abandon"](properties{"n": semantics.Int64(3)}, h.takeDeferred(orders, 1)...)
	h.settled(codes, err)
	want["n"] = semantics.Int64(3)
	h.same(without(h.row(deadOrders, 1).Properties), want)
	h.same(without(h.receiveOne(deadOrders).Properties), want)
	h.same(h.row(orders, 2).Properties, properties{})
}

func testSETTLE_5_SizeAndQuotaFollow(_ *testing.T, h *fixture) {
	for name, verb := range h.modifiers(orders) {
		h.create(megabytes(1))
		m := with(properties{"a": semantics.String("12345"), "b": semantics.Int64(1)})
		h.send(m)
		codes, err := verb(properties{"a": semantics.String("1"), "ccc": semantics.String("12")}, h.receiveOne(orders))
		h.settled(codes, err)
		want := m.Size() - 4 + 5
		h.same([]int64{h.only().Size, h.runtime().SizeInBytes}, []int64{want, want})
		h.refusedSend(semantics.EntityFull, sized(mebibyte-want+1))
		h.send(sized(mebibyte - want))
		if name == "defer" {
			// never refused for size (QUOTA-13)
			codes, err = verb(properties{"a": semantics.String("123")}, h.takeDeferred(orders, 1)...)
			h.settled(codes, err)
			h.same(h.runtime().SizeInBytes, int64(mebibyte+2))
		}
		h.Advance(ms)
		h.purge(orders, broker.PurgeOptions{Deferred: true, DeadLetters: true})
		h.same(h.runtime(), semantics.Runtime{})
		h.drop()
	}
}

func testSETTLE_5_BrokerPropertiesAreRefused(_ *testing.T, h *fixture) {
	h.create()
	h.sendTexts(1)
	got := h.receiveOne(orders)
	reserved := []string{
		"MessageId", "SessionId", "PartitionKey", "CorrelationId", "Subject", "Label", "To", "ReplyTo", "ReplyToSessionId", "ContentType",
		"TimeToLive", "ScheduledEnqueueTime", "SequenceNumber", "EnqueuedSequenceNumber", "EnqueuedTime", "ExpiresAt", "DeliveryCount",
		"LockToken", "LockedUntil", "State", "DeadLetterSource", "DeadLetteredTime", "Size",
	}
	for verb, modify := range h.modifiers(orders) {
		names := reserved
		if verb != "dead-letter" { // where these two are what is asked for (SETTLE-6)
			names = append(names, semantics.PropertyDeadLetterReason, semantics.PropertyDeadLetterDescription)
		}
		for _, name := range names {
			h.refused(semantics.InvalidArgument, func() error {
				_, err := modify(properties{"good": semantics.Null(), name: semantics.String("x")}, got)
				return err
			})
		}
	}
	codes, err := h.modifiers(orders)["defer"](properties{"MessageIds": semantics.Null()}, got)
	h.settled(codes, err)
}

// filler is a property value so large that the message "a" with it has headers of n bytes.
func filler(n int) properties {
	const id, names = 1, 3
	return properties{
		"p": semantics.Bytes(make([]byte, semantics.MaxPropertyValueSize)),
		"q": semantics.Bytes(make([]byte, n-semantics.MaxPropertyValueSize-id-names)), "r": semantics.Null(),
	}
}

func testSETTLE_5_HeaderLimitKeepsTheLock(_ *testing.T, h *fixture) {
	for _, verb := range h.modifiers(orders) {
		h.create()
		h.send(with(filler(semantics.MaxHeaderSize - 3)))
		got := h.receiveOne(orders)
		before := h.snapshot()
		codes, err := verb(properties{"r": semantics.String("1234")}, got)
		h.wantCodes(codes, err, semantics.MessageSizeExceeded)
		h.same(h.snapshot(), before)
		h.same(h.renew(orders, got).Code, semantics.Code("")) // the lock stays
		codes, err = verb(properties{"r": semantics.String("123")}, got)
		h.settled(codes, err)
		h.same(h.only().Size, int64(semantics.MaxHeaderSize+1)) // the body is one byte
		h.drop()
	}
}

func testSETTLE_5_NamesThatDifferInCase(_ *testing.T, h *fixture) {
	for _, verb := range h.modifiers(orders) {
		h.create()
		h.send(with(properties{"Name": semantics.Int64(1)}))
		got := h.receiveOne(orders)
		before := h.snapshot()
		codes, err := verb(properties{"nAME": semantics.Int64(2)}, got)
		h.wantCodes(codes, err, semantics.InvalidArgument)
		h.same(h.snapshot(), before)
		codes, err = verb(properties{"Name": semantics.Int64(2)}, got)
		h.settled(codes, err)
		h.drop()
	}
}

func testSETTLE_5_CodePerToken(_ *testing.T, h *fixture) {
	for _, verb := range h.modifiers(orders) {
		h.create()
		h.send(with(filler(semantics.MaxHeaderSize)), text("b"), with(properties{"R": semantics.Null()}), text("d"), with(filler(semantics.MaxHeaderSize)))
		got := h.receive(orders, 5)
		h.complete(orders, got[4])
		codes, err := verb(properties{"r": semantics.Int64(1)}, got[0], got[1], got[2], got[3], got[4], got[0], got[1])
		h.wantCodes(codes, err,
			semantics.MessageSizeExceeded, "", semantics.InvalidArgument, "",
			semantics.MessageLockLost, // before anything else
			semantics.MessageSizeExceeded, semantics.MessageLockLost)
		h.same(h.counts().Locked, int64(2))
		h.complete(orders, got[0], got[2])
		h.drop()
	}
}

func testSETTLE_5_MalformedIsRefusedWhole(_ *testing.T, h *fixture) {
	h.create()
	h.sendTexts(1)
	got := h.receiveOne(orders)
	for _, verb := range h.modifiers(orders) {
		for _, bad := range []properties{{"": semantics.Null()}, {"a": semantics.Null(), "A": semantics.Null()}, {"a": semantics.String("\xff")}} {
			h.refused(semantics.InvalidArgument, func() error { _, err := verb(bad, got); return err })
		}
		h.refused(semantics.MessageSizeExceeded, func() error {
			_, err := verb(properties{"a": semantics.Bytes(make([]byte, semantics.MaxPropertyValueSize+1))}, got)
			return err
		})
		h.refused(semantics.MessageSizeExceeded, func() error { _, err := verb(filler(semantics.MaxHeaderSize+2), got); return err })
	}
}

func testSETTLE_5_InTheDeadLetterQueue(_ *testing.T, h *fixture) {
	h.create()
	h.deadLetterTexts("a")
	for name, verb := range h.modifiers(deadOrders) {
		codes, err := verb(properties{name: semantics.Int64(1)}, h.receiveOne(deadOrders))
		h.settled(codes, err)
		if name == "defer" {
			h.ok(h.reactivate(deadOrders, 1))
		}
	}
	got := h.receiveOne(deadOrders)
	h.same(got.Properties, properties{
		"abandon": semantics.Int64(1), "defer": semantics.Int64(1),
		semantics.PropertyDeadLetterReason: semantics.String("poison"), semantics.PropertyDeadLetterDescription: semantics.String("cannot be read"),
	})
	h.same(h.runtime().SizeInBytes, int64(2+7+8+5+8))
}

func testSETTLE_6_TextsInTheMap(_ *testing.T, h *fixture) {
	h.create()
	h.send(with(properties{semantics.PropertyDeadLetterReason: semantics.Int64(7)}))
	codes, err := h.modifiers(orders)["dead-letter"](properties{
		semantics.PropertyDeadLetterReason: semantics.String("why"), semantics.PropertyDeadLetterDescription: semantics.String("how"), "p": semantics.Null(),
	}, h.receiveOne(orders))
	h.settled(codes, err)
	for _, dead := range []*semantics.Received{h.row(deadOrders, 1), h.receiveOne(deadOrders)} {
		h.same([]string{dead.DeadLetterReason, dead.DeadLetterErrorDescription}, []string{"why", "how"})
		h.same(dead.Properties, properties{
			semantics.PropertyDeadLetterReason: semantics.String("why"), semantics.PropertyDeadLetterDescription: semantics.String("how"), "p": semantics.Null(),
		})
	}
}

func testSETTLE_6_MapAndArgumentMustAgree(t *testing.T, h *fixture) {
	h.create()
	h.sendTexts(1)
	got := h.receiveOne(orders)
	deadLetter := func(p properties) error {
		options := why("why", "how")
		options.Properties = p
		codes, err := h.broker.DeadLetter(t.Context(), orders, tokensOf(got), options)
		if err == nil {
			h.settled(codes, err)
		}
		return err
	}
	for _, p := range []properties{
		{semantics.PropertyDeadLetterReason: semantics.String("Why")},
		{semantics.PropertyDeadLetterReason: semantics.Null()},
		{semantics.PropertyDeadLetterReason: semantics.String("why"), semantics.PropertyDeadLetterDescription: semantics.Int64(1)},
	} {
		h.refused(semantics.InvalidArgument, func() error { return deadLetter(p) })
	}
	h.ok(deadLetter(properties{semantics.PropertyDeadLetterReason: semantics.String("why"), semantics.PropertyDeadLetterDescription: semantics.String("how")}))
	dead := h.row(deadOrders, 1)
	h.same([]string{dead.DeadLetterReason, dead.DeadLetterErrorDescription}, []string{"why", "how"})
}

func testSETTLE_6_NoTexts(t *testing.T, h *fixture) {
	h.create()
	h.sendTexts(1)
	codes, err := h.broker.DeadLetter(t.Context(), orders, tokensOf(h.receiveOne(orders)), broker.DeadLetterOptions{})
	h.settled(codes, err)
	dead := h.row(deadOrders, 1)
	h.same([]string{dead.DeadLetterReason, dead.DeadLetterErrorDescription}, []string{"", ""}) // as DLQ-12 permits
}

func testSETTLE_7_ReasonThatIsNoString(_ *testing.T, h *fixture) {
	h.create()
	h.sendTexts(1)
	p := properties{semantics.PropertyDeadLetterReason: semantics.Int64(42), semantics.PropertyDeadLetterDescription: semantics.String("how")}
	codes, err := h.modifiers(orders)["dead-letter"](p, h.receiveOne(orders))
	h.settled(codes, err)
	for _, dead := range []*semantics.Received{h.row(deadOrders, 1), h.receiveOne(deadOrders)} {
		h.same([]string{dead.DeadLetterReason, dead.DeadLetterErrorDescription}, []string{"", "how"})
		h.same(dead.Properties, p)
	}
}

func testSCHED_11_SettlementCannotSchedule(_ *testing.T, h *fixture) {
	h.create()
	h.sendTexts(1)
	at, err := semantics.TextOf(semantics.TypeDateTime, "2999-01-01T00:00:00Z")
	h.ok(err)
	got := h.receiveOne(orders)
	for _, verb := range h.modifiers(orders) {
		h.refused(semantics.InvalidArgument, func() error {
			_, err := verb(properties{"ScheduledEnqueueTime": at}, got)
			return err
		})
	}
	codes, err := h.modifiers(orders)["abandon"](properties{"scheduledAt": at}, got) // a property like any other
	h.settled(codes, err)
	h.receiveOne(orders)
}
