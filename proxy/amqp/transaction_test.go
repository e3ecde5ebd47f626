package amqp_test

import (
	"testing"

	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/proxy/amqp/internal/codec"
	"github.com/sidebus/sidebus/proxy/amqp/internal/convert"
	"github.com/sidebus/sidebus/proxy/amqp/internal/frame"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// coordinator is a link to the coordinator of transactions.
type coordinator struct {
	*client

	handle uint32
}

func (c *client) coordinator() coordinator {
	c.attach(frame.Attach{Target: &frame.Target{IsCoordinator: true}})
	want[*frame.Flow](c)
	return coordinator{c, c.handle - 1}
}

func (c coordinator) command(descriptor any, fields ...any) frame.State {
	return c.transfer(c.handle, sections(uint64(0x77), codec.Described{Descriptor: descriptor, Value: codec.List(fields)}))
}

// declare declares a transaction and returns its id.
func (c coordinator) declare() []byte {
	c.Helper()
	declared, ok := c.command(uint64(0x31)).(frame.Declared)
	if !ok || len(declared.ID) != 16 {
		c.Fatalf("declared %+v", declared)
	}
	return declared.ID
}

// discharge ends a transaction and returns the condition of the refusal.
func (c coordinator) discharge(id []byte, isFailed bool) string {
	switch state := c.command(codec.Symbol("amqp:discharge:list"), id, isFailed).(type) {
	case frame.Accepted:
		return ""
	case frame.Rejected:
		return state.Error.Condition
	default:
		c.Errorf("discharged with %+v", state)
		return ""
	}
}

// put sends a message in a transaction.
func (c *client) put(handle uint32, id []byte, text string) {
	c.Helper()
	state := c.transferIn(handle, data(text), frame.Transactional{ID: id})
	got, ok := state.(frame.Transactional)
	if _, isAccepted := got.Outcome.(frame.Accepted); !ok || string(got.ID) != string(id) || !isAccepted {
		c.Errorf("sent with %+v", state)
	}
}

// settleIn settles a delivery in a transaction.
func (c *client) settleIn(delivery uint32, id []byte, outcome frame.State) {
	c.Helper()
	c.send(&frame.Disposition{IsReceiver: true, First: delivery, Last: delivery, State: frame.Transactional{ID: id, Outcome: outcome}})
	d := want[*frame.Disposition](c)
	if got, ok := d.State.(frame.Transactional); !ok || string(got.ID) != string(id) || !d.Settled {
		c.Errorf("settled with %+v", d)
	}
}

// tokenOf returns the lock token of a delivery, whose byte order is its own inverse.
func tokenOf(t *frame.Transfer) semantics.LockToken {
	return semantics.LockToken(convert.GUID(semantics.LockToken(t.DeliveryTag)))
}

// counts are what a queue has.
func (s *stand) counts(name string) semantics.Runtime {
	s.Helper()
	runtime, err := s.broker.Runtime(s.Context(), semantics.QueueKind, name)
	if err != nil {
		s.Fatal(err)
	}
	return runtime
}

func TestTX_4_SendsAreVisibleWhenDischarged(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.queue("a", nil)
	s.queue("b", nil)
	c := s.dial(nil).open()
	co, a, b := c.coordinator(), c.sender("a"), c.sender("b")
	id := co.declare()
	c.put(a, id, "1")
	c.put(b, id, "2")
	if n := s.counts("a").Available + s.counts("b").Available; n != 0 {
		t.Errorf("%d messages before the discharge", n)
	}
	if condition := co.discharge(id, false); condition != "" {
		t.Errorf("discharged with %s", condition)
	}
	if s.counts("a").Available != 1 || s.counts("b").Available != 1 {
		t.Errorf("after the discharge: %+v, %+v", s.counts("a"), s.counts("b"))
	}
	if condition := co.discharge(id, false); condition != "" { // a repeat gets the first answer
		t.Errorf("discharged again with %s", condition)
	}
}

func TestTX_5_SettlementsHappenWhenDischarged(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.queue("q", nil)
	c := s.dial(nil).open()
	co, sender := c.coordinator(), c.sender("q")
	for _, text := range []string{"complete", "abandon", "defer", "dead-letter"} {
		c.transfer(sender, data(text))
	}
	c.receiver("q", 4)
	for range 4 {
		want[*frame.Transfer](c)
	}
	id := co.declare()
	c.settleIn(0, id, frame.Accepted{})
	c.settleIn(1, id, frame.Modified{})
	c.settleIn(2, id, frame.Modified{UndeliverableHere: true})
	c.settleIn(3, id, frame.Rejected{Error: &frame.Error{Condition: "why", Description: "because"}})
	if got := s.counts("q"); got.Locked != 4 {
		t.Errorf("before the discharge: %+v", got)
	}
	if condition := co.discharge(id, false); condition != "" {
		t.Errorf("discharged with %s", condition)
	}
	if got := s.counts("q"); got.Locked != 0 || got.Available != 1 || got.Deferred != 1 || got.DeadLetter != 1 {
		t.Errorf("after the discharge: %+v", got)
	}
}

// exchangeIn receives a message of a queue, and declares a transaction that completes it and sends another one there.
func (c *client) exchangeIn(queue string) (co coordinator, id []byte, token semantics.LockToken) {
	c.Helper()
	co, sender := c.coordinator(), c.sender(queue)
	c.transfer(sender, data("x"))
	c.receiver(queue, 1)
	token = tokenOf(want[*frame.Transfer](c))
	id = co.declare()
	c.put(sender, id, "in it")
	c.settleIn(0, id, frame.Accepted{})
	return co, id, token
}

func TestTX_5_LostLockFailsTheDischarge(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.queue("q", nil)
	c := s.dial(nil).open()
	co, id, token := c.exchangeIn("q")
	if _, err := s.broker.Abandon(t.Context(), semantics.Source{Path: "q"}, []semantics.LockToken{token}, semantics.AbandonOptions{}); err != nil {
		t.Fatal(err)
	}
	if condition := co.discharge(id, false); condition != "amqp:transaction:rollback" {
		t.Errorf("discharged with %q", condition)
	}
	if got := s.counts("q"); got.Available != 1 {
		t.Errorf("after the discharge: %+v", got)
	}
}

// TestTX_1_DischargeFollowsWhatWasSentBefore sends all of a transaction without waiting for an answer.
func TestTX_1_DischargeFollowsWhatWasSentBefore(t *testing.T) {
	t.Parallel()
	const links = 20
	s := start(t, nil)
	s.queue("q", nil)
	c := s.dial(nil).open()
	co := c.coordinator()
	var senders []uint32
	for range links {
		senders = append(senders, c.sender("q"))
	}
	pipeline := func(refused bool) (accepted int, rejected string) {
		id := co.declare()
		for _, sender := range senders {
			delivery := c.next
			c.next++
			c.send(&frame.Transfer{Handle: sender, DeliveryID: &delivery, State: frame.Transactional{ID: id}}, data("x")...)
		}
		if refused {
			delivery := c.next
			c.next++
			c.send(&frame.Transfer{Handle: senders[0], DeliveryID: &delivery, State: frame.Transactional{ID: id}}, 0x40)
		}
		delivery := c.next
		c.next++
		c.send(&frame.Transfer{Handle: co.handle, DeliveryID: &delivery}, sections(uint64(0x77), codec.Described{
			Descriptor: uint64(0x32), Value: codec.List{id, false},
		})...)
		for answered := false; !answered || accepted < links; {
			d := want[*frame.Disposition](c)
			switch outcome := d.State.(type) {
			case frame.Transactional:
				accepted++
			case frame.Rejected:
				if answered = answered || d.First == delivery; d.First == delivery {
					rejected = outcome.Error.Condition
				}
			default:
				answered = true
			}
		}
		return accepted, rejected
	}
	if accepted, rejected := pipeline(false); accepted != links || rejected != "" || s.counts("q").Available != links {
		t.Errorf("%d accepted, the discharge is rejected with %q, there are %d messages", accepted, rejected, s.counts("q").Available)
	}
	if _, rejected := pipeline(true); rejected != "amqp:transaction:rollback" || s.counts("q").Available != links {
		t.Errorf("with a part that was refused, the discharge is rejected with %q, there are %d messages", rejected, s.counts("q").Available)
	}
}

// TestTX_1_WhatIsNotAddedFailsTheDischarge settles a delivery that is settled already, without asking for an answer.
func TestTX_1_WhatIsNotAddedFailsTheDischarge(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.queue("q", nil)
	c := s.dial(nil).open()
	co, sender := c.coordinator(), c.sender("q")
	id := co.declare()
	c.put(sender, id, "x")
	c.send(&frame.Disposition{
		IsReceiver: true, First: 5, Last: 5, Settled: true, State: frame.Transactional{ID: id, Outcome: frame.Accepted{}},
	})
	if condition := co.discharge(id, false); condition != "amqp:transaction:rollback" {
		t.Errorf("discharged with %q", condition)
	}
	if got := s.counts("q"); got.SizeInBytes != 0 {
		t.Errorf("the queue has %+v", got)
	}
}

// TestTX_9_ClientsWithoutATokenShare has clients that declare all transactions that they can.
func TestTX_9_ClientsWithoutATokenShare(t *testing.T) {
	t.Parallel()
	keys := access.Keys{"app": {Primary: "secret", Claims: access.Send}}
	s := start(t, access.SAS(func() access.Keys { return keys }))
	first, second := s.dial(nil).open().coordinator(), s.dial(nil).open().coordinator()
	for range broker.MaxTransactions / 2 {
		first.declare()
	}
	for _, co := range []coordinator{first, second} {
		if r, ok := co.command(uint64(0x31)).(frame.Rejected); !ok || r.Error.Condition != "com.microsoft:server-busy" {
			t.Errorf("declared beyond the share: %+v", r)
		}
	}
	c := s.dial(&frame.Init{Mechanism: "PLAIN", Response: []byte("\x00app\x00secret")})
	want[*frame.Outcome](c)
	c.open().coordinator().declare()
}

func TestTX_6_RollbackLeavesLocks(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.queue("q", nil)
	c := s.dial(nil).open()
	co, id, token := c.exchangeIn("q")
	if condition := co.discharge(id, true); condition != "" {
		t.Errorf("rolled back with %s", condition)
	}
	if got := s.counts("q"); got.Locked != 1 || got.Available != 0 {
		t.Errorf("after the rollback: %+v", got)
	}
	if condition := co.discharge(id, false); condition != "amqp:transaction:unknown-id" {
		t.Errorf("discharged after the rollback with %q", condition)
	}
	status, _ := c.node("q/$management").ask("com.microsoft:update-disposition", codec.Map{
		codec.Entry("disposition-status", "completed"), codec.Entry("lock-tokens", codec.Array{codec.UUID(token)}),
	})
	if status.Get("statusCode") != int32(200) {
		t.Errorf("complete after the rollback: %v", status)
	}
}

func TestTX_9_OpenTransactionsEndWithTheLink(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.queue("q", nil)
	c := s.dial(nil).open()
	co, sender := c.coordinator(), c.sender("q")
	id := co.declare()
	c.put(sender, id, "x")
	c.send(&frame.Detach{Handle: co.handle, Closed: true})
	want[*frame.Detach](c)
	for isOpen := true; isOpen; { // it is rolled back soon
		_, isOpen = c.transferIn(sender, data("x"), frame.Transactional{ID: id}).(frame.Transactional)
	}
	again := c.coordinator()
	for _, unknown := range [][]byte{[]byte("sixteen bytes...."[:16]), []byte("short"), nil} {
		if condition := again.discharge(unknown, false); condition != "amqp:transaction:unknown-id" {
			t.Errorf("discharged %q with %q", unknown, condition)
		}
	}
	state := c.transferIn(sender, data("x"), frame.Transactional{ID: []byte("unknown")})
	if r, ok := state.(frame.Rejected); !ok || r.Error.Condition != "amqp:transaction:unknown-id" {
		t.Errorf("sent with %+v", state)
	}
	if got := s.counts("q"); got.SizeInBytes != 0 {
		t.Errorf("the queue has %+v", got)
	}
}

func TestCoordinatorsRefuseOtherMessages(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.queue("q", nil)
	c := s.dial(nil).open()
	co := c.coordinator()
	for _, payload := range [][]byte{data("x"), sections(uint64(0x77), "x"), {1}, make([]byte, 5000)} {
		if state, ok := c.transfer(co.handle, payload).(frame.Rejected); !ok {
			t.Errorf("%.20x: %+v", payload, state)
		}
	}
	if state, ok := co.command(uint64(0x99)).(frame.Rejected); !ok {
		t.Errorf("an unknown command: %+v", state)
	}
}
