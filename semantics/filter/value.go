package filter

import "github.com/sidebus/sidebus/semantics"

// value is a node with a value.
type value interface {
	node
	operand(p Properties) (operand, error)
}

type (
	constant  struct{ value operand }
	parameter struct {
		name  string // as written, without the @
		value operand
		given semantics.Value
	}
	// property is a system property if system is set, else an application property.
	property struct {
		system      SystemProperty
		name, lower string
	}
	newID struct{}
	// lookup is property(name); fixed is the property if the name is a constant.
	lookup struct {
		name  value
		fixed *property
	}
	signed struct {
		negative bool
		of       value
	}
	arithmetic struct {
		op          operator
		left, right value
	}
)

// constantOf returns the value of a node that is the same for every message: a constant, or a parameter, which is given
// with the rule.
func constantOf(v value) (operand, bool) {
	switch v := v.(type) {
	case *constant:
		return v.value, true
	case *parameter:
		return v.value, true
	default:
		return operand{}, false
	}
}

func (n *constant) operand(Properties) (operand, error) { return n.value, nil }

func (n *parameter) operand(Properties) (operand, error) { return n.value, nil }

func (n *property) operand(p Properties) (operand, error) { return n.find(p), nil }

// find returns the value of the property, kindMissing if the message does not have it.
func (n *property) find(p Properties) operand {
	v, ok := n.exact(p)
	if !ok {
		return operand{kind: kindMissing}
	}
	return operandOf(v)
}

// exact returns the value of the property as the message has it. A listed system property is always there, if only as
// null (SQL-4).
func (n *property) exact(p Properties) (semantics.Value, bool) {
	if n.system != 0 {
		return p.System(n.system), true
	}
	return p.User(n.lower)
}

func (newID) operand(Properties) (operand, error) {
	return operand{kind: kindUUID, text: semantics.NewRandomUUID().String()}, nil
}

func (n *lookup) operand(p Properties) (operand, error) {
	found, err := n.resolve(p)
	if err != nil || found == nil {
		return operand{kind: kindMissing}, err
	}
	return found.find(p), nil
}

// resolve finds the property whose name is known only now. It is nil for a name that is not a string; a scope "sys."
// before an unknown name is an error (SQL-4).
func (n *lookup) resolve(p Properties) (*property, error) {
	if n.fixed != nil {
		return n.fixed, nil
	}
	name, err := n.name.operand(p)
	if err != nil || name.kind != kindText {
		return nil, err
	}
	found, ok := propertyByName(name.text)
	if !ok {
		return nil, &EvaluationError{Expression: textOf(n), Problem: "the name is that of no system property"}
	}
	return found, nil
}

func (n *signed) operand(p Properties) (operand, error) {
	o, err := n.of.operand(p)
	if err != nil || !n.negative {
		return o.positive(), err
	}
	result, problem := negate(o)
	return result, failed(n, problem)
}

func (n *arithmetic) operand(p Properties) (operand, error) {
	left, right, err := operands(n.left, n.right, p)
	if err != nil {
		return operand{}, err
	}
	result, problem := calculate(n.op, left, right)
	if result.kind == kindText && !budgetOf(p).Spend(len(result.text)) {
		problem = budgetSpent
	}
	return result, failed(n, problem)
}

// failed makes the error of a node, nil if there is no problem.
func failed(n node, problem string) error {
	if problem == "" {
		return nil
	}
	return &EvaluationError{Expression: textOf(n), Problem: problem}
}
