package proxy_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// withSubscribers is a sidecar with two unsettled messages of "orders" and two of session a of "tales".
func withSubscribers(t *testing.T, change ...func(*proxy.Config)) (s *sidecar, at *clock, c, d *subscriber) {
	t.Helper()
	at = newClock()
	s = start(t, memstore.New(memstore.WithClock(at.Now)), change...)
	s.openTales(t, "")
	s.publish(t).send(publication(orders, "1", "2"), publication(tales, "a/1", "a/2"))
	c, d = s.subscribe(t, ordersOpen(2)), s.subscribe(t, talesOpen(1, 2))
	c.wants("1 2")
	d.wants("+a a/1 a/2")
	return s, at, c, d
}

// When the stream has ended everything is back, uncounted, and what was asked before is done and answered.
func TestDC_2_EndOfTheClientsSide(t *testing.T) {
	t.Parallel()
	s, at, c, d := withSubscribers(t)
	c.send(c.settling(completion(), "1"))
	d.send(d.settling(completion(), "a/1"))
	for _, stream := range []*subscriber{c, d} {
		if end := stream.closes(); end != "OK" {
			t.Errorf("the stream ended with %s", end)
		}
	}
	for _, queue := range []string{orders, tales} {
		if got := s.countsOf(t, queue); got != "available 1 locked 0 dead 0" {
			t.Errorf("%s: %s", queue, got)
		}
	}
	at.advance(time.Hour)
	s.wantPeeked(t, orders, "2:0")
	s.wantPeeked(t, tales, "a/2:0")
	if held := s.broker.Held(); held != 0 {
		t.Errorf("%d held", held)
	}
}

// releaseStore is a memstore whose Release takes its time.
type releaseStore struct {
	*memstore.Store
	isEnded chan struct{} // closed by the test
	early   chan bool     // whether it was before the release was done
}

func (s *releaseStore) Release(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
	select {
	case <-s.isEnded:
		s.early <- true
	case <-time.After(100 * time.Millisecond):
		s.early <- false
	}
	return s.Store.Release(ctx, source, tokens)
}

// The stream ends after all messages are released, so that a client that sees the end can rely on that.
func TestDC_2_EndComesAfterAllIsBack(t *testing.T) {
	t.Parallel()
	over := &releaseStore{Store: memstore.New(), isEnded: make(chan struct{}), early: make(chan bool, 1)}
	s := start(t, over)
	s.send(t, "1")
	c := s.subscribe(t, ordersOpen(1))
	c.wants("1")
	if end := c.closes(); end != "OK" {
		t.Errorf("got %s", end)
	}
	close(over.isEnded)
	if <-over.early {
		t.Error("the stream ended first")
	}
}

// However fast the client closes, its earlier requests are processed and answered.
func TestRECV_13_RequestsBeforeTheEndAreAnswered(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	for i := range 20 {
		const n = 30
		open := ordersOpen(n)
		open.Id = "the same" // free again when the stream has ended
		c := s.subscribe(t, open)
		var all []string
		for j := range n {
			all = append(all, fmt.Sprintf("%d-%d", i, j))
		}
		s.publish(t).send(publication(orders, all...))
		c.wants(strings.Join(all, " "))
		for j, text := range all {
			request := c.settling(completion(), text)
			request.RequestId = fmt.Sprint(j)
			c.send(request)
		}
		if err := c.stream.CloseSend(); err != nil {
			t.Fatal(err)
		}
		answers := map[string]bool{}
		for {
			r, err := c.stream.Recv()
			if err != nil {
				if end := endOf(t, err); end != "OK" {
					t.Errorf("the stream ended with %s", end)
				}
				break
			}
			answers[r.GetRequestId()] = len(r.GetSettled().GetResults()) == 1 && r.GetSettled().GetResults()[0].Reason == nil
		}
		if len(answers) != n {
			t.Errorf("%d of %d answers came", len(answers), n)
		}
		if got := s.countsOf(t, orders); got != "available 0 locked 0 dead 0" {
			t.Errorf("got %s", got)
		}
	}
}

