package engine_test

import (
	"testing"

	"github.com/sidebus/sidebus/proxy/amqp/internal/engine"
	"github.com/sidebus/sidebus/proxy/amqp/internal/frame"
)

func TestNeighboursAreSettledTogether(t *testing.T) {
	t.Parallel()
	p := open(t, engine.Config{})
	p.begin(0, 100)
	_, messages := p.receive(engine.Accepted{MaxTransfer: 6, Credit: 10})
	var all []*engine.Message
	for _, id := range []uint32{1, 2, 3, 7, 8} {
		p.send(0, &frame.Transfer{DeliveryID: pointer(id), Settled: id == 3}, "x")
		all = append(all, <-messages)
	}
	engine.SettleAll(all, frame.Accepted{})
	for _, want := range [][2]uint32{{1, 2}, {7, 8}} {
		if d := expect[*frame.Disposition](p); d.First != want[0] || d.Last != want[1] || d.State != (frame.Accepted{}) {
			t.Errorf("settled %+v, want %v", d, want)
		}
	}
}
