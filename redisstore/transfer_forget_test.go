package redisstore_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/partitioned"
)

// forgets lets orders forward, and come back as it was before, as after a failover to a replica that lagged, with a
// clock that differs by so much. Whatever is sent from then on must arrive.
func (s *transfers) forgets(shift time.Duration, forward func()) {
	s.t.Helper()
	kept := map[string]string{}
	for _, key := range s.raw.Keys(s.t.Context(), s.key("*")).Val() {
		kept[key] = s.raw.Dump(s.t.Context(), key).Val()
	}
	forward()
	must(s.t, s.raw.Del(s.t.Context(), s.raw.Keys(s.t.Context(), s.key("*")).Val()...).Err())
	for key, value := range kept {
		must(s.t, s.raw.Restore(s.t.Context(), key, 0, value).Err())
	}
	s.clock.Advance(shift)
}

// forward has a broker of its own forward orders.
func (s *transfers) forward() {
	s.t.Helper()
	broker := brokerOver(s.Store)
	defer broker.Close()
	must(s.t, broker.Forward(s.t.Context(), orders))
}

// shifts are what a failover may do to the clock of a source. Without any, the source gives its last number again.
var shifts = []time.Duration{-20 * time.Second, -time.Millisecond, 0, time.Second}

// A source that forgot its last transfers may give their numbers again, or lower ones. Its messages arrive all the
// same.
func TestDUR_4_SourceThatForgetsWithAnEarlierClock(t *testing.T) {
	t.Parallel()
	for _, shift := range shifts {
		for _, path := range []string{"archive", "news"} {
			t.Run(fmt.Sprintf("%s %s", path, shift), func(t *testing.T) {
				t.Parallel()
				s := openTransfers(t)
				s.makeAll(func(o *semantics.Options) { o.ForwardTo = path })
				s.ok("create", createTopic(t, s.Store))
				s.ok("subscribe", subscribe(t, s.Store, "eu"))
				s.send(t, messagesOf(1, semantics.Message{})...)
				s.forgets(shift, s.forward)
				s.send(t, &semantics.Message{MessageID: "new"})
				s.forward()
				s.send(t, &semantics.Message{MessageID: "newer"})
				s.forward()
				arrived := map[string]semantics.Source{"archive": archive, "news": of("eu")}[path]
				if got := ids(t, s, arrived); !slices.Equal(got, []string{"0", "0", "new", "newer"}) {
					t.Errorf("arrived: %q, left: %q, not arrived: %q", got, ids(t, s, orders), ids(t, s, undelivered))
				}
				s.audit("orders", "archive", "news")
			})
		}
	}
}

// Whichever script a forwarder of such a source dies after, the next one brings what is left, and nothing twice.
func TestDUR_4_ForwarderOfASourceThatForgetsCutOff(t *testing.T) {
	t.Parallel()
	for cut := 1; ; cut++ {
		s := openTransfers(t)
		s.makeAll()
		s.forgets(-20*time.Second, func() {
			s.send(t, messagesOf(1, semantics.Message{})...)
			s.forward()
		})
		s.send(t, &semantics.Message{MessageID: "a"}, &semantics.Message{MessageID: "b"})
		dying, ctx := killedAfterAny(t, s.namespace, cut, s.clock.Now)
		broker := brokerOver(dying)
		err := broker.Forward(ctx, orders)
		broker.Close()
		isOver := err == nil && ctx.Err() == nil
		s.forward()
		if got := ids(t, s, archive); !slices.Equal(got, []string{"0", "a", "b"}) {
			t.Fatalf("cut off after %d scripts: arrived %q, left %q", cut, got, ids(t, s, orders))
		}
		s.audit("orders", "archive")
		if isOver {
			if cut < 8 {
				t.Fatalf("it was over after %d scripts: this proves little", cut-1)
			}
			return
		}
	}
}

