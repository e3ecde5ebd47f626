package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// CreateEntity implements semantics.Entities. The name goes on the namespace's list before and after the queue is made: before,
// so that no queue can exist without its name; after, in case a delete of an older queue took it off in between.
func (s *Store) CreateEntity(ctx context.Context, kind semantics.Kind, path string, options semantics.Options) (semantics.Entity, bool, error) {
	if err := s.registerName(ctx, path); err != nil {
		return semantics.Entity{}, false, err
	}
	args := appendOptions([]any{s.now(), "name", path, "keyed", flag(options.RequiresDuplicateDetection || options.EnablePartitioning || options.RequiresSession)},
		options, semantics.OptionNames(semantics.QueueKind))
	r, err := s.run(ctx, "create_queue", []string{s.keys(path).entity}, args...)
	if err != nil {
		return semantics.Entity{}, false, err
	}
	queue, err := readQueue(r)
	if err != nil {
		return semantics.Entity{}, false, err
	}
	return queue, r.status == "OK", s.registerName(ctx, path)
}

func (s *Store) registerName(ctx context.Context, path string) error {
	r, err := s.run(ctx, "register_name", []string{s.names.names, s.names.registered}, s.now(), semantics.Fold(path), s.options.MaxEntities)
	if err == nil && r.status == string(semantics.QuotaExceeded) {
		err = semantics.TooManyEntities(s.options.MaxEntities)
	}
	return err
}

// GetEntity implements semantics.Entities.
func (s *Store) GetEntity(ctx context.Context, kind semantics.Kind, path string) (semantics.Entity, error) {
	r, err := s.run(ctx, "get_queue", []string{s.keys(path).entity})
	if err != nil {
		return semantics.Entity{}, err
	}
	if r.status != "OK" {
		return semantics.Entity{}, semantics.NotFound(path)
	}
	return readQueue(r)
}

// UpdateEntity implements semantics.Entities.
func (s *Store) UpdateEntity(ctx context.Context, kind semantics.Kind, path string, options semantics.Options, names []string) (semantics.Entity, error) {
	keys := s.keys(path)
	args := appendOptions([]any{s.now()}, options, names)
	r, err := s.run(ctx, "update_queue", []string{keys.entity, keys.main.waiting, keys.dead.waiting, keys.sessions.waiting, keys.sessions.locks}, args...)
	if err != nil {
		return semantics.Entity{}, err
	}
	switch semantics.Code(r.status) {
	case semantics.EntityNotFound:
		return semantics.Entity{}, semantics.NotFound(path)
	case semantics.PropertyImmutable:
		return semantics.Entity{}, semantics.ImmutableChanged(path, optionOfField(r.text()))
	default:
		return readQueue(r)
	}
}

// DeleteEntity implements semantics.Entities. A crash between the two steps leaves a name on the list without a queue, which lists
// pass over.
func (s *Store) DeleteEntity(ctx context.Context, kind semantics.Kind, path string) error {
	keys := s.keys(path)
	r, err := s.run(ctx, "delete_queue", append([]string{keys.main.waiting, keys.dead.waiting, keys.entity, keys.sessions.waiting, keys.sessions.locks}, keys.all()...), s.now())
	if err != nil {
		return err
	}
	if r.status != "OK" {
		return semantics.NotFound(path)
	}
	deleted := r.text()
	if err := r.failure(); err != nil {
		return err
	}
	_, err = s.run(ctx, "unregister_name", []string{s.names.names, s.names.registered, s.names.alarms}, semantics.Fold(path), deleted)
	return err
}

// ListEntities implements semantics.Entities.
func (s *Store) ListEntities(ctx context.Context, kind semantics.Kind, topic, after string, limit int) ([]semantics.Entity, bool, error) {
	var queues []semantics.Entity
	for {
		// One more than asked for tells whether there is a next page.
		r, err := s.run(ctx, "list_names", []string{s.names.names}, after, limit+1)
		if err != nil {
			return nil, false, err
		}
		names := r.list()
		read := 0
		for names.more() {
			after = names.text()
			read++
			queue, err := s.GetEntity(ctx, semantics.QueueKind, after)
			if semantics.CodeOf(err) == semantics.EntityNotFound {
				continue
			}
			if err != nil {
				return nil, false, err
			}
			if len(queues) == limit {
				return queues, true, nil
			}
			queues = append(queues, queue)
		}
		if err := names.failure(); err != nil {
			return nil, false, err
		}
		if read <= limit {
			return queues, false, nil
		}
	}
}

