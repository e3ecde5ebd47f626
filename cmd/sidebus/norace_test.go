//go:build !race

package main

// memoryFactor is how many times more memory the process may take: here none.
const memoryFactor = 1
