package dapr

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	proto "github.com/dapr/dapr/pkg/proto/components/v1"

	"github.com/sidebus/sidebus/proxy/internal/settling"
	"github.com/sidebus/sidebus/semantics"
)

func TestDAPR_2_AnswersSettle(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		r := b.begin()
		f := r.subscribe("orders")
		synctest.Wait()
		r.send("orders", "1", "2")
		f.wants("1 2")
		b.wantCounts("orders", "available 0 locked 2 dead 0")
		f.ack("1")
		b.wantCounts("orders", "available 0 locked 1 dead 0")
		f.nack("2")
		b.wantCounts("orders", "available 1 locked 0 dead 0")
		if got := b.metric("sidebus_dapr_deliveries_total", "outcome=abandon"); got != 1 {
			t.Errorf("%v abandoned", got)
		}
	})
}

// A failed message does not spin: it comes again after a pause that doubles, its count is the store's, and then it is a
// dead letter.
func TestDAPR_2_BackOffUntilDeadLetter(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		r := b.begin("maxDeliveryCount", "4", "redeliveryDelayInMs", "1000", "maxRedeliveryDelayInSec", "3")
		f := r.subscribe("orders")
		synctest.Wait()
		r.send("orders", "1")
		for i, pause := range []time.Duration{0, time.Second, 2 * time.Second, 3 * time.Second} {
			if pause > 0 {
				b.pass(pause - 10*time.Millisecond)
				f.wants("")
				b.pass(10 * time.Millisecond)
			}
			response := f.bodiesWith(t, 1)[0]
			if got, want := response.GetMetadata()["metadata.DeliveryCount"], fmt.Sprint(i+1); got != want {
				t.Errorf("delivery count %s, want %s", got, want)
			}
			f.nack("1")
			synctest.Wait()
		}
		b.wantCounts("orders", "available 0 locked 0 dead 1")
		if m := b.peek("orders", semantics.DeadLetterQueue)[0]; m.DeadLetterReason != "MaxDeliveryCountExceeded" {
			t.Errorf("reason %q", m.DeadLetterReason)
		}
	})
}

// bodiesWith gives what has come, which must be so many.
func (f *feed) bodiesWith(t *testing.T, n int) []*proto.PullMessagesResponse {
	t.Helper()
	synctest.Wait()
	var all []*proto.PullMessagesResponse
	for len(f.comes) > 0 {
		all = append(all, f.next())
	}
	if len(all) != n {
		t.Fatalf("%d messages, want %d", len(all), n)
	}
	return all
}

func TestDAPR_2_RetryAtOnceWhenAskedFor(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		r := b.begin("maxRetriableErrorsPerSec", "0")
		f := r.subscribe("orders")
		synctest.Wait()
		r.send("orders", "1")
		f.wants("1")
		f.nack("1")
		f.wants("1")
	})
}

// Other answers to a message mean nothing: late ones, second ones, unknown ones.
func TestDAPR_2_StrayAnswers(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		r := b.begin()
		f := r.subscribe("orders")
		synctest.Wait()
		r.send("orders", "1", "2")
		f.wants("1 2")
		f.ids["unknown"], f.ids["odd"] = []string{semantics.NewRandomUUID().String()}, []string{"no uuid"}
		f.ids["1"] = slices.Repeat(f.ids["1"], 3)
		f.ack("1", "1", "unknown", "odd")
		f.nack("1")
		b.wantCounts("orders", "available 0 locked 1 dead 0")
		f.ack("2")
		b.wantCounts("orders", "available 0 locked 0 dead 0")
	})
}

