package proxy_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics/memstore"
)

func TestRECV_13_DeliversAndSettles(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	c := s.subscribe(t, ordersOpen(2))
	for _, m := range []string{"1", "2", "3"} {
		s.send(t, m)
	}
	c.wants("1 2")
	if got := s.countsOf(t, orders); got != "available 1 locked 2 dead 0" {
		t.Errorf("got %s", got)
	}
	c.complete("1", "2")
	c.wants("3")
	c.complete("3")
	s.counted(t, orders, "available 0 locked 0 dead 0")
	s.eventuallyCounts(t, 3, "sidebus_messages_received_total", `entity="orders"`)
	s.eventuallyCounts(t, 3, "sidebus_messages_settled_total", `entity="orders"`, `outcome="complete"`)
}

// Without options: one message at a time. The answer to the opening says what the queue is.
func TestRECV_13_DefaultsOnTheWire(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	s.openTales(t, "")
	for source, has := range map[string]bool{orders: false, tales: true} {
		c := s.dialStream(t)
		opened := c.ask(&sidebusv1.SubscribeRequest{
			RequestId: "my id", Request: &sidebusv1.SubscribeRequest_Open{Open: &sidebusv1.SubscribeOpen{Source: source}},
		})
		if opened.GetOpened() == nil || opened.GetOpened().GetSessions() != has {
			t.Errorf("%s: got %v", source, opened)
		}
	}
	for _, m := range []string{"1", "2"} {
		s.send(t, m)
	}
	s.counted(t, orders, "available 1 locked 1 dead 0")
}

// What a delivery has is what a receive has.
func TestRECV_13_MessageIsWhole(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	s.openTales(t, "")
	m := inSession("a", "text")
	m.Subject, m.CorrelationId = proto.String("subject"), proto.String("correlation")
	m.Properties = map[string]*sidebusv1.Value{"n": int32Value(7)}
	sent, err := s.messages.Send(t.Context(), &sidebusv1.SendRequest{Target: tales, Messages: []*sidebusv1.Message{m}})
	if err != nil {
		t.Fatal(err)
	}
	c := s.subscribe(t, talesOpen(1, 1))
	opened := c.next().GetSessionOpened()
	delivery := c.next().GetDeliveries().GetDeliveries()[0]
	got := delivery.GetMessages()[0]
	switch {
	case opened.GetSessionId() != "a" || opened.GetLockedUntil() == nil || opened.State != nil || delivery.GetSessionLockToken() != opened.GetLockToken():
		t.Errorf("session %v, delivery with %s", opened, delivery.GetSessionLockToken())
	case got.GetText() != "text" || got.GetSubject() != "subject" || got.GetCorrelationId() != "correlation" || got.GetProperties()["n"].GetInt32Value() != 7,
		got.GetSequenceNumber() != sent.GetResults()[0].GetSequenceNumber() || got.GetSessionSequence() != 1 || got.GetDeliveryCount() != 1,
		got.GetLockToken() == "" || got.GetLockedUntil() == nil || got.GetSessionId() != "a" || got.GetMessageId() == "":
		t.Errorf("got %v", got)
	}
}