// Runtime implements semantics.Entities.
func (s *Store) Runtime(ctx context.Context, kind semantics.Kind, path string) (semantics.Runtime, error) {
	r, err := s.run(ctx, "queue_runtime", s.keys(path).all(), s.now())
	if err != nil {
		return semantics.Runtime{}, err
	}
	if err := s.onSource(ctx, semantics.Source{Path: path}, r); err != nil {
		return semantics.Runtime{}, err
	}
	counts := semantics.Runtime{
		Active: r.number(), Locked: r.number(), Deferred: r.number(), Delayed: r.number(), ExpiredPending: r.number(),
		Scheduled: r.number(), DeadLetter: r.number(), SizeInBytes: r.number() + r.number() + r.number(), OldestEnqueuedAt: r.instant(),
		Sessions: r.number(), ReadySessions: r.number(), LockedSessions: r.number(),
	}
	// Deferred messages whose time is over are both, until they are cleared away.
	counts.Deferred = min(counts.Deferred, counts.Active-counts.Locked-counts.ExpiredPending)
	counts.Available = counts.Active - counts.Locked - counts.Deferred - counts.ExpiredPending
	return counts, r.failure()
}

// appendOptions adds the fields under which the named options are kept, with their values.
func appendOptions(args []any, o semantics.Options, names []string) []any {
	for _, name := range names {
		switch name {
		case "lockDuration":
			args = append(args, "lock_duration_ms", o.LockDuration.Milliseconds())
		case "maxSizeInMegabytes":
			args = append(args, "max_bytes", o.MaxBytes())
		case "maxMessageSizeInKilobytes":
			args = append(args, "max_message_bytes", o.MaxMessageBytes(), "max_batch_bytes", o.MaxBatchBytes())
		case "defaultMessageTimeToLive":
			args = append(args, "default_ttl_ms", ttlMillis(&o.DefaultMessageTimeToLive))
		case "deadLetteringOnMessageExpiration":
			args = append(args, "dead_letter_expired", flag(o.DeadLetteringOnMessageExpiration))
		case "maxDeliveryCount":
			args = append(args, "max_delivery_count", o.MaxDeliveryCount)
		case "maxMessageCount":
			args = append(args, "max_message_count", o.MaxMessageCount)
		case "status":
			args = append(args, "status", o.Status.String())
		case "userMetadata":
			args = append(args, "user_metadata", o.UserMetadata)
		case "enableBatchedOperations":
			args = append(args, "batched_operations", flag(o.EnableBatchedOperations))
		case "requiresDuplicateDetection":
			args = append(args, "requires_duplicate_detection", flag(o.RequiresDuplicateDetection))
		case "duplicateDetectionHistoryTimeWindow":
			args = append(args, "duplicate_window_ms", o.DuplicateDetectionHistoryTimeWindow.Milliseconds())
		case "duplicateHistoryMaxEntries":
			args = append(args, "duplicate_max_entries", o.DuplicateHistoryMaxEntries)
		case "forgetOnCancel":
			args = append(args, "forget_on_cancel", flag(o.ForgetOnCancel))
		case "enablePartitioning":
			args = append(args, "partitioned", flag(o.EnablePartitioning))
		case "redeliveryDelay":
			args = append(args, "redelivery_delay_ms", o.RedeliveryDelay.Milliseconds())
		case "expireDeferred":
			args = append(args, "expire_deferred", flag(o.ExpireDeferred))
		case "deadLetterTtl":
			args = append(args, "dead_letter_ttl_ms", ttlMillis(&o.DeadLetterTTL))
		case "requiresSession":
			args = append(args, "requires_session", flag(o.RequiresSession))
		case "sessionInFlight":
			args = append(args, "session_in_flight", o.SessionInFlight)
		case "onDisconnect":
			args = append(args, "on_disconnect", o.OnDisconnect.String())
		case "sessionExpiryMode":
			args = append(args, "session_expiry_mode", o.SessionExpiryMode.String())
		case "sessionOnDeadLetter":
			args = append(args, "session_on_dead_letter", o.SessionOnDeadLetter.String())
		case "acceptNext":
			args = append(args, "accept_next", o.AcceptNext.String())
		case "sessionStateTtl":
			args = append(args, "session_state_ttl_ms", ttlMillis(&o.SessionStateTTL))
		}
	}
	return args
}

