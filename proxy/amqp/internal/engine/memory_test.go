package engine_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidebus/sidebus/proxy/amqp/internal/engine"
	"github.com/sidebus/sidebus/proxy/amqp/internal/frame"
)

// budget is a Memory whose bytes and users are counted.
type budget struct{ left, users atomic.Int64 }

type allocation struct {
	of  *budget
	has int64
}

func (b *budget) begin() engine.Memory {
	b.users.Add(1)
	return &allocation{of: b}
}

func (a *allocation) Grow(n int) bool {
	if a.of.left.Add(-int64(n)) < 0 {
		a.of.left.Add(int64(n))
		return false
	}
	a.has += int64(n)
	return true
}

func (a *allocation) Free() {
	a.of.left.Add(a.has)
	a.has = 0
}

func TestMessagesWithoutMemoryAreRefused(t *testing.T) {
	t.Parallel()
	b := &budget{}
	b.left.Store(10)
	p := open(t, engine.Config{Memory: b.begin})
	p.begin(0, 100)
	_, messages := p.receive(engine.Accepted{MaxTransfer: 100, Credit: 10})
	id := uint32(0)
	send := func(more bool, payload string) {
		p.send(0, &frame.Transfer{DeliveryID: pointer(id), More: more}, payload)
	}
	send(false, "eight...")
	first := <-messages
	id++
	send(true, "ab")
	send(false, "cd") // of which nothing is available
	second := <-messages
	if first.IsRefused || !second.IsRefused || len(second.Payload) > 0 || b.left.Load() != 2 {
		t.Errorf("%+v, %+v, %d bytes left", first, second, b.left.Load())
	}
	first.Settle(frame.Accepted{})
	second.Settle(frame.Rejected{})
	id++
	send(true, "ab") // which the end of the connection leaves in part
	id++
	p.send(0, &frame.Detach{Closed: true})
	expect[*frame.Disposition](p)
	expect[*frame.Disposition](p)
	expect[*frame.Detach](p)
	if b.left.Load() != 10 || b.users.Load() != 3 {
		t.Errorf("%d bytes of 10 left after %d messages", b.left.Load(), b.users.Load())
	}
}

func TestDeliveriesThatAreOverMakeRoom(t *testing.T) {
	t.Parallel()
	const most = 5000
	p := open(t, engine.Config{RecheckAfter: 5 * time.Millisecond})
	p.begin(0, 2*most)
	var asked atomic.Int64 // the first time, for all of them, nothing is over
	settled := make(chan engine.Settlement, most)
	l := p.attach(0, true, engine.Accepted{
		IsOver: func(ref any) bool { return asked.Add(1) > most && ref.(int) < most-1 },
		OnSettled: func(all []engine.Settlement, _ frame.State, _ bool) {
			for _, one := range all {
				settled <- one
			}
		},
	})
	p.send(0, &frame.Flow{IncomingWindow: 2 * most, Handle: pointer(uint32(0)), LinkCredit: pointer(uint32(2 * most))})
	wanted := make(chan int)
	go func() {
		for i := range most {
			l.Wanted()
			l.Send(engine.Delivery{Tag: []byte{1}, Ref: i})
		}
		want, _ := l.Wanted()
		wanted <- want.Credit
	}()
	for range most {
		expect[*frame.Transfer](p)
	}
	if got := <-wanted; got != most-1 {
		t.Errorf("there is room for %d", got)
	}
	p.send(0, &frame.Disposition{IsReceiver: true, First: most - 1, Last: most - 1, State: frame.Accepted{}})
	if one := <-settled; one.Ref != most-1 {
		t.Errorf("settled %+v", one)
	}
	p.send(0, &frame.Disposition{IsReceiver: true, First: 0, Last: 0, State: frame.Accepted{}})
	if d := expect[*frame.Disposition](p); d.State.(frame.Rejected).Error.Condition != "com.microsoft:message-lock-lost" {
		t.Errorf("an old delivery is settled with %+v", d)
	}
}
