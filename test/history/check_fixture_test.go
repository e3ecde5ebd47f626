package history

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/test/sidecartest"
)

// faultFinder is a test that keeps what is said to be wrong.
type faultFinder struct {
	testing.TB
	found []string
}

func (f *faultFinder) Helper() {}

func (f *faultFinder) Errorf(format string, args ...any) {
	f.found = append(f.found, fmt.Sprintf(format, args...))
}

// story is a history made by hand. Its instants are ms from its beginning; the lock lasts 500 ms.
type story struct {
	*run
	began time.Time
}

func (s *story) at(ms int) time.Time { return s.began.Add(time.Duration(ms) * time.Millisecond) }

// call adds a call that began at an instant and took 2 ms, its script 1 ms.
func (s *story) call(at int, what, token string, outcome outcome) *call {
	c := &call{what: what, session: "s", token: token, began: s.at(at), ended: s.at(at + 2), outcome: outcome}
	if what == "accept" || what == "renew" {
		c.until = s.at(at + 1 + 500)
	}
	s.record.calls = append(s.record.calls, c)
	return c
}

// accept adds a hold that runs out.
func (s *story) accept(at int, token string) *hold {
	c := s.call(at, "accept", token, done)
	h := &hold{session: "s", token: token, accepted: s.at(at + 1), until: c.until, sidecar: s.all[0], closed: open}
	s.record.holds = append(s.record.holds, h)
	return h
}

func (s *story) close(at int, h *hold) {
	s.call(at, "close", h.token, done)
	h.closed, h.closedAt = done, s.at(at+2)
}

// deliver adds the hand-out of a message, number and place in its session being the same, and how it was settled.
func (s *story) deliver(at int, h *hold, number, count int, verb string, result outcome) *handout {
	d := &handout{
		hold: h, text: fmt.Sprint(number), number: int64(number), sequence: int64(number), count: count, began: s.at(at), ended: s.at(at + 2),
		verb: verb, outcome: result, settleBegan: s.at(at + 2), settled: s.at(at + 3),
	}
	s.record.deliveries = append(s.record.deliveries, d)
	return d
}

// takenUpLate lets a session wait for more than a second after its lock has expired, at 501, although a client waits
// for one.
func (s *story) takenUpLate() {
	s.deliver(10, s.accept(0, "A"), 1, 1, "", done)
	s.record.waits = append(s.record.waits, &wait{began: s.at(100), ended: s.at(1650), sidecar: s.all[0]})
	s.deliver(1700, s.accept(1600, "B"), 1, 2, "complete", done)
}

// acceptBlindly adds an accept whose answer was lost.
func (s *story) acceptBlindly(at int, session string) {
	c := s.call(at, "accept", "", unknown)
	c.session = session
	s.record.blind = append(s.record.blind, c)
}

func (s *story) send(number int) {
	s.record.sent[0] = append(s.record.sent[0], sent{"s", fmt.Sprint(number), int64(number)})
}

func row(number, count int, state semantics.State, reason string) *semantics.Received {
	return &semantics.Received{
		Message:        semantics.Message{Body: []byte(fmt.Sprint(number))},
		SequenceNumber: int64(number), DeliveryCount: count, State: state, DeadLetterReason: reason,
	}
}

