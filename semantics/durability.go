package semantics

// Durability is what must be true of a change before its caller hears that it was made (DUR-1).
type Durability uint8

// Levels of durability.
const (
	DurabilityMemory  Durability = iota // the store has made the change
	DurabilityDisk                      // its disk has it too
	DurabilityReplica                   // its replicas have it too, in their memory
)

var durabilities = []string{"memory", "disk", "replica"}

// String returns the level as settings write it.
func (d Durability) String() string { return durabilities[d] }

// ParseDurability reads a level as settings write it.
func ParseDurability(text string) (Durability, bool) {
	for i, word := range durabilities {
		if word == text {
			return Durability(i), true //nolint:gosec // there are three
		}
	}
	return DurabilityMemory, false
}

// Unconfirmed is DURABILITY_NOT_MET for a change that was made, with the level and why it is not confirmed (DUR-2).
func Unconfirmed(level Durability, why error) *Error {
	e := Errorf(
		DurabilityNotMet, "the change is stored, but durability %s is not confirmed; "+
			"it is not undone, so repeat a send only with the same request id", level,
	).With(DetailOutcome, OutcomeStored)
	e.Err = why
	return e
}

// MemoryOnly is the error of options with a durability that a store in memory cannot have (DUR-3), nil if it can.
func (o Options) MemoryOnly() error {
	if o.Durability == AsSidecar || o.Durability == AtMemory {
		return nil
	}
	return FieldError(
		PreconditionFailed, "durability", "cannot be %s, because --store memory keeps messages in memory only; use a Redis",
		o.Durability,
	)
}

// Unconfirm returns the codes of a settlement that is not confirmed: what would have been a success is
// DURABILITY_NOT_MET.
func Unconfirm(codes []Code) []Code {
	for i, code := range codes {
		if code == "" {
			codes[i] = DurabilityNotMet
		}
	}
	return codes
}

// Took reports whether the message with this code of a settlement is settled: confirmed, or not (DUR-2).
func (c Code) Took() bool { return c == "" || c == DurabilityNotMet }
