// Package semantics says what Sidebus promises. It is the vocabulary of the product, its rules, and the interface of
// what keeps them; it knows neither wires nor Redis and imports the standard library only.
//
// # The model
//
// A sender puts messages into a queue. The broker assigns each a sequence number in order of acceptance and, if it has
// a time to live, the instant at which it expires. A receiver takes messages under lock: hidden from all others, each
// with a token of its own, until the lock's end. It settles each with the token: complete removes it, abandon and
// release give it back, dead-letter sets it aside in the queue's dead-letter queue. A lock that expires unsettled makes
// the message available again. Abandon and the end of a lock count as a failed delivery; after MaxDeliveryCount of them
// the message is dead-lettered.
//
// A message may be scheduled: it is enqueued at its time as if it were sent then. A receiver may defer one, which is
// then received by its number only, or abandon it with a delay. A queue may detect duplicates by message id for a
// window. Messages that are not wanted any more can be purged, and dead letters can be resubmitted.
//
// A queue or subscription may forward what it gets, or its dead letters, to another queue or topic. What cannot be
// forwarded is set aside in its transfer dead-letter queue.
//
// # Who does what
//
// Store keeps the messages and does everything that must be atomic, by a clock of its own. memstore is the Store in
// memory and the executable form of the rules; storetest checks any Store against them. Package broker is what the
// edges call: it checks arguments, fills in defaults, waits for messages and keeps account of the locks that this
// process holds for clients.
//
// # What is promised
//
// A send that was answered is stored, as far as the store itself keeps what it was given. Delivery is at least once:
// a receiver that fails, or whose settlement was lost, sees the message again. A token that no longer holds changes
// nothing. An answer that was lost is reported as an unknown outcome, never as a failure.
//
// # What is not
//
// No order among several receivers. No exactly-once delivery: a receiver that must not do things twice keeps the ids
// of what it has done.
package semantics