// optionOfField gives the option that an immutable field is kept for.
func optionOfField(field string) string {
	switch field {
	case "partitioned":
		return "enablePartitioning"
	case "requires_session":
		return "requiresSession"
	default:
		return "requiresDuplicateDetection"
	}
}

func flag(set bool) int {
	if set {
		return 1
	}
	return 0
}

func readQueue(r *reply) (semantics.Entity, error) {
	var q semantics.Entity
	fields := r.list()
	number := func(value string) int64 {
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil && fields.err == nil {
			fields.err = err
		}
		return n
	}
	span := func(value string) time.Duration {
		if ms := number(value); ms >= 0 {
			return time.Duration(ms) * time.Millisecond
		}
		return semantics.Never
	}
	for fields.more() {
		name, value := fields.text(), fields.text()
		switch name {
		case "name":
			q.Name = value
		case "created_ms":
			q.CreatedAt = instantOf(number(value))
		case "updated_ms":
			q.UpdatedAt = instantOf(number(value))
		case "accessed_ms":
			q.AccessedAt = instantOf(number(value))
		case "lock_duration_ms":
			q.Options.LockDuration = span(value)
		case "max_bytes":
			q.Options.MaxSizeInMegabytes = number(value) >> 20
		case "max_message_bytes":
			q.Options.MaxMessageSizeInKilobytes = number(value) >> 10
		case "default_ttl_ms":
			q.Options.DefaultMessageTimeToLive = span(value)
		case "dead_letter_expired":
			q.Options.DeadLetteringOnMessageExpiration = value == "1"
		case "max_delivery_count":
			q.Options.MaxDeliveryCount = number(value)
		case "max_message_count":
			q.Options.MaxMessageCount = number(value)
		case "status":
			q.Options.Status = statusOf(value)
		case "user_metadata":
			q.Options.UserMetadata = value
		case "batched_operations":
			q.Options.EnableBatchedOperations = value == "1"
		case "requires_duplicate_detection":
			q.Options.RequiresDuplicateDetection = value == "1"
		case "duplicate_window_ms":
			q.Options.DuplicateDetectionHistoryTimeWindow = span(value)
		case "duplicate_max_entries":
			q.Options.DuplicateHistoryMaxEntries = number(value)
		case "forget_on_cancel":
			q.Options.ForgetOnCancel = value == "1"
		case "partitioned":
			q.Options.EnablePartitioning = value == "1"
		case "redelivery_delay_ms":
			q.Options.RedeliveryDelay = span(value)
		case "expire_deferred":
			q.Options.ExpireDeferred = value == "1"
		case "dead_letter_ttl_ms":
			q.Options.DeadLetterTTL = span(value)
		case "requires_session":
			q.Options.RequiresSession = value == "1"
		case "session_in_flight":
			q.Options.SessionInFlight = number(value)
		case "on_disconnect":
			q.Options.OnDisconnect = oneOf(value, semantics.ExpireOnDisconnect, semantics.ReleaseOnDisconnect)
		case "session_expiry_mode":
			q.Options.SessionExpiryMode = oneOf(value, semantics.ExpireMessage, semantics.ExpireSession)
		case "session_on_dead_letter":
			q.Options.SessionOnDeadLetter = oneOf(value, semantics.ContinueSession, semantics.BlockSession)
		case "accept_next":
			q.Options.AcceptNext = oneOf(value, semantics.AcceptNextAllowed, semantics.AcceptNextForbidden)
		case "session_state_ttl_ms":
			q.Options.SessionStateTTL = span(value)
		}
	}
	return q, fields.failure()
}

// oneOf gives the value that is written as word, else the first.
func oneOf[T fmt.Stringer](word string, values ...T) T {
	for _, v := range values {
		if v.String() == word {
			return v
		}
	}
	return values[0]
}

func statusOf(word string) semantics.Status {
	for s := semantics.StatusActive; s < semantics.StatusReceiveDisabled; s++ {
		if s.String() == word {
			return s
		}
	}
	return semantics.StatusReceiveDisabled
}
