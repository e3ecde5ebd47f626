// Package azure runs the official SDKs of Azure Service Bus for Go, JavaScript, Python and Java, unchanged,
// against the sidebus binary. It is a module of its own, so that nothing of it reaches the binary.
package azure
