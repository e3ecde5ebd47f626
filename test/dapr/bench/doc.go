// Command bench publishes the same messages through Dapr's runtime to Sidebus and to Dapr's own pubsub.redis, on the
// same Redis and in one run, and an app of the Go SDK takes them. It prints how many a second were published and
// delivered, how long one takes from end to end, and what is left in Redis when all is done. `make bench-dapr` runs it.
//
// Both have their defaults, and a daprd of their own. Dapr's runtime of 1.18.2 passes a pluggable component's messages
// to the app one after the other, and those of its own components ten at a time; SIDEBUS_TEST_DAPRD=1.14 takes a
// runtime that passes on all it has at once, to both.
package main
