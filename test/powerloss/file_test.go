package powerloss

import (
	"bytes"
	"context"
	"sync"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// folder is a folder of the disk. go-fuse keeps what is in it.
type folder struct {
	fs.Inode

	disk *disk
}

var (
	_ fs.NodeCreater  = (*folder)(nil)
	_ fs.NodeMkdirer  = (*folder)(nil)
	_ fs.NodeUnlinker = (*folder)(nil)
	_ fs.NodeRmdirer  = (*folder)(nil)
	_ fs.NodeRenamer  = (*folder)(nil)
	_ fs.NodeFsyncer  = (*folder)(nil)
)

func (f *folder) newFolder(ctx context.Context) *fs.Inode {
	return f.NewPersistentInode(ctx, &folder{disk: f.disk}, fs.StableAttr{Mode: fuse.S_IFDIR})
}

// Create creates a file.
func (f *folder) Create(ctx context.Context, _ string, _, _ uint32, _ *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	created := f.NewPersistentInode(ctx, &file{disk: f.disk}, fs.StableAttr{Mode: fuse.S_IFREG})
	return created, nil, fuse.FOPEN_DIRECT_IO, fs.OK
}

// Mkdir creates a folder.
func (f *folder) Mkdir(ctx context.Context, _ string, _ uint32, _ *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	return f.newFolder(ctx), fs.OK
}

// Unlink lets go-fuse remove a name.
func (f *folder) Unlink(context.Context, string) syscall.Errno { return fs.OK }

// Rmdir lets go-fuse remove an empty folder.
func (f *folder) Rmdir(_ context.Context, name string) syscall.Errno {
	if child := f.GetChild(name); child != nil && len(child.Children()) > 0 {
		return syscall.ENOTEMPTY
	}
	return fs.OK
}

// Rename lets go-fuse move a name.
func (f *folder) Rename(_ context.Context, _ string, _ fs.InodeEmbedder, _ string, flags uint32) syscall.Errno {
	if flags != 0 {
		return syscall.EINVAL
	}
	return fs.OK
}

// Fsync makes names durable.
func (f *folder) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno {
	f.disk.takeTime()
	return f.disk.keepNames()
}

// file is a file of the disk: what was written, and what of that is durable.
type file struct {
	fs.Inode

	disk    *disk
	syncing sync.Mutex // one sync at a time

	mu        sync.Mutex
	written   []byte
	synced    []byte
	low, high int // where the two differ, besides their lengths
}

var (
	_ fs.NodeOpener    = (*file)(nil)
	_ fs.NodeReader    = (*file)(nil)
	_ fs.NodeWriter    = (*file)(nil)
	_ fs.NodeGetattrer = (*file)(nil)
	_ fs.NodeSetattrer = (*file)(nil)
	_ fs.NodeFsyncer   = (*file)(nil)
)

// Open opens the file without a cache of the kernel, so that each write comes here.
func (f *file) Open(_ context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	if flags&syscall.O_TRUNC != 0 {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.resize(0)
	}
	return nil, fuse.FOPEN_DIRECT_IO, fs.OK
}

// Read reads what was written.
func (f *file) Read(_ context.Context, _ fs.FileHandle, into []byte, at int64) (fuse.ReadResult, syscall.Errno) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at = min(at, int64(len(f.written)))
	return fuse.ReadResultData(into[:copy(into, f.written[at:])]), fs.OK
}

// Write writes, which makes nothing durable.
func (f *file) Write(_ context.Context, _ fs.FileHandle, text []byte, at int64) (uint32, syscall.Errno) {
	f.mu.Lock()
	defer f.mu.Unlock()
	from, to := int(at), int(at)+len(text)
	f.resize(max(to, len(f.written)))
	copy(f.written[from:to], text)
	f.differs(from, to)
	return uint32(len(text)), fs.OK //nolint:gosec // the kernel writes at most 1 MiB
}

// Getattr returns the size.
func (f *file) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	f.mu.Lock()
	defer f.mu.Unlock()
	out.Mode, out.Size = fuse.S_IFREG|0o600, uint64(len(f.written))
	return fs.OK
}

// Setattr changes the size; nothing else is kept.
func (f *file) Setattr(ctx context.Context, handle fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	if size, ok := in.GetSize(); ok {
		f.mu.Lock()
		f.resize(int(size)) //nolint:gosec // files are small
		f.mu.Unlock()
	}
	return f.Getattr(ctx, handle, out)
}

// Fsync makes the file durable.
func (f *file) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno {
	f.sync()
	return f.disk.keepNames()
}

// sync makes durable what was written before the call. If the power fails before sync ends, nothing becomes durable. It
// returns at once if everything is durable already.
func (f *file) sync() {
	f.syncing.Lock()
	defer f.syncing.Unlock()
	f.mu.Lock()
	size, low := len(f.written), f.low
	part := bytes.Clone(f.written[f.low:f.high])
	f.low, f.high = 0, 0
	isNew := len(part) > 0 || size != len(f.synced)
	f.mu.Unlock()
	if isNew {
		f.disk.takeTime()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.disk.isDark() {
		return
	}
	f.synced = append(f.synced, make([]byte, max(0, size-len(f.synced)))...)[:size]
	copy(f.synced[low:], part)
}

func (f *file) whatIsSynced() []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	return bytes.Clone(f.synced)
}

// resize cuts the file off or fills it up with zeros.
func (f *file) resize(size int) {
	before := len(f.written)
	if size > before {
		f.written = append(f.written, make([]byte, size-before)...)
		f.differs(before, size)
		return
	}
	f.written = f.written[:size]
	f.low, f.high = min(f.low, size), min(f.high, size)
}

func (f *file) differs(from, to int) {
	if f.low == f.high {
		f.low, f.high = from, to
		return
	}
	f.low, f.high = min(f.low, from), max(f.high, to)
}