func TestDC_8_ClientVanishesFromTheWire(t *testing.T) {
	t.Parallel()
	s, at, c, d := withSubscribers(t)
	s.send(t, "3") // is not on its way: there are no credits
	c.leave()
	d.leave()
	s.eventuallyMeasured(t, `sidebus_rpcs_total{code="CANCELLED",method="Messages.Subscribe",wire="grpc"} 2`)
	s.wantPeeked(t, orders, "1:0 2:0 3:0")
	if got := s.countsOf(t, orders); got != "available 1 locked 2 dead 0" {
		t.Errorf("got %s", got)
	}
	at.advance(time.Minute)
	s.wantPeeked(t, orders, "1:1 2:1 3:0")
	s.wantPeeked(t, tales, "a/1:1 a/2:1")
	at.advance(time.Hour)
	s.wantPeeked(t, orders, "1:1 2:1 3:0")
}

// The same when its connection breaks, and with RELEASE all is back at once.
func TestLOCK_10_ConnectionBreaks(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	s.openTales(t, `,"onDisconnect":"RELEASE"`)
	mustPatch(t, s, `{"onDisconnect":"RELEASE"}`)
	s.publish(t).send(publication(orders, "1", "2"), publication(tales, "a/1", "a/2"))
	frail := *s
	frail.conn = dial(t, s.proxy.GRPCAddr().String())
	frail.messages = sidebusv1.NewMessagesClient(frail.conn)
	c, d := frail.subscribe(t, ordersOpen(2)), frail.subscribe(t, talesOpen(1, 2))
	c.wants("1 2")
	d.wants("+a a/1 a/2")
	if err := frail.conn.Close(); err != nil {
		t.Fatal(err)
	}
	s.counted(t, orders, "available 2 locked 0 dead 0")
	s.counted(t, tales, "available 2 locked 0 dead 0")
	s.wantPeeked(t, orders, "1:0 2:0")
	s.wantPeeked(t, tales, "a/1:0 a/2:0")
}

func TestRECV_13_QueueIsDeletedOrDisabled(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		method, body string
		code         codes.Code
		reason       string
	}{
		"deleted":  {http.MethodDelete, "", codes.NotFound, "ENTITY_NOT_FOUND"},
		"disabled": {http.MethodPatch, `{"status":"DISABLED"}`, codes.FailedPrecondition, "ENTITY_DISABLED"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, memstore.New())
			s.openTales(t, "")
			for _, queue := range []string{"orders", "tales"} {
				stream := s.subscribe(t, talesOpen(1, 2))
				if queue == "orders" {
					stream = s.subscribe(t, ordersOpen(1))
				}
				if a := s.call(t, c.method, "/v1/queues/"+queue, c.body); a.status != http.StatusOK {
					t.Fatal(a)
				}
				_, err := stream.stream.Recv()
				if status.Code(err) != c.code || endOf(t, err) != c.reason || infoOf(t, err).GetMetadata()["entity"] != queue {
					t.Errorf("%s: got %v", queue, err)
				}
			}
		})
	}
}

// While the sidecar drains, streams settle what they have, are answered, and end.
func TestRECV_13_DrainOnTheWire(t *testing.T) {
	t.Parallel()
	s, _, c, d := withSubscribers(t, func(c *proxy.Config) { c.DrainTimeout = patience })
	s.stop()
	eventually(t, "the drain begins", s.broker.Draining)
	s.send(t, "3")
	c.complete("1")
	c.complete("2") // is answered, though it is what the drain waits for
	d.complete("a/1")
	d.settle(&sidebusv1.SubscribeSettle{Verb: &sidebusv1.SubscribeSettle_Release{Release: &sidebusv1.ReleaseRequest{}}}, "a/2")
	d.wants("-a:DRAINING")
	for _, stream := range []*subscriber{c, d} {
		_, err := stream.stream.Recv()
		if status.Code(err) != codes.Unavailable || infoOf(t, err).GetMetadata()["cause"] != "draining" {
			t.Errorf("got %v", err)
		}
	}
	wait(t, "end of Run", s.done)
}

