package amqp

import "sync"

// worker runs items one after the other, in a goroutine that there is only while there are some. What has gathered
// meanwhile is run together.
type worker[T any] struct {
	run   func([]T)
	begin func(func()) // starts a goroutine

	mu        sync.Mutex
	items     []T
	isRunning bool
	isOver    chan struct{} // closed when the goroutine ends
}

// add adds an item. It does not block.
func (w *worker[T]) add(item T) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.items = append(w.items, item)
	if !w.isRunning {
		w.isRunning, w.isOver = true, make(chan struct{})
		w.begin(w.loop)
	}
}

func (w *worker[T]) loop() {
	for {
		w.mu.Lock()
		items := w.items
		w.items = nil
		if w.isRunning = len(items) > 0; !w.isRunning {
			close(w.isOver)
		}
		w.mu.Unlock()
		if len(items) == 0 {
			return
		}
		w.run(items)
	}
}

// wait waits until there are no items.
func (w *worker[T]) wait() {
	w.mu.Lock()
	isOver, isRunning := w.isOver, w.isRunning
	w.mu.Unlock()
	if isRunning {
		<-isOver
	}
}
