// Package dapr tests the Dapr component of Sidebus end to end: the real sidecar with a real Redis, Dapr's own runtime,
// and apps that talk to that runtime as Dapr's users do, with the Go SDK, with plain HTTP and over a streaming
// subscription. It is a module of its own, so that what Dapr needs stays out of Sidebus' dependencies.
//
// SIDEBUS_TEST_DAPRD=1.14 takes an older runtime, which hands over to the app all it has received at once; see
// daprd-1.14.
package dapr
