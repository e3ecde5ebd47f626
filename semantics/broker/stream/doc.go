// Package stream has Subscribe: it delivers the messages of a queue or subscription as they come, never more than the
// client has credits for, renews their locks, accepts sessions and releases what is left at the end. Package broker
// makes Streams and offers Subscribe to the edges; what a subscription needs of it is the interface Broker. Every
// Subscription has goroutines of its own, which end with it; one of them takes the messages of all its sessions. What
// they share is in package account, with the mutex that guards it.
package stream
