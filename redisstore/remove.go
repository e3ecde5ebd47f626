package redisstore

import (
	"context"
	"strconv"

	storagev1 "github.com/sidebus/sidebus/proto/sidebus/storage/v1"
	"github.com/sidebus/sidebus/semantics"
)

// purgeWords are the groups as purge.lua knows them.
var purgeWords = map[semantics.Show]string{
	semantics.ShowAvailable: "available", semantics.ShowDeferred: "deferred", semantics.ShowScheduled: "scheduled",
}

// Purge implements semantics.Remover. A step looks at no more than one script's worth of messages.
func (s *Store) Purge(ctx context.Context, source semantics.Source, purge semantics.Purge) (semantics.Purged, error) {
	r, err := s.run(ctx, "purge", s.keys(source.Path).all(), s.now(), prefixOf(source.SubQueue), purgeWords[purge.Show],
		beforeMillis(purge), purge.After, purge.Limit, sessionToken(source), sessionKey(source.Session))
	if err != nil {
		return semantics.Purged{}, err
	}
	if err := s.onSource(ctx, source, r); err != nil {
		return semantics.Purged{}, err
	}
	purged := semantics.Purged{Deleted: int(r.number()), Before: r.instant(), Last: r.number(), More: r.number() == 1}
	return purged, r.failure()
}

func beforeMillis(purge semantics.Purge) int64 {
	if purge.Before.IsZero() {
		return 0
	}
	return max(purge.Before.UnixMilli(), 1)
}

// DeleteByNumber implements semantics.Remover.
func (s *Store) DeleteByNumber(ctx context.Context, source semantics.Source, numbers []int64) ([]semantics.Code, error) {
	args := appendNumbers([]any{s.now(), prefixOf(source.SubQueue), sessionToken(source)}, numbers)
	r, err := s.run(ctx, "delete_by_number", s.keys(source.Path).all(), args...)
	if err != nil {
		return nil, err
	}
	if err := s.onSource(ctx, source, r); err != nil {
		return nil, err
	}
	codes := make([]semantics.Code, len(numbers))
	for i := range codes {
		if r.number() == 0 {
			codes[i] = semantics.MessageNotFound
		}
	}
	return codes, r.failure()
}

// Resubmit implements semantics.Remover.
func (s *Store) Resubmit(ctx context.Context, source semantics.Source, target string, letters []semantics.Resubmission, bypassDuplicates bool) ([]semantics.Resubmitted, error) {
	args := []any{s.now(), flag(bypassDuplicates)}
	for _, l := range letters {
		expires := int64(0)
		if !l.ExpiresAt.IsZero() {
			expires = l.ExpiresAt.UnixMilli()
		}
		id, err := newIDChange(l)
		if err != nil {
			return nil, err
		}
		args = append(args, l.SequenceNumber, ttlMillis(l.TimeToLive), expires, l.MessageID, l.PartitionKey, sessionKey(l.SessionID), id)
	}
	keys := append(s.keys(source.Path).all(), s.keys(target).target()...)
	r, err := s.run(ctx, "resubmit", keys, args...)
	if err != nil {
		return nil, err
	}
	switch semantics.Code(r.status) {
	case semantics.EntityNotFound:
		if whichOf(r, source.Path, target) == target {
			return nil, semantics.NotFound(target)
		}
		return nil, s.notFound(ctx, source.Path)
	case semantics.EntityDisabled:
		path := whichOf(r, source.Path, target)
		return nil, disabled(path, r.text())
	default: // OK
	}
	s.heed(ctx, source.Path, r)
	s.heed(ctx, target, r)
	moved := make([]semantics.Resubmitted, len(letters))
	for i := range moved {
		moved[i] = readResubmitted(r.text())
	}
	return moved, r.failure()
}

func whichOf(r *reply, source, target string) string {
	if r.text() == "target" {
		return target
	}
	return source
}

// newIDChange gives what a new message id adds to the changes of a dead letter, "" for none.
func newIDChange(l semantics.Resubmission) (string, error) {
	if !l.NewID {
		return "", nil
	}
	return encodeChanges(l.MoreBytes, &storagev1.Changes{MessageId: l.MessageID})
}

func readResubmitted(result string) semantics.Resubmitted {
	number, err := strconv.ParseInt(result, 10, 64)
	if err != nil {
		return semantics.Resubmitted{Code: semantics.Code(result)}
	}
	return semantics.Resubmitted{Stored: readStored(number)}
}