// Every check finds what it is there for, and nothing in a history that is as it should be. A test that cannot fail
// proves nothing.
func TestChecksFindFaults(t *testing.T) {
	t.Parallel()
	type rows = []*semantics.Received
	for name, c := range map[string]struct {
		says       string // "" for nothing
		tell       func(s *story)
		main, dead rows
	}{
		"all is well": {"", func(s *story) {
			s.send(1)
			s.send(2)
			s.send(3)
			a := s.accept(0, "A")
			s.deliver(10, a, 1, 1, "complete", done)
			s.deliver(20, a, 2, 1, "", done)
			s.call(400, "accept", "", refused)
			s.call(500, "set state", "A", lost) // it may have come too late
			b := s.accept(501, "B")
			s.call(510, "renew", "A", lost)
			s.deliver(520, b, 2, 2, "complete", done)
			s.deliver(530, b, 3, 1, "defer", done)
			s.call(540, "set state", "B", done).state = "=x"
			s.close(550, b)
			s.call(560, "accept", "C", done).state = "=x"
			s.call(570, "close", "C", unknown)
			s.call(580, "accept", "D", done).state = "=x"
		}, rows{row(3, 0, semantics.Deferred, "")}, nil},
		"two holders": {"Illegal (I3", func(s *story) {
			s.accept(0, "A")
			s.accept(499, "B") // at 500, when A's lock has one ms more
		}, nil, nil},
		"accepted after a renewal": {"Illegal (I3", func(s *story) {
			s.accept(0, "A")
			s.call(400, "renew", "A", done)
			s.accept(700, "B")
		}, nil, nil},
		"refused though free": {"Illegal (I3", func(s *story) {
			s.close(10, s.accept(0, "A"))
			s.call(20, "accept", "", refused)
		}, nil, nil},
		"late holder": {"Illegal (I3", func(s *story) {
			s.accept(0, "A")
			s.call(501, "complete", "A", done)
		}, nil, nil},
		"holder that was replaced": {"Illegal (I3", func(s *story) {
			s.close(10, s.accept(0, "A"))
			s.accept(20, "B")
			s.call(30, "set state", "A", done)
		}, nil, nil},
		"renewed too late": {"Illegal (I3", func(s *story) {
			s.accept(0, "A")
			s.call(500, "renew", "A", done) // at 501
		}, nil, nil},
		"lock lost too early": {"Illegal (I3", func(s *story) {
			s.accept(0, "A")
			s.call(400, "receive", "A", lost)
		}, nil, nil},
		"another state": {"Illegal (I3", func(s *story) {
			a := s.accept(0, "A")
			s.call(10, "set state", "A", done).state = "=x"
			s.close(20, a)
			s.call(30, "accept", "B", done).state = "=y"
		}, nil, nil},
		"state of a late holder": {"Illegal (I3", func(s *story) {
			s.accept(0, "A")
			s.call(600, "set state", "A", unknown).state = "=x"
			s.call(700, "accept", "B", done).state = "=x"
		}, nil, nil},
		"never accepted": {"Illegal (I3", func(s *story) {
			s.call(10, "complete", "A", done) // nothing can come first, so no order is found at all
		}, nil, nil},
		"first hand-out out of order": {"for the first time after", func(s *story) {
			a := s.accept(0, "A")
			s.deliver(10, a, 2, 1, "complete", done)
			s.deliver(20, a, 1, 1, "", done)
		}, nil, nil},
		"completed out of order": {"completed after", func(s *story) {
			a := s.accept(0, "A")
			s.deliver(10, a, 1, 1, "release", done)
			s.deliver(20, a, 2, 1, "complete", done)
			s.deliver(30, a, 1, 1, "complete", done)
		}, nil, nil},
		"not counted": {"should have risen by 1 to 1", func(s *story) {
			s.deliver(10, s.accept(0, "A"), 1, 1, "", done)
			s.deliver(520, s.accept(501, "B"), 1, 1, "complete", done)
		}, nil, nil},
		"counted by a close": {"should have risen by 0 to 0", func(s *story) {
			a := s.accept(0, "A")
			s.deliver(10, a, 1, 1, "", done)
			s.close(20, a)
			s.deliver(40, s.accept(30, "B"), 1, 2, "complete", done)
		}, nil, nil},
		"counted by a drain": {"should have risen by 0 to 0", func(s *story) {
			a := s.accept(0, "A")
			a.sidecar = &process{Sidecar: &sidecartest.Sidecar{}, drained: s.at(20), exited: s.at(30)}
			s.deliver(10, a, 1, 1, "", done)
			s.deliver(50, s.accept(40, "B"), 1, 2, "complete", done)
		}, nil, nil},
		"counted by nothing": {"should have risen by 0 to 0", func(s *story) { s.deliver(10, s.accept(0, "A"), 1, 2, "complete", done) }, nil, nil},
		"too many times": {"the queue permits 3", func(s *story) {
			a := s.accept(0, "A")
			for i := range 4 {
				s.deliver(10*i, a, 1, i+1, "abandon", done)
			}
		}, nil, nil},
		"handed out again": {"after it was settled: complete", func(s *story) {
			a := s.accept(0, "A")
			s.deliver(10, a, 1, 1, "complete", done)
			s.deliver(20, a, 1, 1, "", done)
		}, nil, nil},
		"message lock lost": {"its lock was lost", func(s *story) { s.deliver(10, s.accept(0, "A"), 1, 1, "complete", "MESSAGE_LOCK_LOST") }, nil, nil},
		"lost":              {"is lost (I1)", func(s *story) { s.send(1) }, nil, nil},
		"lost by a release": {"is lost (I1)", func(s *story) {
			s.send(1)
			s.deliver(10, s.accept(0, "A"), 1, 1, "release", unknown)
		}, nil, nil},
		"lost on the way to the dead letters": {"is lost (I1)", func(s *story) {
			s.send(1)
			s.deliver(10, s.accept(0, "A"), 1, 1, "dead-letter", unknown)
		}, nil, nil},
		"perhaps completed": {"", func(s *story) {
			s.send(1)
			s.deliver(10, s.accept(0, "A"), 1, 1, "complete", unknown)
		}, nil, nil},
		"completed and dead": {"several places", func(s *story) { s.deliver(10, s.accept(0, "A"), 1, 1, "complete", done) }, nil, rows{row(1, 3, 0, "MaxDeliveryCountExceeded")}},
		"dead twice": {
			"several places", func(*story) {}, nil,
			rows{row(1, 3, 0, "MaxDeliveryCountExceeded"), row(1, 3, 0, "MaxDeliveryCountExceeded")},
		},
		"dead too early":       {"is a dead letter because of", func(*story) {}, nil, rows{row(1, 2, 0, "MaxDeliveryCountExceeded")}},
		"dead by nobody":       {"is a dead letter because of", func(*story) {}, nil, rows{row(1, 0, 0, byHand)}},
		"never received":       {"is left in the queue", func(*story) {}, rows{row(1, 0, 0, "")}, nil},
		"poison that is kept":  {"is left in the queue", func(*story) {}, rows{row(1, 3, semantics.Deferred, "")}, nil},
		"numbers out of order": {"(SEND-3)", func(s *story) { s.send(2); s.send(1) }, rows{row(1, 0, semantics.Deferred, ""), row(2, 0, semantics.Deferred, "")}, nil},
		"taken up too late":    {"(I15)", (*story).takenUpLate, nil, nil},
		"nobody waited": {"", func(s *story) {
			a := s.accept(0, "A")
			s.deliver(10, a, 1, 1, "", done)
			s.record.waits = append(s.record.waits, &wait{began: s.at(600), ended: s.at(1650), sidecar: s.all[0]})
			s.deliver(1700, s.accept(1600, "B"), 1, 2, "complete", done)
		}, nil, nil},
		"taken up by nobody knows whom": {"", func(s *story) {
			s.takenUpLate()
			s.acceptBlindly(1400, "")
		}, nil, nil},
		"another one taken up by nobody knows whom": {"(I15)", func(s *story) {
			s.takenUpLate()
			s.acceptBlindly(1400, "another")
		}, nil, nil},
		"not taken up by anybody in time": {"(I15)", func(s *story) {
			s.takenUpLate()
			s.acceptBlindly(1501, "s")
		}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &faultFinder{TB: t}
			s := &story{began: time.Now().Truncate(time.Second).Add(-time.Minute), run: &run{
				t: f, lock: 500 * time.Millisecond, most: 3, sessions: []string{"s"}, all: []*process{{Sidecar: &sidecartest.Sidecar{}}},
				record: record{sent: make([][]sent, 1)},
			}}
			c.tell(s)
			s.checkAll(c.main, c.dead)
			all := strings.Join(f.found, "\n")
			if (all == "") != (c.says == "") || !strings.Contains(all, c.says) {
				t.Errorf("got %q, want %q", all, c.says)
			}
		})
	}
}
