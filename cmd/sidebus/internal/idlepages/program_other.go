//go:build !linux

package idlepages

// unmapProgram does nothing: other systems do not count pages of files as those of a process, or cannot unmap them.
func unmapProgram() {}