// Dapr's own dead letters go to the native ones when its topic for them is the address of these: so does what the app
// drops (DAPR-2).
func TestDAPR_2_DeadLetterTopicIsTheNativeOne(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ kind, address string }{
		{"topic", "orders/$deadletterqueue"},
		{"topic", "Orders/Subscriptions/app/$DeadLetterQueue"},
		{"queue", "orders/$DeadLetterQueue"},
	} {
		t.Run(c.kind+" "+c.address, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, b *bed) {
				r := b.begin("entityKind", c.kind)
				f := r.subscribe("orders")
				synctest.Wait()
				r.send("orders", "1", "2")
				responses := f.bodiesWith(t, 2)
				_, err := r.Publish(r.ctx, &proto.PublishRequest{Topic: c.address, Data: []byte("1"), Metadata: responses[0].GetMetadata()})
				b.ok(err)
				b.wantCounts("orders", "available 0 locked 1 dead 1")
				f.ack("1")
				b.wantCounts("orders", "available 0 locked 1 dead 1")
				if m := b.peek("orders", semantics.DeadLetterQueue)[0]; m.DeadLetterReason != reasonGivenUp || string(m.Body) != "1" {
					t.Errorf("%q for %q", m.DeadLetterReason, m.Body)
				}
				_, err = r.Publish(r.ctx, &proto.PublishRequest{Topic: c.address, Data: []byte("1"), Metadata: responses[0].GetMetadata()})
				b.wantReason(err, semantics.MessageLockLost, "")
				_, err = r.Publish(r.ctx, &proto.PublishRequest{Topic: "other/$deadletterqueue", Metadata: responses[1].GetMetadata()})
				b.wantReason(err, semantics.InvalidOperation, "other")
				b.wantReason(r.publish(c.address, "from nowhere"), semantics.InvalidOperation, "")
				f.ack("2")
				b.wantCounts("orders", "available 0 locked 0 dead 1")
			})
		})
	}
}

func TestDAPR_2_DeadLettersAreSubscribedTo(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		r := b.begin("maxDeliveryCount", "1", "redeliveryDelayInMs", "1000")
		dead := r.subscribe("orders/$deadLetterQueue") // before there is such a topic
		f := r.subscribe("orders")
		synctest.Wait()
		r.send("orders", "1")
		f.wants("1")
		f.nack("1")
		b.pass(settling.MaxBackoff)
		response := dead.bodiesWith(t, 1)[0]
		if got := response.GetMetadata()["metadata.DeadLetterReason"]; got != "MaxDeliveryCountExceeded" || response.GetTopicName() != "orders/$deadLetterQueue" {
			t.Errorf("reason %q, topic %q", got, response.GetTopicName())
		}
		dead.nack("1") // the back-off counts what fails here
		b.pass(time.Second)
		dead.wants("1")
		dead.nack("1")
		b.pass(time.Second)
		dead.wants("")
		b.pass(time.Second)
		dead.wants("1")
		dead.ack("1")
		b.wantCounts("orders", "available 0 locked 0 dead 0")
	})
}

// The app has its time for a message from when Dapr's runtime can have handed it on; then it has failed.
func TestDAPR_2_HandlerTimeout(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		r := b.begin("handlerTimeoutInSec", "40")
		f := r.subscribe("orders")
		synctest.Wait()
		r.send("orders", "1", "2")
		f.wants("1 2")
		b.pass(39 * time.Second)
		f.ack("1") // the time of the second one begins now
		b.pass(39 * time.Second)
		b.wantCounts("orders", "available 0 locked 1 dead 0")
		b.pass(time.Second)
		b.wantCounts("orders", "available 1 locked 0 dead 0")
		f.ack("2") // too late
		b.pass(time.Second)
		f.wants("2")
		b.pass(39 * time.Second)
		f.ack("2")
		b.wantCounts("orders", "available 0 locked 0 dead 0")
		if got := b.metric("sidebus_dapr_deliveries_total", "outcome=timeout"); got != 1 {
			t.Errorf("%v timeouts", got)
		}
		if got := b.metric("sidebus_locks_lost_total"); got != 0 {
			t.Errorf("%v locks lost", got)
		}
		b.wantLog("no acknowledgment within 40s")
	})
}

