// Command bench is the client and the app of test/bench for Dapr. It runs Dapr's runtime with one component, publishes
// messages with the Go SDK, and handles them as an app of it. It reads from standard input what to do, and answers each
// line with a line of JSON: `single 1000` publishes as many messages one by one, `bulk 1000` in batches, `latency 100`
// one after the other, each when the last one was handled.
//
//	bench <component> <binary of Sidebus> <callers>
//
// The component has its defaults, and a daprd and a Redis of its own. Dapr's runtime of 1.18.2 passes a pluggable
// component's messages on a stream to the app one after the other, and those of its own components ten at a time;
// SIDEBUS_TEST_DAPRD=1.14 takes a runtime that passes on all it has at once, to both.
package main
