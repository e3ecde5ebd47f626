package semantics

// FilterBudget is how many bytes of text the rules of a topic may look at for one message, each rule for itself
// (SQL-18, RULE-8). It bounds the time to decide about a message: some tens of milliseconds, whatever rules and
// properties there are.
const FilterBudget = 8 << 20

// Budget is what is left of FilterBudget for one message. It is not safe for concurrent use. A nil one has no bound.
type Budget struct{ left int }

// NewBudget makes the budget of one message.
func NewBudget() *Budget { return &Budget{left: FilterBudget} }

// Spend takes so many bytes and reports whether they were left.
func (b *Budget) Spend(bytes int) bool {
	if b == nil {
		return true
	}
	b.left -= bytes
	return b.left >= 0
}

// Spent reports whether more was asked for than there was. From then on it stays so.
func (b *Budget) Spent() bool { return b != nil && b.left < 0 }