func TestSETTLE_1_EveryVerbOnAStream(t *testing.T) {
	t.Parallel()
	at := newClock()
	s := start(t, memstore.New(memstore.WithClock(at.Now)))
	c := s.subscribe(t, ordersOpen(10))
	for _, m := range []string{"complete", "abandon", "delay", "release", "defer", "deadLetter"} {
		s.send(t, m)
	}
	c.wants("complete abandon delay release defer deadLetter")
	changes := map[string]*sidebusv1.Value{"tries": int32Value(1)}
	c.settle(completion(), "complete")
	c.settle(&sidebusv1.SubscribeSettle{Verb: &sidebusv1.SubscribeSettle_Abandon{Abandon: &sidebusv1.AbandonRequest{
		Delay: durationpb.New(30 * time.Second), Properties: changes,
	}}}, "delay")
	c.settle(&sidebusv1.SubscribeSettle{Verb: &sidebusv1.SubscribeSettle_Defer{Defer: &sidebusv1.DeferRequest{Properties: changes}}}, "defer")
	c.settle(&sidebusv1.SubscribeSettle{Verb: &sidebusv1.SubscribeSettle_DeadLetter{DeadLetter: &sidebusv1.DeadLetterRequest{
		Reason: proto.String("Broken"), Description: proto.String("in two"), Properties: changes,
	}}}, "deadLetter")
	c.settle(&sidebusv1.SubscribeSettle{Verb: &sidebusv1.SubscribeSettle_Abandon{Abandon: &sidebusv1.AbandonRequest{}}}, "abandon")
	c.wants("abandon")
	c.settle(&sidebusv1.SubscribeSettle{Verb: &sidebusv1.SubscribeSettle_Release{Release: &sidebusv1.ReleaseRequest{}}}, "release")
	c.wants("release")
	s.counted(t, orders, "available 1 locked 2 dead 1") // the one that is delayed
	s.wantPeeked(t, orders, "abandon:1 delay:1 release:0 defer:0")
	seen, err := s.messages.Peek(t.Context(), &sidebusv1.PeekRequest{Source: orders, MaxMessages: proto.Int32(10)})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range seen.GetMessages() {
		if want := m.GetText() == "delay" || m.GetText() == "defer"; want != (m.GetProperties()["tries"].GetInt32Value() == 1) {
			t.Errorf("%s has %v", m.GetText(), m.GetProperties())
		}
	}
	letter := s.peek(t, sidebusv1.SubQueue_DEAD_LETTER)[0]
	if letter.GetDeadLetterReason() != "Broken" || letter.GetDeadLetterErrorDescription() != "in two" || letter.GetProperties()["tries"] == nil {
		t.Errorf("got %v", letter)
	}
	at.advance(30 * time.Second)
	s.send(t, "now") // which makes the stream look
	c.wants("delay now")
}

// The order of a delayed message in its session, which SkipOrder gives up.
func TestSETTLE_11_DelayInASession(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	s.openTales(t, "")
	p := s.publish(t)
	p.send(publication(tales, "a/1", "a/2"), publication(tales, "b/1", "b/2"))
	c := s.subscribe(t, talesOpen(2, 1))
	c.wants("+a a/1 +b b/1")
	for text, skips := range map[string]bool{"a/1": false, "b/1": true} {
		c.settle(&sidebusv1.SubscribeSettle{Verb: &sidebusv1.SubscribeSettle_Abandon{Abandon: &sidebusv1.AbandonRequest{
			Delay: durationpb.New(time.Hour), SkipOrder: skips,
		}}}, text)
	}
	c.wants("b/2")
	s.counted(t, tales, "available 3 locked 1 dead 0")
}

func TestSETTLE_14_SeveralSessionsOnAStream(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	s.openTales(t, "")
	s.publish(t).send(publication(tales, "a/1", "b/1", "c/1"))
	c := s.subscribe(t, talesOpen(3, 1))
	c.wants("+a a/1 +b b/1 +c c/1")
	c.complete("a/1", "b/1")
	c.hand["unknown"] = "5b5ef8a1-57a5-4e2c-a9f0-0a4c2d4e5f60"
	response := c.ask(c.settling(completion(), "unknown", "c/1", "a/1"))
	rows := response.GetSettled().GetResults()
	if len(rows) != 3 || rows[0].GetReason() != "MESSAGE_LOCK_LOST" || rows[1].Reason != nil || rows[2].GetReason() != "MESSAGE_LOCK_LOST" {
		t.Errorf("got %v", response)
	}
	for i, text := range []string{"unknown", "c/1", "a/1"} {
		if rows[i].GetLockToken() != c.hand[text] {
			t.Errorf("row %d is of %s", i, rows[i].GetLockToken())
		}
	}
}

