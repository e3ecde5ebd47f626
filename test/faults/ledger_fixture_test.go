package faults

import (
	"strings"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// TestTheLedgerNotices shows that a ledger finds each kind of fault, and nothing where there is none.
func TestTheLedgerNotices(t *testing.T) {
	t.Parallel()
	now := time.Now()
	at := func(s int) time.Time { return now.Add(time.Duration(s) * time.Second) }
	first := func(i id) delivery {
		return delivery{id: i, number: 1 + int64(i.number), began: at(0), ended: at(1), until: at(6)}
	}
	second := func(i id) delivery {
		d := first(i)
		d.began, d.ended, d.until = at(2), at(3), at(8)
		return d
	}
	inSession := func(d delivery) delivery {
		d.session = "s"
		return d
	}
	for want, do := range map[string]func(l *ledger, a, b id){
		"": func(l *ledger, a, b id) {
			l.receive(first(a))
			l.settling(a, 0)
			l.receive(second(a))
			l.complete(a, 0)
			l.receive(first(b))
		},
		"is lost in place 0": func(l *ledger, a, _ id) { l.receive(first(a)) },
		"is two messages": func(l *ledger, a, b id) {
			l.receive(first(a))
			l.receive(first(b))
			d := second(a)
			d.number = 9
			l.receive(d)
		},
		"has two holders: its lock": func(l *ledger, a, b id) { l.receive(first(a)); l.receive(first(b)); l.receive(second(a)) },
		"after it was completed": func(l *ledger, a, b id) {
			l.receive(first(b))
			l.receive(first(a))
			l.complete(a, 0)
			d := second(a)
			d.began = at(60)
			l.receive(d)
		},
		"nobody sent it":           func(l *ledger, a, b id) { l.receive(first(a)); l.receive(first(b)); l.receive(first(id{orders, 0, 7})) },
		"and its send failed":      func(l *ledger, a, b id) { l.receive(first(b)); l.sentAs([]id{a}, failed); l.receive(first(a)) },
		"by a lock that had ended": func(l *ledger, a, b id) { l.receive(first(a)); l.receive(first(b)); l.settledLate(a, time.Second) },
		"which nobody holds":       func(l *ledger, a, b id) { l.receive(inSession(first(a))); l.receive(first(b)) },
		"came after number 1": func(l *ledger, a, b id) {
			l.accept("s", "x", 1, at(0), at(9))
			l.receive(inSession(first(b)))
			l.receive(inSession(first(a)))
		},
		"session s has two holders": func(l *ledger, a, b id) {
			l.receive(first(a))
			l.receive(first(b))
			l.accept("s", "x", 1, at(0), at(9))
			l.accept("s", "y", 1, at(2), at(9))
		},
		"session s is lost": func(l *ledger, a, b id) {
			l.receive(first(a))
			l.receive(first(b))
			l.accept("s", "x", 1, at(0), at(9))
			l.lost("s", "x")
		},
		"to some of their subscript": func(l *ledger, a, b id) {
			l.receive(first(a))
			l.receive(first(b))
			l.receive(first(l.draft(news, 0, 1)[0]))
		},
		"in the order of their partition keys": func(l *ledger, a, b id) {
			l.receive(first(a))
			l.receive(first(b))
			keyed := l.draft(spread, 0, 2)
			l.keyed(keyed, 1)
			d, e := first(keyed[0]), first(keyed[1])
			d.number, e.number = e.number, d.number
			l.receive(d)
			l.receive(e)
		},
		"keys, among them 3.0.1": func(l *ledger, a, b id) {
			l.receive(first(a))
			l.receive(first(b))
			keyed := l.draft(spread, 0, 2)
			l.keyed(keyed, 1)
			d := first(keyed[1])
			d.number = semantics.InPartition(d.number, 1)
			l.receive(first(keyed[0]))
			l.receive(d)
		},
	} {
		l := newLedger(false)
		ids := l.draft(orders, 0, 2)
		l.sentAs(ids, done)
		do(l, ids[0], ids[1])
		faults, _, _ := l.check(nil, 0)
		if got := strings.Join(faults, "\n"); want == "" && got != "" || len(faults) > 1 || !strings.Contains(got, want) {
			t.Errorf("want %q, got %q", want, got)
		}
	}
}

// TestTheLedgerForgives shows that a ledger counts what a Redis that forgets may lose, and nothing else.
func TestTheLedgerForgives(t *testing.T) {
	t.Parallel()
	for before, want := range map[time.Duration]int{time.Second: 0, 3 * time.Second: 1, -time.Second: 0, -3 * time.Second: 1} {
		l := newLedger(true)
		l.sentAs(l.draft(orders, 0, 1), done)
		began := time.Now().Add(before)
		faults, lost, longest := l.check([]outage{{began, began.Add(2 * time.Second)}}, 2*time.Second)
		if len(faults) != want || lost != 1 || want == 0 && (longest-max(0, before)).Abs() > 50*time.Millisecond {
			t.Errorf("%s before: %v, %d lost, %s", before, faults, lost, longest)
		}
	}
}
