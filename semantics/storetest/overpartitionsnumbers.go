package storetest

import (
	"cmp"
	"slices"
	"sync"

	"github.com/sidebus/sidebus/semantics"
)

// numbersAsOne are the numbers that messages of several partitions would have in one: in the order in which they were
// accepted, as far as the calls show it. In a partition numbers have no gaps (MSG-5), so one that shows up shows all
// before it.
type numbersAsOne struct {
	mu     sync.Mutex
	queues map[string]*numbersOfQueue
}

type numbersOfQueue struct {
	one  map[int64]int64 // by number of partition
	own  []int64         // numbers of partitions, in order
	last map[int]int64   // own one of each partition
}

// neverGiven is above all numbers that a queue of a test ever assigns.
const neverGiven = 1 << 40

func (n *numbersAsOne) of(path string) *numbersOfQueue {
	path = semantics.Fold(path)
	if n.queues[path] == nil {
		if n.queues == nil {
			n.queues = map[string]*numbersOfQueue{}
		}
		n.queues[path] = &numbersOfQueue{one: map[int64]int64{}, last: map[int]int64{}}
	}
	return n.queues[path]
}

// begin forgets what is known of a queue of that name.
func (n *numbersAsOne) begin(path string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.queues, semantics.Fold(path))
}

func (n *numbersAsOne) asOne(path string, own int64) int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	if own >= neverGiven && own < 1<<48 {
		return own - neverGiven
	}
	q := n.of(path)
	last, p := semantics.PartitionOf(own)
	for q.last[p] < last {
		q.last[p]++
		number := semantics.InPartition(q.last[p], p)
		q.own = append(q.own, number)
		q.one[number] = int64(len(q.own))
	}
	return q.one[own]
}

// ofPartitions is the opposite of asOne.
func (n *numbersAsOne) ofPartitions(path string, numbers []int64) (own []int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	q := n.of(path)
	for _, number := range numbers {
		if number < 1 || number > int64(len(q.own)) {
			own = append(own, number+neverGiven)
			continue
		}
		own = append(own, q.own[number-1])
	}
	return own
}

// received changes the numbers of messages. Those that have one for the first time became active together.
func (n *numbersAsOne) received(path string, messages []*semantics.Received) {
	inOrder := slices.Clone(messages)
	slices.SortStableFunc(inOrder, func(a, b *semantics.Received) int {
		return cmp.Or(a.EnqueuedAt.Compare(b.EnqueuedAt), cmp.Compare(a.SequenceNumber, b.SequenceNumber))
	})
	for _, m := range inOrder {
		m.SequenceNumber = n.asOne(path, m.SequenceNumber)
		if m.Forwarded == nil {
			m.EnqueuedSequenceNumber = n.asOne(path, m.EnqueuedSequenceNumber)
		}
	}
}

func (n *numbersAsOne) failure(path string, err error, state semantics.State) error {
	numbers, ok := semantics.NumbersOf(err)
	if !ok {
		return err
	}
	for i := range numbers {
		numbers[i] = n.asOne(path, numbers[i])
	}
	if semantics.CodeOf(err) != semantics.MessageNotFound {
		return semantics.TooLargeAnswer(numbers)
	}
	return semantics.NumbersNotFound(semantics.AsError(err).Details[semantics.DetailEntity], state, numbers)
}
