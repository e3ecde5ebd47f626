package dapr

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// An app that hangs costs the message it hangs on a delivery. Those that wait behind it in a runtime that hands on one
// after the other go back uncounted, and so does each that is sent to see whether they do wait.
func TestDAPR_2_HungAppFailsOneMessageOnly(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		r := b.begin("entityKind", "queue", "handlerTimeoutInSec", "10", "redeliveryDelayInMs", "3600000", "maxDeliveryCount", "5")
		f := r.subscribe("orders")
		synctest.Wait()
		r.send("orders", "1", "2", "3", "4")
		f.wants("1 2")
		b.pass(19 * time.Second)
		b.wantCounts("orders", "available 3 locked 1 dead 0")
		b.pass(time.Second)
		b.wantCounts("orders", "available 4 locked 0 dead 0")
		b.pass(20 * time.Second)
		f.wants("2") // to see
		b.pass(10 * time.Second)
		b.wantCounts("orders", "available 4 locked 0 dead 0")
		b.pass(39 * time.Second)
		f.wants("")
		b.pass(time.Second)
		f.wants("2") // to see, less and less often
		var got []string
		for _, m := range b.peek("orders", semantics.MainQueue) {
			got = append(got, fmt.Sprintf("%s:%d", m.Body, m.DeliveryCount))
		}
		if strings.Join(got, " ") != "1:1 2:0 3:0 4:0" {
			t.Errorf("got %v", got)
		}
		f.ack("1") // it has come to itself, and is given the others one by one, of which only the last counts
		f.ack("2", "2")
		f.wants("3 4") // behind the last one
		f.ack("2", "3", "4")
		b.wantCounts("orders", "available 1 locked 0 dead 0")
	})
}

// What lies behind a message that an app hangs on another one gets in the end.
func TestDAPR_2_HungAppKeepsNothing(t *testing.T) {
	t.Parallel()
	inBubble(t, func(_ *testing.T, b *bed) {
		r := b.begin("entityKind", "queue", "handlerTimeoutInSec", "10", "redeliveryDelayInMs", "10")
		f := r.subscribe("orders")
		synctest.Wait()
		r.send("orders", "1", "2")
		f.wants("1 2")
		b.wantTakenOver(f, r.subscribe("orders"))
	})
}

// wantTakenOver checks that another stream gets both messages that an app hangs on, one after the other.
func (b *bed) wantTakenOver(hung, other *feed) {
	b.pass(11 * time.Second)
	other.wants("1")
	other.ack("1")
	b.pass(10 * time.Second)
	other.wants("2")
	other.ack("2")
	hung.ack("1", "2") // too late
	b.wantCounts("orders", "available 0 locked 0 dead 0")
}

// An app that hangs in a message of a session keeps neither that session nor those behind it.
func TestDAPR_3_HungAppKeepsNoSession(t *testing.T) {
	t.Parallel()
	inBubble(t, func(_ *testing.T, b *bed) {
		r := b.begin("entityKind", "queue", "requireSessions", "true", "handlerTimeoutInSec", "10", "redeliveryDelayInMs", "10")
		f := r.subscribe("orders")
		synctest.Wait()
		r.sendTo("orders", "a", "1")
		r.sendTo("orders", "b", "2")
		f.wants("1 2")
		b.wantTakenOver(f, r.subscribe("orders"))
	})
}

// A runtime that hands on all at once shows it by an answer that overtakes, and then the one that hangs holds up
// nothing.
func TestDAPR_2_HungAppBesideOthers(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		r := b.begin("entityKind", "queue", "handlerTimeoutInSec", "10", "redeliveryDelayInMs", "3600000", "maxConcurrentHandlers", "3")
		f := r.subscribe("orders")
		synctest.Wait()
		r.send("orders", "1")
		f.wants("1")
		b.pass(11 * time.Second)
		r.send("orders", "2", "3", "4", "5")
		b.pass(8 * time.Second)
		f.wants("") // others may have them
		b.pass(time.Second)
		f.wants("2") // to see what becomes of it
		f.ack("2")
		f.wants("3 4")           // and the first one makes three
		b.pass(11 * time.Second) // time runs for these, though the first one is not answered
		if got := b.metric("sidebus_dapr_deliveries_total", "outcome=timeout"); got != 2 {
			t.Errorf("%v timeouts", got)
		}
	})
}

// What an app has failed to answer another one gets, and not the same one behind itself.
func TestDAPR_2_HungAppLetsOthersHaveIt(t *testing.T) {
	t.Parallel()
	inBubble(t, func(_ *testing.T, b *bed) {
		r := b.begin("entityKind", "queue", "handlerTimeoutInSec", "10", "redeliveryDelayInMs", "100")
		f := r.subscribe("orders")
		synctest.Wait()
		r.send("orders", "1")
		f.wants("1")
		g := r.subscribe("orders")
		b.pass(11 * time.Second)
		f.wants("")
		g.wants("1")
		g.ack("1")
		r.send("orders", "2")
		g.wants("2")
	})
}
