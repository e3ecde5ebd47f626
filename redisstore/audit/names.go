package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/semantics"
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

// AuditAll is Audit for every queue and topic on the list of the namespace, except topics with very many subscriptions,
// and checks that queues have their partitions.
// It looks for no keys besides those an entity has, since to find these takes longer the more is in Redis.
func (a *Auditor) AuditAll(ctx context.Context) error {
	known := *a
	known.known = true
	names, err := a.Listed(ctx)
	wrong, _, failed := a.partitions(ctx, names)
	faults := []error{err, failed, wrong}
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
	for _, key := range scan(ctx, a.client, tag+"*}:entity") {
		live[strings.TrimSuffix(strings.TrimPrefix(key, tag), "}:entity")] = true
	}
	names, err := a.Listed(ctx)
	for _, name := range names {
		listed[name] = true
	}
	return live, listed, err
}

// registries returns the prefixes of the keys of a namespace itself.
func (a *Auditor) registries() []string {
	if _, isCluster := a.client.(*redis.ClusterClient); !isCluster {
		return []string{"sb:{" + a.namespace + "}:"}
	}
	var all []string
	for i := range 8 {
		all = append(all, fmt.Sprintf("sb:{%s#%d}:", a.namespace, i))
	}
	return all
}

// Listed returns the names on the lists of the namespace, in order.
func (a *Auditor) Listed(ctx context.Context) ([]string, error) {
	var names []string
	for _, registry := range a.registries() {
		some, err := a.client.ZRange(ctx, registry+"names", 0, -1).Result()
		if err != nil {
			return nil, err
		}
		names = append(names, some...)
	}
	slices.Sort(names)
	return names, nil
}

// alarm returns when a sweeper comes to an entity, and the registry that has this, redis.Nil if none does.
func (a *Auditor) alarm(ctx context.Context, path string) (at float64, registry string, err error) {
	for _, registry := range a.registries() {
		at, err := a.client.ZScore(ctx, registry+"alarms", semantics.Fold(path)).Result()
		if err != redis.Nil { //nolint:errorlint // go-redis returns this value itself
			return at, registry, err
		}
	}
	return 0, "", redis.Nil
}

// ahead returns by how much (ms) the clock of the server with a registry can be ahead of that of an entity's server, 0
// if they can be the same.
func (a *Auditor) ahead(ctx context.Context, registry, path string) int64 {
	cluster, isCluster := a.client.(*redis.ClusterClient)
	if !isCluster {
		return 0
	}
	now := func(key string) int64 {
		server, err := cluster.MasterForKey(ctx, key)
		if err != nil {
			return 0
		}
		return server.Time(ctx).Val().UnixMilli()
	}
	before, own, after := now(registry), now(a.tagOf(path)), now(registry)
	if before <= own {
		return 0
	}
	return after - own
}

// scan returns the keys of a pattern, on all servers of a cluster.
func scan(ctx context.Context, client redis.UniversalClient, pattern string) []string {
	var mu sync.Mutex
	var keys []string
	one := func(ctx context.Context, client *redis.Client) error {
		for found := client.Scan(ctx, 0, pattern, 1000).Iterator(); found.Next(ctx); {
			mu.Lock()
			keys = append(keys, found.Val())
			mu.Unlock()
		}
		return nil
	}
	switch c := client.(type) {
	case *redis.ClusterClient:
		_ = c.ForEachMaster(ctx, one)
	case *redis.Client:
		_ = one(ctx, c)
	}
	return keys
}
