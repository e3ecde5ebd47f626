package partitioned

import (
	"slices"

	"github.com/sidebus/sidebus/semantics"
)

// ofNumber returns which partition a sequence number names, and the number there. In a session only its own partition
// has messages. ok is false for a number that no message has.
func (w *whole) ofNumber(source semantics.Source, number int64) (own int64, partition int, ok bool) {
	own, partition = semantics.PartitionOf(number)
	session, inSession := w.sessionOf(source)
	isElsewhere := inSession && partition != session
	return own, partition, own >= 1 && partition >= 0 && partition < len(w.paths) && !isElsewhere
}

// at returns which partition of the entity a position is in, and the position there. One before or behind all
// partitions is the end of the first or last one, which is asked all the same: the entity may have other partitions by
// now than are remembered.
func (w *whole) at(position int64) (own int64, partition int) {
	own, partition = semantics.PartitionOf(position)
	switch last := len(w.paths) - 1; {
	case partition < 0:
		return 0, 0
	case partition > last:
		return semantics.EndOfPartition, last
	default:
		return own, partition
	}
}

// byPartition divides sequence numbers among the partitions that they name, as these know them. unknown are those that
// no message has.
func (w *whole) byPartition(source semantics.Source, numbers []int64) (own map[int][]int64, unknown []int64) {
	own = map[int][]int64{}
	for _, number := range numbers {
		if n, p, ok := w.ofNumber(source, number); ok {
			own[p] = append(own[p], n)
		} else {
			unknown = append(unknown, number)
		}
	}
	return own, unknown
}

// withNumbers does something with messages of one state, all or none, which only one partition can do.
// MESSAGE_NOT_FOUND with the numbers that are not found, and INVALID_OPERATION for numbers of several partitions. A
// partition is asked in any case, because it may refuse the call for another cause.
func (w *whole) withNumbers(
	source semantics.Source, numbers []int64, state semantics.State, do func(p int, own []int64) error,
) error {
	own, unknown := w.byPartition(source, numbers)
	if len(own) > 1 && len(unknown) == 0 {
		return semantics.FieldError(
			semantics.InvalidOperation, "sequenceNumbers",
			"are of %d partitions of %q, which cannot be changed together; name those of one partition a call",
			len(own), w.name,
		).With(semantics.DetailEntity, w.name)
	}
	p, _ := w.sessionOf(source)
	for p = range own {
		break
	}
	some := own[p]
	if len(unknown) > 0 {
		some = append(some, semantics.EndOfPartition) // stands for them: the partition has no such message
	}
	return w.inNumbers(do(p, some), p, state, numbers, unknown)
}

// inNumbers returns a failure of a partition with the numbers that the client knows.
func (w *whole) inNumbers(err error, p int, state semantics.State, numbers, unknown []int64) error {
	named, ok := semantics.NumbersOf(err)
	if !ok {
		return inPartition(err, p)
	}
	for i := range named {
		named[i] = semantics.InPartition(named[i], p)
	}
	if semantics.CodeOf(err) != semantics.MessageNotFound {
		return semantics.TooLargeAnswer(named)
	}
	var missing []int64 // in the order in which they were given
	for _, number := range numbers {
		isMissing := slices.Contains(named, number) || slices.Contains(unknown, number)
		if isMissing && !slices.Contains(missing, number) {
			missing = append(missing, number)
		}
	}
	return semantics.NumbersNotFound(w.name, state, missing)
}
