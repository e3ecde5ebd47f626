// Package keda tests the scaler with the client of KEDA itself: the one that its operator uses. It is a module of its
// own, because KEDA links the clients of everything that it can scale by.
package keda
