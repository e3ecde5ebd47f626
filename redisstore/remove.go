package redisstore

import (
	"context"
	"strconv"

	storagev1 "github.com/sidebus/sidebus/proto/sidebus/storage/v1"
	"github.com/sidebus/sidebus/semantics"
)

// purgeWords are the groups of messages as purge.lua names them.
var purgeWords = map[semantics.Show]string{
	semantics.ShowAvailable: "available", semantics.ShowDeferred: "deferred", semantics.ShowScheduled: "scheduled",
}

// Purge implements semantics.Remover. One call examines at most as many messages as one script does.
func (s *Store) Purge(ctx context.Context, source semantics.Source, purge semantics.Purge) (semantics.Purged, error) {
	r, err := s.runOn(
		ctx, source, "purge", s.keysOf(source), s.now(), prefixOf(source.SubQueue), purgeWords[purge.Show],
		beforeMillis(purge), purge.After, purge.Limit, sessionToken(source), sessionKey(source.Session),
	)
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
func (s *Store) DeleteByNumber(
	ctx context.Context, source semantics.Source, numbers []int64,
) ([]semantics.Code, error) {
	args := appendNumbers([]any{s.now(), prefixOf(source.SubQueue), sessionToken(source)}, numbers)
	r, err := s.runOn(ctx, source, "delete_by_number", s.keysOf(source), args...)
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
func (s *Store) Resubmit(
	ctx context.Context, source semantics.Source, target string, letters []semantics.Resubmission,
	bypassDuplicates bool,
) ([]semantics.Resubmitted, error) {
	if s.areApart(source.Path, target) {
		return nil, semantics.ErrApart
	}
	var args []any
	for _, l := range letters {
		expires := int64(0)
		if !l.ExpiresAt.IsZero() {
			expires = l.ExpiresAt.UnixMilli()
		}
		change, err := changeOf(l)
		if err != nil {
			return nil, err
		}
		args = append(
			args, l.SequenceNumber, ttlMillis(l.TimeToLive), expires, l.MessageID, l.PartitionKey,
			sessionKey(l.SessionID), change,
		)
	}
	r, err := s.runResubmit(ctx, source, target, bypassDuplicates, args)
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
		return nil, semantics.Disabled(path, r.text())
	default: // OK
	}
	s.apply(ctx, keptAt(source), r)
	s.apply(ctx, target, r)
	moved := make([]semantics.Resubmitted, len(letters))
	for i := range moved {
		moved[i] = readResubmitted(r.text())
	}
	return moved, r.failure()
}

// runResubmit runs the script, and again with all entities of the topic if it needs them.
func (s *Store) runResubmit(
	ctx context.Context, source semantics.Source, target string, bypassDuplicates bool, letters []any,
) (*reply, error) {
	var all []string
	routes, isHome := "", semantics.Fold(target) == semantics.Fold(source.Path)
	for {
		keys := with(resubmitKeys{source: s.keysOf(source), target: s.keys(target)}, all...)
		args := append([]any{s.now(), flag(bypassDuplicates), flag(isHome), routes}, letters...)
		r, err := s.runOn(ctx, source, "resubmit", keys, args...)
		if err != nil || r.status != "NEEDS_ALL" {
			return r, err
		}
		s.apply(ctx, keptAt(source), r)
		topic, _, _ := semantics.SplitSubscription(target)
		found, err := s.presentRoster(ctx, topic)
		if err != nil {
			return nil, err
		}
		all, routes = s.entities(topic, found.names), found.version
	}
}

func whichOf(r *reply, source, target string) string {
	if r.text() == "target" {
		return target
	}
	return source
}

// changeOf returns what a resubmission adds to the changes of a dead letter, "" for nothing.
func changeOf(l semantics.Resubmission) (string, error) {
	if !l.NewID && !l.WasForwarded {
		return "", nil
	}
	changes := &storagev1.Changes{SentAnew: l.WasForwarded}
	if l.NewID {
		changes.MessageId = l.MessageID
	}
	return encodeChanges(l.MoreBytes, changes)
}

func readResubmitted(result string) semantics.Resubmitted {
	number, err := strconv.ParseInt(result, 10, 64)
	if err != nil {
		return semantics.Resubmitted{Code: semantics.Code(result)}
	}
	return semantics.Resubmitted{Stored: readStored(number)}
}
