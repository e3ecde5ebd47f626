// Package broker is what the edges call: the proxy, the Dapr component, handlers. A Broker checks arguments, fills in
// defaults, waits for messages, decides by rules which subscriptions get a copy, and keeps account of the locks that
// this process holds for clients. What must be atomic it leaves to the semantics.Store it was made with. One Broker
// serves a whole process; all of its methods are safe for concurrent use.
package broker