func TestLOCK_5_RenewOnAStream(t *testing.T) {
	t.Parallel()
	at := newClock()
	s := start(t, memstore.New(memstore.WithClock(at.Now)))
	s.openTales(t, "")
	s.send(t, "1")
	s.publish(t).send(publication(tales, "a/1"))
	c, d := s.subscribe(t, ordersOpen(1)), s.subscribe(t, talesOpen(1, 1))
	c.wants("1")
	d.wants("+a a/1")
	at.advance(30 * time.Second)
	lost := "5b5ef8a1-57a5-4e2c-a9f0-0a4c2d4e5f60"
	renewed := c.ask(&sidebusv1.SubscribeRequest{Request: &sidebusv1.SubscribeRequest_RenewLocks{
		RenewLocks: &sidebusv1.SubscribeRenewLocks{LockTokens: []string{c.hand["1"], lost}},
	}}).GetRenewed().GetResults()
	until := at.Now().Add(time.Minute)
	if len(renewed) != 2 || !renewed[0].GetLockedUntil().AsTime().Equal(until) || renewed[1].GetReason() != "MESSAGE_LOCK_LOST" {
		t.Errorf("got %v, want %s", renewed, until)
	}
	session := d.ask(&sidebusv1.SubscribeRequest{Request: &sidebusv1.SubscribeRequest_RenewSession{
		RenewSession: &sidebusv1.SubscribeSession{SessionLockToken: d.held["a"]},
	}}).GetSessionRenewed()
	if !session.GetLockedUntil().AsTime().Equal(until) {
		t.Errorf("got %v, want %s", session, until)
	}
}

func TestSESS_33_StateOnAStream(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	s.openTales(t, "")
	s.publish(t).send(publication(tales, "a/1"))
	c := s.subscribe(t, talesOpen(1, 1))
	c.wants("+a a/1")
	get := func() *sidebusv1.SessionsGetStateResponse {
		return c.ask(&sidebusv1.SubscribeRequest{Request: &sidebusv1.SubscribeRequest_GetState{
			GetState: &sidebusv1.SubscribeSession{SessionLockToken: c.held["a"]},
		}}).GetState()
	}
	set := func(state []byte, expected *int64) *sidebusv1.SubscribeResponse {
		return c.ask(&sidebusv1.SubscribeRequest{Request: &sidebusv1.SubscribeRequest_SetState{
			SetState: &sidebusv1.SubscribeSetState{SessionLockToken: c.held["a"], State: state, ExpectedVersion: expected},
		}})
	}
	if got := get(); got.State != nil || got.GetVersion() != 0 {
		t.Errorf("at first: %v", got)
	}
	first := set([]byte("note"), proto.Int64(0)).GetState()
	if got := get(); string(got.GetState()) != "note" || got.GetVersion() != first.GetVersion() || got.GetVersion() == 0 || first.State != nil {
		t.Errorf("after set: %v, %v", got, first)
	}
	if got := set([]byte("other"), proto.Int64(0)).GetFailure(); got.GetReason() != "PRECONDITION_FAILED" {
		t.Errorf("wrong version: %v", got)
	}
	second := set([]byte{}, proto.Int64(first.GetVersion())).GetState()
	if got := get(); got.State == nil || len(got.GetState()) != 0 || got.GetVersion() != second.GetVersion() {
		t.Errorf("an empty state: %v", got)
	}
	set(nil, nil)
	if got := get(); got.State != nil || got.GetVersion() != 0 {
		t.Errorf("cleared: %v", got)
	}
	set([]byte("kept"), nil)
	if end := c.closes(); end != "OK" {
		t.Errorf("the stream ended with %s", end)
	}
	again := s.subscribe(t, talesOpen(1, 1))
	if opened := again.next().GetSessionOpened(); string(opened.GetState()) != "kept" || opened.GetStateVersion() == 0 {
		t.Errorf("the next holder sees %v", opened)
	}
}

// A session is closed after all that was asked before, however little the client waits.
func TestSESS_21_CloseComesAfterWhatWasAsked(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	s.openTales(t, "")
	c := s.subscribe(t, talesOpen(1, 3))
	for i := range 30 {
		session := fmt.Sprint("s", i)
		s.publish(t).send(publication(tales, session+"/1", session+"/2", session+"/3"))
		c.wants(fmt.Sprintf("+%s %s/1 %s/2 %s/3", session, session, session, session))
		c.send(c.settling(completion(), session+"/1"))
		c.send(c.settling(completion(), session+"/2"))
		c.send(&sidebusv1.SubscribeRequest{Request: &sidebusv1.SubscribeRequest_CloseSession{
			CloseSession: &sidebusv1.SubscribeSession{SessionLockToken: c.held[session]},
		}})
		c.wants(fmt.Sprintf("-%s:CLOSED +%s %s/3", session, session, session))
		c.complete(session + "/3")
		c.send(&sidebusv1.SubscribeRequest{Request: &sidebusv1.SubscribeRequest_CloseSession{
			CloseSession: &sidebusv1.SubscribeSession{SessionLockToken: c.held[session]},
		}})
		c.wants("-" + session + ":CLOSED")
	}
	s.counted(t, tales, "available 0 locked 0 dead 0")
}

