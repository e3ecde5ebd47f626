package redisstore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sidebus/sidebus/semantics"
)

// fanOut is one message with its copies, encoded for lua/lib/topic/read_copies.lua. What several copies share is sent
// once.
type fanOut struct {
	forms   []form
	reasons []*semantics.DeadLetterTexts
	copies  []copyOf
	bytes   int64 // of all copies
	weight  int   // by Store.weigh, where it decides what shares a script
}

// form is a message as it was sent, or as an action made it for some copies.
type form struct {
	head    string // "<size>" or "<size>:<ttl_ms>"
	session string
	payload []byte
	size    int64
}

// copyOf is the form of a message that a subscription gets. form and reason count from 1; 0 means no reason.
type copyOf struct {
	subscription string
	form, reason int
}

// newFanOut encodes a publication. With keeps, the first form is the message itself, as a scheduled message is stored.
func (s sealing) newFanOut(p semantics.Publication, keeps bool) (*fanOut, error) {
	f, known := &fanOut{}, map[*semantics.Message]int{}
	if keeps {
		if err := f.addForm(p.Message, known, s); err != nil {
			return nil, err
		}
	}
	for _, c := range p.Copies {
		if known[c.Message] == 0 {
			if err := f.addForm(c.Message, known, s); err != nil {
				return nil, err
			}
		}
		one := copyOf{subscription: c.Subscription, form: known[c.Message]}
		if c.DeadLetter != nil {
			f.reasons = append(f.reasons, c.DeadLetter)
			one.reason = len(f.reasons)
		}
		f.copies = append(f.copies, one)
		f.bytes += f.forms[one.form-1].size
	}
	return f, nil
}

func (f *fanOut) addForm(m *semantics.Message, known map[*semantics.Message]int, s sealing) error {
	payload, err := s.encode(m)
	if err != nil {
		return err
	}
	f.forms = append(
		f.forms, form{head: sizeAndLifetime(m), session: sessionKey(m.SessionID), payload: payload, size: m.Size()},
	)
	known[m] = len(f.forms)
	return nil
}

// append adds the arguments of lua/lib/topic/read_copies.lua. index has the number of each subscription in the script,
// counted from 1.
func (f *fanOut) append(args []any, index map[string]int) []any {
	args = append(args, len(f.copies), f.text(index), len(f.forms))
	for _, form := range f.forms {
		args = append(args, form.head, form.session, form.payload)
	}
	args = append(args, len(f.reasons))
	for _, texts := range f.reasons {
		args = append(args, causeLetter(texts), textOrNone(texts.Reason), textOrNone(texts.Description))
	}
	return args
}

// text returns the copies in the form of lua/lib/topic/each_copy.lua. Copies of the first form for neighbouring
// subscriptions, the usual case, become one range.
func (f *fanOut) text(index map[string]int) string {
	var out strings.Builder
	for i := 0; i < len(f.copies); i++ {
		if out.Len() > 0 {
			out.WriteByte(' ')
		}
		c := f.copies[i]
		first := index[c.subscription]
		switch {
		case c.reason != 0:
			fmt.Fprintf(&out, "%d:%d:%d", first, c.form, c.reason)
		case c.form != 1:
			fmt.Fprintf(&out, "%d:%d", first, c.form)
		default:
			last := first
			for i+1 < len(f.copies) && f.copies[i+1] == (copyOf{subscription: f.copies[i+1].subscription, form: 1}) &&
				index[f.copies[i+1].subscription] == last+1 {
				i, last = i+1, last+1
			}
			fmt.Fprintf(&out, "%d-%d", first, last)
		}
	}
	return out.String()
}

// causeLetter returns the letter by which the scripts know why a copy is a dead letter: see causes.
func causeLetter(texts *semantics.DeadLetterTexts) string {
	if texts.Reason == nil {
		return "a"
	}
	switch *texts.Reason {
	case semantics.ReasonFilterFailed:
		return "f"
	case semantics.ReasonHeaderSize:
		return "h"
	case semantics.ReasonNoSession:
		return "s"
	default:
		return "a"
	}
}

// destinations are the subscriptions that get copies in one script.
type destinations struct {
	topic string
	names []string // folded, in order
	index map[string]int
	whole map[string]bool // those that get a dead letter
}

func destinationsOf(topic string, fanOuts []*fanOut) destinations {
	d := destinations{topic: topic, index: map[string]int{}, whole: map[string]bool{}}
	for _, f := range fanOuts {
		for _, c := range f.copies {
			if d.index[c.subscription] == 0 {
				d.index[c.subscription] = 1
				d.names = append(d.names, c.subscription)
			}
			if c.reason != 0 {
				d.whole[c.subscription] = true
			}
		}
	}
	slices.Sort(d.names) // as the copies of each message are, so that they are ranges
	for i, name := range d.names {
		d.index[name] = i + 1
	}
	return d
}

func (d destinations) path(i int) string { return semantics.SubscriptionPath(d.topic, d.names[i]) }

// appendKeys adds the keys of the subscriptions and returns their levels, by what this process has learnt about each.
func (s *Store) appendKeys(keys []string, d destinations) (all []string, levels string) {
	letters := make([]byte, len(d.names))
	for i, name := range d.names {
		level := levelPlain
		if known, ok := s.levels.get(semantics.Fold(d.path(i))); ok {
			level = known
		}
		if d.whole[name] {
			level = levelWhole
		}
		keys = append(keys, s.keys(d.path(i)).copies(level)...)
		letters[i] = byte(level)
	}
	return keys, string(letters)
}

// learnLevels reads the reply NEEDS_KEYS.
func (s *Store) learnLevels(d destinations, r *reply) error {
	for r.more() {
		i, level := int(r.number()), r.text()
		if r.err == nil && (i < 1 || i > len(d.names) || len(level) != 1) {
			r.err = fmt.Errorf("script %s: subscription %d needs the keys %q", r.script, i, level)
		}
		if r.err == nil {
			s.levels.put(semantics.Fold(d.path(i-1)), keyLevel(level[0]))
		}
	}
	return r.failure()
}

// weigh returns how much work a message is for a script: it counts copies, and each 16 KiB to copy as one more. Two
// copies that may share their body count as one. That is bounded for those that turn out not to, because of a time to
// live or a limit of their subscription; of subscriptions that need more keys it is known.
func (s *Store) weigh(topic string, f *fanOut) int {
	n, shared, knowsLevels := 1, 0, s.levels.count() > 0
	for _, form := range f.forms {
		n += len(form.payload) >> 10
	}
	for _, c := range f.copies {
		n += len(f.forms[c.form-1].payload) >> 14
		isKnown := false
		if knowsLevels {
			_, isKnown = s.levels.get(semantics.Fold(semantics.SubscriptionPath(topic, c.subscription)))
		}
		isShared := c.form == 1 && c.reason == 0 && !strings.Contains(f.forms[0].head, ":") && len(f.copies) > 1
		if isShared && !isKnown {
			shared++
		} else {
			n++
		}
	}
	return n + shared/2
}

// applyCopies reads the notifications of subscriptions (lua/lib/topic/close_copies.lua), reports them and returns their
// alarms.
func (s *Store) applyCopies(d destinations, r *reply) []alarm {
	var alarms []alarm
	for r.more() {
		i := int(r.number())
		if i < 1 || i > len(d.names) {
			r.err = fmt.Errorf("script %s: notifications of subscription %d", r.script, i)
			return nil
		}
		if at := s.readNotifications(d.path(i-1), r); at > 0 {
			alarms = append(alarms, alarm{name: semantics.Fold(d.path(i - 1)), at: at})
		}
	}
	return alarms
}