// A client that does not settle in time is told that the sidecar stops; what it had is back, uncounted.
func TestRECV_13_StopWithMessagesInHand(t *testing.T) {
	t.Parallel()
	at := newClock()
	over := memstore.New(memstore.WithClock(at.Now))
	s := start(t, over)
	s.openTales(t, "")
	s.publish(t).send(publication(orders, "1", "2"), publication(tales, "a/1", "a/2"))
	c, d := s.subscribe(t, ordersOpen(2)), s.subscribe(t, talesOpen(1, 2))
	c.wants("1 2")
	d.wants("+a a/1 a/2")
	s.stop()
	for _, stream := range []*subscriber{c, d} {
		if end := stream.ends(); end != "STORE_UNAVAILABLE" {
			t.Errorf("got %s", end)
		}
	}
	wait(t, "end of Run", s.done)
	other := start(t, over)
	other.wantPeeked(t, orders, "1:0 2:0")
	other.wantPeeked(t, tales, "a/1:0 a/2:0")
	for _, queue := range []string{orders, tales} {
		if got := other.countsOf(t, queue); got != "available 2 locked 0 dead 0" {
			t.Errorf("%s: %s", queue, got)
		}
	}
}

// A text that is not UTF-8 cannot be written to gRPC, which is a way to make the writing itself fail.
func TestRECV_7_DeliveryThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	over := newSpyStore()
	s := start(t, over)
	c := s.subscribe(t, ordersOpen(1))
	broken := &semantics.Message{MessageID: "1", Body: []byte("\xff"), BodyKind: semantics.BodyText}
	if _, err := over.Store.Send(t.Context(), "orders", []*semantics.Message{broken}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.stream.Recv(); status.Code(err) != codes.Internal { // grpc-go's own word
		t.Errorf("got %v", err)
	}
	s.counted(t, orders, "available 1 locked 0 dead 0")
	if s.broker.Held() != 0 {
		t.Errorf("%d held", s.broker.Held())
	}
}

// A panic in a request ends its stream only, and is logged with where it was.
func TestERR_1_PanicInARequest(t *testing.T) {
	t.Parallel()
	over := newSpyStore()
	s := start(t, over)
	s.send(t, "1")
	c := s.subscribe(t, ordersOpen(1))
	c.wants("1")
	over.onComplete = func() { panic("boom") }
	c.send(c.settling(completion(), "1"))
	if end := c.ends(); end != "INTERNAL" {
		t.Errorf("got %s", end)
	}
	if log := s.log.String(); !strings.Contains(log, "boom") || !strings.Contains(log, "stream_end_test.go") {
		t.Errorf("the log lacks panic or place:\n%s", log)
	}
	s.eventuallyMeasured(t, "sidebus_panics_total 1")
	s.send(t, "it goes on")
}

// An outage is an event, and the stream goes on automatically.
func TestRECV_13_OutageOnTheWire(t *testing.T) {
	t.Parallel()
	over := newSpyStore()
	s := start(t, over)
	c := s.subscribe(t, ordersOpen(2))
	s.send(t, "1")
	c.wants("1")
	over.failReceives(semantics.Errorf(semantics.StoreUnavailable, "away").With(semantics.DetailCause, "test"))
	c.complete("1") // the next receive meets it
	s.send(t, "2")
	failure := c.next().GetFailure()
	if failure.GetReason() != "STORE_UNAVAILABLE" || !failure.GetRetryable() || failure.GetDetails()["cause"] != "test" {
		t.Errorf("got %v", failure)
	}
	over.failReceives(nil)
	c.wants("2")
}
