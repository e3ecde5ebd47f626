// Package settling has what the deliveries to apps share, pushes and those over Dapr: how messages are settled while
// the store may be down, how long to wait after a failure, and what is logged of a source that cannot be received from.
package settling
