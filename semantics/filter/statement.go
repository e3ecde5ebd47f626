package filter

import (
	"fmt"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// statement is a step of an action.
type statement interface {
	node
	run(draft *semantics.Message) error // changes the draft
	on() *property                      // the property it changes
}

type (
	set struct {
		target     *property
		expression value
	}
	remove struct{ target *property }
)

func (n *set) on() *property { return n.target }

func (n *remove) on() *property { return n.target }

func (n *set) write(w *writer) {
	w.add("SET ")
	n.target.write(w)
	w.add(" = ")
	w.put(n.expression, precedenceSum)
}

func (n *remove) write(w *writer) {
	w.add("REMOVE ")
	n.target.write(w)
}

func (n *set) run(draft *semantics.Message) error {
	if n.target.system == ScheduledEnqueueTimeUTC { // without effect (ACT-8, SCHED-11)
		return nil
	}
	v, err := exactOf(n.expression, (*live)(draft))
	if err != nil {
		return err
	}
	if n.target.system != 0 {
		return failed(n, setSystem(draft, n.target.system, v))
	}
	return failed(n, setUser(draft, n.target, v))
}

// run clears a system property; an application property that is missing stays so (ACT-7).
func (n *remove) run(draft *semantics.Message) error {
	if n.target.system == ScheduledEnqueueTimeUTC { // without effect (SCHED-11)
		return nil
	}
	if n.target.system != 0 {
		return failed(n, setSystem(draft, n.target.system, semantics.Null()))
	}
	if name, _, ok := lookUp(draft.Properties, n.target.lower); ok {
		delete(draft.Properties, name)
	}
	return nil
}

// exactOf returns the value of an expression. A property or a parameter that stands alone keeps its type, so that SET a
// = b copies an int16 as an int16 and even bytes; unknown is null (ACT-6).
func exactOf(v value, p Properties) (semantics.Value, error) {
	switch v := v.(type) {
	case *parameter:
		return v.given, nil
	case *property:
		exact, _ := v.exact(p)
		return exact, nil
	case *lookup:
		found, err := v.resolve(p)
		if err != nil || found == nil {
			return semantics.Null(), err
		}
		exact, _ := found.exact(p)
		return exact, nil
	default:
		o, err := v.operand(p)
		return o.value(), err
	}
}

// setUser sets an application property. One that is there keeps the case of its name, and its type unless it or the new
// value is null (ACT-5, ACT-6).
func setUser(draft *semantics.Message, target *property, v semantics.Value) (problem string) {
	name, old, ok := lookUp(draft.Properties, target.lower)
	if !ok {
		name = target.name
	}
	if old.Type() != semantics.TypeNull && v.Type() != semantics.TypeNull {
		if v, problem = convert(v, old.Type()); problem != "" {
			return problem
		}
	}
	draft.Properties[name] = v
	return ""
}

// settable reports whether an action may change a system property (ACT-3).
func settable(s SystemProperty) bool {
	return s == TimeToLive || textField(&semantics.Message{}, s) != nil
}

// setSystem sets a settable system property, or clears it if the value is null or an empty text (ACT-6, MSG-2).
func setSystem(draft *semantics.Message, s SystemProperty, v semantics.Value) (problem string) {
	if s == TimeToLive {
		return setTimeToLive(draft, v)
	}
	text := semantics.String("")
	if v.Type() != semantics.TypeNull {
		if text, problem = convert(v, semantics.TypeString); problem != "" {
			return problem
		}
	}
	if n := utf16Length(text.Text()); isID(s) && n > semantics.MaxIDLength {
		return fmt.Sprintf("the text is %d characters long, at most %d are allowed", n, semantics.MaxIDLength)
	}
	*textField(draft, s) = text.Text()
	return ""
}

// isID reports whether the length of a text property has a limit of its own (MSG-2).
func isID(s SystemProperty) bool {
	switch s {
	case MessageID, SessionID, PartitionKey, CorrelationID, ReplyToSessionID:
		return true
	default:
		return false
	}
}

// setTimeToLive takes a timespan or a text that is one. A number has no unit and is refused.
func setTimeToLive(draft *semantics.Message, v semantics.Value) (problem string) {
	if v.Type() == semantics.TypeNull {
		draft.TimeToLive = nil
		return ""
	}
	if v, problem = convert(v, semantics.TypeTimeSpan); problem != "" {
		return problem
	}
	lifetime := semantics.Never
	if ticks := v.Int(); ticks < int64(semantics.Never/tick) {
		lifetime = time.Duration(ticks) * tick
	}
	if v.Int() < int64(time.Millisecond/tick) {
		return "the time to live is not at least 1ms"
	}
	draft.TimeToLive = &lifetime
	return ""
}
