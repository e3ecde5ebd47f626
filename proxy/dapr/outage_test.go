package dapr

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidebus/sidebus/proxy/internal/settling"
	"github.com/sidebus/sidebus/semantics"
)

// A stream stands while the store is down, takes answers, and goes on after that.
func TestDAPR_6_StreamSurvivesAnOutage(t *testing.T) {
	t.Parallel()
	for _, sessions := range []string{"false", "true"} {
		t.Run("sessions "+sessions, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, b *bed) {
				r := b.begin("requireSessions", sessions)
				f := r.subscribe("orders")
				synctest.Wait()
				r.sendTo("orders", "a", "1")
				f.wants("1")
				b.store.isDown.Store(true)
				f.ack("1")
				b.pass(20 * time.Second)
				f.wants("")
				b.store.isDown.Store(false)
				b.pass(settling.MaxBackoff)
				r.sendTo("orders", "a", "2")
				b.pass(settling.MaxBackoff)
				f.wants("2")
				b.wantCounts("orders", "available 0 locked 1 dead 0")
			})
		})
	}
}

// A stream that its runtime ends while the store is down ends, whatever is still to be settled.
func TestDAPR_6_EndsDuringAnOutage(t *testing.T) {
	t.Parallel()
	cases := map[string]func(b *bed, f *feed){
		"not acknowledged":   func(*bed, *feed) {},
		"acknowledged":       func(_ *bed, f *feed) { f.ack("1") },
		"failed":             func(_ *bed, f *feed) { f.nack("1") },
		"timed out":          func(b *bed, _ *feed) { b.pass(11 * time.Second) },
		"behind a timed out": func(b *bed, _ *feed) { b.pass(25 * time.Second) },
	}
	for name, do := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, b *bed) {
				r := b.begin("entityKind", "queue", "handlerTimeoutInSec", "10")
				f := r.subscribe("orders")
				synctest.Wait()
				r.send("orders", "1", "2")
				f.wants("1 2")
				b.store.isDown.Store(true)
				do(b, f)
				b.ok(f.stream.CloseSend())
				b.pass(2 * settling.StopTimeout)
				select {
				case err := <-f.ended:
					if !errors.Is(err, io.EOF) {
						t.Errorf("it ended with %v", err)
					}
				default:
					t.Error("the stream has not ended")
				}
			})
		})
	}
}

// A stream that is opened while the store is down works when it is back.
func TestDAPR_6_SubscribedDuringAnOutage(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		r := b.begin()
		b.store.isDown.Store(true)
		f := r.subscribe("orders")
		b.pass(time.Minute)
		if got := b.metric("sidebus_dapr_streams_stalled"); got != 1 {
			t.Errorf("%v stalled", got)
		}
		if n := strings.Count(b.log.String(), "cannot be received from"); n != 1 {
			t.Errorf("it is told %d times", n)
		}
		b.store.isDown.Store(false)
		b.pass(settling.MaxBackoff)
		r.send("orders", "1")
		f.wants("1")
		b.wantLog("can be received from again")
		if got := b.metric("sidebus_dapr_streams_stalled"); got != 0 {
			t.Errorf("%v stalled", got)
		}
	})
}

// An entity that is deleted under a stream is recreated, and a stream waits for one that is disabled.
func TestDAPR_6_EntityGoesAndComes(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		r := b.begin("entityKind", "queue")
		f := r.subscribe("orders")
		synctest.Wait()
		r.send("orders", "1")
		f.wants("1")
		b.ok(b.DeleteEntity(t.Context(), semantics.QueueKind, "orders"))
		f.ack("1") // there is nothing to settle, and that is all
		b.pass(settling.MaxBackoff)
		r.send("orders", "2")
		f.wants("2")
		f.ack("2")
		_, err := b.UpdateEntity(t.Context(), semantics.QueueKind, "orders", semantics.Options{Status: semantics.StatusReceiveDisabled}, []string{"status"})
		b.ok(err)
		b.pass(settling.MaxBackoff)
		r.send("orders", "3")
		b.pass(time.Minute)
		f.wants("")
		_, err = b.UpdateEntity(t.Context(), semantics.QueueKind, "orders", semantics.Options{Status: semantics.StatusActive}, []string{"status"})
		b.ok(err)
		b.pass(settling.MaxBackoff)
		f.wants("3")
	})
}

// A bug in Sidebus costs no stream.
func TestDAPR_6_PanicIsSurvived(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		r := b.begin("entityKind", "queue")
		b.store.panics.Store(1)
		f := r.subscribe("orders")
		b.pass(time.Second)
		r.send("orders", "1")
		f.wants("1")
		if got := b.metric("sidebus_panics_total"); got != 1 {
			t.Errorf("%v panics", got)
		}
	})
}

func TestDAPR_2_PanicInACallIsInternal(t *testing.T) {
	t.Parallel()
	inBubble(t, func(_ *testing.T, b *bed) {
		r := b.begin("entityKind", "queue")
		b.store.panics.Store(1)
		b.wantReason(r.publish("orders", "1"), semantics.Internal, "bug")
		r.send("orders", "1")
	})
}

// While Sidebus drains nothing new is sent and answers count; then the stream ends in a way that says why.
func TestDAPR_6_Drain(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		r := b.begin("entityKind", "queue")
		f := r.subscribe("orders")
		synctest.Wait()
		r.send("orders", "1", "2")
		f.wants("1 2")
		b.BeginDrain()
		r.send("orders", "3")
		f.ack("1")
		f.wants("")
		b.wantCounts("orders", "available 1 locked 1 dead 0")
		f.ack("2")
		b.pass(time.Minute)
		b.wantCounts("orders", "available 1 locked 0 dead 0")
		f.wants("")
		if strings.Contains(b.log.String(), "cannot be received from") {
			t.Error(b.log)
		}
		close(b.server.stopping)
		b.server.stop.Do(func() {})
		b.wantReason(<-f.ended, semantics.StoreUnavailable, "stopping")
	})
}

// When Sidebus stops and the runtime has not answered, others get the messages at once.
func TestDAPR_6_StopGivesBack(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	t.Cleanup(b.Broker.Close)
	stop := b.serve()
	r := b.begin("entityKind", "queue")
	f := r.subscribe("orders")
	r.send("orders", "1")
	_ = f.next()
	stop()
	b.wantCounts("orders", "available 1 locked 0 dead 0")
	if m := b.first("orders"); m.DeliveryCount != 0 {
		t.Errorf("%d deliveries", m.DeliveryCount)
	}
}