// Locks are renewed for as long as a message is out, however long it waits behind others.
func TestDAPR_6_LocksAreRenewed(t *testing.T) {
	t.Parallel()
	for name, pairs := range map[string][]string{"plain": {"lockDurationInSec", "10"}, "sessions": {"lockDurationInSec", "10", "requireSessions", "true"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, b *bed) {
				r := b.begin(append(pairs, "handlerTimeoutInSec", "0")...)
				f := r.subscribe("orders")
				synctest.Wait()
				b.ok(r.publish("orders", "1", "SessionId", "a"))
				f.wants("1")
				b.ok(r.publish("orders", "2", "SessionId", "b"))
				f.wants("2")
				b.pass(time.Hour)
				b.wantCounts("orders", "available 0 locked 2 dead 0")
				f.wants("")
				f.ack("1", "2")
				b.wantCounts("orders", "available 0 locked 0 dead 0")
				if got := b.metric("sidebus_dapr_deliveries_total", "outcome=complete"); got != 2 {
					t.Errorf("%v completed", got)
				}
			})
		})
	}
}

func TestDAPR_6_RenewalSwitchedOff(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		r := b.begin("lockDurationInSec", "10", "lockRenewalInSec", "0")
		f := r.subscribe("orders")
		synctest.Wait()
		r.send("orders", "1")
		f.wants("1")
		b.pass(15 * time.Second)
		f.wants("1")
		if ids := f.ids["1"]; ids[0] == ids[1] {
			t.Error("the same delivery")
		}
		f.ack("1") // the old one: says nothing in the log, and nothing of the new delivery
		b.wantCounts("orders", "available 0 locked 1 dead 0")
		f.ack("1")
		b.wantCounts("orders", "available 0 locked 0 dead 0")
		if strings.Contains(b.log.String(), "cannot settle") {
			t.Error(b.log.String())
		}
	})
}

// What is out when the runtime ends a stream is free at once and not counted; when the runtime is gone it has failed
// with it.
func TestDAPR_6_EndOfStreamGivesBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end  func(f *feed)
		want string
	}{
		"cancelled": {func(f *feed) { f.cancel() }, "1:0 2:0 3:0"},
		"closed":    {func(f *feed) { _ = f.stream.CloseSend() }, "1:0 2:0 3:0"},
		"gone":      {func(f *feed) { _ = f.conn.Close() }, "1:1 2:1 3:0"},
	} {
		for _, sessions := range []string{"false", "true"} {
			t.Run(name+" sessions "+sessions, func(t *testing.T) {
				t.Parallel()
				inBubble(t, func(t *testing.T, b *bed) {
					r := b.begin("requireSessions", sessions, "maxConcurrentSessions", "2")
					f := r.subscribe("orders")
					synctest.Wait()
					for i, comes := range []string{"1", "2", ""} {
						b.ok(r.publish("orders", fmt.Sprint(i+1), "SessionId", fmt.Sprint(i)))
						f.wants(comes)
					}
					c.end(f)
					b.wantCounts("orders", "available 3 locked 0 dead 0")
					var got []string
					for _, m := range b.peek("orders", semantics.MainQueue) {
						got = append(got, fmt.Sprintf("%s:%d", m.Body, m.DeliveryCount))
					}
					if strings.Join(got, " ") != c.want {
						t.Errorf("got %s, want %s", got, c.want)
					}
					if b.Held() != 0 || b.metric("sidebus_dapr_streams") != 0 {
						t.Errorf("%d held, %v streams", b.Held(), b.metric("sidebus_dapr_streams"))
					}
					again := b.begin("requireSessions", sessions, "maxConcurrentHandlers", "3").subscribe("orders")
					again.bodiesWith(t, 3)
				})
			})
		}
	}
}

// An answer under way when the stream ends counts, and the stream waits for it.
func TestDAPR_6_AnswerBeforeTheEndCounts(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		r := b.begin()
		f := r.subscribe("orders")
		synctest.Wait()
		r.send("orders", "1", "2")
		f.wants("1 2")
		hold := make(chan struct{})
		b.store.holds.Store(&hold)
		f.ack("1")
		b.ok(f.stream.CloseSend())
		b.wantCounts("orders", "available 1 locked 1 dead 0")
		close(hold)
		b.wantCounts("orders", "available 1 locked 0 dead 0")
	})
}

