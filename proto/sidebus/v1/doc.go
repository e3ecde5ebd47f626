// Package sidebusv1 is generated from the .proto files: the messages of the API, and a client and a server interface
// for each of its services. Applications use package client, which is made of it; what that does not wrap they call
// here.
package sidebusv1
