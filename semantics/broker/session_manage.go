package broker

import (
	"context"
	"encoding/base64"
	"unicode/utf8"

	"github.com/sidebus/sidebus/semantics"
)

// ListSessions returns one page of the sessions that have messages or state, in order of their ids, and the token of
// the next page, "" after the last (SESS-36 to SESS-38). A page may have fewer rows than asked for, or none, although
// others follow. pageSize 0 means MaxPageSize. ARGUMENT_OUT_OF_RANGE, INVALID_ARGUMENT, ENTITY_NOT_FOUND,
// SESSION_NOT_SUPPORTED.
func (b *Broker) ListSessions(
	ctx context.Context, name string, pageSize int, pageToken string, filter semantics.SessionFilter,
) ([]semantics.SessionRow, string, error) {
	path, err := b.parseSessionPath(name)
	if err != nil {
		return nil, "", err
	}
	if pageSize == 0 {
		pageSize = semantics.MaxPageSize
	}
	if pageSize < 1 || pageSize > semantics.MaxPageSize {
		return nil, "", semantics.FieldError(
			semantics.ArgumentOutOfRange, "pageSize", "is %d, must be 1 to %d", pageSize, semantics.MaxPageSize,
		)
	}
	after, err := base64.RawURLEncoding.DecodeString(pageToken)
	if err != nil || !utf8.Valid(after) {
		return nil, "", semantics.InvalidField("pageToken", "is not a token of an earlier page")
	}
	if err := b.admit(managementCost); err != nil {
		return nil, "", err
	}
	rows, next, err := b.store.ListSessions(ctx, path, string(after), pageSize, filter)
	if err != nil || next == "" {
		return rows, "", err
	}
	return rows, base64.RawURLEncoding.EncodeToString([]byte(next)), nil
}

// UnblockSession lets a session go on that SessionOnDeadLetter blocked (SESS-29). INVALID_ARGUMENT, ENTITY_NOT_FOUND,
// SESSION_NOT_SUPPORTED.
func (b *Broker) UnblockSession(ctx context.Context, name, id string) error {
	return b.manageSession(name, id, func(path string) error { return b.store.UnblockSession(ctx, path, id) })
}

// DeadLetterRest makes dead letters of all messages of a session that are neither locked nor scheduled, and unblocks
// it: an application that cannot do without the dead letter does not want those after it either (SESS-29). From
// the first step on none of them is received, whatever becomes of the call. What is sent from then on stays. Failures
// as of UnblockSession.
func (b *Broker) DeadLetterRest(ctx context.Context, name, id string) error {
	return b.manageSession(name, id, func(path string) error { return b.store.DeadLetterRest(ctx, path, id) })
}

// manageSession does something about a session that need not be held.
func (b *Broker) manageSession(name, id string, do func(path string) error) error {
	path, err := b.parseSessionPath(name)
	if err != nil {
		return err
	}
	if id == "" {
		return semantics.InvalidField("sessionId", "must not be empty")
	}
	if err := semantics.CheckID("sessionId", id); err != nil {
		return err
	}
	if err := b.admit(managementCost); err != nil {
		return err
	}
	return do(path)
}

func (b *Broker) parseSessionPath(name string) (string, error) {
	path, err := semantics.ParseSourcePath(name)
	if err != nil {
		return "", err
	}
	return path, b.refuseSessions(path)
}
