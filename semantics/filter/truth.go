package filter

// Truth is the outcome of a condition in three-valued logic (SQL-7). Values are ordered False < Unknown < True, so that
// AND is the least and OR the greatest of its operands.
type Truth uint8

// The three truths.
const (
	False Truth = iota
	Unknown
	True
)

// String returns "FALSE", "UNKNOWN" or "TRUE".
func (t Truth) String() string { return [...]string{"FALSE", "UNKNOWN", "TRUE"}[t] }

func (t Truth) not() Truth { return True - t }

// negatedIf returns the opposite truth if negated, for tests written with NOT.
func (t Truth) negatedIf(negated bool) Truth {
	if negated {
		return t.not()
	}
	return t
}

func truthOf(b bool) Truth {
	if b {
		return True
	}
	return False
}