// A transfer that one partition of its destination overtakes has arrived in another one. With its next number it
// arrives in the former, and not again in the latter.
func TestDUR_4_SourceThatForgetsBeforePartitions(t *testing.T) {
	t.Parallel()
	for _, shift := range shifts {
		t.Run(shift.String(), func(t *testing.T) {
			t.Parallel()
			s := openTransfers(t)
			store := partitioned.New(s.Store)
			must(t, makeQueue(t, store, "archive", func(o *semantics.Options) { o.Partitions = 3 }))
			s.make("orders", func(o *semantics.Options) { o.ForwardTo = "archive" })
			keyed := func(key string) *semantics.Message {
				return &semantics.Message{MessageID: key, PartitionKey: key}
			}
			forward := func() {
				broker := brokerOver(store)
				defer broker.Close()
				must(t, broker.Forward(t.Context(), orders))
			}
			s.send(t, keyed("b"))
			s.forgets(shift, forward)
			s.send(t, keyed("b"), keyed("c"), keyed("g"))
			forward()
			s.send(t, keyed("c"))
			forward()
			arrived := map[int][]string{}
			rows, err := store.Peek(t.Context(), archive, 1, 100, semantics.ShowAll)
			must(t, err)
			for _, m := range rows {
				_, p := semantics.PartitionOf(m.SequenceNumber)
				arrived[p] = append(arrived[p], m.MessageID)
			}
			want := map[int][]string{0: {"c", "c"}, 1: {"b", "b", "b"}, 2: {"g"}}
			if diff := cmp.Diff(want, arrived); diff != "" {
				t.Errorf("not as wanted (-want +got):\n%s", diff)
			}
			s.audit("orders")
		})
	}
}

// A transfer that is overtaken changes nothing at its destination. At its source it gets the next number, once, and
// keeps all else.
func TestDUR_4_OvertakenStepByStep(t *testing.T) {
	t.Parallel()
	for _, shift := range shifts[:3] {
		t.Run(shift.String(), func(t *testing.T) {
			t.Parallel()
			s := openTransfers(t)
			s.makeAll()
			var seen semantics.Transfer
			s.forgets(shift, func() {
				s.send(t, messagesOf(1, semantics.Message{})...)
				seen = s.begin(orders, "archive", 9)
				s.arrive(seen)
				s.end(seen, gone(1)...)
			})
			s.send(t, messagesOf(2, semantics.Message{})...)
			s.repeats(seen)
			transfer := s.begin(orders, "archive", 9)
			note := s.raw.HGet(t.Context(), s.key("entity"), "transfer").Val()
			before := dumpOf(t, s.namespace, "archive")
			s.isOvertaken(transfer)
			if after := dumpOf(t, s.namespace, "archive"); !slices.Equal(before, after) {
				t.Errorf("the destination was %q, is %q", before, after)
			}
			_, rest, _ := strings.Cut(note, ":")
			want := fmt.Sprintf("%d:%s", numberOf(t, seen)+1, rest)
			for range 2 {
				if got := s.raw.HGet(t.Context(), s.key("entity"), "transfer").Val(); got != want {
					t.Fatalf("the note is %q, want %q", got, want)
				}
				s.isOvertaken(transfer) // by a slow forwarder that has not seen the new number
			}
			s.end(transfer, gone(2)...) // it is over
			next := s.begin(orders, "archive", 9)
			if got := numberOf(t, next); got != numberOf(t, seen)+1 || len(next.Messages) != 2 {
				t.Errorf("carried on as %q with %d messages", next.ID, len(next.Messages))
			}
			s.audit("orders", "archive")
			s.arrive(next)
			s.isOvertaken(seen)
			s.end(next, gone(2)...)
			if got := ids(t, s, archive); !slices.Equal(got, []string{"0", "0", "1"}) {
				t.Errorf("arrived: %q", got)
			}
			s.audit("orders", "archive")
		})
	}
}

// repeats checks that the last transfer to arrive gets its answer again and stores nothing.
func (s *transfers) repeats(transfer semantics.Transfer) {
	s.t.Helper()
	before := ids(s.t, s, archive)
	s.arrive(transfer)
	if after := ids(s.t, s, archive); !slices.Equal(before, after) {
		s.t.Errorf("arrived twice: %q", after)
	}
}

// numberOf gives the number in "<incarnation>:<number>:<nonce>".
func numberOf(t testing.TB, transfer semantics.Transfer) (number int64) {
	t.Helper()
	if _, err := fmt.Sscan(strings.Split(transfer.ID, ":")[1], &number); err != nil {
		t.Fatal(err)
	}
	return number
}
