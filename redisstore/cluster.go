package redisstore

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/semantics"
)

// cluster is a Redis Cluster. All keys of a script are in one slot.
type cluster struct {
	*redis.ClusterClient

	addresses []string

	mu      sync.Mutex
	listing *primaryList    // the one that is under way
	last    []*redis.Client // what the last one found
}

func connectCluster(
	o Options, s several, onConnect func(context.Context, *redis.Conn) error, conns *openConns,
) (servers, error) {
	if len(s.path) > 0 {
		return nil, badSeveral() // a cluster has no databases
	}
	client := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: s.addresses, Username: s.user, Password: s.password, TLSConfig: s.tls,
		MaxRetries: -1, DialerRetries: 1, Protocol: 2, // as for one Redis; what may be repeated says call.NoRetry
		DialTimeout: o.DialTimeout, ReadTimeout: o.ReadTimeout, WriteTimeout: o.WriteTimeout, PoolSize: o.PoolSize,
		ConnMaxIdleTime: conns.idle, ClientName: clientName, OnConnect: onConnect,
		ClusterStateReloadInterval: followEvery, // a client that reaches a primary no more is not redirected
		DisableRoutingPolicies:     true,        // all commands have keys, or name their server
	})
	client.OnNewNode(func(node *redis.Client) { node.AddHook(greeter{conns}) })
	return &cluster{ClusterClient: client, addresses: s.addresses}, nil
}

func (c *cluster) universal() redis.UniversalClient { return c.ClusterClient }

func (c *cluster) named() string { return "cluster " + strings.Join(c.addresses, ",") }

// listPatience is how long a cluster has to say which primaries it has.
const listPatience = 300 * time.Millisecond

// primaryList is what a cluster says that it has as primaries. It may be read when done is closed.
type primaryList struct {
	done    chan struct{}
	servers []*redis.Client
	err     error
}

// primaries returns the primaries. If the server that the client asks does not answer soon, they are those of the last
// time.
func (c *cluster) primaries(ctx context.Context) ([]*redis.Client, error) {
	list, last := c.joinList(ctx)
	if last == nil {
		<-list.done
		return list.servers, list.err
	}
	late := time.NewTimer(listPatience)
	defer late.Stop()
	select {
	case <-list.done:
		return list.servers, list.err
	case <-late.C:
		return last, nil
	}
}

// joinList returns the listing that is under way, or begins one, and what the last one found.
func (c *cluster) joinList(ctx context.Context) (list *primaryList, last []*redis.Client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.listing != nil {
		return c.listing, c.last
	}
	list = &primaryList{done: make(chan struct{})}
	c.listing = list
	go func() {
		var one sync.Mutex // the client asks for them side by side
		list.err = c.ForEachMaster(context.WithoutCancel(ctx), func(_ context.Context, server *redis.Client) error {
			one.Lock()
			defer one.Unlock()
			list.servers = append(list.servers, server)
			return nil
		})
		c.mu.Lock()
		defer c.mu.Unlock()
		c.listing = nil
		if list.err == nil {
			c.last = list.servers
		}
		close(list.done)
	}()
	return list, c.last
}

// unlisted returns why primaries could not be listed: also a single Redis, or a Sentinel, that is named as a cluster.
func unlisted(err error) error {
	var reply redis.Error
	if errors.As(err, &reply) && (strings.Contains(reply.Error(), "cluster support disabled") ||
		strings.HasPrefix(reply.Error(), "ERR unknown command 'cluster'")) {
		return semantics.Errorf(
			semantics.PreconditionFailed,
			"this server is not a node of a Redis Cluster; name one Redis as redis://host:6379, and one behind Sentinels as "+
				"redis+sentinel://host:26379,host:26379/mymaster",
		)
	}
	return storeError(err, false)
}

func (c *cluster) of(ctx context.Context, key string) (*redis.Client, error) {
	return c.MasterForKey(ctx, key)
}

func (c *cluster) pin() pinnedConnections {
	return &clusterPins{cluster: c, homes: map[string]*redis.Client{}, conns: map[*redis.Client]*redis.Conn{}}
}

// clusterPins are connections to servers of a cluster. Keys that have moved to another server cannot be reached: it may
// be a replica that lags behind what was read before.
type clusterPins struct {
	cluster *cluster
	homes   map[string]*redis.Client // by hash tag
	conns   map[*redis.Client]*redis.Conn
}

// errMoved means that a slot has another server than at the last call.
var errMoved = errors.New("the slot has moved to another server")

// conn returns the connection for a key.
func (p *clusterPins) conn(ctx context.Context, key string) (*redis.Conn, error) {
	server, err := p.cluster.of(ctx, key)
	if err != nil {
		return nil, &unsent{err, causeUnreachable}
	}
	tag := hashTag(key)
	if home, is := p.homes[tag]; is && home != server {
		return nil, &unsent{errMoved, causeUnreachable}
	}
	p.homes[tag] = server
	if p.conns[server] == nil {
		p.conns[server] = server.Conn()
	}
	return p.conns[server], nil
}

// areApart reports whether no script can change two entities, because they are in different slots of a cluster.
func (s *Store) areApart(path, other string) bool {
	_, isCluster := s.servers.(*cluster)
	return isCluster && hashTag(s.keys(path).tag) != hashTag(s.keys(other).tag)
}

// hashTag returns the part of a key that decides about its slot.
func hashTag(key string) string {
	if _, after, found := strings.Cut(key, "{"); found {
		if tag, _, ends := strings.Cut(after, "}"); ends && tag != "" {
			return tag
		}
	}
	return key
}

// Process sends a command to the server of its key.
func (p *clusterPins) Process(ctx context.Context, command redis.Cmder) error {
	conn, err := p.conn(ctx, firstKey(command))
	if err != nil {
		command.SetErr(err)
		return err
	}
	return conn.Process(ctx, command)
}

// processBoth sends a script to the server of its key, and the fence behind it.
func (p *clusterPins) processBoth(ctx context.Context, script call, f *fence) {
	conn, err := p.conn(ctx, firstKey(script))
	if err != nil {
		script.SetErr(err)
		return
	}
	f.pipelined(ctx, conn, nil, script)
}

// Pipelined sends each command to the server of its key.
func (p *clusterPins) Pipelined(ctx context.Context, add func(redis.Pipeliner) error) ([]redis.Cmder, error) {
	all := p.cluster.Pipeline()
	if err := add(all); err != nil {
		return nil, err
	}
	byConn := map[*redis.Conn][]redis.Cmder{}
	for _, command := range all.Cmds() {
		conn, err := p.conn(ctx, firstKey(command))
		if err != nil {
			for _, command := range all.Cmds() {
				command.SetErr(err)
			}
			return all.Cmds(), err
		}
		byConn[conn] = append(byConn[conn], command)
	}
	var first error
	for conn, commands := range byConn {
		_, err := conn.Pipelined(ctx, func(one redis.Pipeliner) error {
			for _, command := range commands {
				_ = one.Process(ctx, command) // only adds it
			}
			return nil
		})
		first = cmp.Or(first, err)
	}
	return all.Cmds(), first
}

// Close returns the connections to their servers' pools.
func (p *clusterPins) Close() error {
	var err error
	for _, conn := range p.conns {
		err = errors.Join(err, conn.Close())
	}
	return err
}

// firstKey returns the key of a read, or the first one of a script.
func firstKey(command redis.Cmder) string {
	at := 1
	if strings.HasPrefix(command.Name(), "eval") {
		at = 3
	}
	if args := command.Args(); at < len(args) {
		if key, is := args[at].(string); is {
			return key
		}
	}
	return ""
}
