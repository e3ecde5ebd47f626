package redisstore

import (
	"hash/fnv"
	"strconv"
)

// registry has the names of entities, their alarms, and how far the look at all of them has come. One Redis has one for
// a namespace. A cluster has several in slots of their own, so that no server has all the work.
type registry struct {
	namespaceKeys

	connected chan struct{} // there is a new connection, perhaps to another run of Redis
	alarmed   chan struct{} // an alarm was set: the sweeper should look when the next one is due
}

// clusterRegistries is how many registries a namespace of a cluster has. The place of a name depends on it, so it never
// changes.
const clusterRegistries = 8

func registriesOf(namespace string, servers servers) []*registry {
	tags := []string{namespace}
	if _, isCluster := servers.(*cluster); isCluster {
		tags = tags[:0]
		for i := range clusterRegistries {
			tags = append(tags, namespace+"#"+strconv.Itoa(i))
		}
	}
	all := make([]*registry, 0, len(tags))
	for _, tag := range tags {
		all = append(all, &registry{
			namespaceKeys: keysOfNamespace(tag), connected: make(chan struct{}, 1), alarmed: make(chan struct{}, 1),
		})
	}
	return all
}

// registryOf returns the registry of a folded path.
func (s *Store) registryOf(name string) *registry {
	if len(s.registries) == 1 {
		return s.registries[0]
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(name)) // never fails
	return s.registries[hash.Sum32()%uint32(len(s.registries))]
}

// wakeSweeper makes Sweep look for alarms: one may be earlier than the one it waits for.
func (r *registry) wakeSweeper() { signal(r.alarmed) }

// signal sends to a channel that keeps one value, unless it is full.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
