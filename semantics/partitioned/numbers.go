package partitioned

import (
	"github.com/sidebus/sidebus/semantics"
)

// byPartition divides sequence numbers among the partitions that they name, as these know them. unknown are those of no
// partition.
func (w *whole) byPartition(numbers []int64) (own map[int][]int64, unknown []int64) {
	own = map[int][]int64{}
	for _, number := range numbers {
		n, p := semantics.PartitionOf(number)
		if p < 0 || p >= len(w.paths) || n < 1 {
			unknown = append(unknown, number)
			continue
		}
		own[p] = append(own[p], n)
	}
	return own, unknown
}

// withNumbers does something with messages of one state, all or none, which only one partition can do.
// MESSAGE_NOT_FOUND with the numbers that are not found, and INVALID_OPERATION for numbers of several partitions.
func (w *whole) withNumbers(numbers []int64, state semantics.State, do func(p int, own []int64) error) error {
	own, unknown := w.byPartition(numbers)
	switch {
	case len(unknown) > 0:
		return semantics.NumbersNotFound(w.name, state, unknown)
	case len(own) > 1:
		return semantics.FieldError(
			semantics.InvalidOperation, "sequenceNumbers",
			"are of %d partitions of queue %q, which cannot be changed together; name those of one partition a call",
			len(own), w.name,
		).With(semantics.DetailEntity, w.name)
	}
	for p, some := range own {
		err := do(p, some)
		if semantics.CodeOf(err) == semantics.MessageNotFound {
			return w.numbersNotFound(err, state, p)
		}
		return inPartition(err, p)
	}
	return nil
}

// numbersNotFound returns a refusal of numbers with those that the client knows.
func (w *whole) numbersNotFound(err error, state semantics.State, partition int) error {
	missing, ok := semantics.MissingNumbers(err)
	if !ok {
		return err
	}
	for i := range missing {
		missing[i] = semantics.InPartition(missing[i], partition)
	}
	return semantics.NumbersNotFound(w.name, state, missing)
}
