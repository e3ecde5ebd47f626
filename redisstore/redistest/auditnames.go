package redistest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// AuditNames checks that the list of the namespace has the names of its queues and topics, and no others.
func (a *Auditor) AuditNames(ctx context.Context) error {
	live, listed, err := a.names(ctx)
	if err != nil {
		return err
	}
	faults := []error{missing(live, listed)}
	for name := range listed {
		if !live[name] {
			faults = append(faults, fmt.Errorf("%q is on the list and no entity", name))
		}
	}
	return errors.Join(faults...)
}

// AuditNamed checks that no queue or topic lacks its name, and lets names without an entity pass, as callers that crash
// leave them.
func (a *Auditor) AuditNamed(ctx context.Context) error {
	live, listed, err := a.names(ctx)
	return errors.Join(err, missing(live, listed))
}

func missing(live, listed map[string]bool) error {
	var faults []error
	for name := range live {
		if !listed[name] {
			faults = append(faults, fmt.Errorf("the entity %q is not on the list", name))
		}
	}
	return errors.Join(faults...)
}

// mostSubscriptions is how many subscriptions a topic has that AuditAll looks at.
const mostSubscriptions = 50

// AuditAll is Audit for every queue and topic on the list of the namespace, except topics with very many subscriptions.
// It looks for no keys besides those an entity has, since to find these takes longer the more is in Redis.
func (a *Auditor) AuditAll(ctx context.Context) error {
	known := *a
	known.known = true
	names, err := a.client.ZRange(ctx, "sb:{"+a.namespace+"}:names", 0, -1).Result()
	faults := []error{err}
	for _, name := range names {
		if a.client.HLen(ctx, a.tagOf(name)+"subscriptions").Val() <= mostSubscriptions {
			faults = append(faults, known.Audit(ctx, name))
		}
	}
	return errors.Join(faults...)
}

// names returns the names of the entities that there are, and those on the list.
func (a *Auditor) names(ctx context.Context) (live, listed map[string]bool, err error) {
	live, listed = map[string]bool{}, map[string]bool{}
	tag := "sb:{" + a.namespace + "/"
	for found := a.client.Scan(ctx, 0, tag+"*}:entity", 1000).Iterator(); found.Next(ctx); {
		live[strings.TrimSuffix(strings.TrimPrefix(found.Val(), tag), "}:entity")] = true
	}
	names, err := a.client.ZRange(ctx, "sb:{"+a.namespace+"}:names", 0, -1).Result()
	for _, name := range names {
		listed[name] = true
	}
	return live, listed, err
}

// Left returns the keys of a pattern except those that outlive the last entity: its mark that its ticket is gone, which
// ends after an hour, and the number of the last ticket.
func Left(ctx context.Context, client *redis.Client, pattern string) ([]string, error) {
	keys, err := client.Keys(ctx, pattern).Result()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(keys, func(key string) bool {
		return strings.HasSuffix(key, "}:barred") || strings.HasSuffix(key, "}:registered") && client.HLen(ctx, key).Val() == 1 && client.HExists(ctx, key, "").Val()
	}), nil
}