// A message that was not sent when the runtime crashed cannot have caused the crash.
func TestDAPR_6_UnsentIsNotCounted(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		r := b.begin("entityKind", "queue", "maxConcurrentHandlers", "5")
		r.open("orders") // and it does not read
		synctest.Wait()
		for range 4 {
			r.send("orders", strings.Repeat("x", 100<<10))
			synctest.Wait()
		}
		b.wantCounts("orders", "available 0 locked 4 dead 0")
		_ = r.conn.Close()
		b.wantCounts("orders", "available 4 locked 0 dead 0")
		counted := 0
		for _, m := range b.peek("orders", semantics.MainQueue) {
			counted += m.DeliveryCount
		}
		if counted == 0 || counted == 4 {
			t.Errorf("%d of 4 were counted", counted)
		}
	})
}

func TestDAPR_2_LostAnswerOfTheStore(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		r := b.begin()
		f := r.subscribe("orders")
		synctest.Wait()
		r.send("orders", "1")
		f.wants("1")
		b.store.loses.Store(1)
		f.ack("1")
		b.pass(10 * time.Second)
		b.wantCounts("orders", "available 0 locked 0 dead 0")
		if got := b.metric("sidebus_dapr_deliveries_total", "outcome=complete"); got != 1 {
			t.Errorf("%v completed", got)
		}
		if got := b.metric("sidebus_locks_lost_total"); got != 0 {
			t.Errorf("%v locks lost", got)
		}
	})
}

func TestDAPR_1_PauseAndResume(t *testing.T) {
	t.Parallel()
	for _, sessions := range []string{"false", "true"} {
		t.Run("sessions "+sessions, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, b *bed) {
				r := b.begin("requireSessions", sessions)
				other := b.runtime("sb", "")
				b.ok(other.init("requireSessions", sessions, "consumerID", "other"))
				f, o := r.subscribe("orders"), other.subscribe("orders")
				synctest.Wait()
				r.sendTo("orders", "a", "1")
				f.wants("1")
				o.wants("1")
				r.sendTo("orders", "b", "2")
				f.wants("2")
				o.wants("2")
				for range 2 {
					_, err := r.Pause(r.ctx, &proto.PauseRequest{})
					b.ok(err)
				}
				r.sendTo("orders", "c", "3")
				f.ack("1", "2")
				o.ack("1", "2")
				f.wants("") // it sends nothing
				o.wants("3")
				b.wantCounts("orders", "available 1 locked 0 dead 0") // and answers counted
				_, err := r.Resume(r.ctx, &proto.ResumeRequest{})
				b.ok(err)
				f.wants("3")
				_, err = r.Pause(r.ctx, &proto.PauseRequest{})
				b.ok(err)
				f.ack("3")
				r.sendTo("orders", "d", "4")
				f.wants("")
				b.ok(r.init("requireSessions", sessions)) // so does a new beginning
				f.wants("4")
				_, err = r.Pause(r.ctx, &proto.PauseRequest{})
				b.ok(err)
				f.ack("4")
				r.sendTo("orders", "e", "5")
				f.wants("")
				r.subscribe("others") // and a new stream
				f.wants("5")
			})
		})
	}
}

// Three streams of one app share what is there, although one alone would get all, and are done in a third of the time
// (RECV-10).
func TestDAPR_3_StreamsShareFairly(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		r := b.begin("entityKind", "queue")
		for i := range 9 {
			r.send("orders", fmt.Sprint(i))
		}
		counts := make([]int, 3)
		for i := range counts {
			f := r.subscribe("orders")
			synctest.Wait()
			go func() { // one after the other
				for response := range f.comes {
					<-time.After(300 * time.Millisecond)
					counts[i]++
					_ = f.stream.Send(&proto.PullMessagesRequest{AckMessageId: response.GetId()})
				}
			}()
			defer close(f.comes)
		}
		b.pass(time.Second)
		b.wantCounts("orders", "available 0 locked 0 dead 0")
		for i, n := range counts {
			if n != 3 {
				t.Errorf("stream %d had %d of 9", i, n)
			}
		}
	})
}
