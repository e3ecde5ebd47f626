package frame

import (
	"bytes"
	"fmt"

	"github.com/sidebus/sidebus/proxy/amqp/internal/codec"
)

// Error is why a link, session or connection ends, or a message is refused.
type Error struct {
	Condition, Description string
	Info                   codec.Map
}

// Error returns the condition and its description.
func (e *Error) Error() string { return fmt.Sprintf("%s: %s", e.Condition, e.Description) }

func (e *Error) value() any {
	if e == nil {
		return nil
	}
	return codec.Described{Descriptor: uint64(0x1d), Value: trimmed(codec.List{
		codec.Symbol(e.Condition), unless(e.Description), orNull(e.Info),
	})}
}

// describedList returns the code and the fields of a described list. It fails for anything else.
func describedList(f *fields, value any, what string) (code uint64, inner *fields, ok bool) {
	described, isDescribed := value.(codec.Described)
	list, isList := described.Value.(codec.List)
	if isDescribed && isList {
		code, ok = codeOf(described.Descriptor)
	}
	if !ok {
		f.fail(value, what)
	}
	return code, &fields{of: what, list: list}, ok
}

// done passes on the first error of the fields of a part.
func (f *fields) done(inner *fields) {
	if f.err == nil {
		f.err = inner.err
	}
}

func readError(f *fields, value any) *Error {
	if value == nil {
		return nil
	}
	_, inner, ok := describedList(f, value, "an error")
	if !ok {
		return nil
	}
	e := &Error{Condition: inner.text(), Description: inner.text(), Info: inner.mapping()}
	f.done(inner)
	return e
}

// Source is where the messages of a link come from.
type Source struct {
	Address string
	Filter  codec.Map
	all     codec.List // as it came, to answer with what was asked
}

// WithFilter returns a copy of the source with another filter.
func (s *Source) WithFilter(filter codec.Map) *Source {
	c := *s
	c.Filter = filter
	c.all = append(append(codec.List{}, s.all...), make(codec.List, max(0, filterField+1-len(s.all)))...)
	c.all[filterField] = filter
	return &c
}

const filterField = 7

func (s *Source) value() any {
	if s == nil {
		return nil
	}
	all := s.all
	if all == nil {
		all = codec.List{unless(s.Address), nil, nil, nil, nil, nil, nil, orNull(s.Filter)}
	}
	return codec.Described{Descriptor: uint64(0x28), Value: trimmed(all)}
}

func readSource(f *fields, value any) *Source {
	if value == nil {
		return nil
	}
	_, inner, ok := describedList(f, owned(value), "a source")
	if !ok {
		return nil
	}
	s := &Source{Address: inner.text(), all: inner.list}
	inner.at = filterField
	s.Filter = inner.mapping()
	f.done(inner)
	return s
}

// Target is where the messages of a link go to.
type Target struct {
	Address       string
	IsCoordinator bool       // of transactions
	all           codec.List // as it came
}

func (t *Target) value() any {
	if t == nil {
		return nil
	}
	all := t.all
	if all == nil {
		all = codec.List{unless(t.Address)}
	}
	code := uint64(0x29)
	if t.IsCoordinator {
		code = 0x30
	}
	return codec.Described{Descriptor: code, Value: trimmed(all)}
}

func readTarget(f *fields, value any) *Target {
	if value == nil {
		return nil
	}
	code, inner, ok := describedList(f, owned(value), "a target")
	if !ok {
		return nil
	}
	t := &Target{IsCoordinator: code == 0x30, all: inner.list}
	if !t.IsCoordinator {
		t.Address = inner.text()
	}
	f.done(inner)
	return t
}

// State is the state of a delivery: one of the types below, or nil.
type State interface{ value() any }

// The states.
type (
	// Received is a state that settles nothing.
	Received struct{}
	// Accepted means that the receiver has processed the message.
	Accepted struct{}
	// Rejected means that the message is invalid.
	Rejected struct{ Error *Error }
	// Released means that the receiver has not processed the message.
	Released struct{}
	// Modified is Released with changes.
	Modified struct {
		DeliveryFailed, UndeliverableHere bool
		Annotations                       codec.Map
	}
	// Declared is the answer of a coordinator to the declaration of a transaction.
	Declared struct{ ID []byte }
	// Transactional is an outcome that counts only if its transaction is committed. Of a transfer it has none.
	Transactional struct {
		ID      []byte
		Outcome State
	}
)

func stateOf(code uint64, list codec.List) any {
	return codec.Described{Descriptor: code, Value: trimmed(list)}
}

func (Received) value() any   { return stateOf(0x23, codec.List{}) }
func (Accepted) value() any   { return stateOf(0x24, codec.List{}) }
func (r Rejected) value() any { return stateOf(0x25, codec.List{r.Error.value()}) }
func (Released) value() any   { return stateOf(0x26, codec.List{}) }
func (d Declared) value() any { return stateOf(0x33, codec.List{bytesOrNull(d.ID)}) }
func (t Transactional) value() any {
	return stateOf(0x34, codec.List{bytesOrNull(t.ID), stateValue(t.Outcome)})
}

func (m Modified) value() any {
	return stateOf(0x27, codec.List{unless(m.DeliveryFailed), unless(m.UndeliverableHere), orNull(m.Annotations)})
}

func stateValue(s State) any {
	if s == nil {
		return nil
	}
	return s.value()
}

func readState(f *fields, value any) State {
	if value == nil {
		return nil
	}
	code, inner, ok := describedList(f, value, "a delivery state")
	if !ok {
		return nil
	}
	defer f.done(inner)
	switch code {
	case 0x23:
		return Received{}
	case 0x24:
		return Accepted{}
	case 0x25:
		return Rejected{readError(inner, inner.next())}
	case 0x26:
		return Released{}
	case 0x27:
		return Modified{inner.boolean(), inner.boolean(), inner.mapping()}
	case 0x33:
		return Declared{bytes.Clone(inner.binary())}
	case 0x34:
		t := Transactional{ID: bytes.Clone(inner.binary())}
		t.Outcome = readOutcome(inner, inner.next())
		return t
	default:
		f.fail(value, "a delivery state")
		return nil
	}
}

// readOutcome reads the outcome in the state of a transaction, which is not such a state again.
func readOutcome(f *fields, value any) State {
	if described, ok := value.(codec.Described); ok {
		if code, _ := codeOf(described.Descriptor); code == 0x33 || code == 0x34 {
			f.fail(value, "an outcome")
			return nil
		}
	}
	return readState(f, value)
}
