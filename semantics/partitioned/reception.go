package partitioned

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// enough is how many messages of the first partition that is asked are an answer. Others are asked only if it has
// fewer, because messages of one partition cost one script to receive, and one to complete.
const enough = 16

// askedAtOnce is how many partitions are asked at the same time. Each may fill a whole answer, all of which the sidecar
// holds until it knows what fits.
const askedAtOnce = 8

// recheckAway is after what time a receive that found nothing looks again at a partition that could not be reached.
const recheckAway = time.Second

// reception is one receive, or one accept of the next session, from all partitions.
type reception[T any] struct {
	store    *Store
	whole    *whole
	source   semantics.Source
	register semantics.Register
	watch    *watch // nil: none is open
	// take asks one partition for so many at most. The time is as Batch.RecheckAfter.
	take func(partition, limit int) (some []T, recheck time.Duration, err error)
	// further is how many more probably fit into an answer, after what was found
	further func(found []T) int

	left     int // how many more it may have
	found    []T
	recheck  time.Duration // the shortest one, below 0 as long as no partition has been asked
	failed   error
	missing  []int        // partitions that were not there
	answered bool         // some partition has
	silent   map[any]bool // servers that did not answer
}

func newReception[T any](
	s *Store, w *whole, source semantics.Source, limit int, register semantics.Register,
	take func(partition, limit int) ([]T, time.Duration, error), further func(found []T) int,
) *reception[T] {
	return &reception[T]{
		store: s, whole: w, source: source, register: register, watch: s.watchOf(source), take: take, further: further,
		left: limit, recheck: -1, silent: map[any]bool{},
	}
}

func (r *reception[T]) run(ctx context.Context) (found []T, recheck time.Duration, err error) {
	turn := r.whole.inTurn(&r.whole.received[r.source.SubQueue])
	present := r.store.present(ctx, r.whole, turn)
	active, quiet, until := r.divide(present)
	r.ask(ctx, active[:min(1, len(active))])
	if len(active) > 1 && len(r.found) < enough {
		r.ask(ctx, active[1:])
	}
	if len(r.found) == 0 {
		r.ask(ctx, quiet)
	} else {
		r.recheckAfter(until)
		r.askMissing(ctx)
	}
	switch {
	case len(r.found) > 0:
	case r.failed != nil && (!r.answered || semantics.CodeOf(r.failed) != semantics.StoreUnavailable):
		return nil, 0, r.failed
	case r.failed != nil || len(present) < len(turn): // the others are there (PART-7)
		r.recheckAfter(recheckAway)
	}
	return r.found, max(r.recheck, 0), nil
}

// askMissing completes the entity and asks the partitions that were missing, if others had something: that is locked,
// so the call is not run again, as by on. Else what the missing ones have would wait as long as the others have
// something.
func (r *reception[T]) askMissing(ctx context.Context) {
	if len(r.missing) == 0 || r.left == 0 {
		return
	}
	now, _, err := r.store.look(ctx, r.source.Path, r.whole)
	if err == nil && now == r.whole {
		r.ask(ctx, r.missing)
	}
}

// divide returns which partitions may have something and which have nothing, as far as this sidecar knows: they were
// asked, would wake it, and have not, for at most as long as they may be left alone.
func (r *reception[T]) divide(turn []int) (active, quiet []int, until time.Duration) {
	if r.register == semantics.RegisterNever || r.watch == nil {
		return turn, nil, 0
	}
	return r.watch.divide(r.whole, turn)
}

// ask takes from partitions until it has enough. Those that may have more are asked again behind the others. Of a
// server that does not answer it asks no further ones.
func (r *reception[T]) ask(ctx context.Context, partitions []int) {
	for {
		if len(r.silent) > 0 {
			isSilent := func(p int) bool { return r.silent[r.server(ctx, p)] }
			partitions = slices.DeleteFunc(slices.Clone(partitions), isSilent)
		}
		wanted := min(r.left, r.further(r.found))
		if wanted <= 0 || len(partitions) == 0 {
			return
		}
		sharing := min(wanted, len(partitions))
		share, extra := wanted/sharing, wanted%sharing
		some := partitions[:min(sharing, askedAtOnce)]
		partitions = partitions[len(some):]
		answers, asked := make([]answer[T], len(some)), make([]int, len(some))
		failed := atOnce(some, func(place, p int) (err error) {
			asked[place] = share
			if place < extra {
				asked[place]++
			}
			answers[place], err = r.askOne(ctx, p, asked[place])
			return err
		})
		for place, p := range some {
			if err := inPartition(failed[place], p); err != nil {
				r.failed = cmp.Or(r.failed, err)
				if semantics.CodeOf(err) == semantics.EntityNotFound {
					r.missing = append(r.missing, p)
				}
				if answers[place].isAway {
					r.silent[r.server(ctx, p)] = true
				}
				continue
			}
			got := len(answers[place].found)
			r.answered, r.left = true, r.left-got
			r.found = append(r.found, answers[place].found...)
			if got == asked[place] {
				partitions = append(partitions, p)
			}
			r.recheckAfter(answers[place].recheck)
		}
	}
}

// answer is what one partition has.
type answer[T any] struct {
	found   []T
	recheck time.Duration
	isAway  bool // its server did not answer
}

// server returns that of a partition.
func (r *reception[T]) server(ctx context.Context, p int) any {
	return r.store.below.Server(ctx, r.whole.paths[p])
}

func (r *reception[T]) askOne(ctx context.Context, p, limit int) (answer[T], error) {
	before := r.watch.wakeUps(p)
	found, recheck, err := r.take(p, limit)
	isAway := r.store.note(ctx, r.whole.paths[p], err)
	if err == nil && r.register != semantics.RegisterNever && len(found) == 0 {
		r.watch.noteQuiet(r.whole, p, before, recheck)
	}
	return answer[T]{found, recheck, isAway}, err
}

func (r *reception[T]) recheckAfter(d time.Duration) {
	if r.recheck < 0 || d < r.recheck {
		r.recheck = d
	}
}