func TestRECV_3_ReceiveAndDeleteOnAStream(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	s.openTales(t, "")
	for _, source := range []string{orders, tales} {
		open := talesOpen(2, 2)
		open.Source, open.Mode = source, sidebusv1.ReceiveRequest_RECEIVE_AND_DELETE
		c := s.subscribe(t, open)
		var all []string
		for i := range 20 {
			all = append(all, fmt.Sprintf("a/%d", i))
		}
		s.publish(t).send(publication(source, all...))
		if source == tales {
			all = append([]string{"+a"}, all...)
		}
		c.wants(strings.Join(all, " "))
		for text, token := range c.hand {
			if token != "" {
				t.Errorf("%s has the token %s", text, token)
			}
		}
		s.counted(t, source, "available 0 locked 0 dead 0")
		failure := c.ask(&sidebusv1.SubscribeRequest{Request: &sidebusv1.SubscribeRequest_Settle{Settle: &sidebusv1.SubscribeSettle{
			LockTokens: []string{"5b5ef8a1-57a5-4e2c-a9f0-0a4c2d4e5f60"}, Verb: completion().GetVerb(),
		}}}).GetFailure()
		if failure.GetReason() != "INVALID_OPERATION" {
			t.Errorf("got %v", failure)
		}
	}
}

func TestRECV_13_CreditsOnTheWire(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	c := s.subscribe(t, ordersOpen(0))
	for _, m := range []string{"1", "2", "3"} {
		s.send(t, m)
	}
	credits := func(n int32) *sidebusv1.SubscribeRequest {
		return &sidebusv1.SubscribeRequest{Request: &sidebusv1.SubscribeRequest_Credits{Credits: &sidebusv1.SubscribeCredits{Credits: n}}}
	}
	c.send(credits(2))
	c.wants("1 2")
	failure := c.ask(credits(1001)).GetFailure()
	if failure.GetReason() != "ARGUMENT_OUT_OF_RANGE" || failure.GetDetails()["field"] != "credits" {
		t.Errorf("got %v", failure)
	}
	c.send(credits(0))
	c.complete("1", "2")
	if got := s.countsOf(t, orders); got != "available 1 locked 0 dead 0" {
		t.Errorf("paused: %s", got)
	}
	c.send(credits(1))
	c.wants("3")
}

func TestRECV_12_PrefetchOnTheWire(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	s.publish(t).send(publication(orders, "1", "2", "3", "4"))
	open := ordersOpen(1)
	open.Prefetch = 2
	c := s.subscribe(t, open)
	c.wants("1")
	s.counted(t, orders, "available 1 locked 3 dead 0")
	c.complete("1")
	c.wants("2")
	if end := c.closes(); end != "OK" {
		t.Errorf("got %s", end)
	}
	if got := s.countsOf(t, orders); got != "available 3 locked 0 dead 0" {
		t.Errorf("got %s", got)
	}
	s.wantPeeked(t, orders, "2:0 3:0 4:0")
	s.eventuallyMeasured(t, "sidebus_prefetches_cut_total 0")
}

// Deliveries are cut so that a client with grpc-go's usual limit of 4 MiB can take them, whatever its credits are.
func TestRECV_13_DeliveriesFitIntoTheUsualLimit(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	const n = 30
	s.sendBig(t, n)
	c := s.subscribe(t, ordersOpen(1000))
	for got := 0; got < n; {
		for _, d := range c.next().GetDeliveries().GetDeliveries() {
			got += len(d.GetMessages())
		}
	}
}

// A client that does not read has what it has credits for, and the connection what fits into it.
func TestRECV_13_ClientThatDoesNotRead(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	s.sendBig(t, 40)
	c := s.subscribe(t, ordersOpen(10))
	s.counted(t, orders, "available 30 locked 10 dead 0")
	c.leave()
	eventually(t, "what was on its way came back", func() bool { return s.runtime(t).GetAvailableCount() > 30 })
}
