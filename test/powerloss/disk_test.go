package powerloss

import (
	"context"
	"os"
	"path"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// disk is a file system in memory that forgets what was not synced when its power is cut. The model:
//
//   - A sync of a file makes durable what was written to that file before the sync began, when the sync ends.
//   - A sync of any file or folder makes durable all names: what was created, renamed and removed. Journals do so.
//   - Nothing else makes anything durable, and what is not durable is lost as a whole. A kernel also writes back after
//     some 30 seconds, and a disk can keep a part.
type disk struct {
	at       string        // where it is mounted
	syncTime time.Duration // of each sync
	server   *fuse.Server
	root     *folder
	dark     chan struct{} // closed when the power fails

	mu      sync.Mutex
	durable map[string]*file // the names that are durable
}

// mount mounts an empty disk. It ends with the test.
func mount(t *testing.T, syncTime time.Duration) *disk {
	t.Helper()
	d := &disk{at: t.TempDir(), syncTime: syncTime}
	d.start(t, nil)
	t.Cleanup(func() { d.stop(t) })
	return d
}

// start mounts the disk with some files, by their paths.
func (d *disk) start(t *testing.T, contents map[string][]byte) {
	t.Helper()
	d.root, d.dark = &folder{disk: d}, make(chan struct{})
	server, err := fs.Mount(d.at, d.root, &fs.Options{
		MountOptions: fuse.MountOptions{DirectMount: true, FsName: "powerloss", Name: "powerloss"},
		OnAdd:        func(ctx context.Context) { d.fill(ctx, contents) },
	})
	if err != nil {
		t.Fatalf("mount a FUSE file system: %v; this test needs Linux with /dev/fuse, and root or the package fuse3", err)
	}
	d.server = server
	closeOnExec(t)
	_ = d.keepNames()
}

// closeOnExec keeps the connections to FUSE out of Redis and the sidecar, which go-fuse leaves open to them: a disk ends
// when all who have its connection have ended, and so would never end if the test is killed.
func closeOnExec(t *testing.T) {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range all {
		at, err := os.Readlink("/proc/self/fd/" + one.Name())
		if number, failed := strconv.Atoi(one.Name()); err == nil && failed == nil && at == "/dev/fuse" {
			syscall.CloseOnExec(number)
		}
	}
}

func (d *disk) stop(t *testing.T) {
	t.Helper()
	if err := d.server.Unmount(); err != nil {
		t.Errorf("unmount: %v", err)
		return
	}
	d.server.Wait()
}

// fill creates files whose contents are durable.
func (d *disk) fill(ctx context.Context, contents map[string][]byte) {
	for name, content := range contents {
		parent, base := d.root.EmbeddedInode(), path.Base(name)
		if dir := path.Dir(name); dir != "." { // Redis has one level of folders
			if parent.GetChild(dir) == nil {
				parent.AddChild(dir, d.root.newFolder(ctx), true)
			}
			parent = parent.GetChild(dir)
		}
		f := &file{disk: d, written: content, synced: append([]byte(nil), content...)}
		parent.AddChild(base, parent.NewPersistentInode(ctx, f, fs.StableAttr{Mode: fuse.S_IFREG}), true)
	}
}

// cutPower lets the disk keep nothing more. Syncs fail, those that are under way too.
func (d *disk) cutPower() { close(d.dark) }

func (d *disk) isDark() bool {
	select {
	case <-d.dark:
		return true
	default:
		return false
	}
}

// takeTime takes the time of a sync.
func (d *disk) takeTime() {
	timer := time.NewTimer(d.syncTime)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-d.dark:
	}
}

// restorePower mounts what is durable after a cut. No process may have a file open.
func (d *disk) restorePower(t *testing.T) {
	t.Helper()
	left := map[string][]byte{}
	for name, f := range d.durableFiles() {
		left[name] = f.whatIsSynced()
	}
	d.stop(t)
	d.start(t, left)
}

// syncAll makes all durable, as the command sync.
func (d *disk) syncAll() {
	for _, f := range d.files() {
		f.sync()
	}
	_ = d.keepNames()
}

// keepNames makes all names durable. After the power has failed it returns EIO.
func (d *disk) keepNames() syscall.Errno {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.isDark() {
		return syscall.EIO
	}
	d.durable = d.files()
	return fs.OK
}

func (d *disk) durableFiles() map[string]*file {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.durable
}

// files returns all files by their paths, whether durable or not.
func (d *disk) files() map[string]*file {
	all := map[string]*file{}
	var walk func(prefix string, in *fs.Inode)
	walk = func(prefix string, in *fs.Inode) {
		for name, child := range in.Children() {
			if f, ok := child.Operations().(*file); ok {
				all[path.Join(prefix, name)] = f
			} else {
				walk(path.Join(prefix, name), child)
			}
		}
	}
	walk("", d.root.EmbeddedInode())
	return all
}
