package partitioned

import (
	"context"

	"github.com/sidebus/sidebus/semantics"
)

// Runtimes implements semantics.Counter. What has several partitions is counted alone, and what seems not to be there
// is looked for alone, because it may have some by now.
func (s *Store) Runtimes(ctx context.Context, paths []string) ([]*semantics.Runtime, error) {
	all := make([]*semantics.Runtime, len(paths))
	if counter, ok := s.below.(semantics.Counter); ok {
		if err := s.countSingle(ctx, counter, paths, all); err != nil {
			return nil, err
		}
	}
	for i, path := range paths {
		if all[i] != nil {
			continue
		}
		counts, err := s.Runtime(ctx, semantics.QueueKind, path)
		if err != nil && semantics.CodeOf(err) != semantics.EntityNotFound {
			return nil, err
		}
		if err == nil {
			all[i] = &counts
		}
	}
	return all, nil
}

// countSingle counts those that have one partition, as far as is known.
func (s *Store) countSingle(
	ctx context.Context, counter semantics.Counter, paths []string, all []*semantics.Runtime,
) error {
	var single []string
	var places []int
	for i, path := range paths {
		if s.remembered(path) == nil {
			single, places = append(single, path), append(places, i)
		}
	}
	counts, err := counter.Runtimes(ctx, single)
	for i := range counts {
		all[places[i]] = counts[i]
	}
	return err
}
